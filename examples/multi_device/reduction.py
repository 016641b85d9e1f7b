"""A reduction over several devices: each reduces its part of the numbers, and the sums are combined in a tree.

In each round of the tree, a device adds the sum of another one to its own. A kernel reads it from the other device's memory where
peer access allows it, otherwise it is copied by page-locked host memory; --staged forces that. Events order the devices, and the
host waits once, for the total.

    CUPYRITE_CPU_DEVICES=4 python reduction.py [--devices N] [--numbers N] [--staged]

The program runs on one device, too.
"""

import argparse
import sys

import numpy as np
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, LegacyPinnedMemoryResource, Program, launch

SOURCE = r"""
typedef unsigned long long Sum;

// Adds the squares of the numbers to *sum.
extern "C" __global__ void squares(const int *numbers, long long n, Sum *sum)
{
    __shared__ Sum part[256];
    Sum mine = 0;
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL)
        mine += (Sum)((long long)numbers[i] * numbers[i]);
    part[threadIdx.x] = mine;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        atomicAdd(sum, part[0]);
}

extern "C" __global__ void add(Sum *sum, const Sum *other) { *sum += *other; }
"""
MOST_BLOCKS = 512


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


class Worker:
    """A device with its part of the numbers and its sum."""

    def __init__(self, device, readers):
        device.set_current()
        self.device = device
        self.stream = device.create_stream()
        code = Program(SOURCE, "c++").compile("cubin")
        self.squares, self.add = code.get_kernel("squares"), code.get_kernel("add")
        self.memory = DeviceMemoryResource(device)
        self.memory.peer_accessible_by = readers
        self.sum = self.memory.allocate(8, stream=self.stream)
        self.sum.fill(0, stream=self.stream)
        self.staged = []

    def reduce(self, numbers):
        """Reduces numbers of the host. Returns an event."""
        self.device.set_current()
        if len(numbers):
            self.numbers = self.memory.allocate(numbers.nbytes, stream=self.stream)
            self.numbers.copy_from(numbers, stream=self.stream)
            config = LaunchConfig(grid=min(MOST_BLOCKS, -(-len(numbers) // 256)), block=256)
            launch(self.stream, config, self.squares, self.numbers, np.int64(len(numbers)), self.sum)
        return self.stream.record()

    def combine(self, other, ready):
        """Adds the sum of another device, which is ready at an event. Returns an event, and whether a kernel read the sum there."""
        direct = self.device in other.memory.peer_accessible_by
        source = other.sum
        if not direct:
            host = LegacyPinnedMemoryResource().allocate(8)
            # Its memory is not accessible from this device.
            other.device.set_current()
            host.copy_from(other.sum, stream=other.stream)
        self.device.set_current()
        self.stream.wait(ready)
        if not direct:
            source = self.memory.allocate(8, stream=self.stream)
            self.stream.wait(other.stream.record())
            source.copy_from(host, stream=self.stream)
            # Both live until the copies are done.
            self.staged += [host, source]
        launch(self.stream, LaunchConfig(grid=1, block=1), self.add, self.sum, source)
        return self.stream.record(), direct


def tree(count):
    """Rounds of pairs: the first device of a pair adds the sum of the second one."""
    step = 1
    while step < count:
        yield [(n, n + step) for n in range(0, count - step, 2 * step)]
        step *= 2


def total(devices, numbers, staged):
    """The sum of the squares, and how many sums kernels read from other devices."""
    reader = {second: first for pairs in tree(len(devices)) for first, second in pairs}
    workers = []
    for n, device in enumerate(devices):
        readers = [devices[reader[n]]] if n in reader and not staged else []
        workers.append(Worker(device, [r for r in readers if r.can_access_peer(device)]))
    parts = np.array_split(numbers, len(devices))
    ready = [worker.reduce(part) for worker, part in zip(workers, parts, strict=True)]
    direct = 0
    for pairs in tree(len(devices)):
        for first, second in pairs:
            ready[first], read = workers[first].combine(workers[second], ready[second])
            direct += read
    result = np.empty(1, np.uint64)
    devices[0].set_current()
    workers[0].sum.copy_to(result, stream=workers[0].stream)
    workers[0].stream.sync()
    return int(result[0]), direct


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=0, help="number of devices (default: all)")
    parser.add_argument("--numbers", type=int, default=1_000_003, help="how many numbers to add")
    parser.add_argument("--staged", action="store_true", help="copy sums by host memory")
    options = parser.parse_args()
    devices = all_devices(options.devices)
    if options.numbers < 0:
        parser.error(f"--numbers {options.numbers}: expected 0 or more")
    numbers = np.random.default_rng(1).integers(-1000, 1001, options.numbers).astype(np.int32)
    found, direct = total(devices, numbers, options.staged)
    expected = int((numbers.astype(np.int64) ** 2).sum())
    if found != expected:
        sys.exit(f"wrong result: {found} instead of {expected}")
    print(
        f"{options.numbers} numbers on {len(devices)} devices; {direct} sums read by peer access, {len(devices) - 1 - direct} by the host"
    )
    print("done: the results are right")


if __name__ == "__main__":
    main()
