"""Kinds of memory and views of arrays, with `cuda.core`.

A picture is created in page-locked memory, which copies use without synchronizing, and copied to the device. The
weights of its columns are in managed memory, which the host and the kernel use at the same address. The weighing
function accepts any array - the device's picture, its transpose, a NumPy array - because it takes a view of it and
honours the strides.
"""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, ManagedMemoryResource, PinnedMemoryResource, Program, launch
from cuda.core.utils import StridedMemoryView, args_viewable_as_strided_memory

SOURCE = r"""
extern "C" __global__ void weigh(const float *in, long long row_step, long long column_step, const float *weights, float *out,
                                 int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int column = 0; column < columns; column++)
        sum += in[row * row_step + column * column_step] * weights[column];
    out[row] = sum;
}
"""


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def first_device():
    """The first device, made current."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        skip(f"no device: {reason}")
    print(f"on {device.name}")
    return device


def verify(holds, what):
    """Ends the program with an error unless the result is right."""
    if not holds:
        sys.exit(f"wrong result: {what}")


class Weigher:
    """Weighted sums of the rows of a matrix, on the current device."""

    def __init__(self, device):
        self.device, self.stream = device, device.create_stream()
        self.kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("weigh")
        # The sums return through page-locked memory: a copy to it does not block the stream.
        self.host = PinnedMemoryResource()

    @args_viewable_as_strided_memory((1,))
    def __call__(self, matrix, weights):
        """The sums as a NumPy array. `matrix` is any float32 array; `weights` a buffer with one element per column."""
        stream = self.stream
        view = matrix.view(stream.handle)
        rows, columns = view.shape
        if not view.is_device_accessible:
            # A host array: copied to the device densely, whatever its strides.
            copy = self.device.allocate(view.size * 4, stream=stream)
            there = StridedMemoryView.from_buffer(copy, view.shape, dtype=view.dtype)
            there.copy_from(view, stream=stream)
            view = there
        row_step, column_step = view.strides or (columns, 1)
        sums = self.device.allocate(rows * 4, stream=stream)
        out = self.host.allocate(rows * 4, stream=stream)
        config = LaunchConfig(grid=(rows + 127) // 128, block=128)
        launch(
            stream,
            config,
            self.kernel,
            view.ptr,
            row_step,
            column_step,
            weights,
            sums,
            np.int32(rows),
            np.int32(columns),
        )
        sums.copy_to(out, stream=stream)
        stream.sync()
        # The NumPy array keeps the buffer's memory alive.
        return np.from_dlpack(out).view(np.float32)


def main():
    device = first_device()
    weigher = Weigher(device)
    stream = weigher.stream
    rows, columns = 300, 200

    staged = PinnedMemoryResource().allocate(rows * columns * 4, stream=stream)
    try:
        managed = ManagedMemoryResource()
    except Exception as reason:
        skip(f"no pool of managed memory: {reason}")
    weights = managed.allocate(max(rows, columns) * 4, stream=stream)
    stream.sync()  # Pool memory is available in stream order.
    picture = np.from_dlpack(staged).view(np.float32).reshape(rows, columns)
    picture[:] = np.random.default_rng(1).integers(0, 16, picture.shape)
    factors = np.from_dlpack(weights).view(np.float32)
    factors[:] = np.arange(factors.size) % 8
    if device.properties.concurrent_managed_access:
        weights.is_read_mostly = True
        weights.prefetch(device, stream=stream)

    on_device = device.allocate(staged.size, stream=stream)
    on_device.copy_from(staged, stream=stream)
    upright = StridedMemoryView.from_buffer(on_device, (rows, columns), dtype=np.dtype(np.float32))
    transposed = StridedMemoryView.from_buffer(on_device, (columns, rows), (1, columns), dtype=np.dtype(np.float32))

    # Small whole numbers: the sums are exact in any order.
    verify((weigher(upright, weights) == picture @ factors[:columns]).all(), "sums over the device's picture")
    verify((weigher(transposed, weights) == picture.T @ factors[:rows]).all(), "sums over the transposed picture")
    part = picture[::2, ::-1]
    verify((weigher(part, weights) == part @ factors[:columns]).all(), "sums over a slice of the NumPy picture")
    print(f"weighed {rows} rows and {columns} columns, dense and strided, with the same function")
    print("done: the results are right")


if __name__ == "__main__":
    main()
