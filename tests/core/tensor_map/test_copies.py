"""Kernels that copy boxes of tensors. They need compute capability 9.0.

On the CPU device with its default capability, `test_descriptor.py` runs this file in a process with
CUPYRITE_CPU_COMPUTE_CAPABILITY=9.0.
"""

import ctypes

import numpy
import pytest
from cuda.core import LaunchConfig, Program, ProgramOptions, launch
from cuda.core._tensor_map import TensorMapDataType, TensorMapOOBFill, TensorMapSwizzle
from cuda.core.utils import StridedMemoryView

from helpers.device import KERNELS, on_cpu_device
from helpers.programs import python


@pytest.fixture(autouse=True)
def _can_copy(device):
    if device.compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")


SHARED = 16384  # Bytes of shared memory that `load_box` returns.

NAMES = {"float32": "float", "uint32": "unsigned", "int32": "int", "uint8": "unsigned char", "float64": "double"}


class Position(ctypes.Structure):
    _fields_ = [("at", ctypes.c_int * 5)]


def position(*row_major):
    """Coordinates in the order of the view's axes."""
    return Position((ctypes.c_int * 5)(*reversed(row_major)))


@pytest.fixture(scope="module")
def kernel(device):
    source = (KERNELS / "tensor_maps.cu").read_text()
    codes = {}

    def get(name, dtype="float32"):
        if dtype not in codes:
            defines = [f"ELEMENT={NAMES[dtype]}"] + (["INTEGERS"] if dtype == "uint32" else [])
            options = ProgramOptions(arch=f"sm_{device.arch}", define_macro=defines)
            codes[dtype] = Program(source, "c++", options).compile("cubin")
        return codes[dtype].get_kernel(name)

    return get


def upload(device, stream, data):
    """A view of device memory with a copy of an array, strides included."""
    span = data.base if data.base is not None else data
    buffer = device.allocate(span.nbytes, stream=stream)
    buffer.copy_from(span, stream=stream)
    strides = tuple(stride // data.itemsize for stride in data.strides)
    return StridedMemoryView.from_buffer(buffer, data.shape, strides, dtype=data.dtype), buffer


def box_of(data, at, box, steps=None, fill=0):
    """The reference: elements of a box, with `fill` outside of the array."""
    steps = steps or (1,) * data.ndim
    # The last dimension has no stride.
    steps = (*steps[:-1], 1)
    indices = [a + numpy.arange(0, b, s) for a, b, s in zip(at, box, steps)]
    out = numpy.full([len(i) for i in indices], fill, data.dtype)
    mask = numpy.ones(out.shape, bool)
    for axis, (i, n) in enumerate(zip(indices, data.shape)):
        inside = (i >= 0) & (i < n)
        mask &= inside.reshape([-1 if other == axis else 1 for other in range(data.ndim)])
    clipped = numpy.ix_(*[numpy.clip(i, 0, n - 1) for i, n in zip(indices, data.shape)])
    out[mask] = data[clipped][mask]
    return out


def load(device, stream, kernel, tensor_map, dtype, at, count):
    dtype = numpy.dtype(dtype)
    out = device.allocate(SHARED, stream=stream)
    config = LaunchConfig(grid=1, block=64)
    launch(stream, config, kernel("load_box", dtype.name), tensor_map, out, len(at), position(*at), count)
    back = numpy.zeros(SHARED // dtype.itemsize, dtype)
    out.copy_to(back, stream=stream)
    stream.sync()
    return back


SHAPES = [(70,), (9, 20), (5, 6, 12), (3, 4, 5, 8), (2, 3, 4, 3, 8)]
BOXES = [(32,), (4, 8), (2, 3, 8), (2, 2, 3, 4), (2, 2, 2, 2, 4)]


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("where", ["inside", "before", "behind", "outside"])
def test_boxes_of_all_ranks(device, stream, kernel, rank, where):
    shape, box = SHAPES[rank - 1], BOXES[rank - 1]
    data = numpy.arange(1, numpy.prod(shape) + 1, dtype=numpy.float32).reshape(shape)
    at = {
        "inside": tuple(n // 4 if n > 4 else 0 for n in shape),
        "before": tuple(-(b // 2) for b in box),
        "behind": tuple(n - b // 2 for n, b in zip(shape, box)),
        "outside": tuple(n + 5 for n in shape),
    }[where]
    # The innermost coordinate is a multiple of 16 bytes.
    at = (*at[:-1], at[-1] // 4 * 4)
    view, _ = upload(device, stream, data)
    found = load(device, stream, kernel, view.as_tensor_map(box), data.dtype, at, int(numpy.prod(box)))
    expected = box_of(data, at, box).ravel()
    assert found[: expected.size].tolist() == expected.tolist()
    assert (found[expected.size :] == 77).all()


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int32", "float64"])
def test_types(device, stream, kernel, dtype):
    data = numpy.arange(16 * 64).reshape(16, 64).astype(dtype)
    view, _ = upload(device, stream, data)
    found = load(device, stream, kernel, view.as_tensor_map((8, 32)), dtype, (10, -16), 256)
    assert (found[:256].reshape(8, 32) == box_of(data, (10, -16), (8, 32))).all()


def test_rows_at_a_pitch(device, stream, kernel):
    whole = numpy.arange(8 * 32, dtype=numpy.float32).reshape(8, 32)
    data = whole[:, :10]
    view, _ = upload(device, stream, data)
    found = load(device, stream, kernel, view.as_tensor_map((4, 16)), "float32", (2, 4), 64)
    assert (found[:64].reshape(4, 16) == box_of(data, (2, 4), (4, 16))).all()


def test_element_strides(device, stream, kernel):
    data = numpy.arange(12 * 16, dtype=numpy.float32).reshape(12, 16)
    view, _ = upload(device, stream, data)
    tensor_map = view.as_tensor_map((9, 8), element_strides=(3, 1))
    found = load(device, stream, kernel, tensor_map, "float32", (1, 4), 24)
    assert (found[:24].reshape(3, 8) == data[1:10:3, 4:12]).all()


@pytest.mark.parametrize("swizzle, span", [("SWIZZLE_32B", 32), ("SWIZZLE_64B", 64), ("SWIZZLE_128B", 128)])
def test_swizzles(device, stream, kernel, swizzle, span):
    columns = span // 4
    data = numpy.arange(32 * columns, dtype=numpy.float32).reshape(32, columns)
    view, _ = upload(device, stream, data)
    tensor_map = view.as_tensor_map((32, columns), swizzle=TensorMapSwizzle[swizzle])
    found = load(device, stream, kernel, tensor_map, "float32", (0, 0), data.size)
    # Bits 4 to 6 of the address change by bits 7 to 9; the tile begins at a multiple of 1024.
    address = numpy.arange(data.size) * 4
    place = address ^ (((address >> 7) & (span // 16 - 1)) << 4)
    assert (found[place // 4] == data.ravel()).all()


@pytest.mark.parametrize("swizzle, span", [("SWIZZLE_32B", 32), ("SWIZZLE_64B", 64), ("SWIZZLE_128B", 128)])
def test_rows_narrower_than_their_swizzle(device, stream, kernel, swizzle, span):
    """A row takes as many bytes as the swizzle spans, and the barrier counts those of the elements."""
    data = numpy.arange(16 * 4, dtype=numpy.float32).reshape(16, 4)
    view, _ = upload(device, stream, data)
    tensor_map = view.as_tensor_map((16, 4), swizzle=TensorMapSwizzle[swizzle])
    found = load(device, stream, kernel, tensor_map, "float32", (0, 0), data.size)
    address = numpy.arange(16)[:, None] * span + numpy.arange(4) * 4
    place = address ^ (((address >> 7) & (span // 16 - 1)) << 4)
    assert (found[place // 4] == data).all()


@pytest.mark.parametrize("name, bits", [("float32", 0x7FF77FF7), ("float64", 0x7FF77FF77FF77FF7)])
def test_fill_with_nan(device, stream, kernel, name, bits):
    data = numpy.ones((4, 8), name)
    view, _ = upload(device, stream, data)
    tensor_map = view.as_tensor_map((4, 8), oob_fill=TensorMapOOBFill.NAN_REQUEST_ZERO_FMA)
    found = load(device, stream, kernel, tensor_map, name, (2, 0), 32)[:32].reshape(4, 8)
    assert (found[:2] == 1).all() and numpy.isnan(found[2:]).all()
    assert (found[2:].view(f"u{found.itemsize}") == bits).all()


@pytest.mark.parametrize("name, rounds", [("TFLOAT32", True), ("TFLOAT32_FTZ", True), ("FLOAT32_FTZ", False)])
def test_loads_round_to_tf32(device, stream, kernel, name, rounds):
    """To nearest, ties to even. Denormal numbers are kept."""
    values = [1 + 2**-11, 1 + 2**-10 + 2**-11, 1 + 3 * 2**-12, 1e-40]
    data = numpy.array([values * 4], numpy.float32)
    view, _ = upload(device, stream, data)
    tensor_map = view.as_tensor_map((1, 16), data_type=TensorMapDataType[name])
    found = load(device, stream, kernel, tensor_map, "float32", (0, 0), 16)[:16].view("u4")
    expected = [0x3F800000, 0x3F804000, 0x3F802000, 0x12000] if rounds else data[0, :4].view("u4").tolist()
    assert found.tolist() == expected * 4


@pytest.mark.parametrize("name", ["TFLOAT32", "TFLOAT32_FTZ", "FLOAT32_FTZ"])
def test_stores_of_tf32_numbers_keep_their_bits(device, stream, kernel, name):
    """Numbers that TF32 has, stored and loaded again: among them denormal numbers, infinities and both zeros."""
    bits = numpy.arange(32, dtype="u4") << 13 | 0x3F800000
    bits[:6] = 0x2000, 0x80002000, 0x7F800000, 0xFF800000, 0, 0x80000000
    values, kind = bits.view("float32"), TensorMapDataType[name]
    data = numpy.full((8, 16), 5, numpy.float32)
    found = change(device, stream, kernel, "store_box", data, (4, 8), (4, 8), values, data_type=kind)
    expected = data.copy()
    expected[4:8, 8:16] = values.reshape(4, 8)
    assert (found.view("u4") == expected.view("u4")).all()
    view, _ = upload(device, stream, found)
    tile = load(device, stream, kernel, view.as_tensor_map((4, 8), data_type=kind), "float32", (4, 8), 32)
    assert (tile[:32].view("u4") == bits).all()


@pytest.mark.cpu
@pytest.mark.parametrize("name", ["TFLOAT32", "TFLOAT32_FTZ"])
def test_stores_do_not_round(device, stream, kernel, name):
    bits = numpy.arange(32, dtype="u4") | 0x3F801000
    data = numpy.zeros((4, 8), numpy.float32)
    kind = TensorMapDataType[name]
    found = change(device, stream, kernel, "store_box", data, (4, 8), (0, 0), bits.view("float32"), data_type=kind)
    assert (found.view("u4").ravel() == bits).all()


def test_rows_at_the_same_address(device, stream, kernel):
    """The driver accepts a stride of zero, and strides smaller than a row."""
    data = numpy.arange(64, dtype=numpy.float32)
    _, buffer = upload(device, stream, data)
    for stride in (0, 4):
        view = StridedMemoryView.from_buffer(buffer, (4, 8), (stride, 1), dtype=numpy.float32)
        found = load(device, stream, kernel, view.as_tensor_map((4, 8)), "float32", (0, 0), 32)[:32].reshape(4, 8)
        assert (found == [data[stride * row : stride * row + 8] for row in range(4)]).all()


def test_phases(device, stream, kernel):
    data = numpy.arange(16 * 16, dtype=numpy.float32).reshape(16, 16)
    view, _ = upload(device, stream, data)
    out = device.allocate(2 * 64 * 4, stream=stream)
    arguments = view.as_tensor_map((8, 8)), out, position(0, 0), position(8, 8), 64
    launch(stream, LaunchConfig(grid=1, block=32), kernel("load_twice"), *arguments)
    found = numpy.zeros((2, 8, 8), numpy.float32)
    out.copy_to(found, stream=stream)
    stream.sync()
    assert (found[0] == data[:8, :8]).all() and (found[1] == data[8:, 8:]).all()


def change(device, stream, kernel, name, data, box, at, values, **options):
    """Launches a kernel that stores or reduces `values` into a box; returns the tensor."""
    view, buffer = upload(device, stream, data)
    tensor_map = view.as_tensor_map(box, **options)
    given = device.allocate(values.nbytes, stream=stream)
    given.copy_from(values, stream=stream)
    arguments = tensor_map, given, at[1], at[0], values.size
    launch(stream, LaunchConfig(grid=1, block=32), kernel(name, data.dtype.name), *arguments)
    found = numpy.zeros_like(data)
    buffer.copy_to(found, stream=stream)
    stream.sync()
    return found


@pytest.mark.parametrize("at", [(0, 0), (4, 8), (6, 12), (7, 12), (8, 0), (20, 20)])
def test_stores(device, stream, kernel, at):
    data = numpy.arange(8 * 16, dtype=numpy.float32).reshape(8, 16)
    values = 1000 + numpy.arange(32, dtype=numpy.float32)
    found = change(device, stream, kernel, "store_box", data, (4, 8), at, values)
    expected = numpy.pad(data, 32)
    expected[32 + at[0] : 36 + at[0], 32 + at[1] : 40 + at[1]] = values.reshape(4, 8)
    assert (found == expected[32:40, 32:48]).all()


@pytest.mark.parametrize(
    "name, dtype, combine",
    [
        ("add_box", "float32", numpy.add),
        ("add_box", "uint32", numpy.add),
        ("min_box", "uint32", numpy.minimum),
        ("max_box", "uint32", numpy.maximum),
        ("or_box", "uint32", numpy.bitwise_or),
        ("inc_box", "uint32", lambda old, limit: numpy.where(old >= limit, 0, old + 1)),
    ],
)
def test_reductions(device, stream, kernel, name, dtype, combine):
    data = (numpy.arange(8 * 16) * 7 % 50).astype(dtype).reshape(8, 16)
    values = (numpy.arange(32) * 3 % 40).astype(dtype)
    found = change(device, stream, kernel, name, data, (4, 8), (6, 4), values)
    expected = data.copy()
    expected[6:8, 4:12] = combine(data[6:8, 4:12], values.reshape(4, 8)[:2])
    assert (found == expected).all()


def test_swizzled_stores_undo_swizzled_loads(device, stream, kernel):
    data = numpy.arange(16 * 32, dtype=numpy.float32).reshape(16, 32)
    view, _ = upload(device, stream, data)
    swizzle = TensorMapSwizzle.SWIZZLE_128B
    tile = load(device, stream, kernel, view.as_tensor_map((16, 32), swizzle=swizzle), "float32", (0, 0), 512)[:512]
    assert (tile != data.ravel()).any()
    found = change(device, stream, kernel, "store_box", numpy.zeros_like(data), (16, 32), (0, 0), tile, swizzle=swizzle)
    assert (found == data).all()


def test_linear_copies(device, stream, kernel):
    data = numpy.arange(256, dtype=numpy.uint32)
    source, out, total = (device.allocate(data.nbytes, stream=stream) for _ in range(3))
    source.copy_from(data, stream=stream)
    total.copy_from(data, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), kernel("linear", "uint32"), out, total, source, 256)
    found = numpy.zeros((2, 256), numpy.uint32)
    out.copy_to(found[0], stream=stream)
    total.copy_to(found[1], stream=stream)
    stream.sync()
    assert (found[0] == data).all() and (found[1] == 2 * data).all()


def test_transactions(device, stream, kernel):
    out = device.allocate(20, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), kernel("transactions", "uint32"), out)
    found = numpy.zeros(5, numpy.uint32)
    out.copy_to(found, stream=stream)
    stream.sync()
    assert found.tolist() == [0, 0, 0, 0, 1]


def test_replaced_address(device, stream, kernel):
    first = numpy.arange(64, dtype=numpy.float32).reshape(8, 8)
    view, _ = upload(device, stream, first)
    other, _ = upload(device, stream, first + 500)
    tensor_map = view.as_tensor_map((4, 8))
    tensor_map.replace_address(other)
    found = load(device, stream, kernel, tensor_map, "float32", (2, 0), 32)
    assert (found[:32].reshape(4, 8) == first[2:6] + 500).all()


def test_memory_outlives_the_buffer(device, stream, kernel):
    data = numpy.arange(64, dtype=numpy.float32).reshape(8, 8)
    view, buffer = upload(device, stream, data)
    tensor_map = view.as_tensor_map((4, 8))
    del view
    buffer.close()
    found = load(device, stream, kernel, tensor_map, "float32", (0, 0), 32)
    assert (found[:32].reshape(4, 8) == data[:4]).all()


def test_size_of_the_argument_is_checked(device, stream, kernel):
    data = numpy.zeros((8, 8), numpy.float32)
    view, _ = upload(device, stream, data)
    out = device.allocate(64, stream=stream)
    with pytest.raises(TypeError, match="argument 0"):
        launch(
            stream, LaunchConfig(grid=1, block=1), kernel("load_box"), out, view.as_tensor_map((4, 8)), 2, position(), 1
        )


FAULT = """
    import sys
    import numpy
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    from cuda.core.utils import StridedMemoryView
    from helpers.device import KERNELS

    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = ProgramOptions(arch=f"sm_{device.arch}", define_macro=["ELEMENT=float"])
    code = Program((KERNELS / "tensor_maps.cu").read_text(), "c++", options).compile("cubin")
    kernel = code.get_kernel("load_box")
    buffer = device.allocate(1024, stream=stream)
    out = device.allocate(16384, stream=stream)
    map = StridedMemoryView.from_buffer(buffer, (16, 16), dtype=numpy.dtype("float32")).as_tensor_map((4, 8))
    case = sys.argv[1]
    rank, at = 2, numpy.zeros(5, numpy.int32)
    at[0] = int(case) if case.lstrip("-").isdigit() else 0
    if case == "bytes":
        map = numpy.zeros(1, numpy.dtype((numpy.void, 128)))[0]
    elif case == "rank":
        rank = 3
    position = numpy.frombuffer(at.tobytes(), numpy.dtype((numpy.void, 20)))[0]
    try:
        if len(sys.argv) > 2:
            x = numpy.int32(at[0])
            launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("store_box"), map, out, x, numpy.int32(0), 32)
        else:
            launch(stream, LaunchConfig(grid=1, block=32), kernel, map, out, rank, position, 32)
        stream.sync()
    except Exception as error:
        print(type(error).__name__, str(error).split(":")[0])
"""


@pytest.mark.parametrize(
    "case, text",
    [("bytes", "are not a tensor map"), ("rank", "the tensor map has 2 dimensions, the instruction 3")],
)
def test_faults_are_reported(case, text):
    if not on_cpu_device():
        pytest.skip("about the CPU device's reports")
    done = python(FAULT, case)
    assert done.stdout.split() == ["CUDAError", "CUDA_ERROR_ILLEGAL_INSTRUCTION"], done.stderr
    assert text in done.stderr


@pytest.mark.parametrize("direction", [[], ["store"]])
@pytest.mark.parametrize("coordinate", [1, 2, 3, 5])
def test_innermost_coordinate_is_a_multiple_of_16_bytes(coordinate, direction):
    done = python(FAULT, str(coordinate), *direction)
    assert done.stdout.split() == ["CUDAError", "CUDA_ERROR_ILLEGAL_INSTRUCTION"], done.stderr
    if on_cpu_device():
        assert f"the innermost coordinate {coordinate} is {coordinate * 4} bytes" in done.stderr
    # Multiples of 4 elements are valid.
    assert python(FAULT, "4", *direction).stdout == ""


def test_stores_to_negative_coordinates_are_illegal():
    done = python(FAULT, "-4", "store")
    assert done.stdout.split() == ["CUDAError", "CUDA_ERROR_ILLEGAL_INSTRUCTION"], done.stderr
    if on_cpu_device():
        assert "the coordinate -4 is negative; only loads allow that" in done.stderr
    assert python(FAULT, "-4").stdout == ""
