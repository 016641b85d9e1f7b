"""Programs that `nvcc -cudart shared` compiles, on the CPU device's `libcudart.so.13` and `libcudart.so.12`.

The programs are in `cudart/`: each checks its results itself and ends with the line `done`.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from cupyrite.run import FOLDER

from helpers.nvcc import Compiler, exported, lines, nvidias_runtime, run, symbol_table

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler (g++)")]

PROGRAMS = pathlib.Path(__file__).parent / "cudart"
REFUSED = "NVIDIA's CUDA runtime (libcudart) cannot run on the CPU device"
NVIDIA_INSTEAD = "use NVIDIA's libcudart: remove this folder from LD_LIBRARY_PATH"


@pytest.fixture(scope="module")
def build_13(tmp_path_factory):
    return Compiler(13, PROGRAMS, tmp_path_factory.mktemp("cuda13"))


@pytest.fixture(scope="module")
def build_12(tmp_path_factory):
    return Compiler(12, PROGRAMS, tmp_path_factory.mktemp("cuda12"))


@pytest.fixture(params=[13, 12])
def build(request):
    """Compiles files of `cudart/`; returns the path of the program."""
    return request.getfixturevalue(f"build_{request.param}")


def test_a_program_launches_a_kernel_and_prints(build):
    assert lines(run(build("saxpy"))) == ["kernel of 4 blocks", "done"]


@pytest.mark.parametrize("name", ["variables", "functions", "streams", "textures", "graphs", "running"])
def test_program(build, name):
    assert lines(run(build(name))) == ["done"]


def test_the_default_stream_per_thread(build):
    program = build("streams", output="per_thread", options=["--default-stream", "per-thread"])
    assert lines(run(program)) == ["done"]


def test_separate_compilation(build):
    assert lines(run(build("linked_a", "linked_b", options=["-rdc=true"]))) == ["done"]


def test_kernels_that_launch_kernels(build):
    assert lines(run(build("dynamic_parallelism", options=["-rdc=true", "-arch=sm_80"]))) == ["done"]


def test_a_library_with_device_code_is_loaded_again_after_it_was_unloaded(build):
    plugin = build("plugin", output="plugin.so", options=["-shared", "-Xcompiler", "-fPIC"])
    assert lines(run(build("host", options=["-ldl"]), plugin)) == ["done"]


IN_PYTHON = """
import ctypes, sys
import numpy as np
from cuda.core import Device
device = Device(0)
device.set_current()
stream = device.create_stream()
host = np.arange(1000, dtype=np.float32)
buffer = device.allocate(host.nbytes, stream=stream)
stream.sync()
from cuda.bindings import driver
assert driver.cuMemcpyHtoD(int(buffer.handle), host.ctypes.data, host.nbytes)[0] == 0
for path in sys.argv[1:]:
    scale = ctypes.CDLL(path).scale_array
    status = scale(ctypes.c_void_p(int(buffer.handle)), 1000, ctypes.c_float(3), ctypes.c_void_p(int(stream.handle)))
    assert status == 0
stream.sync()
result = np.empty_like(host)
assert driver.cuMemcpyDtoH(result.ctypes.data, int(buffer.handle), host.nbytes)[0] == 0
print((result == 3 ** len(sys.argv[1:]) * host).all())
"""


def test_a_library_works_on_buffers_and_streams_of_python(build):
    """One device serves the library's runtime and `cuda.core`."""
    plugin = build("plugin", output="in_python.so", options=["-shared", "-Xcompiler", "-fPIC"])
    assert lines(run("-c", IN_PYTHON, plugin)) == ["True"]


def test_libraries_of_both_majors_share_a_device(build_12, build_13):
    options = ["-shared", "-Xcompiler", "-fPIC"]
    plugins = [build("plugin", output="both.so", options=options) for build in (build_12, build_13)]
    assert lines(run("-c", IN_PYTHON, *plugins)) == ["True"]
    host = build_13("host", output="host_of_12", options=["-ldl"])
    assert lines(run(host, plugins[0])) == ["done"]


def test_functions_and_structures_of_cuda_12(build_12):
    assert lines(run(build_12("cuda12"))) == ["done"]


def test_two_devices(build):
    assert lines(run(build("devices"), CUPYRITE_CPU_DEVICES="2")) == ["done"]


def test_thrust_and_cub(build):
    assert lines(run(build("algorithms", options=["-arch=sm_80"]))) == ["done"]


def test_uncompressed_device_code(build):
    assert lines(run(build("saxpy", output="plain", options=["--no-compress"])))[-1] == "done"


def test_machine_code_without_ptx_is_an_error_with_a_reason_in_the_log(build):
    program = build("saxpy", output="machine_code", options=["-gencode", "arch=compute_80,code=sm_80"])
    done = run(program, CUDA_LOG_FILE="stderr")
    assert done.returncode == 1 and "cudaErrorNoKernelImageForDevice" in done.stdout
    assert "code=compute_XX" in done.stderr


def test_symbols_have_nvidias_version(build):
    """The program runs with either library."""
    needed = subprocess.run(["readelf", "-V", "-d", build("saxpy")], capture_output=True, text=True).stdout
    name = f"libcudart.so.{build.major}"
    assert f"[{name}]" in needed and f"Name: {name}" in needed


def test_nvidias_static_runtime_is_refused_with_the_remedy(build):
    done = run(build("saxpy", output="static", cudart="static"))
    assert done.returncode == 1 and done.stderr.count(REFUSED) == 1 and "-cudart shared" in done.stderr


def test_the_gpu_needs_nvidias_runtime(build):
    environment = {**os.environ, "LD_LIBRARY_PATH": FOLDER, "CUPYRITE_DEVICE": "GPU"}
    done = subprocess.run([build("saxpy")], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and NVIDIA_INSTEAD in done.stderr and "CUPYRITE_DEVICE=gpu" in done.stderr
    assert "line " in done.stdout


DRIVER = r"""
int cuInit(unsigned flags) { return 0; }
"""
BESIDE = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
runtime = ctypes.CDLL(sys.argv[2])
count = ctypes.c_int()
print(runtime.cudaGetDeviceCount(ctypes.byref(count)))
runtime.cudaGetErrorString.restype = ctypes.c_char_p
print(len(runtime.cudaGetErrorString(35)) > 0)
"""


@pytest.mark.parametrize("major", [13, 12])
def test_another_driver_in_the_process_needs_nvidias_runtime(major, tmp_path):
    source, driver = tmp_path / "driver.c", tmp_path / "libcuda.so.1"
    source.write_text(DRIVER)
    words = ["g++", "-x", "c", str(source), "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(driver)]
    subprocess.run(words, check=True)
    command = [sys.executable, "-c", BESIDE, str(driver), os.path.join(FOLDER, f"libcudart.so.{major}")]
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["35", "True"], done.stderr
    assert NVIDIA_INSTEAD in done.stderr and "the process has loaded NVIDIA's driver" in done.stderr


@pytest.mark.parametrize("major", [13, 12])
def test_the_library_exports_what_nvidias_exports(major):
    """Apart from functions that no header declares."""
    undeclared = {"__cudaGetProcAddress", "__cudaRegisterHostVar", "__cudaRegisterUnifiedTable"}
    path = nvidias_runtime(major)
    theirs = {name for name in exported(path) if not name.startswith("cudaSubgrid")} - undeclared
    assert len(theirs) > 400 and exported(pathlib.Path(FOLDER) / path.name) == theirs


@pytest.mark.parametrize("major", [13, 12])
def test_ctypes_and_the_bindings_share_the_device(major):
    code = """
import ctypes, sys
from cuda.bindings import driver, runtime
c, address = ctypes.CDLL(f"libcudart.so.{sys.argv[1]}"), ctypes.c_uint64()
assert c.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(64)) == 0
assert runtime.cudaMemset(address.value, 1, 64)[0] == 0
assert driver.cuMemFree(address.value)[0] == 0
version = ctypes.c_int()
assert c.cudaRuntimeGetVersion(ctypes.byref(version)) == 0
print(version.value // 1000)
"""
    assert lines(run("-c", code, str(major))) == [str(major)]


def test_the_library_is_found_through_its_folder_only():
    code = """
import ctypes
from cuda.bindings import runtime
assert runtime.cudaFree(0)[0] == 0
try:
    print(hasattr(ctypes.CDLL("libcudart.so.13"), "cupyrite_cpu_device"))
except OSError:
    print(False)
"""
    environment = {**os.environ, "LD_LIBRARY_PATH": "", "CUPYRITE_DEVICE": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert lines(done) == ["False"]
    assert "cupyrite_cpu_device" in symbol_table(pathlib.Path(FOLDER) / "libcudart.so.13")
