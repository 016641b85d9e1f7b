"""Kernel arguments in all forms, checked by a kernel that stores them."""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import check, compile_cuda, label

pytestmark = pytest.mark.strict_abi

C = ctypes
SOURCE = r"""
struct Pair { int a; double b; };
extern "C" __global__ void echo(long long *out, bool b, char c, unsigned char uc, short s, int i, unsigned u, float f,
                                double d, long long l, unsigned long long ul, void *p)
{
    out[0] = b; out[1] = c; out[2] = uc; out[3] = s; out[4] = i; out[5] = u;
    ((double *)out)[6] = f; ((double *)out)[7] = d;
    out[8] = l; out[9] = (long long)ul; out[10] = (long long)p;
}
extern "C" __global__ void pair(double *out, Pair p) { out[0] = p.a; out[1] = p.b; }
extern "C" __global__ void pointed(double *out, Pair *p) { out[0] = p->a; out[1] = p->b; }
extern "C" __global__ void one(long long *out, long long v) { out[0] = v; }
extern "C" __global__ void nothing() {}
"""
MANY = 300


def many_source(n):
    arguments = ", ".join(f"int a{i}" for i in range(n))
    body = " ".join(f"out[{i}] = a{i};" for i in range(n))
    return f'extern "C" __global__ void many(int *out, {arguments}) {{ {body} }}'


@pytest.fixture(scope="module")
def kernels(shared_context):
    modules = [check(driver.cuModuleLoadData(compile_cuda(s)[0])) for s in (SOURCE, many_source(MANY))]
    names = {"echo": 0, "pair": 0, "pointed": 0, "one": 0, "nothing": 0, "many": 1}
    yield {n: check(driver.cuModuleGetFunction(modules[m], n.encode())) for n, m in names.items()}
    for module in modules:
        check(driver.cuModuleUnload(module))


@pytest.fixture(scope="module")
def out(shared_context):
    pointer = check(driver.cuMemAlloc(4096))
    yield pointer
    check(driver.cuMemFree(pointer))


def launch(function, params, extra=0):
    check(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, params, extra))
    check(driver.cuCtxSynchronize())


def read(pointer, count, dtype=np.int64):
    host = np.zeros(count, dtype)
    check(driver.cuMemcpyDtoH(host, pointer, host.nbytes))
    return host


VALUES = (True, 7, 200, -3000, -123456, 3_000_000_000, 1.5, -2.25, -(2**60), 2**63 + 5, 0x1234)
TYPES = (
    C.c_bool,
    C.c_char,
    C.c_ubyte,
    C.c_short,
    C.c_int,
    C.c_uint,
    C.c_float,
    C.c_double,
    C.c_longlong,
    C.c_ulonglong,
)
TYPES += (C.c_void_p,)


def echoed(out):
    got = read(out, 11).tolist()
    floats = read(out, 11, np.float64)
    got[6:8] = floats[6:8].tolist()
    got[9] %= 2**64
    return got


@pytest.mark.parametrize("kind", [tuple, list])
def test_values_with_types(kernels, out, kind):
    check(driver.cuMemsetD8(out, 0xFF, 88))
    launch(kernels["echo"], kind([kind([int(out), *VALUES]), kind([C.c_void_p, *TYPES])]))
    assert echoed(out) == [int(v) if isinstance(v, bool) else v for v in VALUES]


def test_values_that_provide_their_address(kernels, out):
    values = [out, C.c_bool(True), C.c_byte(7), C.c_ubyte(200), C.c_short(-3000), C.c_int(-123456)]
    values += [C.c_uint(3_000_000_000), C.c_float(1.5), C.c_double(-2.25), C.c_longlong(-(2**60))]
    values += [driver.cuuint64_t(2**63 + 5), driver.CUdeviceptr(0x1234)]
    check(driver.cuMemsetD8(out, 0, 88))
    launch(kernels["echo"], (tuple(values), (None,) * 12))
    assert echoed(out) == [int(v) if isinstance(v, bool) else v for v in VALUES]


def test_ctypes_instances_with_types(kernels, out):
    values = [C.c_void_p(int(out)), *(t(v) for t, v in zip(TYPES, VALUES))]
    check(driver.cuMemsetD8(out, 0, 88))
    launch(kernels["echo"], (tuple(values), (C.c_void_p, *TYPES)))
    assert echoed(out) == [int(v) if isinstance(v, bool) else v for v in VALUES]


def numpy_arguments(out):
    types = [np.uint64, np.bool_, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.float32, np.float64, np.int64]
    types += [np.uint64, np.uint64]
    arrays = [np.array(v, dtype=t) for t, v in zip(types, (int(out), *VALUES))]
    return arrays, np.array([a.ctypes.data for a in arrays], dtype=np.uint64)


def test_pointer_of_an_argument_is_read_once(kernels, out):
    class Knows:
        requested = 0

        def getPtr(self):
            self.requested += 1
            return C.addressof(self.memory)

    knows = Knows()
    knows.memory = C.c_longlong(0x1234)
    # A NumPy number as the grid takes the general route, plain ints do not.
    for count, one in enumerate((1, np.uint32(1)), 1):
        result = driver.cuLaunchKernel(kernels["one"], one, 1, 1, 1, 1, 1, 0, 0, ((out, knows), (None, None)), 0)
        assert result == (driver.CUresult.CUDA_SUCCESS,)
        check(driver.cuCtxSynchronize())
        assert knows.requested == count and read(out, 1)[0] == 0x1234
    with pytest.raises(TypeError, match="extra"):
        driver.cuLaunchKernel(kernels["one"], 1, 1, 1, 1, 1, 1, 0, 0, ((out, knows), (None, None)), "no address")


@pytest.mark.parametrize("form", ["array", "address", "bytes", "memoryview", "getPtr"])
def test_array_of_addresses(kernels, out, form):
    arrays, addresses = numpy_arguments(out)

    class Knows:
        def getPtr(self):
            return addresses.ctypes.data

    params = {
        "array": addresses,
        "address": addresses.ctypes.data,
        "bytes": addresses.tobytes(),
        "memoryview": memoryview(addresses),
        "getPtr": Knows(),
    }[form]
    check(driver.cuMemsetD8(out, 0, 88))
    launch(kernels["echo"], params)
    assert echoed(out) == [int(v) if isinstance(v, bool) else v for v in VALUES]
    assert arrays


class Pair(C.Structure):
    _fields_ = [("a", C.c_int), ("b", C.c_double)]


def test_structs_by_value(kernels, out):
    launch(kernels["pair"], ((out, Pair(3, 4.5)), (None, None)))
    assert read(out, 2, np.float64).tolist() == [3, 4.5]

    class Knows:
        def __init__(self):
            self.pair = Pair(5, 6.5)

        def getPtr(self):
            return C.addressof(self.pair)

    launch(kernels["pair"], ((out, Knows()), (None, None)))
    assert read(out, 2, np.float64).tolist() == [5, 6.5]


def test_pointers_to_structs(kernels, out):
    pair = Pair(7, 8.5)
    there = check(driver.cuMemAlloc(C.sizeof(pair)))
    check(driver.cuMemcpyHtoD(there, pair, C.sizeof(pair)))
    launch(kernels["pointed"], ((out, there), (None, None)))
    assert read(out, 2, np.float64).tolist() == [7, 8.5]
    launch(kernels["pointed"], ((int(out), int(there)), (C.c_void_p, C.c_void_p)))
    check(driver.cuMemFree(there))


def test_object_with_getptr_as_void_pointer_passes_its_pointer(kernels, out):
    class Knows:
        def getPtr(self):
            return 0xABCDEF

    launch(kernels["one"], ((out, Knows()), (None, C.c_void_p)))
    assert read(out, 1)[0] == 0xABCDEF
    stream = driver.CUstream(77)
    launch(kernels["one"], ((out, stream), (None, C.c_void_p)))
    assert read(out, 1)[0] == stream.getPtr()
    for value, seen in ((None, 0), (C.c_void_p(5), 5), (C.c_void_p(None), 0), (0, 0)):
        launch(kernels["one"], ((out, value), (None, C.c_void_p)))
        assert read(out, 1)[0] == seen


@pytest.mark.parametrize(
    "value, kind, seen",
    [
        (-1, C.c_longlong, -1),
        (2**64 - 1, C.c_longlong, -1),
        (2**64 + 3, C.c_ulonglong, 3),
        (5, C.c_size_t, 5),
        (-5, C.c_ssize_t, -5),
        (True, C.c_long, 1),
        (np.int64(9), C.c_int64, 9),
        (driver.CUresult.CUDA_ERROR_INVALID_VALUE, C.c_uint64, 1),
        (driver.CUresult.CUDA_ERROR_INVALID_VALUE, None, 1),
    ],
)
def test_integer_like_values(kernels, out, value, kind, seen):
    launch(kernels["one"], ((out, value), (None, kind)))
    assert read(out, 1)[0] == seen


@pytest.mark.parametrize("form", ["pair", "numpy"])
def test_more_arguments_than_fit_inline(kernels, out, form):
    if form == "pair":
        launch(kernels["many"], ((out, *range(MANY)), (None, *[C.c_int] * MANY)))
    else:
        arrays = [np.array(int(out), np.uint64), *(np.array(i, np.int32) for i in range(MANY))]
        launch(kernels["many"], np.array([a.ctypes.data for a in arrays], np.uint64))
    assert read(out, MANY, np.int32).tolist() == list(range(MANY))


@pytest.mark.parametrize("params", [None, 0, ((), ()), [[], []], np.uint64(0)], ids=label)  # A single null address.
def test_no_arguments(kernels, params):
    launch(kernels["nothing"], params)
    launch(kernels["nothing"], params, None)


def test_launch_kernel_ex_and_cooperative_launch(kernels, out):
    config = driver.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = 1
    config.blockDimX = config.blockDimY = config.blockDimZ = 1
    check(driver.cuLaunchKernelEx(config, kernels["one"], ((out, 41), (None, C.c_longlong)), 0))
    assert read(out, 1)[0] == 41
    params = ((out, 42), (None, C.c_longlong))
    check(driver.cuLaunchCooperativeKernel(kernels["one"], 1, 1, 1, 1, 1, 1, 0, 0, params))
    assert read(out, 1)[0] == 42


GOOD = ((0, 1), (C.c_void_p, C.c_longlong))


@pytest.mark.parametrize(
    "params",
    [
        ((1, 2), (C.c_int,)),
        ((1,), (C.c_int, C.c_int)),
        (1, 2),
        ((1,),),
        (GOOD[0], GOOD[1], 0),
        (),
        [],
        "text",
        {},
        object(),
        ((1,), (int,)),
        ((1,), ("x",)),
        ((1,), (C.c_longdouble,)),
        ((1,), (C.c_char_p,)),
        ((1,), (C.POINTER(C.c_int),)),
        ((1,), (C.c_int * 2,)),
        ((1,), (np.int32,)),
        ((1.5,), (C.c_int,)),
        (("x",), (C.c_int,)),
        ((None,), (C.c_int,)),
        (("x",), (C.c_float,)),
        ((b"xy",), (C.c_char,)),
        ((5,), (None,)),
        ((5.0,), (None,)),
        ((None,), (None,)),
        ((b"bytes",), (None,)),
        ((np.int64(5),), (None,)),
        ((np.zeros(4),), (C.c_void_p,)),
        ((bytearray(4),), (C.c_void_p,)),
        ((object(),), (C.c_void_p,)),
    ],
    ids=label,
)
def test_wrong_arguments_raise(kernels, params):
    with pytest.raises(TypeError, match=r"cuLaunchKernel\(\) argument 'kernelParams'|0-dimensional"):
        driver.cuLaunchKernel(kernels["one"], 1, 1, 1, 1, 1, 1, 0, 0, params, 0)


@pytest.mark.parametrize("value, kind", [(128, C.c_byte), (2**31, C.c_int), (-(2**31) - 1, C.c_int), (2**70, C.c_int)])
def test_out_of_range_values_raise(kernels, value, kind):
    with pytest.raises(OverflowError, match=r"cuLaunchKernel\(\) argument 'kernelParams': item 1"):
        driver.cuLaunchKernel(kernels["one"], 1, 1, 1, 1, 1, 1, 0, 0, ((0, value), (C.c_void_p, kind)), 0)


@pytest.mark.parametrize("kind", [ctypes.c_float, ctypes.c_double])
def test_exceptions_of_conversions_to_float_are_raised(kernels, kind):
    class Interrupted:
        def __float__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(kernels["many"], ((Interrupted(),), (kind,)))
    with pytest.raises(OverflowError, match="too large to convert to float"):
        launch(kernels["many"], ((10**400,), (kind,)))


@pytest.mark.parametrize("kind", [ctypes.c_bool, ctypes.c_byte, ctypes.c_ubyte, ctypes.c_longlong])
def test_runs_of_one_type_are_packed_one_by_one(kind):
    """Each value of a run is converted by its type, whatever the values before it are."""
    packed = driver.CUDA_KERNEL_NODE_PARAMS()
    values = (True, 0, np.int8(1), kind(1), False, 3)
    packed.kernelParams = (values, (kind,) * len(values))
    pointers = (ctypes.c_void_p * len(values)).from_address(int(packed.kernelParams))
    found = [kind.from_address(pointer).value for pointer in pointers]
    assert found == [kind(getattr(value, "value", value)).value for value in values]


def test_extra_takes_addresses_only(kernels):
    for extra in ([], (1,), "x", np.zeros(2)):
        with pytest.raises(TypeError):
            driver.cuLaunchKernel(kernels["nothing"], 1, 1, 1, 1, 1, 1, 0, 0, 0, extra)


def test_arguments_may_change_after_the_launch_returns(kernels, out):
    """The launch copies the values."""
    values = [int(out), 0]
    pair = Pair(1, 2.0)
    for i in range(50):
        values[1] = i
        check(driver.cuLaunchKernel(kernels["one"], 1, 1, 1, 1, 1, 1, 0, 0, (values, [C.c_void_p, C.c_longlong]), 0))
        values[1] = -1
    check(driver.cuCtxSynchronize())
    assert read(out, 1)[0] == 49
    check(driver.cuLaunchKernel(kernels["pair"], 1, 1, 1, 1, 1, 1, 0, 0, ((out, pair), (None, None)), 0))
    pair.a = 99
    check(driver.cuCtxSynchronize())
    assert read(out, 2, np.float64)[0] == 1


def test_node_params_keep_their_kernel_params_alive():
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.kernelParams = ((1, 2), (C.c_int, C.c_int))
    address = int(params.kernelParams)
    pointers = (C.c_void_p * 2).from_address(address)
    assert [C.c_int.from_address(p).value for p in pointers] == [1, 2]
    with pytest.raises(TypeError):
        params.kernelParams = ((1, 2), (C.c_int,))
