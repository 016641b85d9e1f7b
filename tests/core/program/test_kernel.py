"""cuda.core: Kernel, KernelAttributes, KernelOccupancy."""

import copy
import ctypes
import gc
import pickle
import warnings
import weakref

import pytest
from cuda.bindings import driver
from cuda.core import Device, Kernel, LaunchConfig, ObjectCode
from cuda.core._module import KernelAttributes, KernelOccupancy, ParamInfo
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check, compile_cuda
from helpers.threads import run_all

SOURCE = """
struct Mixed { char a; double b; int c; };
extern "C" __global__ void three(float *a, int n, double d) {
    __shared__ float s[16];
    s[threadIdx.x % 16] = a[n];
    __syncthreads();
    a[threadIdx.x] += s[0] + d;
}
extern "C" __global__ void packed(char c, Mixed m, short h) { }
extern "C" __global__ void none() { }
extern "C" __global__ void __launch_bounds__(64) few(float *a) { a[threadIdx.x] = 1; }
extern "C" __global__ void dynamic(float *a) { extern __shared__ float s[]; a[0] = s[threadIdx.x]; }
"""

INTS = (
    "binary_version",
    "cluster_scheduling_policy_preference",
    "const_size_bytes",
    "local_size_bytes",
    "max_dynamic_shared_size_bytes",
    "max_threads_per_block",
    "num_regs",
    "preferred_shared_memory_carveout",
    "ptx_version",
    "required_cluster_depth",
    "required_cluster_height",
    "required_cluster_width",
    "shared_size_bytes",
)
BOOLS = ("cache_mode_ca", "cluster_size_must_be_set", "non_portable_cluster_size_allowed")


@pytest.fixture(scope="module")
def code():
    Device(0).set_current()
    return ObjectCode.from_ptx(compile_cuda(SOURCE)[0])


@pytest.fixture
def kernel(code):
    return code.get_kernel("three")


def test_parameter_information(code, kernel):
    assert kernel.num_arguments == 3
    assert kernel.arguments_info == [(0, 8), (8, 4), (16, 8)]
    first = kernel.arguments_info[0]
    assert type(first) is ParamInfo and (first.offset, first.size) == (0, 8)
    assert pickle.loads(pickle.dumps(first)) == first
    assert code.get_kernel("packed").arguments_info == [(0, 1), (8, 24), (32, 2)]
    assert (code.get_kernel("none").num_arguments, code.get_kernel("none").arguments_info) == (0, [])


def test_equality_and_hash(code, kernel):
    again = code.get_kernel("three")
    assert again is not kernel and again == kernel and hash(again) == hash(kernel)
    assert kernel != code.get_kernel("none") and kernel != int(kernel.handle)
    assert isinstance(kernel.handle, driver.CUkernel)
    assert repr(kernel) == f"<Kernel handle={int(kernel.handle):#x}>"
    assert weakref.ref(kernel)() is kernel
    with pytest.raises(AttributeError):
        kernel.handle = 1
    with pytest.raises(AttributeError):
        kernel.other = 1
    with pytest.raises(RuntimeError, match="get_kernel"):
        Kernel()


def test_from_handle(code, kernel):
    for given in (int(kernel.handle), kernel.handle):
        for keywords in ({}, {"mod": code}, {"mod": None}):
            again = Kernel.from_handle(given, **keywords)
            assert again == kernel and again.num_arguments == 3
    for wrong in ("x", None, 1.5, code.handle):
        with pytest.raises(TypeError, match="'handle'"):
            Kernel.from_handle(wrong)
    for wrong in (-1, 1 << 64):
        with pytest.raises(OverflowError, match="'handle'"):
            Kernel.from_handle(wrong)
    with pytest.raises(ValueError, match="'handle'"):
        Kernel.from_handle(0)
    with pytest.raises(TypeError):
        Kernel.from_handle(int(kernel.handle), 5)


def test_from_handle_with_the_code_of_another_kernel(code, kernel):
    other = ObjectCode.from_ptx(compile_cuda(SOURCE)[0])
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert Kernel.from_handle(int(kernel.handle), code) == kernel
            # Nothing is loaded for a comparison.
            again = Kernel.from_handle(int(kernel.handle), ObjectCode.from_ptx(compile_cuda(SOURCE)[0]))
            assert again == kernel
        assert other.handle
        with pytest.warns(UserWarning, match="'mod' is not the code of this kernel") as caught:
            again = Kernel.from_handle(int(kernel.handle), other)
        assert caught[0].filename == __file__
        assert again == kernel and again.num_arguments == 3
        # It would be the kernel of the other code.
        with pytest.raises(TypeError, match="handle"):
            pickle.dumps(again)


def test_reloaded_handle_keeps_its_code_alive():
    code = ObjectCode.from_ptx(compile_cuda(SOURCE)[0])
    again = Kernel.from_handle(int(code.get_kernel("three").handle))
    del code
    gc.collect()
    assert again.num_arguments == 3 and again.attributes.num_regs > 0


def test_foreign_handle():
    library = check(driver.cuLibraryLoadData(compile_cuda(SOURCE)[0] + b"\0", [], [], 0, [], [], 0))
    try:
        foreign = Kernel.from_handle(check(driver.cuLibraryGetKernel(library, b"few")))
        assert foreign.num_arguments == 1 and foreign.attributes.max_threads_per_block == 64
        with pytest.raises(TypeError, match="handle"):
            pickle.dumps(foreign)
        del foreign
    finally:
        check(driver.cuLibraryUnload(library))


def test_pickling_and_copying(kernel):
    for again in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        assert again != kernel and again.arguments_info == kernel.arguments_info


def test_attributes_match_the_driver(code):
    device = check(driver.cuDeviceGet(0))
    for name in ("three", "few", "none"):
        kernel = code.get_kernel(name)
        for attribute in (*INTS, *BOOLS):
            value = getattr(kernel.attributes, attribute)
            member = {
                "cache_mode_ca": "CACHE_MODE_CA",
                "cluster_size_must_be_set": "CLUSTER_SIZE_MUST_BE_SET",
            }.get(attribute, attribute.upper())
            raw = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{member}")
            assert value == check(driver.cuKernelGetAttribute(raw, kernel.handle, device)), attribute
    attributes = code.get_kernel("three").attributes
    assert attributes.shared_size_bytes == 64 and attributes.num_regs > 0
    assert code.get_kernel("few").attributes.max_threads_per_block == 64


def test_attribute_types(kernel):
    attributes = kernel.attributes
    assert kernel.attributes is attributes and type(attributes) is KernelAttributes
    for name in INTS:
        value = getattr(attributes, name)
        assert isinstance(value, int) and not isinstance(value, bool)
        assert repr(value) == str(int(value)) and type(pickle.loads(pickle.dumps(value))) is int
        with pytest.raises(AttributeError):
            setattr(attributes, name, 1)
    for name in BOOLS:
        assert type(getattr(attributes, name)) is bool
    with pytest.raises(RuntimeError, match="Kernel.attributes"):
        KernelAttributes()


def test_attributes_per_device(kernel):
    attributes = kernel.attributes
    for device in (0, Device(0), None):
        view = attributes[device]
        assert type(view) is KernelAttributes and view is not attributes
        assert [getattr(view, name) for name in INTS] == [getattr(attributes, name) for name in INTS]
    for wrong, error in (("x", TypeError), (1.0, TypeError), (99, ValueError), (-1, ValueError)):
        with pytest.raises(error, match="device"):
            attributes[wrong]


def test_former_call_spelling(kernel):
    for name in INTS:
        value = getattr(kernel.attributes, name)
        for arguments in ((), (None,), (0,), (Device(0),)):
            with pytest.warns(DeprecationWarning, match=name):
                called = value(*arguments)
            assert type(called) is int and called == value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="device"):
            kernel.attributes.num_regs(99)


def test_settable_attributes_are_not_cached(code):
    kernel = code.get_kernel("dynamic")
    before = kernel.attributes.max_dynamic_shared_size_bytes
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(driver.cuKernelSetAttribute(attribute, before // 2, kernel.handle, check(driver.cuDeviceGet(0))))
    try:
        assert kernel.attributes.max_dynamic_shared_size_bytes == before // 2
    finally:
        check(driver.cuKernelSetAttribute(attribute, before, kernel.handle, check(driver.cuDeviceGet(0))))


def test_active_blocks(code, kernel):
    occupancy = kernel.occupancy
    assert kernel.occupancy is occupancy and type(occupancy) is KernelOccupancy
    Device(0).set_current()
    function = check(driver.cuKernelGetFunction(kernel.handle))
    for threads, shared in ((32, 0), (128, 0), (256, 4096), (5000, 0), (128, 1 << 30)):
        wanted = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared))
        assert occupancy.max_active_blocks_per_multiprocessor(threads, shared) == wanted
    assert occupancy.max_active_blocks_per_multiprocessor(block_size=64, dynamic_shared_memory_size=0) > 0
    for threads in (0, -1):
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
            occupancy.max_active_blocks_per_multiprocessor(threads, 0)
    with pytest.raises(OverflowError, match="dynamic_shared_memory_size"):
        occupancy.max_active_blocks_per_multiprocessor(1, -1)
    for wrong in (("1", 0), (1, "0"), (1, 1.5), (1,)):
        with pytest.raises(TypeError):
            occupancy.max_active_blocks_per_multiprocessor(*wrong)
    with pytest.raises(RuntimeError, match="Kernel.occupancy"):
        KernelOccupancy()


def test_maximum_block_size(code, kernel):
    occupancy = kernel.occupancy
    best = occupancy.max_potential_block_size(dynamic_shared_memory_needed=0, block_size_limit=0)
    assert type(best).__name__ == "MaxPotentialBlockSizeOccupancyResult"
    assert best == (best.min_grid_size, best.max_block_size) and min(best) > 0
    assert pickle.loads(pickle.dumps(best)) == best
    assert occupancy.max_potential_block_size(1024, 100).max_block_size <= 100
    assert code.get_kernel("few").occupancy.max_potential_block_size(0, 0).max_block_size <= 64
    needed = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(lambda threads: 4 * threads)
    address = ctypes.cast(needed, ctypes.c_void_p)
    made = driver.CUoccupancyB2DSize(address.value)
    alias = driver.CUoccupancyB2DSize(_ptr=ctypes.addressof(address))
    assert occupancy.max_potential_block_size(made, 0) == occupancy.max_potential_block_size(alias, 0)
    for wrong in ("x", 1.5, None):
        with pytest.raises(TypeError, match="dynamic_shared_memory_needed"):
            occupancy.max_potential_block_size(wrong, 0)
    with pytest.raises(OverflowError, match="dynamic_shared_memory_needed"):
        occupancy.max_potential_block_size(-1, 0)
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        occupancy.max_potential_block_size(0, -1)


def test_maximum_block_size_with_a_function(code):
    occupancy = code.get_kernel("dynamic").occupancy
    requested = []

    def needed(threads):
        requested.append(threads)
        return 64 * threads

    best = occupancy.max_potential_block_size(needed, 0)
    assert best.max_block_size > 0 and requested and all(type(threads) is int for threads in requested)
    c_type = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)
    callback = c_type(lambda threads: 64 * threads)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert occupancy.max_potential_block_size(driver.CUoccupancyB2DSize(address), 0) == best
    assert occupancy.max_potential_block_size(driver.CUoccupancyB2DSize(), 0) == (
        occupancy.max_potential_block_size(0, 0)
    )


def test_block_size_function_is_found_by_its_variable(code):
    kernel = code.get_kernel("dynamic")
    callback = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(lambda threads: 256 * threads)
    # The memory of a callback object is a variable that holds the address of its function.
    by_variable = driver.CUoccupancyB2DSize(_ptr=ctypes.addressof(callback))
    by_address = driver.CUoccupancyB2DSize(ctypes.cast(callback, ctypes.c_void_p).value)
    assert int(by_variable) == int(by_address)
    best = kernel.occupancy.max_potential_block_size(by_address, 0)
    assert best != kernel.occupancy.max_potential_block_size(0, 0)
    assert kernel.occupancy.max_potential_block_size(by_variable, 0) == best
    function = check(driver.cuKernelGetFunction(kernel.handle))
    for needed in (by_variable, by_address, int(by_address)):
        assert check(driver.cuOccupancyMaxPotentialBlockSize(function, needed, 0, 0)) == tuple(best)
        assert check(driver.cuOccupancyMaxPotentialBlockSizeWithFlags(function, needed, 0, 0, 0)) == tuple(best)
    for nothing in (None, 0, driver.CUoccupancyB2DSize()):
        assert check(driver.cuOccupancyMaxPotentialBlockSize(function, nothing, 0, 0))


def test_what_is_no_block_size_function_raises(code):
    kernel = code.get_kernel("dynamic")
    function = check(driver.cuKernelGetFunction(kernel.handle))
    callback = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(lambda threads: 64 * threads)
    memory = ctypes.create_string_buffer(8)
    wrong = [
        driver.CUoccupancyB2DSize(1),
        # Addresses of data, and one variable too few and too many.
        driver.CUoccupancyB2DSize(ctypes.addressof(memory)),
        driver.CUoccupancyB2DSize(ctypes.addressof(callback)),
        driver.CUoccupancyB2DSize(_ptr=ctypes.cast(callback, ctypes.c_void_p).value),
    ]
    for needed in wrong:
        with pytest.raises(ValueError, match="dynamic_shared_memory_needed.*not the address of a function"):
            kernel.occupancy.max_potential_block_size(needed, 0)
    for needed in [*wrong, 1, ctypes.addressof(memory)]:
        with pytest.raises(ValueError, match="blockSizeToDynamicSMemSize.*not the address of a function"):
            driver.cuOccupancyMaxPotentialBlockSize(function, needed, 0, 0)
        with pytest.raises(ValueError, match="blockSizeToDynamicSMemSize.*not the address of a function"):
            driver.cuOccupancyMaxPotentialBlockSizeWithFlags(function, needed, 0, 0, 0)


def test_exception_of_the_function_propagates(code):
    occupancy = code.get_kernel("dynamic").occupancy

    def fails(threads):
        raise KeyError(threads)

    with pytest.raises(KeyError):
        occupancy.max_potential_block_size(fails, 0)
    for wrong, error in ((lambda _: "x", TypeError), (lambda _: -1, OverflowError), (lambda: 0, TypeError)):
        with pytest.raises(error):
            occupancy.max_potential_block_size(wrong, 0)
    inner = lambda threads: occupancy.max_potential_block_size(lambda t: 4 * t, 0).max_block_size  # noqa: E731
    assert occupancy.max_potential_block_size(inner, 0).max_block_size > 0


def test_available_shared_memory(kernel):
    occupancy = kernel.occupancy
    one = occupancy.available_dynamic_shared_memory_per_block(1, 128)
    # With so many blocks a block's share is below the limit of a single block.
    many = occupancy.available_dynamic_shared_memory_per_block(num_blocks_per_multiprocessor=12, block_size=128)
    assert one > many > 0
    for wrong in ((0, 128), (-1, 128), (1, 0), (100, 1024)):
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
            occupancy.available_dynamic_shared_memory_per_block(*wrong)


def test_cluster_occupancy(kernel):
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    occupancy, plain = kernel.occupancy, LaunchConfig(grid=4, block=128)
    for query in (occupancy.max_potential_cluster_size, occupancy.max_active_clusters):
        if device.compute_capability >= (9, 0):
            assert query(LaunchConfig(grid=4, cluster=2, block=128), stream=stream) > 0
        else:
            with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_SUPPORTED"):
                query(plain, stream=stream)
        for wrong in (5, None):
            with pytest.raises(TypeError, match="config"):
                query(wrong, stream=stream)
            with pytest.raises(TypeError, match="stream"):
                query(plain, stream=wrong)
        with pytest.raises(TypeError):
            query(plain)
        with pytest.raises(TypeError):
            query(plain, stream)


def test_threads_without_a_context(code, kernel):
    import threading

    seen = []

    def work():
        seen.append(kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0))
        seen.append(int(kernel.attributes.num_regs))

    thread = threading.Thread(target=work)
    run_all([thread])
    assert seen == [kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0), kernel.attributes.num_regs]
