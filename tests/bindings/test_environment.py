"""Around calls: environment variables, missing libraries, device selection, Ctrl-C, leaks, threads."""

import gc
import os
import sys
import threading
import time

import pytest
from cuda.bindings import driver, nvrtc

from helpers import programs
from helpers.device import check


def python(code, timeout=120, **environment):
    """As `programs.python`, without the variables that CUDA Python reads."""
    cleared = {name: None for name in os.environ if name.startswith("CUDA_PYTHON_")}
    return programs.python(code, timeout=timeout, environment=cleared | environment)


@pytest.mark.parametrize("value", ["", "yes", "1.5"])
def test_per_thread_default_stream_must_be_an_integer(value):
    code = """
        from cuda.bindings import driver
        try:
            driver.cuInit(0)
        except ValueError as e:
            print(e)
    """
    done = python(code, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=value, CUPYRITE_DEVICE="cpu")
    expected = f"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM='{value}': expected an integer: 0 for the legacy"
    assert done.stdout.startswith(expected), done


@pytest.mark.parametrize("value", ["", "yes", "1.5"])
def test_default_stream_of_cuda_core_refuses_the_same_values(value):
    code = """
        from cuda.core import Device
        device = Device()
        device.set_current()
        try:
            device.default_stream
        except ValueError as e:
            assert "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM" in str(e)
            print("refused")
    """
    done = python(code, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=value, CUPYRITE_DEVICE="cpu")
    assert done.stdout == "refused\n", done


@pytest.mark.parametrize("value", ["0", "1", " 2 ", "-1", "1_0"])
def test_per_thread_default_stream_accepts_integers(value):
    code = "from cuda.bindings import driver; print(driver.cuInit(0)[0].value)"
    done = python(code, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=value, CUPYRITE_DEVICE="cpu")
    assert done.stdout == "0\n", done


def test_invalid_cupyrite_device_raises():
    code = """
        from cuda.bindings import driver
        for attempt in range(2):
            try:
                driver.cuInit(0)
            except ValueError as e:
                print(e)
    """
    done = python(code, CUPYRITE_DEVICE="toaster")
    assert done.stdout.count("CUPYRITE_DEVICE") == 2 and "toaster" in done.stdout, done


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("CUPYRITE_DEVISE", "CUPYRITE_DEVICE"),
        ("CUPYRITE_LIB_NVRTX", "CUPYRITE_LIB_NVRTC"),
        ("CUPYRITE_NO_SUCH_SETTING", "did you mean"),
    ],
)
@pytest.mark.parametrize("call", ["driver.cuInit(0)", "nvrtc.nvrtcVersion()", "nvml.init_v2()", "core.Device(0)"])
def test_unknown_variables_raise_on_first_use(name, nearest, call):
    code = f"""
        from cuda import core
        from cuda.bindings import driver, nvml, nvrtc
        for attempt in range(2):
            try:
                {call}
            except ValueError as e:
                print(e)
    """
    done = python(code, **{name: "1"}, CUPYRITE_DEVICE="cpu")
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1], done
    assert lines[0].startswith(f"{name}: ") and nearest in lines[0] and f"unset {name}" in lines[0]


@pytest.mark.parametrize("name", ["CUPYRITE_TEST_OF_MINE", "CUPYRITE_REQUIRE_WHEELS", "CUPYRITE_CYCLES"])
def test_variables_of_tests_are_accepted(name):
    code = "from cuda.bindings import driver; print(driver.cuInit(0)[0].value)"
    assert python(code, **{name: "1"}, CUPYRITE_DEVICE="cpu").stdout == "0\n"


def test_an_empty_unknown_variable_counts_as_unset():
    code = "from cuda.bindings import driver; print(driver.cuInit(0)[0].value)"
    assert python(code, CUPYRITE_DEVISE="", CUPYRITE_DEVICE="cpu").stdout == "0\n"


@pytest.mark.parametrize(
    "name, value",
    [
        ("CUPYRITE_CPU_THREADS", "x"),
        ("CUPYRITE_CPU_MEMORY", "2 GiB"),
        ("CUPYRITE_CPU_DEVICES", "17"),
        ("CUPYRITE_CPU_DUMP", "kir:inlining"),
        ("CUPYRITE_CPU_DUMP", "ptx"),
        ("CUPYRITE_CPU_TIER", "3"),
        ("CUPYRITE_CPU_INSTRUCTIONS", "sse2"),
    ],
)
def test_invalid_setting_of_the_cpu_device_fails_initialization(name, value):
    code = "from cuda.bindings import driver; print(driver.cuInit(0)[0].name)"
    done = python(code, **{name: value}, CUPYRITE_DEVICE="cpu")
    assert done.stdout == "CUDA_ERROR_INVALID_VALUE\n", done
    assert f"{name}='{value}': expected " in done.stderr


@pytest.mark.parametrize("dump, ends", [("kir", "register_allocation"), ("kir:build", "build")])
def test_the_cpu_device_dumps_the_kernels_that_it_compiles(dump, ends, tmp_path):
    code = """
        from cuda.core import Device, LaunchConfig, ObjectCode, launch
        device = Device()
        device.set_current()
        ptx = b".version 8.0\\n.target sm_75\\n.address_size 64\\n"
        ptx += b".visible .entry used() { ret; } .visible .entry unused() { ret; }"
        kernel = ObjectCode.from_ptx(ptx).get_kernel("used")
        launch(device.default_stream, LaunchConfig(grid=1, block=1), kernel)
        device.sync()
        print("done")
    """
    folder = tmp_path / "dumps"
    done = python(code, CUPYRITE_DEVICE="cpu", CUPYRITE_CPU_DUMP=dump, CUPYRITE_CPU_DUMP_FOLDER=str(folder))
    assert done.stdout == "done\n", done
    assert [f.name for f in folder.iterdir()] == [f"used.{ends}.kir"]
    text = (folder / f"used.{ends}.kir").read_text()
    assert text.startswith("function used: frame 0\n") and "return" in text


@pytest.mark.cpu
def test_missing_driver_error_names_the_searched_locations():
    code = """
        from cuda.bindings import driver
        from cuda.pathfinder import DynamicLibNotFoundError
        try:
            driver.cuInit(0)
        except DynamicLibNotFoundError as e:
            print(e)
        else:
            print("there is a driver")
    """
    done = python(code, CUPYRITE_DEVICE="gpu")
    if "there is a driver" in done.stdout:
        pytest.skip("this machine has an NVIDIA driver")
    assert "libcuda.so" in done.stdout and "CUPYRITE_DEVICE=gpu" in done.stdout, done


@pytest.mark.cpu
def test_falling_back_to_the_cpu_device_warns_once():
    code = """
        import warnings
        from cuda.bindings import driver
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            driver.cuInit(0)
            driver.cuDeviceGet(0)
        print([w.category.__name__ for w in caught], *(str(w.message) for w in caught))
    """
    done = python(code, CUPYRITE_DEVICE="auto")
    if done.stdout.startswith("[]"):
        pytest.skip("this machine has an NVIDIA driver")
    assert done.stdout.startswith("['RuntimeWarning'] ") and "CPU device" in done.stdout, done
    assert python(code, CUPYRITE_DEVICE="cpu").stdout == "[]\n"


@pytest.mark.cpu
@pytest.mark.parametrize("first", ["Device()", "Device(0)", "Device.get_all_devices()", "Stream()"])
def test_falling_back_to_the_cpu_device_warns_once_through_cuda_core(first):
    code = f"""
        import warnings
        from cuda.core import Device, Stream
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            {first}
            Device().set_current()
        print([w.category.__name__ for w in caught], *(str(w.message) for w in caught))
    """
    done = python(code, CUPYRITE_DEVICE="auto")
    if done.stdout.startswith("[]") and "CPU" not in done.stderr and os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has an NVIDIA driver")
    assert done.stdout.startswith("['RuntimeWarning'] ") and "CPU device" in done.stdout, done
    assert python(code, CUPYRITE_DEVICE="cpu").stdout == "[]\n"


@pytest.mark.cpu
@pytest.mark.parametrize("value, shown", [("-1", 0), ("", 0), ("0", 1), ("1,0", 2), ("7", 0), (None, 2)])
def test_cuda_visible_devices_hides_devices(value, shown):
    code = """
        from cuda.bindings import driver
        from cuda.core import Device
        print(driver.cuInit(0)[0].name, driver.cuDeviceGetCount()[1])
        try:
            print(len(Device.get_all_devices()))
        except Exception as error:
            print(error)
    """
    done = python(code, CUPYRITE_DEVICE="cpu", CUPYRITE_CPU_DEVICES="2", CUDA_VISIBLE_DEVICES=value)
    if shown:
        assert done.stdout == f"CUDA_SUCCESS {shown}\n{shown}\n", done
    else:
        assert done.stdout.startswith("CUDA_ERROR_NO_DEVICE None\n") and "CUDA_VISIBLE_DEVICES" in done.stdout, done


@pytest.mark.cpu
def test_falling_back_to_the_cpu_device_warns_once_through_nvml():
    code = """
        import warnings
        from cuda.bindings import driver, nvml
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            nvml.init_v2()
            print([w.category.__name__ for w in caught])
            nvml.device_get_count_v2()
            driver.cuInit(0)
        print(len(caught), *(str(w.message) for w in caught))
    """
    done = python(code, CUPYRITE_DEVICE="auto")
    if done.stdout.startswith("[]"):
        pytest.skip("this machine has an NVIDIA driver")
    assert done.stdout.startswith("['RuntimeWarning']\n1 ") and "CPU device" in done.stdout, done
    assert python(code, CUPYRITE_DEVICE="cpu").stdout == "[]\n0\n"
    strict = """
        import warnings
        from cuda.bindings import nvml
        warnings.simplefilter("error")
        try:
            nvml.init_v2()
        except RuntimeWarning:
            print("raised")
        nvml.init_v2()
    """
    assert python(strict, CUPYRITE_DEVICE="auto").stdout == "raised\n"


@pytest.mark.cpu
def test_ctrl_c_interrupts_an_endless_kernel():
    code = """
        import os, signal, threading, time
        from cuda.bindings import driver
        PTX = b'''.version 8.0
        .target sm_80
        .address_size 64
        .visible .entry forever() {
        L: bra L;
        }
        '''
        def ok(r):
            assert int(r[0]) == 0, r
            return r[1] if len(r) > 1 else None
        ok(driver.cuInit(0))
        ok(driver.cuCtxCreate(0, 0))
        kernel = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(PTX)), b"forever"))
        ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0))
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        try:
            driver.cuCtxSynchronize()
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - begin < 20)
        os._exit(0)
    """
    done = python(code, CUPYRITE_DEVICE="cpu", timeout=60, PYTHONUNBUFFERED="1")
    assert done.stdout == "interrupted True\n", done


# ---------------------------------------------------------------- leaks


def growth(function, times):
    """Allocated blocks that remain after calls."""
    for _ in range(64):
        function()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(times):
        function()
    gc.collect()
    return sys.getallocatedblocks() - before


def raising(call, exception):
    def run():
        try:
            call()
        except exception:
            return
        raise AssertionError("nothing was raised")

    return run


class Number:
    def __int__(self):
        return 0


def test_calls_leak_no_references():
    import ctypes

    import numpy as np

    check(driver.cuInit(0))
    context = check(driver.cuCtxCreate(None, 0, 0))
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE
    pointer = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    array = np.zeros(4)
    J = driver.CUjit_option
    launch = (0, 1, 1, 1, 1, 1, 1, 0, 0)
    values = ((1, 2.0, 3) * 20, (ctypes.c_int, ctypes.c_double, ctypes.c_void_p) * 20)
    knows = ctypes.c_int(3)

    def make_and_destroy_a_linker():
        _status, linker = driver.cuLinkCreate(1, [J.CU_JIT_MAX_REGISTERS], [5])
        if linker is not None:
            check(driver.cuLinkDestroy(linker))

    calls = [
        lambda: driver.cuInit(0),
        lambda: driver.cuInit(Number()),
        lambda: driver.cuInit(Flags=0),
        lambda: driver.cuDeviceGet(0),
        lambda: driver.cuDeviceGet(1000),
        lambda: driver.cuDeviceGetAttribute(attribute, 0),
        lambda: driver.cuDeviceGetName(64, 0),
        lambda: driver.cuDeviceGetUuid(0),
        lambda: driver.cuDeviceGetProperties(0),
        lambda: driver.cuGetErrorName(1),
        lambda: driver.cuMemGetInfo(),
        lambda: driver.cuMemcpy2D(driver.CUDA_MEMCPY2D()),
        lambda: driver.cuMemcpyHtoD(0, array, 0),
        lambda: driver.cuMemcpyHtoD(0, b"1234", 0),
        lambda: driver.cuMemcpyHtoD(0, bytearray(4), 0),
        lambda: driver.cuPointerGetAttributes(1, [pointer], 0),
        lambda: driver.cuGraphAddEmptyNode(0, [driver.CUgraphNode(1)] * 3, 3),
        lambda: driver.cuMemSetAccess(0, 0, [driver.CUmemAccessDesc(), driver.CUmemAccessDesc()], 2),
        lambda: driver.cuModuleLoadDataEx(b"", 1, [J.CU_JIT_MAX_REGISTERS], [5]),
        lambda: driver.cuModuleLoadDataEx(
            b"", 2, [J.CU_JIT_ERROR_LOG_BUFFER, J.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES], [bytearray(64), 64]
        ),
        make_and_destroy_a_linker,
        lambda: driver.cuLaunchKernel(*launch, values, 0),
        lambda: driver.cuLaunchKernel(*launch, [list(values[0]), list(values[1])], 0),
        lambda: driver.cuLaunchKernel(*launch, ((knows,), (None,)), 0),
        lambda: driver.cuLaunchKernel(*launch, array, 0),
        lambda: driver.cuStreamGetCaptureInfo(0),
        lambda: nvrtc.nvrtcVersion(),
        lambda: nvrtc.nvrtcGetErrorString(3),
        lambda: nvrtc.nvrtcGetSupportedArchs(),
        lambda: nvrtc.nvrtcDestroyProgram(check(nvrtc.nvrtcCreateProgram(b"", b"a", 1, [b"h"], [b"h.h"]))),
        raising(lambda: driver.cuInit("x"), TypeError),
        raising(lambda: driver.cuInit(-1), OverflowError),
        raising(lambda: driver.cuInit(), TypeError),
        raising(lambda: driver.cuInit(x=1), TypeError),
        raising(lambda: driver.cuGraphAddEmptyNode(0, [1], 1), TypeError),
        raising(lambda: driver.cuGraphAddEmptyNode(0, [], 1), ValueError),
        raising(lambda: driver.cuMemcpyHtoD(0, array, 1000), ValueError),
        raising(lambda: driver.cuLaunchKernel(*launch, ((1,), (int,)), 0), TypeError),
        raising(lambda: driver.cuLaunchKernel(*launch, ((1, "x"), (ctypes.c_int,) * 2), 0), TypeError),
    ]
    grown = {index: growth(call, 300) for index, call in enumerate(calls)}
    leaking = {index: n for index, n in grown.items() if n > 150}
    check(driver.cuCtxDestroy(context))
    assert not leaking, "calls by index, with blocks that remain after 300 calls of each"


def test_argument_references_are_released():
    import numpy as np

    array, text, number = np.zeros(4), b"some bytes", Number()
    stream, struct = driver.CUstream(0), driver.CUDA_MEMCPY2D()
    items = [driver.CUgraphNode(1), driver.CUgraphNode(2)]
    watched = [array, text, number, stream, struct, items, items[0]]
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(200):
        driver.cuMemcpyHtoD(0, array, 0)
        driver.cuModuleGetFunction(0, text)
        driver.cuInit(number)
        driver.cuStreamQuery(stream)
        driver.cuMemcpy2D(struct)
        driver.cuGraphAddEmptyNode(0, items, 2)
    after = [sys.getrefcount(o) for o in watched]
    assert [b - a for a, b in zip(before, after)] == [0] * len(watched)


# ---------------------------------------------------------------- threads


def test_gil_is_released_during_a_waiting_call(context):
    beats = []
    stop = threading.Event()

    def beat():
        while not stop.is_set():
            beats.append(None)
            time.sleep(0.0005)

    thread = threading.Thread(target=beat)
    thread.start()
    pointer = check(driver.cuMemAlloc(64 << 20))
    begin, before = time.monotonic(), len(beats)
    while time.monotonic() - begin < 0.3:
        check(driver.cuMemsetD8(pointer, 1, 64 << 20))
        check(driver.cuCtxSynchronize())
    during = len(beats) - before
    stop.set()
    thread.join()
    check(driver.cuMemFree(pointer))
    assert during > 5
