"""Calls of cuda.bindings functions: argument binding, conversions, results, errors. No launches."""

import copy
import ctypes
import inspect
import pickle
import threading
import weakref

import numpy as np
import pytest
from cuda.bindings import driver, nvrtc

from helpers.device import check, label
from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi

S = driver.CUresult.CUDA_SUCCESS


class WithInt:
    def __init__(self, value):
        self.value = value

    def __int__(self):
        return self.value


class WithIndex:
    def __index__(self):
        return 0


class WithPtr:
    def __init__(self, size=64):
        self.memory = ctypes.create_string_buffer(size)

    def getPtr(self):
        return ctypes.addressof(self.memory)


def functions(module):
    return [
        f
        for f in (getattr(module, n) for n in dir(module))
        if type(f) is type(driver.cuInit) and f.__module__ == module.__name__
    ]


# ---------------------------------------------------------------- function objects


@pytest.mark.parametrize("module, least", [(driver, 514), (nvrtc, 30)])
def test_functions_have_names_docs_and_modules(module, least):
    found = functions(module)
    assert len(found) >= least
    for f in found:
        name = f.__name__
        assert getattr(module, name) is f
        assert f.__qualname__ == name and f.__module__ == module.__name__
        assert "Returns" in f.__doc__ and name in repr(f)
        assert pickle.loads(pickle.dumps(f)) is f
        assert copy.copy(f) is f and copy.deepcopy(f) is f
        assert inspect.isroutine(f)
        for p in inspect.signature(f).parameters.values():
            assert p.kind is p.POSITIONAL_OR_KEYWORD
        assert weakref.ref(f)() is f


def test_signatures_name_the_parameters():
    assert str(inspect.signature(driver.cuMemAlloc)) == "(bytesize)"
    assert str(inspect.signature(driver.cuCtxCreate)) == "(ctxCreateParams, flags, dev)"
    assert str(inspect.signature(driver.cuGraphGetEdges)) == "(hGraph, numEdges=0)"


def test_function_type_cannot_be_instantiated():
    with pytest.raises(TypeError):
        type(driver.cuInit)()


# ---------------------------------------------------------------- binding


def test_keyword_arguments():
    assert driver.cuInit(Flags=0) == (S,)
    status, device = driver.cuDeviceGet(ordinal=0)
    assert status == S and int(device) == 0
    assert driver.cuInit(*(), **{"Flags": 0}) == (S,)


@pytest.mark.parametrize(
    "call, parts",
    [
        (lambda: driver.cuMemAlloc(), ["cuMemAlloc()", "bytesize", "0 given"]),
        (lambda: driver.cuMemAlloc(1, 2), ["cuMemAlloc()", "2 given"]),
        (lambda: driver.cuMemAlloc(1, bytesize=2), ["cuMemAlloc()", "multiple values", "'bytesize'"]),
        (lambda: driver.cuMemAlloc(size=2), ["cuMemAlloc()", "unexpected keyword", "'size'"]),
        (lambda: driver.cuCtxGetCurrent(1), ["cuCtxGetCurrent()", "takes no arguments"]),
        (lambda: driver.cuMemcpyDtoD(1, ByteCount=2), ["cuMemcpyDtoD()", "'srcDevice'"]),
        (lambda: driver.cuCtxCreate(0), ["cuCtxCreate()"]),
        (lambda: driver.cuCtxCreate(0, 0, 0, 0), ["cuCtxCreate()", "4 given"]),
    ],
)
def test_wrong_number_of_arguments_raises(call, parts):
    with pytest.raises(TypeError) as info:
        call()
    for part in parts:
        assert part in str(info.value)


def test_ctx_create_takes_both_forms():
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    for arguments, keywords in [
        ((0, device), {}),
        ((None, 0, device), {}),
        ((0,), {"dev": device}),
        ((), {"flags": 0, "dev": device}),
        ((), {"ctxCreateParams": None, "flags": 0, "dev": 0}),
        ((driver.CUctxCreateParams(), 0, device), {}),
    ]:
        context = check(driver.cuCtxCreate(*arguments, **keywords))
        assert isinstance(context, driver.CUcontext)
        check(driver.cuCtxDestroy(context))
    with pytest.raises(TypeError, match="ctxCreateParams"):
        driver.cuCtxCreate(0, 0, 0)


# ---------------------------------------------------------------- results


def test_result_is_a_tuple_of_status_and_outputs():
    first, second = driver.cuInit(0), driver.cuInit(0)
    assert first == (S,) and first is second, "the tuple of success exists once"
    status, device = driver.cuDeviceGet(0)
    assert status is S and type(device) is driver.CUdevice
    status, nothing = driver.cuDeviceGet(1000)
    assert status is driver.CUresult.CUDA_ERROR_INVALID_DEVICE and nothing is None
    assert driver.cuDeviceComputeCapability(1000)[1:] == (None, None)
    major, minor = check(driver.cuDeviceComputeCapability(0))
    assert type(major) is int and type(minor) is int


@pytest.mark.parametrize("length", [-1, 0, 1, 4, 256, 10_000])
def test_bytes_results_have_the_requested_length(length):
    for get in (driver.cuDeviceGetName, driver.cuDeviceGetPCIBusId):
        status, name = get(length, 0)
        if status == S:
            assert type(name) is bytes and len(name) == max(length, 0)
        else:
            assert name is None


def test_results_are_unaffected_by_later_calls():
    names = driver.CUdevice_attribute
    warp = driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)
    block = driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 0)
    again = driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)
    assert warp == again == (S, 32) and block == (S, 1024)
    # A failure between two successes has its own result.
    assert driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10**6)[1] is None
    assert driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0) == (S, 32)


def test_result_handles_are_independent_objects(shared_context):
    """Freed handles are reused; nothing of their old state may remain."""
    for _ in range(3):
        events = [check(driver.cuEventCreate(0)) for _ in range(100)]
        assert len({int(e) for e in events}) == len({id(e) for e in events}) == len({e.getPtr() for e in events}) == 100
        deaths = []
        watched = [weakref.ref(e, deaths.append) for e in events]
        assert all(driver.cuEventDestroy(e) == (S,) for e in events)
        del events
        # The function keeps its last result until the next call.
        assert len(deaths) >= 99
        assert driver.cuEventDestroy(check(driver.cuEventCreate(0))) == (S,)
        assert len(deaths) == len(watched) == 100 and all(w() is None for w in watched)
        streams = [check(driver.cuStreamCreate(0)) for _ in range(100)]
        assert all(type(s) is driver.CUstream and weakref.getweakrefcount(s) == 0 for s in streams)
        assert all(ctypes.c_uint64.from_address(s.getPtr()).value == int(s) for s in streams)
        assert all(driver.cuStreamDestroy(s) == (S,) for s in streams)


def test_referenced_results_are_not_reused(shared_context):
    """A function reuses the tuple and the handle of its last result only when nothing else references them."""
    create, destroy = driver.cuEventCreate, driver.cuEventDestroy
    answers = [create(0) for _ in range(3)]
    assert len({id(a) for a in answers}) == len({id(a[1]) for a in answers}) == len({int(a[1]) for a in answers}) == 3
    # Only the handle, or only the tuple.
    handle, answer = create(0)[1], create(0)
    values = int(handle), int(answer[1]), hash(answer[1])
    others = [create(0)[1] for _ in range(3)]
    assert values == (int(handle), int(answer[1]), hash(answer[1]))
    assert len({int(e) for e in (handle, answer[1], *others)}) == 5
    # A result with only a weak reference is replaced by the next call, and the weak reference's callback may make that
    # call.
    made = []
    watch = weakref.ref(create(0)[1], lambda _: made.append(create(0)))
    numbers = {int(e) for e in (handle, answer[1], *others)}
    last = int(watch())
    following = create(0)
    assert watch() is None and len(made) == 1 and made[0] is not following and made[0][1] is not following[1]
    assert len({last, int(made[0][1]), int(following[1])} | numbers) == 8
    # A failure has its own result and does not touch the last one.
    assert create(0xFFFF)[1] is None and create(0xFFFF)[0] != S
    every = [a[1] for a in (*answers, answer, *made, following)] + [handle, *others, driver.CUevent(last)]
    assert len({int(e) for e in every}) == len(every)
    for _ in range(3):
        assert destroy(create(0)[1]) == (S,)
    assert all(destroy(e) == (S,) for e in every)


def test_threads_get_separate_results(shared_context):
    def work(seen):
        check(driver.cuCtxSetCurrent(shared_context))
        for _ in range(500):
            first, second = driver.cuEventCreate(0), driver.cuEventCreate(0)
            seen.append(first is not second and int(first[1]) != int(second[1]))
            seen.append(driver.cuEventDestroy(first[1]) == driver.cuEventDestroy(second[1]) == (S,))

    seen = []
    threads = [threading.Thread(target=work, args=(seen,)) for _ in range(4)]
    run_all(threads)
    assert len(seen) == 4000 and all(seen)


def test_handles_of_derived_classes_are_accepted(shared_context):
    class Mine(driver.CUstream):
        pass

    stream = check(driver.cuStreamCreate(0))
    for _ in range(100):
        assert driver.cuStreamQuery(Mine(int(stream))) == (S,)
        assert driver.cuStreamQuery(driver.CUstream(_ptr=stream.getPtr())) == (S,)
    assert driver.cuStreamDestroy(stream) == (S,)


@pytest.mark.parametrize("value", [True, 1, driver.CUdevice_attribute(1), np.int64(1), WithInt(1), 1.0])
def test_all_integer_classes_are_equivalent(shared_context, value):
    pointer = check(driver.cuMemAlloc(16))
    assert driver.cuMemsetD8(pointer, value, 16) == (S,)
    assert driver.cuMemsetD8(int(pointer), 255, value) == (S,)
    host = np.zeros(16, np.uint8)
    assert driver.cuMemcpyDtoH(host, pointer, 16) == (S,)
    assert host.tolist() == [255] + [1] * 15
    assert driver.cuMemFree(pointer) == (S,)


def test_error_names_and_strings():
    assert driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_INVALID_VALUE) == (S, b"CUDA_ERROR_INVALID_VALUE")
    assert driver.cuGetErrorName(1) == (S, b"CUDA_ERROR_INVALID_VALUE")
    status, name = driver.cuGetErrorName(77777)
    assert status != S and name is None


def test_struct_results(shared_context):
    uuid = check(driver.cuDeviceGetUuid(0))
    assert type(uuid) is driver.CUuuid and len(uuid.bytes) == 16
    assert type(check(driver.cuDeviceGetProperties(0))) is driver.CUdevprop


def test_border_color_has_four_components(shared_context):
    """C reads and writes four floats where Python has one."""
    created, texture = driver.cuTexRefCreate()
    assert driver.cuTexRefSetBorderColor(texture, 0.5)[0] in (created, S)
    status, color = driver.cuTexRefGetBorderColor(texture)
    assert (color is None) == (status != S)


def test_get_proc_address():
    status, address, query = driver.cuGetProcAddress(b"cuMemAlloc", 12000, 0)
    assert status == S and type(address) is int and address > 0
    assert query == driver.CUdriverProcAddressQueryResult.CU_GET_PROC_ADDRESS_SUCCESS
    missing = driver.CUdriverProcAddressQueryResult.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
    assert driver.cuGetProcAddress(b"cuNoSuchFunction", 12000, 0)[1:] in [(0, missing), (None, None)]


# ---------------------------------------------------------------- coercions


ACCEPTED_INTS = [0, False, 0.0, np.int64(0), np.float32(0), np.array(0), WithInt(0), WithIndex(), S]


@pytest.mark.parametrize("value", ACCEPTED_INTS, ids=lambda v: type(v).__name__)
def test_integer_parameters_accept_what_int_accepts(value):
    assert driver.cuInit(value)[0] == S


REFUSED_INTS = ["0", b"0", None, [], (), {}, object(), ctypes.c_int(0), bytearray(8), memoryview(b"0"), 1j, WithPtr()]


@pytest.mark.parametrize("value", REFUSED_INTS, ids=lambda v: type(v).__name__)
def test_integer_parameters_refuse_other_types(value):
    with pytest.raises(TypeError, match=r"cuInit\(\) argument 'Flags'"):
        driver.cuInit(value)


@pytest.mark.parametrize(
    "function, arguments, name",
    [
        (driver.cuInit, (-1,), "Flags"),
        (driver.cuInit, (2**32,), "Flags"),
        (driver.cuMemAlloc, (-1,), "bytesize"),
        (driver.cuMemAlloc, (2**64,), "bytesize"),
        (driver.cuMemAlloc, (1e30,), "bytesize"),
        (driver.cuDeviceGet, (2**31,), "ordinal"),
        (driver.cuDeviceGet, (-(2**31) - 1,), "ordinal"),
        (driver.cuMemsetD8, (0, 256, 1), "uc"),
        (driver.cuMemsetD8, (0, -1, 1), "uc"),
        (driver.cuMemsetD16, (0, 65536, 1), "us"),
        (driver.cuMemsetD32, (0, -1, 1), "ui"),
        (driver.cuStreamSynchronize, (-1,), "hStream"),
        (driver.cuStreamSynchronize, (2**64,), "hStream"),
        (driver.cuDeviceTotalMem, (2**32,), "dev"),
        (driver.cuMemFreeHost, (-1,), "p"),
        (driver.cuMemFreeHost, (2**64,), "p"),
        (driver.cuDeviceGetAttribute, (2**32, 0), "attrib"),
    ],
)
def test_integer_ranges_are_checked(function, arguments, name):
    with pytest.raises(OverflowError) as info:
        function(*arguments)
    assert function.__name__ in str(info.value) and f"'{name}'" in str(info.value)


def test_exception_from_int_propagates():
    class Bad:
        def __int__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        driver.cuInit(Bad())
    with pytest.raises(KeyError, match="mine"):
        driver.cuStreamSynchronize(Bad())


@pytest.mark.parametrize("handle", [None, 0, 0.0, np.uint64(0), driver.CUstream(0), driver.CUevent(0), WithInt(0)])
def test_handle_parameters_accept_handles_and_integers(shared_context, handle):
    assert driver.cuStreamQuery(handle)[0] == S


@pytest.mark.parametrize("value", ["0", b"", [], object(), ctypes.c_void_p(0)], ids=lambda v: type(v).__name__)
def test_handle_parameters_refuse_other_types(value):
    with pytest.raises(TypeError, match=r"cuStreamQuery\(\) argument 'hStream'"):
        driver.cuStreamQuery(value)


def test_enum_parameters():
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE
    for value in (attribute, int(attribute), float(attribute), str(int(attribute)), np.int32(attribute)):
        assert driver.cuDeviceGetAttribute(value, 0) == (S, 32)
    with pytest.raises(TypeError, match="'attrib' must not be None"):
        driver.cuDeviceGetAttribute(None, 0)
    with pytest.raises(ValueError):
        driver.cuDeviceGetAttribute("warp", 0)
    with pytest.raises(TypeError, match="attrib"):
        driver.cuDeviceGetAttribute([], 0)


def test_structs_by_pointer_and_by_value():
    with pytest.raises(TypeError, match=r"cuMemcpy2D\(\) argument 'pCopy' must be CUDA_MEMCPY2D or None, not int"):
        driver.cuMemcpy2D(5)
    with pytest.raises(TypeError, match="pCopy"):
        driver.cuMemcpy2D(driver.CUDA_MEMCPY3D())
    assert driver.cuMemcpy2D(None)[0] != S
    advice = driver.CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY
    with pytest.raises(TypeError, match="location"):
        driver.cuMemAdvise(0, 0, advice, None)
    assert driver.cuMemAdvise(0, 0, advice, driver.CUmemLocation())[0] != S


@pytest.mark.parametrize("value", ["name", None, 5, memoryview(b"x"), np.zeros(3, np.uint8)])
def test_text_parameters_take_bytes(value):
    with pytest.raises(TypeError, match=r"cuDeviceGetByPCIBusId\(\) argument 'pciBusId' must be bytes"):
        driver.cuDeviceGetByPCIBusId(value)


def test_text_parameters_take_bytearrays():
    assert driver.cuDeviceGetByPCIBusId(bytearray(b"nothing"))[0] != S


# ---------------------------------------------------------------- memory given to C


def test_void_pointers_accept_buffers_and_addresses(shared_context):
    device = check(driver.cuMemAlloc(8))
    array = np.arange(1, dtype=np.uint64) + 0x0102030405060708
    text = array.tobytes()
    holder = WithPtr()
    ctypes.memmove(holder.getPtr(), text, 8)
    sources = [array, array.ctypes.data, np.uint64(array.ctypes.data), text, bytearray(text), memoryview(text)]
    sources += [ctypes.c_uint64(int(array[0])), ctypes.create_string_buffer(text, 8), holder]
    for source in sources:
        check(driver.cuMemsetD8(device, 0, 8))
        check(driver.cuMemcpyHtoD(device, source, 8))
        back = np.zeros(1, np.uint64)
        check(driver.cuMemcpyDtoH(back, device, 8))
        assert back[0] == array[0], type(source)
    for back in (bytearray(8), np.zeros(8, np.uint8), memoryview(bytearray(8)), ctypes.create_string_buffer(8)):
        check(driver.cuMemcpyDtoH(back, device, 8))
        assert bytes(back) == text
    check(driver.cuMemFree(device))


@pytest.mark.parametrize(
    "value", [1.5, 0.0, np.float32(1), np.bool_(True), "text", object()], ids=lambda v: type(v).__name__
)
def test_non_addresses_are_refused(shared_context, value):
    with pytest.raises(TypeError, match="srcHost"):
        driver.cuMemcpyHtoD(0, value, 8)
    with pytest.raises(TypeError, match="dstHost"):
        driver.cuMemcpyDtoH(value, 0, 8)


def test_too_small_buffers_are_refused(shared_context):
    device = check(driver.cuMemAlloc(64))
    for call in (
        lambda: driver.cuMemcpyDtoH(bytearray(8), device, 9),
        lambda: driver.cuMemcpyHtoD(device, np.zeros(1), 9),
        lambda: driver.cuMemcpyHtoDAsync(device, b"12345678", 9, 0),
        lambda: driver.cuMemcpyDtoHAsync(bytearray(8), device, 64, 0),
    ):
        with pytest.raises(ValueError, match="8 bytes.*ByteCount"):
            call()
    check(driver.cuMemFree(device))


@pytest.mark.parametrize(
    "buffer", [np.bool_(True), memoryview(b"ab"), np.frombuffer(b"ab", np.uint8), "ab", 5, None], ids=label
)
def test_read_only_buffers_are_never_written(buffer):
    program = check(nvrtc.nvrtcCreateProgram(b"", b"empty.cu", 0, [], []))
    with pytest.raises(TypeError, match="log"):
        nvrtc.nvrtcGetProgramLog(program, buffer)
    assert bool(np.True_)
    check(nvrtc.nvrtcDestroyProgram(program))


def test_shared_bytes_objects_are_never_written(shared_context):
    device = check(driver.cuMemAlloc(8))
    check(driver.cuMemsetD8(device, 0, 8))
    target = bytes([65])
    check(driver.cuMemcpyDtoH(target, device, 1))
    assert bytes([65]) == b"A" and ord(target) == 65
    check(driver.cuMemFree(device))


@pytest.mark.parametrize(
    "value", ["text", [1], (1,), object(), np.zeros(4)[::2]], ids=["str", "list", "tuple", "object", "strided"]
)
def test_void_pointers_refuse_other_types(value):
    with pytest.raises((TypeError, ValueError)):
        driver.cuMemcpyHtoD(0, value, 0)


# ---------------------------------------------------------------- lists


def test_list_counts_are_checked():
    node = driver.CUgraphNode(1)
    for call, name in (
        (lambda: driver.cuGraphAddEmptyNode(0, [node], 2), "dependencies"),
        (lambda: driver.cuGraphAddEmptyNode(0, None, 1), "dependencies"),
        (lambda: driver.cuMemDiscardBatchAsync([driver.CUdeviceptr(1)], [1], 2, 0, 0), "dptrs"),
        (lambda: driver.cuMemDiscardBatchAsync([driver.CUdeviceptr(1)] * 2, [1], 2, 0, 0), "sizes"),
        (lambda: nvrtc.nvrtcCreateProgram(b"", b"a", 1, [b"h"], []), "includeNames"),
        (lambda: driver.cuGraphicsMapResources(2, driver.CUgraphicsResource(0), 0), "resources"),
    ):
        for exception in (ValueError, RuntimeError):
            with pytest.raises(exception, match=f"'{name}'.*List is too small"):
                call()


@pytest.mark.parametrize(
    "value", ["ab", 5, [1], [None], [driver.CUstream(1)], [driver.CUgraphNode(1), 2], {1: 2}, object()]
)
def test_list_elements_are_checked(value):
    with pytest.raises(TypeError, match=r"cuGraphAddEmptyNode\(\) argument 'dependencies'"):
        driver.cuGraphAddEmptyNode(0, value, 1)


def test_lists_of_text():
    for value in (["-G"], [5], [None]):
        with pytest.raises(TypeError, match=r"nvrtcCompileProgram\(\) argument 'options'"):
            nvrtc.nvrtcCompileProgram(0, 1, value)


# ---------------------------------------------------------------- attributes and options


def test_pointer_attributes_have_their_types(shared_context):
    device = check(driver.cuMemAlloc(64))
    A = driver.CUpointer_attribute
    kind = check(driver.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device))
    assert kind == driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    pointer = check(driver.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, device))
    assert type(pointer) is driver.CUdeviceptr and int(pointer) == int(device)
    assert type(check(driver.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_IS_MANAGED, device))) is bool
    several = [A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL]
    assert check(driver.cuPointerGetAttributes(2, several, device)) == [2, 0]
    with pytest.raises(ValueError, match="attributes"):
        driver.cuPointerGetAttributes(3, several, device)
    with pytest.raises(TypeError, match="Unsupported attribute"):
        driver.cuPointerGetAttribute(12345, device)
    check(driver.cuMemFree(device))


def test_jit_options_are_checked():
    J = driver.CUjit_option
    log, size = J.CU_JIT_INFO_LOG_BUFFER, J.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
    with pytest.raises(ValueError, match=r"cuModuleLoadDataEx\(\).*log buffer has 10 bytes.*100"):
        driver.cuModuleLoadDataEx(b"", 2, [log, size], [bytearray(10), 100])
    with pytest.raises(TypeError, match="optionValues"):
        driver.cuModuleLoadDataEx(b"", 1, [log], [5])
    with pytest.raises(TypeError, match="options"):
        driver.cuModuleLoadDataEx(b"", 1, [0], [5])
    with pytest.raises(ValueError, match="optionValues"):
        driver.cuModuleLoadDataEx(b"", 1, [size], [])
    with pytest.raises(TypeError, match="Unsupported attribute"):
        driver.cuModuleLoadDataEx(b"", 1, [J.CU_JIT_NUM_OPTIONS], [5])


# ---------------------------------------------------------------- NVRTC


def test_nvrtc_writes_into_the_given_buffer():
    program = check(nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void k() {}', b"k.cu", 0, [], []))
    check(nvrtc.nvrtcCompileProgram(program, 0, []))
    size = check(nvrtc.nvrtcGetPTXSize(program))
    as_bytes, as_array, as_numpy = b" " * size, bytearray(size), np.zeros(size, np.uint8)
    for buffer in (as_bytes, as_array, as_numpy):
        check(nvrtc.nvrtcGetPTX(program, buffer))
    assert b".entry k" in as_bytes and as_bytes == bytes(as_array) == as_numpy.tobytes()
    for buffer in (b"", b" " * (size - 1), bytearray(3), np.zeros(4)):
        with pytest.raises(ValueError, match=rf"nvrtcGetPTX\(\) argument 'ptx'.*{size} are needed"):
            nvrtc.nvrtcGetPTX(program, buffer)
    for buffer in (None, 5, "x" * size, []):
        with pytest.raises(TypeError, match=r"nvrtcGetPTX\(\) argument 'ptx'"):
            nvrtc.nvrtcGetPTX(program, buffer)
    log = check(nvrtc.nvrtcGetProgramLogSize(program))
    check(nvrtc.nvrtcGetProgramLog(program, b" " * log))
    assert bytes([32]) == b" ", "a log of one byte must not change the interpreter's b' '"
    check(nvrtc.nvrtcDestroyProgram(program))


def test_nvrtc_errors():
    assert nvrtc.nvrtcGetErrorString(nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION) == (
        nvrtc.nvrtcResult.NVRTC_SUCCESS,
        b"NVRTC_ERROR_COMPILATION",
    )
    program = check(nvrtc.nvrtcCreateProgram(b"this is no program", b"k.cu", 0, None, None))
    (status,) = nvrtc.nvrtcCompileProgram(program, 0, None)
    assert status is nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION
    log = b" " * check(nvrtc.nvrtcGetProgramLogSize(program))
    check(nvrtc.nvrtcGetProgramLog(program, log))
    assert b"k.cu(1): error" in log
    check(nvrtc.nvrtcDestroyProgram(program))
    archs = check(nvrtc.nvrtcGetSupportedArchs())
    assert archs and len(archs) == check(nvrtc.nvrtcGetNumSupportedArchs()) and all(type(a) is int for a in archs)


def test_sizeof():
    assert driver.sizeof(driver.CUuuid) == 16 and driver.sizeof(objType=driver.CUstream) == 8
    for value in (5, int, driver.CUuuid(), driver.CUresult):
        with pytest.raises(TypeError):
            driver.sizeof(value)
