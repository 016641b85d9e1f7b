"""Fixtures of the tests of launches."""

import pytest

from helpers.echo import Echo


@pytest.fixture(scope="module")
def echo():
    """Kernels that store the bytes of their parameters."""
    return Echo()
