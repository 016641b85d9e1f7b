"""Array libraries behind one small interface, by their documented functions alone, for the interoperability tests."""

import importlib
import os

import numpy as np
import pytest

# By default JAX claims three quarters of the device's memory; other libraries run in the same process.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

PLAIN = tuple("? i1 u1 i2 i4 f2 f4 c8".split())
WIDE = ("i8", "f8", "c16")


def module(name):
    """The library's module; skips the test where it is not installed or cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # installed, but incompatible with another installed package
        pytest.skip(f"{name} cannot be imported: {error}")


class NumPy:
    name, on_device = "numpy", False
    types = (*PLAIN, *WIDE, "u2", "u4", "u8")
    reverses = True

    def make(self, array):
        """A copy of a NumPy array as an array of the library."""
        return array.copy(order="K")

    def contents(self, array):
        return np.asarray(array)

    def address(self, array):
        return array.ctypes.data

    def strides(self, array):
        """Strides in elements."""
        return tuple(stride // array.itemsize for stride in array.strides)

    def transposed(self, array):
        return array.T

    def take(self, view):
        return np.from_dlpack(view)

    def brain(self):
        """A bfloat16 array with the elements 0 to 7."""
        return np.arange(8).astype(module("ml_dtypes").bfloat16)


class CuPy:
    name, on_device = "cupy", True
    types = NumPy.types
    reverses = True

    def __init__(self):
        self.cupy = module("cupy")

    def make(self, array):
        return self.cupy.asarray(array)

    def contents(self, array):
        return self.cupy.asnumpy(array)

    def address(self, array):
        return array.data.ptr

    strides, transposed = NumPy.strides, NumPy.transposed

    def take(self, view):
        return self.cupy.from_dlpack(view)

    def brain(self):
        pytest.skip("CuPy has no bfloat16 dtype")


class Torch:
    name = "torch"
    types = (*PLAIN, *WIDE)
    reverses = False

    def __init__(self, where):
        self.torch = module("torch")
        self.where, self.on_device = where, where == "cuda"
        if self.on_device and not self.torch.cuda.is_available():
            pytest.skip("this PyTorch has no GPU")

    def make(self, array):
        return self.torch.from_numpy(array.copy()).to(self.where)

    def contents(self, array):
        return array.cpu().numpy()

    def address(self, array):
        return array.data_ptr()

    def strides(self, array):
        return tuple(array.stride())

    def transposed(self, array):
        return array.t()

    def take(self, view):
        return self.torch.from_dlpack(view)

    def brain(self):
        return self.torch.arange(8).to(self.torch.bfloat16).to(self.where)


class Jax:
    name = "jax"
    types = PLAIN
    reverses = False

    def __init__(self, where):
        self.jax = module("jax")
        self.on_device = where == "cuda"
        try:
            self.device = self.jax.devices(where)[0]
        except RuntimeError:
            pytest.skip(f"this JAX has no {where}")

    def make(self, array):
        return self.jax.device_put(array, self.device).block_until_ready()

    def contents(self, array):
        return np.asarray(array)

    def address(self, array):
        return array.unsafe_buffer_pointer()

    def strides(self, array):
        return NumPy.strides(self, np.empty(array.shape, array.dtype))

    def transposed(self, array):
        pytest.skip("JAX arrays are always in C order")

    def take(self, view):
        return module("jax.dlpack").from_dlpack(view)

    def brain(self):
        return self.make(np.arange(8).astype(module("ml_dtypes").bfloat16))


LIBRARIES = {
    "numpy": NumPy,
    "torch-host": lambda: Torch("cpu"),
    "jax-host": lambda: Jax("cpu"),
    "cupy": CuPy,
    "torch": lambda: Torch("cuda"),
    "jax": lambda: Jax("cuda"),
}
