"""`cuda.bindings._v2.runtime`: the runtime API in the style of `cuda.bindings._v2.driver`."""

import numpy as np
import pytest
from cuda.bindings import runtime as first
from cuda.bindings._v2 import runtime


@pytest.fixture(autouse=True)
def device():
    runtime.set_device(0)


def test_copies():
    pointer = runtime.malloc(256)
    data, back = np.arange(64, dtype=np.int32), bytearray(256)
    runtime.memcpy(pointer, data, 256, runtime.MemcpyKind.HOST_TO_DEVICE)
    runtime.memcpy(back, pointer, 256, runtime.MemcpyKind.DEVICE_TO_HOST)
    assert bytes(back) == data.tobytes()
    with pytest.raises(ValueError, match="count"):
        runtime.memcpy(bytearray(4), pointer, 256, runtime.MemcpyKind.DEVICE_TO_HOST)
    with pytest.raises(ValueError, match="writable"):
        runtime.memcpy(bytes(256), pointer, 256, runtime.MemcpyKind.DEVICE_TO_HOST)
    assert runtime.pointer_get_attributes(pointer).type == runtime.MemoryType.DEVICE
    runtime.free(pointer)


def test_properties_and_attributes():
    properties = runtime.get_device_properties(0)
    status, same = first.cudaGetDeviceProperties(0)
    assert int(status) == 0 and properties.warp_size == same.warpSize and properties.name == same.name.decode()
    assert runtime.device_get_attribute(runtime.DeviceAttr.WARP_SIZE, 0) == same.warpSize
    pool = runtime.device_get_default_mem_pool(0)
    assert type(runtime.mem_pool_get_attribute(pool, runtime.MemPoolAttr.ATTR_RELEASE_THRESHOLD)) is int


def test_graphs():
    graph = runtime.graph_create(0)
    one = runtime.graph_add_empty_node(graph, None, 0)
    two = runtime.graph_add_empty_node(graph, [one], 1)
    assert sorted(runtime.graph_get_nodes(graph)) == sorted([one, two])
    before, after, data = runtime.graph_get_edges(graph)
    assert (list(before), list(after), len(data)) == ([one], [two], 1)
    stream = runtime.stream_create()
    executable = runtime.graph_instantiate(graph, 0)
    runtime.graph_launch(executable, stream)
    runtime.stream_synchronize(stream)
    assert runtime.stream_get_capture_info(stream)[0] == runtime.StreamCaptureStatus.NONE
    runtime.stream_destroy(stream)
    runtime.graph_exec_destroy(executable)
    runtime.graph_destroy(graph)


def test_exceptions():
    with pytest.raises(runtime.InvalidDeviceError) as caught:
        runtime.set_device(9999)
    error = caught.value
    assert isinstance(error, runtime.CudartError) and error.status == runtime.Result.ERROR_INVALID_DEVICE
    assert error.name == "ERROR_INVALID_DEVICE" and error.function == "set_device"
    assert str(error) == f"ERROR_INVALID_DEVICE (101): {runtime.get_error_string(101)}"


def test_every_function_of_the_first_module_has_its_counterpart():
    """Structs made by value have no counterpart."""
    made = [getattr(runtime, name) for name in dir(runtime) if name.islower() and not name.startswith("_")]
    by_symbol = {f.__doc__.splitlines()[-2].split(": ")[0] for f in made if callable(f)}
    missing = [n for n in dir(first) if n.startswith("cuda") and type(getattr(first, n)) is type(first.cudaFree)]
    missing = [n for n in missing if n not in by_symbol]
    assert missing == ["cudaCreateChannelDesc"]
