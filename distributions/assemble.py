"""Builds all distributions: `cupyrite` with the native module and the CPU device, and the stand-ins (`stand_in.py`).

    python distributions/assemble.py --out FOLDER [MATURIN ARGUMENT ...]

Needs maturin. The wheel of `cupyrite` carries the wheels of the stand-ins in `cupyrite/_stand_ins`, where
`python -m cupyrite stand-in` finds them: package indexes such as PyPI accept no versions with a local label, so
`cupyrite` may be the only one of them on an index.
"""

import argparse
import ast
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import cpu_device
import stand_in

#: Where the wheels of the stand-ins lie in the package.
CARRIED = "cupyrite/_stand_ins"
#: Where the pages lie that `cupyrite explain` prints.
PAGES = "cupyrite/_pages"


def pins():
    """What `cupyrite` requires: the stand-ins of the same build."""
    return [f"{name}=={stand_in.version_of(name)}" for name in stand_in.NAMES]


def pages():
    """The pages of `docs/` that `cupyrite explain` prints (`PAGES` of explain.py), by path in the package."""
    tree = ast.parse((stand_in.ROOT / "python" / "cupyrite" / "explain.py").read_text("utf-8"))
    assigned = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    names = ast.literal_eval(assigned["PAGES"])
    return {f"{PAGES}/{name}.md": (stand_in.ROOT / "docs" / f"{name}.md").read_bytes() for name in names}


def with_requirements(metadata, requirements):
    """The text of `METADATA` with these requirements added to its fields."""
    fields, blank, description = metadata.partition("\n\n")
    return "\n".join([fields, *(f"Requires-Dist: {one}" for one in requirements)]) + blank + description


def complete(wheel, folder, requirements, stand_ins=(), libraries=None):
    """Writes the wheel that maturin built into `folder`, with its requirements, the wheels of the stand-ins and the libraries
    of the CPU device (`cpu_device.py`). With stand-ins it is complete, and gets the pages too."""
    libraries = libraries or {}
    with zipfile.ZipFile(wheel) as archive:
        contents = {entry.filename: archive.read(entry) for entry in archive.infolist() if not entry.is_dir()}
    (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
    info = record.rpartition("/")[0]
    del contents[record]
    metadata = contents[f"{info}/METADATA"].decode()
    contents[f"{info}/METADATA"] = with_requirements(metadata, requirements).encode()
    contents |= {f"{CARRIED}/{path.name}": path.read_bytes() for path in stand_ins}
    contents |= libraries | (pages() if stand_ins else {})
    # maturin derives the platform from the native module alone.
    start, _, tag = wheel.stem.rpartition("-")
    platform = cpu_device.platform(tag, libraries)
    if platform != tag:
        fields = contents[f"{info}/WHEEL"].decode().splitlines()
        fields = [line for line in fields if not line.startswith("Tag: ")]
        contents[f"{info}/WHEEL"] = "\n".join(
            [*fields, f"Tag: {'-'.join(start.split('-')[-2:])}-{platform}", ""]
        ).encode()
    return stand_in.write_wheel(pathlib.Path(folder) / f"{start}-{platform}.whl", contents, info)


def build_stand_ins(folder, modules=True, native=True):
    """Writes the wheels of the stand-ins and returns their paths."""
    return [stand_in.StandIn(name, native).build(folder, modules) for name in stand_in.NAMES]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the wheels")
    options, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="cupyrite-build-") as folder:
        command = [sys.executable, "-m", "maturin", "build", "--out", folder, *rest]
        status = subprocess.run(command, cwd=stand_in.ROOT).returncode
        if status:
            return status
        (built,) = pathlib.Path(folder).glob("cupyrite-*.whl")
        try:
            libraries = cpu_device.build(cpu_device.cargo_words(rest))
        except (OSError, RuntimeError) as error:
            print(error, file=sys.stderr)
            return 1
        wheels = build_stand_ins(options.out)
        wheels.append(complete(built, options.out, pins(), wheels, libraries))
    print("\n".join(map(str, wheels)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
