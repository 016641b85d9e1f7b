"""Differences between NVIDIA's `cuda.core` and ours that are meant, each with its reason.

A rule is (group, line, what differs, reason[, test of the two outcomes]): patterns; the group's is matched from its
beginning, the others anywhere. BELOW holds what one of the two cannot show on the machine at hand.
"""


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


NO_CONTEXT = "a device's context is made current for the call: set_current is not needed first"
MORE = "an addition of ours: documented, and refused by the peer"
BEFORE = "a spelling of cuda.core before 1.0, still accepted"
SAFE = "what is asked is answered; the peer's object is closed, or raises in its repr, for everybody"
EARLY = "refused where it is given, and not where it is used, or silently not at all"

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
]

DELIBERATE = [
    # Devices and contexts
    ("device: without a context", "", "raises cuda.core.CUDAError, ours returns", NO_CONTEXT),
    ("device: without a context", "default_stream", "values differ", SAFE),
    ("device: current", "create_stream|create_event|allocate", "ours returns", NO_CONTEXT),
    ("device: threads", "", "raises cuda.core.CUDAError, ours returns", NO_CONTEXT),
    ("device: object", "^public", "values differ", MORE, only_more("total_memory")),
    ("device: object", "total_memory|^with", "ours returns", MORE),
    ("device: properties", "pickle", "ours raises", "a device's properties belong to its process; the peer writes a copy that knows no device"),
    ("environment", "numpy", "values differ", "NumPy is imported when it is needed"),
    # Launches
    ("launch config", r"\[1, 2\]|np\.int32", "ours returns", MORE),
    ("launch config", "1 << 40|shmem_size=-1", "returns, ours raises", EARLY),
    ("launch config", "cooperative_launch", "ours returns", BEFORE),
    ("launch config", "copy|pickle", "ours returns", MORE),
    # Streams and events
    ("stream: default ones", "^repr", "raises cuda.core.CUDAError, ours returns", SAFE),
    ("stream: default ones", "device", "status", "the driver is initialised by whatever needs it; then there is no context yet"),
    ("stream: default ones", "is_closed|sync", "", "closing a default stream closes it for nobody", lambda peer, ours: returns(ours)),
    ("stream: more than the peer", "", "ours returns", MORE),
    ("stream: more than the peer", r"^t\.is_closed", "", MORE, lambda peer, ours: ours.get("value") is True),
    ("stream: object", r"^Stream\((1|foo)", "RuntimeError, ours builtins.TypeError", MORE),
    ("stream: object", "__new__", "values differ", "a class makes whole objects"),
    ("stream: protocol", "weakref|^y.close", "values differ", "a stream keeps the object whose handle it uses, until it is closed"),
    ("stream: waiting and recording", r"wait\(None\)", "returns, ours raises builtins.ValueError", EARLY),
    ("stream: from_handle", r"1\.5", "returns, ours raises builtins.TypeError", EARLY),
    ("event: object", "^public", "values differ", BEFORE, only_more("get_ipc_descriptor", "is_sync_busy_waited")),
    ("event: spellings before 1.0", "", "ours returns", BEFORE),
]
