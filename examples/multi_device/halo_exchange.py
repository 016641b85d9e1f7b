"""A stencil over several devices: each computes a band of rows, and neighbours exchange their edge rows (halo exchange).

A device computes its edge rows first. The neighbours copy them while it computes the rest: the exchange costs time only
where it takes longer than the rows inside the band. Events order the streams; the host waits once, at the end.

    CUPYRITE_CPU_DEVICES=4 python halo_exchange.py [--devices N] [--size N] [--steps N] [--staged]

Neighbours copy directly where both devices can access each other's memory, otherwise by page-locked host memory;
--staged forces the latter. The program runs on one device, too.
"""

import argparse
import sys

import numpy as np
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    launch,
)

# Writes `rows` rows of a field from row `first` on. The sides of the plate keep their temperatures.
SOURCE = r"""
extern "C" __global__ void step(const float *in, float *out, int width, int first, int rows)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= rows)
        return;
    long long i = (long long)(first + y) * width + x;
    bool side = x == 0 || x == width - 1;
    out[i] = side ? in[i] : 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}
"""
BLOCK = (32, 8)
FLOAT = 4


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def all_devices(count):
    """The first `count` devices, or all of them."""
    try:
        devices = Device.get_all_devices()
        devices[0].set_current()
    except Exception as reason:
        skip(f"no device: {reason}")
    if count and count > len(devices):
        skip(
            f"{count} devices are needed, and there are {len(devices)} (CUPYRITE_CPU_DEVICES={count} configures CPU devices)"
        )
    devices = devices[: count or None]
    print(f"on {', '.join(device.name for device in devices)}")
    return devices


def row(field, number, width):
    """A row of a field, without its memory."""
    return Buffer.from_handle(int(field.handle) + number * width * FLOAT, width * FLOAT)


class Band:
    """The rows of one device: two fields, each with a row of a neighbour above and below."""

    def __init__(self, device, rows, width, peers):
        device.set_current()
        self.device, self.rows, self.width = device, rows, width
        # One stream for kernels, one for copies of the neighbours' rows.
        self.stream, self.copies = device.create_stream(), device.create_stream()
        self.kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("step")
        self.memory = DeviceMemoryResource(device)
        self.memory.peer_accessible_by = peers
        size = (rows + 2) * width * FLOAT
        self.fields = [self.memory.allocate(size, stream=self.stream) for _ in range(2)]
        # Page-locked staging buffers for the neighbours without peer access, by whether they are above.
        self.staging = {}
        self.edges_computed = self.halo_copied = None

    def compute(self, source, target, first, rows):
        if rows > 0:
            grid = (-(-self.width // BLOCK[0]), -(-rows // BLOCK[1]))
            sizes = (np.int32(v) for v in (self.width, first, rows))
            launch(self.stream, LaunchConfig(grid=grid, block=BLOCK), self.kernel, source, target, *sizes)

    def compute_edges(self, number):
        """Computes the first and the last row of a step."""
        self.device.set_current()
        source, target = self.fields[number % 2], self.fields[1 - number % 2]
        if self.halo_copied:
            self.stream.wait(self.halo_copied)
        self.compute(source, target, 1, 1)
        self.compute(source, target, self.rows, min(1, self.rows - 1))
        self.edges_computed = self.stream.record()

    def compute_inside(self, number):
        self.device.set_current()
        self.compute(self.fields[number % 2], self.fields[1 - number % 2], 2, self.rows - 2)

    def copy_halo(self, number, neighbours):
        """Copies the rows that neighbours have computed: pairs of a band and whether it is above."""
        target = self.fields[1 - number % 2]
        for band, above in neighbours:
            theirs = row(band.fields[1 - number % 2], band.rows if above else 1, self.width)
            mine = row(target, 0 if above else self.rows + 1, self.width)
            staged = self.staging.get(above)
            if staged:
                # The neighbour's memory is not accessible from this device.
                band.device.set_current()
                band.copies.wait(band.edges_computed)
                if self.halo_copied:
                    # The staging buffer is free: its last copy to this device is complete.
                    band.copies.wait(self.halo_copied)
                staged.copy_from(theirs, stream=band.copies)
                ready, source = band.copies.record(), staged
            else:
                ready, source = band.edges_computed, theirs
            self.device.set_current()
            self.copies.wait(ready)
            mine.copy_from(source, stream=self.copies)
        self.device.set_current()
        self.halo_copied = self.copies.record()


def split(field, devices, staged):
    """The bands of a field: its rows, divided evenly."""
    numbers = np.array_split(np.arange(1, field.shape[0] - 1), len(devices))
    bands = []
    for n, (device, rows) in enumerate(zip(devices, numbers, strict=True)):
        near = (*devices[max(n - 1, 0) : n], *devices[n + 1 : n + 2])
        peers = [d for d in near if not staged and d.can_access_peer(device) and device.can_access_peer(d)]
        band = Band(device, len(rows), field.shape[1], peers)
        for d in near:
            if d not in peers:
                band.staging[devices.index(d) < n] = LegacyPinnedMemoryResource().allocate(band.width * FLOAT)
        for target in band.fields:
            target.copy_from(np.ascontiguousarray(field[rows[0] - 1 : rows[-1] + 2]), stream=band.stream)
        bands.append(band)
    # Allocation and the first copy are stream-ordered: neighbours must not read before them.
    for band in bands:
        band.stream.sync()
    return bands


def run(bands, steps):
    neighbours = [[(bands[m], m < n) for m in (n - 1, n + 1) if 0 <= m < len(bands)] for n in range(len(bands))]
    for number in range(steps):
        for band in bands:
            band.compute_edges(number)
        for band, near in zip(bands, neighbours, strict=True):
            band.copy_halo(number, near)
        for band in bands:
            band.compute_inside(number)


def gather(bands, steps, field):
    """The field after all steps."""
    result, first = field.copy(), 1
    for band in bands:
        band.device.set_current()
        band.stream.wait(band.halo_copied)
        part = np.empty((band.rows + 2, band.width), np.float32)
        band.fields[steps % 2].copy_to(part, stream=band.stream)
        band.stream.sync()
        result[first : first + band.rows] = part[1:-1]
        first += band.rows
    return result


def expected(field, steps):
    """The same on the host, with the same order of additions."""
    for _ in range(steps):
        inside = (field[1:-1, :-2] + field[1:-1, 2:]) + field[:-2, 1:-1] + field[2:, 1:-1]
        field = field.copy()
        field[1:-1, 1:-1] = np.float32(0.25) * inside
    return field


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=0, help="number of devices (default: all)")
    parser.add_argument("--size", type=int, default=256, help="rows and columns")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--staged", action="store_true", help="exchange rows by host memory")
    options = parser.parse_args()
    devices = all_devices(options.devices)
    if options.size < len(devices) + 2:
        parser.error(
            f"--size {options.size}: expected at least {len(devices) + 2}, a row for each device and two edges"
        )
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: expected at least 1")
    field = np.zeros((options.size, options.size), np.float32)
    field[0], field[:, 0] = 100, np.linspace(100, 0, options.size)
    bands = split(field, devices, options.staged)
    run(bands, options.steps)
    if not np.array_equal(gather(bands, options.steps, field), expected(field, options.steps)):
        sys.exit("wrong result: the temperatures")
    direct = sum(1 for band in bands for _ in band.memory.peer_accessible_by)
    staged = sum(len(band.staging) for band in bands)
    print(
        f"{options.steps} steps on {len(bands)} bands; {direct} exchanges a step by peer access, {staged} by the host"
    )
    print("done: the results are right")


if __name__ == "__main__":
    main()
