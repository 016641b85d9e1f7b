"""Saxpy on the CPU device with one thread, and plain C (-O3), in one run. Budget: three times C."""

import argparse
import ctypes
import os
import pathlib
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
os.environ["CUPYRITE_DEVICE"] = "cpu"
os.environ.setdefault("CUPYRITE_CPU_THREADS", "1")

import numpy as np
from cuda.bindings import driver, nvrtc

from harness.c_code import build_library
from harness.sides import machine, table, verdict

HERE = pathlib.Path(__file__).resolve().parent

BUDGET = 3.0
SOURCE = b"""
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}
"""


def check(result):
    if result[0] != 0:
        raise RuntimeError(result[0])
    return result[1] if len(result) == 2 else result[1:]


def load_kernel():
    """Compiles the kernel with NVRTC and loads it."""
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    check(driver.cuCtxCreate(None, 0, device))
    program = check(nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], []))
    check(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_89"]))
    ptx = bytearray(check(nvrtc.nvrtcGetPTXSize(program)))
    check(nvrtc.nvrtcGetPTX(program, ptx))
    return check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(bytes(ptx))), b"saxpy"))


def plain_c(folder):
    """Compiles and loads the C function."""
    library = build_library(HERE / "saxpy.c", pathlib.Path(folder), optimize="-O3")
    function = ctypes.CDLL(str(library)).saxpy
    function.argtypes = [ctypes.c_float, *(ctypes.c_void_p,) * 3, ctypes.c_size_t]
    function.restype = None
    return function


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--elements", type=int, default=1 << 24)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--threads", type=int, default=256, help="threads in a block")
    options = options.parse_args()
    n, a = options.elements, 2.5
    rng = np.random.default_rng(1)
    x, y = (rng.random(n, dtype=np.float32) for _ in range(2))
    out_c, out_device = np.zeros_like(x), np.zeros_like(x)

    kernel = load_kernel()
    buffers = [check(driver.cuMemAlloc(x.nbytes)) for _ in range(3)]
    for buffer, array in zip(buffers, (x, y)):
        check(driver.cuMemcpyHtoD(buffer, array.ctypes.data, array.nbytes))
    arguments = ((a, *buffers, n), (ctypes.c_float, None, None, None, ctypes.c_size_t))

    def on_device():
        check(driver.cuLaunchKernel(kernel, -(-n // options.threads), 1, 1, options.threads, 1, 1, 0, 0, arguments, 0))
        check(driver.cuCtxSynchronize())

    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as folder:
        function = plain_c(folder)

        def in_c():
            function(a, x.ctypes.data, y.ctypes.data, out_c.ctypes.data, n)

        times = {in_c: [], on_device: []}
        for _ in range(options.rounds):
            for work, seconds in times.items():
                start = time.perf_counter()
                work()
                seconds.append(time.perf_counter() - start)
    check(driver.cuMemcpyDtoH(out_device.ctypes.data, buffers[2], out_device.nbytes))
    if not np.allclose(out_c, out_device, rtol=1e-6):
        sys.exit("the results of C and of the CPU device differ")

    threads = os.environ["CUPYRITE_CPU_THREADS"]
    print(f"saxpy, {n:,} elements, {threads} thread(s), best of {options.rounds}; {machine()}\n")
    rows = []
    reference = min(times[in_c])
    for name, work in (("plain C, -O3", in_c), ("CPU device", on_device)):
        best = min(times[work])
        rows.append(
            (
                name,
                f"{best * 1e3:.2f}",
                f"{best / n * 1e9:.3f}",
                f"{12 * n / best / 1e9:.1f}",
                f"{best / reference:.2f}",
            )
        )
    table(("", "ms", "ns an element", "GB/s", "times C"), rows)
    factor = min(times[on_device]) / reference
    print(f"\nbudget {BUDGET:.0f} times C: {verdict(factor <= BUDGET)}")
    return 0 if factor <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
