"""`launch` refuses an integer for a float and the reverse, where the kernel's PTX is at hand."""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, ObjectCode, Program, launch
from cuda.core.graph import GraphDefinition

from helpers.device import on_cpu_device

SOURCE = """
struct One { float x; };
struct Half { unsigned short bits; };
enum Colour { RED };
extern "C" __global__ void kinds(float f, double d, int i, long long l, bool b, short s, Half h, One one,
                                 float2 pair, Colour c, const void *p, unsigned char u) { }
extern "C" __global__ void single(float x) { }
extern "C" __global__ void twice(double x) { }
extern "C" __global__ void word(unsigned x) { }
extern "C" __global__ void wide(unsigned long long x) { }
extern "C" __global__ void address(float *x) { }
template <typename T> __global__ void made(T x) { }
"""
CONFIG = LaunchConfig(grid=1, block=1)


@pytest.fixture(scope="module")
def stream():
    device = Device(0)
    device.set_current()
    return device.create_stream()


def compiled(kind):
    Device(0).set_current()
    return Program(SOURCE, "c++").compile(kind, name_expressions=["made<float>"])


@pytest.fixture(scope="module")
def code():
    return compiled("ptx")


INTEGERS = [np.int32(1), np.uint32(1), ctypes.c_int(1), 1, True]
WIDE_INTEGERS = [np.int64(1), np.uint64(1), ctypes.c_longlong(1), ctypes.c_void_p(1), 1, driver.CUdeviceptr(8)]


@pytest.mark.parametrize("value", INTEGERS, ids=repr)
def test_integers_for_a_float_are_refused(code, stream, value):
    with pytest.raises(TypeError, match=r"argument 0 .*parameter 0 of kernel 'single' of 4 bytes.*numpy.float32\(x\)"):
        launch(stream, CONFIG, code.get_kernel("single"), value)


@pytest.mark.parametrize("value", WIDE_INTEGERS, ids=repr)
def test_integers_for_a_double_are_refused(code, stream, value):
    with pytest.raises(TypeError, match=r"kernel 'twice' of 8 bytes is a double: pass float\(x\)"):
        launch(stream, CONFIG, code.get_kernel("twice"), value)


@pytest.mark.parametrize("value", [np.float32(1), ctypes.c_float(1)], ids=repr)
def test_floats_for_an_integer_are_refused(code, stream, value):
    with pytest.raises(TypeError, match=r"kernel 'word' of 4 bytes is a 32-bit integer: pass int\(x\)"):
        launch(stream, CONFIG, code.get_kernel("word"), value)


@pytest.mark.parametrize("value", [1.0, np.float64(1), ctypes.c_double(1)], ids=repr)
@pytest.mark.parametrize("name", ["wide", "address"])
def test_doubles_for_an_integer_or_address_are_refused(code, stream, value, name):
    with pytest.raises(TypeError, match=f"kernel '{name}' of 8 bytes is a 64-bit integer or an address"):
        launch(stream, CONFIG, code.get_kernel(name), value)


def test_buffers_and_arrays_for_a_double_are_refused(code, stream):
    class Array:
        __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (0, False), "version": 3}

    buffer = DeviceMemoryResource(0).allocate(8, stream=stream)
    for value in (buffer, Array()):
        with pytest.raises(TypeError, match="kernel 'twice' of 8 bytes is a double"):
            launch(stream, CONFIG, code.get_kernel("twice"), value)
        launch(stream, CONFIG, code.get_kernel("address"), value)
    buffer.close(stream)


def test_the_refused_argument_is_named_among_many(code, stream):
    kernel = code.get_kernel("kinds")
    right = [
        np.float32(1),
        1.0,
        np.int32(1),
        1,
        np.bool_(True),
        np.int16(1),
        np.float16(1),
        np.float32(1),
        np.complex64(1),
        0,
        0,
        1,
    ]
    launch(stream, CONFIG, kernel, *right)
    for index, wrong in ((0, 1), (1, np.int64(1)), (2, np.float32(1)), (3, 1.0), (9, np.float32(0)), (10, 0.0)):
        given = [*right[:index], wrong, *right[index + 1 :]]
        with pytest.raises(TypeError, match=f"argument {index} .*parameter {index} of kernel 'kinds'"):
            launch(stream, CONFIG, kernel, *given)
    # What the types do not distinguish: 16-bit integers and halves, structures, signs.
    for index, value in ((5, np.float16(1)), (6, np.uint16(1)), (7, 1), (8, 1.0), (2, np.uint32(1)), (4, np.int8(1))):
        launch(stream, CONFIG, kernel, *right[:index], value, *right[index + 1 :])
    stream.sync()


def test_subclasses_count_as_their_bases(code, stream):
    class Count(int):
        pass

    class Length(float):
        pass

    class Single(np.float32):
        pass

    launch(stream, CONFIG, code.get_kernel("twice"), Length(1))
    launch(stream, CONFIG, code.get_kernel("single"), Single(1))
    for name, value in (("single", Count(1)), ("twice", Count(1)), ("word", Single(1)), ("wide", Length(1))):
        with pytest.raises(TypeError, match=f"kernel '{name}'"):
            launch(stream, CONFIG, code.get_kernel(name), value)


def test_kernels_of_templates_and_graphs_are_checked(code, stream):
    kernel = code.get_kernel("made<float>")
    launch(stream, CONFIG, kernel, np.float32(1))
    with pytest.raises(TypeError, match="is a float"):
        launch(stream, CONFIG, kernel, 1)
    with pytest.raises(TypeError, match="is a float"):
        GraphDefinition().launch(CONFIG, kernel, 1)
    builder = Device(0).create_graph_builder().begin_building()
    with pytest.raises(TypeError, match="is a float"):
        launch(builder, CONFIG, kernel, 1)
    builder.end_building()


@pytest.mark.parametrize("kind", ["b32", "b8 x[4]"])
def test_untyped_parameters_accept_any_kind(stream, kind):
    parameter = f".param .align 4 .{kind}" if "[" in kind else f".param .{kind} x"
    text = f"""
        .version 7.0
        .target sm_70
        .address_size 64
        .visible .global .align 4 .b32 seen;
        .visible .entry k({parameter}) {{ .reg .b32 %r; ld.param.b32 %r, [x]; st.global.b32 [seen], %r; ret; }}
    """
    code = ObjectCode.from_ptx(text.encode())
    kernel = code.get_kernel("k")
    status, address, size = driver.cuLibraryGetGlobal(int(code.handle), b"seen")
    assert status == 0 and size == 4
    for value, arrived in ((1, np.int32(1)), (np.float32(1),) * 2, (np.int32(1),) * 2, (ctypes.c_float(1),) * 2):
        launch(stream, CONFIG, kernel, value)
        stream.sync()
        seen = bytearray(4)
        assert driver.cuMemcpyDtoH(seen, address, 4) == (0,)
        assert seen == memoryview(arrived).cast("B")


def test_cubins_are_checked_on_the_cpu_device_only(stream):
    kernel = compiled("cubin").get_kernel("single")
    if on_cpu_device():
        with pytest.raises(TypeError, match="kernel 'single' of 4 bytes is a float"):
            launch(stream, CONFIG, kernel, 1)
    else:
        # Machine code has no types of parameters.
        launch(stream, CONFIG, kernel, 1)
    launch(stream, CONFIG, kernel, np.float32(1))
    stream.sync()
