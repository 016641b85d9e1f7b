"""What kernel faults look like from the host. Each test runs in its own process, because a fault makes the context
unusable.
"""

import signal
import textwrap
import time

import pytest

from helpers.programs import python, start
from helpers.waits import until_blocked

HEADER = """
import sys
import numpy as np
from helpers.device import DeviceArray, Module, check, driver, synchronize
check(driver.cuInit(0))
context = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
R = driver.CUresult
"""


def script(body):
    return HEADER + textwrap.dedent(body)


def run(body, timeout=120):
    """(stdout, stderr) of a Python program that must succeed."""
    done = python(script(body), timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


ILLEGAL = '''
    module = Module.from_source("""
    extern "C" __global__ void write_past(int *out, int n)
    {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[(size_t)i * n] = i;
    }
    """, options=["--generate-line-info"], kind="ptx")
    out = DeviceArray(np.zeros(64, np.int32))
    module.launch("write_past", 2, 32, out, np.int32(1))
    synchronize()
    assert out.get().tolist() == list(range(64))
    module.launch("write_past", 2, 32, np.uint64(1 << 20), np.int32(1))
    print(driver.cuCtxSynchronize()[0].name)
    print(driver.cuMemAlloc(4)[0].name)
    print(driver.cuStreamCreate(0)[0].name)
'''


def test_illegal_address_is_sticky():
    out, _ = run(ILLEGAL)
    assert out.split() == ["CUDA_ERROR_ILLEGAL_ADDRESS"] * 3


@pytest.mark.cpu
def test_illegal_address_report_says_where():
    _, err = run(ILLEGAL)
    for word in ("write_past", "block", "thread", "0x", "PTX line", "test.cu:5"):
        assert word in err, err


@pytest.mark.cpu
@pytest.mark.parametrize("index, where", [(64, "past the end"), (-1, "before"), (1000, "past the end")])
def test_access_one_element_past_the_end_is_reported(index, where):
    _, err = run(f'''
        module = Module.from_source("""
        extern "C" __global__ void poke(int *out, int i) {{ out[i] = 1; }}
        """)
        out = DeviceArray(np.zeros(64, np.int32))
        module.launch("poke", 1, 1, out, np.int32({index}))
        assert driver.cuCtxSynchronize()[0] == R.CUDA_ERROR_ILLEGAL_ADDRESS
    ''')
    assert where in err, err


@pytest.mark.cpu
def test_use_after_free_is_reported():
    run('''
        module = Module.from_source("""
        extern "C" __global__ void poke(int *out) { *out = 1; }
        """)
        out = DeviceArray(np.zeros(64, np.int32))
        out.free()
        module.launch("poke", 1, 1, out)
        assert driver.cuCtxSynchronize()[0] == R.CUDA_ERROR_ILLEGAL_ADDRESS
    ''')


@pytest.mark.cpu
def test_shared_memory_is_bounds_checked():
    run('''
        module = Module.from_source("""
        extern "C" __global__ void poke(int i) { __shared__ int s[8]; ((volatile int *)s)[i] = 1; }
        """)
        module.launch("poke", 1, 1, np.int32(7))
        synchronize()
        module.launch("poke", 1, 1, np.int32(100000))
        assert driver.cuCtxSynchronize()[0] == R.CUDA_ERROR_ILLEGAL_ADDRESS
    ''')


def test_misaligned_access_is_an_error():
    out, _ = run('''
        module = Module.from_source("""
        extern "C" __global__ void odd(char *p) { *(int *)(p + 1) = 1; }
        """)
        out = DeviceArray(np.zeros(64, np.int32))
        module.launch("odd", 1, 1, out)
        print(driver.cuCtxSynchronize()[0].name)
    ''')
    assert out.split() == ["CUDA_ERROR_MISALIGNED_ADDRESS"]


def test_failed_assert_reports_its_location():
    out, err = run("""
        module = Module.from_file("printf_assert.cu", kind="ptx")
        x = np.ones(64, np.int32)
        x[37] = 0
        dx = DeviceArray(x)
        module.launch("check_positive", 2, 32, dx, np.int32(64))
        print(driver.cuCtxSynchronize()[0].name)
        print(driver.cuMemAlloc(4)[0].name)
    """)
    assert out.split() == ["CUDA_ERROR_ASSERT"] * 2
    assert "in[i] > 0" in err and "check_positive" in err and "block: [1,0,0], thread: [5,0,0]" in err, err


def test_trap_fails_the_launch():
    out, _ = run("""
        module = Module.from_file("printf_assert.cu", kind="ptx")
        module.launch("trap_if", 1, 32, np.int32(0))
        synchronize()
        module.launch("trap_if", 1, 32, np.int32(1))
        print(driver.cuCtxSynchronize()[0].name)
    """)
    assert out.split()[0] in ("CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION")


def test_printf_formats():
    out, _ = run("""
        module = Module.from_file("printf_assert.cu")
        module.launch("hello", 2, 3, np.int32(5))
        synchronize()
        text = DeviceArray(np.frombuffer(b"from memory\\0", np.uint8))
        module.launch("formats", 1, 1, text)
        synchronize()
    """)
    lines = out.split("\n")
    assert sorted(lines[:5]) == [f"thread {i} of 5" for i in range(5)]
    assert lines[5:] == [
        "-5 7 4000000000 ff FF 10 z %",
        "-5000000000 18446744073709551615 123456789abcdef",
        "[   42] [42   ] [00042] [+42] [ 42]",
        "3.250000 0.667 1.234568e+04 0.0001    -1.5000|",
        "literal and from memory",
        "[       abc] [abc       ] [ab]",
        "0x1234",
        "    42|42    |",
        "no newline",
        "1 2 3 4 5 6 7 8 9 10",
        "returned 10",
        "",
    ]


@pytest.mark.cpu
def test_endless_kernel_can_be_interrupted():
    body = script("""
        module = Module.from_file("divergent.cu")
        flag = DeviceArray(np.zeros(1, np.int32))
        module.launch("never_ends", 1, 32, flag)
        print("started", flush=True)
        try:
            synchronize()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        print(driver.cuCtxSynchronize()[0].name)
    """)
    child = start(body)
    try:
        assert child.stdout.readline() == "started\n"
        until_blocked(child.pid, child.pid)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert out.split() == ["interrupted", "CUDA_ERROR_LAUNCH_TIMEOUT"], out + err
    assert child.returncode == 0


@pytest.mark.cpu
def test_process_exits_while_a_kernel_runs():
    start = time.monotonic()
    run(
        """
        module = Module.from_file("divergent.cu")
        flag = DeviceArray(np.zeros(1, np.int32))
        module.launch("never_ends", 1, 32, flag)
    """,
        timeout=60,
    )
    assert time.monotonic() - start < 30


def test_host_can_stop_a_running_kernel():
    run("""
        module = Module.from_file("divergent.cu")
        flag = check(driver.cuMemHostAlloc(64, 2))
        import ctypes
        word = ctypes.c_int.from_address(int(flag))
        word.value = 0
        stream = check(driver.cuStreamCreate(1))
        module.launch("never_ends", 1, 32, np.uint64(int(flag)), stream=stream)
        assert driver.cuStreamQuery(stream)[0] == R.CUDA_ERROR_NOT_READY
        word.value = 1
        check(driver.cuStreamSynchronize(stream))
    """)


@pytest.mark.cpu
def test_deep_recursion_is_an_error_not_a_crash():
    out, err = run('''
        module = Module.from_source("""
        __device__ __noinline__ int down(int n, volatile int *p) { return n == 0 ? *p : down(n - 1, p) + *p; }
        extern "C" __global__ void deep(int n, int *p) { p[1] = down(n, p); }
        """)
        p = DeviceArray(np.ones(2, np.int32))
        module.launch("deep", 1, 1, np.int32(10), p)
        synchronize()
        assert p.get()[1] == 11
        module.launch("deep", 1, 1, np.int32(10_000_000), p)
        print(driver.cuCtxSynchronize()[0].name)
    ''')
    assert out.split()[0] in ("CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_ILLEGAL_ADDRESS"), out + err


def test_new_context_works_after_a_fault(cpu_device):
    if not cpu_device:
        pytest.skip("an NVIDIA GPU needs a new process after a fault")
    run("""
        module = Module.from_source('extern "C" __global__ void poke(int *p) { *p = 1; }')
        module.launch("poke", 1, 1, np.uint64(8))
        assert driver.cuCtxSynchronize()[0] == R.CUDA_ERROR_ILLEGAL_ADDRESS
        driver.cuCtxDestroy(context)
        context = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
        module = Module.from_source('extern "C" __global__ void poke(int *p) { *p = 1; }')
        out = DeviceArray(np.zeros(1, np.int32))
        module.launch("poke", 1, 1, out)
        synchronize()
        assert out.get()[0] == 1
    """)
