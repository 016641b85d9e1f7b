"""The kernels of kernels.py: inputs, parameters, launch configuration, and how results are compared.

Belongs here: what all sides of the benchmark share. The sources are in kernels/NAME.c, one file for all three languages;
each defines a kernel or function with the name of the file and the same parameters in the same order.
"""

import collections.abc
import dataclasses
import pathlib

import numpy as np

SOURCES = pathlib.Path(__file__).resolve().parent / "kernels"

Block = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Output:
    """An array that the kernel writes. `accumulates`: the kernel adds to it, so that it is set to zero before each run."""

    shape: tuple[int, ...]
    dtype: type
    accumulates: bool = False


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """How far a result may be from that of C.

    An element differs if it is farther than `absolute + relative * |C's element|` from C's element; `share` is the share
    of the elements that may differ.
    """

    relative: float = 0.0
    absolute: float = 0.0
    share: float = 0.0

    def __str__(self):
        if not self.relative and not self.absolute and not self.share:
            return "equal"
        parts = []
        if self.relative or self.absolute:
            parts.append(f"{self.absolute:g} + {self.relative:g} * |C|")
        if self.share:
            parts.append(f"in all but {self.share:.1%} of the elements")
        return " ".join(parts)

    def difference(self, expected, actual):
        """None if `actual` is close enough to C's `expected`; a message otherwise."""
        expected, actual = (array.astype(np.float64).ravel() for array in (expected, actual))
        distance = np.abs(actual - expected)
        # Written so that NaN differs.
        differs = ~(distance <= self.absolute + self.relative * np.abs(expected))
        if np.count_nonzero(differs) <= self.share * differs.size:
            return None
        worst = int(np.argmax(np.where(np.isnan(distance), np.inf, distance)))
        return (
            f"{np.count_nonzero(differs):,} of {differs.size:,} elements differ; element {worst} is {actual[worst]:g}, "
            f"in C {expected[worst]:g}; allowed: {self}"
        )


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel of the benchmark.

    `parameters` lists the names of the kernel's parameters in order. `make_inputs(rng)` returns the input arrays by name.
    `budget` is the allowed ratio to C.
    """

    name: str
    size: str
    grid: Block
    block: Block
    parameters: str
    make_inputs: collections.abc.Callable
    outputs: dict[str, Output]
    scalars: dict[str, np.generic]
    tolerance: Tolerance
    budget: float | None = None

    @property
    def source(self):
        """The file with the kernel in all three languages."""
        return SOURCES / f"{self.name}.c"


def floats(**shapes):
    """A `make_inputs` that returns arrays of floats in [0, 1) with these names and shapes."""
    return lambda random: {name: random.random(shape, dtype=np.float32) for name, shape in shapes.items()}


def options(random):
    """Prices of the shares, strike prices, and years to expiry, of 1 M options."""
    ranges = {"price": (5, 30), "strike": (1, 100), "years": (0.25, 10)}
    return {name: random.uniform(*limits, OPTIONS).astype(np.float32) for name, limits in ranges.items()}


def bodies(random):
    """Bodies in a cube with the edge 2, with masses in [0, 1)."""
    array = random.uniform(-1, 1, (BODIES, 4)).astype(np.float32)
    array[:, 3] = random.random(BODIES)
    return {"bodies": array}


def sparse_rows(random):
    """Rows with 24 to 40 nonzeros."""
    starts = np.zeros(SPARSE_ROWS + 1, dtype=np.uint32)
    starts[1:] = np.cumsum(random.integers(24, 41, SPARSE_ROWS))
    nonzeros = int(starts[-1])
    return {
        "starts": starts,
        "values": random.random(nonzeros, dtype=np.float32),
        "x": random.random(SPARSE_COLUMNS, dtype=np.float32),
    }


M = 1 << 20
MATRIX = 384
GRID = 2048
PIXELS = 512
OPTIONS = M
BODIES = 4096
SPARSE_ROWS, SPARSE_COLUMNS = 1 << 16, 65_521
THREADS = 256

MATRIX_PRODUCT = {
    "parameters": "a b c n",
    "make_inputs": floats(a=(MATRIX, MATRIX), b=(MATRIX, MATRIX)),
    "outputs": {"c": Output((MATRIX, MATRIX), np.float32)},
    "scalars": {"n": np.int32(MATRIX)},
    "tolerance": Tolerance(relative=1e-5),
}

KERNELS = (
    Kernel(
        name="saxpy",
        size="4 M elements",
        grid=(4 * M // THREADS,),
        block=(THREADS,),
        parameters="a x y out n",
        make_inputs=floats(x=4 * M, y=4 * M),
        outputs={"out": Output((4 * M,), np.float32)},
        scalars={"a": np.float32(2.5), "n": np.int32(4 * M)},
        tolerance=Tolerance(relative=1e-6),
        budget=1.5,
    ),
    Kernel(
        name="matmul_tiled",
        size="384 x 384, tiles of 16 x 16",
        grid=(MATRIX // 16, MATRIX // 16),
        block=(16, 16),
        **MATRIX_PRODUCT,
        budget=2,
    ),
    Kernel(
        name="matmul",
        size="384 x 384",
        grid=(MATRIX // 32, MATRIX // 8),
        block=(32, 8),
        **MATRIX_PRODUCT,
        budget=2,
    ),
    Kernel(
        name="reduce",
        size="4 M elements",
        grid=(4 * M // THREADS,),
        block=(THREADS,),
        parameters="x sums n",
        make_inputs=floats(x=4 * M),
        outputs={"sums": Output((4 * M // THREADS,), np.float32)},
        scalars={"n": np.int32(4 * M)},
        tolerance=Tolerance(relative=1e-5),
    ),
    Kernel(
        name="histogram",
        size="4 M bytes, 64 a thread",
        grid=(256,),
        block=(THREADS,),
        parameters="data bins n",
        make_inputs=lambda random: {"data": random.integers(0, 256, 4 * M, dtype=np.uint8)},
        outputs={"bins": Output((256,), np.uint32, accumulates=True)},
        scalars={"n": np.int32(4 * M)},
        tolerance=Tolerance(),
        budget=6,
    ),
    Kernel(
        name="stencil",
        size="2048 x 2048",
        grid=(GRID // 32, GRID // 8),
        block=(32, 8),
        parameters="in out width height rate",
        make_inputs=lambda random: {"in": random.random((GRID, GRID), dtype=np.float32)},
        outputs={"out": Output((GRID, GRID), np.float32)},
        scalars={"width": np.int32(GRID), "height": np.int32(GRID), "rate": np.float32(0.2)},
        tolerance=Tolerance(absolute=1e-6),
        budget=4,
    ),
    Kernel(
        name="mandelbrot",
        size="512 x 512, 256 steps",
        grid=(PIXELS // 32, PIXELS // 8),
        block=(32, 8),
        parameters="steps width height left top step most",
        make_inputs=lambda random: {},
        outputs={"steps": Output((PIXELS, PIXELS), np.int32)},
        scalars={
            "width": np.int32(PIXELS),
            "height": np.int32(PIXELS),
            "left": np.float32(-2),
            "top": np.float32(1.5),
            "step": np.float32(3 / PIXELS),
            "most": np.int32(256),
        },
        # Compilers contract multiplications and additions differently: near the border of the set other steps escape.
        tolerance=Tolerance(share=0.005),
    ),
    Kernel(
        name="black_scholes",
        size="1 M options",
        grid=(OPTIONS // THREADS,),
        block=(THREADS,),
        parameters="price strike years call put rate volatility n",
        make_inputs=options,
        outputs={name: Output((OPTIONS,), np.float32) for name in ("call", "put")},
        scalars={"rate": np.float32(0.02), "volatility": np.float32(0.3), "n": np.int32(OPTIONS)},
        tolerance=Tolerance(absolute=1e-4, relative=1e-5),
    ),
    Kernel(
        name="transpose",
        size="2048 x 2048, tiles of 32 x 33",
        grid=(GRID // 32, GRID // 32),
        block=(32, 8),
        parameters="in out n",
        make_inputs=lambda random: {"in": random.random((GRID, GRID), dtype=np.float32)},
        outputs={"out": Output((GRID, GRID), np.float32)},
        scalars={"n": np.int32(GRID)},
        tolerance=Tolerance(),
    ),
    Kernel(
        name="n_body",
        size="4096 bodies, tiles of 256",
        grid=(BODIES // THREADS,),
        block=(THREADS,),
        parameters="bodies accelerations n softening",
        make_inputs=bodies,
        outputs={"accelerations": Output((BODIES, 4), np.float32)},
        scalars={"n": np.int32(BODIES), "softening": np.float32(0.01)},
        # Sums of 4096 terms with both signs; the largest sum is about 1200.
        tolerance=Tolerance(absolute=0.01, relative=1e-4),
    ),
    Kernel(
        name="scan",
        size="4 M elements, blocks of 256",
        grid=(4 * M // THREADS,),
        block=(THREADS,),
        parameters="x out n",
        make_inputs=floats(x=4 * M),
        outputs={"out": Output((4 * M,), np.float32)},
        scalars={"n": np.int32(4 * M)},
        tolerance=Tolerance(relative=1e-5),
    ),
    Kernel(
        name="spmv",
        size="64 k rows, 24 to 40 nonzeros",
        grid=(SPARSE_ROWS // THREADS,),
        block=(THREADS,),
        parameters="starts values x y rows columns",
        make_inputs=sparse_rows,
        outputs={"y": Output((SPARSE_ROWS,), np.float32)},
        scalars={"rows": np.uint32(SPARSE_ROWS), "columns": np.uint32(SPARSE_COLUMNS)},
        tolerance=Tolerance(relative=1e-5),
    ),
    Kernel(
        name="hash",
        size="1 M keys, 64 rounds",
        grid=(M // THREADS,),
        block=(THREADS,),
        parameters="keys hashes n",
        make_inputs=lambda random: {"keys": random.integers(0, 1 << 32, M, dtype=np.uint32)},
        outputs={"hashes": Output((M,), np.uint32)},
        scalars={"n": np.int32(M)},
        tolerance=Tolerance(),
    ),
)
BY_NAME = {kernel.name: kernel for kernel in KERNELS}
