"""Builds all distributions: `cupyrite` with the native module and the CPU device, and the stand-ins (`stand_in.py`).

    python distributions/assemble.py --out FOLDER [--manylinux] [MATURIN ARGUMENT ...]

Needs maturin; with --manylinux, cargo-zigbuild and ziglang too: zig links against the C library of `GLIBC`, whatever that of
this machine is. The wheel of `cupyrite` carries the wheels of the stand-ins in `cupyrite/_stand_ins`, where
`python -m cupyrite stand-in` finds them: package indexes such as PyPI accept no versions with a local label, so
`cupyrite` may be the only one of them on an index.
"""

import argparse
import ast
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from platform import machine

import cpu_device
import elf
import stand_in

#: Where the wheels of the stand-ins lie in the package.
CARRIED = "cupyrite/_stand_ins"
#: Where the pages lie that `cupyrite explain` prints.
PAGES = "cupyrite/_pages"
#: The oldest C library that published wheels run with: that of RHEL 8, older than Debian 11's and Ubuntu 20.04's.
GLIBC = (2, 28)


def pins():
    """What `cupyrite` requires: the stand-ins of the same build."""
    return [f"{name}=={stand_in.version_of(name)}" for name in stand_in.NAMES]


def pages():
    """The pages of `docs/` that `cupyrite explain` prints (`PAGES` of explain.py), by path in the package."""
    tree = ast.parse((stand_in.ROOT / "python" / "cupyrite" / "explain.py").read_text("utf-8"))
    assigned = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    names = ast.literal_eval(assigned["PAGES"])
    return {f"{PAGES}/{name}.md": (stand_in.ROOT / "docs" / f"{name}.md").read_bytes() for name in names}


def description(text):
    """A page of the repository as a description for indexes, which have none of the repository's files: links to them become
    absolute if `[project.urls]` has a `Repository`, else plain text."""
    urls = tomllib.loads((stand_in.ROOT / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {})
    base = urls.get("Repository")

    def link(match):
        label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        return f"[{label}]({base.rstrip('/')}/blob/v{stand_in.cupyrite_version()}/{target})" if base else label

    return re.sub(r"\[([^\]\n]+)\]\(([^)\s]+)\)", link, text)


def with_requirements(metadata, requirements):
    """The text of `METADATA` with these requirements added to its fields."""
    fields, blank, text = metadata.partition("\n\n")
    return "\n".join([fields, *(f"Requires-Dist: {one}" for one in requirements)]) + blank + description(text)


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


def check(wheel, limit=GLIBC):
    """Raises RuntimeError if a shared library or program of the wheel needs more than this C library, or a library that may be absent."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    libraries = {name: data for name, data in files.items() if stand_in.is_machine_code(data)}
    wrong = [line for name, data in libraries.items() for line in elf.complaints(name, data, limit)]
    tag = f"manylinux_{limit[0]}_{limit[1]}_"
    if tag not in wheel.name:
        wrong.append(f"the wheel's name lacks {tag}")
    if wrong:
        raise RuntimeError("\n".join([f"{wheel}:", *wrong]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the wheels")
    parser.add_argument(
        "--manylinux", action="store_true", help=f"for systems from glibc {GLIBC[0]}.{GLIBC[1]} on; needs ziglang"
    )
    options, rest = parser.parse_known_args()
    if options.manylinux:
        # maturin and cargo-zigbuild look for a Python with ziglang on PATH.
        os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
        rest += ["--target", f"{machine()}-unknown-linux-gnu"]
    zig = ["--zig", "--compatibility", f"manylinux_{GLIBC[0]}_{GLIBC[1]}"] if options.manylinux else []
    with tempfile.TemporaryDirectory(prefix="cupyrite-build-") as folder:
        command = [sys.executable, "-m", "maturin", "build", "--out", folder, *zig, *rest]
        status = subprocess.run(command, cwd=stand_in.ROOT).returncode
        if status:
            return status
        (built,) = pathlib.Path(folder).glob("cupyrite-*.whl")
        try:
            libraries = cpu_device.build(cpu_device.cargo_words(rest), glibc=GLIBC if options.manylinux else None)
            wheels = build_stand_ins(options.out)
            wheels.append(complete(built, options.out, pins(), wheels, libraries))
            if options.manylinux:
                check(wheels[-1])
        except (OSError, RuntimeError) as error:
            print(error, file=sys.stderr)
            return 1
    print("\n".join(map(str, wheels)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
