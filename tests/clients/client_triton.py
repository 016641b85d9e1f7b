"""Triton: its kernels on our streams and memory, and on the CPU device, whose `ptxas` makes the cubins.

Without PyTorch, Triton launches on the default stream, and takes any object with `data_ptr()` and `dtype` as a pointer.
"""

import contextlib
import io
import os
import tempfile

import arrays
import numpy as np
from checks import Skip, check, finish, need, need_gpu, on_cpu_device

# Cubins of other runs and devices are not used.
CACHE = tempfile.TemporaryDirectory(prefix="cupyrite-triton-")
os.environ["TRITON_CACHE_DIR"] = CACHE.name
RANDOM = np.random.default_rng(36)


class Pointer:
    """What Triton accepts as a pointer: an object with `data_ptr()` and `dtype`."""

    def __init__(self, address, dtype):
        self.address, self.dtype = address, dtype

    def data_ptr(self):
        return self.address


def modules():
    torch, triton = need("torch", "triton")
    need_gpu("PyTorch contains NVIDIA's CUDA runtime")
    if not torch.cuda.is_available():
        raise Skip("PyTorch, which Triton uses, finds no GPU")
    arrays.device()
    return torch, triton


def kernel():
    import triton
    import triton.language as tl

    # Triton reads the source of the function and resolves `tl` in the globals of its module.
    globals()["tl"] = tl
    return triton.jit(add_one)


def add_one(a, b, n, BLOCK: "tl.constexpr"):  # noqa: F821
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # noqa: F821
    tl.store(b + at, tl.load(a + at, mask=at < n) + 1, mask=at < n)  # noqa: F821


@check
def a_kernel_of_Triton_runs_on_a_stream_of_ours():
    torch, _ = modules()
    ours = arrays.device().create_stream()
    a, b = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.ExternalStream(int(ours.handle))):
        arrays.late(ours, a.data_ptr(), 1000)
        kernel()[(8,)](a, b, 1000, BLOCK=128)
    ours.sync()
    assert bool((b == 4).all())


@check
def a_kernel_of_Triton_runs_on_memory_of_ours():
    torch, _ = modules()
    a = arrays.Array(np.arange(1000, dtype=np.float32))
    b = arrays.Array(np.zeros(1000, dtype=np.float32))
    kernel()[(8,)](Pointer(a.pointer, torch.float32), Pointer(b.pointer, torch.float32), 1000, BLOCK=128)
    torch.cuda.synchronize()
    assert (b.get() == np.arange(1000) + 1).all()


@check
def a_cubin_of_Triton_is_launched_by_cuda_core():
    from cuda.core import LaunchConfig, ObjectCode, launch

    torch, _ = modules()
    a, b = torch.arange(1000, dtype=torch.float32, device="cuda"), torch.zeros(1000, device="cuda")
    compiled = kernel()[(8,)](a, b, 1000, BLOCK=128)
    b.zero_()
    torch.cuda.synchronize()
    import ctypes

    code = ObjectCode.from_cubin(compiled.asm["cubin"])
    stream = arrays.device().create_stream()
    config = LaunchConfig(grid=8, block=compiled.metadata.num_warps * 32, shmem_size=compiled.metadata.shared)
    # Triton adds two pointers to scratch memory, which this kernel does not use.
    arguments = (a.data_ptr(), b.data_ptr(), ctypes.c_int(1000), 0, 0)
    launch(stream, config, code.get_kernel(compiled.metadata.name), *arguments)
    stream.sync()
    assert bool((b == a + 1).all())


def kernels():
    """The module with the kernels."""
    need("triton")
    arrays.device()
    import triton_kernels

    return triton_kernels


class Memory(arrays.Array):
    """An array in device memory, as Triton's pointers are. `dtype`: Triton's name of the type, if it is not NumPy's."""

    #: Arrays that a kernel may still use.
    live = []

    def __init__(self, values, dtype=None):
        super().__init__(values)
        self.dtype = dtype or self.values.dtype.name
        self.live.append(self)

    def data_ptr(self):
        return self.pointer

    def get(self):
        found = super().get()
        self.live.clear()
        return found


def zeros(*shape, dtype=np.float32):
    return Memory(np.zeros(shape, dtype))


def normal(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def near(found, expected, tolerance):
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def bfloat16(values):
    """The upper halves of floats, and the values that they stand for."""
    halves = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return halves, (halves.astype(np.uint32) << 16).view(np.float32)


def float8(*shape):
    """Bytes of `float8_e4m3fn` between 0.5 and 2, and the values that they stand for."""
    bytes_ = RANDOM.integers(0x30, 0x40, shape).astype(np.uint8)
    return bytes_, (1 + (bytes_ & 7) / 8) * 2.0 ** ((bytes_ >> 3) - 7.0)


def quiet():
    """Triton prints PTX that is refused."""
    return contextlib.redirect_stdout(io.StringIO())


@check
def cubins_come_from_the_ptxas_of_the_device():
    x, y, out = normal(1000), normal(1000), zeros(1000)
    compiled = kernels().add[(8,)](Memory(x), Memory(y), out, 1000, BLOCK=128)
    assert (out.get() == x + y).all()
    assert 0 < compiled.n_regs <= 255 and compiled.n_spills == 0
    if on_cpu_device():
        from triton import knobs

        assert knobs.nvidia.ptxas.path == os.environ["TRITON_PTXAS_PATH"]
        assert compiled.asm["ptx"].encode() in compiled.asm["cubin"]


@check
def the_messages_of_ptxas_reach_the_user():
    module = kernels()
    from triton.runtime.errors import PTXASError

    try:
        with quiet():
            module.invalid[(1,)](zeros(1, dtype=np.int32))
    except PTXASError as error:
        assert "q32" in str(error) and "; error   : " in str(error)
    else:
        raise AssertionError("an invalid instruction was accepted")


@check
def softmax():
    x, out = normal(16, 300), zeros(16, 300)
    kernels().softmax[(16,)](Memory(x), out, 300, BLOCK=512)
    powers = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    near(out.get(), powers / powers.sum(1, keepdims=True), 1e-5)


@check
def layer_norm():
    x, weight, bias, out = normal(16, 300), normal(300), normal(300), zeros(16, 300)
    kernels().layer_norm[(16,)](Memory(x), Memory(weight), Memory(bias), out, 300, 1e-5, BLOCK=512)
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    near(out.get(), exact * weight + bias, 1e-4)


@check
def reductions():
    x = RANDOM.uniform(0.9, 1.1, 256).astype(np.float32)
    product, place, counts = zeros(1), zeros(1, dtype=np.int32), zeros(16, dtype=np.int32)
    kernels().reductions[(1,)](Memory(x), product, place, counts, BLOCK=256, BINS=16)
    near(product.get(), np.prod(x.astype(np.float64)), 1e-4)
    assert place.get()[0] == x.argmax()
    assert (counts.get() == np.bincount((x * 16).astype(np.int32) % 16, minlength=16)).all()


@check
def scan():
    x, out = RANDOM.integers(0, 9, 1024).astype(np.int32), zeros(1024, dtype=np.int32)
    kernels().scan[(1,)](Memory(x), out, BLOCK=1024)
    assert (out.get() == np.cumsum(x)).all()


@check
def sort():
    x, out = normal(256), zeros(256)
    kernels().sort[(1,)](Memory(x), out, BLOCK=256)
    assert (out.get() == np.sort(x)).all()


@check
def gather_and_transpose():
    x, out = normal(64, 64), zeros(64, 64)
    index = RANDOM.integers(0, 64, (64, 64)).astype(np.int32)
    module = kernels()
    refused_is_skipped(lambda: module.gather_and_transpose[(1,)](Memory(x), Memory(index), out, N=64))
    assert (out.get() == np.take_along_axis(x.T, index, 1)).all()


@check
def atomic_operations_and_locks():
    x, lock, total = RANDOM.integers(0, 99, 2048).astype(np.int32), zeros(1, dtype=np.int32), zeros(2, dtype=np.int32)
    kernels().locked_sum[(16,)](lock, total, Memory(x), BLOCK=128)
    assert (total.get() == x.sum()).all()


@check
def mathematical_functions():
    from math import erf

    x, out = normal(256), zeros(256)
    kernels().mathematics[(1,)](Memory(x), out, BLOCK=256)
    exact = x.astype(np.float64)
    near(out.get(), np.vectorize(erf)(exact) + np.sin(exact) * np.exp2(exact) + 1 / np.sqrt(exact**2 + 1), 1e-5)


@check
def narrow_types():
    module, values, out = kernels(), normal(256), zeros(256)
    module.halve[(1,)](Memory(values.astype(np.float16)), out, BLOCK=256)
    assert (out.get() == values.astype(np.float16) * np.float32(0.5)).all()
    halves, exact = bfloat16(values)
    module.halve[(1,)](Memory(halves, "bfloat16"), out, BLOCK=256)
    assert (out.get() == exact / 2).all()


@check
def tensor_descriptors():
    module = kernels()
    import triton

    scratch = []

    def allocate(size, alignment, stream):
        scratch.append(zeros(size, dtype=np.uint8))
        return scratch[-1]

    triton.set_allocator(allocate)
    x, out = normal(64, 96), zeros(64, 96)
    refused_is_skipped(lambda: module.copy_tiles[(2, 3)](Memory(x), out, 64, 96, TILE=32))
    assert (out.get() == x).all()


def refused_is_skipped(launch):
    """Skips if the CPU device has no implementation of an instruction of the kernel."""
    from triton.runtime.errors import PTXASError

    try:
        with quiet():
            launch()
    except PTXASError as error:
        _, found, rest = str(error).partition("has no implementation of ")
        if not found:
            raise
        raise Skip(f"the CPU device: no {rest.partition(' (')[0]}") from None


def product(a, b, exact, tolerance, precision="tf32", out=np.float32, **options):
    """Multiplies matrices of 64 rows, 128 columns and an inner size of 64, and compares the result."""
    result = zeros(64, 128, dtype=out)
    options |= dict(ROWS=32, COLUMNS=64, INNER=32, PRECISION=precision)
    module = kernels()
    refused_is_skipped(lambda: module.matmul[(2, 2)](a, b, result, 64, 128, 64, **options))
    near(result.get(), exact, tolerance)


def products(dtype, tolerance, **options):
    a, b = normal(64, 64, dtype=dtype), normal(64, 128, dtype=dtype)
    product(Memory(a), Memory(b), a.astype(np.float64) @ b.astype(np.float64), tolerance, **options)


@check
def matrix_products_of_float16():
    products(np.float16, 1e-3)
    products(np.float16, 1e-3, num_stages=4, num_warps=8)


@check
def matrix_products_of_float16_summed_in_float16():
    products(np.float16, 5e-2, out=np.float16)


@check
def matrix_products_of_bfloat16():
    (a, exact_a), (b, exact_b) = bfloat16(normal(64, 64)), bfloat16(normal(64, 128))
    product(Memory(a, "bfloat16"), Memory(b, "bfloat16"), exact_a.astype(np.float64) @ exact_b, 1e-3)


@check
def matrix_products_of_float32():
    products(np.float32, 1e-4, precision="ieee")


@check
def matrix_products_of_tf32():
    products(np.float32, 5e-2, precision="tf32")
    products(np.float32, 1e-4, precision="tf32x3")


@check
def matrix_products_of_float64():
    products(np.float64, 1e-12, precision="ieee", out=np.float64)


@check
def matrix_products_of_float8():
    kernels()
    if arrays.device().compute_capability < (8, 9):
        raise Skip("needs compute capability 8.9")
    (a, exact_a), (b, exact_b) = float8(64, 64), float8(64, 128)
    product(Memory(a, "float8_e4m3fn"), Memory(b, "float8_e4m3fn"), exact_a @ exact_b, 1e-2)


@check
def matrix_products_of_int8():
    a, b = (RANDOM.integers(-99, 99, shape).astype(np.int8) for shape in ((64, 64), (64, 128)))
    product(Memory(a), Memory(b), a.astype(np.int64) @ b.astype(np.int64), 0, out=np.int32)


@check
def attention():
    length, width = 128, 64
    q, k, v = (normal(length, width, dtype=np.float16) for _ in range(3))
    out, scale = zeros(length, width), width**-0.5
    module, grid = kernels(), (length // 32,)
    sizes = dict(WIDTH=width, ROWS=32, COLUMNS=32)
    refused_is_skipped(lambda: module.attention[grid](Memory(q), Memory(k), Memory(v), out, scale, length, **sizes))
    scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
    powers = np.exp(scores - scores.max(1, keepdims=True))
    near(out.get(), powers / powers.sum(1, keepdims=True) @ v.astype(np.float64), 1e-2)


if __name__ == "__main__":
    finish()
