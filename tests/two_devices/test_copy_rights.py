"""Which copies and fills of two devices the driver refuses: all kinds of calls, memory, grants, contexts and streams.

Measured on two H200 (driver 580).
"""

import itertools

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import check
from helpers.virtual_memory import NONE, READ_WRITE, access, properties

BYTES = 64
MEMORY = driver.CUmemorytype
# Memory of each device: from a pool, from cuMemAlloc, mapped. Host memory: pageable and page-locked. Managed memory.
DEVICES = {"pool 0": 0, "pool 1": 1, "plain 0": 0, "plain 1": 1, "mapped 0": 0, "mapped 1": 1}
HOST = ("pageable", "page-locked")
PAIRS = [(to, source) for to, source in itertools.permutations(DEVICES, 2) if DEVICES[to] != DEVICES[source]]
PAIRS += [pair for name in DEVICES for pair in ((name, "managed"), ("managed", name))]
HOST_PAIRS = [pair for name in DEVICES for host in HOST for pair in ((name, host), (host, name))]


class Memory:
    """The memory of the tests by name, and two contexts with a stream each."""

    def __init__(self):
        check(driver.cuInit(0))
        self.contexts = [check(driver.cuDevicePrimaryCtxRetain(device)) for device in (0, 1)]
        self.streams, self.pools, self.at, self.mappings = [], [], {}, []
        for device, context in enumerate(self.contexts):
            check(driver.cuCtxSetCurrent(context))
            stream = check(driver.cuStreamCreate(1))
            pool_properties = driver.CUmemPoolProps()
            pool_properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
            pool_properties.location = access(device=device).location
            pool = check(driver.cuMemPoolCreate(pool_properties))
            self.at[f"pool {device}"] = check(driver.cuMemAllocFromPoolAsync(1 << 16, pool, stream))
            check(driver.cuStreamSynchronize(stream))
            self.at[f"plain {device}"] = check(driver.cuMemAlloc(1 << 16))
            self.at[f"mapped {device}"] = self.mapped(device)
            self.streams.append(stream)
            self.pools.append(pool)
        self.pageable = np.zeros(1 << 16, np.uint8)
        self.at["pageable"] = self.pageable.ctypes.data
        self.at["page-locked"] = check(driver.cuMemHostAlloc(1 << 16, 1))
        self.at["managed"] = check(driver.cuMemAllocManaged(1 << 16, 1))
        self.at = {name: int(address) for name, address in self.at.items()}

    def mapped(self, device):
        prop = properties()
        prop.location.id = device
        size = 2 << 20
        handle = check(driver.cuMemCreate(size, prop, 0))
        address = check(driver.cuMemAddressReserve(size, 0, 0, 0))
        check(driver.cuMemMap(address, size, 0, handle, 0))
        check(driver.cuMemSetAccess(address, size, [access(device=device)], 1))
        self.mappings.append((address, size, handle))
        return address

    def grant(self, device, granted):
        """Lets the other device use the pool of a device, or not."""
        rights = access(READ_WRITE if granted else NONE, device=1 - device)
        check(driver.cuMemPoolSetAccess(self.pools[device], [rights], 1))

    def close(self):
        for device, (stream, pool) in enumerate(zip(self.streams, self.pools)):
            check(driver.cuMemFreeAsync(self.at[f"pool {device}"], stream))
            check(driver.cuStreamSynchronize(stream))
            check(driver.cuMemPoolDestroy(pool))
            check(driver.cuStreamDestroy(stream))
            check(driver.cuMemFree(self.at[f"plain {device}"]))
        for address, size, handle in self.mappings:
            check(driver.cuMemUnmap(address, size))
            check(driver.cuMemRelease(handle))
            check(driver.cuMemAddressFree(address, size))
        check(driver.cuMemFreeHost(self.at["page-locked"]))
        check(driver.cuMemFree(self.at["managed"]))
        for device in (0, 1):
            check(driver.cuDevicePrimaryCtxRelease(device))

    def operands(self, to, source, description, kind=None):
        """Fills in the operands of a copy in two or three dimensions."""
        for side, name in (("dst", to), ("src", source)):
            host = name in HOST
            own = MEMORY.CU_MEMORYTYPE_HOST if host else MEMORY.CU_MEMORYTYPE_DEVICE
            setattr(description, f"{side}MemoryType", kind or own)
            setattr(description, f"{side}{'Host' if host and not kind else 'Device'}", self.at[name])
            setattr(description, f"{side}Pitch", BYTES)
        description.WidthInBytes, description.Height = 32, 2
        return description

    def rows(self, to, source, kind=None):
        return self.operands(to, source, driver.CUDA_MEMCPY2D(), kind)

    def slices(self, to, source):
        copy = self.operands(to, source, driver.CUDA_MEMCPY3D())
        copy.Depth, copy.srcHeight, copy.dstHeight = 1, 2, 2
        return copy

    def between(self, to, source):
        """A copy that names both contexts."""
        copy = self.operands(to, source, driver.CUDA_MEMCPY3D_PEER())
        copy.Depth, copy.srcHeight, copy.dstHeight = 1, 2, 2
        copy.srcContext, copy.dstContext = (self.contexts[DEVICES.get(name, 0)] for name in (source, to))
        return copy

    def contexts_of(self, to, source):
        return [self.contexts[DEVICES.get(name, 0)] for name in (to, source)]


@pytest.fixture(scope="module")
def memory():
    """Memory of two contexts without peer access. Libraries that other tests have used in this process, such as JAX, enable it."""
    made = Memory()
    enabled = []
    for current, peer in itertools.permutations(made.contexts):
        check(driver.cuCtxSetCurrent(current))
        (status,) = driver.cuCtxDisablePeerAccess(peer)
        assert status in (driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
        if status == driver.CUresult.CUDA_SUCCESS:
            enabled.append((current, peer))
    yield made
    for current, peer in enabled:
        check(driver.cuCtxSetCurrent(current))
        check(driver.cuCtxEnablePeerAccess(peer, 0))
    made.close()


STATES = list(itertools.product((False, True), (False, True), (0, 1)))


@pytest.fixture(params=STATES, ids=[f"grants {int(a)}{int(b)}, device {c} current" for a, b, c in STATES])
def state(request, memory):
    """Grants of the two pools, and the current device."""
    *grants, device = request.param
    for number, granted in enumerate(grants):
        memory.grant(number, granted)
    check(driver.cuCtxSetCurrent(memory.contexts[device]))
    yield grants, device
    check(driver.cuCtxSetCurrent(memory.contexts[device]))
    check(driver.cuCtxSynchronize())


def granted(name, device, grants):
    """Whether copies on a device may use the memory."""
    if name not in DEVICES or DEVICES[name] == device or name.startswith("plain"):
        return True
    return name.startswith("pool") and grants[DEVICES[name]]


def outcome(result):
    return result[0] == driver.CUresult.CUDA_SUCCESS


def graph_outcome(graph, stream):
    """Whether a graph is instantiated; then it is launched, too, and must succeed. Destroys it."""
    result = driver.cuGraphInstantiate(graph, 0)
    if outcome(result):
        check(driver.cuGraphLaunch(result[1], stream))
        check(driver.cuStreamSynchronize(stream))
        check(driver.cuGraphExecDestroy(result[1]))
    check(driver.cuGraphDestroy(graph))
    return outcome(result)


def captured(call, stream):
    """Whether a call is accepted in a capture, and the captured graph is instantiated."""
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    check(driver.cuStreamBeginCapture(stream, mode))
    accepted = outcome(call())
    return accepted, graph_outcome(check(driver.cuStreamEndCapture(stream)), stream)


def compare(found, expected):
    assert {what: got for what, got in found.items() if got != expected[what]} == {}


def test_blocking_copies_need_access_of_the_current_device(memory, state):
    grants, device = state
    found, expected = {}, {}
    for to, source in PAIRS + HOST_PAIRS:
        a, b = memory.at[to], memory.at[source]
        calls = {
            "memcpy": lambda: driver.cuMemcpy(a, b, BYTES),
            "2D": lambda: driver.cuMemcpy2D(memory.rows(to, source)),
            "3D": lambda: driver.cuMemcpy3D(memory.slices(to, source)),
        }
        if (to, source) in PAIRS:
            calls["DtoD"] = lambda: driver.cuMemcpyDtoD(a, b, BYTES)
            calls["2D unified"] = lambda: driver.cuMemcpy2D(memory.rows(to, source, MEMORY.CU_MEMORYTYPE_UNIFIED))
        elif to in HOST:
            calls["DtoH"] = lambda: driver.cuMemcpyDtoH(a, b, BYTES)
        else:
            calls["HtoD"] = lambda: driver.cuMemcpyHtoD(a, b, BYTES)
        for name, call in calls.items():
            found[name, to, source] = outcome(call())
            expected[name, to, source] = granted(to, device, grants) and granted(source, device, grants)
    compare(found, expected)


@pytest.mark.parametrize("number", [0, 1], ids=["stream 0", "stream 1"])
def test_copies_need_access_of_the_current_device_and_batches_of_the_streams(memory, state, number):
    """The device of the current context counts; for a batch, the stream's."""
    grants, device = state
    stream = memory.streams[number]
    attributes = driver.CUmemcpyAttributes()
    attributes.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    found, expected = {}, {}
    for to, source in PAIRS + HOST_PAIRS:
        a, b = memory.at[to], memory.at[source]
        pointers = [driver.CUdeviceptr(a)], [driver.CUdeviceptr(b)]
        calls = {
            "memcpy": lambda: driver.cuMemcpyAsync(a, b, BYTES, stream),
            "2D": lambda: driver.cuMemcpy2DAsync(memory.rows(to, source), stream),
            "3D": lambda: driver.cuMemcpy3DAsync(memory.slices(to, source), stream),
        }
        if hasattr(driver, "cuMemcpyBatchAsync"):
            calls["batch"] = lambda: driver.cuMemcpyBatchAsync(*pointers, [BYTES], 1, [attributes], [0], 1, stream)
        for name, call in calls.items():
            of = number if name == "batch" else device
            found[name, to, source] = outcome(call())
            expected[name, to, source] = granted(to, of, grants) and granted(source, of, grants)
    check(driver.cuStreamSynchronize(stream))
    compare(found, expected)


def test_copies_that_name_both_contexts_are_allowed(memory, state):
    found = {}
    for to, source in PAIRS:
        (a, x), (b, y) = zip((memory.at[to], memory.at[source]), memory.contexts_of(to, source))
        found["peer", to, source] = outcome(driver.cuMemcpyPeer(a, x, b, y, BYTES))
        found["3D peer", to, source] = outcome(driver.cuMemcpy3DPeer(memory.between(to, source)))
        for number, stream in enumerate(memory.streams):
            found["async", number, to, source] = outcome(driver.cuMemcpyPeerAsync(a, x, b, y, BYTES, stream))
    compare(found, dict.fromkeys(found, True))


@pytest.mark.parametrize("number", [0, 1], ids=["stream 0", "stream 1"])
def test_copy_nodes_need_access_of_the_device_of_their_context(memory, state, number):
    """The context of the node counts, for captured copies the current one. The stream of the launch does not."""
    grants, device = state
    stream, context = memory.streams[number], memory.contexts[device]
    found, expected = {}, {}
    for to, source in [pair for pair in PAIRS + HOST_PAIRS if "pageable" not in pair]:
        a, b = memory.at[to], memory.at[source]
        graph = check(driver.cuGraphCreate(0))
        added = driver.cuGraphAddMemcpyNode(graph, None, 0, memory.slices(to, source), context)
        found["node", to, source] = outcome(added), graph_outcome(graph, stream)
        found["captured", to, source] = captured(lambda: driver.cuMemcpyAsync(a, b, BYTES, stream), stream)
        allowed = granted(to, device, grants) and granted(source, device, grants)
        expected["node", to, source] = expected["captured", to, source] = allowed, True
    compare(found, expected)


def test_fills_need_the_access_of_a_kernel_in_their_stream(memory, state):
    """The stream's device must have access as for a kernel; a node's as for a copy."""
    grants, device = state
    found, expected = {}, {}
    for name in (*DEVICES, "managed"):
        at = memory.at[name]

        def writable(of):
            return granted(name, of, grants) and (not name.startswith("plain") or DEVICES[name] == of)

        found["fill", name] = outcome(driver.cuMemsetD8(at, 1, BYTES))
        found["fill of rows", name] = outcome(driver.cuMemsetD2D8(at, BYTES, 1, 32, 2))
        expected["fill", name] = expected["fill of rows", name] = writable(device)
        for number, stream in enumerate(memory.streams):
            found["async", number, name] = outcome(driver.cuMemsetD8Async(at, 1, BYTES, stream))
            expected["async", number, name] = writable(number)
            found["captured", number, name] = captured(lambda: driver.cuMemsetD8Async(at, 1, BYTES, stream), stream)
            expected["captured", number, name] = True, writable(number)
            graph = check(driver.cuGraphCreate(0))
            fill = driver.CUDA_MEMSET_NODE_PARAMS()
            fill.dst, fill.elementSize, fill.width, fill.height = at, 1, BYTES, 1
            added = driver.cuGraphAddMemsetNode(graph, None, 0, fill, memory.contexts[device])
            found["node", number, name] = outcome(added), graph_outcome(graph, stream)
            expected["node", number, name] = granted(name, device, grants), True
            check(driver.cuStreamSynchronize(stream))
    compare(found, expected)


def test_peer_access_of_contexts_allows_fills(memory):
    zero, one = memory.contexts
    check(driver.cuCtxSetCurrent(zero))
    assert not outcome(driver.cuMemsetD8Async(memory.at["plain 1"], 1, BYTES, memory.streams[0]))
    check(driver.cuCtxEnablePeerAccess(one, 0))
    try:
        check(driver.cuMemsetD8Async(memory.at["plain 1"], 1, BYTES, memory.streams[0]))
        check(driver.cuStreamSynchronize(memory.streams[0]))
        assert not outcome(driver.cuMemsetD8Async(memory.at["plain 0"], 1, BYTES, memory.streams[1]))
    finally:
        check(driver.cuCtxDisablePeerAccess(one))
    assert not outcome(driver.cuMemsetD8Async(memory.at["plain 1"], 1, BYTES, memory.streams[0]))


@pytest.mark.cpu
def test_an_update_checks_captured_fills(memory):
    check(driver.cuCtxSetCurrent(memory.contexts[0]))
    stream = memory.streams[0]
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    graphs = []
    for name in ("plain 0", "plain 1"):
        check(driver.cuStreamBeginCapture(stream, mode))
        check(driver.cuMemsetD8Async(memory.at[name], 1, BYTES, stream))
        graphs.append(check(driver.cuStreamEndCapture(stream)))
    executable = check(driver.cuGraphInstantiate(graphs[0], 0))
    assert not outcome(driver.cuGraphExecUpdate(executable, graphs[1]))
    check(driver.cuGraphLaunch(executable, stream))
    check(driver.cuStreamSynchronize(stream))
    check(driver.cuGraphExecDestroy(executable))
    for graph in graphs:
        check(driver.cuGraphDestroy(graph))
