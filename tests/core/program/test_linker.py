"""cuda.core: Linker, LinkerOptions."""

import copy
import ctypes
import dataclasses
import pickle
import threading
import weakref

import pytest
from cuda.core import Device, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions

from helpers.device import check, compile_cuda
from helpers.programs import python
from helpers.threads import run_all

pytestmark = pytest.mark.usefixtures("device")

HELPER = 'extern "C" __device__ float helper(float x) { return x * x; }'
USER = """
extern "C" __device__ float helper(float x);
extern "C" __global__ void square(float *data, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = helper(data[i]);
}
"""
RDC = ["--relocatable-device-code=true"]


@pytest.fixture(scope="module")
def nvjitlink():
    """nvJitLink; tests that need it are skipped where it is missing."""
    from cuda.bindings import nvjitlink

    try:
        nvjitlink.version()
    except Exception as error:
        pytest.skip(str(error))
    assert Linker.which_backend() == "nvJitLink"
    return nvjitlink


def parts(kind):
    make = getattr(ObjectCode, f"from_{kind}")
    return [
        make(compile_cuda(source, options=RDC, kind=kind)[0], name=name)
        for source, name in ((HELPER, "h"), (USER, "u"))
    ]


def lto_parts():
    from cuda.bindings import nvrtc

    made = []
    for source in (HELPER, USER):
        program = check(nvrtc.nvrtcCreateProgram(source.encode(), b"lto.cu", 0, [], []))
        options = [b"--gpu-architecture=sm_" + Device().arch.encode(), b"-dlto", b"--relocatable-device-code=true"]
        check(nvrtc.nvrtcCompileProgram(program, len(options), options))
        code = bytearray(check(nvrtc.nvrtcGetLTOIRSize(program)))
        check(nvrtc.nvrtcGetLTOIR(program, code))
        check(nvrtc.nvrtcDestroyProgram(program))
        made.append(ObjectCode.from_ltoir(bytes(code)))
    return made


def squares(code):
    """Whether the linked kernel squares its input."""
    import numpy as np
    from cuda.bindings import driver

    data = np.arange(100, dtype=np.float32)
    address = check(driver.cuMemAlloc(data.nbytes))
    try:
        check(driver.cuMemcpyHtoD(address, data.ctypes.data, data.nbytes))
        function = check(driver.cuKernelGetFunction(code.get_kernel("square").handle))
        arguments = ((address, 100), (None, ctypes.c_uint))
        check(driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, 0, arguments, 0))
        out = np.empty_like(data)
        check(driver.cuMemcpyDtoH(out.ctypes.data, address, data.nbytes))
    finally:
        check(driver.cuMemFree(address))
    return np.array_equal(out, data * data)


@pytest.mark.parametrize("kind", ["cubin", "ptx"])
def test_two_parts_link_and_run(nvjitlink, kind, device):
    linker = Linker(*parts(kind), options=LinkerOptions(arch=f"sm_{device.arch}", name="both"))
    assert linker.backend == "nvJitLink" and linker.handle != 0 and not linker.is_closed
    code = linker.link("cubin")
    assert (code.code_type, code.name, code.symbol_mapping) == ("cubin", "both", {})
    assert type(code.code) is bytes and code.code.startswith(b"\x7fELF")
    assert squares(code)
    linker.close()
    assert linker.is_closed and linker.handle == 0
    linker.close()
    assert squares(code)


def test_default_options_target_the_current_device(nvjitlink):
    code = Linker(*parts("cubin")).link("cubin")
    assert code.name == "<default linker>" and squares(code)


def test_lto_ir_links_to_cubin_and_ptx(nvjitlink):
    assert squares(Linker(*lto_parts(), options={"link_time_optimization": True}).link("cubin"))
    code = Linker(*lto_parts(), options={"link_time_optimization": True, "ptx": True}).link("ptx")
    assert code.code_type == "ptx" and b".visible .entry square" in code.code and not code.code.endswith(b"\0")
    assert squares(code)


def test_files_link(nvjitlink, tmp_path):
    names = []
    for part, name in zip(parts("cubin"), ("a.cubin", "b.cubin"), strict=True):
        (tmp_path / name).write_bytes(part.code)
        names.append(tmp_path / name)
    assert squares(Linker(*map(ObjectCode.from_cubin, names)).link("cubin"))
    with pytest.raises(nvjitlink.nvJitLinkError, match="nowhere"):
        Linker(ObjectCode.from_cubin(tmp_path / "nowhere"))


def test_undefined_symbol_is_in_the_exception_and_the_log(nvjitlink):
    linker = Linker(parts("cubin")[1])
    with pytest.raises(nvjitlink.nvJitLinkError, match="helper") as caught:
        linker.link("cubin")
    assert caught.value.status == nvjitlink.Result.ERROR_INTERNAL and "helper" in caught.value.log
    for _ in range(2):
        assert "helper" in linker.get_error_log() and "\0" not in linker.get_error_log()
        assert linker.get_info_log() == ""
        linker.close()


def test_verbose_linking_fills_the_info_log(nvjitlink):
    linker = Linker(*parts("cubin"), options=LinkerOptions(verbose=True, time=True))
    linker.link("cubin")
    assert "square" in linker.get_info_log() and linker.get_error_log() == ""


def test_linker_links_once(nvjitlink):
    linker = Linker(*parts("cubin"))
    linker.link("cubin")
    for target in ("cubin", "ptx"):
        with pytest.raises(nvjitlink.nvJitLinkError, match="already"):
            linker.link(target)
    linker.close()
    with pytest.raises(RuntimeError, match="closed"):
        linker.link("cubin")


def test_ptx_output_needs_lto(nvjitlink):
    with pytest.raises(nvjitlink.nvJitLinkError, match="link_time_optimization"):
        Linker(*parts("ptx")).link("ptx")
    with pytest.raises(nvjitlink.nvJitLinkError, match="LTO"):
        Linker(*lto_parts()).link("cubin")


def test_invalid_inputs_raise(nvjitlink):
    (a, b) = parts("cubin")
    with pytest.raises(ValueError, match="at least one"):
        Linker()
    with pytest.raises(ValueError, match="at least one"):
        Linker(options=LinkerOptions())
    for wrong in (5, None, b"code"):
        with pytest.raises(TypeError, match="argument 2"):
            Linker(a, wrong)
    with pytest.raises(TypeError, match="options"):
        Linker(a, options=5)
    with pytest.raises(TypeError, match="foo"):
        Linker(a, options={"foo": 1})
    for target in ("ltoir", "fatbin", "CUBIN", "x", None, 5):
        with pytest.raises(ValueError, match="target_type"):
            Linker(a, b).link(target)
    for code in (b"nonsense", b"", a.code[: len(a.code) // 2]):
        with pytest.raises(nvjitlink.nvJitLinkError):
            Linker(ObjectCode.from_cubin(code)).link("cubin")
    with pytest.raises(nvjitlink.nvJitLinkError):
        Linker(ObjectCode.from_ptx(b"nonsense")).link("cubin")


def test_refused_machine_code_does_not_block_other_threads(nvjitlink, tmp_path):
    """nvJitLink keeps a lock after it has refused an input for another architecture."""
    cubin = Program(HELPER, "c++", ProgramOptions(arch="sm_86", relocatable_device_code=True)).compile("cubin")
    path = tmp_path / "code.cubin"
    path.write_bytes(cubin.code)
    for code in (cubin, ObjectCode.from_cubin(str(path))):
        for arch in ("sm_75", "sm_80", "sm_90", "sm_90a", "sm_100"):
            with pytest.raises(nvjitlink.nvJitLinkError, match=f"sm_86.*{arch}"):
                Linker(code, options=LinkerOptions(arch=arch))
        Linker(code, options=LinkerOptions(arch="sm_86")).link("cubin")
        Linker(code, options=LinkerOptions(arch="sm_89")).link("cubin")
    linked = []
    thread = threading.Thread(target=lambda: linked.append(Linker(*parts("cubin")).link("cubin")), daemon=True)
    run_all([thread])
    assert linked


@pytest.mark.parametrize(
    "arch", ["sm_1", "sm_9", "sm_ 1", "sm_+1", "lto_1", "compute_08", "foo", "", "sm_", "sm_91", "90"]
)
def test_invalid_architectures_raise(nvjitlink, arch):
    with pytest.raises(nvjitlink.nvJitLinkError):
        Linker(parts("cubin")[0], options=LinkerOptions(arch=arch))


@pytest.mark.parametrize(
    "field, value, wanted",
    [
        ("max_register_count", 32, ["-maxrregcount=32"]),
        ("time", True, ["-time"]),
        ("time", False, []),
        ("verbose", True, ["-verbose"]),
        ("link_time_optimization", True, ["-lto"]),
        ("ptx", True, ["-ptx"]),
        ("optimization_level", 0, ["-O0"]),
        ("debug", True, ["-g"]),
        ("debug", False, []),
        ("lineinfo", True, ["-lineinfo"]),
        ("ftz", True, ["-ftz=true"]),
        ("ftz", False, ["-ftz=false"]),
        ("prec_div", False, ["-prec-div=false"]),
        ("prec_sqrt", True, ["-prec-sqrt=true"]),
        ("fma", False, ["-fma=false"]),
        ("kernels_used", "a", ["-kernels-used=a"]),
        ("kernels_used", ["a", "b"], ["-kernels-used=a", "-kernels-used=b"]),
        ("kernels_used", ("a", "b"), ["-kernels-used=a", "-kernels-used=b"]),
        ("variables_used", ["v"], ["-variables-used=v"]),
        ("optimize_unused_variables", True, ["-optimize-unused-variables"]),
        ("optimize_unused_variables", False, []),
        ("ptxas_options", ("-v", "-O1"), ["-Xptxas=-v", "-Xptxas=-O1"]),
        ("split_compile", 0, ["-split-compile=0"]),
        ("split_compile_extended", 3, ["-split-compile-extended=3"]),
        ("no_cache", True, ["-no-cache"]),
    ],
)
def test_options_produce_their_arguments(field, value, wanted):
    options = LinkerOptions(arch="sm_80", **{field: value})
    assert options.as_bytes() == [b"-arch=sm_80", *(text.encode() for text in wanted)]


def test_options_are_a_data_class():
    assert LinkerOptions() == LinkerOptions() != LinkerOptions(arch="sm_80")
    assert [f.name for f in dataclasses.fields(LinkerOptions)][:3] == ["name", "arch", "max_register_count"]
    assert LinkerOptions("n", "sm_80").name == "n" and "arch='sm_80'" in repr(LinkerOptions(arch="sm_80"))
    assert pickle.loads(pickle.dumps(LinkerOptions(ftz=True))) == LinkerOptions(ftz=True)
    with pytest.raises(TypeError):
        hash(LinkerOptions())


def test_options_as_bytes(device):
    assert LinkerOptions().as_bytes() == LinkerOptions().as_bytes("nvJitLink") == [f"-arch=sm_{device.arch}".encode()]
    for wrong in ("driver", "nvrtc", ""):
        with pytest.raises(ValueError, match="backend"):
            LinkerOptions().as_bytes(wrong)
    with pytest.raises(TypeError, match="backend"):
        LinkerOptions().as_bytes(5)
    with pytest.warns(DeprecationWarning, match="numba_debug"):
        assert LinkerOptions(arch="sm_80", numba_debug=True).as_bytes() == [b"-arch=sm_80"]


@pytest.mark.parametrize(
    "field, value",
    [
        ("name", 3),
        ("arch", 80),
        ("max_register_count", "x"),
        ("max_register_count", -1),
        ("optimization_level", 1.5),
        ("kernels_used", 3),
        ("kernels_used", [3]),
        ("ptxas_options", b"-v"),
        ("split_compile", -1),
    ],
)
def test_invalid_values_are_named(field, value):
    with pytest.raises((TypeError, ValueError), match=field):
        LinkerOptions(**{"arch": "sm_80", field: value}).as_bytes()


def test_equality_and_hash(nvjitlink):
    linker = Linker(parts("cubin")[0])
    assert linker == linker and linker != Linker(parts("cubin")[0]) and weakref.ref(linker)() is linker
    for what in (copy.copy, pickle.dumps):
        with pytest.raises(TypeError):
            what(linker)
    with pytest.raises(AttributeError):
        linker.other = 1


def threads_and_one_linker():
    from cuda.bindings import nvjitlink

    Device(0).set_current()
    linker = Linker(*parts("cubin"))
    results = []

    def work():
        try:
            results.append(linker.link("cubin").code_type)
        except nvjitlink.nvJitLinkError:
            results.append("once")
        except RuntimeError:
            results.append("closed")
        linker.get_error_log(), linker.is_closed, linker.handle
        linker.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    run_all(threads)
    assert len(results) == 6 and results.count("cubin") == 1, results
    # The next link of the creating thread is unaffected.
    assert Linker(*parts("ptx")).link("cubin").code_type == "cubin"


DRIVER = """
import sys
from cuda.core import Device, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions
from cuda.core._utils.cuda_utils import CUDAError
Device(0).set_current()
assert Linker.which_backend() == "driver"
a, b = (ObjectCode.from_ptx(open(name, "rb").read(), name=name) for name in sys.argv[1:])
linker = Linker(a, b, options=LinkerOptions(name="both", verbose=True))
assert linker.backend == "driver" and type(linker.handle).__name__ == "CUlinkState" and int(linker.handle)
code = linker.link("cubin")
assert (code.name, code.code_type) == ("both", "cubin")
assert code.get_kernel("square").num_arguments == 2
try:
    linker.link("cubin")
except CUDAError as error:
    assert "already" in str(error)
linker.close()
assert int(linker.handle) == 0
for options, what in (({"link_time_optimization": True}, "link_time_optimization"), ({"arch": "sm_1"}, "arch")):
    try:
        Linker(a, options=options)
    except ValueError as error:
        assert what in str(error)
    else:
        raise SystemExit(what)
try:
    Linker(b).link("cubin")
except CUDAError as error:
    assert "helper" in str(error), error
else:
    raise SystemExit("an undefined name was linked")
try:
    Linker(a).link("ptx")
except ValueError as error:
    assert "cubin" in str(error)
print("ok")
"""


def run(script, *arguments, **environment):
    return python(script, *arguments, options=("-W", "ignore"), environment=environment)


def test_threads_with_one_linker(nvjitlink):
    """In another process: after the invalid inputs above nvJitLink keeps a lock that only this thread can acquire
    again.
    """
    done = run("from core.program import test_linker as t; t.threads_and_one_linker(); print('ok')")
    assert done.stdout.strip().endswith("ok"), done.stderr


def test_driver_links_ptx(tmp_path):
    names = []
    for part, name in zip(parts("ptx"), ("a.ptx", "b.ptx"), strict=True):
        (tmp_path / name).write_bytes(part.code)
        names.append(tmp_path / name)
    done = run(DRIVER, *names, CUPYRITE_LINKER="driver")
    assert done.stdout == "ok\n", done.stderr


# The driver's linkers in a program with threads. NVIDIA's driver crashes where a link state of one thread is destroyed
# in another.
THREADS = """
import ctypes, gc, os, resource, sys, threading, time, weakref
from cuda.core import Device, Linker, LinkerOptions, ObjectCode
from cuda.core._utils.cuda_utils import CUDAError
from helpers.waits import until
device = Device(0)
device.set_current()
a, b = (ObjectCode.from_ptx(open(name, "rb").read(), name=name) for name in sys.argv[1:])
def make():
    device.set_current()
    linker = Linker(a, b)
    assert linker.backend == "driver"
    return linker
def link(linker):
    assert linker.link("cubin").code.startswith(b"\\x7fELF")
def elsewhere(work):
    done = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    thread.join()
    return done[0]
def their_threads():
    found = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                found += file.read().strip() == "cupyrite-link"
        except OSError:
            pass  # it has just ended
    return found
"""

ONE_AFTER_THE_OTHER = """
for i in range(60):
    linker = make() if i % 2 else elsewhere(make)
    if i % 3:
        elsewhere(lambda: link(linker))
    handle = int(linker.handle)
    assert handle and elsewhere(lambda: int(linker.handle)) == handle
    if i % 4 == 0:
        elsewhere(linker.close)
    elif i % 4 == 1:
        linker.close()
    elif i % 4 == 2:
        # The last reference is the other thread's.
        kept = [linker]
        alive = weakref.ref(linker)
        del linker
        elsewhere(kept.clear)
        assert alive() is None
    else:
        cycle = [linker]
        cycle.append(cycle)
        alive = weakref.ref(linker)
        del linker, cycle
        elsewhere(gc.collect)
        assert alive() is None
"""

MANY_AT_ONCE = """
from queue import LifoQueue
made, linked = LifoQueue(), LifoQueue()
def first():
    for _ in range(10):
        made.put(make())
def second():
    for _ in range(10):
        linker = made.get(timeout=100)
        link(linker)
        linked.put(linker)
def third():
    for i in range(10):
        linker = linked.get(timeout=100)
        if i % 2:
            linker.close()
        del linker
workers = [threading.Thread(target=work) for work in (first, second, third) * 3]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join(100)
assert made.empty() and linked.empty()
"""

THEIR_THREADS_END = """
linkers = [make() for _ in range(5)]
assert their_threads() == 5
for linker in linkers[:3]:
    linker.close()
del linkers, linker
# The system lists a thread for a moment after it was waited for.
until(lambda: their_threads() == 0)
"""

CAPTURED = """
from cuda.bindings import driver
def check(answer):
    assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) > 1 else None
stream = device.create_stream()
for mode in driver.CUstreamCaptureMode:
    linkers = [make() for _ in range(4)]
    check(driver.cuStreamBeginCapture(stream.handle, mode))
    linkers.pop().close()
    elsewhere(linkers.pop().close)
    linkers.pop()
    elsewhere(linkers.clear)
    assert check(driver.cuStreamIsCapturing(stream.handle)) == 1
    check(driver.cuGraphDestroy(check(driver.cuStreamEndCapture(stream.handle))))
"""

NO_THREAD = """
kept = make()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (5 << 20), resource.RLIM_INFINITY))
try:
    make()
except CUDAError as error:
    assert "thread" in str(error), error
else:
    raise SystemExit("there is room for another stack")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
link(kept)
link(make())
"""

FORKED = """
linkers = [make() for _ in range(3)]
pid = os.fork()
if not pid:
    del linkers[0]
    linkers[0].close()
    try:
        linkers[1].link("cubin")
    except CUDAError as error:
        os._exit(0 if "fork" in str(error) else 2)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
for linker in linkers:
    link(linker)
"""

LEFT_OPEN = """
import builtins
builtins.kept = make()
kept = elsewhere(make)
cycle = [make()]
cycle.append(cycle)
class Late:
    def __init__(self):
        self.linker = make()
    def __del__(self):
        self.linker.close()
sys.late = Late()
def run():
    while True:
        link(make())
threading.Thread(target=run, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(ONE_AFTER_THE_OTHER, id="one after the other"),
        pytest.param(MANY_AT_ONCE, id="many at once"),
        pytest.param(THEIR_THREADS_END, id="their threads end"),
        pytest.param(CAPTURED, id="while a graph is captured"),
        # Out-of-memory behaviour of NVIDIA's driver is not tested.
        pytest.param(NO_THREAD, id="no thread", marks=pytest.mark.cpu),
        pytest.param(FORKED, id="forked"),
        pytest.param(LEFT_OPEN, id="left open"),
    ],
)
def test_driver_linkers_in_threads(script, tmp_path):
    names = []
    for part, name in zip(parts("ptx"), ("a.ptx", "b.ptx"), strict=True):
        (tmp_path / name).write_bytes(part.code)
        names.append(tmp_path / name)
    done = run(THREADS + script + "\nprint('ok')", *names, CUPYRITE_LINKER="driver")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_invalid_setting_is_named():
    done = run("from cuda.core import Linker; Linker.which_backend()", CUPYRITE_LINKER="nvcc")
    assert "ValueError" in done.stderr and "CUPYRITE_LINKER" in done.stderr and "nvcc" in done.stderr


def test_open_linker_at_exit(nvjitlink, tmp_path):
    (tmp_path / "a").write_bytes(parts("cubin")[0].code)
    script = (
        "import builtins, sys; from cuda.core import *; c = ObjectCode.from_cubin(sys.argv[1]); "
        "builtins.kept = Linker(c); cycle = [Linker(c)]; cycle.append(cycle); print('ok')"
    )
    done = run(script, tmp_path / "a")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")
