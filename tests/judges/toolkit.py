"""A folder that build files take for a CUDA toolkit: `CUDA_PATH`, `CUDA_HOME`, `CUDA_DIR`.

It has the headers and compilers of NVIDIA's packages on PyPI, or those of an installed toolkit; an `nvcc` that changes
some options (`nvcc.py`); and, to link with, libraries of the CPU device or of the installed toolkit.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# The compiler, its headers, and the libraries that programs without mathematics libraries use.
PACKAGES = {
    13: (
        "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl", "nvidia-cuda-runtime",
        "nvidia-cuda-nvrtc", "nvidia-nvjitlink", "nvidia-cuda-profiler-api", "nvidia-curand",
    ),
    12: (
        "nvidia-cuda-nvcc-cu12", "nvidia-cuda-cccl-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cuda-nvrtc-cu12",
        "nvidia-nvjitlink-cu12", "nvidia-cuda-profiler-api-cu12", "nvidia-curand-cu12",
    ),
}  # fmt: skip


class ToolkitError(Exception):
    """A part of the toolkit is missing. The message says what would provide it."""


def packages(folder, major):
    """The roots of NVIDIA's packages of a major version, which are installed below `folder` unless they are there.

    Version 13 has one root for all packages, version 12 one for each.
    """
    names = PACKAGES[major]
    stamp = folder / ".packages"
    if not stamp.exists() or stamp.read_text() != "\n".join(names):
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing the compiler of CUDA {major} from PyPI", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
        subprocess.run([*pip, *names], check=True)
        stamp.write_text("\n".join(names))
    roots = sorted(path for path in (folder / "nvidia").iterdir() if (path / "include").exists())
    if not any((root / "bin" / "nvcc").exists() for root in roots):
        raise ToolkitError(f"{folder}: the packages {' '.join(names)} contain no bin/nvcc")
    return roots


def link(target, place):
    """Makes `place` a symbolic link to `target`, unless it is there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_symlink():
        place.symlink_to(target)


def merge(source, place):
    """Links the files below `source` at the same places below `place`."""
    for path in source.iterdir():
        if path.is_dir():
            merge(path, place / path.name)
        else:
            link(path.resolve(), place / path.name)


def libraries(roots):
    """Shared and static libraries by the name to link with, without a version: `libnvrtc.so`."""
    found = {}
    for folder in (root / name for root in roots for name in ("lib64", "lib", "lib64/stubs")):
        for path in sorted(folder.glob("lib*.so*")) + sorted(folder.glob("lib*.a")):
            name = path.name if path.suffix == ".a" else path.name.partition(".so")[0] + ".so"
            found.setdefault(name, path.resolve())
    return found


def assemble(folder, roots, major, capability, cpu_libraries=None):
    """Writes the toolkit into `folder`, and returns it.

    `roots` are NVIDIA's, `capability` is such as "8.9". `cpu_libraries` is the folder of the CPU device's libraries;
    without it, programs are linked with NVIDIA's.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for root in roots:
        merge(root / "include", folder / "include")
    found = libraries(roots)
    if cpu_libraries:
        for name in ("libcuda.so.1", f"libcudart.so.{major}", "libnvidia-ml.so.1"):
            path = cpu_libraries / name
            if not path.exists():
                raise ToolkitError(f"{path}: no such file; expected a Cupyrite with the libraries of CUDA {major}")
            found[name.partition(".so")[0] + ".so"] = path.resolve()
    lib = folder / "lib64"
    for name, path in found.items():
        link(path, lib / name)
    if "libcuda.so" in found:
        link(found["libcuda.so"], lib / "stubs" / "libcuda.so")
    link("lib64", folder / "lib")
    (compiler,) = (root for root in roots if (root / "bin" / "nvcc").exists())
    settings = {
        "nvcc": str(compiler / "bin" / "nvcc"),
        "capability": capability,
        # The compiler finds the headers of its own root.
        "headers": [str(folder / "include")] if len(roots) > 1 else [],
        "libraries": [str(lib), str(lib / "stubs")],
    }
    program = folder / "bin" / "nvcc"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\n"
        f"import json, sys\nsys.path.insert(0, {str(HERE)!r})\nimport nvcc\n"
        f"nvcc.main(json.loads({json.dumps(settings)!r}), sys.argv[1:])\n"
    )
    program.chmod(0o755)
    for path in (compiler / "bin").iterdir():
        if path.name not in ("nvcc", "nvcc.profile") and os.access(path, os.X_OK) and path.is_file():
            link(path, folder / "bin" / path.name)
    return folder
