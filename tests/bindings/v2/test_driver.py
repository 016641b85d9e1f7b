"""`cuda.bindings._v2.driver`: a program from compilation to launch, graphs, structs, and exceptions with all attributes."""

import copy
import ctypes
import gc
import pickle

import numpy as np
import pytest
from cuda.bindings import driver as first
from cuda.bindings._v2 import driver, nvrtc

from helpers.device import compute_capability
from helpers.threads import run_all

SOURCE = b'extern "C" __global__ void fill(int *out, int value, float scale) { out[threadIdx.x] = int(value * scale); }'


@pytest.fixture(scope="module", autouse=True)
def context():
    driver.init(0)
    device = driver.device_get(0)
    made = driver.device_primary_ctx_retain(device)
    driver.ctx_set_current(made)
    yield made
    driver.device_primary_ctx_release_v2(device)


@pytest.fixture(scope="module")
def module(context):
    program = nvrtc.create_program(SOURCE, b"fill.cu")
    major, minor = compute_capability()
    nvrtc.compile_program(program, [b"--gpu-architecture=sm_%d%d" % (major, minor)])
    made = driver.module_load_data(nvrtc.get_cubin(program))
    nvrtc.destroy_program(program)
    yield made
    driver.module_unload(made)


@pytest.fixture
def memory():
    made = driver.mem_alloc_v2(256)
    yield made
    driver.mem_free_v2(made)


def contents(pointer, count=32):
    values = np.zeros(count, np.int32)
    driver.memcpy_dtoh_v2(values, pointer, values.nbytes)
    return values.tolist()


def test_kernel_is_launched(module, memory):
    kernel = driver.module_get_function(module, b"fill")
    assert driver.func_get_name(kernel) == b"fill"
    arguments = ((memory, 10, 2.5), (ctypes.c_void_p, ctypes.c_int, ctypes.c_float))
    assert driver.launch_kernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, arguments, 0) is None
    assert contents(memory) == [25] * 32
    config = driver.LaunchConfig()
    config.grid_dim_x = config.grid_dim_y = config.grid_dim_z = config.block_dim_y = config.block_dim_z = 1
    config.block_dim_x = 32
    arguments = ((memory, 4, 2.0), (ctypes.c_void_p, ctypes.c_int, ctypes.c_float))
    driver.launch_kernel_ex(config, kernel, arguments, 0)
    assert contents(memory) == [8] * 32
    assert list(driver.module_enumerate_functions(module)) == [kernel]


def test_copies_take_buffers_and_addresses(memory):
    data = np.arange(64, dtype=np.int32)
    for source in (data, data.tobytes(), bytearray(data.tobytes()), data.ctypes.data):
        driver.memset_d8_v2(memory, 0, 256)
        driver.memcpy_htod_v2(memory, source, 256)
        assert contents(memory, 64) == data.tolist()
    with pytest.raises(ValueError, match="byte_count"):
        driver.memcpy_htod_v2(memory, b"short", 256)
    with pytest.raises(ValueError, match="byte_count"):
        driver.memcpy_dtoh_v2(bytearray(4), memory, 256)
    with pytest.raises(ValueError, match="writable"):
        driver.memcpy_dtoh_v2(bytes(256), memory, 256)
    with pytest.raises(driver.InvalidValueError):
        driver.memcpy_dtoh_v2(None, memory, 256)


def test_structs_go_in_as_objects_and_addresses():
    described = driver.ArrayDescriptor_v2()
    described.width = described.height = 8
    described.format, described.num_channels = driver.ArrayFormat.FLOAT, 1
    for given in (described, described.ptr):
        array = driver.array_create_v2(given)
        back = driver.array_get_descriptor_v2(array)
        assert (back.width, back.height, back.format) == (8, 8, driver.ArrayFormat.FLOAT)
        driver.array_destroy(array)
    with pytest.raises(TypeError, match="ArrayDescriptor_v2"):
        driver.array_create_v2(driver.Uuid())
    with pytest.raises(ValueError, match="address"):
        driver.array_create_v2(8)
    with pytest.raises(TypeError, match="MemLocation_v1"):
        driver.mem_advise_v2(0, 0, 0, 0)


def test_graph_of_nodes():
    graph = driver.graph_create(0)
    nodes = [driver.graph_add_empty_node(graph, None, 0)]
    nodes.append(driver.graph_add_empty_node(graph, nodes, 1))
    nodes.append(driver.graph_add_empty_node(graph, np.array(nodes, np.int64), 2))
    assert sorted(driver.graph_get_nodes(graph)) == sorted(nodes)
    assert list(driver.graph_get_root_nodes(graph)) == nodes[:1]
    before, after, data = driver.graph_get_edges_v2(graph)
    assert sorted(zip(before, after)) == sorted([(nodes[0], nodes[1]), (nodes[0], nodes[2]), (nodes[1], nodes[2])])
    assert len(data) == 3 and type(data) is driver.GraphEdgeData
    with pytest.raises(Exception, match="dependencies"):
        driver.graph_add_empty_node(graph, nodes, 4)
    edges = driver.GraphEdgeData(1)
    with pytest.raises(Exception, match="edge_data"):
        driver.graph_remove_dependencies_v2(graph, nodes[:2], nodes[1:], edges, 2)
    executable = driver.graph_instantiate(graph, 0)
    assert driver.graph_instantiate is driver.graph_instantiate_with_flags
    stream = driver.stream_create(0)
    driver.graph_launch(executable, stream)
    driver.stream_synchronize(stream)
    driver.stream_destroy_v2(stream)
    driver.graph_exec_destroy(executable)
    driver.graph_destroy(graph)


def test_capture_state_has_copies_of_the_lists(memory):
    stream = driver.stream_create(driver.StreamFlags.NON_BLOCKING)
    assert driver.stream_get_capture_info_v2(stream)[0] == driver.StreamCaptureStatus.NONE
    driver.stream_begin_capture_v2(stream, driver.StreamCaptureMode.RELAXED)
    driver.memset_d8_async(memory, 1, 256, stream)
    status, number, graph, nodes, edges = driver.stream_get_capture_info_v3(stream)
    assert status == driver.StreamCaptureStatus.ACTIVE and number > 0
    assert list(driver.graph_get_nodes(graph)) == list(nodes) and len(nodes) == len(edges) == 1
    assert edges.dtype == driver.graph_edge_data_dtype
    driver.graph_destroy(driver.stream_end_capture(stream))
    driver.stream_destroy_v2(stream)


def test_values_whose_type_another_argument_selects(memory):
    assert driver.pointer_get_attribute(driver.PointerAttribute.MEMORY_TYPE, memory) == driver.MemoryType.DEVICE
    assert driver.pointer_get_attribute(driver.PointerAttribute.IS_MANAGED, memory) is False
    both = [driver.PointerAttribute.DEVICE_POINTER, driver.PointerAttribute.DEVICE_ORDINAL]
    assert driver.pointer_get_attributes(both, memory) == [memory, 0]
    with pytest.raises(TypeError, match="9999"):
        driver.pointer_get_attribute(9999, memory)
    pool = driver.device_get_default_mem_pool(0)
    threshold = ctypes.c_uint64(4096)
    name = driver.MemPoolAttribute.RELEASE_THRESHOLD
    before = driver.mem_pool_get_attribute(pool, name)
    driver.mem_pool_set_attribute(pool, name, ctypes.addressof(threshold))
    assert type(before) is int and driver.mem_pool_get_attribute(pool, name) == 4096
    threshold.value = before
    driver.mem_pool_set_attribute(pool, name, ctypes.addressof(threshold))
    assert driver.thread_exchange_stream_capture_mode(driver.StreamCaptureMode.GLOBAL) == 0


def test_results_are_plain_values():
    assert type(driver.device_get_attribute(driver.DeviceAttribute.WARP_SIZE, 0)) is int
    assert len(driver.device_get_name(64, 0)) == 64
    assert type(driver.device_get_uuid_v2(0).bytes) is bytes
    assert driver.get_error_name(1) == "CUDA_ERROR_INVALID_VALUE"
    assert driver.driver_get_version() == first.cuDriverGetVersion()[1]
    address, status = driver.get_proc_address_v2(b"cuInit", 12000, 0)
    assert address != 0 and status == 0
    free, total = driver.mem_get_info_v2()
    assert 0 < free <= total


def failure():
    with pytest.raises(driver.DriverError) as caught:
        driver.device_get(9999)
    return caught.value


def test_exception_says_what_failed():
    error = failure()
    assert type(error) is driver.InvalidDeviceError and error.status == driver.Result.ERROR_INVALID_DEVICE
    assert error.name == "ERROR_INVALID_DEVICE" and error.function == "device_get"
    explained = driver.get_error_string(error.status)
    assert str(error) == f"ERROR_INVALID_DEVICE (101): {explained}"
    assert any("cuDeviceGet" in note for note in getattr(error, "__notes__", ["cuDeviceGet"]))
    assert type(error.log) is str
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is type(error) and str(other) == str(error)
        assert (other.status, other.name, other.function, other.log) == (101, error.name, "device_get", error.log)


def test_exceptions_are_made_from_statuses():
    made = driver.DriverError(driver.Result.ERROR_NOT_READY)
    assert made.status == 600 and made.name == "ERROR_NOT_READY" and made.function == "" and made.log == ""
    assert str(driver.DriverError(123456)) == "Unknown error (123456)"
    assert issubclass(driver.DriverTimeoutError, driver.DriverError) and not hasattr(driver, "TimeoutError")
    assert not issubclass(driver.OutOfMemoryError, MemoryError)


@pytest.mark.cpu
def test_exception_has_the_lines_of_the_log_since_the_last_failure():
    failure()
    with pytest.raises(driver.DriverError) as caught:
        driver.mem_alloc_v2(0)
    assert "cuMemAlloc" in caught.value.log and "cuDeviceGet" not in caught.value.log
    with pytest.raises(driver.NotReadyError) as caught:
        raise driver.NotReadyError(600)
    assert caught.value.log == ""


def test_arguments_are_refused_by_name():
    for call, arguments, word in (
        (driver.device_get, (None,), "ordinal"),
        (driver.device_get, ("0",), "ordinal"),
        (driver.ctx_set_current, (1.0,), "ctx"),
        (driver.device_get, (2**40,), "ordinal"),
        (driver.module_load_data, ("text",), "image"),
        (driver.pointer_get_attributes, (5, 0), "attributes"),
    ):
        with pytest.raises((TypeError, ValueError, OverflowError), match=word):
            call(*arguments)
    with pytest.raises(TypeError, match="ordinal"):
        driver.device_get()
    assert driver.device_get(ordinal=0) == 0


def test_text_at_an_address_without_memory_is_refused():
    text = ctypes.create_string_buffer(b"cuInit")
    assert driver.get_proc_address_v2(ctypes.addressof(text), 12000, 0)[0] != 0
    for call, arguments in (
        (driver.get_proc_address_v2, (1 << 62, 12000, 0)),
        (driver.module_load_data, (99,)),
        (driver.device_get_by_pci_bus_id, (4096,)),
    ):
        with pytest.raises(ValueError, match="there is no memory"):
            call(*arguments)


def test_lists_shorter_than_their_count_are_refused():
    graph = driver.graph_create(0)
    first, second = (driver.graph_add_empty_node(graph, None, 0) for _ in range(2))
    edges = driver.GraphEdgeData(2)
    for call in (driver.graph_add_dependencies_v2, driver.graph_remove_dependencies_v2):
        for arguments in (([first], [second] * 2), ([first] * 2, [second])):
            with pytest.raises(RuntimeError, match="(from_|to).: List is too small"):
                call(graph, *arguments, edges, 2)
    stream = driver.stream_create(0)
    driver.stream_begin_capture_v2(stream, 0)
    with pytest.raises(RuntimeError, match="dependencies.: List is too small"):
        driver.stream_update_capture_dependencies_v2(stream, [first], edges, 2, 1)
    driver.graph_destroy(driver.stream_end_capture(stream))
    driver.stream_destroy_v2(stream)
    driver.graph_destroy(graph)


def test_queries_of_several_attributes(memory):
    assert driver.pointer_get_attributes([], memory) == []
    found = driver.pointer_get_attributes([2, 9], memory)
    assert len(found) == 2 and found[0] == 2
    with pytest.raises(TypeError, match="attributes"):
        driver.pointer_get_attributes(None, memory)
    with pytest.raises(TypeError, match="ptr"):
        driver.pointer_get_attributes([2], None)
    with pytest.raises(ValueError, match="2 items, but there are 1 attributes"):
        driver.mem_range_get_attributes([4, 4], [1], memory, 4)


def test_handles_of_the_first_module_are_accepted():
    status, event = first.cuEventCreate(0)
    assert int(status) == 0
    driver.event_record(event, first.CUstream(0))
    driver.event_synchronize(event)
    driver.event_destroy_v2(int(event))
    assert driver.init.__module__ == "cuda.bindings._v2.driver" and first.cuInit.__module__ == "cuda.bindings.driver"


def test_nested_structs_outlive_their_parent():
    location = driver.MemLocation_v1()
    location.type, location.id = driver.MemLocationType.DEVICE, 3
    parent = driver.MemAllocationProp_v1()
    parent.location = location
    inner = parent.location
    del parent
    gc.collect()
    assert (inner.type, inner.id) == (driver.MemLocationType.DEVICE, 3)
    resources = driver.DevResource_v1(2)
    assert len(resources.sm) == 2
    with pytest.raises(ValueError, match="one element"):
        resources.sm = driver.DevSmResource()
    single = resources[1]
    single.sm = driver.DevSmResource()
    uuid = driver.Uuid()
    uuid.bytes = bytes(range(16))
    assert uuid.bytes == bytes(range(16))
    with pytest.raises(ValueError, match="16 bytes"):
        uuid.bytes = b"short"


def test_eight_threads_raise_their_own_exceptions(context):
    failures = []

    def work():
        try:
            driver.ctx_set_current(context)
            for _ in range(200):
                assert failure().function == "device_get"
        except BaseException as exception:
            failures.append(exception)

    import threading

    run_all([threading.Thread(target=work) for _ in range(8)], limit=120)
    assert not failures
