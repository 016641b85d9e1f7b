"""Strong scaling of the halo exchange in one process (examples/multi_device/halo_exchange.py): measured, and predicted.

    python benches/scaling/halo_devices.py [--sizes N ...] [--steps N] [--turns N]

Without GPUs, CUPYRITE_CPU_DEVICES is the number of devices. Measured: the time of a step on one device as a linear function of its
rows, without an exchange, and `host`: the time of a step on bands of two rows, which are computed before the host has enqueued the
next step. One thread enqueues the steps of all devices, so a step takes at least this long. The last column exchanges rows through
page-locked host memory. docs/scaling.md has the model.
"""

import argparse
import sys
import time

import model
import numpy as np
from cuda.core import Device
from load_example import load_example

example = load_example("multi_device/halo_exchange.py")


def field(rows, columns):
    """A field with a hot first row."""
    made = np.zeros((rows + 2, columns), np.float32)
    made[0] = 100
    return made


def seconds(bands, steps):
    """Seconds of a step."""
    start = time.perf_counter()
    example.run(bands, steps)
    for band in bands:
        band.device.set_current()
        band.stream.sync()
        band.copies.sync()
    return (time.perf_counter() - start) / steps


def close(bands):
    for band in bands:
        band.device.set_current()
        for memory in (*band.fields, *band.staging.values()):
            memory.close()
        band.stream.close()
        band.copies.close()
        band.memory.close()


def measure(devices, rows, columns, steps, turns, staged=False):
    """The smallest of some turns; one more turn warms up."""
    bands = example.split(field(rows, columns), devices, staged)
    results = [seconds(bands, steps) for _ in range(turns + 1)][1:]
    close(bands)
    return min(results)


def check(devices, size=1024, steps=100):
    """Exits if several devices compute another field than one."""
    found = []
    for used, staged in ((devices[:1], False), (devices, False), (devices, True)):
        bands = example.split(field(size, size), used, staged)
        example.run(bands, steps)
        found.append(example.gather(bands, steps, field(size, size)))
        close(bands)
    if not all(np.array_equal(found[0], other) for other in found[1:]):
        sys.exit(f"wrong result: {len(devices)} devices differ from one")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 2048, 4096], help="rows and columns")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    devices = Device.get_all_devices()
    check(devices)
    print(f"{len(devices)} times {devices[0].name}")
    print(
        f"{'size':>6} {'devices':>7} {'host us':>8} {'fixed us':>9} {'row ns':>8} {'predicted us':>13} {'measured us':>12} {'error':>6} "
        f"{'speed-up':>8} {'staged us':>10}"
    )
    for size in options.sizes:
        steps, turns = options.steps, options.turns
        short = measure(devices[:1], size // 4, size, steps, turns)
        first = measure(devices[:1], size, size, steps, turns)
        per_row = (first - short) / (size - size // 4)
        fixed = max(0.0, short - per_row * (size // 4))
        for count in range(1, len(devices) + 1):
            used = devices[:count]
            host = measure(used, 2 * count, size, steps, turns)
            measured = measure(used, size, size, steps, turns) if count > 1 else first
            staged = f"{1e6 * measure(used, size, size, steps, turns, staged=True):.1f}" if count > 1 else ""
            # The host does not wait for messages: it, or the rows, limit a step.
            predicted = max(model.halo_exchange(count, size, fixed, per_row, 0.0, 0.0), host)
            print(
                f"{size:6} {count:7} {1e6 * host:8.1f} {1e6 * fixed:9.1f} {1e9 * per_row:8.1f} {1e6 * predicted:13.1f} {1e6 * measured:12.1f} "
                f"{100 * (predicted / measured - 1):5.1f}% {first / measured:8.2f} {staged:>10}",
                flush=True,
            )


if __name__ == "__main__":
    main()
