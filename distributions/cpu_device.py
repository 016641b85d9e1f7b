"""Builds the shared libraries and the `ptxas` of the CPU device, which lie in the package as `cupyrite/lib/cpu`.

    python distributions/cpu_device.py [--release] [CARGO ARGUMENT ...]

puts them into `python/`, for a native module that runs from a clone. They and the module must come from the same sources;
the module refuses others. Standard library only: these functions run in isolated build environments.
"""

import argparse
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import elf
import stand_in

#: The folder in the package. It is on no loader's search path; `python -m cupyrite run` puts it into LD_LIBRARY_PATH.
FOLDER = "cupyrite/lib/cpu"
#: Crate -> names of its file there. Wheels have no symbolic links. The names without a number are for `-lcuda`, `-lcudart` and for
#: programs that load them; all lead to the same device, which is in the first library. For `-lcudart` of CUDA 12, see `SCRIPTS`.
LIBRARIES = {
    "cupyrite-cpu-driver": ("libcupyrite_cpu_device.so",),
    "cupyrite-libcuda": ("libcuda.so.1", "libcuda.so"),
    "cupyrite-libcudart": ("libcudart.so.13", "libcudart.so"),
    "cupyrite-libcudart12": ("libcudart.so.12",),
    "cupyrite-libnvml": ("libnvidia-ml.so.1", "libnvidia-ml.so"),
}
#: Crate -> name of its program there, which loads the first library. `python -m cupyrite run` names it to Triton.
PROGRAMS = {"cupyrite-ptxas": "ptxas"}
#: Linker scripts by name there. A folder has one library for `-lcudart`, so CUDA 12's has a folder of its own. Linkers look for
#: the file in a script from the script's folder.
SCRIPTS = {"cuda12/libcudart.so": b"/* libcudart of CUDA 12, to link with. */\nINPUT(../libcudart.so.12)\n"}
#: Options of maturin that cargo has too: with a value, and without.
WITH_VALUE = ("--profile", "--target", "--target-dir")
WITHOUT_VALUE = ("--release", "-r", "--locked", "--frozen", "--offline")


def cargo_words(words):
    """Those of maturin's arguments that concern cargo."""
    chosen = []
    words = iter(words)
    for word in words:
        if word in WITHOUT_VALUE or word.startswith(tuple(f"{name}=" for name in WITH_VALUE)):
            chosen.append(word)
        elif word in WITH_VALUE:
            chosen += [word, next(words, "")]
    return chosen


def zigbuild():
    """The program cargo-zigbuild, which a package of that name puts beside the interpreter; raises RuntimeError."""
    beside = os.path.dirname(sys.executable)
    found = shutil.which("cargo-zigbuild", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if found is None:
        raise RuntimeError("cargo-zigbuild is not installed; run: pip install cargo-zigbuild ziglang")
    return found


def with_glibc(words, version):
    """Cargo's arguments with the target's C library named, as cargo-zigbuild expects it: x86_64-unknown-linux-gnu.2.28."""
    at = words.index("--target") + 1
    return [*words[:at], f"{words[at]}.{version[0]}.{version[1]}", *words[at + 1 :]]


def build(words, strip=True, glibc=None):
    """Builds the libraries and programs with these arguments of cargo; returns their contents by path in the package.

    With `glibc`, such as (2, 28), zig links them against that version of the C library; the arguments name the target.
    """
    program = os.environ.get("CARGO", "cargo")
    if glibc is not None:
        program, words = zigbuild(), with_glibc(words, glibc)
    files = {f"{FOLDER}/{name}": text for name, text in SCRIPTS.items()}
    targets = [(crate, ["--lib"], names) for crate, names in LIBRARIES.items()]
    targets += [(crate, ["--bin", name], (name,)) for crate, name in PROGRAMS.items()]
    for crate, target, names in targets:
        command = [program, "rustc", "--package", crate, *target, *words]
        command += ["--message-format=json-render-diagnostics", *(["--", "-Clink-arg=-s"] if strip else [])]
        done = subprocess.run(command, cwd=stand_in.ROOT, stdout=subprocess.PIPE)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}")
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
        built = [
            name
            for message in messages
            if message["reason"] == "compiler-artifact" and message["target"]["crate_types"] in (["cdylib"], ["bin"])
            for name in message["filenames"]
            if name.endswith(".so") or name == message["executable"]
        ]
        data = pathlib.Path(built[-1]).read_bytes()
        files |= {f"{FOLDER}/{name}": data for name in names}
    return files


def add_sources(sdist, description):
    """Adds the crates of the libraries to the source distribution that maturin made. `description` is applied to the text
    that indexes show."""
    root = sdist.name.removesuffix(".tar.gz")
    part = sdist.with_suffix(".part")
    folders = [stand_in.ROOT / "crates" / crate.removeprefix("cupyrite-") for crate in (*LIBRARIES, *PROGRAMS)]
    with tarfile.open(sdist) as made, tarfile.open(part, "w:gz") as whole:
        for entry in made:
            data = made.extractfile(entry).read() if entry.isfile() else b""
            if entry.name == f"{root}/Cargo.toml":
                # maturin left them out of the workspace's members as well.
                added = ", ".join(f'"crates/{folder.name}"' for folder in folders)
                data = re.sub(rb"^(members = \[)", rb"\1" + added.encode() + b", ", data, flags=re.MULTILINE)
            elif entry.name == f"{root}/PKG-INFO":
                fields, blank, text = data.decode().partition("\n\n")
                data = f"{fields}{blank}{description(text)}".encode()
            entry.size = len(data)
            whole.addfile(entry, io.BytesIO(data))
        for folder in folders:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    whole.add(file, f"{root}/{file.relative_to(stand_in.ROOT)}")
    part.replace(sdist)


def put(files, folder):
    """Writes the files below `folder`. Processes that have loaded the former ones keep those."""
    for name, data in files.items():
        path = pathlib.Path(folder) / name
        if path.is_file() and path.read_bytes() == data:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.write_bytes(data)
        part.chmod(0o755)
        part.replace(path)


def platform(tag, files):
    """The platform tag of a wheel with these files, where `tag` is that of its other files."""
    found = re.match(r"manylinux_(\d+)_(\d+)_(\w+?)(\.|$)", tag)
    needed = max((elf.glibc(data) for data in files.values() if stand_in.is_machine_code(data)), default=(0, 0))
    if found is None or (int(found[1]), int(found[2])) >= needed:
        return tag
    return f"manylinux_{needed[0]}_{needed[1]}_{found[3]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--release", action="store_true", help="optimised, as in the wheel")
    options, rest = parser.parse_known_args()
    try:
        files = build([*(["--release"] if options.release else []), *rest], strip=options.release)
    except (OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    put(files, stand_in.ROOT / "python")
    print(stand_in.ROOT / "python" / FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
