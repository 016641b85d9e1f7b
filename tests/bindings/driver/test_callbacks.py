"""Python functions that the device calls on its own threads: `ctypes` functions behind `cuLaunchHostFunc`,
`cuStreamAddCallback` and their runtime counterparts.

Whatever could wait indefinitely runs in a separate process with a time limit, which prints the stacks of all threads.
"""

import ctypes
import os
import textwrap

import pytest

from helpers.programs import python

# The start of every script. `Api` hides which of the two APIs is used.
BEGINNING = """
import ctypes, faulthandler, os, sys, threading, time
faulthandler.dump_traceback_later(50, exit=True)
from helpers.device import check
from helpers.waits import until
from cuda.bindings import driver

HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
KEPT = []

def address(function):
    KEPT.append(function)
    return ctypes.cast(function, ctypes.c_void_p).value

def pair(api):
    '''(launch, add): queue a host function, a callback, by one of the two APIs.'''
    if api == "driver":
        return (
            lambda s, f, data=None: check(driver.cuLaunchHostFunc(s, driver.CUhostFn(address(HOST(f))), data)),
            lambda s, f, data=None: check(driver.cuStreamAddCallback(s, driver.CUstreamCallback(address(CALLBACK(f))), data, 0)),
        )
    from cuda.bindings import runtime
    return (
        lambda s, f, data=None: check(runtime.cudaLaunchHostFunc(s, runtime.cudaHostFn_t(address(HOST(f))), data)),
        lambda s, f, data=None: check(runtime.cudaStreamAddCallback(s, runtime.cudaStreamCallback_t(address(CALLBACK(f))), data, 0)),
    )

launch, add = pair({api!r})
check(driver.cuInit(0))
ctx = check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))
check(driver.cuCtxSetCurrent(ctx))
stream, other = [check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)) for _ in range(2)]
"""


def has_runtime():
    try:
        from cuda.bindings import runtime
    except ImportError:
        return False
    return hasattr(runtime, "cudaLaunchHostFunc")


@pytest.fixture(
    params=["driver", pytest.param("runtime", marks=pytest.mark.skipif(not has_runtime(), reason="no runtime"))]
)
def run(request):
    def run(script, returncode=0, timeout=60):
        text = BEGINNING.format(api=request.param) + textwrap.dedent(script)
        done = python(text, timeout=timeout)
        assert done.returncode == returncode, (done.returncode, done.stdout[-500:], done.stderr[-3000:])
        return done

    return run


def test_callback_receives_its_arguments(run):
    script = """
    seen = []
    for k in range(20):
        launch(stream, lambda data, k=k: seen.append((k, data, threading.get_ident())), 100 + k)
    add(stream, lambda s, status, data: seen.append((s == int(stream), status, data)), 7)
    launch(stream, lambda data: seen.append(data), None)
    check(driver.cuStreamSynchronize(stream))
    assert [s[:2] for s in seen[:20]] == [(k, 100 + k) for k in range(20)], seen
    assert all(s[2] != threading.get_ident() for s in seen[:20])
    assert seen[20:] == [(True, 0, 7), None], seen[20:]
    print("done")
    """
    assert run(script).stdout == "done\n"


def test_callbacks_run_while_threads_hold_the_gil(run):
    """Threads compute in Python, make calls that keep the GIL, and wait for the device in every way."""
    script = """
    stop, seen, failed = threading.Event(), [], []
    event = check(driver.cuEventCreate(0))
    memory = check(driver.cuMemAlloc(4096))
    host = bytearray(4096)

    def compute():
        while not stop.is_set():
            sum(range(2000))

    def ask():
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE
        while not stop.is_set():
            check(driver.cuCtxSetCurrent(ctx)), check(driver.cuCtxGetCurrent()), check(driver.cuCtxGetDevice())
            check(driver.cuDeviceGetAttribute(attribute, 0)), check(driver.cuStreamGetCtx(stream))
            driver.cuStreamQuery(stream), driver.cuEventQuery(event)

    def wait(how):
        check(driver.cuCtxSetCurrent(ctx))
        while not stop.is_set():
            how()

    def guarded(f, *args):
        def body():
            try:
                f(*args)
            except BaseException as error:
                failed.append(error)
        return threading.Thread(target=body)

    def record():
        check(driver.cuEventRecord(event, stream))
        check(driver.cuEventSynchronize(event))

    ways = [
        lambda: check(driver.cuStreamSynchronize(stream)),
        lambda: check(driver.cuCtxSynchronize()),
        lambda: check(driver.cuMemcpyDtoH(host, memory, 4096)),
        lambda: check(driver.cuMemFree(check(driver.cuMemAlloc(1 << 16)))),
        record,
    ]
    threads = [guarded(compute), guarded(compute), guarded(ask), *(guarded(wait, way) for way in ways)]
    for thread in threads:
        thread.start()
    lock = threading.Lock()

    def function(data):
        with lock:
            seen.append(sum(range(100)) + (data or 0))

    rounds = 30
    for k in range(rounds):
        launch(stream, function, k)
        add(other, lambda s, status, data: function(data), k)
        check(driver.cuStreamSynchronize(other if k % 2 else stream))
    check(driver.cuStreamSynchronize(stream))
    check(driver.cuStreamSynchronize(other))
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed, failed
    assert sorted(seen) == sorted(2 * [4950 + k for k in range(rounds)])
    print("done")
    """
    assert run(script).stdout == "done\n"


def test_destroying_a_stream_waits_for_its_callbacks_or_keeps_them(run):
    script = """
    seen = []
    for k in range(5):
        s = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        launch(s, lambda data: (time.sleep(0.01), seen.append(data)), k)
        check(driver.cuStreamDestroy(s))
    check(driver.cuCtxSynchronize())
    until(lambda: len(seen) == 5)
    assert sorted(seen, key=lambda v: v or 0) == [None, 1, 2, 3, 4], seen
    print("done")
    """
    assert run(script).stdout == "done\n"


def test_exceptions_stay_in_the_callback(run):
    script = """
    caught, seen = [], []
    sys.unraisablehook = lambda what: caught.append(what.exc_type)
    def fails(data):
        raise KeyError("in a host function")
    def exits(s, status, data):
        sys.exit(3)
    launch(stream, fails)
    add(stream, exits)
    launch(stream, lambda data: seen.append(data), 5)
    check(driver.cuStreamSynchronize(stream))
    assert caught == [KeyError, SystemExit] and seen == [5], (caught, seen)
    print("done")
    """
    assert run(script).stdout == "done\n"


ENDS = {
    "returns": "",
    "raises": "raise SystemExit(0)",
    "leaves at once": "os._exit(0)",
    "waits in atexit": "import atexit; atexit.register(lambda: check(driver.cuStreamSynchronize(other)))",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("function", ["time.sleep(0.002)", "sum(range(20000))", "driver.cuDriverGetVersion()"])
def test_interpreter_exits_with_callbacks_queued_and_running(run, function, end):
    script = """
    class Slow:
        def __del__(self):  # the interpreter is ending, and lets others run
            for _ in range(20):
                time.sleep(0.001)
    sys.kept = Slow()
    def work(data):
        FUNCTION
    def more():
        check(driver.cuCtxSetCurrent(ctx))
        while True:
            launch(stream, work)
            add(stream, lambda s, status, data: work(data))
            check(driver.cuStreamSynchronize(stream))
    threading.Thread(target=more, daemon=True).start()
    for _ in range(50):
        launch(other, work)
        launch(stream, work)
    time.sleep(0.02)
    print("done", flush=True)
    END
    """
    script = script.replace("FUNCTION", function).replace("END", ENDS[end])
    for _ in range(2):
        assert run(script).stdout == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_neither_runs_callbacks_nor_waits_for_them(run):
    script = """
    import signal, warnings
    warnings.simplefilter("ignore")
    seen = []
    release = threading.Event()
    on_cpu = check(driver.cuDeviceGetName(256, 0)).startswith(b"CPU")
    launch(stream, lambda data: release.wait(20))
    for k in range(3):
        launch(stream, lambda data: seen.append(os.getpid()))
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # faulthandler would wait for a thread that the child has not got
        release.set()
        time.sleep(0.1)
        failed = [bool(seen)]
        if on_cpu:  # a GPU's driver may hang here
            (status,) = driver.cuStreamSynchronize(stream)
            (again,) = driver.cuLaunchHostFunc(stream, driver.CUhostFn(address(HOST(lambda data: None))), None)
            failed += [int(status) == 0, int(again) == 0]
        os._exit(any(failed))
    _, ended = os.waitpid(pid, 0)
    assert ended == 0, ended
    assert not seen
    release.set()
    check(driver.cuStreamSynchronize(stream))
    assert seen == [os.getpid()] * 3
    print("done")
    """
    assert run(script).stdout == "done\n"


@pytest.mark.cpu
def test_callback_that_would_wait_for_itself_gets_an_error(run):
    """CUDA forbids calls from callbacks; a GPU's driver may return anything."""
    script = """
    seen = []
    def waits(data):
        check(driver.cuCtxSetCurrent(ctx))
        seen.extend(int(f()[0]) for f in (lambda: driver.cuStreamSynchronize(stream), driver.cuCtxSynchronize))
    launch(stream, waits)
    check(driver.cuStreamSynchronize(stream))
    assert seen == [800, 800], seen
    print("done")
    """
    assert run(script).stdout == "done\n"


@pytest.mark.cpu
def test_address_that_is_not_code_is_refused():
    from cuda.bindings import driver

    from helpers.device import check

    check(driver.cuInit(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(0))))
    data = ctypes.create_string_buffer(16)
    for address in (0, 64, ctypes.addressof(data)):
        for fail in (driver.cuLaunchHostFunc(0, address, None), driver.cuStreamAddCallback(0, address, None, 0)):
            assert fail == (driver.CUresult.CUDA_ERROR_INVALID_VALUE,)
    check(driver.cuDevicePrimaryCtxRelease(0))


def test_failing_calls_in_threads_with_a_log_callback(run):
    """A failing call waits for log callbacks of other threads' failures; it must release the GIL while it waits."""
    script = """
    LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t)
    heard = []
    try:
        status, handle = driver.cuLogsRegisterCallback(address(LOG(lambda *a: (heard.append(a), time.sleep(0.001)))), None)
    except RuntimeError:  # the driver is older than the function
        status = 801
    if int(status) in (36, 801):  # a stub, or not supported
        print("done")
        sys.exit()
    assert int(status) == 0, status

    def fail():
        # Threads without a context: cuCtxGetDevice has none to tell of.
        for _ in range(30):
            answers = driver.cuCtxGetDevice(), driver.cuDeviceGet(10**6), driver.cuMemcpyHtoD(8, b"12345678", 8)
            assert all(int(a[0]) != 0 for a in answers), answers

    threads = [threading.Thread(target=fail) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    check(driver.cuLogsUnregisterCallback(handle))
    assert heard
    print("done")
    """
    assert run(script).stdout == "done\n"
