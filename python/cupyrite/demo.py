"""Compile a CUDA C++ kernel, load it, launch it, check the result and report each step.

``cupyrite demo [--elements N]``; ``CUPYRITE_DEVICE=auto|gpu|cpu`` selects the device.
"""

import argparse
import os
import sys
import time
import warnings

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}
"""

THREADS = 256
REPEATS = 5


class Failure(Exception):
    """A failed step; the message is printed to the terminal."""


def check(result, step):
    """Return the outputs of a driver or NVRTC call: None, one value, or a tuple."""
    status, *outputs = result
    if status != 0:
        raise Failure(f"{step}: {status!r}")
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


class Report:
    """Prints one line per step: name, detail, time and throughput."""

    def __init__(self):
        self.bold, self.dim, self.plain = ("\033[1m", "\033[2m", "\033[0m") if self._colours() else ("", "", "")

    @staticmethod
    def _colours():
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def title(self, text):
        print(f"{self.bold}{text}{self.plain}")

    def line(self, what, detail, seconds=None, rate=None):
        took = f"{seconds * 1e3:9.2f} ms" if seconds is not None else ""
        speed = f"{rate / 1e9:8.1f} GB/s" if rate is not None else ""
        print(f"  {what:<9} {detail:<52}{took}{speed}".rstrip(), flush=True)

    def more(self, text):
        print(f"  {'':<9} {self.dim}{text}{self.plain}", flush=True)


def timed(work):
    """Call `work` and return (result, seconds)."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def compile_source(nvrtc, arch):
    """Compile the kernel to PTX for a compute capability such as "89"."""
    program = check(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"saxpy.cu", 0, [], []), "create program")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=compute_{arch}".encode()])
        if status != 0:
            log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program), "size of the log"))
            check(nvrtc.nvrtcGetProgramLog(program, log), "log")
            raise Failure(f"compile: {status!r}\n{log.decode(errors='replace').rstrip(chr(0))}")
        ptx = bytearray(check(nvrtc.nvrtcGetPTXSize(program), "size of the PTX"))
        check(nvrtc.nvrtcGetPTX(program, ptx), "PTX")
        return bytes(ptx)
    finally:
        check(nvrtc.nvrtcDestroyProgram(program), "destroy program")


def device_lines(report, driver, nvrtc):
    """Report the selected device and the reason; return the device, its architecture and whether it is the CPU device."""
    from cupyrite import _native

    with warnings.catch_warnings():
        # The line "why" below reports the same.
        warnings.simplefilter("ignore", RuntimeWarning)
        check(driver.cuInit(0), "initialise the driver")
    device = check(driver.cuDeviceGet(0), "get device 0")
    name = check(driver.cuDeviceGetName(256, device), "device name").rstrip(b"\0").decode()
    attribute = driver.CUdevice_attribute
    major, minor, units = (
        check(driver.cuDeviceGetAttribute(what, device), "device attribute")
        for what in (
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        )
    )
    version = check(driver.cuDriverGetVersion(), "driver version")
    compiler = check(nvrtc.nvrtcVersion(), "NVRTC's version")
    report.line("device", name)
    report.line("why", _native.device_reason())
    report.line(
        "supports",
        f"compute capability {major}.{minor}, {units} multiprocessors, "
        f"CUDA {version // 1000}.{version % 1000 // 10}, NVRTC {compiler[0]}.{compiler[1]}",
    )
    return device, f"{major}{minor}", name.startswith("CPU")


def launch_repeatedly(driver, kernel, stream, blocks, arguments):
    """Seconds of the first and of the fastest launch, measured with events."""
    start = check(driver.cuEventCreate(0), "create event")
    end = check(driver.cuEventCreate(0), "create event")
    times = []
    for _ in range(REPEATS):
        check(driver.cuEventRecord(start, stream), "record event")
        check(
            driver.cuLaunchKernel(kernel, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, 0),
            "launch the kernel",
        )
        check(driver.cuEventRecord(end, stream), "record event")
        check(driver.cuEventSynchronize(end), "run the kernel")
        times.append(check(driver.cuEventElapsedTime(start, end), "read the time") / 1e3)
    check(driver.cuEventDestroy(start), "destroy event")
    check(driver.cuEventDestroy(end), "destroy event")
    return times[0], min(times)


def run(elements):
    """Run the demo; returns whether the result is correct."""
    import ctypes

    import numpy as np

    report = Report()
    imported, seconds = timed(lambda: __import__("cuda.bindings.driver", fromlist=["driver"]))
    from cuda.bindings import nvrtc

    driver = imported
    from cupyrite import __version__

    report.title(f"Cupyrite {__version__}: out[i] = a * x[i] + y[i] for {elements:,} floats")
    report.line("import", "cuda.bindings.driver", seconds)
    device, arch, on_cpu = device_lines(report, driver, nvrtc)

    ptx, first = timed(lambda: compile_source(nvrtc, arch))
    _, again = timed(lambda: compile_source(nvrtc, arch))
    report.line("compile", f"CUDA C++ to PTX for compute_{arch}, {len(ptx):,} bytes", first)
    report.more(f"second compilation: {again * 1e3:.2f} ms (the first includes NVRTC's initialization)")

    context = check(driver.cuCtxCreate(None, 0, device), "create context")
    module, seconds = timed(lambda: check(driver.cuModuleLoadData(ptx), "load the PTX"))
    kernel = check(driver.cuModuleGetFunction(module, b"saxpy"), "find the kernel")
    report.line("load", "PTX into a module with the kernel", seconds)

    rng = np.random.default_rng(0)
    x, y = (rng.random(elements, dtype=np.float32) for _ in range(2))
    out = np.empty_like(x)
    stream = check(driver.cuStreamCreate(0), "create stream")
    buffers = [check(driver.cuMemAlloc(x.nbytes), "allocate device memory") for _ in range(3)]

    def copy_in():
        for buffer, array in zip(buffers, (x, y)):
            check(driver.cuMemcpyHtoDAsync(buffer, array.ctypes.data, array.nbytes, stream), "copy in")
        check(driver.cuStreamSynchronize(stream), "copy in")

    def copy_out():
        check(driver.cuMemcpyDtoHAsync(out.ctypes.data, buffers[2], out.nbytes, stream), "copy out")
        check(driver.cuStreamSynchronize(stream), "copy out")

    _, seconds = timed(copy_in)
    report.line("copy in", f"{2 * x.nbytes / 2**20:.0f} MiB, host to device", seconds, 2 * x.nbytes / seconds)

    a = 2.5
    blocks = -(-elements // THREADS)
    arguments = (
        (a, *buffers, elements),
        (ctypes.c_float, None, None, None, ctypes.c_size_t),
    )
    first, best = launch_repeatedly(driver, kernel, stream, blocks, arguments)
    moved = 3 * x.nbytes
    report.line("kernel", f"{blocks:,} blocks of {THREADS} threads, best of {REPEATS}", best, moved / best)
    report.more(f"first launch: {first * 1e3:.2f} ms; {best / elements * 1e9:.3f} ns per thread")

    _, seconds = timed(copy_out)
    report.line("copy out", f"{out.nbytes / 2**20:.0f} MiB, device to host", seconds, out.nbytes / seconds)

    expected, seconds = timed(lambda: np.float32(a) * x + y)
    report.line("NumPy", "the same computation on the host", seconds, moved / seconds)
    error = float(np.max(np.abs(out - expected), initial=0.0))
    # One rounding of a value below 4: the kernel may use a fused multiply-add, while NumPy rounds twice.
    correct = error <= 4 * 2.0**-23
    report.line("result", f"largest error against NumPy {error:.3g}: {'correct' if correct else 'WRONG'}")

    for buffer in buffers:
        check(driver.cuMemFree(buffer), "free device memory")
    check(driver.cuStreamDestroy(stream), "destroy stream")
    check(driver.cuModuleUnload(module), "unload the module")
    check(driver.cuCtxDestroy(context), "destroy context")
    next_steps(report, on_cpu)
    return correct


def next_steps(report, on_cpu):
    """Print suggestions for further runs."""
    from .command_line import program

    command = program()
    print()
    report.title("What to try next")
    if on_cpu:
        suggestions = {f"CUPYRITE_CPU_THREADS=1 {command} demo": "run on one core"}
    else:
        suggestions = {f"CUPYRITE_DEVICE=cpu {command} demo": "run without the GPU"}
    suggestions[f"{command} demo --elements 1000"] = "a size at which launch overhead dominates"
    suggestions[f"{command} explain environment"] = "the environment variables"
    width = max(map(len, suggestions))
    for words, text in suggestions.items():
        print(f"  {words:<{width}}  {text}")
    if on_cpu:
        print("  With an NVIDIA driver installed, the same command runs on the GPU. The CPU device is for")
        print("  developing and testing programs for NVIDIA GPUs; it does not replace one.")


def main(argv=None):
    """Entry point; returns the exit status."""
    from .command_line import program

    name = "python -m cupyrite.demo" if __name__ == "__main__" else f"{program()} demo"
    parser = argparse.ArgumentParser(prog=name, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--elements", type=int, default=1 << 24, metavar="N", help="number of floats per array (16,777,216)"
    )
    options = parser.parse_args(argv)
    if not 1 <= options.elements <= 1 << 30:
        parser.error(f"--elements {options.elements}: expected 1 to {1 << 30}")
    try:
        correct = run(options.elements)
        sys.stdout.flush()
        return 0 if correct else 1
    except ImportError as error:
        if error.name == "numpy":
            print("The demo checks its result with NumPy, which is not installed: pip install numpy", file=sys.stderr)
        else:
            print(f"\nThe demo stopped.\n{error}\nThe doctor names the cause: {program()} doctor", file=sys.stderr)
    except (Failure, RuntimeError, ValueError) as error:
        print(f"\nThe demo stopped.\n{error}", file=sys.stderr)
    except BrokenPipeError:
        # The reader of the pipe is gone (`| head -1`).
        from .doctor import discard_output

        discard_output()
    return 1


if __name__ == "__main__":
    sys.exit(main())
