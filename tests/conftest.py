"""Fixtures and markers of the whole suite.

The device is the process's own choice (CUPYRITE_DEVICE); tests that need a GPU carry `@pytest.mark.gpu` and are
skipped, with the reason, where the CPU device serves; those that only make sense on the CPU device carry
`@pytest.mark.cpu`.
"""

import os
import signal

import pytest

os.environ.setdefault("CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING", "1")


def pytest_configure(config):
    # A shell's background job ignores interrupts, and so would the children that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "gpu: needs an NVIDIA GPU")
    config.addinivalue_line("markers", "cpu: is about the CPU device")
    config.addinivalue_line("filterwarnings", "ignore:.*CPU device.*:RuntimeWarning")


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
            pytest.skip("is about the CPU device; this process runs on a GPU")


@pytest.fixture
def context():
    """A fresh context, current; destroyed afterwards, whatever became of it."""
    from cuda.bindings import driver
    from helpers.device import check

    check(driver.cuInit(0))
    ctx = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
    yield ctx
    driver.cuCtxDestroy(ctx)


@pytest.fixture(scope="module")
def shared_context():
    """One context for a whole module of tests that leave it healthy."""
    from cuda.bindings import driver
    from helpers.device import check

    check(driver.cuInit(0))
    ctx = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
    yield ctx
    check(driver.cuCtxDestroy(ctx))
