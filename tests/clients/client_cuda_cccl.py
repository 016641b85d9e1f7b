"""cuda-cccl: reduce, scan and sort of `cuda.compute`."""

import arrays
import numpy as np
from checks import check, finish, need, need_gpu

VALUES = np.random.default_rng(5).integers(-1000, 1000, 10_000).astype(np.int32)


def compute():
    module = need("cuda.compute")
    need_gpu("cuda.compute contains NVIDIA's CUDA runtime, which accepts NVIDIA's driver only (docs/clients.md)")
    arrays.device()
    return module


@check
def it_imports():
    module = need("cuda.compute")
    assert callable(module.reduce_into) and module.OpKind.PLUS is not None


@check
def it_finds_the_headers_of_CCCL():
    need("cuda.cccl")
    from cuda.cccl import get_include_paths

    assert get_include_paths() is not None


@check
def reduce_with_a_known_operation():
    c = compute()
    out = arrays.Array(np.zeros(1, dtype=np.int32))
    start = np.zeros((), dtype=np.int32)
    c.reduce_into(d_in=arrays.Array(VALUES), d_out=out, op=c.OpKind.PLUS, num_items=VALUES.size, h_init=start)
    assert out.get()[0] == VALUES.sum(dtype=np.int32)


@check
def reduce_with_a_Python_function():
    c = compute()

    def larger(a, b):
        return a if a > b else b

    out = arrays.Array(np.zeros(1, dtype=np.int32))
    start = np.full((), -(2**31), dtype=np.int32)
    c.reduce_into(d_in=arrays.Array(VALUES), d_out=out, op=larger, num_items=VALUES.size, h_init=start)
    assert out.get()[0] == VALUES.max()


@check
def inclusive_scan():
    c = compute()
    out = arrays.Array(np.zeros_like(VALUES))
    c.inclusive_scan(d_in=arrays.Array(VALUES), d_out=out, op=c.OpKind.PLUS, init_value=None, num_items=VALUES.size)
    assert (out.get() == VALUES.cumsum(dtype=np.int32)).all()


@check
def radix_sort():
    c = compute()
    out = arrays.Array(np.zeros_like(VALUES))
    c.radix_sort(
        d_in_keys=arrays.Array(VALUES),
        d_out_keys=out,
        d_in_values=None,
        d_out_values=None,
        order=c.SortOrder.ASCENDING,
        num_items=VALUES.size,
    )
    assert (out.get() == np.sort(VALUES)).all()


@check
def merge_sort():
    c = compute()
    out = arrays.Array(np.zeros_like(VALUES))
    c.merge_sort(
        d_in_keys=arrays.Array(VALUES),
        d_out_keys=out,
        d_in_values=None,
        d_out_values=None,
        op=c.OpKind.LESS,
        num_items=VALUES.size,
    )
    assert (out.get() == np.sort(VALUES)).all()


@check
def reduce_on_a_stream_of_ours():
    c = compute()
    stream = arrays.device().create_stream()
    out = arrays.Array(np.zeros(1, dtype=np.int32))
    start = np.zeros((), dtype=np.int32)
    source = arrays.Array(VALUES)
    c.reduce_into(d_in=source, d_out=out, op=c.OpKind.PLUS, num_items=VALUES.size, h_init=start, stream=stream)
    stream.sync()
    assert out.get()[0] == VALUES.sum(dtype=np.int32)


if __name__ == "__main__":
    finish()
