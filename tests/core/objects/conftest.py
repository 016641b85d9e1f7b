"""Fixtures of the tests of devices, streams and events."""

import pytest
from cuda.core import DeviceMemoryResource


@pytest.fixture
def resource(device):
    """The resource of the device's default pool."""
    return DeviceMemoryResource(device)
