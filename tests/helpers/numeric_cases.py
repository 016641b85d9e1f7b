"""Kernels of the form `kernel(a, [b,] out, n)` with one row of n results per expression, and their inputs.

The inputs are deterministic: results of the CPU device and of a GPU are compared bit for bit. `python
tests/golden/record_numerics.py` records those of a GPU in `tests/golden/`; `cpu_device/test_numerics.py` compares every
device with them.
"""

from dataclasses import dataclass, field

import numpy as np

N = 256
RNG_SEED = 20261121


def rng(tag):
    return np.random.default_rng([RNG_SEED, *tag.encode()])


def floats(tag, dtype, n=N, low=-40.0, high=40.0):
    """Special values, then magnitudes from tiny to huge, then an ordinary range."""
    info = np.finfo(dtype)
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        -1.5,
        2.5,
        -2.5,
        2.0**31,
        -(2.0**31),
        2.0**63,
        255.0,
        256.0,
        65535.5,
        np.inf,
        -np.inf,
        np.nan,
        info.max,
        -info.max,
        info.tiny,
        -info.tiny,
        info.smallest_subnormal,
        info.tiny * 0.75,
        info.eps,
        1 + info.eps,
        1 - info.epsneg,
        3.0,
        1 / 3,
        1e-3,
        -7.0,
    ]
    r = rng(tag)
    # Not `exp2`, whose last bit depends on the processor.
    exponents, fractions = np.divmod(r.uniform(info.minexp / 2, info.maxexp / 2, n // 4), 1)
    wide = np.ldexp(1 + fractions, exponents.astype(int)) * r.choice([-1, 1], n // 4)
    rest = r.uniform(low, high, n - len(special) - len(wide))
    with np.errstate(over="ignore"):
        return np.concatenate([special, wide, rest]).astype(dtype)


def ordinary(tag, dtype, n=N, low=-40.0, high=40.0):
    """An ordinary range without special values, for functions whose error bounds hold there."""
    return rng(tag).uniform(low, high, n).astype(dtype)


def integers(tag, dtype, n=N):
    """Corner values, small values, then random bits."""
    info = np.iinfo(dtype)
    corner = [0, 1, 2, 3, 7, 31, 32, 63, 64, 100, info.max, info.min, info.max - 1, info.max // 2, 0x7F, 0x80, 0xFF]
    corner += [-1, -2, -32, info.min + 1] if info.min < 0 else [info.max // 3] * 4
    r = rng(tag)
    small = r.integers(0, 100, n // 4)
    rest = r.integers(info.min, info.max, n - len(corner) - len(small), dtype=dtype, endpoint=True)
    return np.concatenate([np.array(corner).astype(dtype), small.astype(dtype), rest])


def halves(tag, n=N):
    """float16 values, special values included."""
    special = [0.0, -0.0, 1.0, -1.0, 65504.0, -65504.0, 6e-8, 6.1e-5, np.inf, -np.inf, np.nan, 0.333, 2047.0, 2049.0]
    return np.concatenate([special, rng(tag).normal(0, 4, n - len(special))]).astype(np.float16)


def bfloats(tag, n=N):
    """bfloat16 values as 16-bit integers."""
    f = np.concatenate(
        [[0.0, -0.0, 1.0, -1.0, 3e38, 1e-39, np.inf, -np.inf, np.nan, 0.333], rng(tag).normal(0, 4, n - 10)]
    )
    return (f.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@dataclass
class Case:
    """One kernel: its inputs, its rows, and the rows that must agree bit for bit on every device."""

    file: str
    kernel: str
    inputs: list
    rows: int
    dtype: type
    #: Rows computed by instructions that the PTX ISA defines exactly; the others are library or `.approx` functions.
    exact: range | list = field(default_factory=list)
    #: Allowed distance from the golden value for the other rows, relative to its magnitude.
    rtol: float = 0.0
    atol: float = 0.0
    options: tuple = ()
    #: Elements of `inputs[0]` that one thread handles.
    per_thread: int = 1
    names: tuple = ()
    #: Rows in which the recorded GPU's assembler departs from the PTX ISA (a merged half lost in an emulated `vmin`).
    skip: tuple = ()
    #: Smallest compute capability that has the kernel.
    arch: int = 0

    @property
    def id(self):
        return self.kernel + "".join("_" + o.strip("-") for o in self.options)


def every(rows):
    return list(range(rows))


I32, I64 = (
    (integers("i32a", np.int32), integers("i32b", np.int32)),
    (integers("i64a", np.int64), integers("i64b", np.int64)),
)
F32, F64 = (
    (floats("f32a", np.float32), floats("f32b", np.float32)),
    (floats("f64a", np.float64), floats("f64b", np.float64)),
)
M32 = (ordinary("m32a", np.float32), ordinary("m32b", np.float32))
M64 = (ordinary("m64a", np.float64), ordinary("m64b", np.float64))
U32 = (integers("u32a", np.uint32), np.roll(integers("u32b", np.uint32), 5))
for pair in (I32, I64, F32, F64):
    pair[1][:] = np.roll(pair[1], 11)

CASES = [
    Case("int64.cu", "int64_ops", [*I64], 34, np.int64, every(34)),
    Case("int64.cu", "int32_ops", [*I32], 40, np.int32, every(40)),
    Case("int64.cu", "mix", [I64[0].view(np.uint64)], 2, np.uint64, every(2)),
    Case("math_f32.cu", "rounding_f32", [*F32], 25, np.float32, every(24), rtol=3e-7),
    Case("math_f64.cu", "rounding_f64", [*F64], 24, np.float64, every(24)),
    Case("math_f32.cu", "convert_f32", [F32[0]], 19, np.int32, every(19)),
    Case("math_f64.cu", "convert_f64", [F64[0]], 17, np.int64, every(17)),
    Case("math_f32.cu", "math_f32", [*M32], 42, np.float32, [19, *range(27, 42)], rtol=2e-6, atol=2e-6),
    Case("math_f64.cu", "math_f64", [*M64], 42, np.float64, [19, *range(27, 42)], rtol=2e-15, atol=1e-15),
    Case("math_f32.cu", "approx_f32", [*M32], 16, np.float32, [10], rtol=2e-5, atol=2e-5),
    Case("math_f32.cu", "math_f32", [*M32], 42, np.float32, [], rtol=5e-3, atol=2e-3, options=("--use_fast_math",)),
    Case("inline_ptx.cu", "bits", [*U32], 35, np.uint32, every(35)),
    Case("video.cu", "packed", [*U32], 29, np.uint32, every(29), skip=(23,)),
    Case(
        "half_bf16.cu",
        "half_ops",
        [halves("h1"), np.roll(halves("h2"), 7)],
        26,
        np.float16,
        [k for k in range(26) if k not in (3, 10, 11, 12, 13, 14, 15)],
        rtol=2e-3,
        atol=2e-3,
    ),
    Case(
        "half_bf16.cu",
        "half2_ops",
        [halves("h3"), np.roll(halves("h4"), 7)],
        13,
        np.float16,
        [k for k in range(13) if k not in (3, 12)],
        rtol=2e-3,
        atol=2e-3,
        per_thread=2,
    ),
    Case(
        "half_bf16.cu",
        "bf16_ops",
        [bfloats("b1"), np.roll(bfloats("b2"), 7)],
        14,
        np.uint16,
        [k for k in range(14) if k not in (3, 12)],
        arch=80,
    ),
    Case(
        "half_bf16.cu",
        "bf162_ops",
        [bfloats("b3"), np.roll(bfloats("b4"), 7)],
        5,
        np.uint16,
        every(5),
        per_thread=2,
        arch=80,
    ),
]


def run(case, module=None):
    """Runs a case on the device; returns an array of shape (rows, n)."""
    from helpers.device import DeviceArray, Module, synchronize

    own = module is None
    if own:
        module = Module.from_file(case.file, options=case.options)
    n = len(case.inputs[0]) // case.per_thread
    arrays = [DeviceArray(a) for a in case.inputs]
    out = DeviceArray(np.zeros((case.rows, n * case.per_thread), case.dtype))
    module.launch(case.kernel, (n + 127) // 128, 128, *arrays, out, np.int32(n))
    synchronize()
    result = out.get()
    for array in (*arrays, out):
        array.free()
    if own:
        module.unload()
    return result
