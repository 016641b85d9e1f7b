"""Programs that nvcc compiles, and their runs on the CPU device.

`toolkit` finds the nvcc of a CUDA major: that of an installed toolkit, else that of NVIDIA's wheels. CUDA 12's wheels have no nvcc,
so CUDA 13's compiles with their headers.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from cupyrite.run import FOLDER

from helpers.nvidia_wheels import downloaded

WHEELS = {
    12: [f"nvidia-{name}-cu12>=12.9,<13" for name in ("cuda-nvcc", "cuda-runtime", "cuda-cccl")],
    13: [f"nvidia-{name}>=13,<14" for name in ("cuda-nvcc", "cuda-crt", "cuda-runtime", "cuda-cccl", "nvvm")],
}
#: Where the CPU device's `libcudart.so` of a major is.
LINK_FOLDERS = {12: os.path.join(FOLDER, "cuda12"), 13: FOLDER}


def toolkit(major):
    """The words that run nvcc for this CUDA major: a program, and the options for its libraries and headers."""
    found = shutil.which("nvcc")
    if found is not None:
        said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        if re.search(rf"release {major}\.", said) is not None:
            return [found]
    root = downloaded(WHEELS[13]) / "nvidia" / "cu13"
    if not (root / "bin" / "nvcc").is_file():
        pytest.skip("needs nvcc, which the wheels of this platform do not have")
    words = [str(root / "bin" / "nvcc"), "-L", str(root / "lib")]
    if major == 13:
        return [*words, "-I", str(root / "include" / "cccl")]
    headers = downloaded(WHEELS[12]) / "nvidia"
    return [*words, *(f"-I{headers / name / 'include'}" for name in ("cuda_runtime", "cuda_nvcc", "cuda_cccl"))]


def nvidias_runtime(major):
    """The path of NVIDIA's `libcudart`."""
    root = downloaded(WHEELS[major]) / "nvidia"
    return root / ("cu13" if major == 13 else "cuda_runtime") / "lib" / f"libcudart.so.{major}"


class Compiler:
    """Compiles the files of a folder for one CUDA major."""

    def __init__(self, major, sources, folder):
        self.major, self.sources, self.folder = major, pathlib.Path(sources), pathlib.Path(folder)
        self.words = toolkit(major)

    def __call__(self, *names, output=None, options=(), cudart="shared"):
        """The path of the program."""
        output = self.folder / (output or names[0])
        sources = [str(self.sources / f"{name}.cu") for name in names]
        # The link folder comes first: without a toolkit there is no other `libcudart.so` to link with.
        link = ["-L", LINK_FOLDERS[self.major]]
        words = [self.words[0], "-cudart", cudart, *link, *self.words[1:], *options, *sources, "-o", str(output)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(output)


def run(*words, **variables):
    """Runs a program on the CPU device."""
    command = [sys.executable, "-m", "cupyrite", "run", "--device", "cpu", *words]
    environment = {**os.environ, "CUDA_LOG_FILE": "", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def lines(done):
    """The output of a successful run."""
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    return done.stdout.splitlines()


def exported(path):
    """Names of the functions that a library exports with the version of its file's name."""
    version = re.escape(pathlib.Path(path).name)
    return set(re.findall(rf"FUNC +GLOBAL +\w+ +\d+ (\w+)@@{version}$", symbol_table(path), re.MULTILINE))


def symbol_table(path):
    command = ["readelf", "--dyn-syms", "--wide", path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
