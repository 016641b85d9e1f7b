"""Fixtures of the tests of memory."""

import pytest
from cuda.core import DeviceMemoryResource


@pytest.fixture
def pool(device):
    """A pool for one test, so that its statistics are the test's."""
    return DeviceMemoryResource(device, {})
