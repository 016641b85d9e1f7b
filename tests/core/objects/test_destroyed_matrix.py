"""cuda.core: each kind of handle, destroyed by the program with each of the bindings, at each time.

Each pair of kind and bindings is a process: NVIDIA's driver crashes for some of them when a handle is used or destroyed
again. The process destroys an object that was not used, one that is in use, one that was used, one in another thread, and
ends with one that is destroyed and still referred to.
"""

import itertools
import pathlib
import subprocess
import sys

import pytest
from cuda.bindings import driver, nvjitlink
from cuda.core import Linker, LinkerOptions, ObjectCode

PTX = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"
PROGRAM = pathlib.Path(__file__).with_name("destroy_handles.py")
OF_BOTH = ("library", "stream", "event", "pool", "graph definition", "graph", "array", "texture")
OF_BOTH += ("memory", "memory in stream order", "slice", "pinned memory")
CELLS = [
    *itertools.product(OF_BOTH, ("driver", "runtime", "v2")),
    ("NVRTC program", "library"),
    ("NVRTC program", "v2"),
]


@pytest.mark.parametrize("kind, api", CELLS)
def test_destroyed_by_the_program(kind, api):
    program = [sys.executable, "-X", "faulthandler", PROGRAM, kind, api]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    lines = ["before a use", "during a use", "after a use", "in another thread", "at exit"]
    assert (done.stdout.splitlines(), done.returncode, done.stderr) == (lines, 0, "")


def test_freed_memory_is_closed(device, stream):
    buffer = device.allocate(256, stream=stream)
    part, address = buffer[:16], int(buffer.handle)
    assert driver.cuMemFree(address)[0] == 0
    for freed in (buffer, part):
        assert freed.is_closed and freed.handle == 0 and freed.size == 0
        with pytest.raises(RuntimeError, match="its memory was freed by the program, with cuMemFree"):
            freed.fill(1, stream=stream)
    others = [device.allocate(256, stream=stream) for _ in range(4)]
    buffer.close()
    part.close()
    for other in others:
        assert not other.is_closed
        other.fill(2, stream=stream)
        other.close()
    stream.sync()


def test_a_refused_free_changes_nothing(device, stream):
    buffer = device.allocate(256, stream=stream)
    assert driver.cuMemFree(int(buffer.handle) + 16)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    buffer.fill(1, stream=stream)
    buffer.close()
    stream.sync()


def test_the_bindings_refuse_to_destroy_the_handles_of_a_linker(device):
    """cuda.bindings.nvjitlink destroys what it has created, and nothing else."""
    linker = Linker(ObjectCode.from_ptx(PTX), options=LinkerOptions(arch="sm_80"))
    with pytest.raises(nvjitlink.nvJitLinkError, match="no handle of nvjitlink.create"):
        nvjitlink.destroy(int(linker.handle))
    assert linker.link("cubin").code
