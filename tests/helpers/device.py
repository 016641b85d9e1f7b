"""Compiling, arrays on the device, launching. Uses only cuda.bindings and runs on both devices."""

import ctypes
import os
import pathlib
import re

import numpy as np
from cuda.bindings import driver, nvrtc
from cuda.pathfinder import find_static_lib

from helpers import TESTS

KERNELS = TESTS / "kernels"


def check(result):
    """The outputs of a call: None, one value or a tuple. A status other than success raises."""
    status, *outputs = result
    if int(status) != 0:
        raise RuntimeError(f"{status!r}")
    return None if not outputs else outputs[0] if len(outputs) == 1 else tuple(outputs)


def on_cpu_device():
    """Whether the CPU device serves this process."""
    check(driver.cuInit(0))
    return check(driver.cuDeviceGetName(256, check(driver.cuDeviceGet(0)))).startswith(b"CPU")


def compute_capability(device=0):
    """(major, minor) of a device."""
    dev = check(driver.cuDeviceGet(device))
    names = driver.CUdevice_attribute
    return tuple(
        check(driver.cuDeviceGetAttribute(a, dev))
        for a in (
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )


def include_options():
    """Include options for the toolkit's headers."""
    import site
    import sysconfig

    roots = [*site.getsitepackages(), sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    found = [p for r in roots for p in (pathlib.Path(r) / "nvidia").glob("*/include") if (p / "cuda_fp16.h").exists()]
    found += [pathlib.Path(p) / "include" for p in (os.environ.get("CUDA_PATH"), "/usr/local/cuda") if p]
    options = []
    for path in dict.fromkeys(found):
        if path.is_dir():
            options += [f"--include-path={path}"]
            if (path / "cccl").is_dir():
                options += [f"--include-path={path / 'cccl'}"]
    return options


class CompileError(RuntimeError):
    """Compilation failed; the text is NVRTC's log."""


def compile_cuda(source, names=(), options=(), kind="ptx", arch=None, name="test.cu"):
    """(code, {name expression: lowered name}) of CUDA C++ source; `kind` is ptx or cubin."""
    if arch is None:
        major, minor = compute_capability()
        arch = f"{major}{minor}"
    prefix = "compute" if kind == "ptx" else "sm"
    options = [f"--gpu-architecture={prefix}_{arch}", "--std=c++17", *options]
    program = check(nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], []))
    try:
        for expression in names:
            check(nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        if int(status) != 0:
            log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program)))
            check(nvrtc.nvrtcGetProgramLog(program, log))
            raise CompileError(log.decode().rstrip("\0"))
        size, get = {
            "ptx": (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
            "cubin": (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN),
        }[kind]
        code = bytearray(check(size(program)))
        check(get(program, code))
        lowered = {e: check(nvrtc.nvrtcGetLoweredName(program, e.encode())) for e in names}
        return bytes(code), lowered
    finally:
        check(nvrtc.nvrtcDestroyProgram(program))


def load_with_device_runtime(source):
    """A module whose kernels launch kernels. A GPU needs the static library of the device runtime; the CPU device has it built in."""
    if on_cpu_device():
        return Module.from_source(source, options=["-rdc=true"], kind="ptx")
    code, _ = compile_cuda(source, options=["-rdc=true"], kind="cubin")
    kinds = driver.CUjitInputType
    state = check(driver.cuLinkCreate(0, [], []))
    try:
        check(driver.cuLinkAddData(state, kinds.CU_JIT_INPUT_CUBIN, code, len(code), b"test", 0, [], []))
        library = find_static_lib("cudadevrt").encode()
        check(driver.cuLinkAddFile(state, kinds.CU_JIT_INPUT_LIBRARY, library, 0, [], []))
        linked, size = check(driver.cuLinkComplete(state))
        return Module(ctypes.string_at(int(linked), size))
    finally:
        check(driver.cuLinkDestroy(state))


class Module:
    """A loaded module; `module["kernel"]` is a function that launches."""

    def __init__(self, code, lowered=None):
        self.handle = check(driver.cuModuleLoadData(code))
        self.lowered = lowered or {}
        self.functions = {}

    @classmethod
    def from_source(cls, source, names=(), options=(), kind="cubin"):
        return cls(*compile_cuda(source, names, options, kind))

    @classmethod
    def from_file(cls, name, names=(), options=(), kind="cubin"):
        source = (KERNELS / name).read_text()
        if "#include" in source:
            options = [*options, *include_options()]
        return cls.from_source(source, names, options, kind)

    def function(self, name):
        if name not in self.functions:
            lowered = self.lowered.get(name, name.encode())
            self.functions[name] = check(driver.cuModuleGetFunction(self.handle, lowered))
        return self.functions[name]

    def symbol(self, name):
        """(address, size) of a module-scope variable."""
        return check(driver.cuModuleGetGlobal(self.handle, name.encode()))

    def launch(self, name, grid, block, *args, shared=0, stream=0, cooperative=False):
        """Queues the kernel; arguments are device arrays, NumPy scalars (dtype = parameter type) or structured values."""
        grid, block = ((*tuple(np.atleast_1d(s).tolist()), 1, 1) for s in (grid, block))
        values = [np.asarray(a.address, np.uint64) if isinstance(a, DeviceArray) else np.asarray(a) for a in args]
        params = np.array([v.ctypes.data for v in values], np.uint64)
        shape = (*grid[:3], *block[:3], shared, stream)
        if cooperative:
            check(driver.cuLaunchCooperativeKernel(self.function(name), *shape, params))
        else:
            check(driver.cuLaunchKernel(self.function(name), *shape, params, 0))

    def unload(self):
        check(driver.cuModuleUnload(self.handle))


class DeviceArray:
    """A NumPy array with a copy in device memory."""

    def __init__(self, array):
        self.host = np.ascontiguousarray(array)
        self.pointer = check(driver.cuMemAlloc(max(self.host.nbytes, 1)))
        self.address = int(self.pointer)
        self.set(self.host)

    def set(self, array):
        array = np.ascontiguousarray(array, self.host.dtype)
        if array.nbytes:
            check(driver.cuMemcpyHtoD(self.pointer, array.ctypes.data, array.nbytes))
            # A copy from pageable memory may return before the data arrives, and other streams do not wait for it.
            check(driver.cuStreamSynchronize(0))

    def get(self):
        out = np.empty_like(self.host)
        if out.nbytes:
            check(driver.cuMemcpyDtoH(out.ctypes.data, self.pointer, out.nbytes))
        return out

    def free(self):
        check(driver.cuMemFree(self.pointer))


def synchronize():
    check(driver.cuCtxSynchronize())


def callback(function):
    """(ctypes function pointer of `void (void *)`, its address). The caller keeps the pointer alive."""
    pointer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
    return pointer, ctypes.cast(pointer, ctypes.c_void_p).value


def label(value):
    """A parameter's part of the test id: its repr without addresses, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:50]
