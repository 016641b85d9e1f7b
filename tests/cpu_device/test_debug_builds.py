"""Kernels compiled with -G, whose functions are calls and whose lanes diverge more; on both devices."""

import numpy as np
import pytest

from helpers.device import DeviceArray, Module, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")


@pytest.fixture(scope="module", params=[[], ["-G"]], ids=["optimized", "debug"])
def module(request, shared_context):
    return Module.from_file("debug_build.cu", options=request.param, kind="ptx")


def test_coalesced_threads_of_a_function_called_in_two_branches(module):
    out = DeviceArray(np.zeros((64, 2), np.uint32))
    module.launch("branches", 1, 64, out)
    synchronize()
    want = [[10 if n % 32 < 10 else 122, 32] for n in range(64)]
    assert out.get().tolist() == want
