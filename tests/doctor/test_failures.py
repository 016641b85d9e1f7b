"""The doctor where NVRTC or the device fails: missing, broken, hanging, crashing.

Failing drivers are small libraries built with the C compiler.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from helpers.doctor import (
    PACKAGE,
    codes,
    commands,
    doctor,
    environment,
    errors,
    examine,
    install_cupyrite,
    own_files,
    problem,
)
from helpers.waits import until

# ---------------------------------------------------------------------------------------------------------
# NVRTC


def test_missing_nvrtc(tmp_path):
    """Cupyrite alone, without site-packages and therefore without wheels."""
    install_cupyrite(tmp_path, own_files())
    status, report = examine(options=("-S",), PYTHONPATH=str(tmp_path))
    if [item for item in report["libraries"] if item["name"] == "nvrtc" and item["state"] == "found"]:
        pytest.skip("this machine has NVRTC outside site-packages")
    assert status == 1
    assert report["ok"] is False
    assert report["proof"]["stopped_at"] == "load NVRTC"
    # The device is examined all the same.
    assert report["devices"]
    fix = commands(report, "nvrtc-missing")
    # The interpreter runs without site-packages, and so without pip.
    assert fix[0].startswith("uv pip install --python ") and fix[0].endswith(" nvidia-cuda-nvrtc")
    assert any(command.startswith("conda install") for command in fix)
    done = doctor("--demo", options=("-S",), PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[-1] == "Kernels cannot be compiled and run here."
    # NumPy is missing too; the demo needs it.
    assert "numpy-missing" in done.stdout.decode()


@pytest.mark.parametrize("kind", ["empty", "text", "cut off"])
def test_broken_nvrtc(tmp_path, kind, healthy):
    (nvrtc,) = [item for item in healthy["libraries"] if item["name"] == "nvrtc"]
    file = tmp_path / "libnvrtc.so.13"
    whole = pathlib.Path(nvrtc["path"]).read_bytes()
    file.write_bytes({"empty": b"", "text": b"version https://git-lfs\n", "cut off": whole[:8192]}[kind])
    status, report = examine(CUPYRITE_LIB_NVRTC=str(file))
    assert status == 1
    (code,) = errors(report)
    assert code in ("nvrtc-broken", "crash"), codes(report)
    found = problem(report, code)
    assert str(file) in found["what"] + found["why"]
    assert commands(report, code)[0] == "unset CUPYRITE_LIB_NVRTC"


def test_library_override_to_a_missing_file(tmp_path):
    status, report = examine(CUPYRITE_LIB_NVRTC=str(tmp_path / "none"))
    assert status == 1
    assert problem(report, "variable-path")["what"].startswith("CUPYRITE_LIB_NVRTC=")
    assert "nvrtc" in "".join(errors(report))


# ---------------------------------------------------------------------------------------------------------
# The device


def test_gpu_requested_on_a_machine_without_one(tmp_path):
    missing = tmp_path / "empty"
    missing.mkdir()
    status, report = examine(CUPYRITE_DEVICE="gpu", CUPYRITE_LIB_CUDA=str(missing))
    assert status == 1
    assert report["device"]["backend"] is None
    assert report["proof"]["stopped_at"] == "choose the device"
    assert errors(report)


def test_gpu_requested_without_a_driver(healthy):
    if healthy["driver"]["path"]:
        pytest.skip("this machine has an NVIDIA driver")
    status, report = examine(CUPYRITE_DEVICE="gpu")
    assert status == 1
    assert "export CUPYRITE_DEVICE=cpu" in commands(report, "driver-missing")
    # NVRTC is examined all the same.
    assert report["proof"]["nvrtc"]


def test_invalid_cupyrite_device():
    status, report = examine(CUPYRITE_DEVICE="gpus")
    assert status == 1
    assert "gpus" in problem(report, "device-setting")["what"]
    assert commands(report, "device-setting")[0] == "unset CUPYRITE_DEVICE"


@pytest.mark.parametrize("name", ["CUPYRITE_CPU_DEVICES", "CUPYRITE_CPU_THREADS"])
def test_invalid_cpu_device_settings(name):
    status, report = examine(**{name: "many"})
    assert status == 1
    assert errors(report) == ["cpu-device-fails"]
    assert "variable-value" in codes(report)


def test_invalid_runtime_is_reported():
    _, report = examine(CUPYRITE_RUNTIME="libcudart")
    assert problem(report, "variable-value")["what"] == "CUPYRITE_RUNTIME='libcudart': expected auto, cudart or own"
    assert commands(report, "variable-value") == ["unset CUPYRITE_RUNTIME"]


def test_invalid_strict_abi_is_a_line_of_the_report():
    status, report = examine(CUPYRITE_STRICT_ABI="tuple")
    assert status == 1
    assert errors(report) == ["variable-value"]
    assert "CUPYRITE_STRICT_ABI" in problem(report, "variable-value")["what"]
    assert commands(report, "variable-value") == ["unset CUPYRITE_STRICT_ABI"]
    done = doctor(CUPYRITE_STRICT_ABI="tuple")
    assert done.returncode == 1 and done.stderr == b""
    assert b"Kernels cannot be compiled and run here." in done.stdout


DRIVER = r"""
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef INIT
#define INIT 0
#endif
#ifndef LOAD
#define LOAD 0
#endif
#ifdef ON_LOAD
__attribute__((constructor)) static void on_load(void) { ON_LOAD; }
#endif
typedef int CUresult;
CUresult cuDriverGetVersion(int *v) { *v = VERSION; return 0; }
CUresult cuInit(unsigned f) {
#ifdef ON_INIT
    ON_INIT;
#endif
    return INIT;
}
CUresult cuGetErrorName(CUresult e, const char **name) {
    switch (e) {
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 222: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return 0;
    case 803: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
    }
    *name = NULL;
    return 1;
}
CUresult cuDeviceGetCount(int *n) { *n = 1; return 0; }
CUresult cuDeviceGet(int *d, int i) { *d = i; return 0; }
CUresult cuDeviceGetName(char *name, int n, int d) { strncpy(name, "Made-up GPU\x1b[31m", n); return 0; }
CUresult cuDeviceTotalMem_v2(size_t *n, int d) { *n = (size_t)8 << 30; return 0; }
CUresult cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 9 : 0; return 0; }
static char context;
CUresult cuDevicePrimaryCtxRetain(void **c, int d) { *c = &context; return 0; }
CUresult cuDevicePrimaryCtxRelease_v2(int d) { return 0; }
CUresult cuCtxGetCurrent(void **c) { *c = &context; return 0; }
CUresult cuLibraryLoadData(void **l, const void *image, int *jit, void **jv, unsigned jn, int *o, void **v, unsigned n) {
    return LOAD;
}
"""


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory):
    """Builds a libcuda.so.1 from C definitions; returns its path."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("drivers")
    (folder / "driver.c").write_text(DRIVER)

    def make(version=13050, **definitions):
        name = "-".join([str(version), *(f"{k}-{len(str(v))}-{abs(hash(str(v)))}" for k, v in definitions.items())])
        target = folder / name / "libcuda.so.1"
        target.parent.mkdir(exist_ok=True)
        words = [f"-D{key}={value}" for key, value in {"VERSION": version, **definitions}.items()]
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-w", *words, str(folder / "driver.c"), "-o", str(target)], check=True
        )
        return str(target)

    return make


def on_driver(path, *words, **changes):
    return examine(*words, CUPYRITE_DEVICE=None, CUPYRITE_LIB_CUDA=path, **changes)


@pytest.mark.parametrize(
    "status, code", [(100, "no-device"), (803, "driver-mismatch"), (34, "driver-stub"), (999, "driver-fails")]
)
def test_driver_that_fails_to_initialize(fake_driver, status, code):
    exit_status, report = on_driver(fake_driver(INIT=status))
    assert exit_status == 1
    # The CPU device does not replace a broken driver.
    assert report["device"]["backend"] == "gpu"
    assert errors(report) == [code]
    assert report["driver"]["cuda"] == "13.5"
    assert report["proof"]["stopped_at"] == "initialise the driver"
    assert "export CUPYRITE_DEVICE=cpu" in commands(report, code)


def test_driver_that_hangs(fake_driver):
    begun = time.monotonic()
    status, report = on_driver(fake_driver(ON_INIT="for(;;)pause()"), "--deadline", "1.5")
    assert time.monotonic() - begun < 30
    assert status == 1
    assert errors(report) == ["hang"]
    assert report["proof"]["hung_at"] == "initialise the driver"
    # Results from before the hang are reported.
    assert report["driver"]["cuda"] == "13.5"


def with_a_thread(folder):
    """A folder whose sitecustomize starts a thread in every interpreter, so that no child can be forked."""
    (folder / "sitecustomize.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    return os.pathsep.join([str(folder), str(PACKAGE.parent)])


def test_multithreaded_interpreter(tmp_path, fake_driver):
    path = with_a_thread(tmp_path)
    status, report = examine(PYTHONPATH=path)
    assert status == 0, report["problems"]
    assert report["proof"]["in_process"] is True
    begun = time.monotonic()
    driver = fake_driver(ON_INIT="for(;;)pause()")
    status, report = on_driver(driver, "--deadline", "1", PYTHONPATH=path)
    assert time.monotonic() - begun < 30
    assert status == 1
    assert errors(report) == ["hang"]


def test_driver_that_hangs_while_loading(fake_driver):
    status, report = on_driver(fake_driver(ON_LOAD="for(;;)pause()"), "--deadline", "1")
    assert status == 1
    assert report["proof"]["hung_at"] == "choose the device"


@pytest.mark.parametrize(
    "what, how", [("abort()", "SIGABRT"), ("*(volatile int*)8=1", "SIGSEGV"), ("_exit(7)", "exit status 7")]
)
@pytest.mark.parametrize("when", ["ON_LOAD", "ON_INIT"])
def test_driver_that_crashes(fake_driver, what, how, when):
    path = fake_driver(**{when: 'write(2,"last\\x1bwords",10);' + what})
    status, report = on_driver(path)
    assert status == 1
    assert errors(report) == ["crash"]
    found = problem(report, "crash")
    assert how in found["what"]
    assert "last\x1bwords" in found["why"]
    assert path in found["why"]
    screen = doctor(CUPYRITE_DEVICE=None, CUPYRITE_LIB_CUDA=path)
    assert b"\x1b" not in screen.stdout and screen.stderr == b""


def test_driver_of_an_older_cuda(fake_driver, healthy):
    if not healthy["proof"]["nvrtc"].startswith("13."):
        pytest.skip("needs NVRTC of CUDA 13")
    status, report = on_driver(fake_driver(version=12040, LOAD=222))
    assert status == 1
    assert errors(report) == ["driver-older"]
    found = problem(report, "driver-older")
    assert "12.4" in found["what"] and healthy["proof"]["nvrtc"] in found["what"]
    assert any("CUPYRITE_CUDA_MAJOR=12" in command for command in commands(report, "driver-older"))
    assert report["devices"][0]["compute_capability"] == "9.0"


def test_driver_without_functions(fake_driver):
    status, report = on_driver(fake_driver(LOAD=0))
    assert status == 1
    assert errors(report)


def test_interrupt_ends_the_examination(fake_driver, tmp_path):
    began = tmp_path / "began"
    path = fake_driver(ON_INIT=f'fclose(fopen("{began}", "w"));for(;;)pause()')
    with subprocess.Popen(
        [sys.executable, "-m", "cupyrite"],
        env=environment(CUPYRITE_DEVICE=None, CUPYRITE_LIB_CUDA=path),
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        until(began.exists)
        # To the whole process group, as a terminal does.
        os.killpg(process.pid, signal.SIGINT)
        text = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert b"Traceback" not in text


def test_no_child_outlives_the_examination(fake_driver):
    """Not even a child that hung."""
    path = fake_driver(ON_INIT="for(;;)pause()")
    done = subprocess.run(
        [sys.executable, "-m", "cupyrite", "--deadline", "0.5"],
        env=environment(CUPYRITE_DEVICE=None, CUPYRITE_LIB_CUDA=path, CUPYRITE_TEST_MARK=path),
        cwd="/",
        capture_output=True,
        start_new_session=True,
    )
    assert done.returncode == 1
    mark = f"CUPYRITE_TEST_MARK={path}".encode()
    for process in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            assert mark not in process.read_bytes(), process


def test_a_missing_library_of_the_cpu_device(tmp_path):
    files = {file: text for file, text in own_files().items() if "cupyrite/lib/" not in file}
    # A link to the module would lead to the library beside its original.
    install_cupyrite(tmp_path, {file: text for file, text in files.items() if not file.endswith(".so")})
    (module,) = PACKAGE.glob("_native*.so")
    shutil.copy(module, tmp_path / "cupyrite" / module.name)
    status, report = examine(PYTHONPATH=str(tmp_path))
    assert status == 1
    assert (
        f"{tmp_path}/cupyrite/lib/cpu/libcupyrite_cpu_device.so does not exist"
        in problem(report, "cpu-device-missing")["why"]
    )
    assert commands(report, "cpu-device-missing") == ["pip install --force-reinstall --no-deps cupyrite"]
