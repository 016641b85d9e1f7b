"""One side of kernels.py: a process that runs kernels on request.

    kernels_side.py c|pocl|cupyrite FOLDER THREADS

FOLDER/KERNEL/ARRAY.npy holds the inputs. The first line of standard output says whether the side is available. Then each
line of standard input is a request in JSON, and each line of standard output its answer:

* {"load": KERNEL} compiles the kernel, copies the inputs, and runs it once;
* {"time": ROUNDS} runs it and returns the seconds of each run;
* {"save": SUBFOLDER} writes the outputs to SUBFOLDER/ARRAY.npy.

A failed request is answered by {"error": MESSAGE}.
"""

import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
from kernels_table import BY_NAME

from harness.c_code import compile_c, compiler

# Further runs of a turn are omitted once its runs have taken this many seconds.
TURN_SECONDS = 0.5


class PlainC:
    """Plain C, called with ctypes."""

    flags = ("-march=native", "-ffast-math")

    def __init__(self, folder, threads):
        if compiler() is None:
            raise RuntimeError("no C compiler on PATH (cc, gcc or clang)")
        self.folder = folder
        self.openmp = ("-fopenmp",) if threads > 1 else ()
        version = subprocess.run([compiler(), "--version"], capture_output=True, text=True).stdout.splitlines()[0]
        self.description = " ".join((version, "-O3", *self.flags, *self.openmp))

    def load(self, kernel, arrays):
        """Compiles the function and keeps its arguments."""
        library = self.folder / f"{kernel.name}.so"
        words = ("-shared", "-fPIC", "-o", library, kernel.source, "-lm")
        compile_c(*self.flags, *self.openmp, *words, optimize="-O3")
        self.arrays = arrays
        self.accumulated = [arrays[name] for name, output in kernel.outputs.items() if output.accumulates]
        self.function = getattr(ctypes.CDLL(str(library)), kernel.name)
        self.function.restype = None
        self.arguments = [
            np.ctypeslib.as_ctypes_type(kernel.scalars[name].dtype)(kernel.scalars[name].item())
            if name in kernel.scalars
            else ctypes.c_void_p(arrays[name].ctypes.data)
            for name in kernel.parameters.split()
        ]

    def reset(self):
        """Sets accumulated outputs to zero."""
        for array in self.accumulated:
            array.fill(0)

    def run(self):
        """Calls the function."""
        self.function(*self.arguments)

    def read(self, name):
        """The output with this name."""
        return self.arrays[name]


class Pocl:
    """PoCL, called with pyopencl."""

    flags = ("-cl-fast-relaxed-math",)

    def __init__(self, folder, threads):
        os.environ["PYOPENCL_NO_CACHE"] = "1"
        os.environ["POCL_CACHE_DIR"] = str(folder / "pocl-cache")
        os.environ["POCL_MAX_PTHREAD_COUNT"] = str(threads)
        import pyopencl

        self.cl = pyopencl
        platforms = [p for p in self.cl.get_platforms() if p.name == "Portable Computing Language"]
        if not platforms:
            raise RuntimeError("no OpenCL platform 'Portable Computing Language'")
        device = platforms[0].get_devices(self.cl.device_type.CPU)[0]
        self.context = self.cl.Context([device])
        self.queue = self.cl.CommandQueue(self.context)
        self.description = f"{platforms[0].version.strip()}, {' '.join(self.flags)}"

    def load(self, kernel, arrays):
        """Compiles the kernel, and copies the arrays to buffers."""
        flags = self.cl.mem_flags
        copied = flags.READ_WRITE | flags.COPY_HOST_PTR
        program = self.cl.Program(self.context, kernel.source.read_text()).build(options=list(self.flags))
        self.kernel = self.cl.Kernel(program, kernel.name)
        self.arrays = arrays
        self.buffers = {name: self.cl.Buffer(self.context, copied, hostbuf=array) for name, array in arrays.items()}
        self.accumulated = [name for name, output in kernel.outputs.items() if output.accumulates]
        values = {**self.buffers, **kernel.scalars}
        self.kernel.set_args(*(values[name] for name in kernel.parameters.split()))
        self.size = tuple(blocks * threads for blocks, threads in zip(kernel.grid, kernel.block))
        self.block = kernel.block

    def reset(self):
        """Sets accumulated outputs to zero."""
        for name in self.accumulated:
            nbytes = self.arrays[name].nbytes
            self.cl.enqueue_fill_buffer(self.queue, self.buffers[name], np.uint32(0), 0, nbytes)
        self.queue.finish()

    def run(self):
        """Enqueues the kernel and waits."""
        self.cl.enqueue_nd_range_kernel(self.queue, self.kernel, self.size, self.block)
        self.queue.finish()

    def read(self, name):
        """The output with this name, copied from its buffer."""
        self.cl.enqueue_copy(self.queue, self.arrays[name], self.buffers[name])
        return self.arrays[name]


class Cupyrite:
    """Cupyrite's CPU device, called with cuda.core."""

    def __init__(self, folder, threads):
        os.environ["CUPYRITE_DEVICE"] = "cpu"
        os.environ["CUPYRITE_CPU_THREADS"] = str(threads)
        import cupyrite
        from cuda import core
        from cuda.bindings import nvrtc

        self.core = core
        self.device = core.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.buffers = {}
        _, major, minor = nvrtc.nvrtcVersion()
        self.description = f"{self.device.name}, cupyrite {cupyrite.__version__}, NVRTC {major}.{minor}"

    def load(self, kernel, arrays):
        """Compiles the kernel with NVRTC, and copies the arrays to the device."""
        for buffer in self.buffers.values():
            buffer.close(self.stream)
        options = self.core.ProgramOptions(arch=f"sm_{self.device.arch}")
        program = self.core.Program(kernel.source.read_text(), "c++", options)
        self.kernel = program.compile("ptx").get_kernel(kernel.name)
        self.config = self.core.LaunchConfig(grid=kernel.grid, block=kernel.block)
        self.arrays = arrays
        self.buffers = {}
        for name, array in arrays.items():
            self.buffers[name] = self.device.allocate(array.nbytes, stream=self.stream)
            self.copy(array, self.buffers[name], to_device=True)
        self.accumulated = [name for name, output in kernel.outputs.items() if output.accumulates]
        values = {**self.buffers, **kernel.scalars}
        self.arguments = [values[name] for name in kernel.parameters.split()]

    def copy(self, array, buffer, to_device):
        """Copies between an array and a buffer, and waits."""
        from cuda.bindings import driver

        if to_device:
            status = driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes)
        else:
            status = driver.cuMemcpyDtoH(array.ctypes.data, int(buffer.handle), array.nbytes)
        if status[0] != 0:
            raise RuntimeError(status[0])

    def reset(self):
        """Sets accumulated outputs to zero."""
        for name in self.accumulated:
            self.buffers[name].fill(0, stream=self.stream)
        self.stream.sync()

    def run(self):
        """Launches the kernel and waits."""
        self.core.launch(self.stream, self.config, self.kernel, *self.arguments)
        self.stream.sync()

    def read(self, name):
        """The output with this name, copied from the device."""
        self.copy(self.arrays[name], self.buffers[name], to_device=False)
        return self.arrays[name]


SIDES = {"c": PlainC, "pocl": Pocl, "cupyrite": Cupyrite}


class Requests:
    """Answers the requests of the module's description for one side."""

    def __init__(self, side, folder):
        self.side, self.folder = side, folder

    def load(self, name):
        """Loads a kernel with its inputs, outputs of zeros, and runs it once."""
        self.kernel = BY_NAME[name]
        arrays = {file.stem: np.load(file) for file in (self.folder / name).glob("*.npy")}
        for output, described in self.kernel.outputs.items():
            arrays[output] = np.zeros(described.shape, described.dtype)
        self.side.load(self.kernel, arrays)
        self.side.reset()
        self.side.run()
        return {}

    def time(self, rounds):
        """Runs the kernel up to `rounds` times; returns the seconds of each run."""
        seconds = []
        for _ in range(rounds):
            self.side.reset()
            start = time.perf_counter()
            self.side.run()
            seconds.append(time.perf_counter() - start)
            if sum(seconds) > TURN_SECONDS:
                break
        return {"seconds": seconds}

    def save(self, folder):
        """Writes the outputs of the last run."""
        for name in self.kernel.outputs:
            np.save(pathlib.Path(folder) / f"{name}.npy", self.side.read(name))
        return {}

    def answer(self, request):
        """The answer to a request."""
        ((name, argument),) = request.items()
        try:
            return {"load": self.load, "time": self.time, "save": self.save}[name](argument)
        except Exception as reason:
            return {"error": f"{type(reason).__name__}: {reason}"}


def main():
    name, folder, threads = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    # Compilers and libraries that print must not disturb the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(answer):
        print(json.dumps(answer), file=answers, flush=True)

    try:
        own = folder / f"side-{name}"
        own.mkdir()
        side = SIDES[name](own, threads)
    except Exception as reason:
        send({"missing": f"{type(reason).__name__}: {reason}"})
        return
    send({"description": side.description})
    requests = Requests(side, folder)
    for line in sys.stdin:
        send(requests.answer(json.loads(line)))


if __name__ == "__main__":
    main()
