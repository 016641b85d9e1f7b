"""Kernels in Triton's language, for `client_triton.py`. Triton reads their source from this file."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), mask=mask)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0)
    distance = tl.where(mask, values - tl.sum(values, 0) / columns, 0.0)
    deviation = tl.sqrt(tl.sum(distance * distance, 0) / columns + eps)
    scaled = distance / deviation * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, scaled, mask=mask)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def reductions(x, product, place, counts, BLOCK: tl.constexpr, BINS: tl.constexpr):
    values = tl.load(x + tl.arange(0, BLOCK))
    tl.store(product, tl.reduce(values, 0, multiply))
    tl.store(place, tl.argmax(values, 0))
    bins = tl.histogram((values * BINS).to(tl.int32) % BINS, BINS)
    tl.store(counts + tl.arange(0, BINS), bins)


@triton.jit
def scan(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def sort(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def gather_and_transpose(x, index, out, N: tl.constexpr):
    row = tl.arange(0, N)
    tile = row[:, None] * N + row[None, :]
    tl.store(out + tile, tl.gather(tl.trans(tl.load(x + tile)), tl.load(index + tile), 1))


@triton.jit
def locked_sum(lock, total, x, BLOCK: tl.constexpr):
    own = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + own)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)
    tl.atomic_add(total + 1, own)


@triton.jit
def mathematics(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(out + at, tl.erf(values) + tl.sin(values) * tl.exp2(values) + tl.rsqrt(values * values + 1))


@triton.jit
def halve(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(tl.float32) * 0.5)


@triton.jit
def copy_tiles(x, out, rows, columns, TILE: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [TILE, TILE])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [TILE, TILE])
    at = [tl.program_id(0) * TILE, tl.program_id(1) * TILE]
    target.store(at, source.load(at))


@triton.jit
def matmul(a, b, out, rows, columns, inner, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
           PRECISION: tl.constexpr):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, INNER)
    at_a, at_b = a + row[:, None] * inner + depth[None, :], b + depth[:, None] * columns + column[None, :]
    total = tl.zeros((ROWS, COLUMNS), out.dtype.element_ty)
    for _ in range(0, inner, INNER):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total, input_precision=PRECISION, out_dtype=out.dtype.element_ty)
        at_a += INNER
        at_b += INNER * columns
    tl.store(out + row[:, None] * columns + column[None, :], total)


@triton.jit
def attention(q, k, v, out, scale, length, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, at, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH), tl.arange(0, COLUMNS)
    query = tl.load(q + row[:, None] * WIDTH + at[None, :])
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    weight = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, length, COLUMNS):
        key = tl.load(k + (start + column)[None, :] * WIDTH + at[:, None])
        scores = tl.dot(query, key) * scale
        larger = tl.maximum(largest, tl.max(scores, 1))
        powers, shrink = tl.exp(scores - larger[:, None]), tl.exp(largest - larger)
        weight = weight * shrink + tl.sum(powers, 1)
        value = tl.load(v + (start + column)[:, None] * WIDTH + at[None, :])
        total = tl.dot(powers.to(value.dtype), value, total * shrink[:, None])
        largest = larger
    tl.store(out + row[:, None] * WIDTH + at[None, :], total / weight[:, None])


@triton.jit
def invalid(out):
    value = tl.inline_asm_elementwise("add.q32 $0, $1, $1;", "=r,r", [tl.load(out)], tl.int32, False, 1)
    tl.store(out, value)
