"""128-bit integers of NVRTC, which consist of carry chains; on both devices."""

import random

import numpy as np
import pytest

from helpers.device import DeviceArray, Module, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")

WIDTH = 1 << 128
RESULTS = ["u + v", "u - v", "u * v", "-u", "u / v", "u % v", "s / t", "s % t", "u < v", "s < t"]


def signed(u):
    return u - WIDTH if u >> 127 else u


def truncated(s, t):
    """Quotient and remainder of C++: rounded towards zero."""
    q = abs(s) // abs(t) * (1 if (s < 0) == (t < 0) else -1)
    return q, s - q * t


def pairs():
    """Pairs of unsigned numbers; the second is not zero."""
    rng = random.Random(128)
    special = {p + d for p in (0, 1 << 31, 1 << 32, 1 << 63, 1 << 64, 1 << 96, 1 << 127) for d in (-2, -1, 0, 1, 2)}
    special = sorted({v % WIDTH for v in special})
    yield from ((u, v) for u in special for v in special if v)
    for _ in range(4000):
        u, v = rng.getrandbits(rng.randint(1, 128)), max(rng.getrandbits(rng.randint(1, 128)), 1)
        yield u, v
        # Quotients near integers.
        yield (u // v * v + rng.randint(-1, 1)) % WIDTH, v


def words(numbers):
    return np.array([(u & (1 << 64) - 1, u >> 64) for u in numbers], np.uint64)


def results(u, v):
    s, t = signed(u), signed(v)
    quotient, remainder = truncated(s, t)
    row = [u + v, u - v, u * v, -u, u // v, u % v, quotient, remainder, u < v, s < t]
    return [r % WIDTH for r in row]


def test_int128_arithmetic_matches_python():
    cases = list(pairs())
    u, v = (DeviceArray(words(column)) for column in zip(*cases))
    out = DeviceArray(np.zeros((len(RESULTS), len(cases), 2), np.uint64))
    module = Module.from_file("int128.cu", options=["--device-int128"], kind="ptx")
    module.launch("int128_ops", (len(cases) + 127) // 128, 128, u, v, out, np.int32(len(cases)))
    synchronize()
    want = [results(*case) for case in cases]
    for row, have, expected in zip(RESULTS, out.get(), zip(*want)):
        for case, (low, high), number in zip(cases, have.tolist(), expected):
            assert low + (high << 64) == number, f"{row} for u, v = {case}"
