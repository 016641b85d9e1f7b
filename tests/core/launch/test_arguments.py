"""Kernel arguments of cuda.core: every kind of value, byte for byte as the kernel receives it, and invalid ones."""

import contextlib
import ctypes
import enum
import gc
import struct
import sys

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import DeviceMemoryResource, DeviceMemoryResourceOptions, LaunchConfig, launch
from cuda.core._kernel_arg_handler import ParamHolder
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.device import check, label
from helpers.echo import MANY
from helpers.programs import output

pytestmark = pytest.mark.strict_abi


class Color(enum.IntEnum):
    RED = 3


class Whole(int):
    pass


class Real(float):
    pass


class Imaginary(complex):
    pass


class Single(np.float32):
    pass


class CInt(ctypes.c_int):
    pass


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]


class Swapped(ctypes.BigEndianStructure):
    _fields_ = [("a", ctypes.c_int)]


class Either(ctypes.Union):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]


class Large(ctypes.Structure):
    _fields_ = [("values", ctypes.c_ubyte * 2000)]


class Array:
    """An object with the CUDA array interface."""

    def __init__(self, address, **more):
        self.__cuda_array_interface__ = {
            "shape": (4,),
            "typestr": "<f4",
            "data": (address, False),
            "version": 3,
            **more,
        }


def numpy_struct():
    array = np.zeros(1, dtype=np.dtype([("a", "i4"), ("b", "f8")], align=True))
    array["a"], array["b"] = 7, 2.5
    return array[0]


# (value, bytes that the kernel receives)
VALUES = [
    (True, b"\1"),
    (False, b"\0"),
    (5, struct.pack("<q", 5)),
    (-5, struct.pack("<q", -5)),
    (2**64 - 1, b"\xff" * 8),
    (-(2**63), struct.pack("<q", -(2**63))),
    (5, b"\5"),
    (200, b"\xc8"),
    (-128, b"\x80"),
    (40000, struct.pack("<H", 40000)),
    (-1, b"\xff\xff"),
    (2**32 - 1, b"\xff" * 4),
    (-(2**31), struct.pack("<i", -(2**31))),
    (True, struct.pack("<i", 1)),
    (True, struct.pack("<q", 1)),
    (Whole(9), struct.pack("<q", 9)),
    (Color.RED, struct.pack("<i", 3)),
    (driver.CUresult.CUDA_ERROR_UNKNOWN, struct.pack("<i", 999)),
    (1.5, struct.pack("<d", 1.5)),
    (-1.0, struct.pack("<d", -1.0)),
    (float("nan"), struct.pack("<d", float("nan"))),
    (Real(2.5), struct.pack("<d", 2.5)),
    (1 - 2j, struct.pack("<dd", 1, -2)),
    (-1 + 0j, struct.pack("<dd", -1, 0)),
    (Imaginary(2j), struct.pack("<dd", 0, 2)),
    (Single(1.5), struct.pack("<f", 1.5)),
    (CInt(-7), struct.pack("<i", -7)),
    *[(kind(1), np.array(1, kind).tobytes()) for kind in (np.int8, np.int16, np.int32, np.int64, np.longlong)],
    *[(kind(200), np.array(200, kind).tobytes()) for kind in (np.uint8, np.uint16, np.uint32, np.uint64, np.uintp)],
    *[(kind(-1.5), np.array(-1.5, kind).tobytes()) for kind in (np.float16, np.float32, np.float64)],
    *[(kind(1 - 2j), np.array(1 - 2j, kind).tobytes()) for kind in (np.complex64, np.complex128)],
    (np.bool_(True), b"\1"),
    (np.datetime64("2020-01-02"), np.datetime64("2020-01-02").tobytes()),
    (np.timedelta64(5, "s"), struct.pack("<q", 5)),
    (np.void(b"abcd"), b"abcd"),
    (numpy_struct(), numpy_struct().tobytes()),
    (np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")])[0], struct.pack("<if", 1, 2)),
    *[(kind(-2), bytes(kind(-2))) for kind in (ctypes.c_byte, ctypes.c_short, ctypes.c_int, ctypes.c_long)],
    *[(kind(-2), bytes(kind(-2))) for kind in (ctypes.c_ubyte, ctypes.c_ushort, ctypes.c_uint, ctypes.c_size_t)],
    *[(kind(1.5), bytes(kind(1.5))) for kind in (ctypes.c_float, ctypes.c_double)],
    (ctypes.c_bool(True), b"\1"),
    (ctypes.c_char(b"x"), b"x"),
    (ctypes.c_wchar("x"), struct.pack("<i", ord("x"))),
    (ctypes.c_void_p(0x1234), struct.pack("<q", 0x1234)),
    (ctypes.c_void_p(None), b"\0" * 8),
    (Pair(3, 4.5), bytes(Pair(3, 4.5))),
    (Either(3), bytes(Either(3))),
    ((ctypes.c_int * 3)(1, 2, 3), struct.pack("<iii", 1, 2, 3)),
    (Large((ctypes.c_ubyte * 2000)(*[i % 256 for i in range(2000)])), bytes(i % 256 for i in range(2000))),
    (driver.CUdeviceptr(0x4567), struct.pack("<q", 0x4567)),
    (driver.CUtexObject(77), struct.pack("<q", 77)),
    (driver.CUsurfObject(78), struct.pack("<q", 78)),
    (driver.CUdevice(3), struct.pack("<i", 3)),
    (Array(0x1234), struct.pack("<q", 0x1234)),
    (Array(None, shape=(0,)), b"\0" * 8),
]


@pytest.mark.parametrize("value, expected", VALUES, ids=lambda v: label(v) if not isinstance(v, bytes) else "")
def test_value_arrives_byte_for_byte(echo, value, expected):
    assert echo.of(len(expected), value) == expected


def test_struct_of_the_bindings_is_passed_by_value(echo):
    uuid = check(driver.cuDeviceGetUuid(check(driver.cuDeviceGet(0))))
    assert echo.of(16, uuid) == uuid.bytes
    assert echo.of(128, driver.CUtensorMap()) == b"\0" * 128


def test_ctypes_pointer_passes_its_target_address(echo):
    target = ctypes.c_int(3)
    assert echo.of(8, ctypes.pointer(target)) == struct.pack("<Q", ctypes.addressof(target))


def test_buffer_passes_its_address(echo):
    with echo.device.allocate(16, stream=echo.stream) as buffer:
        assert echo.of(8, buffer) == struct.pack("<Q", int(buffer.handle))


def test_mixed_parameters_are_aligned(echo):
    echo.clear()
    values = (-3, 2.5, -300, numpy_struct(), np.float32(0.5), -(2**40), True, 2**32 - 1, echo.buffer, 65535, 255)
    launch(echo.stream, echo.one, echo.kernel("mixed"), echo.buffer, *values)
    expected = struct.pack(
        "<bdhidfq?IQHB", -3, 2.5, -300, 7, 2.5, 0.5, -(2**40), True, 2**32 - 1, int(echo.buffer.handle), 65535, 255
    )
    assert echo.read(len(expected)) == expected


def test_more_arguments_than_fit_on_the_stack(echo):
    formats = "BHIQ"
    values = [(1 << (8 * struct.calcsize(formats[i % 4]))) - 1 - i for i in range(MANY)]
    expected = struct.pack("<" + "".join(formats[i % 4] for i in range(MANY)), *values)
    kinds = (ctypes.c_ubyte, np.uint16, int, np.uint64)
    for make in (lambda i, v: v, lambda i, v: kinds[i % 4](v)):
        echo.clear()
        launch(echo.stream, echo.one, echo.kernel("many"), echo.buffer, *[make(i, v) for i, v in enumerate(values)])
        assert echo.read(len(expected)) == expected


def test_values_are_copied_at_launch(echo):
    value, pair = ctypes.c_int(1), Pair(1, 2)
    echo.clear()
    launch(echo.stream, echo.one, echo.echoes[4], echo.buffer, value)
    value.value = 2
    assert echo.read(4) == struct.pack("<i", 1)
    launch(echo.stream, echo.one, echo.echoes[16], echo.buffer, pair)
    pair.b = 3
    assert echo.read(16) == bytes(Pair(1, 2))


# ---- invalid arguments

UNSUPPORTED = [
    None,
    "text",
    b"bytes8by",
    bytearray(8),
    memoryview(b"12345678"),
    (1,),
    [1],
    {},
    object(),
    print,
    int,
    np.float32,
    Array,
    np.str_("abcdefgh"),
    np.bytes_(b"abcdefgh"),
    np.zeros(4),
    np.array(5.0),
    np.dtype("i8"),
    np.longdouble(1),
    np.clongdouble(1),
    np.array([(None,)], dtype=[("a", object)])[0],
    ctypes.c_longdouble(1),
    ctypes.py_object(1),
    ctypes.byref(ctypes.c_int(1)),
    ctypes.CFUNCTYPE(None)(print),
    ctypes.c_int.__ctype_be__(1),
    Swapped(1),
]


@pytest.mark.parametrize("value", UNSUPPORTED, ids=lambda v: type(v).__name__)
def test_unsupported_argument_is_refused_with_its_position(echo, value):
    with pytest.raises(TypeError, match=r"launch\(\): kernel argument 1 \(counted from 0\)") as raised:
        launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, value)
    name = "None" if value is None else type(value).__qualname__
    assert name in str(raised.value)
    with pytest.raises(TypeError, match=r"ParamHolder\(\): kernel argument 2 \(counted from 0\)"):
        ParamHolder((1, 2, value))


def test_objects_of_cuda_core_that_are_not_arguments_raise(echo):
    for value in (echo.stream, echo.device, echo.one, echo.code, echo.echoes[8], echo.stream.record()):
        with pytest.raises(TypeError, match=type(value).__name__):
            launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, value)


def test_foreign_host_array_is_refused_with_advice(echo):
    with pytest.raises(TypeError, match="ndarray.*host.*copy"):
        launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, np.zeros(3, np.float32))


def test_closed_buffer_raises(echo):
    buffer = echo.device.allocate(16, stream=echo.stream)
    buffer.close()
    with pytest.raises(RuntimeError, match="kernel argument 1.*closed"):
        launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, buffer)


@pytest.mark.parametrize(
    "size, value",
    [
        (4, 1.5),
        (2, 1.5),
        (8, 1j),
        (4, np.int64(1)),
        (8, np.int32(1)),
        (8, np.float32(1)),
        (1, np.int16(1)),
        (4, np.bool_(True)),
        (8, ctypes.c_int(1)),
        (4, ctypes.c_void_p(1)),
        (4, ctypes.c_double(1)),
        (8, Pair(1, 2)),
        (8, numpy_struct()),
        (24, (ctypes.c_int * 3)()),
        (4, Array(0x1234)),
        (4, driver.CUdeviceptr(1)),
        (8, driver.CUdevice(0)),
        (16, 1.5),
    ],
    ids=label,
)
def test_value_of_another_size_is_refused(echo, size, value):
    pattern = rf"kernel argument 1 \(counted from 0\).*{type(value).__name__}.*parameter 1 of kernel.* {size} byte"
    with pytest.raises(TypeError, match=pattern):
        launch(echo.stream, echo.one, echo.echoes[size], echo.buffer, value)


def test_buffer_for_a_four_byte_parameter_is_refused(echo):
    with pytest.raises(TypeError, match="Buffer and has 8 bytes.*4 bytes"):
        launch(echo.stream, echo.one, echo.echoes[4], echo.buffer, echo.buffer)


@pytest.mark.parametrize("size", [3, 12, 16, 24])
def test_int_for_a_struct_parameter_is_refused(echo, size):
    with pytest.raises(TypeError, match=f"int 5.*{size} bytes"):
        launch(echo.stream, echo.one, echo.echoes[size], echo.buffer, 5)


@pytest.mark.parametrize(
    "size, value",
    [
        (1, 256),
        (1, -129),
        (2, 65536),
        (2, -32769),
        (4, 2**32),
        (4, -(2**31) - 1),
        (4, 2**64),
        (8, 2**64),
        (8, -(2**63) - 1),
        (8, 10**5000),
        (4, Whole(2**40)),
    ],
    ids=lambda v: label(v) if not isinstance(v, int) or v < 10**30 else "huge",
)
def test_int_out_of_range_is_refused(echo, size, value):
    with pytest.raises(OverflowError, match=rf"kernel argument 1 \(counted from 0\).*fit.*{size} byte"):
        launch(echo.stream, echo.one, echo.echoes[size], echo.buffer, value)


def test_number_of_arguments_is_checked(echo):
    kernel = echo.echoes[4]
    for arguments in ((), (echo.buffer,), (echo.buffer, 1, 2), (echo.buffer,) + (1,) * 50):
        with pytest.raises(TypeError, match=f"takes 2 arguments, of 8 and 4 bytes; {len(arguments)} w"):
            launch(echo.stream, echo.one, kernel, *arguments)
    with pytest.raises(TypeError, match="'nothing' takes no arguments; 1 was given"):
        launch(echo.stream, echo.one, echo.kernel("nothing"), 1)


def test_exception_of_an_argument_propagates(echo):
    class Angry:
        @property
        def __cuda_array_interface__(self):
            raise ZeroDivisionError("angry")

    class AngryToo:
        def __dlpack_device__(self):
            raise ZeroDivisionError("angry too")

    for value in (Angry(), AngryToo()):
        with pytest.raises(ZeroDivisionError):
            launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, value)


# ---- foreign arrays


@pytest.mark.parametrize(
    "more, problem",
    [
        ({"data": None}, "data"),
        ({"data": 5}, "data"),
        ({"data": ()}, "data"),
        ({"data": ("x", False)}, "address"),
        ({"data": (-1, False)}, "address"),
        ({"data": (2**64, False)}, "address"),
        ({"mask": 1}, "mask"),
        ({"stream": 0}, "ambiguous"),
        ({"stream": "x"}, "stream"),
        ({"stream": -5}, "stream"),
    ],
)
def test_invalid_array_interface_is_refused(echo, more, problem):
    with pytest.raises(ValueError, match=problem):
        launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, Array(0x1234, **more))


def test_array_interface_that_is_not_a_dict_is_refused(echo):
    class Odd:
        __cuda_array_interface__ = 5

    with pytest.raises(ValueError, match="dict"):
        launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, Odd())


def test_launch_waits_for_the_stream_of_an_array(echo):
    """The producer's stream fills the array slowly; the launch in another stream reads the result."""
    other = echo.device.create_stream()
    n = 1 << 16
    with echo.device.allocate(4 * n, stream=other) as memory:
        fill, config = echo.kernel("fill"), LaunchConfig(grid=n // 256, block=256)
        for value in (1, 2, 3):
            for _ in range(20):
                launch(other, config, fill, memory, 99, n)
            launch(other, config, fill, memory, value, n)
            array = Array(int(memory.handle), stream=int(other.handle))
            launch(echo.stream, config, echo.kernel("fill"), array, value + 10, n)
            found = (ctypes.c_uint * n)()
            echo.stream.sync()
            check(driver.cuMemcpyDtoH(ctypes.addressof(found), int(memory.handle), 4 * n))
            assert set(found) == {value + 10}
        for number in (1, 2, int(echo.stream.handle)):
            launch(echo.stream, config, fill, Array(int(memory.handle), stream=number), 5, n)
        echo.stream.sync()


class Tensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int),
        ("device_id", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Exporter:
    """An object with DLPack's methods; records the requested streams."""

    def __init__(self, address, device=2, offset=0, name=b"dltensor"):
        self.tensor = Tensor(data=address, device_type=device, byte_offset=offset)
        self.device, self.name, self.streams = device, name, []

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, stream="none"):
        self.streams.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), self.name, None)


def test_dlpack_tensor_passes_its_address(echo):
    exporter = Exporter(0x5000, offset=24)
    assert echo.of(8, exporter) == struct.pack("<Q", 0x5018)
    assert exporter.streams == [int(echo.stream.handle)]
    managed, pinned = Exporter(0x6000, 13), Exporter(0x7000, 3)
    assert echo.of(8, managed) == struct.pack("<Q", 0x6000)
    assert echo.of(8, pinned) == struct.pack("<Q", 0x7000)
    assert pinned.streams == ["none"]
    default = Exporter(0x8000)
    echo.clear()
    launch(echo.device.default_stream, echo.one, echo.echoes[8], echo.buffer, default)
    assert default.streams in ([1], [2])
    check(driver.cuCtxSynchronize())
    holder = Exporter(0x9000)
    ParamHolder((holder,))
    assert holder.streams == [-1]


def test_unusable_dlpack_tensor_is_refused(echo):
    def go(value):
        launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, value)

    with pytest.raises(TypeError, match="host"):
        go(Exporter(0x5000, device=1))
    with pytest.raises(TypeError, match="device type 10"):
        go(Exporter(0x5000, device=10))
    with pytest.raises(ValueError, match="dltensor"):
        go(Exporter(0x5000, name=b"used_dltensor"))
    odd = Exporter(0x5000)
    odd.__class__ = type("Odd", (Exporter,), {"__dlpack_device__": lambda self: 5})
    with pytest.raises((TypeError, ValueError)):
        go(odd)
    odd.__class__ = type("Odd", (Exporter,), {"__dlpack__": None})
    with pytest.raises(TypeError):
        go(odd)
    odd.__class__ = type("Odd", (Exporter,), {"__dlpack__": lambda self, stream: 5})
    with pytest.raises(ValueError, match="capsule"):
        go(odd)


@pytest.mark.gpu
def test_tensors_of_torch_are_passed_as_their_address():
    """In a process of its own: PyTorch cannot use a device whose primary context another test has reset."""
    pytest.importorskip("torch", exc_type=ImportError)
    code = """
    import struct
    import torch
    from helpers.echo import Echo
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch sees no device")
    tensor = torch.arange(4, device="cuda", dtype=torch.float32)
    print(Echo().of(8, tensor) == struct.pack("<Q", tensor.data_ptr()))
    """
    assert output(code) == "True\n"


# ---- ParamHolder


def raw(value, size):
    """The bytes that a ParamHolder points at."""
    holder = ParamHolder((value,))
    first = ctypes.cast(holder.ptr, ctypes.POINTER(ctypes.c_void_p))[0]
    return ctypes.string_at(first, size)


def test_param_holder_keeps_its_arguments_alive(echo):
    assert ParamHolder(()).ptr == 0
    value = np.float32(1.5)
    count = sys.getrefcount(value)
    holder = ParamHolder([value, 1, 2.0, Pair(1, 2)])
    assert sys.getrefcount(value) == count + 1
    gc.collect()
    pointers = ctypes.cast(holder.ptr, ctypes.POINTER(ctypes.c_void_p))
    assert ctypes.string_at(pointers[0], 4) == struct.pack("<f", 1.5)
    assert ctypes.string_at(pointers[1], 8) == struct.pack("<q", 1)
    assert ctypes.string_at(pointers[2], 8) == struct.pack("<d", 2.0)
    assert ctypes.string_at(pointers[3], 16) == bytes(Pair(1, 2))
    del holder
    assert sys.getrefcount(value) == count


def test_param_holder_launches_through_the_bindings(echo):
    echo.clear()
    holder = ParamHolder((echo.buffer, np.float64(2.5)))
    function = check(driver.cuKernelGetFunction(echo.echoes[8].handle))
    check(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, int(echo.stream.handle), holder.ptr, 0))
    assert echo.read(8) == struct.pack("<d", 2.5)


def own_pool(echo):
    """A pool that is not shared: with the option the resource creates its own."""
    return DeviceMemoryResource(echo.device, DeviceMemoryResourceOptions(max_size=128 << 20))


def test_param_holder_pins_the_memory_of_its_buffers(echo):
    """A closed buffer's memory is not reused while a holder has its address."""
    resource = own_pool(echo)
    buffers = [resource.allocate(1 << 20, stream=echo.stream) for _ in range(40)]
    addresses = [int(buffer.handle) for buffer in buffers]
    holder = ParamHolder([*buffers, buffers[0]])
    again = ParamHolder([buffers[0]])
    part = ParamHolder([buffers[1][4:]])
    for buffer in buffers:
        buffer.close()
        buffer.close()
        with pytest.raises(RuntimeError, match="kernel argument 1 .*closed"):
            ParamHolder([1, buffer])
    echo.stream.sync()
    assert resource.attributes.used_mem_current == 40 << 20
    others = [resource.allocate(1 << 20, stream=echo.stream) for _ in range(8)]
    assert not {int(other.handle) for other in others} & set(addresses)
    pointers = ctypes.cast(holder.ptr, ctypes.POINTER(ctypes.c_void_p))
    found = [ctypes.string_at(pointers[index], 8) for index in range(41)]
    assert found == [struct.pack("<Q", address) for address in [*addresses, addresses[0]]]
    del holder
    echo.stream.sync()
    assert resource.attributes.used_mem_current == (2 + 8) << 20
    del again, part
    echo.stream.sync()
    assert resource.attributes.used_mem_current == 8 << 20


def test_param_holder_unpins_buffers_after_an_invalid_argument(echo):
    resource = own_pool(echo)
    buffer = resource.allocate(4096, stream=echo.stream)
    count = sys.getrefcount(buffer)
    for wrong in (None, object(), 2**64):
        with pytest.raises((TypeError, OverflowError), match="kernel argument 2"):
            ParamHolder((buffer, buffer, wrong))
    assert sys.getrefcount(buffer) == count
    buffer.close()
    echo.stream.sync()
    assert resource.attributes.used_mem_current == 0


def test_param_holder_launches_with_a_buffer_closed_since(echo):
    """The kernel writes to memory that still belongs to the buffer."""
    resource = own_pool(echo)
    buffer = resource.allocate(8, stream=echo.stream)
    whole = buffer[:]
    holder = ParamHolder((buffer, np.float64(2.5)))
    buffer.close()
    function = check(driver.cuKernelGetFunction(echo.echoes[8].handle))
    check(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, int(echo.stream.handle), holder.ptr, 0))
    read = bytearray(8)
    echo.stream.sync()
    whole.copy_to(read, stream=echo.stream)
    echo.stream.sync()
    assert read == struct.pack("<d", 2.5)
    whole.close()
    assert resource.attributes.used_mem_current != 0
    del holder
    echo.stream.sync()
    assert resource.attributes.used_mem_current == 0


def test_param_holder_in_a_cycle_is_collected(echo):
    resource = own_pool(echo)
    buffer = resource.allocate(4096, stream=echo.stream)
    around = type("Around", (ParamHolder,), {})([buffer])
    around.me = around
    buffer.close()
    del around, buffer
    gc.collect()
    echo.stream.sync()
    assert resource.attributes.used_mem_current == 0


def test_param_holder_takes_sequences_only():
    for wrong in (5, None, {1}, iter([1]), (x for x in (1,))):
        with pytest.raises(TypeError, match="sequence"):
            ParamHolder(wrong)
    with pytest.raises(TypeError):
        ParamHolder()
    assert ParamHolder(kernel_args=[1] * 100).ptr != 0


SCALARS = st.one_of(
    st.booleans().map(lambda v: (v, bytes([v]))),
    st.integers(-(2**63), 2**64 - 1).map(lambda v: (v, (v % 2**64).to_bytes(8, "little"))),
    st.floats().map(lambda v: (v, struct.pack("<d", v))),
    st.complex_numbers().map(lambda v: (v, struct.pack("<dd", v.real, v.imag))),
    *[
        st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize).map(
            lambda raw, dtype=dtype: (np.frombuffer(raw, dtype)[0], raw)
        )
        for dtype in map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f8", "c16", "M8[s]", "V5", "V40"))
    ],
    *[
        st.binary(min_size=ctypes.sizeof(kind), max_size=ctypes.sizeof(kind)).map(
            lambda raw, kind=kind: (kind.from_buffer_copy(raw), raw)
        )
        for kind in (ctypes.c_byte, ctypes.c_ushort, ctypes.c_int, ctypes.c_ulong, ctypes.c_double, Pair, Either, Large)
    ],
    st.integers(0, 2**64 - 1).map(lambda v: (driver.CUdeviceptr(v), v.to_bytes(8, "little"))),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(SCALARS, max_size=70))
def test_random_scalars_are_packed_unchanged(pairs):
    holder = ParamHolder([value for value, _ in pairs])
    assert (holder.ptr == 0) == (not pairs)
    pointers = ctypes.cast(holder.ptr, ctypes.POINTER(ctypes.c_void_p))
    for index, (value, expected) in enumerate(pairs):
        found = ctypes.string_at(pointers[index], len(expected))
        if isinstance(value, (float, complex)) and value != value:
            continue  # The payload of a NaN may be lost.
        assert found == expected, (index, value)


@settings(max_examples=60, deadline=None)
@given(value=st.integers(-(2**66), 2**66), size=st.sampled_from((1, 2, 4, 8)))
def test_random_ints_arrive_or_are_refused(echo, value, size):
    if -(2 ** (8 * size - 1)) <= value < 2 ** (8 * size):
        assert echo.of(size, value) == (value % 2 ** (8 * size)).to_bytes(size, "little")
    else:
        with pytest.raises(OverflowError, match="kernel argument 1"):
            launch(echo.stream, echo.one, echo.echoes[size], echo.buffer, value)


ANYTHING = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.tuples(st.integers()),
    st.builds(object),
    st.builds(lambda v: Array(0x10, data=v), st.one_of(st.none(), st.integers(), st.tuples(st.integers()), st.text())),
    st.builds(lambda v: Array(0x10, stream=v), st.one_of(st.text(), st.integers(max_value=0), st.floats())),
    st.builds(lambda a, d: Exporter(a, d), st.integers(0, 2**40), st.integers(-(2**31), 2**31 - 1)),
    st.sampled_from([np.zeros(1), np.float32(1), ctypes.c_int(1), int, Array, np.dtype("f4"), Pair]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(ANYTHING, max_size=4))
def test_random_objects_never_crash(echo, values):
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, *values)
    echo.stream.sync()
    # The context is usable.
    assert echo.of(8, 3) == (3).to_bytes(8, "little")
