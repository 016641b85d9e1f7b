"""Shared by the examples: choosing a device, compiling, launching, reporting the result.

Every example is a program of its own; this module only avoids repetition.
"""

import ctypes
import struct
import sys
import warnings
import zlib

import numpy as np
from cuda.bindings import driver, nvrtc

#: Exit status of an example that this machine cannot run; test programs know it as "skipped".
SKIPPED = 77


class Skip(Exception):
    """This machine cannot run the example; the text names what is missing."""


def check(result):
    """The outputs of a driver or NVRTC call: None, one value or a tuple. Anything but success raises."""
    status, *outputs = result
    if status != 0:
        raise RuntimeError(repr(status))
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


def verify(holds, what):
    """Ends the example with an error unless the result is right."""
    if not holds:
        raise SystemExit(f"wrong result: {what}")


def attribute(name, device=0):
    """A device attribute by its name without CU_DEVICE_ATTRIBUTE_."""
    return check(driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), device))


def use(device=0):
    """Makes the primary context of a device current, and returns the context."""
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    return context


def name_of(device=0):
    """The name of the current device."""
    return check(driver.cuDeviceGetName(256, device)).split(b"\0")[0].decode()


def headers():
    """Include options for CUDA's headers; empty where none are installed."""
    from cuda import pathfinder

    options = []
    for library in ("cudart", "cccl"):
        try:
            folder = pathfinder.find_nvidia_header_directory(library)
        except Exception:  # The exception lists all searched locations; the caller has an alternative.
            folder = None
        if folder:
            options.append(f"--include-path={folder}")
    return options


class Kernels:
    """CUDA C++ compiled for the current device; `kernels["name"](grid, block, *arguments)` launches.

    Arguments are NumPy scalars, whose type is the parameter's, and device pointers.
    """

    def __init__(self, source, options=(), device=0):
        major, minor = attribute("COMPUTE_CAPABILITY_MAJOR", device), attribute("COMPUTE_CAPABILITY_MINOR", device)
        program = check(nvrtc.nvrtcCreateProgram(source.encode(), b"example.cu", 0, [], []))
        options = [f"--gpu-architecture=compute_{major}{minor}", "--std=c++17", *options]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        if status != 0:
            log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program)))
            check(nvrtc.nvrtcGetProgramLog(program, log))
            raise SystemExit(log.decode(errors="replace").rstrip("\0"))
        ptx = bytearray(check(nvrtc.nvrtcGetPTXSize(program)))
        check(nvrtc.nvrtcGetPTX(program, ptx))
        check(nvrtc.nvrtcDestroyProgram(program))
        self.module = check(driver.cuModuleLoadData(bytes(ptx)))

    def function(self, name):
        return check(driver.cuModuleGetFunction(self.module, name.encode()))

    def __getitem__(self, name):
        function = self.function(name)

        def launch(grid, block, *arguments, shared=0, stream=0, cooperative=False):
            grid, block = ((*np.atleast_1d(size).tolist(), 1, 1)[:3] for size in (grid, block))
            shape = (*grid, *block)
            values = [np.asarray(a if isinstance(a, np.generic) else np.uint64(int(a))) for a in arguments]
            parameters = np.array([v.ctypes.data for v in values], np.uint64)
            if cooperative:
                check(driver.cuLaunchCooperativeKernel(function, *shape, shared, stream, parameters))
            else:
                check(driver.cuLaunchKernel(function, *shape, shared, stream, parameters, 0))

        return launch


def upload(array):
    """A device pointer to a copy of the array."""
    array = np.ascontiguousarray(array)
    pointer = check(driver.cuMemAlloc(array.nbytes))
    check(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    return pointer


def download(pointer, like):
    """Device memory at `pointer` as an array of the shape and type of `like`."""
    out = np.empty_like(like)
    check(driver.cuMemcpyDtoH(out.ctypes.data, pointer, out.nbytes))
    return out


def view(pointer, count, dtype):
    """Host-accessible memory as a NumPy array, without a copy."""
    dtype = np.dtype(dtype)
    return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(int(pointer)), dtype)


def write_png(path, rgb):
    """Writes an image of height x width x 3 bytes (PNG specification: signature, IHDR, IDAT, IEND)."""
    height, width, _ = rgb.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Each row begins with its filter type: none.
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(rows, 9)))
        file.write(chunk(b"IEND", b""))


def run(main):
    """Runs an example: prints the device, and ends with 0, with an error, or with SKIPPED and the reason."""
    warnings.filterwarnings("ignore", message=".*CPU device.*", category=RuntimeWarning)
    try:
        (status,) = driver.cuInit(0)
        if status != 0 or check(driver.cuDeviceGetCount()) == 0:
            raise Skip(f"no device: {status!r}")
        print(f"on {name_of()}")
        use()
        main()
        check(driver.cuCtxSynchronize())
    except Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    print("done: the results are right")
