"""Fixtures and markers of the whole suite.

CUPYRITE_DEVICE chooses the device. Tests that need a GPU carry `@pytest.mark.gpu` and are skipped on the CPU device;
tests of the CPU device itself carry `@pytest.mark.cpu`.
"""

import gc
import os
import pathlib
import signal

import pytest

os.environ.setdefault("CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING", "1")
# Without it, Ray connects to a cluster that the machine's user started, and waits for one that has died.
os.environ.setdefault("RAY_ADDRESS", "local")


# Files and folders that `cargo xtask test --quick` leaves out: together five sixths of the suite's time. They are about
# leaks, exits of processes, builds, and what users read.
SLOW = (
    "bindings/cython",
    "bindings/driver/test_callbacks.py",
    "bindings/libraries/test_nvjitlink.py",
    "bindings/test_fuzz_arguments.py",
    "bindings/test_lifetimes.py",
    "bindings/types/test_pod_memory.py",
    "bindings/v2/test_leaks.py",
    "cluster",
    "core/checkpoint/test_process.py",
    "core/graph/test_threads.py",
    "core/ipc",
    "core/memory/test_lifetime.py",
    "core/objects/test_ctrl_c.py",
    "core/objects/test_destroyed_by_program.py",
    "core/objects/test_destroyed_matrix.py",
    "core/objects/test_green_contexts.py",
    "core/objects/test_lifetime.py",
    "core/objects/test_process_exit.py",
    "core/program/test_exit_while_compiling.py",
    "core/tensor_map/test_descriptor.py",
    "core/view/test_hostile_exporters.py",
    "differential",
    "doctor",
    "packaging/test_dask_examples.py",
    "packaging/test_distributions.py",
    "packaging/test_docs.py",
    "packaging/test_examples.py",
    "packaging/test_gallery.py",
    "packaging/test_interface.py",
    "packaging/test_mpi_rust.py",
    "packaging/test_nccl_examples.py",
    "packaging/test_notebooks.py",
    "packaging/test_pytest_plugin.py",
    "packaging/test_ray_examples.py",
    "packaging/test_rehearsal.py",
    "packaging/test_site.py",
    "packaging/test_stubs.py",
    "packaging/test_testing_recipes.py",
    "pathfinder/test_hostile_environments.py",
    "pathfinder/test_wheels.py",
)
TESTS = pathlib.Path(__file__).parent


def pytest_configure(config):
    # A shell's background jobs ignore SIGINT, and child processes that tests interrupt would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "gpu: needs an NVIDIA GPU")
    config.addinivalue_line("markers", "cpu: is about the CPU device")
    config.addinivalue_line("markers", "strict_abi: exercises objects whose memory layout CUPYRITE_STRICT_ABI=1 avoids")
    config.addinivalue_line("markers", "installation: installs packages from PyPI (cargo xtask installations)")
    config.addinivalue_line("markers", "installation_full: as installation, and slow (--full)")
    config.addinivalue_line("markers", "slow: left out by cargo xtask test --quick")
    config.addinivalue_line("filterwarnings", "ignore:.*CPU device.*:RuntimeWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    slow = [TESTS / name for name in SLOW]
    for item in items:
        if any(item.path == path or path in item.path.parents for path in slow):
            item.add_marker("slow")


def pytest_collection_finish():
    # Many tests collect garbage. Without this, each collection visits the objects of the whole test suite.
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def cpu_device():
    """Whether the CPU device serves this process."""
    from helpers.device import on_cpu_device

    return on_cpu_device()


@pytest.fixture(autouse=True)
def _right_device(request):
    gpu, cpu = (request.node.get_closest_marker(m) for m in ("gpu", "cpu"))
    if gpu or cpu:
        on_cpu = request.getfixturevalue("cpu_device")
        if gpu and on_cpu:
            pytest.skip("needs an NVIDIA GPU; this process runs on the CPU device")
        if cpu and not on_cpu:
            pytest.skip("tests the CPU device; this process runs on a GPU")


@pytest.fixture
def context():
    """A new current context; destroyed afterwards, also when the test left it in an error state."""
    from cuda.bindings import driver

    from helpers.device import check

    check(driver.cuInit(0))
    ctx = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
    yield ctx
    driver.cuCtxDestroy(ctx)


@pytest.fixture(scope="module")
def shared_context():
    """One context for a module whose tests leave it healthy."""
    from cuda.bindings import driver

    from helpers.device import check

    check(driver.cuInit(0))
    ctx = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
    yield ctx
    check(driver.cuCtxDestroy(ctx))
