"""Warp collectives of one warp with several member masks and in several branches; on both devices."""

import numpy as np
import pytest

from helpers.device import KERNELS, DeviceArray, Module, compile_cuda, synchronize

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


@pytest.fixture(scope="module")
def branches(shared_context):
    code, lowered = compile_cuda((KERNELS / "warp_branches.cu").read_text(), kind="ptx")
    # 4 + 2 + 2 + 2: the compiler has not joined the branches.
    assert code.count(b"vote.sync.ballot") == 10
    return Module(code, lowered)


def warps(keys, values):
    """For each warp: its first index, the keys and the values."""
    for first in range(0, N, 32):
        yield first, keys[first : first + 32], values[first : first + 32].astype(np.int64)


def run_branches(module, kernel, keys, values, rows):
    out = DeviceArray(np.zeros((rows, N), np.uint32))
    launch(module, kernel, keys, DeviceArray(values), out)
    return out.get()


def bits(wanted):
    return sum(1 << int(lane) for lane in np.flatnonzero(wanted))


def as_words(rows):
    """Rows of integers modulo 2**32."""
    return np.array([[int(v) % 2**32 for v in row] for row in rows], np.uint32)


def test_nested_branches_execute_one_collective(branches):
    keys, values = keys_and_values()
    have = run_branches(branches, "nested", keys, values, 7)
    lane = np.arange(32)
    for first, k, v in warps(keys, values):
        branch = k & 3
        # C++ truncates towards zero.
        rem = lambda d: np.fmod(v, d)  # noqa: E731
        ballot = bits(np.choose(branch, [v == v, v & 2 == 0, v > 50, v & 1 == 1]))
        matched = np.choose(branch, [rem(4), rem(3), 2, rem(5)])
        total = np.choose(branch, [1, 2 * v, -v, v]).sum()
        moved = np.choose(branch, [v + 3000, v + 1000, v + 2000, v])
        to = np.choose(branch, [31, 2, 16, 1]) ^ lane
        source = np.choose(branch, [lane + 1, 3, 30, v]) & 31
        same = not ((branch == 1) & (v < 0)).any()
        any_ = np.choose(branch, [v == 13, v > 97, v != v, v > 90]).any()
        want = [
            [ballot] * 32,
            [bits(matched == m) for m in matched],
            [total] * 32,
            moved[to],
            moved[source],
            [2**32 if same else 0] * 32,
            [any_] * 32,
        ]
        np.testing.assert_array_equal(have[:, first : first + 32], as_words(want), str(first))


def test_groups_execute_one_collective_in_two_branches(branches):
    keys, values = keys_and_values()
    have = run_branches(branches, "groups_in_branches", keys, values, 3)
    for i, (_, members) in enumerate(groups(keys)):
        v = values[members]
        odd = v & 1 == 1
        ballot = mask(members[np.where(odd, v & 2, v & 4) != 0])
        shown = np.where(odd, v, v + 500)
        want = [ballot, np.where(odd, v, v + 40).max(), shown[0 if values[i] & 1 else -1]]
        assert have[:, i].tolist() == as_words([want])[0].tolist(), i


def test_halves_of_a_warp_with_masks_of_their_own(branches):
    keys, values = keys_and_values()
    have = run_branches(branches, "halves", keys, values, 2)
    for first in range(0, N, 16):
        k, v = keys[first : first + 16], values[first : first + 16]
        ballot = bits(np.where(k & 1, v & 1, v > 50)) << (first & 16)
        want = [[ballot] * 16, [np.where(k & 2, v, 3 * v).sum()] * 16]
        np.testing.assert_array_equal(have[:, first : first + 16], as_words(want), str(first))


def test_branches_without_the_lanes_that_exit(branches):
    keys, values = keys_and_values()
    have = run_branches(branches, "with_exited_lanes", keys, values, 2)
    for first, k, v in warps(keys, values):
        odd, live = v & 1 == 1, k > 1
        ballot = bits(live & (np.where(odd, v & 2, v & 4) != 0))
        total = np.where(odd, v, 2 * v)[live].sum()
        want = [np.where(live, ballot, 0), np.where(live, total, 0)]
        np.testing.assert_array_equal(have[:, first : first + 32], as_words(want), str(first))


def test_lanes_of_two_loops_execute_one_collective(branches):
    keys, values = keys_and_values()
    have = run_branches(branches, "in_loops", keys, values, 1)
    for first, k, v in warps(keys, values):
        h = np.zeros(32, np.int64)
        for n in range(10):
            total = np.where(n < k, v, n).sum()
            shown = np.where(n < k, v, -v)
            h = (3 * h + total + shown[np.minimum(np.arange(32) + 1, 31)]) % 2**32
        np.testing.assert_array_equal(have[0, first : first + 32], h, str(first))


def test_barriers_of_the_warp_order_two_branches(branches):
    keys, values = keys_and_values()
    have = run_branches(branches, "exchange", keys, values, 2)
    lane = np.arange(32)
    for first, k, v in warps(keys, values):
        odd = k & 1 == 1
        one, two = np.where(odd, v, v + 1000), np.where(odd, 7 * v, v + 2000)
        want = [one[lane ^ np.where(odd, 1, 16)], two[lane ^ np.where(odd, 31, 2)]]
        np.testing.assert_array_equal(have[:, first : first + 32], as_words(want), str(first))
