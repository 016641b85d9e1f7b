"""Several devices: peer access, copies between them, memory that kernels may access. Two devices are configured on the
CPU device.
"""

import pytest
from cuda.bindings import driver

from helpers.device import check, on_cpu_device
from helpers.programs import python

PROGRAM = r"""
import sys
import numpy as np
from cuda.bindings import driver
from helpers.device import Module, check

check(driver.cuInit(0))
on_cpu = check(driver.cuDeviceGetName(64, 0)).startswith(b"CPU")
status = driver.CUresult
SOURCE = 'extern "C" __global__ void add(int *p, int n) { int i = threadIdx.x; if (i < n) p[i] += 1; }'
contexts, modules, memory = [], [], []
for device in (0, 1):
    contexts.append(check(driver.cuCtxCreate(None, 0, device)))
    modules.append(Module.from_source(SOURCE))
    memory.append(check(driver.cuMemAlloc(128)))
    check(driver.cuMemsetD32(memory[-1], 100 * (device + 1), 32))
    check(driver.cuCtxSynchronize())


def current(device):
    check(driver.cuCtxSetCurrent(contexts[device]))


def read(device):
    current(device)
    out = np.zeros(32, np.int32)
    check(driver.cuMemcpyDtoH(out.ctypes.data, memory[device], 128))
    return [int(v) for v in np.unique(out)]


def add(device, pointer):
    current(device)
    modules[device].launch("add", 1, 32, np.uint64(int(pointer)), np.int32(32))
    return driver.cuCtxSynchronize()[0]


def refused():
    assert check(driver.cuDeviceCanAccessPeer(0, 1)) == 1
    assert check(driver.cuDeviceCanAccessPeer(0, 0)) == 0
    current(0)
    assert driver.cuCtxDisablePeerAccess(contexts[1])[0] == status.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
    assert driver.cuCtxEnablePeerAccess(contexts[0], 0)[0] != status.CUDA_SUCCESS
    assert driver.cuCtxEnablePeerAccess(contexts[1], 1)[0] == status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuCtxEnablePeerAccess(contexts[1], 0))
    assert driver.cuCtxEnablePeerAccess(contexts[1], 0)[0] == status.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
    check(driver.cuCtxDisablePeerAccess(contexts[1]))


def copies():
    current(0)
    check(driver.cuMemcpyPeer(memory[0], contexts[0], memory[1], contexts[1], 128))
    check(driver.cuCtxSynchronize())
    assert read(0) == [200]
    check(driver.cuMemsetD32(memory[0], 7, 32))
    check(driver.cuCtxSynchronize())
    # Under unified addressing an ordinary copy knows where memory lies.
    check(driver.cuMemcpy(memory[1], memory[0], 128))
    check(driver.cuCtxSynchronize())
    assert read(1) == [7]


def kernels():
    current(0)
    check(driver.cuCtxEnablePeerAccess(contexts[1], 0))
    assert add(0, memory[1]) == status.CUDA_SUCCESS
    assert read(1) == [201]
    # The permission goes one way only.
    assert add(1, memory[0]) == status.CUDA_ERROR_ILLEGAL_ADDRESS


def no_longer():
    current(0)
    check(driver.cuCtxEnablePeerAccess(contexts[1], 0))
    assert add(0, memory[1]) == status.CUDA_SUCCESS
    check(driver.cuCtxDisablePeerAccess(contexts[1]))
    assert add(0, memory[1]) == status.CUDA_ERROR_ILLEGAL_ADDRESS


def pools():
    current(1)
    pool = check(driver.cuDeviceGetDefaultMemPool(1))
    stream = check(driver.cuStreamCreate(1))
    pointer = check(driver.cuMemAllocAsync(128, stream))
    check(driver.cuMemsetD32Async(pointer, 5, 32, stream))
    check(driver.cuStreamSynchronize(stream))
    here = driver.CUmemLocation()
    here.type, here.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
    access = driver.CUmemAccess_flags
    assert check(driver.cuMemPoolGetAccess(pool, here)) == access.CU_MEM_ACCESS_FLAGS_PROT_NONE
    description = driver.CUmemAccessDesc()
    description.location, description.flags = here, access.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    # What is allocated already becomes accessible, too.
    check(driver.cuMemPoolSetAccess(pool, [description], 1))
    assert check(driver.cuMemPoolGetAccess(pool, here)) == access.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    assert add(0, pointer) == status.CUDA_SUCCESS
    out = np.zeros(32, np.int32)
    check(driver.cuMemcpyDtoH(out.ctypes.data, pointer, 128))
    assert (out == 6).all()
    description.flags = access.CU_MEM_ACCESS_FLAGS_PROT_NONE
    check(driver.cuMemPoolSetAccess(pool, [description], 1))
    assert add(0, pointer) == status.CUDA_ERROR_ILLEGAL_ADDRESS


def mappings():
    from helpers.virtual_memory import access, properties

    prop = properties()
    prop.location.id = 1
    option = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
    unit = int(check(driver.cuMemGetAllocationGranularity(prop, option)))
    base = check(driver.cuMemAddressReserve(unit, 0, 0, 0))
    handle = check(driver.cuMemCreate(unit, prop, 0))
    check(driver.cuMemMap(base, unit, 0, handle, 0))
    check(driver.cuMemSetAccess(base, unit, [access(device=1), access(device=0)], 2))
    current(1)
    check(driver.cuMemsetD32(base, 1, 32))
    check(driver.cuCtxSynchronize())
    assert add(0, base) == status.CUDA_SUCCESS
    assert add(1, base) == status.CUDA_SUCCESS
    out = np.zeros(32, np.int32)
    check(driver.cuMemcpyDtoH(out.ctypes.data, base, 128))
    assert (out == 3).all()
    ordinal = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    assert check(driver.cuPointerGetAttribute(ordinal, int(base))) == 1


def everywhere():
    pinned = check(driver.cuMemHostAlloc(128, driver.CU_MEMHOSTALLOC_PORTABLE))
    managed = check(driver.cuMemAllocManaged(128, 1))
    for pointer in (pinned, managed):
        check(driver.cuMemsetD32(int(pointer), 0, 32))
        check(driver.cuCtxSynchronize())
        assert add(0, pointer) == status.CUDA_SUCCESS
        assert add(1, pointer) == status.CUDA_SUCCESS


{case}()
print("fine")
"""


@pytest.mark.parametrize("case", ["refused", "copies", "kernels", "no_longer", "pools", "mappings", "everywhere"])
def test_two_devices(case):
    environment = {}
    if on_cpu_device():
        environment["CUPYRITE_CPU_DEVICES"] = "2"
    elif check(driver.cuDeviceGetCount()) < 2 or not check(driver.cuDeviceCanAccessPeer(0, 1)):
        pytest.skip("needs two GPUs that can access each other")
    program = PROGRAM.replace("{case}", case)
    run = python(program, environment=environment)
    assert run.returncode == 0 and run.stdout.endswith("fine\n"), run.stderr
    if case in ("kernels", "no_longer") and on_cpu_device():
        assert "may not access: cuCtxEnablePeerAccess" in run.stderr


def test_host_atomic_capabilities():
    check(driver.cuInit(0))
    if check(driver.cuDriverGetVersion()) < 13000:
        pytest.skip("the driver is older than CUDA 13")
    operation, can = driver.CUatomicOperation, driver.CUatomicOperationCapability
    requested = [operation.CU_ATOMIC_OPERATION_INTEGER_ADD, operation.CU_ATOMIC_OPERATION_CAS]
    reported = check(driver.cuDeviceGetHostAtomicCapabilities(requested, 2, 0))
    assert len(reported) == 2
    if on_cpu_device():
        assert all(int(t) & int(can.CU_ATOMIC_CAPABILITY_SCALAR_64) for t in reported)
        status = driver.cuDeviceGetHostAtomicCapabilities([operation.CU_ATOMIC_OPERATION_MAX], 1, 0)[0]
        assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE
        assert (
            driver.cuDeviceGetHostAtomicCapabilities(requested, 2, 99)[0] == driver.CUresult.CUDA_ERROR_INVALID_DEVICE
        )
