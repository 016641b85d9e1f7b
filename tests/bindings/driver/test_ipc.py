"""Memory and events shared between processes: pools, pool pointers, memory handles, event handles."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import time
from multiprocessing import reduction

import numpy as np
import pytest
from cuda.bindings import driver, runtime

from helpers.device import check, on_cpu_device
from helpers.processes import LIMIT, Bounded

POSIX = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
NONE = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE
INTERPROCESS = 2 | 4  # CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS
LAZY_PEERS = 1
N = 1000


def make_pool(handle_type=POSIX):
    props = driver.CUmemPoolProps()
    props.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    props.handleTypes = handle_type
    props.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    props.location.id = 0
    return check(driver.cuMemPoolCreate(props))


def pack(handle):
    """The 64 bytes of a handle."""
    return ctypes.string_at(int(handle.getPtr()), 64)


def unpack(kind, data):
    """The inverse of `pack`."""
    handle = kind()
    ctypes.memmove(int(handle.getPtr()), data, 64)
    return handle


def write(address, values):
    check(driver.cuMemcpyHtoD(address, values, values.nbytes))
    # From pageable memory the copy returns once the bytes are staged, possibly before they arrived. Later work of this
    # process is ordered after them, but another process could read too early.
    check(driver.cuCtxSynchronize())


def read(address, count=N):
    out = np.zeros(count, np.int32)
    check(driver.cuMemcpyDtoH(out, address, out.nbytes))
    return out


def start():
    """Makes a context current in a new process."""
    check(driver.cuInit(0))
    context = check(driver.cuDevicePrimaryCtxRetain(0))
    check(driver.cuCtxSetCurrent(context))
    return context


# The tasks of the other process; each receives messages from the pipe and answers.


def _import_pool(pipe):
    descriptor = pipe.recv()
    with _received(descriptor) as fd:
        pool = check(driver.cuMemPoolImportFromShareableHandle(fd, POSIX, 0))
    check_foreign_pool(pool)
    for data in iter(pipe.recv, None):
        export = unpack(driver.CUmemPoolPtrExportData, data)
        address = check(driver.cuMemPoolImportPointer(pool, export))
        values = read(address)
        write(address, values + 1)
        pipe.send(values.tolist())
        check(driver.cuMemFreeAsync(address, 0) if len(values) % 2 else driver.cuMemFree(address))
        check(driver.cuCtxSynchronize())
    check(driver.cuMemPoolDestroy(pool))


def check_foreign_pool(pool):
    for status, *_ in (driver.cuMemAllocFromPoolAsync(64, pool, 0), driver.cuDeviceSetMemPool(0, pool)):
        # CUDA does not specify the status.
        assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE if on_cpu_device() else int(status)


@contextlib.contextmanager
def _received(descriptor):
    fd = descriptor.detach()
    try:
        yield fd
    finally:
        os.close(fd)


def _open_memory(pipe):
    for data in iter(pipe.recv, None):
        handle = unpack(driver.CUipcMemHandle, data)
        status, address = driver.cuIpcOpenMemHandle(handle, LAZY_PEERS)
        if int(status):
            pipe.send(int(status))
            continue
        values = read(address)
        write(address, values + 1)
        # Opened again: the same address, closed once per open.
        assert int(check(driver.cuIpcOpenMemHandle(handle, LAZY_PEERS))) == int(address)
        if on_cpu_device():
            # Undefined according to CUDA.
            for call in (
                driver.cuMemFree(address),
                driver.cuMemFreeAsync(address, 0),
                driver.cuIpcGetMemHandle(address),
            ):
                assert call[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE
        check(driver.cuIpcCloseMemHandle(address))
        assert (read(address) == values + 1).all()
        check(driver.cuIpcCloseMemHandle(address))
        (status,) = driver.cuIpcCloseMemHandle(address)
        assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE if on_cpu_device() else int(status)
        pipe.send(values.tolist())


def _runtime_memory(pipe):
    handle = unpack(runtime.cudaIpcMemHandle_t, pipe.recv())
    address = check(runtime.cudaIpcOpenMemHandle(handle, runtime.cudaIpcMemLazyEnablePeerAccess))
    out = np.zeros(N, np.int32)
    kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    check(runtime.cudaMemcpy(out, address, out.nbytes, kind))
    check(runtime.cudaIpcCloseMemHandle(address))
    event = check(runtime.cudaIpcOpenEventHandle(unpack(runtime.cudaIpcEventHandle_t, pipe.recv())))
    check(runtime.cudaEventSynchronize(event))
    check(runtime.cudaEventDestroy(event))
    pipe.send(out.tolist())


def _give_memory(pipe):
    """Exports handles, then waits for a message or to be killed."""
    address = check(driver.cuMemAlloc(4 * N))
    write(address, np.full(N, 5, np.int32))
    event = check(driver.cuEventCreate(INTERPROCESS))
    pool = make_pool()
    piece = check(driver.cuMemAllocFromPoolAsync(4 * N, pool, 0))
    check(driver.cuCtxSynchronize())
    pipe.send(pack(check(driver.cuIpcGetMemHandle(address))))
    pipe.send(pack(check(driver.cuIpcGetEventHandle(event))))
    pipe.send(reduction.DupFd(check(driver.cuMemPoolExportToShareableHandle(pool, POSIX, 0))))
    pipe.send(pack(check(driver.cuMemPoolExportPointer(piece))))
    if pipe.recv() == "record":
        # A record that never completes: the stream waits for a value that is never written.
        stream = check(driver.cuStreamCreate(1))
        check(driver.cuStreamWaitValue32(stream, address, 77, 1))
        check(driver.cuEventRecord(event, stream))
        pipe.send("recorded")
        pipe.recv()


def _follow_event(pipe):
    """Waits for the other process's event in a stream and records its own."""
    event = unpack(driver.CUipcEventHandle, pipe.recv())
    memory = unpack(driver.CUipcMemHandle, pipe.recv())
    event = check(driver.cuIpcOpenEventHandle(event))
    address = check(driver.cuIpcOpenMemHandle(memory, LAZY_PEERS))
    stream = check(driver.cuStreamCreate(1))
    pipe.send("ready")
    pipe.recv()  # recorded
    (query,) = driver.cuEventQuery(event)
    check(driver.cuStreamWaitEvent(stream, event, 0))
    check(driver.cuMemsetD32Async(int(address) + 4, 9, 1, stream))
    pipe.send(int(query))
    check(driver.cuEventRecord(event, stream))
    pipe.send("recorded")
    check(driver.cuEventSynchronize(event))
    pipe.send(read(address, 2).tolist())
    pipe.recv()
    check(driver.cuEventDestroy(event))
    check(driver.cuIpcCloseMemHandle(address))


def _run(task, pipe):
    start()
    task(pipe)


@contextlib.contextmanager
def other(task, method="spawn"):
    """Another process that runs `task`, and a pipe to it. It must succeed unless it is killed."""
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(task, theirs), daemon=True)
    process.start()
    theirs.close()
    process.killed = False
    try:
        yield process, Bounded(ours)
        process.join(LIMIT)
        assert process.killed or process.exitcode == 0
    finally:
        process.kill()
        process.join(LIMIT)


def kill(process):
    process.killed = True
    os.kill(process.pid, signal.SIGKILL)


@pytest.fixture
def primary():
    context = start()
    yield context
    check(driver.cuCtxSynchronize())
    check(driver.cuDevicePrimaryCtxRelease(0))


def open_descriptors():
    """The number of shared-memory descriptors; multiprocessing opens others."""
    names = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sum("cupyrite-" in name for name in names)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_imported_pool_shares_its_memory(primary, method):
    pool = make_pool()
    before = open_descriptors()
    with other(_import_pool, method) as (_, pipe):
        fd = check(driver.cuMemPoolExportToShareableHandle(pool, POSIX, 0))
        pipe.send(reduction.DupFd(fd))
        os.close(fd)
        for i in range(3):
            address = check(driver.cuMemAllocFromPoolAsync(4 * N, pool, 0))
            check(driver.cuStreamSynchronize(0))
            write(address, np.arange(N, dtype=np.int32) + i)
            data = check(driver.cuMemPoolExportPointer(address))
            if on_cpu_device():
                assert pack(data) == pack(check(driver.cuMemPoolExportPointer(address)))
            pipe.send(pack(data))
            assert pipe.recv() == list(range(i, N + i))
            # Data of the other process remains after it released the memory.
            assert (read(address) == np.arange(N) + i + 1).all()
            check(driver.cuMemFreeAsync(address, 0))
        pipe.send(None)
    check(driver.cuMemPoolDestroy(pool))
    assert open_descriptors() <= before


@pytest.mark.cpu
def test_pool_import_in_one_process(primary):
    # A single process controls the order: freed, foreign and forged pointers are told apart.
    pool, another, plain = make_pool(), make_pool(), make_pool(NONE)
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES
    assert check(driver.cuDeviceGetAttribute(attribute, 0)) == int(POSIX)
    invalid = driver.CUresult.CUDA_ERROR_INVALID_VALUE
    assert driver.cuMemPoolExportToShareableHandle(plain, POSIX, 0)[0] == invalid
    assert driver.cuMemPoolExportToShareableHandle(pool, NONE, 0)[0] == invalid
    assert driver.cuMemPoolExportToShareableHandle(pool, POSIX, 1)[0] == invalid
    fd = check(driver.cuMemPoolExportToShareableHandle(pool, POSIX, 0))
    imported = check(driver.cuMemPoolImportFromShareableHandle(fd, POSIX, 0))
    os.close(fd)
    for bad in (fd, 1 << 20, 0):
        assert driver.cuMemPoolImportFromShareableHandle(bad, POSIX, 0)[0] == invalid
    assert driver.cuMemPoolExportToShareableHandle(imported, POSIX, 0)[0] == invalid
    check_foreign_pool(imported)

    address = check(driver.cuMemAllocFromPoolAsync(4 * N, pool, 0))
    data = check(driver.cuMemPoolExportPointer(address))
    window = check(driver.cuMemPoolImportPointer(imported, data))
    assert int(window) != int(address)
    write(address, np.full(N, 3, np.int32))
    assert (read(window) == 3).all()
    # The mapping is exactly as large as the allocation.
    assert driver.cuMemcpyDtoH(np.zeros(N + 1, np.int32), window, 4 * N + 4)[0] == invalid
    attributes = driver.CUpointer_attribute
    ordinal = attributes.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    assert check(driver.cuPointerGetAttribute(ordinal, window)) == 0
    handle = attributes.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
    assert int(check(driver.cuPointerGetAttribute(handle, window))) == int(imported)

    assert driver.cuMemPoolExportPointer(window)[0] == invalid
    assert driver.cuMemPoolExportPointer(int(address) + 4)[0] == invalid
    own = check(driver.cuMemAlloc(64))
    assert driver.cuMemPoolExportPointer(own)[0] == invalid
    check(driver.cuMemFree(own))
    assert driver.cuMemPoolImportPointer(pool, data)[0] == invalid
    fd = check(driver.cuMemPoolExportToShareableHandle(another, POSIX, 0))
    wrong = check(driver.cuMemPoolImportFromShareableHandle(fd, POSIX, 0))
    os.close(fd)
    assert driver.cuMemPoolImportPointer(wrong, data)[0] == invalid
    garbage = unpack(driver.CUmemPoolPtrExportData, bytes(64))
    assert driver.cuMemPoolImportPointer(imported, garbage)[0] == invalid

    check(driver.cuMemFree(window))
    assert (read(address) == 3).all()
    check(driver.cuMemFreeAsync(address, 0))
    check(driver.cuStreamSynchronize(0))
    # Freed; also once its memory is reused.
    assert driver.cuMemPoolImportPointer(imported, data)[0] == invalid
    again = check(driver.cuMemAllocFromPoolAsync(4 * N, pool, 0))
    assert driver.cuMemPoolImportPointer(imported, data)[0] == invalid
    check(driver.cuMemFree(again))
    for p in (pool, another, plain, imported, wrong):
        check(driver.cuMemPoolDestroy(p))


@pytest.mark.cpu
def test_pool_properties_are_checked(primary):
    props = driver.CUmemPoolProps()
    props.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    props.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    types = driver.CUmemAllocationHandleType
    for refused in (types.CU_MEM_HANDLE_TYPE_WIN32, types.CU_MEM_HANDLE_TYPE_FABRIC):
        props.handleTypes = refused
        assert driver.cuMemPoolCreate(props)[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED
    props.handleTypes = POSIX
    props.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_MANAGED
    assert driver.cuMemPoolCreate(props)[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED


@pytest.mark.parametrize("count", [N, 1 << 20])
def test_memory_handle(primary, count):
    address = check(driver.cuMemAlloc(4 * count))
    neighbour = check(driver.cuMemAlloc(4 * N))
    write(address, np.arange(N, dtype=np.int32))
    write(neighbour, np.full(N, 8, np.int32))
    with other(_open_memory) as (_, pipe):
        handle = check(driver.cuIpcGetMemHandle(address))
        assert pack(handle) == pack(check(driver.cuIpcGetMemHandle(address)))
        pipe.send(pack(handle))
        assert pipe.recv() == list(range(N))
        assert (read(address) == np.arange(N) + 1).all()
        assert (read(neighbour) == 8).all()
        pipe.send(pack(handle))
        assert pipe.recv() == list(range(1, N + 1))
        if on_cpu_device():
            check(driver.cuMemFree(address))
            pipe.send(pack(handle))
            assert pipe.recv() == int(driver.CUresult.CUDA_ERROR_INVALID_HANDLE)
            pipe.send(bytes(64))
            assert pipe.recv() == int(driver.CUresult.CUDA_ERROR_INVALID_HANDLE)
            address = None
        pipe.send(None)
    for a in (address, neighbour):
        if a is not None:
            check(driver.cuMemFree(a))


def test_runtime_handles(primary):
    address = check(runtime.cudaMalloc(4 * N))
    kind = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
    values = np.arange(N, dtype=np.int32)
    check(runtime.cudaMemcpy(address, values, values.nbytes, kind))
    event = check(runtime.cudaEventCreateWithFlags(INTERPROCESS))
    check(runtime.cudaEventRecord(event, 0))
    with other(_runtime_memory) as (_, pipe):
        pipe.send(pack(check(runtime.cudaIpcGetMemHandle(address))))
        pipe.send(pack(check(runtime.cudaIpcGetEventHandle(event))))
        assert pipe.recv() == values.tolist()
    check(runtime.cudaEventDestroy(event))
    check(runtime.cudaFree(address))


@pytest.mark.cpu
def test_invalid_handles_are_refused(primary):
    status = driver.CUresult
    own = check(driver.cuMemAlloc(64))
    capable = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
    assert check(driver.cuPointerGetAttribute(capable, own))
    handle = check(driver.cuIpcGetMemHandle(own))
    # CUDA: not in the process that created it.
    assert driver.cuIpcOpenMemHandle(handle, LAZY_PEERS)[0] == status.CUDA_ERROR_INVALID_CONTEXT
    assert driver.cuIpcOpenMemHandle(handle, 2)[0] == status.CUDA_ERROR_INVALID_VALUE
    assert driver.cuIpcGetMemHandle(int(own) + 8)[0] == status.CUDA_ERROR_INVALID_VALUE
    assert driver.cuIpcGetMemHandle(0)[0] == status.CUDA_ERROR_INVALID_VALUE
    assert driver.cuIpcCloseMemHandle(own)[0] == status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuMemFree(own))
    for address in (check(driver.cuMemAllocManaged(64, 1)), check(driver.cuMemAllocAsync(64, 0))):
        assert driver.cuIpcGetMemHandle(address)[0] == status.CUDA_ERROR_INVALID_VALUE
        assert not check(driver.cuPointerGetAttribute(capable, address))
        check(driver.cuMemFree(address))
    plain, shared = check(driver.cuEventCreate(0)), check(driver.cuEventCreate(INTERPROCESS))
    assert driver.cuIpcGetEventHandle(plain)[0] == status.CUDA_ERROR_INVALID_HANDLE
    handle = check(driver.cuIpcGetEventHandle(shared))
    assert driver.cuIpcOpenEventHandle(handle)[0] == status.CUDA_ERROR_INVALID_CONTEXT
    garbage = unpack(driver.CUipcEventHandle, b"\1" * 64)
    assert driver.cuIpcOpenEventHandle(garbage)[0] == status.CUDA_ERROR_INVALID_HANDLE
    assert driver.cuEventElapsedTime(shared, shared)[0] == status.CUDA_ERROR_INVALID_HANDLE
    for e in (plain, shared):
        check(driver.cuEventDestroy(e))


def test_event_orders_two_processes(primary):
    flag = check(driver.cuMemAllocHost(4))
    check(driver.cuMemsetD32(flag, 0, 1))
    address = check(driver.cuMemAlloc(4 * N))
    write(address, np.zeros(N, np.int32))
    event, stream = check(driver.cuEventCreate(INTERPROCESS)), check(driver.cuStreamCreate(1))
    with other(_follow_event) as (_, pipe):
        pipe.send(pack(check(driver.cuIpcGetEventHandle(event))))
        pipe.send(pack(check(driver.cuIpcGetMemHandle(address))))
        assert pipe.recv() == "ready"
        # Blocked until the flag is set.
        check(driver.cuStreamWaitValue32(stream, flag, 1, 1))
        check(driver.cuMemsetD32Async(address, 7, 1, stream))
        check(driver.cuEventRecord(event, stream))
        pipe.send("recorded")
        assert pipe.recv() == int(driver.CUresult.CUDA_ERROR_NOT_READY)
        assert pipe.recv() == "recorded"
        # The other process's record counts now, and it waits for ours.
        assert driver.cuEventQuery(event)[0] == driver.CUresult.CUDA_ERROR_NOT_READY
        time.sleep(0.05)
        assert not pipe.poll()
        check(driver.cuMemsetD32(flag, 1, 1))
        check(driver.cuEventSynchronize(event))
        assert read(address, 2).tolist() == [7, 9]
        assert pipe.recv() == [7, 9]
        check(driver.cuEventQuery(event))
        pipe.send("done")
    check(driver.cuEventDestroy(event))
    check(driver.cuMemFree(address))
    check(driver.cuMemFreeHost(flag))


@pytest.mark.cpu
def test_exit_of_the_other_process(primary):
    status = driver.CUresult
    before = open_descriptors()
    with other(_give_memory) as (process, pipe):
        memory, event = unpack(driver.CUipcMemHandle, pipe.recv()), unpack(driver.CUipcEventHandle, pipe.recv())
        descriptor, data = pipe.recv(), unpack(driver.CUmemPoolPtrExportData, pipe.recv())
        with _received(descriptor) as fd:
            pool = check(driver.cuMemPoolImportFromShareableHandle(fd, POSIX, 0))
            piece = check(driver.cuMemPoolImportPointer(pool, data))
            address = check(driver.cuIpcOpenMemHandle(memory, LAZY_PEERS))
            opened = check(driver.cuIpcOpenEventHandle(event))
            pipe.send("record")
            assert pipe.recv() == "recorded"
            assert driver.cuEventQuery(opened)[0] == status.CUDA_ERROR_NOT_READY
            kill(process)
            # Its record never completes, so it blocks no one.
            check(driver.cuEventSynchronize(opened))
            check(driver.cuEventQuery(opened))
            # Opened memory remains until its last mapping is closed.
            assert (read(address) == 5).all()
            write(piece, np.ones(N, np.int32))
            assert (read(piece) == 1).all()
            # Nothing new can be opened.
            assert driver.cuIpcOpenEventHandle(event)[0] == status.CUDA_ERROR_INVALID_HANDLE
            assert driver.cuMemPoolImportPointer(pool, data)[0] == status.CUDA_ERROR_INVALID_VALUE
            assert driver.cuMemPoolImportFromShareableHandle(fd, POSIX, 0)[0] == status.CUDA_ERROR_INVALID_VALUE
        check(driver.cuIpcCloseMemHandle(address))
        assert driver.cuIpcOpenMemHandle(memory, LAZY_PEERS)[0] == status.CUDA_ERROR_INVALID_HANDLE
        check(driver.cuMemFree(piece))
        check(driver.cuMemPoolDestroy(pool))
        check(driver.cuEventDestroy(opened))
        process.join()
    assert open_descriptors() <= before


@pytest.mark.cpu
def test_sharing_does_not_leak(primary):
    def once():
        address = check(driver.cuMemAlloc(1 << 20))
        check(driver.cuIpcGetMemHandle(address))
        check(driver.cuMemFree(address))
        pool = make_pool()
        piece = check(driver.cuMemAllocFromPoolAsync(1 << 20, pool, 0))
        fd = check(driver.cuMemPoolExportToShareableHandle(pool, POSIX, 0))
        imported = check(driver.cuMemPoolImportFromShareableHandle(fd, POSIX, 0))
        os.close(fd)
        window = check(driver.cuMemPoolImportPointer(imported, check(driver.cuMemPoolExportPointer(piece))))
        check(driver.cuMemFree(window))
        check(driver.cuMemFree(piece))
        check(driver.cuMemPoolDestroy(imported))
        check(driver.cuMemPoolDestroy(pool))
        check(driver.cuEventDestroy(check(driver.cuEventCreate(INTERPROCESS))))

    once()
    descriptors, free = open_descriptors(), check(driver.cuMemGetInfo())[0]
    for _ in range(50):
        once()
    assert open_descriptors() == descriptors
    assert check(driver.cuMemGetInfo())[0] >= free - (64 << 20)
