"""Fixtures of the tests between processes."""

import warnings

import pytest
from cuda.core import Device, DeviceMemoryResource
from cuda.core._utils.cuda_utils import reset_fork_warning


@pytest.fixture(scope="module")
def device():
    """The first device; skips the tests where its memory cannot be shared as file descriptors."""
    device = Device(0)
    device.set_current()
    if not device.properties.memory_pools_supported or not device.properties.mempool_supported_handle_types & 1:
        pytest.skip("needs memory pools that are shared as file descriptors")
    return device


@pytest.fixture
def mr(device):
    """A memory resource whose memory can be shared."""
    mr = DeviceMemoryResource(device, {"ipc_enabled": True})
    yield mr
    mr.close()


@pytest.fixture(autouse=True)
def _no_fork_warning():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork.*")
        yield
    reset_fork_warning()
