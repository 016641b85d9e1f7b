"""Fixtures of the tests of cuda.core."""

import pytest
from cuda.core import Device


@pytest.fixture(scope="module")
def device():
    """The first device. It is current in every test that uses it."""
    device = Device(0)
    device.set_current()
    return device


@pytest.fixture(autouse=True)
def _device_is_current(request):
    if "device" in request.fixturenames:
        request.getfixturevalue("device").set_current()


@pytest.fixture
def stream(device):
    """A stream of the device; its work completes before the next test."""
    stream = device.create_stream()
    yield stream
    if not stream.is_closed:
        stream.sync()
        stream.close()
