"""The CPU device as a shared library: one in a process, as `libcuda.so.1` and `libnvidia-ml.so.1` for others, its errors."""

import os
import pathlib
import shutil
import subprocess
import sys

import cupyrite
import pytest
from cupyrite.run import FILES, FOLDER

pytestmark = pytest.mark.cpu
LIBRARY = "libcupyrite_cpu_device.so"

# The driver and NVML in C, with declarations of its own: the toolkit's headers may be missing.
C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <dlfcn.h>
typedef int CUdevice; typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream; typedef unsigned long long CUdeviceptr;
#ifdef __cplusplus
extern "C" {
#endif
int cuInit(unsigned); int cuDeviceGet(CUdevice *, int); int cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
int cuModuleLoadData(CUmodule *, const void *); int cuModuleGetFunction(CUfunction *, CUmodule, const char *);
int cuMemAlloc_v2(CUdeviceptr *, size_t); int cuMemFree_v2(CUdeviceptr); int cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
int cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
int cuGetExportTable(const void **, const void *);
int nvmlInit_v2(void); int nvmlDeviceGetCount_v2(unsigned *); int nvmlShutdown(void);
#ifdef __cplusplus
}
#endif
static const char *ptx = ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry squares(.param .u64 p) {\n.reg .b64 %rd<4>; .reg .b32 %r<4>;\n"
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, %r1;\n"
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2; ret; }\n";
#define CHECK(call) do { int s = (call); if (s) { printf("%s: %d\n", #call, s); exit(1); } } while (0)
int main(void) {
    CUdevice device; CUcontext context; CUmodule module; CUfunction squares; CUdeviceptr out; int values[8];
    CHECK(cuInit(0)); CHECK(cuDeviceGet(&device, 0)); CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoadData(&module, ptx)); CHECK(cuModuleGetFunction(&squares, module, "squares"));
    CHECK(cuMemAlloc_v2(&out, sizeof values));
    void *arguments[] = {&out};
    CHECK(cuLaunchKernel(squares, 1, 1, 1, 8, 1, 1, 0, 0, arguments, 0));
    CHECK(cuMemcpyDtoH_v2(values, out, sizeof values)); CHECK(cuMemFree_v2(out));
    unsigned devices = 0;
    CHECK(nvmlInit_v2()); CHECK(nvmlDeviceGetCount_v2(&devices)); CHECK(nvmlShutdown());
    char id[16] = {0}; const void *table;
    printf("%d %d, %u devices, export table %d\n", values[3], values[7], devices, cuGetExportTable(&table, id));
    return 0;
}
"""


def python(code, *words, folder=None, **variables):
    """Runs code in a fresh interpreter; `folder` has the package to import instead of this one."""
    environment = {**os.environ, **variables}
    if folder is not None:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *words, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )


def answer(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path):
    """A folder with a copy of the package `cupyrite`, whose libraries a test may damage."""
    source = pathlib.Path(cupyrite.__file__).parent
    target = tmp_path / "site" / "cupyrite"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "_stand_ins"))
    return target


INIT = "from cuda.bindings import driver; print(driver.cuInit(0)[0].name)"
MAPPED = "print('libcupyrite_cpu_device' in open('/proc/self/maps').read())"


def test_the_package_has_the_libraries():
    assert set(FILES) <= set(os.listdir(FOLDER))


def test_import_loads_no_device():
    assert answer(python("import cuda.core, cuda.bindings.driver, cuda.bindings.nvml;" + MAPPED)) == "False"
    assert answer(python(INIT + ";" + MAPPED)).split() == ["CUDA_SUCCESS", "True"]


def test_a_process_that_uses_the_device_does_not_offer_it_as_the_driver():
    """Others would find it by accident: `libcuda.so.1` is found in LD_LIBRARY_PATH only."""
    code = """
import ctypes
from cuda.bindings import driver, nvml
assert driver.cuInit(0)[0] == 0
nvml.init_v2()
for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
    try:
        found = ctypes.CDLL(name)
    except OSError:
        print("not found")
    else:
        print(hasattr(found, "cupyrite_cpu_device"))
"""
    variables = {"LD_LIBRARY_PATH": "", "CUPYRITE_DEVICE": "cpu"}
    assert set(answer(python(code, **variables)).splitlines()) <= {"not found", "False"}


SHARED = """
import ctypes
{first}
{second}
from cuda.bindings import driver, nvml
def check(result):
    assert result[0] == 0, result
    return result[1] if len(result) > 1 else None
check(driver.cuInit(0))
context = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
address = ctypes.c_uint64()
assert c.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096)) == 0
check(driver.cuMemsetD8(address.value, 7, 4096))
check(driver.cuMemFree(address.value))
ours = check(driver.cuMemAlloc(64))
assert c.cuMemFree_v2(ctypes.c_uint64(int(ours))) == 0
ml = ctypes.CDLL("libnvidia-ml.so.1")
assert ml.nvmlInit_v2() == 0
nvml.init_v2()
count = ctypes.c_uint()
assert ml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
assert count.value == nvml.device_get_count_v2() == 3
with open("/proc/self/maps") as maps:
    print(len({{line.split()[-1] for line in maps if "libcupyrite_cpu_device" in line}}))
"""
CDLL = 'c = ctypes.CDLL("libcuda.so.1")'
USE = "import cuda.bindings.driver as d; assert d.cuInit(0)[0] == 0"


@pytest.mark.parametrize("order", [(CDLL, USE), (USE, CDLL)], ids=["ctypes first", "bindings first"])
@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_one_device_serves_ctypes_and_the_bindings(order, device):
    """Also where only the folder is in LD_LIBRARY_PATH: its `libcuda.so.1` counts as the CPU device."""
    code = SHARED.format(first=order[0], second=order[1])
    done = python(code, LD_LIBRARY_PATH=FOLDER, CUPYRITE_DEVICE=device, CUPYRITE_CPU_DEVICES="3")
    assert answer(done) == "1" and "RuntimeWarning" not in done.stderr


def test_a_cubin_has_its_ptx_where_only_the_path_is_set():
    code = """
from cuda.core import Device, Program, ObjectCode
Device().set_current()
cubin = Program('extern "C" __global__ void f(int *x) { *x = 1; }', "c++").compile("cubin")
print(cubin.get_kernel("f") is not None, __import__("cupyrite._native")._native.device_reason())
"""
    said = answer(python(code, LD_LIBRARY_PATH=FOLDER, CUPYRITE_DEVICE="auto"))
    assert said.startswith("True libcuda.so.1 is Cupyrite's CPU device (") and FOLDER in said


def test_the_gpu_is_not_the_cpu_device():
    done = python(INIT, LD_LIBRARY_PATH=FOLDER, CUPYRITE_DEVICE="gpu")
    assert done.returncode == 1 and "is Cupyrite's CPU device" in done.stderr and "LD_LIBRARY_PATH" in done.stderr


def test_two_installations_have_one_device(package):
    """The one that is already loaded as the driver is used."""
    code = SHARED.format(first=CDLL, second=USE)
    other = str(package / "lib" / "cpu")
    done = python(code, LD_LIBRARY_PATH=other, CUPYRITE_DEVICE="cpu", CUPYRITE_CPU_DEVICES="3")
    assert answer(done) == "1"


@pytest.mark.parametrize("damage", ["missing", "empty", "another library", "another build"])
def test_a_damaged_installation_is_named(package, damage):
    library = package / "lib" / "cpu" / LIBRARY
    expected = "does not exist"
    if damage == "missing":
        library.unlink()
    elif damage == "empty":
        library.write_bytes(b"")
        expected = "file too short"
    elif damage == "another library":
        library.write_bytes(pathlib.Path(library.parent / "libcuda.so.1").read_bytes())
        # libcuda.so.1 finds itself under that name.
        expected = "cannot load the CPU device"
    else:
        data = library.read_bytes()
        # The build is the version, a hyphen and the hash of the interface.
        build = other_build(data)
        library.write_bytes(data.replace(build, b"9" + build[1:]))
        expected = "another build of Cupyrite"
    done = python(INIT, folder=package.parent, CUPYRITE_DEVICE="cpu")
    assert done.returncode == 1, done.stdout
    assert expected in done.stderr and str(library) in done.stderr, done.stderr
    assert "pip install --force-reinstall --no-deps cupyrite" in done.stderr
    if damage == "missing":
        # The import needs no device.
        assert python("import cuda.core, cuda.bindings.driver", folder=package.parent).returncode == 0
        # What loads the driver's name is told as well, and gets an error instead of a crash.
        code = 'import ctypes; print(ctypes.CDLL("libcuda.so.1").cuInit(0), ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2())'
        done = python(code, LD_LIBRARY_PATH=str(library.parent))
        assert answer(done) == "303 12" and str(library) in done.stderr


def other_build(data):
    """The build in a library's bytes."""
    import re

    found = set(re.findall(rb"\d+\.\d+\.\d+-[0-9a-f]{16}(?=\0)", data))
    assert len(found) == 1, found
    return found.pop()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("language", ["c", "c++"])
def test_programs_that_link_with_the_driver(language, tmp_path):
    """And that log that there is no export table (CUDA_LOG_FILE)."""
    source, program = tmp_path / f"squares.{language[0]}", tmp_path / "squares"
    source.write_text(C)
    compiler = ["cc", "-x", language]
    words = [*compiler, source, "-o", program, "-L", FOLDER, "-lcuda", "-lnvidia-ml"]
    built = subprocess.run(words, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True).stdout
    assert "[libcuda.so.1]" in needed and "[libnvidia-ml.so.1]" in needed, needed
    run = [sys.executable, "-m", "cupyrite", "run", "--device", "cpu", str(program)]
    environment = {**os.environ, "CUDA_LOG_FILE": "stderr"}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120)
    assert answer(done) == "9 49, 1 devices, export table 801"
    assert "private function tables" in done.stderr


RUNTIME_NEEDS_GPU = "NVIDIA's CUDA runtime (libcudart) cannot run on the CPU device"
TABLES = """
import ctypes
c, table = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
for id in "da9151d33ae6cc41a5c04f26d533e328", "6bd5fb6c5bf4e74a8987d93912fd9df9", "6bd5fb6c5bf4e74a8987d93912fd9df9":
    print(c.cuGetExportTable(ctypes.byref(table), bytes.fromhex(id)))
print(c.cuGetExportTable(ctypes.byref(table), None))
"""


@pytest.mark.parametrize("log", ["", "file", "stderr"])
def test_the_table_of_the_runtime_is_refused_once_on_standard_error(log, tmp_path):
    """Not that of NVRTC and nvJitLink. The log has each call, and is not repeated where it goes to standard error."""
    log = str(tmp_path / "log") if log == "file" else log
    done = python(TABLES, LD_LIBRARY_PATH=str(FOLDER), CUDA_LOG_FILE=log)
    assert answer(done).split() == ["801"] * 4
    shown = 2 if log == "stderr" else 1
    assert done.stderr.count(RUNTIME_NEEDS_GPU) == shown, done.stderr
    assert "CUPYRITE_DEVICE=gpu" in done.stderr and "cupyrite explain clients" in done.stderr
    if log != "stderr":
        assert len(done.stderr.splitlines()) == 1, done.stderr
    if log and log != "stderr":
        logged = pathlib.Path(log).read_text()
        assert logged.count(RUNTIME_NEEDS_GPU) == 2 and logged.count("cuGetExportTable returned") == 4


def test_nvidias_runtime_is_refused_once_on_standard_error():
    found = python("from cuda.pathfinder import load_nvidia_dynamic_lib as load; print(load('cudart').abs_path)")
    if found.returncode != 0:
        pytest.skip("needs libcudart")
    code = """
import ctypes, sys
runtime, pointer = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
print([runtime.cudaMalloc(ctypes.byref(pointer), 64) for _ in range(3)])
"""
    run = [sys.executable, "-m", "cupyrite", "run", "--device", "cpu", "-c", code, answer(found)]
    environment = {**os.environ, "CUDA_LOG_FILE": ""}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120)
    assert answer(done) == "[801, 801, 801]"
    assert done.stderr.count(RUNTIME_NEEDS_GPU) == len(done.stderr.splitlines()) == 1, done.stderr


def test_compilers_and_the_runtime_module_print_nothing():
    """NVRTC and nvJitLink ask for export tables too, when `libcuda.so.1` is found."""
    code = """
from cuda.bindings import runtime
from cuda.core import Device, Linker, LinkerOptions, Program, ProgramOptions
Device(0).set_current()
source = 'extern "C" __global__ void one(int *p) { *p = 1; }'
lto = Program(source, "c++", ProgramOptions(arch="sm_80", link_time_optimization=True)).compile("ltoir")
print(len(Linker(lto, options=LinkerOptions(arch="sm_80", link_time_optimization=True)).link("cubin").code) > 0)
print(len(Program(source, "c++").compile("cubin").code) > 0, runtime.cudaMalloc(64)[0].name)
"""
    done = python(code, LD_LIBRARY_PATH=str(FOLDER), CUPYRITE_DEVICE="cpu", CUDA_LOG_FILE="")
    assert answer(done).split() == ["True", "True", "cudaSuccess"]
    assert done.stderr == ""


EXIT = """
import ctypes, os, sys, threading, time
import numpy as np
c = ctypes.CDLL("libcuda.so.1")
from cuda.bindings import driver
from helpers.device import Module, check
from helpers.waits import until_blocked
check(driver.cuInit(0))
context = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
module = Module.from_source('extern "C" __global__ void forever(volatile int *x) { while (*x == 0) ; }', kind="ptx")
flag = check(driver.cuMemAlloc(4))
check(driver.cuMemsetD8(flag, 0, 4))
module.launch("forever", 1, 1, np.uint64(int(flag)))
HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
ran = []
called = HOST(lambda data: ran.append(data))
stream = ctypes.c_void_p()
assert c.cuStreamCreate(ctypes.byref(stream), 1) == 0
assert c.cuLaunchHostFunc(stream, called, None) == 0
assert c.cuStreamSynchronize(stream) == 0 and ran == [None]
waiting = threading.Thread(target=c.cuCtxSynchronize, daemon=True)
waiting.start()
until_blocked(waiting.native_id)
if sys.argv[1:] == ["fork"]:
    child = os.fork()
    if child == 0:
        os._exit(0 if c.cuMemFree_v2(ctypes.c_uint64(int(flag))) == driver.cuCtxSynchronize()[0] == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
print("end")
"""


@pytest.mark.parametrize("words", [[], ["fork"]], ids=["exit", "fork"])
def test_a_process_ends_while_a_kernel_runs_and_threads_wait(words, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(EXIT)
    # Python 3.12 warns when a process with threads forks.
    environment = {**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    environment["PYTHONPATH"] = os.pathsep.join([str(pathlib.Path(__file__).parents[1]), *sys.path])
    run = [sys.executable, "-m", "cupyrite", "run", "--device", "cpu", str(program), *words]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120)
    assert answer(done) == "end" and not done.stderr
