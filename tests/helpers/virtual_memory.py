"""Descriptions for the driver's virtual memory management."""

from cuda.bindings import driver

DEVICE = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
READ_WRITE = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
READ = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ
NONE = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
DESCRIPTOR = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


def properties(handles=driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE):
    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = DEVICE
    prop.location.id = 0
    prop.requestedHandleTypes = handles
    return prop


def access(flags=READ_WRITE, device=0):
    description = driver.CUmemAccessDesc()
    description.location.type = DEVICE
    description.location.id = device
    description.flags = flags
    return description
