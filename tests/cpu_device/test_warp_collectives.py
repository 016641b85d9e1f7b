"""Warp collectives with several member masks in one warp, compiled by NVRTC; on both devices."""

import numpy as np
import pytest

from helpers.device import DeviceArray, Module, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")

N = 256


@pytest.fixture(scope="module")
def module(shared_context):
    return Module.from_file("warp_groups.cu", options=["--std=c++17"], kind="ptx")


def keys_and_values():
    """Keys 0 to 9: one key in the first warp, random keys in the others."""
    rng = np.random.default_rng(17)
    keys = rng.integers(0, 10, N).astype(np.int32)
    keys[:32] = 7
    return keys, rng.integers(-5, 100, N).astype(np.int32)


def groups(keys):
    """For each lane: its rank in its group, and the indices of the lanes of its warp with the same key."""
    for i in range(N):
        warp = np.arange(i & ~31, (i & ~31) + 32)
        yield i & 31, warp[keys[warp] == keys[i]]


def mask(members):
    return sum(1 << (int(k) & 31) for k in members)


def launch(module, kernel, keys, *rest):
    module.launch(kernel, 2, N // 2, DeviceArray(keys), *rest, np.int32(N))
    synchronize()


def test_groups_found_by_match(module):
    keys, values = keys_and_values()
    out = DeviceArray(np.zeros((10, N), np.uint32))
    launch(module, "by_key", keys, DeviceArray(values), out)
    have = out.get()
    for i, (lane, members) in enumerate(groups(keys)):
        v = values[members]
        odd = members[v & 1 == 1]
        want = [
            mask(members),
            mask(odd),
            (v > 0).all(),
            (v > 50).any(),
            v.sum(),
            v.max(),
            np.bitwise_or.reduce(v),
            v[0],
        ]
        want += [mask(members[v & 1 == values[i] & 1]), mask(members) + lane]
        np.testing.assert_array_equal(
            have[:, i].view(np.int32), np.array(want).astype(np.uint32).view(np.int32), str(i)
        )


def test_groups_whose_lanes_diverge_and_return(module):
    keys, values = keys_and_values()
    values = np.abs(values)
    out = DeviceArray(np.zeros((2, N), np.uint32))
    launch(module, "by_key_diverged", keys, DeviceArray(values), out)
    have = out.get()
    steps = np.array([sum(k * k for k in range(v % 7)) for v in values])
    for i, (_, members) in enumerate(groups(keys)):
        even = members[values[members] & 1 == 0]
        assert have[:, i].tolist() == [steps[members].sum(), 0 if values[i] & 1 else mask(even)]


def test_labeled_and_binary_partitions(module):
    keys, values = keys_and_values()
    out = DeviceArray(np.zeros((6, N), np.int32))
    launch(module, "partitions", keys, DeviceArray(values), out)
    have = out.get()
    for i, (_, members) in enumerate(groups(keys)):
        v = values[members]
        half = v[v & 1 == values[i] & 1]
        rank = members.tolist().index(i)
        assert have[:, i].tolist() == [len(v), rank, v.sum(), v[0], len(half), half.max()]


def test_aggregation_by_key(module):
    keys, _ = keys_and_values()
    counts = DeviceArray(np.zeros(10, np.int32))
    positions = DeviceArray(np.full(N, -1, np.int32))
    launch(module, "aggregate", keys, counts, positions)
    want = np.bincount(keys, minlength=10)
    want[3] = 0
    assert counts.get().tolist() == want.tolist()
    have = positions.get()
    assert (have[keys == 3] == -1).all()
    for key, count in enumerate(want):
        if key != 3:
            assert sorted(have[keys == key].tolist()) == list(range(count))
