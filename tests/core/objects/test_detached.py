"""Python objects that are released while a thread is in the driver without the GIL, during a call from Rust."""

import pytest

from helpers.programs import output

DLPACK = """
import ctypes
from cuda.bindings import driver
from cuda.core import Buffer, ContextOptions, Device, MemoryResource
from helpers.device import check
from helpers.dlpack import Managed

device = Device(0)
device.set_current()
stream = device.create_stream()
freed = []


class Resource(MemoryResource):
    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def deallocate(self, ptr, size, *, stream):
        freed.append((ptr, [[] for _ in range(1000)] and size))


def export():
    # The address of a DLPack export, which is all that keeps the buffer alive, and of its deleter.
    memory = device.allocate(64, stream=stream)
    capsule = Buffer.from_handle(int(memory.handle), 64, mr=Resource(), stream=stream).__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    managed = pointer(capsule, b"dltensor")
    name = ctypes.pythonapi.PyCapsule_SetName
    name.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name(capsule, NAME)
    return managed, Managed.from_address(managed).deleter, memory


NAME = b"used_dltensor"
memories = []


class Caller:
    # Called by create_context(), thus on a thread that Rust knows to be attached.
    def __iter__(self):
        managed, deleter, memory = export()
        memories.append(memory)
        # The driver calls the deleter once, on the thread of the failing call, which writes one line.
        callback = check(driver.cuLogsRegisterCallback(driver.CUlogsCallback(deleter), managed))
        status, _ = driver.cuDeviceGet(9999)
        assert int(status) == 101
        check(driver.cuLogsUnregisterCallback(callback))
        return iter(())


for round in range(50):
    try:
        device.create_context(ContextOptions(resources=Caller()))
    except ValueError as error:
        assert "requires resources" in str(error), error
print(len(freed), {size for _, size in freed})
"""


# Of a GPU's driver, the number of lines is not known.
@pytest.mark.cpu
def test_dlpack_deleter_is_called_by_the_driver_during_a_call():
    assert output(DLPACK).split(maxsplit=1) == ["50", "{64}\n"]
