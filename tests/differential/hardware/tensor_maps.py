"""Facts about tensor maps on a GPU that the manual leaves open; compare with the CPU device (docs/cpu-device.md)."""

import ctypes
import pathlib
import subprocess
import sys

import numpy
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from cuda.core._tensor_map import TensorMapDataType, TensorMapOOBFill, TensorMapSwizzle
from cuda.core.utils import StridedMemoryView

SOURCE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/kernels/tensor_maps.cu").read_text()
device = Device()
device.set_current()
stream = device.create_stream()
codes = {}


class Position(ctypes.Structure):
    _fields_ = [("at", ctypes.c_int * 5)]


def load(tensor_map, element, dtype, at, count):
    """The 16 KiB of shared memory after the copy; count elements are expected by the barrier."""
    if element not in codes:
        options = ProgramOptions(arch=f"sm_{device.arch}", define_macro=[f"ELEMENT={element}"])
        codes[element] = Program(SOURCE, "c++", options).compile("cubin").get_kernel("load_box")
    out = device.allocate(16384, stream=stream)
    p = Position((ctypes.c_int * 5)(*reversed(at)))
    launch(stream, LaunchConfig(grid=1, block=64), codes[element], tensor_map, out, len(at), p, count)
    back = numpy.zeros(16384 // numpy.dtype(dtype).itemsize, dtype)
    out.copy_to(back, stream=stream)
    stream.sync()
    return back


def upload(data):
    buffer = device.allocate(data.nbytes, stream=stream)
    buffer.copy_from(data, stream=stream)
    return StridedMemoryView.from_buffer(buffer, data.shape, dtype=data.dtype)


for element, name, bits in (
    ("float", "float32", "u4"),
    ("unsigned short", "float16", "u2"),
    ("double", "float64", "u8"),
):
    view = upload(numpy.ones((4, 16), name))
    made = view.as_tensor_map((4, 16), oob_fill=TensorMapOOBFill.NAN_REQUEST_ZERO_FMA)
    print("NaN of", name, hex(int(load(made, element, bits, (4, 0), 64)[0])))

values = numpy.array([1 + 2**-11, 1 + 2**-10 + 2**-11, 1 + 3 * 2**-12, 1e-40] * 4, numpy.float32).reshape(1, 16)
for kind in (TensorMapDataType.TFLOAT32, TensorMapDataType.FLOAT32_FTZ, TensorMapDataType.TFLOAT32_FTZ):
    made = upload(values).as_tensor_map((1, 16), data_type=kind)
    print(
        kind.name,
        [hex(int(x)) for x in values.view("u4")[0, :4]],
        "->",
        [hex(int(x)) for x in load(made, "float", "u4", (0, 0), 16)[:4]],
    )

nans = numpy.array([0x7F800001, 0x7F801FFF, 0x7FC00001, 0xFFFFFFFF] * 4, "u4").view("f4").reshape(1, 16)
made = upload(nans).as_tensor_map((1, 16), data_type=TensorMapDataType.TFLOAT32)
print("NaNs loaded as TFLOAT32:", [hex(int(x)) for x in load(made, "float", "u4", (0, 0), 16)[:4]])


def store(kernel, kind, given, old):
    """The bits of a box of 16 floats, `old` before, after a store or reduction of `given`."""
    options = ProgramOptions(arch=f"sm_{device.arch}", define_macro=["ELEMENT=float"])
    code = Program(SOURCE, "c++", options).compile("cubin").get_kernel(kernel)
    buffer, source = (device.allocate(64, stream=stream) for _ in range(2))
    buffer.copy_from(old, stream=stream)
    source.copy_from(given, stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (1, 16), dtype=numpy.float32)
    made = view.as_tensor_map((1, 16), data_type=kind)
    launch(stream, LaunchConfig(grid=1, block=32), code, made, source, numpy.int32(0), numpy.int32(0), 16)
    back = numpy.zeros(16, "u4")
    buffer.copy_to(back, stream=stream)
    stream.sync()
    return [hex(int(x)) for x in back[:4]]


for kind in (TensorMapDataType.TFLOAT32, TensorMapDataType.FLOAT32_FTZ, TensorMapDataType.TFLOAT32_FTZ):
    print("stored as", kind.name, store("store_box", kind, values, numpy.zeros((1, 16), "f4")))

# A reduction that does not exist ends the process's context: each runs in a process.
if len(sys.argv) > 2:
    print(store("add_box", TensorMapDataType[sys.argv[2]], values, numpy.full((1, 16), 1e-41, "f4")))
    sys.exit()
for name in ("FLOAT32", "TFLOAT32", "FLOAT32_FTZ", "TFLOAT32_FTZ"):
    command = [sys.executable, __file__, sys.argv[1] if len(sys.argv) > 1 else "tests/kernels/tensor_maps.cu", name]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    print("added to 1e-41 as", name, lines[-1] if lines else done.returncode)

data = numpy.arange(16 * 8, dtype=numpy.float32).reshape(16, 8)
made = upload(data).as_tensor_map((16, 8), swizzle=TensorMapSwizzle.SWIZZLE_128B)
found = load(made, "float", "float32", (0, 0), data.size)
print(
    "rows of 32 bytes with a swizzle of 128:",
    [int(numpy.flatnonzero(found == row[0])[0]) for row in data[:6]],
    "(0, 8, 16, ... if rows are not padded, apart from the swizzle)",
)

space = numpy.zeros(512, numpy.uint8)
start = -space.ctypes.data % 64
view = upload(numpy.zeros((64, 64), numpy.float32))
cuda = ctypes.CDLL("libcuda.so.1")


def encode(
    address,
    offset=0,
    dims=(64, 64),
    strides=(256,),
    box=(16, 16),
    steps=(1, 1),
    kind=7,
    interleave=0,
    swizzle=0,
    fill=0,
):
    u64, u32 = ctypes.c_uint64, ctypes.c_uint32
    rank = len(dims)
    return cuda.cuTensorMapEncodeTiled(
        ctypes.c_void_p(space.ctypes.data + start + offset),
        kind,
        rank,
        ctypes.c_void_p(address),
        (u64 * rank)(*dims),
        (u64 * max(rank - 1, 1))(*strides),
        (u32 * rank)(*box),
        (u32 * rank)(*steps),
        interleave,
        swizzle,
        0,
        fill,
    )


at = view.ptr
print({offset: encode(at, offset) for offset in (0, 8, 16, 32, 64)})
print(
    "address + 8:",
    encode(at + 8),
    "stride 8:",
    encode(at, strides=(264,)),
    "stride 0:",
    encode(at, strides=(0,)),
    "stride < row:",
    encode(at, strides=(16,)),
    "box 12 bytes:",
    encode(at, box=(3, 16)),
    "box 257:",
    encode(at, box=(16, 257)),
    "step 9:",
    encode(at, steps=(1, 9)),
    "step 0:",
    encode(at, steps=(0, 1)),
    "32 B box over swizzle 32:",
    encode(at, box=(16, 16), swizzle=1),
    "int NaN fill:",
    encode(at, kind=3, fill=1),
    "dim 2**32:",
    encode(at, dims=(2**32, 64), strides=(2**34,)),
    "dim 2**32+1:",
    encode(at, dims=(2**32 + 1, 64), strides=(2**34,)),
    "interleave 32B without swizzle:",
    encode(at, dims=(64, 8, 8), strides=(256, 2048), box=(8, 8, 8), steps=(1, 1, 1), interleave=2),
    "null address:",
    encode(0),
)
