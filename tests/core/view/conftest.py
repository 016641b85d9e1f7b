"""Fixtures of the tests of views."""

import pytest


@pytest.fixture
def buffer(device, stream):
    """A small buffer: room for 3 x 4 float64 or 24 float32."""
    buffer = device.allocate(96, stream=stream)
    yield buffer
    buffer.close()
