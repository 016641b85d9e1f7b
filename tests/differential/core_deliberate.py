"""Differences between NVIDIA's `cuda.core` and ours that are meant, each with its reason.

A rule is (group, line, what differs, reason[, test of the two outcomes]): patterns; the group's is matched from its
beginning, the others anywhere. BELOW holds what one of the two cannot show on the machine at hand, ON_SOME what shows on
some machines only.
"""

import json


def names(outcome):
    """The texts in a list that a line gave."""
    value = outcome.get("value")
    return {item.get("str") for item in value.get("list", ())} if isinstance(value, dict) else set()


def only_more(*extra, later=()):
    """Ours has the peer's names, except those that are not built yet, and only these more."""

    def test(peer, ours):
        return names(peer) - set(later) <= names(ours) <= names(peer) | set(extra)

    return test


def returns(outcome):
    return "value" in outcome


def opened_events_have_a_device(peer, ours):
    """Ours says of an event of another process that it has a device and a context; nothing else is different."""
    return json.dumps(peer).replace("True, True, [None", "False, False, [None") == json.dumps(ours)


LATER = "still to come: graphs, textures, green contexts, the system"
LATER_NAMES = """create_graph_builder create_mipmapped_array create_opaque_array create_surface_object create_texture_object
to_system_device resources""".split()

NO_CONTEXT = "a device's context is made current for the call: set_current is not needed first"
MORE = "an addition of ours: documented, and refused by the peer"
BEFORE = "a spelling of cuda.core before 1.0, still accepted"
SAFE = "what is asked is answered; the peer's object is closed, or raises in its repr, for everybody"
EARLY = "refused where it is given, and not where it is used, or silently not at all"
ASSERTION = "where the peer fails an assertion, the error says what is wrong"
TYPE = "a wrong type is a TypeError"
CHECKED = "what a DLPack exporter claims is checked"
PROTOCOL = "buffers have the buffer protocol, where the host can read their memory"
TOO_LARGE = "a layout that no memory holds is refused when it is made"
NOTHING = "a view of nothing has the shape (0,)"
FIXED = "a view does not change once it is made"
RANGE = "a number of bytes is checked before the driver sees it"

BELOW = [
    (
        ".*",
        "",
        "",
        "the runtime inside NVIDIA's package does not run over the CPU device's driver",
        lambda peer, ours: "cudaErrorNotSupported" in peer.get("text", ""),
    ),
    (
        ".*",
        "",
        "",
        "cubins of NVIDIA's compilers do not load in the peer over the CPU device's driver",
        lambda peer, ours: "CUDA_ERROR_NO_BINARY_FOR_GPU" in peer.get("text", ""),
    ),
    # What cuda-core 1.2.2 does otherwise than 1.2.0, where that is the peer.
    ("private names", "__version__", "values differ", "another version of the peer"),
    ("buffer: without a context", r"HostOnly\(\)", "RuntimeError, ours returns", "another version of the peer"),
]

DELIBERATE = [
    # Devices and contexts
    ("device: without a context", "", "raises cuda.core.CUDAError, ours returns", NO_CONTEXT),
    ("device: without a context", "default_stream", "values differ", SAFE),
    ("device: current", "create_stream|create_event|allocate", "ours returns", NO_CONTEXT),
    ("device: threads", "", "raises cuda.core.CUDAError, ours returns", NO_CONTEXT),
    (
        "device: object|stream: object|context",
        "^public",
        "values differ",
        LATER,
        only_more("total_memory", later=LATER_NAMES),
    ),
    (
        "device: without a context|stream: (object|closed)",
        "resources",
        "ours builtins.AttributeError|ours raises builtins.AttributeError",
        LATER,
    ),
    ("private names", "__all__", "values differ", LATER, lambda peer, ours: names(ours) < names(peer)),
    ("device: object", "total_memory|^with", "ours returns", MORE),
    (
        "device: properties",
        "pickle",
        "ours raises",
        "a device's properties belong to its process; the peer writes a copy that knows no device",
    ),
    ("environment", "numpy", "values differ", "NumPy is imported when it is needed"),
    ("device: allocate", r"^d.allocate\(16(, stream=None|, s|)\)", "ours returns", MORE),
    (
        "device: streams and events",
        "ipc_enabled=True\\)\\)",
        "TypeError, ours returns",
        "an event for other processes need not be recorded when it is made",
    ),
    (
        "(stream|event): options",
        r"^o\.\w+ = ",
        "ours returns",
        "options are objects of Python: what is in them is looked at where they are used",
    ),
    (
        "stream: options",
        "1 << 40",
        "OverflowError, ours builtins.ValueError",
        "a priority out of range is a ValueError however far out",
    ),
    (
        "stream: protocol",
        r"wait\(Streamlike\(\(1",
        "ValueError, ours builtins.RuntimeError",
        "a version of the protocol that is not known is told of the same way everywhere",
    ),
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
        "a memory resource is told the stream it stands for: the default one",
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
        "every buffer that cannot be shared says so in the same way",
    ),
    ("managed buffer: from_handle", '"x"', "ValueError, ours builtins.TypeError", TYPE),
    (
        "managed buffer: accessed by|peers: set",
        r"\.pop\(\)",
        "ours has no message",
        "Python's own error of an empty set",
    ),
    ("buffer: without a context", "Mine\\(\\)", "RuntimeError, ours returns", NO_CONTEXT),
    ("buffer: equality", "__ne__", "values differ", "Python derives `!=` from `==`"),
    (
        "(managed )?buffer: (exporting|object)",
        r"memoryview|__buffer__|^bytes|frombuffer",
        "Error, ours (returns|builtins.BufferError)",
        PROTOCOL,
    ),
    ("virtual memory: options", r"dataclasses.fields", "values differ", "an empty tuple needs no factory"),
    (
        "virtual memory: resource",
        "^\\[n for n",
        "values differ",
        "attributes of the resource are attributes of its class",
    ),
    (
        "virtual memory: resource",
        r"allocate\(0\)",
        "CUDAError, ours returns",
        "nothing is an empty buffer in every memory resource",
    ),
    ("virtual memory: (resource|growing)", "-1", "OverflowError", RANGE),
    ("virtual memory: growing", "1 << 62", "status", "the first call that refuses is another one"),
    ("virtual memory: growing", "1 << 23", "CUDAError, ours returns", "an allocation grows more than once"),
    ("virtual memory: what is asked for", "win32|peers|addr_align", "ours builtins.(ValueError|TypeError)", EARLY),
    (
        "virtual memory: growing",
        "= V\\(d\\)",
        "returns, ours raises cuda.core.CUDAError",
        "memory is grown by the resource that it came from",
    ),
    (
        "batches: copies|copy options",
        "LEGACY_DEFAULT_STREAM",
        "TypeError, ours returns",
        "the legacy default stream copies one buffer after the other",
    ),
    # Other processes
    (
        "processes: buffers",
        r"allocate\(0",
        "CUDAError, ours returns",
        "an empty buffer can be sent as any other: there is nothing to share",
    ),
    ("processes: events", "create_event", "TypeError, ours returns", MORE),
    ("processes: events", "bytes\\(64", "status None", "the error tells what the driver said"),
    (
        "processes: children",
        r"\be\b",
        "values differ",
        "an event of another process has a device and a context",
        opened_events_have_a_device,
    ),
    (
        "processes: children",
        "early",
        "values differ",
        "events open among the arguments of a process, where no context is current yet",
        lambda peer, ours: "the child went" in json.dumps(peer) and "IPCEventDescriptor" in json.dumps(ours),
    ),
    # Views and layouts
    (
        "layout: |view: from_buffer|DLPack: tensors",
        r"1 << 62|\(2,\) \* 64",
        "ours (raises )?builtins.ValueError",
        TOO_LARGE,
    ),
    ("view: from_buffer", "LegacyPinned", "RuntimeError, ours returns", "pinned memory belongs to no device: -1"),
    (
        "view: from_buffer",
        "__dlpack_device__",
        "RuntimeError, ours returns",
        "a view keeps the memory of a buffer that is closed",
    ),
    ("view: constructor", r"^v\.|repr\(v\)|V\(None", "ValueError, ours returns", NOTHING),
    ("view: functions", "empty\\(\\)", "ours (raises )?builtins.TypeError", FIXED),
    (
        "view: DLPack",
        r"asked\((7\)|-?\d, device)",
        "values differ",
        "an exporter of the host, page-locked or not, is asked without a stream",
    ),
    ("DLPack: tensors", "32, 4", "NotImplementedError, ours returns", MORE),
    (
        "view: CUDA array interface|view: DLPack|view: arguments",
        r"^(cuda|dlpack)\((x, )?s\)|view\(s\)",
        "TypeError, ours returns",
        MORE,
    ),
    (
        "view: (CUDA array interface|DLPack)|DLPack: tensors|processes",
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
        "a call without an argument fails as the function itself does",
    ),
    ("view: arguments", r"b=x", "IndexError, ours returns", MORE),
    ("view: array interface", "", "values differ", "memory of the host is on no device: -1, as it is through DLPack"),
    ("view: copies", "", "NotImplementedError, ours returns", MORE),
    ("view: object", "weakref|memoryview", "TypeError, ours returns", MORE),
    ("view: object", "^public", "values differ", LATER, only_more(later=("as_tensor_map",))),
    ("layout: object", "stride_order|, 3\\)$", "ValueError, ours builtins.TypeError", TYPE),
    ("DLPack: tensors", "1,\\) \\* 70", "ValueError, ours builtins.BufferError", CHECKED),
    ("DLPack: tensors", "w = v.view", "values differ", "a view of a view keeps what the exporter lent"),
    ("DLPack: tensors", "data=0|version=\\(2", "returns, ours raises builtins.BufferError", CHECKED),
    ("DLPack: tensors", "kind=\\((6, 1|0, 4)", "ours (raises )?builtins.ValueError", CHECKED),
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
        "an empty list asks for nothing",
    ),
    (
        "program options: others",
        "define_macro=",
        "CUDAError, ours builtins.RuntimeError",
        "a macro that is none is told of before what NVVM does not take",
    ),
    (
        "program options: others",
        r"define_macro=\(",
        "RuntimeError, ours returns",
        "a tuple that is no pair of texts is a sequence of macros, as a list is",
    ),
    (
        "program options: others",
        "pathlib.Path",
        "values differ",
        "paths are taken where texts are; the peer leaves them out silently",
    ),
    ("program options: object", r"p\.foo = 3", "ours raises builtins.AttributeError", EARLY),
    ("program options: others", "name=3", "AttributeError, ours builtins.TypeError", "a wrong type is a TypeError"),
    ("program: made", "^public", "values differ", MORE, only_more("link")),
    (
        "program: compile",
        'compile\\("ltoir"',
        "values differ",
        "the peer asks for LTO IR without the option that makes it, and gets none",
    ),
    ("program: compile", 'name_expressions="k"', "returns, ours raises builtins.TypeError", EARLY),
    ("program: logs", "logs=3", "returns, ours raises builtins.AttributeError", EARLY),
    ("program: repeated", "t<int>", "NVRTCError, ours returns", MORE),
    ("program: ptx", "link", "ours returns", MORE),
    ("cache key", r"options=(None|3)", "AttributeError, ours builtins.TypeError", "a wrong type is a TypeError"),
    (
        "cache: compile",
        "include_path|name_expressions",
        "ValueError, ours returns",
        "headers and names are part of a cache's entry",
    ),
    ("cache: (in memory|on disk)", "^public", "values differ", MORE, only_more("hits", "misses")),
    ("cache: (in memory|on disk)", "hits, .*misses", "AttributeError, ours returns", MORE),
    # Linking, kernels
    (
        "linker options",
        "'(time|optimize_unused_variables)': False",
        "values differ",
        "False does not ask for an option",
    ),
    (
        "linker options",
        r"_used': \('a',\)",
        "values differ",
        "a tuple of names is taken as a list is; the peer leaves it out silently",
    ),
    ("linker options", "': 3}", "returns, ours raises builtins.TypeError", EARLY),
    ("linker options", "'name': None", "ours returns", MORE),
    ("linker options", "'name': 3", "AttributeError, ours builtins.TypeError", "a wrong type is a TypeError"),
    ("linker: object", "^public", "values differ", MORE, only_more("backend")),
    ("linker: object", "backend$", "ours returns", MORE),
    ("linker: (object|links)", "get_.*_log", "RuntimeError, ours returns", "the logs of a linker outlive it"),
    ("object code", r"from_ptx\((3|None)\)$", "returns, ours raises builtins.TypeError", EARLY),
    ("object code", r"from_ptx\(memoryview", "values differ", MORE),
    ("object code", 'symbol_mapping=.*"z": "k"', "ours returns", MORE),
    ("object code", "^repr", "ours returns|values differ", "a repr loads nothing"),
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
        "the number of arguments is held against the kernel's parameters",
    ),
    ("launch: numbers", r"1 << 6[34]", "OverflowError, ours returns", "unsigned integers of 64 bits are taken"),
    (
        "launch: numbers",
        r"f4.*1\.5|c8.*2j",
        "returns, ours raises builtins.TypeError",
        "the size of an argument is held against its parameter's",
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
        "the driver is initialised by whatever needs it; then there is no context yet",
    ),
    (
        "stream: default ones",
        "is_closed|sync",
        "",
        "closing a default stream closes it for nobody",
        lambda peer, ours: returns(ours),
    ),
    ("stream: more than the peer", "", "ours returns", MORE),
    ("stream: object", r"^Stream\((1|foo)", "RuntimeError, ours builtins.(Type|Value)Error", MORE),
    ("stream: object", "__new__", "values differ", "a class makes whole objects"),
    (
        "stream: protocol",
        "weakref|^y.close",
        "values differ",
        "a stream keeps the object whose handle it uses, until it is closed",
    ),
    ("stream: waiting and recording", r"wait\(None\)", "returns, ours raises builtins.ValueError", EARLY),
    ("stream: from_handle", r"1\.5", "returns, ours raises builtins.TypeError", EARLY),
    ("event: object", "^public", "values differ", BEFORE, only_more("get_ipc_descriptor", "is_sync_busy_waited")),
    ("event: spellings before 1.0", "", "ours returns", BEFORE),
    ("event: spellings before 1.0", "get_ipc_descriptor", "AttributeError, ours builtins.RuntimeError", BEFORE),
]

ON_SOME = [
    (
        "pinned memory|processes",
        r"\.fill\(",
        "CUDAError, ours returns",
        "pools of the host are open to all devices from the start",
    ),
    (
        "copy options",
        "during_api_call",
        "RuntimeError, ours returns",
        "where the driver (before 13.2) has no call for it, the copy waits",
    ),
    ("copy options", "location_hint=0", "returns, ours raises builtins.TypeError", EARLY),
    ("batches", r"\bz\b", "CUDAError, ours returns", "copies and moves of nothing are none"),
    (
        "managed buffer|peers: work",
        r"accessed_by",
        "CUDAError, ours returns",
        "what is not in the set is not taken out by the driver, who may refuse all advice",
    ),
]
