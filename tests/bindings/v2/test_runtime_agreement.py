"""`cuda.bindings._v2.runtime` against `cuda.bindings.runtime`: the same values, and exceptions for the same statuses.

NVIDIA has no such module, so that the module with statuses, which is compared with NVIDIA's, is the reference.
"""

import re

import numpy as np
import pytest
from cuda.bindings import runtime as first
from cuda.bindings._v2 import runtime

# The section "See" of a docstring begins with the C function.
BY_SYMBOL = {
    re.search(r"^See\n---\n(\w+): ", function.__doc__, re.MULTILINE)[1]: function
    for function in (getattr(runtime, name) for name in dir(runtime) if name.islower() and not name.startswith("_"))
    if callable(function)
}
INVALID = 0x1234560


@pytest.fixture(autouse=True)
def device():
    runtime.set_device(0)
    first.cudaGetLastError()


def plain(value):
    """A value without the differences of the two modules: handles are numbers, text has no padding."""
    if isinstance(value, (bytes, str)):
        text = value.decode() if isinstance(value, bytes) else value
        return text.split("\0")[0]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray) or type(value).__name__ in ("_memoryviewslice", "Array"):
        return np.asarray(value).tolist()
    if isinstance(value, float):
        return value
    return int(value)


def both(symbol, arguments, first_arguments=None):
    """What both modules return: `(status, values)`. The status of a raised exception counts."""
    status, *values = getattr(first, symbol)(*(arguments if first_arguments is None else first_arguments))
    try:
        found = BY_SYMBOL[symbol](*arguments)
    except runtime.CudartError as error:
        return (int(status), None), (error.status, None), (values, None)
    found = () if found is None else found if type(found) is tuple else (found,)
    return (int(status), len(values)), (0, len(found)), (values, found)


def assert_same(symbol, arguments, first_arguments=None):
    expected, found, (values, results) = both(symbol, arguments, first_arguments)
    if expected[0] != 0:
        assert found[0] == expected[0], symbol
        return
    assert found == expected, symbol
    assert [plain(v) for v in results] == [plain(v) for v in values], symbol


@pytest.mark.parametrize(
    "symbol, arguments, first_arguments",
    [
        ("cudaGetDeviceCount", (), None),
        ("cudaGetDevice", (), None),
        ("cudaDriverGetVersion", (), None),
        ("cudaRuntimeGetVersion", (), None),
        ("cudaGetDeviceFlags", (), None),
        ("cudaDeviceGetPCIBusId", (32, 0), None),
        ("cudaDeviceGetPCIBusId", (2, 0), None),
        ("cudaDeviceGetPCIBusId", (32, 99), None),
        ("cudaDeviceGetByPCIBusId", (b"ffff:ff:1f.0",), None),
        ("cudaDeviceGetByPCIBusId", (b"nonsense",), None),
        ("cudaDeviceGetStreamPriorityRange", (), None),
        ("cudaDeviceCanAccessPeer", (0, 0), None),
        ("cudaDeviceCanAccessPeer", (0, 99), None),
        ("cudaDeviceEnablePeerAccess", (0, 0), None),
        ("cudaDeviceGetDefaultMemPool", (0,), None),
        ("cudaDeviceGetDefaultMemPool", (99,), None),
        ("cudaDeviceGetMemPool", (0,), None),
        ("cudaDeviceGetCacheConfig", (), None),
        ("cudaSetDevice", (99,), None),
        ("cudaSetDevice", (-1,), None),
        ("cudaGetDeviceProperties", (99,), None),
        ("cudaDeviceSynchronize", (), None),
        ("cudaGetLastError", (), None),
        ("cudaPeekAtLastError", (), None),
        ("cudaMalloc", (1 << 62,), None),
        ("cudaFree", (INVALID,), None),
        ("cudaFreeHost", (INVALID,), None),
        ("cudaMallocAsync", (1 << 62, 0), None),
        ("cudaFreeAsync", (INVALID, 0), None),
        ("cudaHostGetFlags", (INVALID,), None),
        ("cudaHostUnregister", (INVALID,), None),
        ("cudaHostRegister", (0, 0, 0), None),
        ("cudaStreamQuery", (0,), None),
        ("cudaStreamSynchronize", (0,), None),
        ("cudaStreamGetFlags", (0,), None),
        ("cudaStreamGetPriority", (0,), None),
        ("cudaStreamIsCapturing", (0,), None),
        ("cudaStreamCreateWithPriority", (99, 0), None),
        ("cudaEventQuery", (0,), None),
        ("cudaEventDestroy", (0,), None),
        ("cudaGraphCreate", (7,), None),
        ("cudaGraphDestroy", (0,), None),
        ("cudaGraphLaunch", (0, 0), None),
        ("cudaGraphInstantiate", (0, 0), None),
        ("cudaDeviceGetLimit", (0,), (first.cudaLimit.cudaLimitStackSize,)),
        ("cudaDeviceGetLimit", (2,), (first.cudaLimit.cudaLimitMallocHeapSize,)),
        ("cudaDeviceGetP2PAttribute", (1, 0, 0), (first.cudaDeviceP2PAttr.cudaDevP2PAttrPerformanceRank, 0, 0)),
    ],
)
def test_same_value_or_the_exception_of_the_status(symbol, arguments, first_arguments):
    assert_same(symbol, arguments, first_arguments)


def test_every_status_has_the_same_name_and_description():
    for status in runtime.Result:
        member = first.cudaError_t(int(status))
        for symbol in ("cudaGetErrorName", "cudaGetErrorString"):
            assert_same(symbol, (int(status),), (member,))


def test_every_attribute_of_the_device_is_the_same():
    answered = 0
    for attribute in runtime.DeviceAttr:
        try:
            member = first.cudaDeviceAttr(int(attribute))
        except ValueError:
            continue
        assert_same("cudaDeviceGetAttribute", (int(attribute), 0), (member, 0))
        answered += 1
    assert answered > 100


def test_properties_are_the_same():
    def numbers(properties):
        found = {}
        for name in dir(properties):
            value = getattr(properties, name)
            if not name.startswith("_") and type(value) in (int, str, bytes):
                key = name.replace("_", "").lower()
                found[key] = value if type(value) is int else plain(value)
        return found

    status, expected = first.cudaGetDeviceProperties(0)
    assert int(status) == 0
    expected, found = numbers(expected), numbers(runtime.get_device_properties(0))
    common = set(expected) & set(found)
    assert len(common) > 60 and {"name", "warpsize", "totalglobalmem", "multiprocessorcount"} <= common
    assert {name: found[name] for name in common} == {name: expected[name] for name in common}


@pytest.mark.parametrize("kind", ["device", "host", "managed", "unknown"])
def test_pointer_attributes_are_the_same(kind):
    made = {
        "device": lambda: runtime.malloc(64),
        "host": lambda: runtime.malloc_host(64),
        "managed": lambda: runtime.malloc_managed(64, 1),
        "unknown": lambda: np.zeros(64, np.uint8).ctypes.data,
    }[kind]()
    status, expected = first.cudaPointerGetAttributes(made)
    assert int(status) == 0
    found = runtime.pointer_get_attributes(made)
    assert (found.type, found.device_) == (int(expected.type), expected.device)
    assert (found.device_pointer, found.host_pointer) == (
        int(expected.devicePointer or 0),
        int(expected.hostPointer or 0),
    )
    if kind != "unknown":
        (runtime.free_host if kind == "host" else runtime.free)(made)


def test_memory_pools_have_the_same_attributes():
    pool = runtime.device_get_default_mem_pool(0)
    for attribute in first.cudaMemPoolAttr:
        assert_same("cudaMemPoolGetAttribute", (pool, int(attribute)), (pool, attribute))


def test_graph_of_one_module_is_read_by_the_other():
    graph = runtime.graph_create(0)
    nodes = [runtime.graph_add_empty_node(graph, None, 0)]
    nodes.append(runtime.graph_add_empty_node(graph, nodes, 1))
    status, found, count = first.cudaGraphGetNodes(graph, 2)
    assert int(status) == 0 and count == 2
    assert sorted(map(int, found)) == sorted(runtime.graph_get_nodes(graph)) == sorted(nodes)
    for node in nodes:
        assert_same("cudaGraphNodeGetType", (node,), (first.cudaGraphNode_t(node),))
    executable = runtime.graph_instantiate(graph, 0)
    assert_same("cudaGraphExecGetFlags", (executable,), (first.cudaGraphExec_t(executable),))
    assert_same("cudaGraphLaunch", (executable, 0), (first.cudaGraphExec_t(executable), 0))
    runtime.device_synchronize()
    runtime.graph_exec_destroy(executable)
    runtime.graph_destroy(graph)


def test_events_have_the_same_times_and_states():
    start, end = runtime.event_create(), runtime.event_create()
    assert_same("cudaEventElapsedTime", (start, end), (first.cudaEvent_t(start), first.cudaEvent_t(end)))
    for event in (start, end):
        runtime.event_record(event, 0)
        runtime.event_synchronize(event)
        assert_same("cudaEventQuery", (event,), (first.cudaEvent_t(event),))
    assert_same("cudaEventElapsedTime", (start, end), (first.cudaEvent_t(start), first.cudaEvent_t(end)))
    for event in (start, end):
        runtime.event_destroy(event)


def test_copies_have_the_same_result():
    data = np.arange(64, dtype=np.uint8)
    ours, theirs = runtime.malloc(64), first.cudaMalloc(64)[1]
    runtime.memcpy(ours, data, 64, runtime.MemcpyKind.HOST_TO_DEVICE)
    first.cudaMemcpy(theirs, data, 64, first.cudaMemcpyKind.cudaMemcpyHostToDevice)
    results = [bytearray(64), bytearray(64)]
    runtime.memcpy(results[0], theirs, 64, runtime.MemcpyKind.DEVICE_TO_HOST)
    first.cudaMemcpy(results[1], ours, 64, first.cudaMemcpyKind.cudaMemcpyDeviceToHost)
    assert results == [data.tobytes()] * 2
    for wrong in ("text", 1.5, object(), [1, 2]):
        with pytest.raises(ValueError, match="src"):
            runtime.memcpy(ours, wrong, 64, runtime.MemcpyKind.HOST_TO_DEVICE)
    for pointer in (ours, theirs):
        runtime.free(pointer)


def test_log_is_dumped_as_in_the_driver_module(tmp_path):
    path = bytes(tmp_path / "log")
    assert runtime.logs_dump_to_file(None, path, 0) == 0
    assert runtime.logs_dump_to_file(0, path, 0) == runtime.logs_current(0)
