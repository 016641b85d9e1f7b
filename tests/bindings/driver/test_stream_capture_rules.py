"""Calls that a driver refuses while a stream is captured, and the state after a refusal.

Measured on an H200 (driver 580, CUDA 13.0); both devices behave the same. A call that may wait, allocate, free or
unload is refused to the capturing thread, and to every thread during a global capture, unless the calling thread is in
relaxed mode. A refusal invalidates the capture.
"""

import ctypes
import dataclasses
import types
import typing

import pytest
from cuda.bindings import driver

from helpers.device import check
from helpers.threads import in_a_thread

MODE = driver.CUstreamCaptureMode
GLOBAL, LOCAL, RELAXED = (
    MODE.CU_STREAM_CAPTURE_MODE_GLOBAL,
    MODE.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    MODE.CU_STREAM_CAPTURE_MODE_RELAXED,
)
NON_BLOCKING = 1
LEGACY, PER_THREAD = driver.CU_STREAM_LEGACY, driver.CU_STREAM_PER_THREAD
ATTRIBUTE = driver.CUmemPool_attribute
USED = ATTRIBUTE.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
THRESHOLD = ATTRIBUTE.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
MEMORY_TYPE = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
REGISTERS = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
# Too large to be part of a block that the driver caches.
SIZE = 4 << 20
UNIT = 2 << 20
FILL = 0x5A
PTX = b".version 6.0\n.target sm_52\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n\0"

# (status of the call, status at the end of the capture).
FINE = (0, 0)
UNSUPPORTED = (900, 901)
IMPLICIT = (906, 901)


def here(context, work):
    return work()


def elsewhere(context, work):
    def run():
        check(driver.cuCtxSetCurrent(context))
        return work()

    return in_a_thread(run)


# The calling thread, and the mode of the capture; the legacy stream does not wait for the captured stream.
PLACES = {
    "globally, by this thread": (here, GLOBAL),
    "globally, by another thread": (elsewhere, GLOBAL),
    "thread-locally, by this thread": (here, LOCAL),
}


def rule(normal, relaxed=FINE, blocking=None):
    """The statuses in every situation: thread not relaxed, relaxed, and both again while a captured stream is one that
    the legacy stream waits for.
    """
    blocking = blocking or (normal, relaxed)
    table = {(place, mode): answer for mode, answer in ((False, normal), (True, relaxed)) for place in PLACES}
    table.update({("blocking stream", mode): answer for mode, answer in enumerate(blocking)})
    return {(place, "relaxed" if mode else "not relaxed"): answer for (place, mode), answer in table.items()}


ALLOWED = rule(FINE)
REFUSED = rule(UNSUPPORTED)
# Even in relaxed mode.
NEVER = rule(UNSUPPORTED, UNSUPPORTED)
# Work in the legacy stream waits for all blocking streams.
WORK_IN_LEGACY = rule(FINE, blocking=(IMPLICIT, IMPLICIT))
FREE_IN_LEGACY = rule(UNSUPPORTED, blocking=(IMPLICIT, IMPLICIT))


@pytest.fixture(scope="module")
def given(shared_context):
    """Streams and a pool."""
    main, other, captured = (check(driver.cuStreamCreate(NON_BLOCKING)) for _ in range(3))
    blocking, captured_blocking = (check(driver.cuStreamCreate(0)) for _ in range(2))
    pool = make_pool()
    streams = dict(main=main, other=other, captured=captured, blocking=blocking, captured_blocking=captured_blocking)
    yield types.SimpleNamespace(context=shared_context, pool=pool, **streams)
    check(driver.cuCtxSynchronize())
    check(driver.cuMemPoolDestroy(pool))
    for stream in streams.values():
        check(driver.cuStreamDestroy(stream))


@pytest.fixture(autouse=True)
def mode(given):
    """Restores the thread's default capture mode, which earlier tests may have changed."""
    check(driver.cuThreadExchangeStreamCaptureMode(GLOBAL))


# The objects of the calls: how each is created, and how the test checks that it is unchanged.


def nothing(given, it=None, outputs=()):
    pass


def on_the_device(properties):
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = 0
    return properties


def pool_properties():
    properties = on_the_device(driver.CUmemPoolProps())
    properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    return properties


def make_pool(given=None):
    return check(driver.cuMemPoolCreate(pool_properties()))


def pool_works(given, pool):
    """The pool allocates, and is empty afterwards: NVIDIA's driver 580 cannot destroy a pool with pending frees."""
    check(driver.cuCtxSynchronize())
    assert int(check(driver.cuMemPoolGetAttribute(pool, USED))) == 0
    assert int(check(driver.cuMemPoolGetAttribute(pool, THRESHOLD))) == 0
    memory = check(driver.cuMemAllocFromPoolAsync(SIZE, pool, given.main))
    assert int(check(driver.cuMemPoolGetAttribute(pool, USED))) >= SIZE
    check(driver.cuMemFreeAsync(memory, given.main))
    check(driver.cuCtxSynchronize())


def filled(address):
    check(driver.cuMemsetD8(address, FILL, SIZE))
    return address


def memory_of_the_pool(given):
    address = check(driver.cuMemAllocFromPoolAsync(SIZE, given.pool, given.main))
    check(driver.cuStreamSynchronize(given.main))
    return filled(address)


def memory(given):
    return filled(check(driver.cuMemAlloc(SIZE)))


def memory_is_there(given, address):
    out = bytearray(16)
    check(driver.cuMemcpyDtoH(out, int(address) + SIZE - len(out), len(out)))
    assert out == bytes([FILL]) * len(out)


def page_locked(given):
    address = check(driver.cuMemHostAlloc(SIZE, 0))
    ctypes.memset(int(address), FILL, SIZE)
    return address


def page_locked_is_there(given, address):
    assert int(check(driver.cuPointerGetAttribute(MEMORY_TYPE, int(address)))) == 1
    assert ctypes.string_at(int(address) + SIZE - 16, 16) == bytes([FILL]) * 16


def launches(given, kernel):
    check(driver.cuLaunchKernel(int(kernel), 1, 1, 1, 1, 1, 1, 0, given.main, 0, 0))
    check(driver.cuStreamSynchronize(given.main))


def library(given):
    return check(driver.cuLibraryLoadData(PTX, [], [], 0, [], [], 0))


def library_works(given, loaded):
    launches(given, check(driver.cuLibraryGetKernel(loaded, b"nothing")))


def used_library(given):
    loaded = library(given)
    library_works(given, loaded)
    return loaded


def kernel(given):
    return check(driver.cuLibraryGetKernel(library(given), b"nothing"))


def unload_kernel(given, it, outputs):
    check(driver.cuLibraryUnload(check(driver.cuKernelGetLibrary(it))))


def module(given):
    return check(driver.cuModuleLoadData(PTX))


def module_works(given, loaded):
    launches(given, check(driver.cuModuleGetFunction(loaded, b"nothing")))


def function(given):
    return check(driver.cuModuleGetFunction(module(given), b"nothing"))


def unload_function(given, it, outputs):
    check(driver.cuModuleUnload(check(driver.cuFuncGetModule(it))))


def event(given):
    return check(driver.cuEventCreate(2))


def recorded(given):
    made = event(given)
    check(driver.cuEventRecord(made, given.main))
    return made


def stream(given):
    return check(driver.cuStreamCreate(NON_BLOCKING))


def graph(given):
    return check(driver.cuGraphCreate(0))


def executable(given):
    made = graph(given)
    check(driver.cuGraphAddEmptyNode(made, None, 0))
    done = check(driver.cuGraphInstantiate(made, 0))
    check(driver.cuGraphDestroy(made))
    return done


def executable_works(given, it):
    check(driver.cuGraphLaunch(it, given.main))
    check(driver.cuStreamSynchronize(given.main))


def physical_properties():
    properties = on_the_device(driver.CUmemAllocationProp())
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    return properties


def physical(given):
    return check(driver.cuMemCreate(UNIT, physical_properties(), 0))


def reserved(given):
    return check(driver.cuMemAddressReserve(UNIT, 0, 0, 0))


def apart(given):
    return reserved(given), physical(given)


def mapped(given):
    address, handle = apart(given)
    check(driver.cuMemMap(address, UNIT, 0, handle, 0))
    return address, handle


def release_apart(given, it, outputs):
    check(driver.cuMemRelease(it[1]))
    check(driver.cuMemAddressFree(it[0], UNIT))


def unmap(given, it, outputs):
    check(driver.cuMemUnmap(it[0], UNIT))
    release_apart(given, it, outputs)


def is_set(given, pool, outputs):
    assert int(check(driver.cuMemPoolGetAttribute(pool, THRESHOLD))) == SIZE
    check(driver.cuMemPoolDestroy(pool))


def by(end):
    """Cleans up a row's object with a driver call."""
    return lambda given, it, outputs: check(end(it))


def made_by(end):
    """Cleans up the object that the row's call created."""
    return lambda given, it, outputs: check(end(outputs[0]))


def pool_that_was_made(given, it, outputs):
    pool_works(given, outputs[0])
    check(driver.cuMemPoolDestroy(outputs[0]))


def memory_that_was_made(given, pool, outputs):
    # After cuMemFree an H200 still counted it as used.
    check(driver.cuMemFreeAsync(outputs[0], given.other))
    pool_works(given, pool)
    check(driver.cuMemPoolDestroy(pool))


@dataclasses.dataclass
class Row:
    """A call, its object, and the checks afterwards."""

    rule: dict
    make: typing.Callable
    call: typing.Callable
    # After a refusal: the call had no effect.
    intact: typing.Callable = nothing
    # After permission, now or later.
    done: typing.Callable = nothing


d = driver
pool_memory = memory_of_the_pool
ROWS = {
    "cuMemFreeAsync, another stream":
        Row(REFUSED, pool_memory, lambda g, x: d.cuMemFreeAsync(x, g.other), memory_is_there),
    "cuMemFreeAsync, its stream":
        Row(REFUSED, pool_memory, lambda g, x: d.cuMemFreeAsync(x, g.main), memory_is_there),
    "cuMemFreeAsync, legacy stream":
        Row(FREE_IN_LEGACY, pool_memory, lambda g, x: d.cuMemFreeAsync(x, LEGACY), memory_is_there),
    "cuMemFreeAsync, per-thread stream":
        Row(REFUSED, pool_memory, lambda g, x: d.cuMemFreeAsync(x, PER_THREAD), memory_is_there),
    "cuMemFreeAsync, blocking stream":
        Row(REFUSED, pool_memory, lambda g, x: d.cuMemFreeAsync(x, g.blocking), memory_is_there),
    "cuMemFree, of a pool": Row(REFUSED, pool_memory, lambda g, x: d.cuMemFree(x), memory_is_there),
    "cuMemAllocFromPoolAsync":
        Row(REFUSED, make_pool, lambda g, x: d.cuMemAllocFromPoolAsync(SIZE, x, g.other), pool_works, memory_that_was_made),
    "cuMemAlloc": Row(REFUSED, nothing, lambda g, x: d.cuMemAlloc(256), done=made_by(d.cuMemFree)),
    "cuMemFree": Row(REFUSED, memory, lambda g, x: d.cuMemFree(x), memory_is_there),
    "cuMemHostAlloc": Row(REFUSED, nothing, lambda g, x: d.cuMemHostAlloc(256, 0), done=made_by(d.cuMemFreeHost)),
    "cuMemFreeHost": Row(REFUSED, page_locked, lambda g, x: d.cuMemFreeHost(x), page_locked_is_there),
    "cuMemPoolCreate": Row(REFUSED, nothing, lambda g, x: d.cuMemPoolCreate(pool_properties()), done=pool_that_was_made),
    "cuMemPoolDestroy": Row(REFUSED, make_pool, lambda g, x: d.cuMemPoolDestroy(x), pool_works),
    "cuMemPoolTrimTo": Row(REFUSED, make_pool, lambda g, x: d.cuMemPoolTrimTo(x, 0), pool_works, by(d.cuMemPoolDestroy)),
    "cuMemPoolGetAttribute":
        Row(REFUSED, make_pool, lambda g, x: d.cuMemPoolGetAttribute(x, USED), pool_works, by(d.cuMemPoolDestroy)),
    "cuMemPoolSetAttribute":
        Row(REFUSED, make_pool, lambda g, x: d.cuMemPoolSetAttribute(x, THRESHOLD, d.cuuint64_t(SIZE)), pool_works, is_set),
    "cuEventCreate": Row(ALLOWED, nothing, lambda g, x: d.cuEventCreate(2), done=made_by(d.cuEventDestroy)),
    "cuEventDestroy": Row(ALLOWED, event, lambda g, x: d.cuEventDestroy(x)),
    "cuEventDestroy, recorded": Row(ALLOWED, recorded, lambda g, x: d.cuEventDestroy(x)),
    "cuEventQuery": Row(REFUSED, recorded, lambda g, x: d.cuEventQuery(x), done=by(d.cuEventDestroy)),
    "cuEventSynchronize": Row(REFUSED, recorded, lambda g, x: d.cuEventSynchronize(x), done=by(d.cuEventDestroy)),
    "cuEventRecord, another stream": Row(ALLOWED, event, lambda g, x: d.cuEventRecord(x, g.other), done=by(d.cuEventDestroy)),
    "cuEventRecord, legacy stream": Row(WORK_IN_LEGACY, event, lambda g, x: d.cuEventRecord(x, LEGACY), done=by(d.cuEventDestroy)),
    "cuStreamCreate": Row(ALLOWED, nothing, lambda g, x: d.cuStreamCreate(NON_BLOCKING), done=made_by(d.cuStreamDestroy)),
    "cuStreamDestroy": Row(ALLOWED, stream, lambda g, x: d.cuStreamDestroy(x)),
    "cuStreamQuery": Row(REFUSED, nothing, lambda g, x: d.cuStreamQuery(g.other)),
    "cuStreamSynchronize": Row(REFUSED, nothing, lambda g, x: d.cuStreamSynchronize(g.other)),
    "cuStreamWaitEvent, another stream":
        Row(ALLOWED, recorded, lambda g, x: d.cuStreamWaitEvent(g.other, x, 0), done=by(d.cuEventDestroy)),
    "cuMemsetD8Async, another stream":
        Row(ALLOWED, memory, lambda g, x: d.cuMemsetD8Async(x, FILL, SIZE, g.other), done=by(d.cuMemFree)),
    "cuMemsetD8Async, legacy stream":
        Row(WORK_IN_LEGACY, memory, lambda g, x: d.cuMemsetD8Async(x, 1, SIZE, LEGACY), memory_is_there, by(d.cuMemFree)),
    "cuLaunchKernel, another stream":
        Row(ALLOWED, kernel, lambda g, x: d.cuLaunchKernel(int(x), 1, 1, 1, 1, 1, 1, 0, g.other, 0, 0), done=unload_kernel),
    "cuLibraryLoadData":
        Row(ALLOWED, nothing, lambda g, x: d.cuLibraryLoadData(PTX, [], [], 0, [], [], 0), done=made_by(d.cuLibraryUnload)),
    "cuLibraryUnload": Row(REFUSED, library, lambda g, x: d.cuLibraryUnload(x), library_works),
    "cuLibraryUnload, used": Row(REFUSED, used_library, lambda g, x: d.cuLibraryUnload(x), library_works),
    "cuModuleUnload": Row(REFUSED, module, lambda g, x: d.cuModuleUnload(x), module_works),
    "cuKernelGetFunction": Row(ALLOWED, kernel, lambda g, x: d.cuKernelGetFunction(x), done=unload_kernel),
    "cuKernelGetAttribute": Row(ALLOWED, kernel, lambda g, x: d.cuKernelGetAttribute(REGISTERS, x, 0), done=unload_kernel),
    "cuFuncGetAttribute": Row(ALLOWED, function, lambda g, x: d.cuFuncGetAttribute(REGISTERS, x), done=unload_function),
    "cuMemCreate":
        Row(ALLOWED, nothing, lambda g, x: d.cuMemCreate(UNIT, physical_properties(), 0), done=made_by(d.cuMemRelease)),
    "cuMemMap": Row(ALLOWED, apart, lambda g, x: d.cuMemMap(x[0], UNIT, 0, x[1], 0), done=unmap),
    "cuMemUnmap": Row(ALLOWED, mapped, lambda g, x: d.cuMemUnmap(x[0], UNIT), done=release_apart),
    "cuMemRelease": Row(ALLOWED, physical, lambda g, x: d.cuMemRelease(x)),
    "cuMemAddressFree": Row(ALLOWED, reserved, lambda g, x: d.cuMemAddressFree(x, UNIT)),
    "cuPointerGetAttribute":
        Row(ALLOWED, memory, lambda g, x: d.cuPointerGetAttribute(MEMORY_TYPE, x), done=by(d.cuMemFree)),
    "cuMemGetInfo": Row(ALLOWED, nothing, lambda g, x: d.cuMemGetInfo()),
    "cuGraphDestroy": Row(ALLOWED, graph, lambda g, x: d.cuGraphDestroy(x)),
    "cuGraphExecDestroy": Row(REFUSED, executable, lambda g, x: d.cuGraphExecDestroy(x), executable_works),
    "cuCtxSynchronize": Row(NEVER, nothing, lambda g, x: d.cuCtxSynchronize()),
}  # fmt: skip


def during_a_capture(given, captured, mode, where, relaxed, call):
    """(status of the call during a capture, status at the end of the capture)."""

    def work():
        if not relaxed:
            return call()
        check(driver.cuThreadExchangeStreamCaptureMode(RELAXED))
        try:
            return call()
        finally:
            check(driver.cuThreadExchangeStreamCaptureMode(GLOBAL))

    check(driver.cuCtxSynchronize())
    check(driver.cuStreamBeginCapture(captured, mode))
    try:
        result = where(given.context, work)
        spoilt = int(check(driver.cuStreamIsCapturing(captured))) == 2
    finally:
        ended = driver.cuStreamEndCapture(captured)
    assert spoilt == (int(ended[0]) != 0)
    if not spoilt:
        assert check(driver.cuGraphGetNodes(ended[1]))[1] == 0
        check(driver.cuGraphDestroy(ended[1]))
    return result, (int(result[0]), int(ended[0]))


@pytest.mark.parametrize("name", ROWS)
def test_statuses_during_capture(given, name):
    row = ROWS[name]
    answers = {}
    for place, word in row.rule:
        where, mode = PLACES.get(place, (here, GLOBAL))
        captured = given.captured if place in PLACES else given.captured_blocking
        it = row.make(given)
        result, answer = during_a_capture(given, captured, mode, where, word == "relaxed", lambda: row.call(given, it))
        answers[place, word] = answer
        if answer[0] != 0:
            row.intact(given, it)
            # The refused calls can still be made.
            result = row.call(given, it)
            check(result)
        row.done(given, it, result[1:])
    check(driver.cuCtxSynchronize())
    assert answers == row.rule


@pytest.mark.parametrize("place", PLACES)
def test_memory_from_outside_the_graph_is_not_freed_in_the_captured_stream(given, place):
    """The call would have to become a node and cannot: its own error, which leaves the capture valid."""
    where, mode = PLACES[place]
    for relaxed in (False, True):
        address = memory_of_the_pool(given)

        def free():
            return driver.cuMemFreeAsync(address, given.captured)

        _, answer = during_a_capture(given, given.captured, mode, where, relaxed, free)
        assert answer == (int(driver.CUresult.CUDA_ERROR_INVALID_VALUE), 0)
        memory_is_there(given, address)
        check(driver.cuMemFree(address))
