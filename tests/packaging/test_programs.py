"""Programs in the style of the CUDA Python documentation: each runs in a process of its own and prints its results.

The programs are in tests/programs, one for each chapter of the documentation.
"""

import os
import re
import subprocess
import sys

import pytest

from helpers import TESTS

PROGRAMS = TESTS / "programs"
MIRRORED = "NumPy arguments: mirrored 48 texels\nctypes arguments: mirrored 48 texels\n"

# The output of each program, as a regular expression.
OUTPUT = {
    "arguments_ctypes": r"42 0\.625 21\n",
    "arguments_numpy": r"42 0\.625 21\n",
    "arguments_texture": MIRRORED,
    "bindings_together": "same name: True\ncompiled: True\n",
    "core_device": (
        r"device: .+\nuuid: [0-9a-f-]{36}\nbus: [0-9A-Fa-f:.]{12}\npools: (True|False)\nwarp size: 32 threads a block: 1024\n"
    ),
    "core_event": "done: True\nclosed\n",
    "core_graph": r"(?s:digraph dot \{.*\}\s*)launched 12 times: 797160\nclosed\n",
    "core_launch": (
        "buffers passed to a kernel\naddresses passed to a kernel\n"
        "three dimensions launched\ncooperative launched\n(cluster launched\n)?"
    ),
    "core_linker": "errors: ''\ntripled 60 numbers\n",
    "core_memory": (
        "DeviceMemoryResource 2048\nLegacyPinnedMemoryResource 2048\nPinnedMemoryResource 2048\n"
        "ManagedMemoryResource 2048\ncopied 256 numbers\nfilled with 90\nclosed\n"
    ),
    "core_object_code": "counting cubin\nshared memory: 0\n",
    "core_overview": "capability known: True\nmemory known: True\nallocated: 65536\n",
    "core_program": r"c\+\+: NVRTC cubin\nc\+\+: ptx\nptx: cubin\nnvvm: ptx\n",
    "core_stream": "nonblocking: True priority: 0\nclosed\n",
    "core_system": "devices known: True\ndriver known: True\nsame name: True\nsame device: True\n",
    "driver_and_nvrtc": r"blended 1048576 numbers\ndriver: CUDA_ERROR_INVALID_VALUE\nnvrtc: NVRTC_ERROR_COMPILATION\n",
    "legacy_module_names": "named: True\nsame count: True\nnvrtc: NVRTC_SUCCESS\n",
}


@pytest.mark.parametrize("name", OUTPUT)
def test_program_prints_its_results(name, tmp_path):
    command = [sys.executable, "-W", "ignore", str(PROGRAMS / f"{name}.py")]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(OUTPUT[name], done.stdout), done.stdout


def test_every_program_is_run():
    assert {path.stem for path in PROGRAMS.glob("*.py")} == {*OUTPUT, "common"}
