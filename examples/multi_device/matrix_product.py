"""A matrix product over several devices: each has a band of rows of both factors, and the bands of the second go round.

C = A B, with A, B and C divided into bands of rows. In each of N rounds, a device multiplies a block of its rows of A by the
band of B that it has, while it copies the next band from its neighbour on a ring. Every device holds 1/N of each matrix, and two
bands of B.

    CUPYRITE_CPU_DEVICES=4 python matrix_product.py [--devices N] [--size N] [--staged]

The ring is chosen by topology: as many neighbours as possible copy directly, and those that NVML reports as near come first. Others
copy by page-locked host memory; --staged forces that. The program runs on one device, too.
"""

import argparse
import itertools
import sys

import numpy as np
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, LegacyPinnedMemoryResource, Program, launch, system

# c += a[:, from : from + depth] b, for `rows` rows of c and a.
SOURCE = r"""
#define TILE 16
extern "C" __global__ void multiply(const float *a, const float *b, float *c, int rows, int n, int from, int depth)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < depth; k += TILE) {
        as[y][x] = row < rows && k + x < depth ? a[(long long)row * n + from + k + x] : 0;
        bs[y][x] = column < n && k + y < depth ? b[(long long)(k + y) * n + column] : 0;
        __syncthreads();
        for (int j = 0; j < TILE; j++)
            sum += as[y][j] * bs[j][x];
        __syncthreads();
    }
    if (row < rows && column < n)
        c[(long long)row * n + column] += sum;
}
"""
TILE = 16
# Up to so many devices, all rings are compared. For more, each device is followed by the nearest one that is left.
MOST_TRIED = 7


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


def is_direct(one, other):
    """Whether two devices can copy from each other's memory."""
    return one.can_access_peer(other) and other.can_access_peer(one)


def distance(one, other):
    """How far apart two devices are: first whether they copy directly, then what NVML says of the way between them."""
    try:
        level = int(system.get_topology_common_ancestor(one.to_system_device(), other.to_system_device()))
    except Exception:
        # Without NVML, all distances are equal.
        level = 0
    return (not is_direct(one, other), level)


def ring(devices):
    """An order of the devices on a ring whose neighbours are near."""
    near = {(a, b): distance(devices[a], devices[b]) for a, b in itertools.permutations(range(len(devices)), 2)}
    if len(devices) <= MOST_TRIED:

        def length(order):
            steps = [near[pair] for pair in zip(order, order[1:] + order[:1], strict=True) if pair in near]
            return [sum(part) for part in zip(*steps, strict=True)]

        rest = itertools.permutations(range(1, len(devices)))
        order = min(((0, *other) for other in rest), key=length)
    else:
        order = [0]
        while len(order) < len(devices):
            left = [n for n in range(len(devices)) if n not in order]
            order.append(min(left, key=lambda n: near[order[-1], n]))
    return [devices[n] for n in order]


class Worker:
    """The rows of one device."""

    def __init__(self, device, reader, rows, largest, n, staged):
        device.set_current()
        self.device, self.rows, self.n = device, rows, n
        self.stream, self.copies = device.create_stream(), device.create_stream()
        self.kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("multiply")
        self.memory = DeviceMemoryResource(device)
        self.is_direct = device == reader or (not staged and is_direct(device, reader))
        if self.is_direct and reader != device:
            self.memory.peer_accessible_by = [reader]
        self.a, self.c = (self.memory.allocate(4 * len(rows) * n, stream=self.stream) for _ in range(2))
        self.c.fill(0, stream=self.stream)
        # The band of B that is multiplied, and the one that arrives.
        self.bands = [self.memory.allocate(4 * largest * n, stream=self.stream) for _ in range(2)]
        self.host = None if self.is_direct else LegacyPinnedMemoryResource().allocate(4 * largest * n)

    def load(self, a, b):
        """Copies the rows of this device."""
        self.device.set_current()
        self.a.copy_from(np.ascontiguousarray(a[self.rows]), stream=self.stream)
        band = np.zeros((self.bands[0].size // (4 * self.n), self.n), np.float32)
        band[: len(self.rows)] = b[self.rows]
        self.bands[0].copy_from(band, stream=self.stream)

    def multiply(self, band, of, arrived):
        """Adds the product with a band of B, which has the rows `of`. Returns an event: the band may be overwritten."""
        self.device.set_current()
        wait(self.stream, arrived)
        grid = (-(-self.n // TILE), -(-len(self.rows) // TILE))
        sizes = (np.int32(v) for v in (len(self.rows), self.n, of[0], len(of)))
        config = LaunchConfig(grid=grid, block=(TILE, TILE))
        launch(self.stream, config, self.kernel, self.a, self.bands[band], self.c, *sizes)
        return self.stream.record()

    def receive(self, band, sender, *events):
        """Copies a band of `sender` after these events. Returns an event: it has arrived."""
        source = sender.bands[band]
        if not sender.is_direct:
            # The sender's memory is not accessible from this device.
            sender.device.set_current()
            wait(sender.copies, *events)
            sender.host.copy_from(source, stream=sender.copies)
            source, events = sender.host, (*events, sender.copies.record())
        self.device.set_current()
        wait(self.copies, *events)
        self.bands[1 - band].copy_from(source, stream=self.copies)
        return self.copies.record()


def wait(stream, *events):
    """Lets a stream wait for those of the events that exist."""
    for event in filter(None, events):
        stream.wait(event)


def product(devices, a, b, staged):
    """A times B."""
    n, count = len(a), len(devices)
    rows = np.array_split(np.arange(n), count)
    largest = max(len(r) for r in rows)
    # Each device receives from the next one on the ring.
    workers = [Worker(device, devices[k - 1], rows[k], largest, n, staged) for k, device in enumerate(devices)]
    for worker in workers:
        worker.load(a, b)
    # Allocation and the first copies are stream-ordered: neighbours must not read before them.
    for worker in workers:
        worker.stream.sync()
    # When each device has multiplied its band, and when the band of this round has arrived there.
    multiplied, arrived = [None] * count, [None] * count
    for turn in range(count):
        band, of = turn % 2, [rows[(k + turn) % count] for k in range(count)]
        before, multiplied = multiplied, [w.multiply(band, of[k], arrived[k]) for k, w in enumerate(workers)]
        if turn + 1 < count:
            # A copy overwrites the band of the last round. It waits until that band has been multiplied here and copied by
            # its reader, and until its source has arrived at the sender.
            arrived = [
                w.receive(band, workers[(k + 1) % count], before[k], arrived[k - 1], arrived[(k + 1) % count])
                for k, w in enumerate(workers)
            ]
    c = np.empty((n, n), np.float32)
    for worker in workers:
        worker.device.set_current()
        part = np.empty((len(worker.rows), n), np.float32)
        worker.c.copy_to(part, stream=worker.stream)
        worker.stream.sync()
        c[worker.rows] = part
    return c, sum(worker.is_direct for worker in workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=0, help="number of devices (default: all)")
    parser.add_argument("--size", type=int, default=200, help="rows and columns of the matrices")
    parser.add_argument("--staged", action="store_true", help="copy by host memory")
    options = parser.parse_args()
    devices = all_devices(options.devices)
    if options.size < len(devices):
        parser.error(f"--size {options.size}: expected at least {len(devices)}, a row for each device")
    order = ring(devices)
    print("ring:", " ".join(str(device.device_id) for device in order))
    # Small integers: sums are exact, whatever their order.
    random = np.random.default_rng(1)
    a, b = (random.integers(-8, 9, (options.size,) * 2).astype(np.float32) for _ in range(2))
    c, direct = product(order, a, b, options.staged)
    if not np.array_equal(c, a @ b):
        sys.exit("wrong result: the product")
    print(
        f"{options.size} x {options.size} on {len(order)} devices; {direct} copy directly, {len(order) - direct} by the host"
    )
    print("done: the results are right")


if __name__ == "__main__":
    main()
