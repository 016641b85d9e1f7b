"""The pytest plugin, as a project sees it: each test runs pytest in a process of its own."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from cupyrite.pytest_plugin._both import combined
from cupyrite.pytest_plugin._session import MARKS
from cupyrite.run import FOLDER

from helpers import TESTS

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.cpu

KERNELS = """
import functools
import numpy as np
import pytest
from cuda.core import Device, LaunchConfig, Program, launch

@functools.cache
def kernel():
    code = 'extern "C" __global__ void store(int *x) { *x = 5; }'
    return Program(code, "c++").compile("ptx").get_kernel("store")

def store(stream, target):
    launch(stream, LaunchConfig(grid=1, block=1), kernel(), target)

def fault(stream):
    kernel.cache_clear()
    store(stream, 0)

def works(device, stream):
    kernel.cache_clear()
    buffer, x = device.allocate(4, stream=stream), np.zeros(1, np.int32)
    store(stream, buffer)
    buffer.copy_to(x, stream=stream)
    stream.sync()
    buffer.close()
    assert x[0] == 5
"""
#: Loads the driver by its name, as other packages do.
LOADS = """
import ctypes, os, subprocess, sys
def is_cpu_device():
    return hasattr(ctypes.CDLL("libcuda.so.1"), "cupyrite_cpu_device")
CHILD = "import ctypes; assert hasattr(ctypes.CDLL('libcuda.so.1'), 'cupyrite_cpu_device')"
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """Runs pytest in a folder, without the settings of this process."""
    for name in ("CUPYRITE_DEVICE", "CUPYRITE_CPU_DEVICES", "CUPYRITE_CPU_COMPUTE_CAPABILITY", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")

    def run(source, *arguments, kernels=True, **variables):
        if source:
            pytester.makepyfile(test_it=(KERNELS if kernels else "import pytest\n" + LOADS) + source)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=120)

    return run


@pytest.fixture(scope="session")
def gpu(tmp_path_factory):
    """The folder with a driver that claims to be NVIDIA's."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("gpu")
    source = TESTS / "helpers" / "fake_cuda.c"
    name = folder / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-o", name, source], check=True)
    return str(folder)


def has_driver():
    code = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    return subprocess.run([sys.executable, "-c", code], env={}, capture_output=True).returncode == 0


# ----------------------------------------------------------------------------------------------------------------------
# Inert


UNUSED = """
def test_nothing_is_loaded():
    loaded = [name for name in sys.modules if name.startswith("cupyrite.") and name != "cupyrite.pytest_plugin"]
    assert "cupyrite.pytest_plugin" in sys.modules and not loaded, loaded
    assert os.environ["LD_LIBRARY_PATH"] == "/nowhere" and "CUPYRITE_DEVICE" not in os.environ

@pytest.fixture
def cuda_device():
    return "of the project"

def test_fixture_of_the_project(cuda_device):
    assert cuda_device == "of the project"
"""


def test_a_run_that_does_not_use_the_plugin_is_unchanged(project):
    done = project(UNUSED, kernels=False)
    done.assert_outcomes(passed=2)
    done.stdout.no_fnmatch_line("cuda: *")


def test_a_marker_that_the_project_registers_keeps_its_meaning(project, pytester):
    pytester.makeini("[pytest]\nmarkers =\n    gpu: slow tests of ours\n")
    source = UNUSED + "\n@pytest.mark.gpu\ndef test_of_the_project():\n    test_nothing_is_loaded()\n"
    project(source, kernels=False).assert_outcomes(passed=3)
    # With an option, the marker is the plugin's.
    done = project("@pytest.mark.gpu\ndef test():\n    assert False\n", "--cuda-device=cpu", kernels=False)
    done.assert_outcomes(skipped=1)


def test_it_can_be_turned_off(project):
    done = project("def test():\n    pass\n", "-p", "no:cupyrite", "--cuda-device=cpu", kernels=False)
    assert done.ret == 4
    done.stderr.fnmatch_lines("*unrecognized arguments: --cuda-device=cpu*")


# ----------------------------------------------------------------------------------------------------------------------
# The device


USES_CPU = """
def test_everything_finds_the_cpu_device():
    assert os.environ["CUPYRITE_DEVICE"] == "cpu" and is_cpu_device()
    subprocess.run([sys.executable, "-c", CHILD], check=True)
"""


def test_the_option_prepares_the_process_and_its_children(project, pytester):
    pytester.makeconftest(LOADS + "assert is_cpu_device()\n")
    done = project(USES_CPU, "--cuda-device=cpu", kernels=False)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines("cuda: CPU device: CPU: *, compute capability 8.9, 1 device")


def test_the_setting_and_the_environment_variable(project, pytester):
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\ncuda_device = "cpu"\ncuda_devices = "2"\ncuda_arch = "7.5"\n'
    )
    done = project(USES_CPU, kernels=False)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines("cuda: CPU device: *, compute capability 7.5, 2 devices")
    # The variable has precedence over the setting, an option over the variable.
    done = project(None, CUPYRITE_CPU_DEVICES="3", CUPYRITE_CPU_COMPUTE_CAPABILITY="8.0")
    done.stdout.fnmatch_lines("cuda: CPU device: *, compute capability 8.0, 3 devices")
    done = project(None, "--cuda-arch=9.0", "--cuda-devices=4")
    done.stdout.fnmatch_lines("cuda: CPU device: *, compute capability 9.0, 4 devices")


def test_triton_finds_the_ptxas_of_the_cpu_device(project):
    source = "def test():\n    assert os.environ['TRITON_PTXAS_PATH'].endswith('cupyrite/lib/cpu/ptxas')\n"
    project(source, "--cuda-device=cpu", kernels=False).assert_outcomes(passed=1)


def test_the_environment_variable_alone_starts_nothing(project):
    source = "def test():\n    assert os.environ['LD_LIBRARY_PATH'] == '/nowhere'\n"
    done = project(source, kernels=False, CUPYRITE_DEVICE="cpu")
    done.assert_outcomes(passed=1)
    done.stdout.no_fnmatch_line("cuda: *")


@pytest.mark.parametrize(
    "option, message",
    [
        ("--cuda-device=tpu", "*--cuda-device: invalid choice: 'tpu'*"),
        ("--cuda-devices=0", "*--cuda-devices='0': expected an integer from 1 to 16"),
        ("--cuda-devices=two", "*--cuda-devices='two': expected an integer from 1 to 16"),
        ("--cuda-arch=9", "*--cuda-arch='9': expected a version from 5.0 to 12.9, such as 9.0"),
        ("--override-ini=cuda_device=tpu", "*the setting cuda_device = 'tpu': expected auto, gpu, cpu or both"),
        (
            "--cuda-device=cpu --override-ini=cuda_leaks=fail",
            "*the setting cuda_leaks = 'fail': expected error, warn or ignore",
        ),
    ],
)
def test_invalid_options_are_refused_before_the_tests(project, pytester, option, message):
    pytester.makepyfile("raise SystemError('imported')")
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", *option.split())
    assert done.ret == 4
    done.stderr.fnmatch_lines(message)
    assert "imported" not in done.stdout.str()


def test_a_compute_capability_without_a_compiler_is_refused(project):
    """CUDA 13's NVRTC compiles for none before 7.5. The message names the place, and the capabilities that it compiles for."""
    source = "raise SystemError('imported')\n"
    expected = ": NVRTC 1*.* does not compile for it; expected *8.0, *9.0, *"
    done = project(source, "--cuda-device=cpu", "--cuda-arch=9.9", kernels=False)
    assert done.ret == 4
    done.stderr.fnmatch_lines(f"*--cuda-arch='9.9'{expected}")
    done = project(None, "--cuda-device=cpu", "-o", "cuda_arch=9.9")
    done.stderr.fnmatch_lines(f"*the setting cuda_arch = '9.9'{expected}")
    done = project(None, "--cuda-device=cpu", CUPYRITE_CPU_COMPUTE_CAPABILITY="9.9")
    done.stderr.fnmatch_lines(f"*CUPYRITE_CPU_COMPUTE_CAPABILITY='9.9'{expected}")
    from cuda.bindings import nvrtc

    if nvrtc.nvrtcVersion()[1] >= 13:
        done = project(None, "--cuda-device=cpu", "--cuda-arch=5.0")
        done.stderr.fnmatch_lines("*--cuda-arch='5.0': NVRTC 1*; expected 7.5, *")


@pytest.mark.parametrize("device", ["gpu", "both"])
def test_a_missing_gpu_is_an_early_error(project, device):
    if has_driver():
        pytest.skip("this machine has an NVIDIA driver")
    done = project("raise SystemError('imported')\n", f"--cuda-device={device}")
    assert done.ret == 4
    done.stderr.fnmatch_lines("*libcuda.so.1 not found*")
    assert "Traceback" not in done.stderr.str() and "imported" not in done.stdout.str()


def test_hidden_devices_are_an_early_error(project):
    done = project("def test():\n    pass\n", "--cuda-device=cpu", CUDA_VISIBLE_DEVICES="-1")
    assert done.ret == 4
    done.stderr.fnmatch_lines("*CUDA_ERROR_NO_DEVICE (CUDA_VISIBLE_DEVICES='-1')*")


def test_the_environment_is_restored_and_a_process_keeps_its_device(project, gpu, pytester):
    pytester.makepyfile(
        test_in="def test():\n    pass\n",
        program=f"""
            import os, pytest
            # The pytest that runs this program has set variables that every pytest removes.
            for name in ("PYTEST_CURRENT_TEST", "PYTEST_VERSION"):
                os.environ.pop(name, None)
            before = dict(os.environ)
            assert pytest.main(["--cuda-device=cpu", "test_in.py"]) == 0
            assert dict(os.environ) == before
            os.environ["LD_LIBRARY_PATH"] = {gpu!r}
            assert pytest.main(["--cuda-device=gpu", "test_in.py"]) == 4
        """,
    )
    done = pytester.run(sys.executable, "program.py")
    assert done.ret == 0
    done.stderr.fnmatch_lines("*already uses the cpu device*")


# ----------------------------------------------------------------------------------------------------------------------
# Fixtures and markers


def test_fixtures_start_the_plugin(project):
    source = """
def test_device(cuda_device, cuda_stream):
    assert cuda_device.name.startswith("CPU") and cuda_stream.device.device_id == cuda_device.device_id == 0
    works(cuda_device, cuda_stream)

def test_changes_the_device(cuda_devices):
    assert [device.device_id for device in cuda_devices] == [0, 1]
    cuda_devices[1].set_current()

def test_the_device_is_current(cuda_device):
    assert Device().device_id == cuda_device.device_id
"""
    done = project(source, CUPYRITE_DEVICE="cpu", CUPYRITE_CPU_DEVICES="2")
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines("cuda: CPU device: *, 2 devices")


MARKED = """
@pytest.mark.gpu
def test_gpu():
    assert not is_cpu_device()

@pytest.mark.cpu_device
def test_cpu():
    assert is_cpu_device()

@pytest.mark.multi_gpu
def test_two():
    pass

@pytest.mark.multi_gpu(3)
def test_three():
    pass

@pytest.mark.min_arch("9.0")
class TestArch:
    def test_string(self):
        pass

    @pytest.mark.min_arch((8, 0))
    @pytest.mark.min_arch("sm_89")
    def test_both_markers_apply(self):
        pass
"""


def test_markers_skip_what_the_device_cannot_run(project):
    done = project(MARKED, "-rs", "--strict-markers", "--cuda-device=cpu", kernels=False)
    done.assert_outcomes(passed=1, skipped=5)
    done.stdout.fnmatch_lines_random(
        [
            "SKIPPED * test_it.py:*: needs an NVIDIA GPU; this run uses the CPU device",
            "SKIPPED * test_it.py:*: needs 2 CUDA devices; this run has 1; --cuda-devices=2 makes more of the CPU device",
            "SKIPPED * test_it.py:*: needs 3 CUDA devices; this run has 1*",
            "SKIPPED * test_it.py:*: needs compute capability 9.0; this device has 8.9; --cuda-arch=9.0 sets *",
        ]
    )
    options = ("--cuda-device=cpu", "--cuda-devices=3", "--cuda-arch=9.0")
    project(None, *options).assert_outcomes(passed=5, skipped=1)


def test_markers_on_a_gpu(project, gpu):
    done = project(MARKED, "-rs", "--cuda-device=gpu", "--cuda-devices=3", kernels=False, LD_LIBRARY_PATH=gpu)
    done.assert_outcomes(passed=4, skipped=2)
    done.stdout.fnmatch_lines("cuda: GPU: Fake GPU 0, compute capability 9.0, 2 devices (*for the CPU device only)")
    done.stdout.fnmatch_lines_random(
        ["*needs the CPU device; this run uses a GPU", "*needs 3 CUDA devices; this run has 2"]
    )


def test_the_cpu_device_hides_a_driver(project, gpu):
    project(USES_CPU, "--cuda-device=cpu", kernels=False, LD_LIBRARY_PATH=gpu).assert_outcomes(passed=1)


def test_a_driver_that_is_loaded_cannot_be_hidden(project, gpu, pytester):
    pytester.makepyfile(early="import ctypes; ctypes.CDLL('libcuda.so.1')")
    done = project(USES_CPU, "-p", "early", "--cuda-device=cpu", kernels=False, LD_LIBRARY_PATH=gpu)
    assert done.ret == 4
    done.stderr.fnmatch_lines("*python -m cupyrite run --device cpu -m pytest")


@pytest.mark.parametrize(
    "mark, message",
    [
        (pytest.mark.min_arch, "None: expected a compute capability"),
        (pytest.mark.min_arch("new"), "'new': expected a compute capability"),
        (pytest.mark.min_arch(90), "90: expected a compute capability"),
        (pytest.mark.multi_gpu(1), "1: expected an integer from 2"),
        (pytest.mark.multi_gpu(2, 3), "expected one argument: count"),
        (pytest.mark.multi_gpu(number=3), "expected one argument: count"),
        (pytest.mark.gpu("H100"), "expected no arguments"),
        (pytest.mark.cuda_errors("skip"), "'skip': expected error, warn or ignore"),
        (pytest.mark.cuda_leaks(), "None: expected error, warn or ignore"),
    ],
)
def test_invalid_arguments_of_markers(mark, message):
    with pytest.raises(ValueError) as raised:
        MARKS[mark.name](mark.mark)
    assert str(raised.value).startswith(message)


def test_an_invalid_marker_is_refused_before_the_tests(project):
    done = project("@pytest.mark.min_arch('new')\ndef test():\n    assert False\n", "--cuda-device=cpu", kernels=False)
    assert done.ret == 4
    done.stdout.no_fnmatch_line("*1 failed*")
    assert "test_it.py::test: marker min_arch: 'new': expected" in done.stdout.str() + done.stderr.str()


# ----------------------------------------------------------------------------------------------------------------------
# What a test leaves behind


def test_a_fault_fails_one_test(project):
    source = """
@pytest.fixture(scope="module")
def buffer(cuda_device):
    stream = cuda_device.create_stream()
    buffer = cuda_device.allocate(4, stream=stream)
    yield buffer
    buffer.close()

def test_reported(cuda_stream, cuda_device, buffer):
    local = cuda_device.allocate(4, stream=cuda_stream)
    fault(cuda_stream)
    cuda_stream.sync()

def test_after_it(cuda_device, cuda_stream, buffer):
    works(cuda_device, cuda_stream)
    buffer.fill(1, stream=cuda_stream)

def test_unreported(cuda_stream):
    fault(cuda_stream)

class TestUnit(__import__("unittest").TestCase):
    @pytest.fixture(autouse=True)
    def streams(self, cuda_device, cuda_stream):
        self.device, self.stream = cuda_device, cuda_stream

    def test_1_unreported(self):
        fault(self.stream)

    def test_2_after_it(self):
        works(self.device, self.stream)

@pytest.fixture
def faulty(cuda_stream):
    yield
    fault(cuda_stream)

def test_teardown(faulty):
    pass

@pytest.fixture(scope="module")
def broken(cuda_device):
    stream = cuda_device.create_stream()
    fault(stream)
    stream.sync()

def test_setup(broken):
    pass

@pytest.mark.cuda_errors("ignore")
def test_intended(cuda_stream):
    fault(cuda_stream)
    with pytest.raises(Exception, match="ILLEGAL_ADDRESS"):
        cuda_stream.sync()

def test_last(cuda_device, cuda_stream, buffer):
    works(cuda_device, cuda_stream)
    buffer.fill(1, stream=cuda_stream)
"""
    done = project(source, "-v", "--tb=short", CUPYRITE_DEVICE="cpu")
    done.assert_outcomes(passed=5, failed=3, errors=2, warnings=0)
    expected = {
        "test_reported": "FAILED",
        "test_after_it": "PASSED",
        "test_unreported": "FAILED",
        "test_1_unreported": "FAILED",
        "test_2_after_it": "PASSED",
        "test_setup": "ERROR",
        "test_intended": "PASSED",
        "test_last": "PASSED",
    }
    for name, outcome in expected.items():
        done.stdout.fnmatch_lines(f"*::{name} {outcome}*")
    done.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_teardown*",
            "the test left a CUDA error behind: CUDA_ERROR_ILLEGAL_ADDRESS on device 0*",
        ]
    )
    # The driver's report belongs to the test.
    done.stdout.fnmatch_lines(["_* test_unreported _*", "*Captured stderr call*", "cupyrite: illegal memory access*"])


def test_intended_faults_warn_of_nothing(project):
    """Their buffers cannot be freed: neither at the end of the test, nor, if it leaks them, at exit."""
    source = """
leaked = []

@pytest.mark.cuda_errors("ignore")
@pytest.mark.parametrize("is_reported", [False, True])
def test_intended(cuda_device, cuda_stream, is_reported):
    buffers = [cuda_device.allocate(4, stream=cuda_stream) for _ in range(3)]
    leaked.append(cuda_device.allocate(4, stream=cuda_stream))
    fault(cuda_stream)
    if is_reported:
        with pytest.raises(Exception, match="ILLEGAL_ADDRESS"):
            cuda_stream.sync()
    else:
        import time
        time.sleep(0.2)

def test_last(cuda_device, cuda_stream):
    works(cuda_device, cuda_stream)
"""
    done = project(source, "-W", "error", "--cuda-device=cpu")
    done.assert_outcomes(passed=3)
    assert "CUDAError" not in done.stdout.str() + done.stderr.str()


def test_with_an_option_a_fault_of_any_test_is_cleaned_up(project):
    source = """
def use(bad):
    device = Device()
    device.set_current()
    stream = device.create_stream()
    fault(stream) if bad else works(device, stream)

def test_unreported():
    use(True)

def test_after_it():
    use(False)
"""
    done = project(source, "--cuda-device=cpu")
    done.assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("action, outcomes", [("warn", {"passed": 2, "warnings": 1}), ("ignore", {"passed": 2})])
def test_errors_left_behind_can_be_allowed(project, action, outcomes):
    source = "def test(cuda_stream):\n    fault(cuda_stream)\n\ndef test_2(cuda_device, cuda_stream):\n    works(cuda_device, cuda_stream)\n"
    done = project(source, "--cuda-device=cpu", "-o", f"cuda_errors={action}")
    done.assert_outcomes(**outcomes)
    if action == "warn":
        done.stdout.fnmatch_lines("*test_it.py:*: CudaErrorWarning: *CUDA_ERROR_ILLEGAL_ADDRESS*")


def test_a_device_that_cannot_be_reset_fails_the_rest_with_the_reason(project, gpu):
    source = """
def test_once():
    ctypes.CDLL("libcuda.so.1").fake_break(1)

@pytest.mark.gpu
def test_after_it():
    pass

def test_for_ever():
    ctypes.CDLL("libcuda.so.1").fake_break(-1)

@pytest.mark.gpu
def test_unusable():
    pass
"""
    done = project(source, "--cuda-device=gpu", "-v", kernels=False, LD_LIBRARY_PATH=gpu)
    done.assert_outcomes(passed=1, failed=2, errors=1)
    done.stdout.fnmatch_lines(
        "*the device is unusable since test_it.py::test_for_ever (CUDA_ERROR_ILLEGAL_ADDRESS on device 0): resetting *"
    )


LEAKS = """
kept = []

def test_leak(cuda_device, cuda_stream):
    kept.append(cuda_device.allocate(1000, stream=cuda_stream))

def test_leak_of_the_driver_api(cuda_device):
    from cuda.bindings import driver
    assert driver.cuMemAlloc(4096)[0] == 0

@pytest.fixture(scope="module")
def shared(cuda_device):
    stream = cuda_device.create_stream()
    return cuda_device.allocate(100000, stream=stream)

@pytest.fixture
def freed(cuda_device, cuda_stream):
    buffer = cuda_device.allocate(200000, stream=cuda_stream)
    yield buffer
    buffer.close()

def test_fixtures_are_no_leak(shared, freed):
    pass

def test_memory_that_a_pool_keeps_hides_no_leak(cuda_device, cuda_stream):
    cuda_device.allocate(5000, stream=cuda_stream).close()
    cuda_stream.sync()
    kept.append(cuda_device.allocate(4000, stream=cuda_stream))

@pytest.mark.xfail
def test_a_failure_is_no_leak(cuda_device, cuda_stream):
    buffer = cuda_device.allocate(1000, stream=cuda_stream)
    assert buffer is None

def test_a_cycle_is_no_leak(cuda_device, cuda_stream):
    cycle = [cuda_device.allocate(1000, stream=cuda_stream)]
    cycle.append(cycle)

@pytest.mark.cuda_leaks("ignore")
def test_intended(cuda_device, cuda_stream):
    kept.append(cuda_device.allocate(1000, stream=cuda_stream))
"""


def test_leaks_are_warnings(project):
    done = project(LEAKS, CUPYRITE_DEVICE="cpu")
    done.assert_outcomes(passed=6, xfailed=1, warnings=3)
    done.stdout.fnmatch_lines_random(
        [
            "test_it.py::test_leak",
            "*test_it.py:*: CudaLeakWarning: the test left 1024 bytes of device memory allocated *",
            "test_it.py::test_leak_of_the_driver_api",
            "*CudaLeakWarning: the test left 4096 bytes of device memory allocated *",
            "test_it.py::test_memory_that_a_pool_keeps_hides_no_leak",
        ]
    )


@pytest.mark.parametrize("action, outcomes", [("error", {"passed": 6, "errors": 3}), ("ignore", {"passed": 6})])
def test_leaks_can_be_errors_or_allowed(project, action, outcomes):
    project(LEAKS, "--cuda-device=cpu", "-o", f"cuda_leaks={action}").assert_outcomes(**outcomes, xfailed=1, warnings=0)


# ----------------------------------------------------------------------------------------------------------------------
# Several processes


WORKERS = """
@pytest.mark.parametrize("i", range(8))
def test_worker(i, tmp_path_factory):
    folder = os.environ["FOLDER"]
    driver = ctypes.CDLL("libcuda.so.1")
    assert driver.cuInit(0) == 0
    name = ctypes.create_string_buffer(256)
    assert driver.cuDeviceGetName(name, 256, 0) == 0
    with open(os.path.join(folder, os.environ["PYTEST_XDIST_WORKER"]), "w") as file:
        file.write(name.value.decode() + " " + os.environ["CUDA_VISIBLE_DEVICES"])
    import time; time.sleep(0.1)
"""


def test_each_worker_has_a_device(project, gpu, tmp_path):
    pytest.importorskip("xdist")
    workers = ("-n", "3", "--cuda-device=gpu", "--dist=each")
    done = project(WORKERS, *workers, kernels=False, LD_LIBRARY_PATH=gpu, FOLDER=str(tmp_path))
    done.assert_outcomes(passed=24)
    done.stdout.fnmatch_lines("cuda: GPU: Fake GPU 0, compute capability 9.0, 2 devices")
    read = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert read == {"gw0": "Fake GPU 0 0,1", "gw1": "Fake GPU 1 1,0", "gw2": "Fake GPU 0 0,1"}
    # Those that the user has chosen are distributed.
    done = project(None, *workers, CUDA_VISIBLE_DEVICES="1,0")
    done.assert_outcomes(passed=24)
    assert (tmp_path / "gw1").read_text() == "Fake GPU 0 0,1"


def test_workers_on_the_cpu_device(project):
    pytest.importorskip("xdist")
    source = """
@pytest.mark.parametrize("i", range(6))
def test(i, cuda_device, cuda_stream, cuda_devices):
    import os
    first = int(os.environ["PYTEST_XDIST_WORKER"][2:]) % 2
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ["0,1", "1,0"][first] and len(cuda_devices) == 2
    if i == 2:
        fault(cuda_stream)
    else:
        works(cuda_device, cuda_stream)
"""
    for options in (("--cuda-device=cpu", "--cuda-devices=2"), ()):
        done = project(source, "-n", "2", *options, CUPYRITE_DEVICE="cpu", CUPYRITE_CPU_DEVICES="2")
        done.assert_outcomes(passed=5, failed=1)


def test_a_pytest_that_a_test_starts_is_on_its_own(project):
    source = """
def test():
    code = "def test(cuda_device):\\n    assert 'PYTEST_XDIST' not in str(__import__('os').environ)\\n"
    open("inner.py", "w").write(code)
    subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "inner.py"], check=True)
"""
    project(source, "--cuda-device=cpu", kernels=False).assert_outcomes(passed=1)


BOTH = """
@pytest.mark.gpu
def test_gpu():
    assert not is_cpu_device()

def test_only_on_the_cpu_device():
    assert not is_cpu_device()

def test_fails():
    assert False
"""


def test_both_devices(project, gpu, pytester):
    pytester.makepyfile(
        plain="def test():\n    import os\n    assert 'cache_dir' not in os.environ.get('PYTEST_ADDOPTS', '')\n"
    )
    done = project("", "--cuda-device=both", "plain.py", LD_LIBRARY_PATH=os.pathsep.join([FOLDER, gpu]))
    assert done.ret == 0
    done.stdout.fnmatch_lines(
        [
            "cuda: running on the gpu device (1 of 2)",
            "cuda: GPU: Fake GPU 0*",
            "cuda: running on the cpu device (2 of 2)",
            "cuda: CPU device: *",
            "cuda: both devices",
            "  gpu: 1 passed (exit status 0)",
            "  cpu: 1 passed (exit status 0)",
        ]
    )
    done = project(BOTH, "--cuda-device=both", "--junitxml=report.xml", kernels=False)
    assert done.ret == 1
    done.stdout.fnmatch_lines(
        [
            "  gpu: 2 passed, 1 failed (exit status 1)",
            "  cpu: 2 failed, 1 skipped (exit status 1)",
            "  failed on the cpu device only: test_it.py::test_only_on_the_cpu_device",
        ]
    )
    assert {path.name for path in pytester.path.glob("*.xml")} == {"report-gpu.xml", "report-cpu.xml"}
    done = project(None, "--cuda-device=both", "-x")
    assert done.ret == 1
    done.stdout.fnmatch_lines(["  cpu: not run"])


def test_both_reruns_failures_of_each_device(project, gpu, pytester, monkeypatch):
    pytester.makepyfile(test_it="import pytest\n" + LOADS + BOTH)
    monkeypatch.setenv("LD_LIBRARY_PATH", gpu)
    first = pytester.runpytest_subprocess("--cuda-device=both")
    assert first.ret == 1
    done = pytester.runpytest_subprocess("--cuda-device=both", "--last-failed")
    done.stdout.fnmatch_lines(["  gpu: 1 failed (exit status 1)", "  cpu: 2 failed (exit status 1)"])


def test_statuses_of_both_runs_are_combined():
    assert combined([0, 0]) == 0 and combined([0, 5]) == 0 and combined([5, 5]) == 5
    assert combined([0, 1]) == 1 and combined([1, 0]) == 1 and combined([5, 1]) == 1
    assert combined([-11, 0]) == 139 and combined([2]) == 2


def test_a_process_that_ends_itself(project):
    done = project("def test():\n    os._exit(7)\n", "--cuda-device=cpu", kernels=False)
    assert done.ret == 7


def test_help_lists_the_options_without_a_device(project):
    done = project("", "--help", "--cuda-device=gpu")
    assert done.ret == 0
    done.stdout.fnmatch_lines(["*--cuda-device={auto,gpu,cpu,both}*", "*cuda_leaks*"])
    markers = project(None, "--markers").stdout
    markers.fnmatch_lines(["@pytest.mark.gpu: *", "@pytest.mark.min_arch(version): *"])


def test_a_json_message_of_another_process_is_ignored(project):
    message = json.dumps({"parent": 1, "device": "gpu", "facts": "{}", "addopts": None})
    done = project(USES_CPU, "--cuda-device=cpu", kernels=False, PYTEST_CUPYRITE_SESSION=message)
    done.assert_outcomes(passed=1)
