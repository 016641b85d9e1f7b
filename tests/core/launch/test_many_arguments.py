"""Kernels with more parameters than fit in the memory that every launch has: by `launch` and by `cuLaunchKernel`."""

import ctypes
import struct

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, ObjectCode, launch

from helpers.device import check

LIMIT = 4096  # bytes of parameters that every device takes


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int64), ("b", ctypes.c_double)]


class Kind:
    """A type of parameter: its size and alignment in PTX, a value of it, and the words that the kernel writes."""

    def __init__(self, ptx, size, value, words, ctype):
        self.ptx, self.size, self.value, self.words, self.ctype = ptx, size, value, words, ctype


def bits(text, value):
    return int.from_bytes(struct.pack("<" + text, value), "little")


INT = Kind("u32", 4, lambda i: i * 3, lambda i: [i * 3], ctypes.c_uint)
MIXED = [
    INT,
    Kind("u64", 8, lambda i: i << 40, lambda i: [i << 40], ctypes.c_ulonglong),
    Kind("u8", 1, lambda i: np.uint8(i % 251), lambda i: [i % 251], ctypes.c_ubyte),
    Kind("f32", 4, lambda i: np.float32(i), lambda i: [bits("f", i)], ctypes.c_float),
    Kind("f64", 8, lambda i: i + 0.5, lambda i: [bits("d", i + 0.5)], ctypes.c_double),
    Kind("u16", 2, lambda i: ctypes.c_ushort(i), lambda i: [i], ctypes.c_ushort),
    Kind("pair", 16, lambda i: Pair(i, i / 4), lambda i: [i, bits("d", i / 4)], None),
]
LOAD = {"u8": "rs", "u16": "rs", "u32": "r", "f32": "r", "u64": "rd", "f64": "rd"}


def ptx_of(kinds):
    """A kernel that writes each of its parameters to where the first one points, 8 bytes a word."""
    params, body, at = [".param .u64 p0"], [], 0
    for index, kind in enumerate(kinds, 1):
        if kind.ptx == "pair":
            params.append(f".param .align 8 .b8 p{index}[16]")
            loads = [f"ld.param.u64 %rd2, [p{index}];", f"ld.param.u64 %rd2, [p{index}+8];"]
        else:
            params.append(f".param .{kind.ptx} p{index}")
            size = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}[kind.size]
            register = LOAD[kind.ptx]
            loads = [f"ld.param.{size} %{register}2, [p{index}];"]
            if register != "rd":
                loads[0] += f" cvt.u64.u{16 if register == 'rs' else 32} %rd2, %{register}2;"
        for load in loads:
            body.append(f"{load} st.global.u64 [%rd1+{at}], %rd2;")
            at += 8
    return (
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry many("
        + ", ".join(params)
        + ")\n{\n.reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .b16 %rs<3>;\nld.param.u64 %rd1, [p0];\n"
        + "\n".join(body)
        + "\nret;\n}\n"
    )


def filling(kinds, limit=LIMIT):
    """As many parameters of these types as fit behind a pointer."""
    chosen, used = [], 8
    while True:
        kind = kinds[len(chosen) % len(kinds)]
        alignment = min(kind.size, 8)
        end = -(-used // alignment) * alignment + kind.size
        if end > limit:
            return chosen
        chosen.append(kind)
        used = end


CASES = {
    **{f"{count} ints": [INT] * count for count in (32, 33, 64, 65, 256, 512)},
    **{f"{count} mixed": (MIXED * count)[:count] for count in (33, 65, 256)},
    "runs of 40": [kind for kind in MIXED for _ in range(40)],
    "runs of 2": [kind for kind in MIXED * 5 for _ in range(2)],
    "all the ints that fit": filling([INT]),
    "all that fit, mixed": filling(MIXED),
    "all the structures that fit": filling([MIXED[-1]]),
}


@pytest.fixture(scope="module")
def device():
    device = Device()
    device.set_current()
    return device


@pytest.mark.parametrize("name", CASES)
def test_every_argument_arrives(device, name):
    kinds = CASES[name]
    code = ObjectCode.from_ptx(ptx_of(kinds).encode())
    kernel = code.get_kernel("many")
    values = [kind.value(index) for index, kind in enumerate(kinds, 1)]
    words = [word for index, kind in enumerate(kinds, 1) for word in kind.words(index)]
    stream = device.create_stream()
    out = device.allocate(8 * len(words), stream=stream)
    got = np.zeros(len(words), np.uint64)

    def read():
        stream.sync()
        check(driver.cuMemcpyDtoH(got, int(out.handle), got.nbytes))
        # In the stream of the next launch, which does not wait for the default stream.
        out.fill(0, stream=stream)
        return got.tolist()

    for _ in range(2):
        launch(stream, LaunchConfig(grid=1, block=1), kernel, out, *values)
        assert read() == words
    types = (ctypes.c_void_p, *(kind.ctype for kind in kinds))
    plain = [getattr(value, "value", value) if kind.ctype else value for kind, value in zip(kinds, values)]
    check(
        driver.cuLaunchKernel(
            driver.CUfunction(int(kernel.handle)),
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            stream.handle,
            ((int(out.handle), *plain), types),
            0,
        )
    )
    assert read() == words
    out.close(stream)


@pytest.mark.parametrize("every", [1, 2])
def test_many_buffers_are_pinned_and_released(device, every):
    """Beside other arguments if `every` is 2."""
    count = 100
    code = ObjectCode.from_ptx(ptx_of([MIXED[1]] * count).encode())
    kernel = code.get_kernel("many")
    stream, resource = device.create_stream(), DeviceMemoryResource(device, {"max_size": 1 << 20})
    out = resource.allocate(8 * count, stream=stream)
    used = resource.attributes.used_mem_current
    buffers = [resource.allocate(256, stream=stream) for _ in range(count)]
    values = [buffer if index % every == 0 else index for index, buffer in enumerate(buffers)]
    launch(stream, LaunchConfig(grid=1, block=1), kernel, out, *values)
    stream.sync()
    got = np.zeros(count, np.uint64)
    check(driver.cuMemcpyDtoH(got, int(out.handle), got.nbytes))
    assert got.tolist() == [int(getattr(value, "handle", value)) for value in values]
    buffers[90].close(stream)
    if every == 1:
        with pytest.raises(RuntimeError, match="argument 91 .*closed"):
            launch(stream, LaunchConfig(grid=1, block=1), kernel, out, *values)
    for buffer in buffers:
        buffer.close(stream)
    stream.sync()
    assert resource.attributes.used_mem_current == used
    out.close(stream)


def test_a_wrong_argument_among_many_is_named(device):
    kernel = ObjectCode.from_ptx(ptx_of([INT] * 300).encode()).get_kernel("many")
    values = [0, *range(300)]
    values[290] = "text"
    stream = device.create_stream()
    with pytest.raises(TypeError, match="argument 290 "):
        launch(stream, LaunchConfig(grid=1, block=1), kernel, *values)
    with pytest.raises(TypeError, match="301"):
        launch(stream, LaunchConfig(grid=1, block=1), kernel, *values[:200])
