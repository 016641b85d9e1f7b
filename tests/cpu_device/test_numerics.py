"""Arithmetic, compared with results of an NVIDIA GPU (tests/golden/gpu.npz, see golden/record_numerics.py) and with
NumPy.
"""

import numpy as np
import pytest

from helpers import TESTS
from helpers.device import DeviceArray, Module, compute_capability, synchronize
from helpers.numeric_cases import CASES, F32, F64, I32, I64, run

pytestmark = pytest.mark.usefixtures("shared_context")
_GOLDEN = TESTS / "golden" / "gpu.npz"
GOLDEN = np.load(_GOLDEN)


def bits(values):
    """The bits of the values, with one representation for NaN: PTX leaves payloads unspecified."""
    if values.dtype.kind != "f":
        return values
    out = values.view(f"u{values.dtype.itemsize}").copy()
    out[np.isnan(values)] = np.iinfo(out.dtype).max
    return out


def bfloat_bits(values):
    """As `bits`, for bfloat16 in 16-bit integers."""
    out = values.copy()
    out[(values & 0x7FFF) > 0x7F80] = 0xFFFF
    return out


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_results_match_a_gpu(case):
    major, minor = compute_capability()
    if case.arch > 10 * major + minor:
        pytest.skip(f"the kernel needs compute capability {case.arch / 10}")
    have, want = run(case), GOLDEN[case.id]
    to_bits = bfloat_bits if case.kernel.startswith("bf16") else bits
    for row in set(range(case.rows)) - set(case.skip):
        if row in case.exact:
            np.testing.assert_array_equal(to_bits(have[row]), to_bits(want[row]), err_msg=f"row {row}")
        elif case.kernel == "bf16_ops":
            # Eight bits of mantissa: one unit in the last place.
            off = np.abs(bfloat_bits(have[row]).astype(int) - bfloat_bits(want[row]).astype(int))
            assert off.max() <= 1, f"row {row}: {off.max()} units in the last place"
        else:
            np.testing.assert_allclose(
                have[row].astype(float), want[row].astype(float), case.rtol, case.atol, True, err_msg=f"row {row}"
            )


@pytest.mark.parametrize(
    "dtype, name",
    [(np.float32, "zip<float>"), (np.float64, "zip<double>"), (np.int32, "zip<int>"), (np.int64, "zip<long long>")],
)
def test_basic_arithmetic_matches_numpy(dtype, name):
    a, b = {"f4": F32, "f8": F64, "i4": I32, "i8": I64}[np.dtype(dtype).str[1:]]
    if np.dtype(dtype).kind == "i":
        b = np.where((b == 0) | (b == -1), 3, b).astype(dtype)
    module = Module.from_file("elementwise.cu", names=[name])
    da, db, out = DeviceArray(a), DeviceArray(b), DeviceArray(np.zeros((4, len(a)), dtype))
    module.launch(name, 2, 128, da, db, out, np.int32(len(a)))
    synchronize()
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind == "f":
            quotient = a / b
        else:  # C++ rounds towards zero
            quotient = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b)]
            quotient = np.array(quotient, dtype)
        want = np.stack([a + b, a - b, a * b, quotient])
    np.testing.assert_array_equal(bits(out.get()), bits(want.astype(dtype)))


@pytest.mark.parametrize(
    "name, function, dtype",
    [
        ("transform<Square, float>", lambda x: x * x, np.float32),
        ("transform<Negate, double>", lambda x: -x, np.float64),
        ("transform<AddOne, int>", lambda x: x + 1, np.int32),
    ],
)
def test_templates_match_numpy(name, function, dtype):
    a = {np.float32: F32, np.float64: F64, np.int32: I32}[dtype][0]
    module = Module.from_file("elementwise.cu", names=[name])
    x, out = DeviceArray(a), DeviceArray(np.zeros_like(a))
    module.launch(name, 2, 128, x, out, np.int32(len(a)))
    synchronize()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bits(out.get()), bits(function(a)))


@pytest.mark.parametrize(
    "name, source, target",
    [("convert<signed char, double>", np.int8, np.float64), ("convert<unsigned short, float>", np.uint16, np.float32)],
)
def test_widening_conversions_match_numpy(name, source, target):
    a = np.arange(256).astype(source) if source == np.int8 else np.arange(0, 65536, 17).astype(source)
    module = Module.from_file("elementwise.cu", names=[name])
    x, out = DeviceArray(a), DeviceArray(np.zeros(len(a), target))
    module.launch(name, (len(a) + 127) // 128, 128, x, out, np.int32(len(a)))
    synchronize()
    np.testing.assert_array_equal(out.get(), a.astype(target))


@pytest.mark.parametrize(
    "name, source, target",
    [("convert<float, unsigned char>", np.float32, np.uint8), ("convert<double, int>", np.float64, np.int32)],
)
def test_narrowing_conversions_match_numpy(name, source, target):
    low, high = np.iinfo(target).min, np.iinfo(target).max
    a = np.array([0, 0.4, 1.9, -0.9, low, high, 17.5], source)
    module = Module.from_file("elementwise.cu", names=[name])
    x, out = DeviceArray(a), DeviceArray(np.zeros(len(a), target))
    module.launch(name, 1, 128, x, out, np.int32(len(a)))
    synchronize()
    np.testing.assert_array_equal(out.get(), np.trunc(a).astype(target))
