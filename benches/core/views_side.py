"""One side of views.py: times cuda.core.utils.StridedMemoryView in this interpreter and prints JSON. Runs with Cupyrite and
with its peer.

    views_side.py ROUNDS
"""

import json
import sys

import numpy
from cuda.core import Device
from cuda.core.utils import StridedMemoryView

from harness.timing import calling, smallest_mean

# The rows of CuPy and PyTorch are null where they are not installed or do not run.
ROWS = (
    "view of a NumPy array, DLPack",
    "view of a NumPy array, array interface",
    "view of a Buffer, DLPack",
    "view of an object, CUDA array interface",
    "view of a view, DLPack in C",
    "view of a CuPy array",
    "view of a PyTorch tensor",
    "view with another layout",
    "DLPack export of a view",
    "DLPack export of a view, version 1",
    "DLPack export of a Buffer",
    # The cost of the arrays' own methods, which the rows above include.
    "(NumPy: __dlpack_device__ and __dlpack__)",
    "(CuPy: __dlpack_device__ and __dlpack__)",
    "(PyTorch: __dlpack_device__ and __dlpack__)",
)


def cupy_array():
    """A small CuPy array, or None."""
    try:
        import cupy

        return cupy.zeros((3, 4), cupy.float32)
    except Exception:  # not installed, no GPU, or a build that fails here
        return None


def torch_tensor():
    """A small PyTorch tensor, on the host where there is no GPU; or None."""
    try:
        import torch

        return torch.zeros((3, 4), device="cuda" if torch.cuda.is_available() else "cpu")
    except Exception:  # as above
        return None


def methods(array):
    """The calls a DLPack consumer makes on an array without the C exchange API."""
    host = array.__dlpack_device__()[0] == 1

    def both():
        array.__dlpack_device__()
        array.__dlpack__(stream=None if host else -1, max_version=(1, 3))

    return both


def exporting(export, **arguments):
    def one(loop):
        for _ in loop:
            export(**arguments)

    return one


def main():
    rounds = int(sys.argv[1])
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(96, stream=stream)
    array = numpy.zeros((3, 4), numpy.float32)

    class Interface:
        __cuda_array_interface__ = {  # noqa: RUF012 (instances only read it)
            "shape": (3, 4),
            "typestr": "<f4",
            "data": (int(buffer.handle), False),
            "version": 3,
            "strides": None,
            "stream": None,
        }

    view = StridedMemoryView.from_array_interface(array)
    layout = view._layout.permuted((1, 0))
    interface, cupy, torch = Interface(), cupy_array(), torch_tensor()
    make = StridedMemoryView.from_any_interface

    def time_of(one):
        one((None,))
        return smallest_mean(rounds, 1000, one)

    def optional(obj, one):
        return None if obj is None else time_of(one(obj))

    figures = [
        time_of(calling(make, array, -1)),
        time_of(calling(StridedMemoryView.from_array_interface, array)),
        time_of(calling(make, buffer, -1)),
        time_of(calling(make, interface, -1)),
        time_of(calling(make, view, -1)),
        optional(cupy, lambda obj: calling(make, obj, -1)),
        optional(torch, lambda obj: calling(make, obj, -1)),
        time_of(calling(view.view, layout)),
        time_of(exporting(view.__dlpack__)),
        time_of(exporting(view.__dlpack__, stream=None, max_version=(1, 3))),
        time_of(exporting(buffer.__dlpack__, stream=-1, max_version=(1, 3))),
        time_of(calling(methods(array))),
        optional(cupy, lambda obj: calling(methods(obj))),
        optional(torch, lambda obj: calling(methods(obj))),
    ]
    print(json.dumps({"rows": ROWS, "python": figures, "device": device.name}))


if __name__ == "__main__":
    main()
