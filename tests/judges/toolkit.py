"""A folder that build files take for a CUDA toolkit: `CUDA_PATH`, `CUDA_HOME`, `CUDA_DIR`.

It has the headers and compilers of NVIDIA's packages on PyPI, or those of an installed toolkit; an `nvcc` that changes
some options (`nvcc.py`); and, to link with, libraries of the CPU device or of the installed toolkit.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# The compiler, its headers, and the libraries that programs without mathematics libraries use.
PACKAGES = (
    "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl", "nvidia-cuda-runtime", "nvidia-cuda-nvrtc",
    "nvidia-nvjitlink", "nvidia-cuda-profiler-api", "nvidia-curand",
)  # fmt: skip


class ToolkitError(Exception):
    """A part of the toolkit is missing. The message says what would provide it."""


def packages(folder):
    """The root of NVIDIA's packages, which are installed below `folder` unless they are there."""
    stamp = folder / ".packages"
    if not stamp.exists() or stamp.read_text() != "\n".join(PACKAGES):
        shutil.rmtree(folder, ignore_errors=True)
        print("installing the CUDA compiler from PyPI", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
        subprocess.run([*pip, *PACKAGES], check=True)
        stamp.write_text("\n".join(PACKAGES))
    roots = sorted(path for path in (folder / "nvidia").glob("cu*") if (path / "bin" / "nvcc").exists())
    if not roots:
        raise ToolkitError(f"{folder}: the packages {' '.join(PACKAGES)} contain no bin/nvcc")
    return roots[-1]


def major_version(root):
    """The major version of the toolkit's compiler."""
    compiler = root / "bin" / "nvcc"
    if not compiler.exists():
        raise ToolkitError(f"{root}: expected a CUDA toolkit with bin/nvcc")
    text = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"release (\d+)\.", text)
    if not found:
        raise ToolkitError(f"{compiler} --version: expected a line with 'release'")
    return int(found[1])


def link(target, place):
    """Makes `place` a symbolic link to `target`, unless it is there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_symlink():
        place.symlink_to(target)


def libraries(root):
    """Shared and static libraries by the name to link with, without a version: `libnvrtc.so`."""
    found = {}
    for folder in (root / name for name in ("lib64", "lib", "lib64/stubs")):
        for path in sorted(folder.glob("lib*.so*")) + sorted(folder.glob("lib*.a")):
            name = path.name if path.suffix == ".a" else path.name.partition(".so")[0] + ".so"
            found.setdefault(name, path.resolve())
    return found


def assemble(folder, root, capability, cpu_libraries=None):
    """Writes the toolkit into `folder`, and returns it.

    `root` is NVIDIA's toolkit, `capability` is such as "8.9". `cpu_libraries` is the folder of the CPU device's libraries;
    without it, programs are linked with NVIDIA's.
    """
    major = major_version(root)
    shutil.rmtree(folder, ignore_errors=True)
    link(root / "include", folder / "include")
    found = libraries(root)
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
    settings = {
        "nvcc": str(root / "bin" / "nvcc"),
        "capability": capability,
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
    for path in (root / "bin").iterdir():
        if path.name not in ("nvcc", "nvcc.profile") and os.access(path, os.X_OK) and path.is_file():
            link(path, folder / "bin" / path.name)
    return folder
