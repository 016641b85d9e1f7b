"""Kernels compiled with -G, whose functions are calls and whose lanes diverge more; on both devices."""

import time

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


def test_barrier_of_a_block_takes_no_sleep_per_lane(module):
    threads, rounds = 96, 5
    out = DeviceArray(np.zeros(threads, np.int32))
    start = time.monotonic()
    module.launch("exchange", 1, threads, out, np.int32(rounds))
    synchronize()
    elapsed = time.monotonic() - start
    want = np.arange(threads, dtype=np.int32)
    for _ in range(rounds):
        want = want + np.roll(want, -1)
    np.testing.assert_array_equal(out.get(), want)
    assert elapsed < 1
