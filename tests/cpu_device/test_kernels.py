"""Kernels of every kind, compiled by NVRTC, against NumPy; the same on the CPU device and on a GPU."""

import ctypes

import numpy as np
import pytest

from helpers.device import DeviceArray, Module, check, compute_capability, driver, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")


def rng():
    return np.random.default_rng(7)


def zeros(n, dtype):
    return DeviceArray(np.zeros(n, dtype))


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
@pytest.mark.parametrize("n", [1, 31, 33, 1000, 100_003])
def test_saxpy(n, kind):
    module = Module.from_file("saxpy.cu", options=["--fmad=false"], kind=kind)
    x, y = rng().random((2, n), np.float32)
    dx, dy, out = DeviceArray(x), DeviceArray(y), zeros(n, np.float32)
    module.launch("saxpy", (n + 255) // 256, 256, np.float32(2), dx, dy, out, np.uint64(n))
    synchronize()
    np.testing.assert_array_equal(out.get(), np.float32(2) * x + y)


def test_saxpy_grid_stride_and_vectors():
    module = Module.from_file("saxpy.cu")
    n = 4096
    x, y = rng().random((2, n), np.float32)
    dx, dy, out = DeviceArray(x), DeviceArray(y), zeros(n, np.float32)
    want = (np.float64(3) * x + y).astype(np.float32)
    module.launch("saxpy_stride", 3, 96, np.float32(3), dx, dy, out, np.int32(n))
    synchronize()
    np.testing.assert_array_equal(out.get(), want)
    out.set(np.zeros(n))
    module.launch("saxpy_vec4", n // 4 // 128, 128, np.float32(3), dx, dy, out, np.int32(n // 4))
    synchronize()
    np.testing.assert_array_equal(out.get(), want)


SMALL = np.dtype([("tag", "i1"), ("s", "i2"), ("i", "i4")], align=True)
MIXED = np.dtype([("d", "f8"), ("c", "i1"), ("f", "f4", 3), ("l", "i8")], align=True)


def test_structures_by_value():
    module = Module.from_file("structs.cu")
    out = zeros(17, np.float64)
    small = np.array((-3, -300, 70000), SMALL)
    mixed = np.array((2.5, 7, (1, 2, 3), -(2**40)), MIXED)
    wide = np.arange(8, dtype=np.float32)
    module.launch("by_value", 1, 32, small, mixed, wide, out)
    synchronize()
    assert out.get().tolist() == [-3, -300, 70000, 2.5, 7, 1, 2, 3, -(2.0**40), *range(8)]


def test_structures_by_pointer():
    module = Module.from_file("structs.cu")
    data = np.zeros(100, MIXED)
    data["d"], data["c"], data["l"] = np.arange(100), np.arange(100), np.arange(100)
    source, out = DeviceArray(data), DeviceArray(np.zeros_like(data))
    module.launch("by_pointer", 1, 128, source, out, np.int32(100))
    synchronize()
    have = out.get()
    np.testing.assert_array_equal(have["d"], 2 * data["d"])
    np.testing.assert_array_equal(have["c"], data["c"] + 1)
    np.testing.assert_array_equal(have["f"], np.tile([0, 1, 2], (100, 1)))
    np.testing.assert_array_equal(have["l"], ~data["l"])


def test_linked_list_and_struct_returns():
    module = Module.from_file("structs.cu")
    nodes = DeviceArray(np.zeros(10, np.dtype([("value", "i4"), ("next", "u8")], align=True)))
    host = nodes.host.copy()
    host["value"] = np.arange(10)
    host["next"][:-1] = nodes.address + 16 * np.arange(1, 10)
    nodes.set(host)
    total = zeros(1, np.int64)
    module.launch("list_sum", 1, 1, nodes, total)
    a, b = rng().random((2, 50, 3), np.float32)
    da, db, out = DeviceArray(a), DeviceArray(b), zeros((50, 3), np.float32)
    module.launch("cross_all", 1, 64, da, db, out, np.int32(50), np.uint8(0))
    synchronize()
    assert total.get()[0] == 45
    np.testing.assert_allclose(out.get(), np.cross(a, b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (65, 33, 47), (1, 100, 3)])
def test_tiled_matrix_product(m, n, k):
    module = Module.from_file("matmul.cu")
    a, b = rng().random((m, k), np.float32), rng().random((k, n), np.float32)
    da, db, out = DeviceArray(a), DeviceArray(b), zeros((m, n), np.float32)
    shape = ((n + 15) // 16, (m + 15) // 16)
    module.launch("matmul", shape, (16, 16), da, db, out, np.int32(m), np.int32(n), np.int32(k))
    synchronize()
    np.testing.assert_allclose(out.get(), a @ b, rtol=1e-5)


def test_double_matrix_product_and_transpose():
    module = Module.from_file("matmul.cu")
    a, b = rng().random((2, 40, 40))
    da, db, out = DeviceArray(a), DeviceArray(b), zeros((40, 40), np.float64)
    module.launch("matmul_f64", (5, 5), (8, 8), da, db, out, np.int32(40))
    t = rng().random((70, 45), np.float32)
    dt, turned = DeviceArray(t), zeros((45, 70), np.float32)
    module.launch("transpose", (2, 3), (32, 8), dt, turned, np.int32(70), np.int32(45))
    synchronize()
    np.testing.assert_allclose(out.get(), a @ b, rtol=1e-13)
    np.testing.assert_array_equal(turned.get(), t.T)


@pytest.mark.parametrize("block", [32, 96, 1024])
def test_sum_by_shuffles(block):
    module = Module.from_file("reduce.cu")
    x = rng().random(10_000, np.float32)
    dx, out = DeviceArray(x), zeros(1, np.float32)
    module.launch("sum_f32", 7, block, dx, out, np.int32(len(x)))
    synchronize()
    np.testing.assert_allclose(out.get()[0], x.sum(dtype=np.float64), rtol=1e-5)


def test_reduce_sync():
    module = Module.from_file("reduce.cu")
    x = rng().integers(-1000, 1000, 500).astype(np.int32)
    start = np.array([0, -(2**31), 2**31 - 1, 0, -1, 0], np.int32)
    dx, out = DeviceArray(x), DeviceArray(start)
    module.launch("reduce_sync", 4, 128, dx, out, np.int32(len(x)))
    synchronize()
    padded = np.append(x, np.zeros(12, np.int32))
    want = [
        x.sum(),
        padded.max(),
        padded.min(),
        *(f.reduce(padded) for f in (np.bitwise_or, np.bitwise_and, np.bitwise_xor)),
    ]
    assert out.get().tolist() == [int(w) for w in want]


def test_ballots():
    module = Module.from_file("reduce.cu")
    x = rng().normal(size=640).astype(np.float32)
    dx, masks, count = DeviceArray(x), zeros(20, np.uint32), zeros(1, np.int32)
    module.launch("count_positive", 5, 128, dx, masks, count, np.int32(640))
    synchronize()
    want = np.packbits(x > 0, bitorder="little").view(np.uint32)
    np.testing.assert_array_equal(masks.get(), want)
    assert count.get()[0] == (x > 0).sum()


def test_scan():
    module = Module.from_file("reduce.cu")
    x = rng().integers(0, 100, 2000).astype(np.int32)
    dx, out = DeviceArray(x), zeros(2000, np.int32)
    module.launch("block_scan", 2, 1024, dx, out, np.int32(2000))
    synchronize()
    want = np.concatenate([np.cumsum(x[:1024]), np.cumsum(x[1024:])])
    np.testing.assert_array_equal(out.get(), want)


def test_histogram():
    module = Module.from_file("histogram.cu")
    x = rng().integers(0, 256, 100_000).astype(np.uint8)
    dx, bins = DeviceArray(x), zeros(256, np.uint32)
    module.launch("histogram", 8, 256, dx, bins, np.int32(len(x)))
    synchronize()
    np.testing.assert_array_equal(bins.get(), np.bincount(x, minlength=256))


def test_compare_and_swap_loops():
    module = Module.from_file("histogram.cu")
    x = np.where(np.arange(1000) % 100 == 0, 2.0, 1.0).astype(np.float32)
    x[537] = 1.5
    dx, product, most = DeviceArray(x), DeviceArray(np.ones(1, np.float32)), zeros(1, np.float32)
    module.launch("cas_loops", 8, 128, dx, product, most, np.int32(1000))
    synchronize()
    assert product.get()[0] == 2.0**10 * 1.5
    assert most.get()[0] == 2.0


def test_spin_lock_between_blocks():
    module = Module.from_file("histogram.cu")
    counter = zeros(1, np.int64)
    module.launch("locked_increment", 64, 32, counter)
    synchronize()
    assert counter.get()[0] == 64


def test_atomics_u32():
    module = Module.from_file("atomics.cu")
    start = np.zeros(16, np.uint32)
    start[[1, 2, 6, 10]] = 10_000, 10**6, 2**32 - 1, 5
    n = 1000
    out, old = DeviceArray(start), zeros(n, np.uint32)
    module.launch("atomics_u32", 8, 128, out, old, np.int32(n))
    synchronize()
    have = out.get()
    assert sorted(old.get()) == list(range(n))
    want = {0: n, 1: 7000, 2: 0, 3: n - 1, 4: n % 100, 6: 0, 7: 2**32 - 1, 9: 7, 10: 6, 13: 2 * n, 14: 2 * n}
    xors = 0
    for i in range(n):
        xors ^= 1 << (i & 31)
    want[8] = xors
    assert {k: int(have[k]) for k in want} == want
    assert have[5] == (-n) % 100
    assert have.view(np.int32)[11] == 1 - n and have.view(np.int32)[12] == n - 101


def test_atomics_u64_and_floats():
    module = Module.from_file("atomics.cu")
    start = np.zeros(10, np.uint64)
    start[[1, 3, 7]] = 2**63, 2**64 - 1, 5
    n = 300
    out = DeviceArray(start)
    module.launch("atomics_u64", 3, 128, out, np.int32(n))
    f, d = zeros(8, np.float32), zeros(1, np.float64)
    module.launch("atomics_float", 3, 128, f, d, np.int32(n))
    synchronize()
    have = out.get()
    xors = 0
    for i in range(n):
        xors ^= 1 << (i & 63)
    assert have[:8].tolist() == [n << 33, 1, 2**63, 0, 2**64 - 1, xors, 7, 6]
    assert have.view(np.int64)[8:].tolist() == [1 - n, n - 101]
    assert (f.get()[0], f.get()[1], d.get()[0]) == (150, 3, 75)


def test_atomics_shared_and_u16():
    module = Module.from_file("atomics.cu")
    out, short = zeros(10, np.int32), zeros(2, np.uint16)
    module.launch("atomics_shared", 1, 256, out)
    module.launch("atomics_u16", 2, 64, short, np.int32(100))
    synchronize()
    assert out.get().tolist() == [256, 255, -1, 5, 9, 4, 256 % 10, 0, 256, 256]
    assert short.get().tolist() == [100, 0]


def test_half_atomics_and_saxpy():
    module = Module.from_file("half_bf16.cu")
    h, h2, b, b2 = zeros(1, np.float16), zeros(2, np.float16), zeros(1, np.uint16), zeros(2, np.uint16)
    module.launch("half_atomics", 1, 64, h, h2, b, b2)
    x, y = rng().normal(size=(2, 100)).astype(np.float16)
    dx, dy = DeviceArray(x), DeviceArray(y)
    module.launch("half_saxpy", 1, 128, np.float16(1.5), dx, dy, np.int32(100))
    synchronize()
    assert h.get()[0] == 64 and h2.get().tolist() == [64, 128]

    def bfloat(v):
        return (v.get().astype(np.uint32) << 16).view(np.float32).tolist()

    assert bfloat(b) == [64] and bfloat(b2) == [64, 128]
    np.testing.assert_allclose(dy.get().astype(float), 1.5 * x.astype(float) + y, atol=4e-3, rtol=1e-3)


def test_dynamic_shared_memory():
    module = Module.from_file("dynshared.cu")
    x = np.arange(1000, dtype=np.int32)
    dx, out = DeviceArray(x), zeros(1000, np.int32)
    module.launch("reverse_blocks", 8, 128, dx, out, np.int32(1000), shared=512)
    a, b = rng().random(64), np.arange(64, dtype=np.int32)
    da, db, both = DeviceArray(a), DeviceArray(b), zeros(64, np.float64)
    module.launch("two_arrays", 1, 64, da, db, both, shared=64 * 12)
    data = rng().random(1024, np.float32)
    sort = DeviceArray(data)
    module.launch("bitonic", 2, 512, sort, shared=2048)
    synchronize()
    padded = np.zeros(1024, np.int32)
    padded[:1000] = x
    np.testing.assert_array_equal(out.get(), padded.reshape(8, 128)[:, ::-1].ravel()[:1000])
    other = np.arange(64) ^ 1
    np.testing.assert_array_equal(both.get(), a[other] + b[other] + (np.arange(64) & 3) * 10)
    np.testing.assert_array_equal(sort.get(), np.sort(data.reshape(2, 512), axis=1).ravel())


def test_more_dynamic_shared_memory_than_the_default():
    module = Module.from_file("dynshared.cu")
    function = module.function("bitonic")
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    (status,) = driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 60_000, 0, 0, 0)
    assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    check(driver.cuFuncSetAttribute(function, attribute, 64_000))
    assert check(driver.cuFuncGetAttribute(attribute, function)) == 64_000
    data = rng().random(32, np.float32)
    sort = DeviceArray(data)
    module.launch("bitonic", 1, 32, sort, shared=60_000)
    synchronize()
    np.testing.assert_array_equal(sort.get(), np.sort(data))


def test_barrier_reductions():
    module = Module.from_file("dynshared.cu")
    x = (np.arange(96) % 3).astype(np.int32)
    dx, out = DeviceArray(x), zeros(3, np.int32)
    module.launch("barrier_reductions", 1, 96, dx, out)
    synchronize()
    assert out.get().tolist() == [64, 0, 0]


def test_globals():
    module = Module.from_file("globals.cu", names=["&coefficients"])
    address, size = check(driver.cuModuleGetGlobal(module.handle, module.lowered["&coefficients"]))
    assert size == 16
    coefficients = np.array([1, -2, 0.5, 0.25], np.float32)
    check(driver.cuMemcpyHtoD(address, coefficients.ctypes.data, 16))
    x = rng().random(100, np.float32)
    dx, y = DeviceArray(x), zeros(100, np.float32)
    module.launch("polynomial", 1, 128, dx, y, np.int32(100))
    out = zeros(18, np.float64)
    module.launch("read_globals", 1, 1, out)
    synchronize()
    np.testing.assert_allclose(y.get(), np.polynomial.Polynomial(coefficients)(x), rtol=1e-4)
    want = [5, 1.5, -2.25, 0, 255, 6, ord("o"), 77, 0x40400000, 11, 3, 0.5, ord("c"), 9, 0.25, ord("t"), 42, 77]
    assert out.get().tolist() == want
    module.launch("write_globals", 1, 1, np.int32(9))
    module.launch("count_calls", 4, 32)
    module.launch("read_globals", 1, 1, out)
    synchronize()
    have = out.get()
    assert have[[0, 7, 9, 16]].tolist() == [133, 9, 10, 9]
    value = np.zeros(1, np.int32)
    address, size = module.symbol("visible_name")
    assert size == 4
    check(driver.cuMemcpyDtoH(value.ctypes.data, address, 4))
    assert value[0] == 9
    check(driver.cuMemsetD32(address, 123, 1))
    module.launch("read_globals", 1, 1, out)
    synchronize()
    assert out.get()[16] == 123
    (status, *_) = driver.cuModuleGetGlobal(module.handle, b"nothing_of_that_name")
    assert status == driver.CUresult.CUDA_ERROR_NOT_FOUND


def test_function_pointers_and_virtual_functions():
    module = Module.from_file("control.cu")
    x = rng().random(99, np.float32)
    dx, out = DeviceArray(x), zeros(99, np.float32)
    module.launch("through_pointers", 1, 128, dx, out, np.int32(99))
    areas = zeros(64, np.float32)
    module.launch("virtual_calls", 1, 64, areas)
    synchronize()
    np.testing.assert_array_equal(out.get(), np.choose(np.arange(99) % 3, [2 * x, x * x, -x]))
    t = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(areas.get(), np.where(t % 2 == 1, 3 * t * t, 2 * t + 4))


def test_recursion():
    module = Module.from_file("control.cu")
    fib, ack = zeros(64, np.int64), zeros(64, np.int32)
    module.launch("recursion", 1, 64, fib, ack)
    synchronize()
    known = [0, 1]
    while len(known) < 15:
        known.append(known[-1] + known[-2])
    assert fib.get().tolist() == [known[i % 15] for i in range(64)]
    assert ack.get().tolist() == [2 * (i % 5) + 3 for i in range(64)]


def test_switch():
    module = Module.from_file("control.cu")
    v = np.array([0, 1, 2, 3, 4, 5, 6, 7, 100, 99, -1, 51] * 8, np.int32)
    out = DeviceArray(np.full(len(v), 5, np.int32))
    dv = DeviceArray(v)
    module.launch("switches", 1, 128, dv, out, np.int32(len(v)))
    synchronize()
    i = np.arange(len(v))
    known = {
        0: 10 + 0 * i,
        1: 3 + i,
        2: -1 + 0 * i,
        3: 3 ^ 0x55 + 0 * i,
        4: i // 3,
        5: i % 7,
        6: 6 + 0 * i,
        100: 1000 + 0 * i,
    }
    # 2 falls through to 3, which recomputes from v.
    known[2] = (2 ^ 0x55) + 0 * i
    known[3] = (3 ^ 0x55) + 0 * i
    want = [int(known[x][k]) if x in known else 2 if x > 50 else 3 for k, x in enumerate(v.tolist())]
    assert out.get().tolist() == want


def test_local_arrays():
    module = Module.from_file("control.cu")
    index = rng().integers(0, 1000, 64).astype(np.int32)
    di, out = DeviceArray(index), zeros(64, np.int32)
    module.launch("local_array", 1, 64, di, out, np.int32(64))
    data = rng().integers(-100, 100, (50, 8)).astype(np.int32)
    dd, ordered = DeviceArray(data), zeros((50, 8), np.int32)
    module.launch("sort_local", 1, 64, dd, ordered, np.int32(50))
    synchronize()
    want = []
    for i, at in enumerate(index.tolist()):
        a = [k * k + i for k in range(32)]
        a[at & 31] = -1
        want.append(sum(a[(k * 5 + at) & 31] * (k + 1) for k in range(32)))
    assert out.get().tolist() == want
    np.testing.assert_array_equal(ordered.get(), np.sort(data, axis=1))


def test_device_heap():
    module = Module.from_file("control.cu")
    out = zeros(200, np.int32)
    module.launch("heap", 2, 128, out, np.int32(200))
    synchronize()
    assert out.get().tolist() == [4 * i + 6 for i in range(200)]


def test_divergent_loops():
    module = Module.from_file("divergent.cu")
    n = np.arange(1, 500, dtype=np.uint32)
    dn, steps = DeviceArray(n), zeros(len(n), np.uint32)
    module.launch("collatz", 4, 128, dn, steps, np.int32(len(n)))
    a, b = rng().integers(0, 10_000, (2, 300)).astype(np.uint32)
    da, db, g = DeviceArray(a), DeviceArray(b), zeros(300, np.uint32)
    module.launch("gcd_all", 3, 128, da, db, g, np.int32(300))
    synchronize()

    def collatz(v):
        s = 0
        while v != 1:
            v, s = (3 * v + 1 if v & 1 else v >> 1), s + 1
        return s

    assert steps.get().tolist() == [collatz(int(v)) for v in n]
    np.testing.assert_array_equal(g.get(), np.gcd(a, b))


def test_nested_loops_with_a_barrier():
    module = Module.from_file("divergent.cu")
    v = rng().integers(0, 100, 70).astype(np.int32)
    dv, out = DeviceArray(v), zeros(70, np.int32)
    module.launch("nested", 1, 96, dv, out, np.int32(70))
    synchronize()

    def one(i, x):
        total = 0
        for a in range(x % 9):
            if a == 3:
                continue
            for b in range(5):
                if (a + b + i) % 4 == 3:
                    break
                total += a * b + 1
        return total * 10_000 + 96

    assert out.get().tolist() == [one(i, int(x)) for i, x in enumerate(v)]


def test_mandelbrot():
    module = Module.from_file("divergent.cu", options=["--fmad=false"])
    w, h, limit = 61, 45, 100
    out = zeros((h, w), np.uint8)
    module.launch("mandelbrot", (4, 6), (16, 8), out, np.int32(w), np.int32(h), np.int32(limit))
    synchronize()
    f = np.float32
    x, y = np.meshgrid(np.arange(w, dtype=f), np.arange(h, dtype=f))
    cr, ci = f(3.5) * x / f(w) - f(2.5), f(2) * y / f(h) - f(1)
    zr, zi, k, live = np.zeros_like(cr), np.zeros_like(cr), np.zeros(cr.shape, int), np.ones(cr.shape, bool)
    for _ in range(limit):
        live &= ~(zr * zr + zi * zi > 4)
        zr, zi = np.where(live, zr * zr - zi * zi + cr, zr), np.where(live, f(2) * zr * zi + ci, zi)
        k += live
    np.testing.assert_array_equal(out.get(), k)


def test_inline_ptx():
    module = Module.from_file("inline_ptx.cu")
    a, b = rng().integers(0, 2**32, (2, 40, 3)).astype(np.uint32)
    da, db, out = DeviceArray(a), DeviceArray(b), zeros(8 * 40, np.uint32)
    module.launch("carries", 1, 64, da, db, out, np.int32(40))
    v = rng().integers(-10, 20, 40).astype(np.int32)
    dv, scoped = DeviceArray(v), zeros((2, 40), np.int32)
    module.launch("scoped", 1, 64, dv, scoped, np.int32(40))
    t = zeros(32, np.int32)
    module.launch("branch_table", 1, 32, t)
    c = zeros(11, np.float64)
    module.launch("constants", 1, 1, c)
    synchronize()

    def number(words):
        return sum(int(w) << (32 * k) for k, w in enumerate(words))

    have = out.get()
    for i in range(40):
        assert number(have[6 * i : 6 * i + 3]) == (number(a[i]) + number(b[i])) % 2**96
        assert number(have[6 * i + 3 : 6 * i + 6]) == (number(a[i]) - number(b[i])) % 2**96
        assert number(have[240 + 2 * i : 242 + 2 * i]) == int(a[i, 0]) * int(b[i, 0]) + int(a[i, 1])
    np.testing.assert_array_equal(scoped.get(), [np.where(v > 0, 10 + v, -10), np.where(v > 5, 20 + v, -20)])
    assert t.get().tolist() == [100, 200, 300, 400] * 8
    assert c.get().tolist() == [np.pi, 1.5, 2.5, -1500, 25, -(2.0**40), 32, 11, 15, 8, 8]


def test_vector_loads():
    module = Module.from_file("inline_ptx.cu")
    data = rng().integers(0, 2**30, (20, 4)).astype(np.uint32)
    source, out = DeviceArray(data), zeros((20, 4), np.uint32)
    module.launch("vectors", 1, 32, source, out, np.int32(20))
    synchronize()
    want = data[:, ::-1].copy()
    want[:, 0] = data[:, 2] + data[:, 3]
    want[:, 1] = np.maximum(data[:, 2], data[:, 3])
    np.testing.assert_array_equal(out.get(), want)


def test_shuffles():
    module = Module.from_file("warp.cu")
    n = 96
    v = rng().integers(-1000, 1000, n).astype(np.int32)
    dv, out = DeviceArray(v), zeros((8, n), np.int32)
    module.launch("shuffles", 1, n, dv, out, np.int32(n))
    synchronize()
    w = v.reshape(-1, 32)
    lane = np.arange(32)
    sources = [
        (lane * 7 + 3) & 31,
        np.where(lane < 3, lane, lane - 3),
        np.where(lane > 26, lane, lane + 5),
        lane ^ 9,
        (lane & ~7) | (lane & 7),
        np.where(lane % 8 < 2, lane, lane - 2),
        np.where(lane % 16 > 13, lane, lane + 2),
    ]
    want = [w[:, s].ravel() for s in sources] + [(w[:, lane ^ 1].ravel().astype(np.int64) << 4).astype(np.int32)]
    np.testing.assert_array_equal(out.get(), want)


def test_votes():
    module = Module.from_file("warp.cu")
    n = 64
    v = rng().integers(-2, 3, n).astype(np.int32)
    v[32:] = 4
    dv, out = DeviceArray(v), zeros((8, n), np.uint32)
    module.launch("votes", 1, n, dv, out, np.int32(n))
    synchronize()
    want = np.zeros((8, n), np.uint32)
    for i in range(n):
        w = v[i & ~31 : (i & ~31) + 32]
        match = sum(1 << k for k in range(32) if w[k] == v[i])
        same = bool((w == w[0]).all())
        ballot = sum(1 << k for k in range(32) if w[k] & 1)
        want[:, i] = [(w > 0).all(), (w > 0).any(), ballot, 2**32 - 1, match, match if same else 0, same, match]
    np.testing.assert_array_equal(out.get(), want)


def test_collectives_of_part_of_a_warp():
    module = Module.from_file("warp.cu")
    v = rng().integers(-10, 10, 64).astype(np.int32)
    dv, out = DeviceArray(v), zeros((2, 64), np.uint32)
    module.launch("partial", 1, 64, dv, out, np.int32(64))
    synchronize()
    have = out.get()
    for i in range(64):
        w, lane = v[i & ~31 : (i & ~31) + 32], i & 31
        if lane & 1:
            assert have[0, i] == sum(1 << k for k in range(1, 32, 2) if w[k] > 0)
        elif lane < 30:
            assert have[0, i] == np.uint32(w[lane + 2].astype(np.uint32))
        if lane < 20:
            assert have[1, i] == sum(1 << k for k in range(20) if w[k] & 2)


def test_special_registers():
    module = Module.from_file("warp.cu")
    grid, block = (2, 2, 2), (5, 4, 3)
    out = zeros((8, 60, 16), np.uint32)
    module.launch("specials", grid, block, out)
    synchronize()
    have = out.get()
    for b in range(8):
        for t in range(60):
            o, lane = have[b, t], t % 32
            want = [t % 5, t // 5 % 4, t // 20, b % 2, b // 2 % 2, b // 4, 5, 2, lane]
            assert o[:9].tolist() == want
            assert o[11:15].tolist() == [1 << lane, (1 << lane) - 1, 2**32 - (1 << lane), 0]


def test_cooperative_groups():
    module = Module.from_file("coop_groups.cu")
    x = rng().integers(-50, 50, 256).astype(np.int32)
    dx, sums = DeviceArray(x), zeros(32, np.int32)
    module.launch("tile_sums", 2, 128, dx, sums)
    packed, count = zeros(256, np.int32), zeros(1, np.int32)
    module.launch("compact", 2, 128, dx, packed, count, np.int32(256))
    synchronize()
    np.testing.assert_array_equal(sums.get(), x.reshape(32, 8).sum(axis=1))
    assert count.get()[0] == (x > 0).sum()
    assert sorted(packed.get()[: count.get()[0]]) == sorted(x[x > 0])


def test_cooperative_launch():
    module = Module.from_file("coop_groups.cu")
    blocks, threads = 6, 64
    x = rng().integers(-50, 50, blocks * threads).astype(np.int32)
    dx, partial, out = DeviceArray(x), zeros(blocks, np.int32), zeros(len(x), np.int32)
    module.launch("grid_sum", blocks, threads, dx, partial, out, np.int32(len(x)), cooperative=True)
    synchronize()
    np.testing.assert_array_equal(out.get(), x.sum() + np.arange(len(x)))


def test_clocks(cpu_device):
    module = Module.from_file("timers.cu")
    out = zeros(4, np.int64)
    module.launch("timers", 1, 32, out, np.uint32(200_000))
    synchronize()
    cycles, short_cycles, nanoseconds, forward = out.get().tolist()
    assert forward == 1 and cycles > 0 and short_cycles != 0
    # PTX ISA, nanosleep: the duration is between 0 and twice the time requested. The CPU device sleeps for all of it.
    assert nanoseconds >= (200_000 if cpu_device else 0)


def test_async_copy_and_fences():
    module = Module.from_file("async_copy.cu")
    data, flag = DeviceArray(np.arange(64, dtype=np.int32) + 1), zeros(1, np.int32)
    module.launch("fences", 1, 1, data, flag)
    synchronize()
    assert flag.get()[0] == 1
    have = data.get()
    assert have[1] == 1 + 3 + 4 + 1 and have[4] == 7 and have[5] == 1


def test_ctypes_arguments():
    module = Module.from_file("saxpy.cu")
    x = DeviceArray(np.ones(8, np.float32))
    out = zeros(8, np.float32)
    values = (2.0, x.pointer, x.address, out.pointer, 8)
    types = (ctypes.c_float, None, ctypes.c_void_p, None, ctypes.c_size_t)
    check(driver.cuLaunchKernel(module.function("saxpy"), 1, 1, 1, 32, 1, 1, 0, 0, (values, types), 0))
    synchronize()
    assert out.get().tolist() == [3] * 8


def test_512_arguments_arrive():
    count = 512
    params = ", ".join(f"int a{k}" for k in range(count))
    source = f'extern "C" __global__ void many(int *out, {params}) {{ out[0] = {" + ".join(f"a{k}" for k in range(count))}; }}'
    module = Module.from_source(source)
    out = zeros(1, np.int32)
    values = (out.pointer, *range(count))
    types = (None, *[ctypes.c_int] * count)
    check(driver.cuLaunchKernel(module.function("many"), 1, 1, 1, 1, 1, 1, 0, 0, (values, types), 0))
    synchronize()
    assert out.get()[0] == count * (count - 1) // 2


def test_code_is_compiled_for_the_device_capability():
    source = 'extern "C" __global__ void arch(int *out) { *out = __CUDA_ARCH__; }'
    module = Module.from_source(source)
    out = zeros(1, np.int32)
    module.launch("arch", 1, 1, out)
    synchronize()
    major, minor = compute_capability()
    assert out.get()[0] == 100 * major + 10 * minor
