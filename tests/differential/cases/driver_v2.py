"""The driver's functions that raise: scripts of calls without side effects on the machine."""

import array
import ctypes

from typed import filled

MODULE = "cuda.bindings._v2.driver"
MODES = ("ok", "fill", "error:1", "error:700", "error:999", "error:12345")

ARGUMENTS = {
    ("get_proc_address_v2", "symbol"): b"cuInit",
    ("get_proc_address_v2", "cuda_version"): 13000,
    ("get_proc_address_v2", "flags"): 0,
    # Lists whose number Python does not repeat.
    ("memcpy_batch_async", "dsts"): lambda m: array.array("Q", (16, 32)),
    ("memcpy_batch_async", "srcs"): lambda m: array.array("Q", (48, 64)),
    ("memcpy_batch_async", "sizes"): lambda m: array.array("Q", (5, 6)),
    ("memcpy_batch_async", "attrs"): lambda m: filled(m.MemCpyAttributes_v1),
    ("memcpy_batch_async", "attrs_idxs"): lambda m: array.array("Q", (0,)),
    ("mem_range_get_attributes", "data_sizes"): [4, 8],
    ("mem_range_get_attributes", "attributes"): [1, 3],
    ("pointer_get_attributes", "attributes"): [2, 9, 8],
}

KERNEL = b'extern "C" __global__ void add(int *p, int n) { if (threadIdx.x < n) p[threadIdx.x] += 3; }'


def started(m, call):
    """The primary context of the first device, made current."""
    call("init", m.init, 0)
    context = call("retain", m.device_primary_ctx_retain, 0, volatile=True)
    call("set", m.ctx_set_current, context)
    return context


def devices(m, call):
    started(m, call)
    for name, arguments in (
        ("driver_get_version", ()),
        ("device_get_count", ()),
        ("device_get", (0,)),
        ("device_get", (999,)),
        ("device_get_name", (64, 0)),
        ("device_get_name", (3, 0)),
        ("device_get_uuid_v2", (0,)),
        ("device_get_pci_bus_id", (20, 0)),
        ("device_total_mem_v2", (0,)),
        ("device_compute_capability", (0,)),
        ("device_get_properties", (0,)),
        ("device_can_access_peer", (0, 0)),
        ("device_primary_ctx_get_state", (0,)),
        ("ctx_get_stream_priority_range", ()),
        ("ctx_get_limit", (0,)),
        ("ctx_get_limit", (1000,)),
        ("ctx_get_flags", ()),
        ("ctx_get_device", ()),
        ("get_error_name", (1,)),
        ("get_error_name", (123456,)),
        ("device_get_luid", (0,)),
        ("device_get_by_pci_bus_id", (b"ffff:ff:ff.f",)),
        ("device_get_by_pci_bus_id", (None,)),
    ):
        call(f"{name} {arguments}", getattr(m, name), *arguments)
    for attribute in m.DeviceAttribute:
        call(f"attribute {attribute.name}", m.device_get_attribute, attribute, 0)


def memory(m, call):
    started(m, call)
    pointer = call("alloc", m.mem_alloc_v2, 256, volatile=True)
    data = bytes(range(256))
    for source in (data, bytearray(data), memoryview(data), (ctypes.c_char * 256).from_buffer_copy(data)):
        call(f"to device {type(source).__name__}", m.memcpy_htod_v2, pointer, source, 256)
        back = bytearray(256)
        call("from device", m.memcpy_dtoh_v2, back, pointer, 256)
        call("content", bytes, back)
    call("no source", m.memcpy_htod_v2, pointer, None, 256)
    call("no destination", m.memcpy_dtoh_v2, None, pointer, 256)
    call("set", m.memset_d32_v2, pointer, 7, 64)
    call("range", m.mem_get_address_range_v2, pointer, volatile=True)
    for attribute in (2, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15, 17, 18, 20, 99):
        call(f"pointer attribute {attribute}", m.pointer_get_attribute, attribute, pointer, volatile=attribute == 7)
    call("pointer attributes", m.pointer_get_attributes, [2, 9, 8], pointer)
    call("free", m.mem_free_v2, pointer)
    call("nothing", m.mem_alloc_v2, 0)
    pool = call("pool", m.device_get_default_mem_pool, 0, volatile=True)
    for attribute in (1, 2, 3, 4, 99):
        call(f"pool attribute {attribute}", m.mem_pool_get_attribute, pool, attribute)
    described = m.ArrayDescriptor_v2()
    described.width = described.height = 4
    described.format, described.num_channels = 0x20, 1
    for given in (described, described.ptr):
        array = call("array", m.array_create_v2, given, volatile=True)
        call("descriptor", m.array_get_descriptor_v2, array)
        call("destroy", m.array_destroy, array)
    call("no array", m.array_create_v2, None)
    call("coredump", m.coredump_get_attribute, 77)


def launches(m, call):
    from cuda.bindings._v2 import nvrtc

    started(m, call)
    program = nvrtc.create_program(KERNEL, b"add.cu")
    nvrtc.compile_program(program, [b"-arch=compute_80"])
    module = call("load", m.module_load_data, nvrtc.get_ptx(program), volatile=True)
    call("functions", m.module_get_function_count, module)
    call("enumerate", lambda: len(list(m.module_enumerate_functions(module))))
    kernel = call("function", m.module_get_function, module, b"add", volatile=True)
    call("no function", m.module_get_function, module, b"sub")
    call("name", m.func_get_name, kernel)
    call("attribute", m.func_get_attribute, 0, kernel)
    pointer = call("alloc", m.mem_alloc_v2, 128, volatile=True)
    call("clear", m.memset_d32_v2, pointer, 1, 32)
    given = ((pointer, 32), (ctypes.c_void_p, ctypes.c_int))
    call("launch", m.launch_kernel, kernel, 1, 1, 1, 32, 1, 1, 0, 0, given, 0)
    call("too many threads", m.launch_kernel, kernel, 1, 1, 1, 5000, 1, 1, 0, 0, given, 0)
    call("synchronize", m.ctx_synchronize)
    back = bytearray(128)
    call("copy", m.memcpy_dtoh_v2, back, pointer, 128)
    call("content", bytes, back)
    call("unload", m.module_unload, module)


def graphs(m, call):
    started(m, call)
    graph = call("graph", m.graph_create, 0, volatile=True)
    first = call("first", m.graph_add_empty_node, graph, 0, 0, volatile=True)
    second = call("second", m.graph_add_empty_node, graph, [first], 1, volatile=True)
    call("third", m.graph_add_empty_node, graph, (first, second), 2, volatile=True)
    call("nodes", lambda: len(list(m.graph_get_nodes(graph))))
    call("edges", lambda: [len(list(part)) for part in m.graph_get_edges_v2(graph)[:2]])
    call("edge data", lambda: type(m.graph_get_edges_v2(graph)[2]).__name__)
    call("type", m.graph_node_get_type, first)
    call("too long", m.graph_add_empty_node, graph, [first], 0, volatile=True)
    executable = call("instantiate", m.graph_instantiate_with_flags, graph, 0, volatile=True)
    stream = call("stream", m.stream_create, 1, volatile=True)
    call("launch", m.graph_launch, executable, stream)
    call("wait", m.stream_synchronize, stream)
    call("query", m.stream_query, stream)
    call("begin", m.stream_begin_capture_v2, stream, 2)
    call("capturing", m.stream_is_capturing, stream)
    call("state", lambda: [m.stream_get_capture_info_v3(stream)[0], len(m.stream_get_capture_info_v3(stream)[3])])
    call("end", m.stream_end_capture, stream, volatile=True)
    call("exchange", m.thread_exchange_stream_capture_mode, 0)
    for name in ("graph_exec_destroy", "graph_destroy", "stream_destroy_v2"):
        handle = {"graph_exec_destroy": executable, "graph_destroy": graph, "stream_destroy_v2": stream}[name]
        call(name, getattr(m, name), handle)
    for name in ("event_query", "stream_query", "event_destroy_v2", "module_unload", "ctx_destroy_v2"):
        call(f"{name} of nothing", getattr(m, name), 0x1234560)


SCRIPTS = (devices, memory, launches, graphs)
