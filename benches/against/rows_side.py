"""One side of against.py: times the calls that programs make most in this interpreter, and prints JSON.

    rows_side.py ROUNDS [rows.so]

With a shared library built from rows.c, only the C counterparts are timed, at the addresses that Cupyrite's calls use.
"""

import ctypes
import json
import sys

from cuda.bindings import driver, nvrtc
from cuda.core import Device, LaunchConfig, ObjectCode, launch

from harness.ptx import empty_kernels
from harness.timing import calling, empty, pairing, smallest_mean

KERNELS = {
    "none": (),
    "three": ("f32", "u64", "u64"),
    "sixteen": ("u32", "f32", "u64", "f64") * 4,
    "longs": ("u64",) * 512,
    "bytes": ("u8",) * 512,
}
# The same order as the enum in rows.c.
SYMBOLS = (
    "cuCtxGetCurrent cuCtxSetCurrent cuStreamQuery cuDeviceGetAttribute cuEventRecord cuEventCreate cuEventDestroy "
    "cuPointerGetAttribute cuModuleGetFunction cuMemAlloc cuMemFree cuMemAllocAsync cuMemFreeAsync cuLaunchKernel "
    "cuTensorMapEncodeTiled cuTensorMapEncodeIm2col cuTensorMapEncodeIm2colWide cuEventQuery cuEventSynchronize "
    "cuStreamSynchronize cuCtxSynchronize nvrtcCreateProgram nvrtcDestroyProgram"
).split()
# In the order in which rows.c writes its results.
ROWS = (
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuStreamQuery",
    "cuDeviceGetAttribute",
    "cuEventRecord",
    "cuEventCreate + cuEventDestroy",
    "cuPointerGetAttribute",
    "cuModuleGetFunction",
    "cuMemAlloc + cuMemFree",
    "cuMemAllocAsync + cuMemFreeAsync",
    "cuLaunchKernel, no arguments",
    "cuLaunchKernel, 16 arguments",
    "cuLaunchKernel, 16 packed beforehand",
    "cuLaunchKernel, 512 packed beforehand",
    "cuLaunchKernel, 512 long long",
    "cuLaunchKernel, 512 bool",
    "cuLaunchKernel, 512 bytes",
    "cuTensorMapEncodeTiled",
    "cuTensorMapEncodeIm2col",
    "cuTensorMapEncodeIm2colWide",
    "nvrtcCreateProgram + nvrtcDestroyProgram",
    "the same with 100 headers",
    "core: Event.is_done",
    "core: Event.sync",
    "core: Stream.sync",
    "core: Stream.sync, default stream",
    "core: Stream.record",
    "core: launch, no arguments",
    "core: launch, 3 arguments",
    "core: Device()",
    "core: allocate + close",
)
LAUNCHES = 256


def check(result):
    if result[0] != 0:
        raise RuntimeError(result[0])
    return result[1] if len(result) == 2 else None


class Objects:
    """What the rows use, of one process."""

    def __init__(self):
        self.device = Device(0)
        self.device.set_current()
        self.core_stream = self.device.create_stream()
        self.stream = self.core_stream.handle
        self.ptx = empty_kernels(KERNELS).encode() + b"\0"
        self.module = check(driver.cuModuleLoadData(self.ptx))
        self.functions = {name: check(driver.cuModuleGetFunction(self.module, name.encode())) for name in KERNELS}
        self.memory = check(driver.cuMemAlloc(1 << 20))
        for function in self.functions.values():
            count = len(KERNELS[next(n for n, f in self.functions.items() if f is function)])
            self.launch(function, ((0,) * count, (ctypes.c_ulonglong,) * count))
        check(driver.cuCtxSynchronize())

    def launch(self, function, arguments):
        check(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, self.stream, arguments, 0))


def packed(values):
    """The array of pointers to ctypes values, and what keeps it alive."""
    return (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values)), values


def tensor_maps(memory):
    """Function and arguments of the three encodings."""
    d = driver
    last = (
        d.CUtensorMapInterleave(0),
        d.CUtensorMapSwizzle(0),
        d.CUtensorMapL2promotion(0),
        d.CUtensorMapFloatOOBfill(0),
    )
    kind = d.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32
    u64, u32 = d.cuuint64_t, d.cuuint32_t
    longs = lambda *values: [u64(value) for value in values]  # noqa: E731
    ints = lambda *values: [u32(value) for value in values]  # noqa: E731
    tiled = (kind, 2, int(memory), longs(64, 64), longs(256), ints(16, 16), ints(1, 1), *last)
    shape = (kind, 3, int(memory), longs(32, 16, 16), longs(128, 2048))
    im2col = (*shape, [0], [0], 32, 16, ints(1, 1, 1), *last)
    wide = (
        *shape,
        0,
        0,
        32,
        16,
        ints(1, 1, 1),
        last[0],
        d.CUtensorMapIm2ColWideMode(0),
        d.CUtensorMapSwizzle(3),
        *last[2:],
    )
    return (d.cuTensorMapEncodeTiled, tiled), (d.cuTensorMapEncodeIm2col, im2col), (d.cuTensorMapEncodeIm2colWide, wide)


def from_python(rounds):
    """The rows, called from Python."""
    o = Objects()
    d, n = driver, nvrtc
    device, context = check(d.cuDeviceGet(0)), check(d.cuCtxGetCurrent())
    event = check(d.cuEventCreate(2))
    attribute = d.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    kind = d.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    names = [[b"%c%d.h" % (letter, number) for number in range(100)] for letter in b"st"]

    def of(function, *arguments, count=2000):
        return smallest_mean(rounds, count, calling(function, *arguments))

    def pair(create, destroy, *arguments, count=500, also=()):
        return smallest_mean(rounds, count, pairing(create, destroy, *arguments, also=also))

    def launches(name, arguments):
        call = (o.functions[name], 1, 1, 1, 1, 1, 1, 0, o.stream, arguments, 0)
        check(d.cuLaunchKernel(*call))
        return smallest_mean(rounds, LAUNCHES, calling(d.cuLaunchKernel, *call), d.cuCtxSynchronize)

    mixed = (ctypes.c_int, ctypes.c_float, ctypes.c_void_p, ctypes.c_double) * 4
    before16 = packed([kind(0) for kind in mixed])
    before512 = packed([ctypes.c_longlong(1) for _ in range(512)])
    rows = [
        of(d.cuCtxGetCurrent),
        of(d.cuCtxSetCurrent, context),
        of(d.cuStreamQuery, o.stream),
        of(d.cuDeviceGetAttribute, attribute, device),
        of(d.cuEventRecord, event, o.stream, count=500),
        pair(d.cuEventCreate, d.cuEventDestroy, 2),
        of(d.cuPointerGetAttribute, kind, o.memory),
        of(d.cuModuleGetFunction, o.module, b"none"),
        pair(d.cuMemAlloc, d.cuMemFree, 256, count=100),
        pair(d.cuMemAllocAsync, d.cuMemFreeAsync, 256, o.stream, count=100, also=(o.stream,)),
        launches("none", 0),
        launches("sixteen", ((1, 2.0, 0, 3.0) * 4, mixed)),
        launches("sixteen", ctypes.addressof(before16[0])),
        launches("longs", ctypes.addressof(before512[0])),
        launches("longs", (tuple(range(512)), (ctypes.c_longlong,) * 512)),
        launches("bytes", ((True, False) * 256, (ctypes.c_bool,) * 512)),
        launches("bytes", (tuple(number % 100 for number in range(512)), (ctypes.c_byte,) * 512)),
    ]
    for function, arguments in tensor_maps(o.memory):
        check(function(*arguments))
        rows.append(of(function, *arguments, count=1000))
    rows += [
        pair(n.nvrtcCreateProgram, lambda program: n.nvrtcDestroyProgram(program), b"", b"", 0, [], []),
        pair(n.nvrtcCreateProgram, lambda program: n.nvrtcDestroyProgram(program), b"", b"", 100, *names, count=50),
    ]
    return rows + from_core(o, rounds)


def from_core(o, rounds):
    """The rows of cuda.core."""
    code = ObjectCode.from_ptx(o.ptx.rstrip(b"\0"))
    none, three = code.get_kernel("none"), code.get_kernel("three")
    config, stream = LaunchConfig(grid=1, block=1), o.core_stream
    event = o.device.create_event()
    stream.record(event)
    stream.sync()
    source = o.device.allocate(256, stream=stream)
    resource = o.device.memory_resource

    def of(function, *arguments, count=2000):
        return smallest_mean(rounds, count, calling(function, *arguments))

    def launches(*arguments):
        launch(stream, config, *arguments)
        return smallest_mean(rounds, LAUNCHES, calling(launch, stream, config, *arguments), stream.sync)

    def done(loop):
        for _ in loop:
            event.is_done  # noqa: B018

    def buffers(loop):
        allocate = resource.allocate
        for _ in loop:
            allocate(256, stream=stream).close(stream)

    return [
        smallest_mean(rounds, 2000, done),
        of(event.sync),
        of(stream.sync),
        of(o.device.default_stream.sync, count=500),
        of(stream.record, event, count=500),
        launches(none),
        launches(three, ctypes.c_float(2), source, ctypes.c_uint64(256)),
        of(Device),
        smallest_mean(rounds, 100, buffers, stream.sync),
    ]


def from_c(library, rounds):
    """The rows but `Device()` from C."""
    from cupyrite import _native

    o = Objects()
    check(nvrtc.nvrtcVersion()[:1])
    addresses = (ctypes.c_void_p * len(SYMBOLS))()
    for number, name in enumerate(SYMBOLS):
        found = "nvrtc" if name.startswith("nvrtc") else "cuda"
        addresses[number] = _native.symbol_address(found, name) or _native.symbol_address(found, f"{name}_v2")
        if not addresses[number]:
            raise RuntimeError(f"no {name}")
    functions = (ctypes.c_void_p * len(KERNELS))(*map(int, o.functions.values()))
    results = (ctypes.c_double * len(ROWS))()
    bench = ctypes.CDLL(library).bench
    status = bench(
        addresses, ctypes.c_void_p(int(o.stream)), ctypes.c_void_p(int(o.module)), functions,
        ctypes.c_void_p(int(o.memory)), rounds, LAUNCHES, results,
    )  # fmt: skip
    if status != 0:
        raise RuntimeError("rows.c failed")
    return list(results)


def main():
    rounds = int(sys.argv[1])
    result = {"rows": ROWS, "loop": smallest_mean(rounds, 2000, empty), "device": Device(0).name}
    if len(sys.argv) > 2:
        result["c"] = from_c(sys.argv[2], rounds)
    else:
        result["python"] = from_python(rounds)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
