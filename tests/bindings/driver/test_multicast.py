"""Multicast objects and the `multimem` instructions, on the CPU device: a GPU needs NVSwitch, and other users of its host may
suffer from a test of it.
"""

import pytest

from helpers.device import on_cpu_device
from helpers.programs import output

pytestmark = pytest.mark.skipif(not on_cpu_device(), reason="needs the CPU device")

HEAD = r"""
import ctypes
import os
import subprocess
import sys
import threading
import time
import numpy as np
from cuda.bindings import driver
from helpers.device import check
from helpers.virtual_memory import access, properties, DESCRIPTOR, NONE, READ

status = driver.CUresult
UNIT = 2 << 20
DEVICES = int(os.environ["CUPYRITE_CPU_DEVICES"])
check(driver.cuInit(0))
contexts = [check(driver.cuCtxCreate(None, 0, d)) for d in range(DEVICES)]


def description(devices=DEVICES, size=UNIT, handles=0, flags=0):
    prop = driver.CUmulticastObjectProp()
    prop.numDevices, prop.size, prop.handleTypes, prop.flags = devices, size, handles, flags
    return prop


def memory(device, size=UNIT, handles=driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE):
    prop = properties(handles)
    prop.location.id = device
    return check(driver.cuMemCreate(size, prop, 0))


def mapped(handle, size=UNIT, devices=range(DEVICES)):
    address = check(driver.cuMemAddressReserve(size, UNIT, 0, 0))
    check(driver.cuMemMap(address, size, 0, handle, 0))
    check(driver.cuMemSetAccess(address, size, [access(device=d) for d in devices], len(devices)))
    return address


def team(devices=DEVICES, size=UNIT):
    handle = check(driver.cuMulticastCreate(description(devices, size)))
    for device in range(devices):
        check(driver.cuMulticastAddDevice(handle, device))
    return handle


def expect(code, result):
    assert result[0] == code, (code, result)


def logged(text):
    with open(os.environ["CUDA_LOG_FILE"]) as file:
        found = file.read()
    assert text in found, found[-2000:]
"""

ALL_REDUCE = r"""
PTX = b'''
.version 8.1
.target sm_90
.address_size 64
.visible .entry all_reduce(.param .u64 p, .param .u32 first)
{
    .reg .b64 a, o; .reg .b32 t, b, n; .reg .f32 f<4>;
    ld.param.u64 a, [p]; ld.param.u32 b, [first];
    mov.u32 t, %ctaid.x; mov.u32 n, %ntid.x; mad.lo.u32 b, t, n, b; mov.u32 t, %tid.x; add.u32 t, t, b;
    mul.wide.u32 o, t, 16; add.u64 a, a, o;
    multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {f0, f1, f2, f3}, [a];
    multimem.st.relaxed.sys.global.v4.f32 [a], {f0, f1, f2, f3};
    ret;
}
'''
handle = team()
own = []
for device in range(DEVICES):
    check(driver.cuCtxSetCurrent(contexts[device]))
    part = memory(device)
    own.append(mapped(part))
    check(driver.cuMulticastBindMem(handle, 0, part, 0, UNIT, 0))
    check(driver.cuMemRelease(part))
    values = np.arange(1 << 15, dtype=np.float32) + 1000 * device
    check(driver.cuMemcpyHtoD(own[device], values.ctypes.data, values.nbytes))
address = mapped(handle)
# Each device reduces its part of the elements.
per_device = (1 << 15) // 4 // DEVICES
for device in range(DEVICES):
    check(driver.cuCtxSetCurrent(contexts[device]))
    module = check(driver.cuModuleLoadData(PTX))
    function = check(driver.cuModuleGetFunction(module, b"all_reduce"))
    arguments = ((int(address), per_device * device), (ctypes.c_uint64, ctypes.c_uint32))
    check(driver.cuLaunchKernel(function, per_device // 128, 1, 1, 128, 1, 1, 0, 0, arguments, 0))
for device in range(DEVICES):
    check(driver.cuCtxSetCurrent(contexts[device]))
    check(driver.cuCtxSynchronize())
expected = DEVICES * np.arange(1 << 15, dtype=np.float32) + 1000 * sum(range(DEVICES))
for device in range(DEVICES):
    out = np.zeros(1 << 15, np.float32)
    check(driver.cuMemcpyDtoH(out.ctypes.data, own[device], out.nbytes))
    assert (out == expected).all(), (device, out[:8])
# Copies cannot access the object, and attributes of the mapping can be queried.
out = np.zeros(4, np.float32)
expect(status.CUDA_ERROR_INVALID_VALUE, driver.cuMemcpyDtoH(out.ctypes.data, address, 16))
expect(status.CUDA_ERROR_INVALID_VALUE, driver.cuMemcpyHtoD(address, out.ctypes.data, 16))
expect(status.CUDA_ERROR_INVALID_VALUE, driver.cuMemsetD32(address, 0, 4))
attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE
assert check(driver.cuPointerGetAttribute(attribute, address)) == UNIT
again = check(driver.cuMemRetainAllocationHandle(int(address)))
assert int(again) == int(handle)
for _ in range(2):
    check(driver.cuMemRelease(handle))
expect(status.CUDA_ERROR_INVALID_VALUE, driver.cuMemRelease(handle))
again = check(driver.cuMemRetainAllocationHandle(int(address)))
check(driver.cuMemRelease(again))
check(driver.cuMemUnmap(address, UNIT))
expect(status.CUDA_ERROR_INVALID_VALUE, driver.cuMulticastAddDevice(again, 0))
print("reduced")
"""

STATUSES = r"""
invalid, unsupported, device = status.CUDA_ERROR_INVALID_VALUE, status.CUDA_ERROR_NOT_SUPPORTED, status.CUDA_ERROR_INVALID_DEVICE
minimum = driver.CUmulticastGranularity_flags.CU_MULTICAST_GRANULARITY_MINIMUM
recommended = driver.CUmulticastGranularity_flags.CU_MULTICAST_GRANULARITY_RECOMMENDED
assert check(driver.cuMulticastGetGranularity(description(), minimum)) == UNIT
assert check(driver.cuMulticastGetGranularity(description(size=1), recommended)) % UNIT == 0
for prop, code in (
    (description(0), invalid),
    (description(DEVICES + 1), invalid),
    (description(flags=1), invalid),
    (description(handles=1 << 20), invalid),
    (description(handles=8), unsupported),
):
    expect(code, driver.cuMulticastCreate(prop))
    expect(code, driver.cuMulticastGetGranularity(prop, minimum))
for size in (0, 1, UNIT + 4096):
    expect(invalid, driver.cuMulticastCreate(description(size=size)))
logged("is not a multiple of the granularity")

handle = check(driver.cuMulticastCreate(description(2)))
part = memory(0)
expect(invalid, driver.cuMulticastAddDevice(part, 0))
expect(invalid, driver.cuMulticastAddDevice(0, 0))
expect(device, driver.cuMulticastAddDevice(handle, DEVICES))
expect(device, driver.cuMulticastAddDevice(handle, -1))
check(driver.cuMulticastAddDevice(handle, 1))
expect(invalid, driver.cuMulticastAddDevice(handle, 1))
logged("device 1 was already added")

# Calls wait for the devices that another thread adds.
threading.Timer(0.3, lambda: check(driver.cuMulticastAddDevice(handle, 0))).start()
began = time.monotonic()
check(driver.cuMulticastBindMem(handle, 0, part, 0, UNIT, 0))
assert time.monotonic() - began > 0.2

expect(invalid, driver.cuMulticastBindMem(handle, 0, part, 0, UNIT, 0))
logged("already bound")
other = memory(1, 2 * UNIT)
expect(invalid, driver.cuMulticastBindMem(handle, 0, other, 0, 2 * UNIT, 0))
expect(invalid, driver.cuMulticastBindMem(handle, UNIT, other, 0, UNIT, 0))
expect(invalid, driver.cuMulticastBindMem(handle, 0, other, 2 * UNIT, UNIT, 0))
expect(invalid, driver.cuMulticastBindMem(handle, 0, other, 0, UNIT, 1))
expect(invalid, driver.cuMulticastBindMem(handle, 0, other, 0, 0, 0))
expect(invalid, driver.cuMulticastBindMem(handle, 0, other, 4096, UNIT, 0))
expect(invalid, driver.cuMulticastBindMem(handle, 0, handle, 0, UNIT, 0))
expect(invalid, driver.cuMulticastBindMem(other, 0, other, 0, UNIT, 0))
if hasattr(driver, "cuMulticastBindMem_v2"):
    expect(device, driver.cuMulticastBindMem_v2(handle, 0, 0, other, 0, UNIT, 0))
check(driver.cuMulticastBindMem(handle, 0, other, UNIT, UNIT, 0))
expect(invalid, driver.cuMulticastUnbind(handle, 1, 0, 2 * UNIT))
expect(invalid, driver.cuMulticastUnbind(handle, 1, UNIT, UNIT))
expect(device, driver.cuMulticastUnbind(handle, 5, 0, UNIT))
check(driver.cuMulticastUnbind(handle, 1, 0, UNIT))
expect(invalid, driver.cuMulticastUnbind(handle, 1, 0, UNIT))

# By address: mapped memory, memory of a pool, and no other.
at = mapped(other, 2 * UNIT)
check(driver.cuMulticastBindAddr(handle, 0, int(at) + UNIT, UNIT, 0))
check(driver.cuMulticastUnbind(handle, 1, 0, UNIT))
expect(invalid, driver.cuMulticastBindAddr(handle, 0, int(at) + UNIT, 2 * UNIT, 0))
expect(invalid, driver.cuMulticastBindAddr(handle, 0, int(at) + 4096, UNIT, 0))
expect(invalid, driver.cuMulticastBindAddr(handle, 0, 0, UNIT, 0))
check(driver.cuCtxSetCurrent(contexts[1]))
plain = check(driver.cuMemAlloc(2 * UNIT))
expect(invalid, driver.cuMulticastBindAddr(handle, 0, -(-int(plain) // UNIT) * UNIT, UNIT, 0))
logged("is not memory of cuMemCreate or of a memory pool")
pooled = check(driver.cuMemAllocAsync(UNIT, 0))
check(driver.cuCtxSynchronize())
if int(pooled) % UNIT == 0:
    check(driver.cuMulticastBindAddr(handle, 0, pooled, UNIT, 0))

# Mappings.
address = check(driver.cuMemAddressReserve(2 * UNIT, UNIT, 0, 0))
expect(invalid, driver.cuMemMap(address, 2 * UNIT, 0, handle, 0))
expect(invalid, driver.cuMemMap(address, UNIT, UNIT, handle, 0))
check(driver.cuMemMap(address, UNIT, 0, handle, 0))
expect(invalid, driver.cuMemMap(address, UNIT, 0, handle, 0))
if DEVICES > 2:
    two = team(2)
    check(driver.cuMemMap(int(address) + UNIT, UNIT, 0, two, 0))
    expect(device, driver.cuMemSetAccess(int(address) + UNIT, UNIT, [access(device=2)], 1))
    expect(device, driver.cuMulticastBindMem(two, 0, memory(2), 0, UNIT, 0))
expect(invalid, driver.cuMemGetAllocationPropertiesFromHandle(handle))

# A team that never becomes complete.
lonely = check(driver.cuMulticastCreate(description()))
expect(status.CUDA_ERROR_ILLEGAL_STATE, driver.cuMulticastBindMem(lonely, 0, part, 0, UNIT, 0))
logged("were added to the multicast object within")

# Descriptors lead back to the object, in this process.
kind = DESCRIPTOR
expect(invalid, driver.cuMemExportToShareableHandle(handle, kind, 0))
shared = check(driver.cuMulticastCreate(description(1, handles=int(kind))))
check(driver.cuMulticastAddDevice(shared, 0))
expect(invalid, driver.cuMulticastBindMem(shared, 0, part, 0, UNIT, 0))
check(driver.cuMulticastBindMem(shared, 0, memory(0, handles=kind), 0, UNIT, 0))
descriptor = check(driver.cuMemExportToShareableHandle(shared, kind, 0))
assert int(check(driver.cuMemImportFromShareableHandle(int(descriptor), kind))) == int(shared)
for _ in range(2):
    check(driver.cuMemRelease(shared))
expect(invalid, driver.cuMemImportFromShareableHandle(int(descriptor), kind))
os.set_inheritable(int(descriptor), True)
subprocess.run([sys.executable, "-c", FOREIGN.format(int(descriptor))], pass_fds=[int(descriptor)], check=True)
print("refused")
"""

FOREIGN = r"""FOREIGN = '''
from cuda.bindings import driver
driver.cuInit(0)
kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
result = driver.cuMemImportFromShareableHandle({}, kind)
assert result[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED, result
'''
"""


def run(program, tmp_path, devices, capability="9.0"):
    environment = {
        "CUPYRITE_CPU_DEVICES": str(devices),
        "CUPYRITE_CPU_COMPUTE_CAPABILITY": capability,
        "CUDA_LOG_FILE": str(tmp_path / "log"),
    }
    return output(HEAD + program, environment=environment)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_kernels_of_all_devices_reduce_memory_of_all_devices(tmp_path, devices):
    assert "reduced" in run(ALL_REDUCE, tmp_path, devices)


@pytest.mark.parametrize("devices", [2, 3])
def test_wrong_uses_have_statuses_and_reasons(tmp_path, devices):
    assert "refused" in run(FOREIGN + STATUSES, tmp_path, devices)


def test_devices_before_compute_capability_9_have_no_multicast(tmp_path):
    program = r"""
attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
assert check(driver.cuDeviceGetAttribute(attribute, 0)) == 0
expect(status.CUDA_ERROR_NOT_SUPPORTED, driver.cuMulticastCreate(description()))
logged("CUPYRITE_CPU_COMPUTE_CAPABILITY")
print("none")
"""
    assert "none" in run(program, tmp_path, 1, "8.9")


def test_the_attribute_says_whether_there_is_multicast(tmp_path):
    program = r"""
attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
assert check(driver.cuDeviceGetAttribute(attribute, 0)) == 1
print("some")
"""
    assert "some" in run(program, tmp_path, 1)
