"""Random objects for every parameter of every function: any result or exception is fine, a crash is not.

On the CPU device only. Arguments are arbitrary objects, or nearly valid values of the type that the docstring
documents. Excluded are calls that would do damage by working as documented:

* callbacks: function addresses are called, so only null and wrong types are drawn;
* NVRTC's program handles: NVRTC dereferences them, so only null, a live program and wrong types are drawn;
* `nvrtcInstallBundledHeaders`, `nvrtcRemoveBundledHeaders`: they write and delete files at any given path;
* `nvrtcSetPCHHeapSize`: it reserves any given amount of memory;
* `cuCoredumpSetAttribute*`: the process would be aborted when a kernel fails;
* addresses that `cuda.bindings._v2` takes as plain ints: C uses them, so only null and wrong types are drawn.
"""

import ctypes
import os
import re
import threading

import numpy as np
import pytest
from cuda.bindings import driver, nvrtc, runtime
from cuda.bindings._v2 import driver as driver_v2
from cuda.bindings._v2 import nvrtc as nvrtc_v2
from cuda.bindings._v2 import runtime as runtime_v2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.device import check
from helpers.threads import run_all

pytestmark = pytest.mark.cpu

SKIPPED = {"nvrtcInstallBundledHeaders", "nvrtcRemoveBundledHeaders", "nvrtcSetPCHHeapSize"}
SKIPPED |= {"cuCoredumpSetAttribute", "cuCoredumpSetAttributeGlobal"}
SKIPPED |= {"coredump_set_attribute", "coredump_set_attribute_global"}
SKIPPED |= {"install_bundled_headers", "remove_bundled_headers", "set_pch_heap_size"}
EXAMPLES = int(os.environ.get("CUPYRITE_FUZZ_EXAMPLES", "12"))


def functions(module):
    names = [n for n in dir(module) if re.match("(cu|cuda|nvrtc)[A-Z]|sizeof|make_|getLocal", n) and n not in SKIPPED]
    return [f for f in (getattr(module, n) for n in names) if callable(f) and not isinstance(f, type)]


def raising_functions(module):
    made = [getattr(module, n) for n in dir(module) if n.islower() and n not in SKIPPED]
    return [f for f in made if callable(f) and not isinstance(f, type)]


SECOND = {driver_v2: driver, nvrtc_v2: nvrtc, runtime_v2: runtime}
FUNCTIONS = functions(driver) + functions(runtime) + functions(nvrtc)
RAISING = {f: module for module in SECOND for f in raising_functions(module)}


def parameters(function):
    """[(name, documented type)] from the docstring."""
    text = function.__doc__.split("Returns\n")[0]
    return re.findall(r"^(\w+) : (.+?)(?:, default .*)?$", text, re.M)


def required(function):
    """The number of parameters without a default."""
    text = function.__doc__.split("Returns\n")[0]
    return len(re.findall(r"^\w+ : (?!.*, default ).+$", text, re.M))


# ---------------------------------------------------------------- objects of all kinds


class Hostile:
    """Raises from every method."""

    def fail(self, *_):
        raise RuntimeError("hostile")

    __int__ = __index__ = __float__ = __bool__ = __len__ = __iter__ = __getitem__ = getPtr = __str__ = fail
    __eq__ = __hash__ = fail

    def __repr__(self):
        return "Hostile()"


class Liar:
    """Has all conversion methods; each returns nonsense."""

    def __int__(self):
        return 2**200

    __index__ = __int__

    def __float__(self):
        return float("nan")

    def getPtr(self):
        return -1

    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return self

    def __repr__(self):
        return "Liar()"


class Shrinking(list):
    """A list that empties itself during conversion."""

    def __iter__(self):
        for item in list(self):
            self.clear()
            yield item

    def __len__(self):
        return 100


class Changing:
    """An integer that empties a list when its value is read."""

    def __init__(self, victim):
        self.victim = victim

    def __int__(self):
        self.victim.clear()
        return 1

    __index__ = __int__

    def __repr__(self):
        return "Changing()"


def changing_list():
    items = [b"a", b"b"]
    items.append(Changing(items))
    return items


HANDLES = [getattr(driver, n) for n in ("CUstream", "CUevent", "CUdeviceptr", "CUdevice", "CUcontext", "CUfunction")]
HANDLES += [getattr(runtime, n) for n in ("cudaStream_t", "cudaArray_t", "cudaTextureObject_t")]
STRUCTS = [
    getattr(driver, n) for n in ("CUDA_MEMCPY2D", "CUuuid", "CUlaunchConfig", "CUmemLocation", "CUgraphNodeParams")
]
STRUCTS += [getattr(runtime, n) for n in ("cudaMemcpy3DParms", "cudaResourceDesc", "cudaGraphNodeParams", "dim3")]
EDGES = [
    0,
    1,
    -1,
    2,
    3,
    7,
    255,
    256,
    4096,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**48,
    2**63 - 1,
    2**63,
    2**64 - 1,
]
EDGES += [2**64, -(2**31), -(2**63), 2**100]

plain = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(EDGES),
    st.integers(),
    st.floats(),
    st.binary(max_size=40),
    st.text(max_size=10),
    st.complex_numbers(),
)
objects = st.one_of(
    plain,
    st.binary(max_size=64).map(bytearray),
    st.binary(max_size=64).map(memoryview),
    st.sampled_from([np.float32, np.int8, np.uint64, np.bool_]).map(lambda t: t(1)),
    st.sampled_from([(), (0,), (3,), (4, 4)]).map(np.zeros),
    st.just(0).map(lambda _: np.arange(9)[::2]),
    st.tuples(st.sampled_from(HANDLES), st.sampled_from(EDGES[:18])).map(lambda p: p[0](p[1] % 2**31)),
    st.sampled_from(STRUCTS).map(lambda t: t()),
    st.sampled_from([*driver.CUresult][:5]),
    st.sampled_from([int, driver.CUstream, driver.CUresult, ctypes.c_int, len, ..., NotImplemented, driver]),
    st.sampled_from([ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.c_bool]).map(lambda t: t(0)),
    st.sampled_from([Hostile, Liar, object, Exception]).map(lambda t: t()),
    st.just(0).map(lambda _: Shrinking([1, 2])),
    st.just(0).map(lambda _: changing_list()),
    st.just(0).map(lambda _: (i for i in range(3))),
)
anything = st.recursive(
    objects,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=2),
    ),
    max_leaves=6,
)
ctypes_types = st.sampled_from(
    [None, ctypes.c_int, ctypes.c_void_p, ctypes.c_float, ctypes.c_char, ctypes.c_bool, ctypes.c_longdouble, int]
)
kernel_params = st.one_of(
    anything,
    st.lists(st.tuples(anything, ctypes_types), max_size=40).map(lambda p: tuple(zip(*p)) if p else ((), ())),
)


def handles(cls):
    return st.one_of(st.sampled_from([0, 1, 8, 4096, 2**31 - 1]).map(cls), st.sampled_from([None, 0, 1, 2**31]))


def near(doc):
    """Values close to the documented type."""
    name = doc.split(" or ")[0]
    listed = re.fullmatch(r"list\[(.*)\]", name)
    if listed:
        return st.lists(near(listed[1]), max_size=3)
    name = doc.split(" or ")[-1] if doc.endswith("_t") else name
    cls = getattr(driver, name, None) or getattr(runtime, name, None) or getattr(nvrtc, name, None)
    if isinstance(cls, type):
        if hasattr(cls, "__members__"):
            return st.sampled_from(list(cls))
        try:
            if int(cls(12345)) == 12345:
                return handles(cls)
        except Exception:
            pass
        try:
            cls()
            return st.one_of(st.none(), st.just(cls).map(lambda c: c()))
        except Exception:
            return st.none()
    if name == "bytes":
        return st.one_of(st.binary(max_size=30), st.binary(max_size=30).map(bytearray))
    if name == "float":
        return st.floats()
    if name == "Any":
        return objects
    return st.sampled_from(EDGES[:10])


def is_callback(doc):
    cls = getattr(driver, doc, None) or getattr(runtime, doc, None)
    return isinstance(cls, type) and bool(
        re.search("Callback(_t)?$|HostFn$|HostFn_t$|B2DSize$|GetProcAddress$|^cudaHostFn_t$", doc)
    )


NO_CODE = st.sampled_from([None, 0, "text", b"bytes", 1j, object(), [], {}])
PROGRAMS = []


def first_doc(function, name):
    """The documented type of a parameter of a `_v2` function in the module that returns statuses."""
    first = SECOND[RAISING[function]]
    symbol = re.match(r".*: (\w+)$", function.__doc__, re.M)
    same = symbol and (getattr(first, symbol[1], None) or getattr(first, re.sub(r"_v\d$", "", symbol[1]), None))
    known = {n.replace("_", "").lower(): doc for n, doc in parameters(same)} if same else {}
    return known.get(name.replace("_", ""), "")


def is_handle(function, doc):
    cls = getattr(SECOND[RAISING[function]], doc.split(" or ")[-1], None) or getattr(driver, doc.split(" or ")[0], None)
    return (
        isinstance(cls, type) and not is_callback(doc) and hasattr(cls, "__index__") and not hasattr(cls, "__members__")
    )


def raising_strategy(function):
    drawn = []
    for name, doc in parameters(function):
        cls = getattr(RAISING[function], doc, None)
        if RAISING[function] is nvrtc_v2 and doc == "intptr_t":
            drawn.append(
                st.one_of(NO_CODE, st.sampled_from([int(p) for p in PROGRAMS if p])) if PROGRAMS[0] else NO_CODE
            )
        elif doc == "bytes" or (doc == "intptr_t" and not is_handle(function, first_doc(function, name))):
            drawn.append(NO_CODE)
        elif name == "kernel_params":
            drawn.append(kernel_params)
        elif isinstance(cls, type):
            drawn.append(st.one_of(st.just(cls).map(lambda c: c()), objects))
        elif doc == "intptr_t":
            drawn.append(st.one_of(st.sampled_from([0, 1, 8, 4096, 2**31 - 1]), objects))
        else:
            drawn.append(st.one_of(st.sampled_from(EDGES[:10]), anything))
    return st.tuples(*drawn)


def strategy(function, nearly):
    if function in RAISING:
        return raising_strategy(function)
    drawn = []
    for name, doc in parameters(function):
        if is_callback(doc) or name == "callback":
            drawn.append(NO_CODE)
        elif doc == "nvrtcProgram":
            drawn.append(st.one_of(NO_CODE, st.sampled_from(PROGRAMS)))
        elif name == "kernelParams":
            drawn.append(kernel_params)
        elif nearly:
            drawn.append(st.one_of(near(doc), near(doc), near(doc), objects))
        else:
            drawn.append(anything)
    return st.tuples(*drawn)


@pytest.fixture(scope="module", autouse=True)
def world(tmp_path_factory):
    # Functions that write a file (graph dumps, logs) write it to a temporary folder.
    started_in = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("fuzz"))
    check(driver.cuInit(0))
    context = check(driver.cuCtxCreate(None, 0, 0))
    program = check(nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void k() {}', b"k.cu", 0, [], []))
    check(nvrtc.nvrtcCompileProgram(program, 0, []))
    yield
    driver.cuCtxSetCurrent(context)
    driver.cuCtxDestroy(context)
    os.chdir(started_in)


@pytest.fixture(autouse=True)
def captures():
    """Process-wide side effects of a test's calls: a capture of the thread's stream, the thread's capture mode."""
    yield
    driver.cuStreamEndCapture(driver.CU_STREAM_PER_THREAD)
    driver.cuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)


@pytest.fixture
def program():
    """A program for one test; calls may destroy it, so it is not reused."""
    made = check(nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void k() {}', b"k.cu", 0, [], []))
    PROGRAMS[:] = [made]
    return made


def attempt(function, arguments, keywords=None):
    try:
        result = function(*arguments, **(keywords or {}))
    except Exception as exception:
        assert not isinstance(exception, SystemError), exception
        return
    if function in RAISING or re.match("sizeof|make_", function.__name__):
        return
    assert type(result) is tuple and len(result) >= 1


DESTROYS = {"nvrtcDestroyProgram", "destroy_program"}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.__module__[14:]}.{f.__name__}")
@pytest.mark.parametrize("nearly", [False, True], ids=["anything", "nearly"])
def test_random_arguments_never_crash(function, nearly, program):
    if function.__name__ in DESTROYS:
        PROGRAMS[:] = [None]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy(function, nearly))
    def run(arguments):
        attempt(function, arguments)

    run()


@pytest.mark.parametrize("function", RAISING, ids=lambda f: f"{f.__module__[14:]}.{f.__name__}")
def test_random_arguments_of_functions_that_raise_never_crash(function, program):
    test_random_arguments_never_crash(function, True, program)


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(FUNCTIONS),
    st.lists(anything, max_size=20),
    st.dictionaries(st.text(max_size=8), anything, max_size=4),
)
def test_wrong_counts_and_names_never_crash(function, arguments, keywords):
    names = [name for name, _ in parameters(function)]
    if len(arguments) + len(keywords) >= required(function) and not set(keywords) - set(names):
        return
    with pytest.raises(TypeError):
        function(*arguments, **keywords)


def test_random_arguments_from_eight_threads_never_crash():
    """The tables behind the functions are shared."""
    import random

    pool = [None, 0, 1, -1, 2**40, 1.5, b"x", bytearray(8), "x", [], (1,), driver.CUstream(1), driver.CUdeviceptr(8)]
    pool += [np.zeros(3), driver.CUDA_MEMCPY2D(), Liar(), driver.CUresult(1), ((1,), (ctypes.c_int,))]
    functions = [f for f in FUNCTIONS if not any(is_callback(d) or d == "nvrtcProgram" for _, d in parameters(f))]
    functions = [f for f in functions if "callback" not in [n for n, _ in parameters(f)]]
    failures = []

    def work(seed):
        chance = random.Random(seed)
        try:
            for _ in range(EXAMPLES * 100):
                function = chance.choice(functions)
                attempt(function, [chance.choice(pool) for _ in parameters(function)])
        except BaseException as exception:
            failures.append(exception)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    run_all(threads, limit=200)
    assert not failures
