"""The stubs agree with the runtime modules (stubtest); Python modules without a stub, and programs, pass mypy --strict."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import cuda.bindings
import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")

HERE = pathlib.Path(__file__).parent

MODULES = ["driver", "runtime", "nvrtc", "nvjitlink", "nvvm", "nvfatbin", "nvml", "cufile", "cudla"]
MODULES += ["_v2.driver", "_v2.nvrtc", "_v2.runtime"]

#: Python modules that strict checks leave out: an internal one without annotations, and one that raises.
NOT_STRICT = ("cuda.core._html", "cuda.core.experimental")

GOOD = """
from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings import driver, nvrtc, runtime


def check(status: driver.CUresult) -> None:
    if status != driver.CUresult.CUDA_SUCCESS:
        _, name = driver.cuGetErrorName(status)
        raise RuntimeError(name.decode())


def compile_ptx(source: bytes) -> bytes:
    err, prog = nvrtc.nvrtcCreateProgram(source, b"k.cu", 0, None, None)
    options = [b"--gpu-architecture=compute_90"]
    (err,) = nvrtc.nvrtcCompileProgram(prog, len(options), options)
    if err is not nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(err.name)
    err, size = nvrtc.nvrtcGetPTXSize(prog)
    ptx = b" " * size
    (err,) = nvrtc.nvrtcGetPTX(prog, ptx)
    return ptx


def main() -> None:
    (st,) = driver.cuInit(0)
    check(st)
    st, dev = driver.cuDeviceGet(0)
    st, name = driver.cuDeviceGetName(100, dev)
    st, major = driver.cuDeviceGetAttribute(
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev
    )
    print(name.decode(), major + 1)
    st, ctx = driver.cuCtxCreate(None, 0, dev)
    st, ctx = driver.cuCtxCreate(0, dev)
    st, module = driver.cuModuleLoadData(compile_ptx(b""))
    st, kernel = driver.cuModuleGetFunction(module, b"saxpy")
    st, ptr = driver.cuMemAlloc(1024)
    st, stream = driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
    (st,) = driver.cuMemcpyHtoDAsync(ptr, b"data", 4, stream)
    args: tuple[tuple[Any, ...], tuple[Any, ...]] = ((ptr, 4), (None, ctypes.c_int))
    (st,) = driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, args, 0)
    m = driver.CUDA_MEMCPY2D()
    m.dstDevice = ptr
    m.dstDevice = int(ptr) + 4
    m.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    m.srcHost = b"abc"
    (st,) = driver.cuMemcpy2D(m)
    config = driver.CUlaunchConfig()
    attr = driver.CUlaunchAttribute()
    attr.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    attr.value.cooperative = 1
    config.attrs = [attr]
    config.numAttrs = len(config.attrs)
    config.hStream = stream
    # Functions of the runtime take handles of the driver.
    (done,) = runtime.cudaStreamSynchronize(stream)
    st, graph = driver.cuGraphCreate(0)
    st, node = driver.cuGraphAddEmptyNode(graph, None, 0)
    done, following = runtime.cudaGraphAddEmptyNode(graph, [node], 1)
    st, last = driver.cuGraphAddEmptyNode(graph, [node, following], 2)
    names = [r.name for r in driver.CUresult]
    print(names, len(driver.CUresult), int(stream), stream.getPtr(), driver.sizeof(driver.CUstream))


main()
"""

GOOD_PATHFINDER = """
from __future__ import annotations

import dataclasses
from typing import assert_type

from cuda import pathfinder


def main() -> None:
    loaded = pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert_type(loaded, pathfinder.LoadedDL)
    assert_type(loaded.abs_path, str | None)
    assert_type(pathfinder.find_nvidia_binary_utility(utility_name="nvcc"), str | None)
    assert_type(pathfinder.find_static_lib("cudadevrt"), str)
    assert_type(pathfinder.get_cuda_path_or_home(), str | None)
    assert_type(pathfinder.locate_nvidia_header_directory("cccl"), pathfinder.LocatedHeaderDir | None)
    hits: int = pathfinder.find_bitcode_lib.cache_info().hits
    pathfinder.load_nvidia_dynamic_lib.cache_clear()
    static = dataclasses.replace(pathfinder.locate_static_lib("cudadevrt"), found_via="conda")
    try:
        pathfinder.find_bitcode_lib("device")
    except pathfinder.BitcodeLibNotFoundError as error:
        print(error, hits, static.filename, {static: loaded})
    for name, header in pathfinder.SUPPORTED_HEADERS_CTK.items():
        print(name.upper(), header.upper())


main()
"""

BAD_PATHFINDER = """
from cuda import pathfinder
pathfinder.load_nvidia_dynamic_lib(b"nvrtc")
pathfinder.load_nvidia_dynamic_lib(name="nvrtc")
pathfinder.find_nvidia_binary_utility("nvcc").upper()
pathfinder.locate_static_lib("cudadevrt").name = "x"
pathfinder.get_cuda_path_or_home("x")
pathfinder.nothing
"""

GOOD_RAISING = """
from __future__ import annotations

import os

from cuda.bindings import cudla, cufile, nvfatbin, nvjitlink, nvml, nvvm


def link(images: list[bytes]) -> bytes:
    options = ["-arch=sm_90"]
    handle = nvjitlink.create(len(options), options)
    try:
        for image in images:
            nvjitlink.add_data(handle, nvjitlink.InputType.CUBIN, image, len(image), "image")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
    except nvjitlink.nvJitLinkError as e:
        raise RuntimeError(e.log, e.status) from e
    finally:
        nvjitlink.destroy(handle)
    return bytes(cubin)


def own_memory(device: int) -> int:
    total = 0
    for process in nvml.device_get_compute_running_processes_v3(device):
        if process.pid == os.getpid():
            total += process.used_gpu_memory
    return total


def watch() -> None:
    nvml.init_v2()
    try:
        device = nvml.device_get_handle_by_index_v2(0)
    except nvml.NotFoundError:
        return
    except nvml.NvmlError as e:
        print(nvml.Return(e.status).name)
        return
    print(nvml.device_get_name(device).upper(), nvml.device_get_pci_info_v3(device).bus_id.lower())
    low, high = nvml.device_get_min_max_clock_of_p_state(device, nvml.ClockType.SM, nvml.Pstates.PSTATE_0)
    free: float = nvml.device_get_memory_info_v2(device).free / 2**30
    print(low + high, free, own_memory(device), nvml.ClockType.GRAPHICS is nvml.ClockType.CLOCK_GRAPHICS)
    report = nvml.device_get_conf_compute_gpu_attestation_report(device, bytes(32))
    print(report.attestation_report.tobytes(), len(report.nonce), nvml.pci_info_dtype.itemsize)
    processes = nvml.ProcessInfo(4)
    processes.pid = [1, 2, 3, 4]
    processes[0].pid = 5
    print(len(processes[1:3]), processes["pid"].sum(), memoryview(processes).nbytes)
    print(nvml.ProcessInfo.from_ptr(processes.ptr, 4, owner=processes) == processes)
    clocks = nvml.device_get_supported_memory_clocks(device)
    print(max(clocks.tolist()), clocks[0] + 1, len(clocks[1:]))


def read(descriptor: int, address: int, size: int) -> int:
    d = cufile.Descr()
    d.type = cufile.FileHandleType.OPAQUE_FD
    try:
        return cufile.read(cufile.handle_register(d), address, size, 0, 0)
    except cufile.cuFileError as e:
        print(e.cuda_error, e.status == cufile.OpError.IO_ERROR)
        raise


task = cudla.Task()
task.wait_events = 0
major, minor = nvfatbin.version()
print(sum(nvvm.ir_version()), major + minor, cudla.Status.Success.name, task.module_handle + 1, read(0, 0, 0), link([b""]))
watch()
"""

BAD_RAISING = """
from cuda.bindings import nvjitlink, nvml
nvjitlink.add_file(1, 2, 3)
nvml.device_get_name("0")
nvml.PciInfo().bus = "a"
nvml.PciInfo().ptr = 1
nvml.Return.NOPE
nvml.NvmlError()
nvml.device_get_memory_info_v2(1).size
"""

GOOD_CORE = """
from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from typing import Any, assert_type

import numpy as np
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    Event,
    EventOptions,
    Host,
    Kernel,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedBuffer,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    Program,
    ProgramOptions,
    Stream,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    launch,
)
from cuda.core.utils import StridedMemoryView, args_viewable_as_strided_memory, copy_batch, prefetch_batch


def compiled(device: Device) -> Kernel:
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    return Program("", "c++", options).compile("cubin").get_kernel("k")


@args_viewable_as_strided_memory((0,))
def elements(array: Any, stream: Stream) -> int:
    view = array.view(stream.handle)
    assert isinstance(view, StridedMemoryView)
    return view.size


class Counting(MemoryResource):
    def __init__(self, below: MemoryResource) -> None:
        self.below = below
        self.count = 0

    def allocate(self, size: int, *, stream: Any = None) -> Buffer:
        self.count += 1
        return self.below.allocate(size, stream=stream)

    def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
        self.below.deallocate(ptr, size, stream=stream)

    @property
    def is_device_accessible(self) -> bool:
        return self.below.is_device_accessible

    @property
    def is_host_accessible(self) -> bool:
        return self.below.is_host_accessible

    @property
    def device_id(self) -> int:
        return self.below.device_id


def shared(device: Device, stream: Stream) -> None:
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(ipc_enabled=True))
    buffer = pool.allocate(64, stream=stream)
    event = stream.record(options=EventOptions(ipc_enabled=True))
    child = multiprocessing.Process(target=print, args=(pool, buffer, event))
    child.start()
    mapped = DeviceMemoryResource.from_allocation_handle(device, pool.allocation_handle)
    again = Buffer.from_ipc_descriptor(mapped, buffer.ipc_descriptor, stream=stream)
    print(again.is_mapped, Event.from_ipc_descriptor(event.ipc_descriptor).is_done)


def main() -> None:
    device = Device()
    device.set_current()
    stream = device.create_stream()
    pinned: MemoryResource = PinnedMemoryResource(PinnedMemoryResourceOptions(max_size=1 << 20))
    managed = ManagedMemoryResource()
    resources: Sequence[MemoryResource] = [pinned, managed, LegacyPinnedMemoryResource(), Counting(pinned)]
    buffers = [resource.allocate(64, stream=stream) for resource in resources]
    moved = managed.allocate(64, stream=stream)
    assert isinstance(moved, ManagedBuffer)
    moved.read_mostly = True
    moved.preferred_location = Host()
    moved.prefetch(device, stream=stream)
    prefetch_batch(stream, [moved], [device])
    copy_batch(stream, buffers[:1], buffers[1:2])
    grown = VirtualMemoryResource(device, VirtualMemoryResourceOptions(granularity="minimum"))
    large = grown.modify_allocation(grown.allocate(100), 200)
    assert_type(large, Buffer)
    view = StridedMemoryView.from_buffer(buffers[0], (4, 4), (1, 4), dtype=np.dtype(np.float32))
    assert_type(view.shape, tuple[int, ...])
    print(view.is_device_accessible, elements(np.zeros(3), stream), memoryview(buffers[0]).nbytes)
    with device.create_stream() as other:
        launch(other, LaunchConfig(grid=1, block=(32, 2)), compiled(device), buffers[0], np.float32(1), 3)
    part = buffers[0][8:16]
    part.close(stream)
    shared(device, stream)


main()
"""

GOOD_SYSTEM = """
from typing import assert_type

from cuda.core import Device, system
from cuda.core.system.typing import AddressingMode, ClocksEventReasons, GpuTopologyLevel

device = system.Device(index=0)
assert_type(device.index, int)
assert_type(device.name, str)
assert_type(device.cuda_compute_capability, tuple[int, int])
assert_type(device.current_clock_event_reasons, list[ClocksEventReasons])
assert_type(device.addressing_mode, AddressingMode | None)
assert_type(device.performance_state, int | None)
assert_type(device.memory_info.used, int)
assert_type(device.pci_info.bus_id, str)
assert_type(device.repair_status.tpc_repair_pending, bool)
assert_type(device.get_clock("sm").get_max_mhz(), int)
assert_type([link.state for link in device.get_nvlinks()], list[bool])
assert_type(device.to_cuda_device(), Device)
assert_type(system.get_topology_common_ancestor(device, device), GpuTopologyLevel)
assert_type(system.register_events("bind").wait(1)[0].gpu_id, int)
device.is_persistence_mode_enabled = True
device.get_fan(0).speed = 50
"""

BAD_SYSTEM = """
from cuda.core import system
device = system.Device(0)
device.index = 3
device.memory_info.used = 3
device.nothing
device.get_clock(1)
device.get_fan(0).speed = "fast"
device.name + 1
"""

BAD_CORE = """
from cuda.core import Buffer, Device, DeviceMemoryResource, LaunchConfig, ManagedMemoryResource, launch
from cuda.core.utils import StridedMemoryView, copy_batch
device = Device("0")
Buffer.from_handle("address", 4)
DeviceMemoryResource(device).allocate("4")
DeviceMemoryResource(device).attributes.nothing
ManagedMemoryResource().allocate(4, stream=device.create_stream()).size = 3
copy_batch(device.create_stream(), 3, 4)
StridedMemoryView.from_buffer(3, (4,))
LaunchConfig(grid="x", block=1)
device.allocate(4).nothing
"""

BAD = """
from cuda.bindings import driver
driver.cuMemAlloc("a")
driver.cuStreamSynchronize("x")
config = driver.CUlaunchConfig()
config.hStream = "a"
config.foo = 1
config.attrs = [1]
driver.CUresult.NOPE
driver.cuNoSuchFunction()
driver.cuGraphAddEmptyNode(None, [1], 1)
driver.cuLibraryLoadData(b"", [1], [1], 1, None, None, 0)
"""


def mypy(module, *args):
    env = dict(os.environ)
    root = pathlib.Path(cuda.bindings.__file__).resolve().parents[2]
    if "site-packages" not in root.parts:
        env["MYPYPATH"] = str(root)
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, args)], capture_output=True, text=True, env=env, check=False
    )


def test_stubs_match_the_runtime_modules():
    done = mypy(
        "mypy.stubtest",
        "--allowlist",
        HERE / "stubtest-allowlist.txt",
        *(f"cuda.bindings.{name}" for name in MODULES),
        "cuda.bindings._internal._fast_enum",
        "cuda.pathfinder",
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


#: Typed modules outside of `cuda`. Dask's functions have no types, and so `cupyrite.dask` cannot be among them.
TYPED = (
    "cupyrite.ipc_transfer",
    "cupyrite.nccl_double",
    "cupyrite.program_caches",
    "cupyrite.ray",
    "cupyrite.serialization",
)


def python_modules():
    """Names of the modules of cuda.core and cuda.pathfinder whose types are annotations in their source."""
    names = []
    for package in ("core", "pathfinder"):
        home = pathlib.Path(cuda.bindings.__file__).parents[1] / package
        for file in sorted(home.rglob("*.py")):
            parts = file.relative_to(home.parents[1]).with_suffix("").parts
            name = ".".join(parts).removesuffix(".__init__")
            if not file.with_suffix(".pyi").exists() and not name.startswith(NOT_STRICT):
                names.append(name)
    return names


def test_python_modules_pass_strict_mypy(tmp_path):
    names = [*python_modules(), *TYPED]
    assert "cuda.pathfinder" in names and "cuda.core._program_options" in names
    done = mypy("mypy", "--strict", "--cache-dir", tmp_path / "cache", *(f"-m{name}" for name in names))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text",
    [GOOD, GOOD_RAISING, GOOD_PATHFINDER, GOOD_CORE, GOOD_SYSTEM],
    ids=["bindings", "raising", "pathfinder", "core", "system"],
)
def test_correct_program_passes_strict_mypy(tmp_path, text):
    program = tmp_path / "program.py"
    program.write_text(text)
    done = mypy("mypy", "--strict", "--cache-dir", tmp_path / "cache", program)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text, wrong",
    [
        (BAD, {3, 4, 6, 7, 8, 9, 10, 11, 12}),
        (BAD_RAISING, {3, 4, 5, 6, 7, 8, 9}),
        (BAD_PATHFINDER, {3, 4, 5, 6, 7, 8}),
        (BAD_CORE, {4, 5, 6, 7, 8, 9, 10, 11, 12}),
        (BAD_SYSTEM, {3, 4, 5, 6, 7, 8, 9}),
    ],
    ids=["bindings", "raising", "pathfinder", "core", "system"],
)
def test_type_errors_are_reported(tmp_path, text, wrong):
    program = tmp_path / "program.py"
    program.write_text(text)
    done = mypy("mypy", "--strict", "--cache-dir", tmp_path / "cache", program)
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert lines == wrong, done.stdout + done.stderr
