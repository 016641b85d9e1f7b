"""Triton: its kernels on our streams and memory."""

import arrays
import numpy as np
from checks import Skip, check, finish, need, need_gpu


class Pointer:
    """What Triton accepts as a pointer: an object with `data_ptr()` and `dtype`."""

    def __init__(self, address, dtype):
        self.address, self.dtype = address, dtype

    def data_ptr(self):
        return self.address


def modules():
    torch, triton = need("torch", "triton")
    need_gpu("Triton compiles to cubins without PTX")
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


if __name__ == "__main__":
    finish()
