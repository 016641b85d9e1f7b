"""Fixtures and markers of the whole suite.

CUPYRITE_DEVICE chooses the device. Tests that need a GPU carry `@pytest.mark.gpu` and are skipped on the CPU device;
tests of the CPU device itself carry `@pytest.mark.cpu`.
"""

import gc
import os
import signal

import pytest

os.environ.setdefault("CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING", "1")


def pytest_configure(config):
    # A shell's background jobs ignore SIGINT, and child processes that tests interrupt would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "gpu: needs an NVIDIA GPU")
    config.addinivalue_line("markers", "cpu: is about the CPU device")
    config.addinivalue_line("markers", "strict_abi: exercises objects whose memory layout CUPYRITE_STRICT_ABI=1 avoids")
    config.addinivalue_line("markers", "installation: installs packages from PyPI (cargo xtask installations)")
    config.addinivalue_line("markers", "installation_full: as installation, and slow (--full)")
    config.addinivalue_line("filterwarnings", "ignore:.*CPU device.*:RuntimeWarning")


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
