"""Builds the stand-ins: the distributions that own the `cuda` modules under the names of NVIDIA's packages.

Each folder beside this file is one of them; its `pyproject.toml` has the static metadata, and `tool.cupyrite` the rest:

* `modules`: the files and folders below `python/` that it owns;
* `interface`: the file whose `__version__` is the version of the implemented interface;
* `requires`: distributions of the same build, which it requires by exact version.

A version is the interface's version with Cupyrite's as its local label: `13.5.0+cupyrite.0.1.0`. Every rule of a client
that NVIDIA's 13.5.0 satisfies is satisfied by it, and it sorts after 13.5.0 (PEP 440), so an installer that sees both
keeps it. Standard library only: these functions run in isolated build environments.
"""

import base64
import hashlib
import pathlib
import re
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
#: Each after those that it requires.
NAMES = ("cuda-pathfinder", "cuda-bindings", "cuda-core", "cuda-python")
#: Source files only: caches and the native module do not belong to a stand-in.
ENDINGS = (".py", ".pyi", ".pxd", ".typed")
#: The oldest time that a zip archive can hold. The same sources give the same bytes.
TIME = (1980, 1, 1, 0, 0, 0)


def cupyrite_version():
    """Version of the workspace, which `cupyrite` has."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


class StandIn:
    """One distribution, read from its folder.

    Without `native` it does not require `cupyrite`, only the other stand-ins. Installers that build from a clone need
    that: `cupyrite` then names folders of the clone, and a later installation of a client would resolve them again.
    """

    def __init__(self, name, native=True):
        self.folder = HERE / name
        self.native = native
        described = tomllib.loads((self.folder / "pyproject.toml").read_text())
        self.project = described["project"]
        self.name = self.project["name"]
        self.settings = described["tool"]["cupyrite"]

    @property
    def version(self):
        text = (ROOT / "python" / self.settings["interface"]).read_text()
        found = re.search(r'^__version__ = "([0-9.]+)"$', text, re.MULTILINE)
        if found is None:
            raise ValueError(f'{self.settings["interface"]}: no line `__version__ = "..."`')
        return f"{found[1]}+cupyrite.{cupyrite_version()}"

    @property
    def stem(self):
        """The part of file names that has name and version."""
        return f"{self.name.replace('-', '_')}-{self.version}"

    @property
    def wheel_name(self):
        return f"{self.stem}-py3-none-any.whl"

    def metadata(self):
        """The text of `METADATA` (core metadata 2.4)."""
        project = self.project
        lines = [
            "Metadata-Version: 2.4",
            f"Name: {self.name}",
            f"Version: {self.version}",
            f"Summary: {project['description']}",
            f"License-Expression: {project['license']}",
            "License-File: LICENSE",
            f"Requires-Python: {project['requires-python']}",
            "Description-Content-Type: text/markdown",
        ]
        required = [name for name in self.settings["requires"] if self.native or name != "cupyrite"]
        lines += [f"Requires-Dist: {name}=={version_of(name)}" for name in required]
        for extra, requirements in project.get("optional-dependencies", {}).items():
            lines.append(f"Provides-Extra: {extra}")
            lines += [f"Requires-Dist: {with_extra(requirement, extra)}" for requirement in requirements]
        return "\n".join([*lines, "", (self.folder / "README.md").read_text()])

    def files(self):
        """Paths of its modules, relative to `python/`."""
        base = ROOT / "python"
        for entry in self.settings["modules"]:
            path = base / entry
            found = sorted(path.rglob("*")) if path.is_dir() else [path]
            yield from (file.relative_to(base) for file in found if file.is_file() and file.suffix in ENDINGS)

    def info(self):
        """Names and texts of the files of its `.dist-info` folder, without `RECORD`."""
        return {
            "METADATA": self.metadata(),
            "WHEEL": "Wheel-Version: 1.0\nGenerator: cupyrite\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "licenses/LICENSE": (ROOT / "LICENSE").read_text(),
        }

    def build(self, folder, modules=True):
        """Writes the wheel into `folder` and returns its path. Without `modules` it has metadata only."""
        contents = {f"{self.stem}.dist-info/{name}": text.encode() for name, text in self.info().items()}
        if modules:
            contents |= {str(file): (ROOT / "python" / file).read_bytes() for file in self.files()}
        return write_wheel(pathlib.Path(folder) / self.wheel_name, contents, f"{self.stem}.dist-info")


def with_extra(requirement, extra):
    """The requirement with the marker of its extra."""
    what, _, marker = requirement.partition(";")
    marker = f"({marker.strip()}) and " if marker else ""
    return f"{what.strip()}; {marker}extra == '{extra}'"


def version_of(name):
    """Version of one of the distributions of this build."""
    return cupyrite_version() if name == "cupyrite" else StandIn(name).version


def is_machine_code(data):
    """Whether these are the contents of a shared library or a program."""
    return data.startswith(b"\x7fELF")


def write_wheel(path, contents, info):
    """Writes a wheel: `contents` maps paths to bytes; `info` names the `.dist-info` folder, which gets its `RECORD`."""
    record = []
    for name, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")
    record.append(f"{info}/RECORD,,\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w") as archive:
        for name, data in [*contents.items(), (f"{info}/RECORD", "".join(record).encode())]:
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100755 if is_machine_code(data) else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".whl") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=9)
    part.replace(path)
    return path


def hooks(name):
    """The functions of a build backend for the stand-in of this name, by the names of PEP 517 and PEP 660."""
    stand_in = StandIn(name, native=False)

    def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
        folder = pathlib.Path(metadata_directory) / f"{stand_in.stem}.dist-info"
        for file, text in stand_in.info().items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        return folder.name

    def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
        return stand_in.build(wheel_directory).name

    return {
        "prepare_metadata_for_build_wheel": prepare_metadata_for_build_wheel,
        "build_wheel": build_wheel,
    }
