"""The content of handles for other processes, as numba-cuda pickles it."""

import pickle

import pytest
from cuda.bindings import driver, runtime

HANDLES = [
    driver.CUipcMemHandle,
    driver.CUipcEventHandle,
    driver.CUmemPoolPtrExportData,
    runtime.cudaIpcMemHandle_t,
    runtime.cudaIpcEventHandle_t,
    runtime.cudaMemPoolPtrExportData,
]
CONTENT = bytes(range(64))


@pytest.mark.parametrize("kind", HANDLES, ids=lambda kind: kind.__name__)
def test_content_can_be_read_pickled_and_set(kind):
    first, second = kind(), kind()
    assert first.reserved == bytes(64)
    first.reserved = CONTENT
    second.reserved = pickle.loads(pickle.dumps(first.reserved))
    assert second.reserved == CONTENT
    assert kind(first.getPtr()).reserved == CONTENT


@pytest.mark.parametrize("kind", HANDLES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("value", [b"", bytes(63), bytes(65), "x" * 64, 7, None], ids=repr)
def test_other_content_is_refused_and_changes_nothing(kind, value):
    handle = kind()
    handle.reserved = CONTENT
    with pytest.raises((TypeError, ValueError), match="reserved"):
        handle.reserved = value
    assert handle.reserved == CONTENT


def test_the_handle_of_an_allocation_holds_bytes_of_the_driver():
    driver.cuInit(0)
    status, context = driver.cuDevicePrimaryCtxRetain(0)
    assert status == 0
    driver.cuCtxSetCurrent(context)
    status, pointer = driver.cuMemAlloc(1024)
    assert status == 0
    status, handle = driver.cuIpcGetMemHandle(pointer)
    if status == 0:
        assert len(handle.reserved) == 64 and any(handle.reserved)
    driver.cuMemFree(pointer)
    driver.cuDevicePrimaryCtxRelease(0)
