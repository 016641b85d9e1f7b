"""The fixture that numba-cuda's test classes request and its package does not hold."""

import pytest


@pytest.fixture
def initialize_from_pytest_config(request):
    # Read by `CUDATestCase` when a FileCheck comparison fails.
    request.instance._dump_failed_filechecks = False
