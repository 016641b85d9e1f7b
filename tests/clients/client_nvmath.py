"""nvmath-python: FFT and matrix product on a GPU, with CuPy's or PyTorch's arrays."""

import arrays
import numpy as np
from checks import Skip, check, finish, need, need_gpu


@check
def it_imports():
    module = need("nvmath")
    assert module.__version__


@check
def its_bindings_import():
    need("nvmath")
    from nvmath.bindings import cublas, cufft

    assert issubclass(cublas.cuBLASError, Exception) and issubclass(cufft.cuFFTError, Exception)


def operands(*shapes):
    """Random complex64 operands in device memory, and their values."""
    need("nvmath")
    need_gpu("nvmath-python calls cuFFT and cuBLAS, which hold machine code for GPUs")
    arrays.device()
    try:
        library = need("cupy")
        move = library.asarray
    except Skip:
        library = need("torch")

        def move(values):
            return library.from_numpy(values).cuda()

    rng = np.random.default_rng(1)
    values = [(rng.random(s) + 1j * rng.random(s)).astype(np.complex64) for s in shapes]
    return [move(v) for v in values], values


def host(array):
    return array.get() if hasattr(array, "get") else array.cpu().numpy()


@check
def a_FFT():
    (a,), (values,) = operands((64, 128))
    import nvmath

    assert np.allclose(host(nvmath.fft.fft(a, axes=[1])), np.fft.fft(values, axis=1), rtol=1e-4, atol=1e-3)


@check
def a_FFT_on_a_stream_of_ours():
    (a,), (values,) = operands((64, 128))
    import nvmath

    arrays.device().sync()
    if type(a).__module__.startswith("cupy"):
        import cupy

        stream = cupy.cuda.ExternalStream(int(arrays.device().create_stream().handle))
    else:
        import torch

        stream = torch.cuda.ExternalStream(int(arrays.device().create_stream().handle))
    with nvmath.fft.FFT(a, axes=[1], stream=stream) as plan:
        plan.plan(stream=stream)
        result = plan.execute(stream=stream)
    arrays.device().sync()
    assert np.allclose(host(result), np.fft.fft(values, axis=1), rtol=1e-4, atol=1e-3)


@check
def a_matrix_product():
    (a, b), (x, y) = operands((64, 96), (96, 32))
    import nvmath

    assert np.allclose(host(nvmath.linalg.advanced.matmul(a, b)), x @ y, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    finish()
