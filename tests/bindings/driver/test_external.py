"""Memory and semaphores of other APIs: shared memory objects, eventfds and counters that two processes use."""

import mmap
import os
import struct
import time
from multiprocessing import reduction

import numpy as np
import pytest
from cuda.bindings import driver, runtime

from helpers.device import check, on_cpu_device
from helpers.processes import process
from helpers.programs import python

pytestmark = pytest.mark.skipif(not on_cpu_device(), reason="a GPU imports memory of a GPU's driver only")

R = driver.CUresult
MEMORY = driver.CUexternalMemoryHandleType
SEMAPHORE = driver.CUexternalSemaphoreHandleType
SIZE = 1 << 16
N = 1000


@pytest.fixture(autouse=True)
def context():
    check(driver.cuInit(0))
    context = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
    yield context
    check(driver.cuCtxDestroy(context))


def make_object(size=SIZE):
    fd = os.memfd_create("test", os.MFD_CLOEXEC)
    os.ftruncate(fd, size)
    return fd


def import_memory(fd, size=SIZE, kind=MEMORY.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD):
    desc = driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
    desc.type, desc.handle.fd, desc.size = kind, fd, size
    return check(driver.cuImportExternalMemory(desc))


def map_buffer(memory, offset=0, size=SIZE):
    desc = driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
    desc.offset, desc.size = offset, size
    return check(driver.cuExternalMemoryGetMappedBuffer(memory, desc))


def import_semaphore(fd, kind):
    desc = driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
    desc.type, desc.handle.fd = kind, fd
    return check(driver.cuImportExternalSemaphore(desc))


def binary(fd):
    return import_semaphore(fd, SEMAPHORE.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD)


def timeline(fd):
    return import_semaphore(fd, SEMAPHORE.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD)


def wait(semaphore, value=0, stream=0):
    params = driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()
    params.params.fence.value = value
    check(driver.cuWaitExternalSemaphoresAsync([semaphore], [params], 1, stream))


def signal(semaphore, value=0, stream=0):
    params = driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()
    params.params.fence.value = value
    check(driver.cuSignalExternalSemaphoresAsync([semaphore], [params], 1, stream))


def new_stream():
    return check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))


def _peer(pipe):
    """The other process: doubles what the first one writes, ordered by a timeline semaphore alone."""
    memory, counter = (descriptor.detach() for descriptor in pipe.receive())
    check(driver.cuInit(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(0))))
    address = map_buffer(import_memory(memory))
    semaphore, stream = timeline(counter), new_stream()
    values = np.zeros(N, np.int32)
    wait(semaphore, 1, stream)
    check(driver.cuMemcpyDtoHAsync(values, address, values.nbytes, stream))
    check(driver.cuStreamSynchronize(stream))
    values *= 2
    check(driver.cuMemcpyHtoDAsync(address, values, values.nbytes, stream))
    signal(semaphore, 2, stream)
    check(driver.cuStreamSynchronize(stream))
    pipe.send("done")


def test_two_processes_share_memory_and_a_timeline_semaphore():
    memory, counter = make_object(), make_object(8)
    with process(_peer) as peer:
        peer.send([reduction.DupFd(memory), reduction.DupFd(counter)])
        address, semaphore, stream = map_buffer(import_memory(memory)), timeline(counter), new_stream()
        values, out = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
        check(driver.cuMemcpyHtoDAsync(address, values, values.nbytes, stream))
        signal(semaphore, 1, stream)
        wait(semaphore, 2, stream)
        check(driver.cuMemcpyDtoHAsync(out, address, out.nbytes, stream))
        check(driver.cuStreamSynchronize(stream))
        assert (out == 2 * values).all()
        assert peer.receive() == "done"
        check(driver.cuMemFree(address))


def test_a_program_without_cuda_signals_and_waits():
    fd, event, counter = make_object(), os.eventfd(0), make_object(8)
    with mmap.mmap(fd, SIZE) as view, mmap.mmap(counter, 8) as value:
        address, stream = map_buffer(import_memory(os.dup(fd))), new_stream()
        start, end = binary(os.dup(event)), timeline(os.dup(counter))
        wait(start, stream=stream)
        check(driver.cuMemsetD8Async(address, 7, SIZE, stream))
        signal(end, 5, stream)
        time.sleep(0.05)
        assert view[0] == 0 and driver.cuStreamQuery(stream)[0] == R.CUDA_ERROR_NOT_READY
        os.eventfd_write(event, 1)
        while struct.unpack("Q", value)[0] < 5:
            time.sleep(0.001)
        assert view[:] == bytes([7]) * SIZE
        check(driver.cuStreamSynchronize(stream))
    for descriptor in (fd, event, counter):
        os.close(descriptor)


def test_a_failed_import_keeps_the_descriptor():
    fd = make_object()
    desc = driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
    desc.type, desc.handle.fd, desc.size = MEMORY.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, fd, SIZE + 1
    assert driver.cuImportExternalMemory(desc)[0] == R.CUDA_ERROR_INVALID_VALUE
    desc.type = MEMORY.CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF
    assert driver.cuImportExternalMemory(desc)[0] == R.CUDA_ERROR_NOT_SUPPORTED
    import_memory(fd)
    with pytest.raises(OSError):
        os.fstat(fd)


def test_the_descriptor_of_a_range_is_imported_again():
    address = check(driver.cuMemAlloc(1 << 20))
    kind = driver.CUmemRangeHandleType.CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
    fd = check(driver.cuMemGetHandleForAddressRange(address, 1 << 20, kind, 0))
    mapped = map_buffer(import_memory(fd, 1 << 20, MEMORY.CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD), 0, 1 << 20)
    check(driver.cuMemsetD8(address, 9, 1 << 20))
    out = bytearray(16)
    check(driver.cuMemcpyDtoH(out, int(mapped) + 4096, 16))
    assert out == bytes([9]) * 16
    check(driver.cuMemFree(mapped))
    check(driver.cuMemFree(address))


def test_the_runtime_api():
    fd, counter = make_object(), make_object(8)
    desc = runtime.cudaExternalMemoryHandleDesc()
    desc.type = runtime.cudaExternalMemoryHandleType.cudaExternalMemoryHandleTypeOpaqueFd
    desc.handle.fd, desc.size = os.dup(fd), SIZE
    memory = check(runtime.cudaImportExternalMemory(desc))
    buffer = runtime.cudaExternalMemoryBufferDesc()
    buffer.offset, buffer.size = 4096, 8192
    address = check(runtime.cudaExternalMemoryGetMappedBuffer(memory, buffer))
    array = runtime.cudaExternalMemoryMipmappedArrayDesc()
    unsigned = runtime.cudaChannelFormatKind.cudaChannelFormatKindUnsigned
    array.formatDesc = check(runtime.cudaCreateChannelDesc(8, 0, 0, 0, unsigned))
    array.extent = runtime.make_cudaExtent(32, 16, 0)
    array.numLevels = 2
    mipmapped = check(runtime.cudaExternalMemoryGetMappedMipmappedArray(memory, array))
    check(runtime.cudaFreeMipmappedArray(mipmapped))
    semaphore_desc = runtime.cudaExternalSemaphoreHandleDesc()
    semaphore_desc.type = runtime.cudaExternalSemaphoreHandleType.cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd
    semaphore_desc.handle.fd = os.dup(counter)
    semaphore = check(runtime.cudaImportExternalSemaphore(semaphore_desc))
    stream = check(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking))
    waiting, signaling = runtime.cudaExternalSemaphoreWaitParams(), runtime.cudaExternalSemaphoreSignalParams()
    waiting.params.fence.value, signaling.params.fence.value = 1, 2
    check(runtime.cudaWaitExternalSemaphoresAsync([semaphore], [waiting], 1, stream))
    check(runtime.cudaMemsetAsync(address, 3, 8192, stream))
    check(runtime.cudaSignalExternalSemaphoresAsync([semaphore], [signaling], 1, stream))
    assert runtime.cudaStreamQuery(stream)[0] == runtime.cudaError_t.cudaErrorNotReady
    os.pwrite(counter, struct.pack("Q", 1), 0)
    check(runtime.cudaStreamSynchronize(stream))
    assert struct.unpack("Q", os.pread(counter, 8, 0)) == (2,)
    assert os.pread(fd, 2, 4096) == b"\3\3"
    # As nodes of a graph.
    graph = check(runtime.cudaGraphCreate(0))
    node = runtime.cudaExternalSemaphoreSignalNodeParams()
    node.extSemArray, node.paramsArray, node.numExtSems = [semaphore], [signaling], 1
    signaling.params.fence.value = 7
    node.paramsArray = [signaling]
    first = check(runtime.cudaGraphAddExternalSemaphoresSignalNode(graph, None, 0, node))
    assert check(runtime.cudaGraphExternalSemaphoresSignalNodeGetParams(first)).numExtSems == 1
    check(runtime.cudaGraphExternalSemaphoresSignalNodeSetParams(first, node))
    executable = check(runtime.cudaGraphInstantiate(graph, 0))
    check(runtime.cudaGraphLaunch(executable, stream))
    check(runtime.cudaStreamSynchronize(stream))
    assert struct.unpack("Q", os.pread(counter, 8, 0)) == (7,)
    signaling.params.fence.value = 9
    node.paramsArray = [signaling]
    check(runtime.cudaGraphExecExternalSemaphoresSignalNodeSetParams(executable, first, node))
    check(runtime.cudaGraphLaunch(executable, stream))
    check(runtime.cudaStreamSynchronize(stream))
    assert struct.unpack("Q", os.pread(counter, 8, 0)) == (9,)
    check(runtime.cudaDestroyExternalSemaphore(semaphore))
    check(runtime.cudaFree(address))
    check(runtime.cudaDestroyExternalMemory(memory))
    error = runtime.cudaError_t
    assert runtime.cudaDestroyExternalMemory(memory)[0] == error.cudaErrorInvalidResourceHandle
    assert runtime.cudaDestroyExternalMemory(0)[0] == error.cudaErrorInvalidValue
    for handle in (fd, counter):
        os.close(handle)


PENDING = """
import os, sys
from cuda.bindings import driver, runtime
from helpers.device import check
check(driver.cuInit(0))
check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(0))))
desc = driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
desc.type = driver.CUexternalSemaphoreHandleType.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD
desc.handle.fd = os.eventfd(0)
semaphore = check(driver.cuImportExternalSemaphore(desc))
stream = check(driver.cuStreamCreate(1))
params = driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()
for target in (stream, 0):
    check(driver.cuWaitExternalSemaphoresAsync([semaphore], [params], 1, target))
"""


@pytest.mark.parametrize(
    "end",
    [
        "",
        "sys.exit(0)",
        "check(driver.cuStreamDestroy(stream))",
        "check(driver.cuDestroyExternalSemaphore(semaphore))",
        "check(driver.cuDevicePrimaryCtxReset(0))",
        "check(runtime.cudaDeviceReset()); assert runtime.cudaFree(0)[0] == 0",
    ],
)
def test_a_process_with_a_pending_wait_ends(end):
    done = python(PENDING + end, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
