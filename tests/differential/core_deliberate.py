"""Deliberate differences between NVIDIA's `cuda.core` and ours, each with its reason.

A rule is (group, line, difference, reason[, test of the two outcomes]). The first three are patterns; the group's is
matched from its beginning, the others anywhere. BELOW has lines that cannot be compared on the machine, ON_SOME
differences that appear on some machines only.
"""

import json


def names(outcome):
    """The texts in a list that a line returned."""
    value = outcome.get("value")
    return {item.get("str") for item in value.get("list", ())} if isinstance(value, dict) else set()


def only_more(*extra):
    """Ours has the peer's names, plus only these."""

    def test(peer, ours):
        return names(peer) <= names(ours) <= names(peer) | set(extra)

    return test


def returns(outcome):
    return "value" in outcome


def opened_events_have_a_device(peer, ours):
    """For an event of another process ours reports a device and a context; nothing else differs."""
    return json.dumps(peer).replace("True, True, [None", "False, False, [None") == json.dumps(ours)


NO_CONTEXT = "the device's context is current during the call; set_current is not needed"
MORE = "an addition: documented, and refused by NVIDIA's"
BEFORE = "a spelling of cuda.core before 1.0, still accepted"
SAFE = "the default stream stays usable; NVIDIA's is closed for all users, or raises in its repr"
EARLY = "refused where it is given; NVIDIA's refuses it on use, or ignores it"
ASSERTION = "an error with the reason, where NVIDIA's fails an assertion"
TYPE = "a wrong type is a TypeError"
CHECKED = "a DLPack exporter's claims are validated"
PROTOCOL = "buffers of host-readable memory have the buffer protocol"
TOO_LARGE = "a layout too large for any memory is refused at construction"
NOTHING = "an empty view has the shape (0,)"
FIXED = "views are immutable"
INTS = "counts are ints; NVIDIA's truncates floats and converts text"
RANGE = "sizes in bytes are validated before the driver call"

BELOW = [
    (
        ".*",
        "",
        "",
        "the runtime inside NVIDIA's package does not run on the CPU device's driver",
        lambda peer, ours: "cudaErrorNotSupported" in peer.get("text", ""),
    ),
    (
        ".*",
        "",
        "",
        "cubins of NVIDIA's compilers do not load through NVIDIA's package on the CPU device's driver",
        lambda peer, ours: "CUDA_ERROR_NO_BINARY_FOR_GPU" in peer.get("text", ""),
    ),
    (
        "graph: split and join",
        r"\bj\b",
        "ours returns",
        "NVIDIA's GraphBuilder.join fails on the CPU device's driver",
    ),
    # Differences between cuda-core 1.2.2 and 1.2.0, where 1.2.0 is the peer.
    ("private names", "__version__", "values differ", "another version of NVIDIA's package"),
    ("buffer: without a context", r"HostOnly\(\)", "RuntimeError, ours returns", "another version of NVIDIA's package"),
]

DELIBERATE = [
    # Graphs
    ("graph: builder", "is_building", "RuntimeError, ours returns", "a closed builder is not building"),
    ("graph: conditions", r"k\.handle", "values differ", "a handle is an object of cuda.bindings"),
    (
        "graph: conditions",
        r"u\.instantiate",
        "RuntimeError, ours cuda.core.CUDAError",
        "an error of the driver is a CUDAError",
    ),
    (
        "graph: (definition|events and children)",
        r"join\(h\)|embed\(g\)",
        "raises cuda.core.CUDAError, ours builtins.ValueError",
        EARLY,
    ),
    ("graph: edges", "", "raises cuda.core.CUDAError, ours builtins.ValueError", EARLY),
    ("graph: edges", "join", "CUDAError, ours returns", "a node given twice is one dependency"),
    ("graph: edges", "edges", "values differ", "a change of edges that fails changes nothing"),
    ("graph: allocations", r"^[md]\.allocate.*stream=b", "RuntimeError, ours returns", MORE),
    (
        "graph: allocations",
        "end_building",
        "RuntimeError, ours cuda.core.CUDAError",
        "an error of the driver is a CUDAError",
    ),
    ("green: options|green", r"Options\(concurrency_limit=1\.5", "returns, ours raises builtins.TypeError", INTS),
    ("green", r"Options\(concurrency_limit=1 << 40", "returns, ours raises builtins.ValueError", EARLY),
    ("graph: definition", r"k\.pred", "returns, ours raises", "a destroyed node has no edges"),
    ("graph: memory nodes", r"4\.5", "ours raises builtins.TypeError", INTS),
    ("graph: options", r"instantiate\(5\)", "ours builtins.TypeError", TYPE),
    ("graph: options", " is ", "values differ", "resources of one device are several objects"),
    ("graph: options", r"\(99\)", "returns, ours raises builtins.ValueError", EARLY),
    ("graph: wrong joins", "end_building", "CUDAError, ours builtins.RuntimeError", EARLY),
    ("graph: launches", r"\(one, add\)", "CUDAError, ours builtins.TypeError", EARLY),
    # Textures and tensor maps
    (
        "texture: options",
        "^public",
        "values differ",
        "an addition: layers and cubes",
        only_more("is_layered", "is_cubemap"),
    ),
    ("texture: options", r'"88"|8\.5|2\.5', "ours raises builtins.TypeError", INTS),
    ("texture: arrays", "get_level", "ours raises builtins.TypeError", INTS),
    ("texture: (resources|objects)", 'width="8"|anisotropy=1.5', "ours raises builtins.TypeError", INTS),
    ("texture: arrays", "weakref", "TypeError, ours returns", MORE),
    ("texture: arrays", "create_mipmapped_array", "ours raises builtins.ValueError", "more levels than the array has"),
    (
        "texture: resources",
        "copy.copy",
        "ours raises builtins.TypeError",
        "a resource descriptor is not copied; share it",
    ),
    (
        "tensor map",
        "",
        "raises cuda.core.CUDAError, ours builtins.ValueError",
        "a rule of the driver's manual, by argument",
    ),
    ("tensor map", r"as_tensor_map\(\[32, 32\]\)", "TypeError, ours returns", MORE),
    (
        "tensor map",
        "FLOAT16|strides=",
        "returns, ours raises builtins.ValueError",
        "the map would describe other elements than the view",
    ),
    # Devices and contexts
    ("device: without a context", "", "raises cuda.core.CUDAError, ours returns", NO_CONTEXT),
    ("device: without a context", "default_stream", "values differ", SAFE),
    ("device: current", "create_stream|create_event|allocate", "ours returns", NO_CONTEXT),
    ("device: threads", "", "raises cuda.core.CUDAError, ours returns", NO_CONTEXT),
    (
        "device: object|stream: object|context",
        "^public",
        "values differ",
        MORE,
        only_more("total_memory"),
    ),
    ("device: object", "total_memory|^with", "ours returns", MORE),
    (
        "device: properties",
        "pickle",
        "ours raises",
        "a device's properties belong to its process; NVIDIA's pickles a copy without a device",
    ),
    ("environment", "numpy", "values differ", "NumPy is imported on first use"),
    ("device: allocate", r"^d.allocate\(16(, stream=None|, s|)\)", "ours returns", MORE),
    (
        "device: streams and events",
        "ipc_enabled=True\\)\\)",
        "TypeError, ours returns",
        "an IPC event need not be recorded at creation",
    ),
    (
        "(stream|event): options",
        r"^o\.\w+ = ",
        "ours returns",
        "options are Python objects, validated on use",
    ),
    (
        "stream: options",
        "1 << 40",
        "OverflowError, ours builtins.ValueError",
        "any priority out of range is a ValueError",
    ),
    (
        "stream: protocol",
        r"wait\(Streamlike\(\(1",
        "ValueError, ours builtins.RuntimeError",
        "an unknown protocol version raises the same error everywhere",
    ),
    # The machine and checkpoints
    ("system: which", r"index=0\.0", "returns, ours raises builtins.TypeError", TYPE),
    ("system: device events", r"\(\(", "TypeError, ours returns", MORE),
    (
        "system: device events|checkpoint: arguments",
        r"wait\(-1\)|lock\(1 << 32\)",
        "OverflowError, ours builtins.ValueError",
        RANGE,
    ),
    ("checkpoint: arguments", "1 << 31", "returns, ours raises builtins.ValueError", EARLY),
    # Memory
    ("buffer: copies with arrays", "", "TypeError, ours returns", MORE),
    ("buffer: copies with arrays", "zeros\\(8", "TypeError, ours builtins.ValueError", MORE),
    ("buffer: copies with arrays", "bytes\\(64", "TypeError, ours builtins.BufferError", MORE),
    ("buffer: from_handle", 'from_handle\\("x"', "ValueError, ours builtins.TypeError", "a wrong type is a TypeError"),
    ("memory resource: device", r"^mr.allocate\(16(, stream=None|, s|)\)", "ours returns", MORE),
    (
        "memory resource: in Python",
        "stream=None",
        "values differ",
        "a memory resource receives the default stream instead of None",
    ),
    ("memory resource: without a context", "allocate", "CUDAError, ours returns", NO_CONTEXT),
    (
        "(pinned|managed) memory: without a context",
        r"^(Pinned|Managed)MemoryResource",
        "CUDAError, ours returns",
        NO_CONTEXT,
    ),
    ("(pinned|managed) memory: resource", r"^m.allocate\(16(, stream=None|, s|)\)", "ours returns", MORE),
    ("managed memory: resource", "stream=3", "AssertionError, ours builtins.TypeError", ASSERTION),
    ("memory resource: base", "weakref", "TypeError, ours returns", MORE),
    ("legacy pinned memory", "^b.device_id", "RuntimeError, ours returns", "pinned memory belongs to no device: -1"),
    (
        "legacy pinned memory",
        "ipc_descriptor",
        "AttributeError, ours builtins.RuntimeError",
        "every buffer that cannot be shared raises the same error",
    ),
    ("managed buffer: from_handle", '"x"', "ValueError, ours builtins.TypeError", TYPE),
    (
        "managed buffer: accessed by|peers: set",
        r"\.pop\(\)",
        "ours has no message",
        "Python's own error for an empty set",
    ),
    ("buffer: without a context", "Mine\\(\\)", "RuntimeError, ours returns", NO_CONTEXT),
    ("buffer: equality", "__ne__", "values differ", "Python derives `!=` from `==`"),
    (
        "(managed )?buffer: (exporting|object)",
        r"memoryview|__buffer__|^bytes|frombuffer",
        "Error, ours (returns|builtins.BufferError)",
        PROTOCOL,
    ),
    ("virtual memory: options", r"dataclasses.fields", "values differ", "an empty tuple needs no default factory"),
    (
        "virtual memory: resource",
        "^\\[n for n",
        "values differ",
        "attributes of the resource are defined by its class",
    ),
    (
        "virtual memory: resource",
        r"allocate\(0\)",
        "CUDAError, ours returns",
        "zero bytes are an empty buffer in every memory resource",
    ),
    ("virtual memory: (resource|growing)", "-1", "OverflowError", RANGE),
    ("virtual memory: growing", "1 << 62", "status", "another driver call is the first to fail"),
    ("virtual memory: growing", "1 << 23", "CUDAError, ours returns", "an allocation can grow more than once"),
    ("virtual memory: what is asked for", "win32|peers|addr_align", "ours builtins.(ValueError|TypeError)", EARLY),
    (
        "virtual memory: growing",
        "= V\\(d\\)",
        "returns, ours raises cuda.core.CUDAError",
        "only the resource that allocated memory can grow it",
    ),
    (
        "batches: copies|copy options",
        "LEGACY_DEFAULT_STREAM",
        "TypeError, ours returns",
        "the legacy default stream copies the buffers one by one",
    ),
    # Other processes
    (
        "processes: buffers",
        r"allocate\(0",
        "CUDAError, ours returns",
        "an empty buffer can be sent: there is nothing to share",
    ),
    ("processes: events", "create_event", "TypeError, ours returns", MORE),
    ("processes: events", "bytes\\(64", "status None", "the error has the driver's status"),
    (
        "processes: children",
        r"\be\b",
        "values differ",
        "an imported event has a device and a context",
        opened_events_have_a_device,
    ),
    (
        "processes: children",
        "early",
        "values differ",
        "events among a process's arguments are opened before a context is current",
        lambda peer, ours: "the child went" in json.dumps(peer) and "IPCEventDescriptor" in json.dumps(ours),
    ),
    # Views and layouts
    (
        "layout: |view: from_buffer|DLPack: handwritten tensors",
        r"1 << 62|\(2,\) \* 64",
        "ours (raises )?builtins.ValueError",
        TOO_LARGE,
    ),
    ("view: from_buffer", "LegacyPinned", "RuntimeError, ours returns", "pinned memory belongs to no device: -1"),
    (
        "view: from_buffer",
        "__dlpack_device__",
        "RuntimeError, ours returns",
        "a view keeps a closed buffer's memory alive",
    ),
    ("view: constructor", r"^v\.|repr\(v\)|V\(None", "ValueError, ours returns", NOTHING),
    ("view: functions", "empty\\(\\)", "ours (raises )?builtins.TypeError", FIXED),
    (
        "view: DLPack",
        r"asked\((7\)|-?\d, device)",
        "values differ",
        "host exporters, page-locked or not, receive no stream",
    ),
    ("DLPack: handwritten tensors", "32, 4", "NotImplementedError, ours returns", MORE),
    (
        "view: CUDA array interface|view: DLPack|view: arguments",
        r"^(cuda|dlpack)\((x, )?s\)|view\(s\)",
        "TypeError, ours returns",
        MORE,
    ),
    (
        "view: (CUDA array interface|DLPack)|DLPack: handwritten tensors|processes",
        "",
        "AssertionError, ours builtins.(ValueError|TypeError|BufferError)",
        ASSERTION,
    ),
    ("view: CUDA array interface", r"cuda\(-1, stream=0\)", "returns, ours raises builtins.ValueError", EARLY),
    (
        "view: (CUDA )?array interface|view: from_buffer",
        r"\(None\)|view\(3",
        "AttributeError, ours builtins.TypeError",
        TYPE,
    ),
    ("view: DLPack", "device=\\(2", "returns, ours raises builtins.BufferError", CHECKED),
    (
        "view: arguments",
        r"^f\(1\)",
        "IndexError, ours builtins.TypeError",
        "a missing argument raises the error of the undecorated function",
    ),
    ("view: arguments", r"b=x", "IndexError, ours returns", MORE),
    ("view: array interface", "", "values differ", "host memory is on no device: -1, as through DLPack"),
    ("view: copies", "", "NotImplementedError, ours returns", MORE),
    ("view: object", "weakref|memoryview", "TypeError, ours returns", MORE),
    ("layout: object", "stride_order|, 3\\)$", "ValueError, ours builtins.TypeError", TYPE),
    ("DLPack: handwritten tensors", "1,\\) \\* 70", "ValueError, ours builtins.BufferError", CHECKED),
    (
        "DLPack: handwritten tensors",
        "w = v.view",
        "values differ",
        "a view of a view keeps the exporter's memory alive",
    ),
    ("DLPack: handwritten tensors", "data=0|version=\\(2", "returns, ours raises builtins.BufferError", CHECKED),
    ("DLPack: handwritten tensors", "kind=\\((6, 1|0, 4)", "ours (raises )?builtins.ValueError", CHECKED),
    # Programs
    (
        "program options: others",
        r"ptxas_options=\[?3|undefine_macro=3|include_path=3|pre_include=3",
        "ours raises|ours builtins.TypeError",
        EARLY,
    ),
    (
        "program options: others",
        r"=\[\]\)",
        "raises cuda.core.CUDAError, ours returns",
        "an empty list requests nothing",
    ),
    (
        "program options: others",
        "define_macro=",
        "CUDAError, ours builtins.RuntimeError",
        "an invalid macro is reported before options that NVVM lacks",
    ),
    (
        "program options: others|cache key",
        "(time|fdevice_time_trace|create_pch|use_pch|pch_dir)=False",
        "",
        "False requests no file; NVIDIA's uses a file of that name",
        lambda peer, ours: returns(ours),
    ),
    (
        "program options: others",
        "pathlib.Path",
        "values differ",
        "paths are accepted where strings are; NVIDIA's ignores them",
    ),
    ("program options: object", r"p\.foo = 3", "ours raises builtins.AttributeError", EARLY),
    ("program options: others", "name=3", "AttributeError, ours builtins.TypeError", "a wrong type is a TypeError"),
    ("program: made", "^public", "values differ", MORE, only_more("link")),
    (
        "program: compile",
        'compile\\("ltoir"',
        "values differ",
        "NVIDIA's compiles to LTO IR without the required option and returns an empty result",
    ),
    (
        "program: compile",
        r"link_time_optimization=True.*(ptx|cubin)",
        "returns, ours raises builtins.ValueError",
        "NVRTC then makes LTO IR only; NVIDIA's returns an empty result",
    ),
    ("program: compile", 'name_expressions="k"', "returns, ours raises builtins.TypeError", EARLY),
    ("program: logs", "logs=3", "returns, ours raises builtins.AttributeError", EARLY),
    ("program: repeated", "t<int>", "NVRTCError, ours returns", MORE),
    ("program: object|cache: on disk", r"pickle\.dumps|copy\.copy", "TypeError, ours returns", MORE),
    ("program: ptx", "link", "ours returns", MORE),
    ("cache key", r"options=(None|3)", "AttributeError, ours builtins.TypeError", "a wrong type is a TypeError"),
    (
        "cache: compile",
        "include_path|name_expressions",
        "ValueError, ours returns",
        "headers and names are part of a cache entry",
    ),
    (
        "cache: (in memory|on disk)",
        "^public",
        "values differ",
        MORE,
        only_more("compile_lock", "hits", "lock_timeout", "misses"),
    ),
    ("cache: resource", "^public", "values differ", MORE, only_more("compile_lock")),
    ("cache: (in memory|on disk)", "hits, .*misses|lock_timeout", "AttributeError, ours returns", MORE),
    # Linking, kernels
    (
        "linker options",
        "'(time|optimize_unused_variables)': False",
        "values differ",
        "False requests no option",
    ),
    (
        "linker options",
        r"_used': \('a',\)",
        "values differ",
        "a tuple of names is accepted like a list; NVIDIA's ignores it",
    ),
    ("linker options", "': 3}", "returns, ours raises builtins.TypeError", EARLY),
    ("linker options", "'name': None", "ours returns", MORE),
    ("linker options", "'name': 3", "AttributeError, ours builtins.TypeError", "a wrong type is a TypeError"),
    ("linker: object", "^public", "values differ", MORE, only_more("backend")),
    ("linker: object", "backend$", "ours returns", MORE),
    (
        "linker: (object|links)",
        "get_.*_log",
        "RuntimeError, ours returns",
        "the logs of a linker can be read after close()",
    ),
    ("object code", r"from_ptx\((3|None)\)$", "returns, ours raises builtins.TypeError", EARLY),
    ("object code", r"from_ptx\(memoryview", "values differ", MORE),
    ("object code", 'symbol_mapping=.*"z": "k"', "ours returns", MORE),
    ("object code", "^repr", "ours returns|values differ", "repr loads nothing"),
    ("kernel: attributes", "type\\(getattr", "values differ", BEFORE),
    ("kernel: attributes", r"^t\.\w+\(0?\)$", "TypeError, ours returns", BEFORE),
    ("kernel: object", "copy|pickle", "ours returns", MORE),
    ("kernel: object", r"from_handle\(k.handle\)", "ours returns", MORE),
    ("kernel: object", r"from_handle\(0\)", "returns, ours raises builtins.ValueError", EARLY),
    # Launches
    ("launch config", r"\[1, 2\]|np\.int32", "ours returns", MORE),
    ("launch config", "1 << 40|shmem_size=-1", "returns, ours raises", EARLY),
    ("launch config", "cooperative_launch", "ours returns", BEFORE),
    ("launch config", "copy|pickle", "ours returns", MORE),
    (
        "launch: (call|too many)",
        r"K\[",
        "ours builtins.TypeError|ours raises builtins.TypeError",
        "the number of arguments is checked against the kernel's parameters",
    ),
    ("launch: numbers", r"1 << 6[34]", "OverflowError, ours returns", "unsigned 64-bit integers are accepted"),
    (
        "launch: numbers",
        r"f4.*1\.5|c8.*2j",
        "returns, ours raises builtins.TypeError",
        "the size of an argument is checked against its parameter",
    ),
    ("launch: numbers", "datetime64|c_char|c_wchar", "TypeError, ours returns", MORE),
    ("launch: pointers", "", "TypeError, ours returns", MORE),
    ("launch: structs", "", "TypeError, ours returns", MORE),
    ("kernel: occupancy", "lambda", "TypeError, ours returns", MORE),
    # Streams and events
    ("stream: default ones", "^repr", "raises cuda.core.CUDAError, ours returns", SAFE),
    (
        "stream: default ones",
        "device",
        "status",
        "the driver is initialised on first use; no context exists then",
    ),
    (
        "stream: default ones",
        "is_closed|sync",
        "",
        "closing a default stream has no effect on its other users",
        lambda peer, ours: returns(ours),
    ),
    ("stream: more than the peer", "", "ours returns", MORE),
    ("stream: object", r"^Stream\((1|foo)", "RuntimeError, ours builtins.(Type|Value)Error", MORE),
    ("stream: object", "__new__", "values differ", "a class constructs complete objects"),
    (
        "stream: protocol",
        "weakref|^y.close",
        "values differ",
        "a stream keeps the object whose handle it wraps until it is closed",
    ),
    ("stream: waiting and recording", r"wait\(None\)", "returns, ours raises builtins.ValueError", EARLY),
    ("stream: from_handle", r"1\.5", "returns, ours raises builtins.TypeError", EARLY),
    ("event: object", "^public", "values differ", BEFORE, only_more("get_ipc_descriptor", "is_sync_busy_waited")),
    ("event: spellings before 1.0", "", "ours returns", BEFORE),
    ("event: spellings before 1.0", "get_ipc_descriptor", "AttributeError, ours builtins.RuntimeError", BEFORE),
]

ON_SOME = [
    (
        "graph: conditions",
        r"g\.instantiate",
        "RuntimeError, ours cuda.core.CUDAError",
        "an error of the driver is a CUDAError",
    ),
    (
        "green: work queues",
        r"workqueue|preferred_coscheduled",
        "RuntimeError, ours cuda.core.CUDAError",
        "an error of the driver is a CUDAError",
    ),
    (
        "system: device's parts",
        "shows",
        "values differ",
        "NVML does not have the time of the last flush at all times",
        lambda peer, ours: (
            json.dumps(ours).replace('{"str": "NotReadyError"}', '{"list": [{"str": "int"}, {"str": "int"}]}')
            == json.dumps(peer)
        ),
    ),
    ("tensor map: tiled", r"replace_address\(view\(64\)\)", "returns, ours raises builtins.ValueError", EARLY),
    (
        "system: device events",
        r"\.wait\(",
        r"nvml\.TimeoutError, ours cuda\.bindings\.nvml\.NvmlTimeoutError",
        "cuda.bindings 13.5 has another exception",
    ),
    (
        "system: device events",
        r"\.wait\(",
        "",
        "the type of the event, or of an unknown one, is no KeyError",
        lambda peer, ours: "KeyError" in peer.get("raises", ""),
    ),
    (
        "pinned memory|processes",
        r"\.fill\(",
        "CUDAError, ours returns",
        "host pools are accessible to all devices from the start",
    ),
    (
        "copy options",
        "during_api_call",
        "RuntimeError, ours returns",
        "if the driver (before 13.2) has no call for it, the copy waits",
    ),
    # A GPU's driver loads such code lazily, and NVIDIA's package then refuses it as ours does.
    (
        "object code",
        r"from_(ltoir|object|library)\(b.nonsense",
        "CUDAError, ours builtins.RuntimeError",
        "code that must be linked is refused before the driver loads it",
    ),
    ("copy options", "location_hint=0", "returns, ours raises builtins.TypeError", EARLY),
    ("batches", r"\bz\b", "CUDAError, ours returns", "copies and moves of zero bytes have no effect"),
    (
        "managed buffer|peers: work",
        r"accessed_by",
        "CUDAError, ours returns",
        "removing an absent device needs no driver call, which may refuse all advice",
    ),
    (
        "two devices: a fault",
        r"\b[de]\.sync\(",
        "status cudaErrorIllegalAddress, ours CUDA_ERROR_ILLEGAL_ADDRESS",
        "Device.sync calls the driver; NVIDIA's calls the runtime",
    ),
    (
        "two devices: a fault",
        "",
        "CUDAError, ours returns|values differ",
        "a fault makes one context of the CPU device unusable",
    ),
    (
        "two devices: captured graphs",
        r"\.update\(",
        "status None, ours CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
        "the error has the driver's status",
    ),
    (
        "two devices: graph definitions",
        "=.?99",
        "CUDAError, ours raises builtins.ValueError|CUDAError, ours builtins.ValueError",
        EARLY,
    ),
    (
        "two devices",
        r"\bs\.wait\(t\)|\bt\.record\(\)|\bse\.record\(\)",
        "CUDAError, ours returns",
        NO_CONTEXT,
    ),
    (
        "two devices: managed",
        "LOCATION_TYPE",
        "TypeError, ours returns",
        "an attribute that NVIDIA's cuda.bindings does not accept",
    ),
    (
        "two devices: (properties|topology)",
        "ARRAY_ACCESS|AtomicCapabilities|p2p_status|common_ancestor|nearest_gpus",
        "values differ",
        "CPU devices are chips on one board without a link",
    ),
]
