"""The model of docs/scaling.md: seconds of a step on several devices, and its table for numbers of GPUs that are not here.

    python benches/scaling/model.py [--rows N] [--columns N]

Measured on H200s: the time of a step without neighbours, and NVLink. Assumed: InfiniBand, and the rate of a matrix product.
"""

import argparse
import math
from dataclasses import dataclass

FLOAT = 4


@dataclass
class Link:
    """A connection between two devices."""

    name: str
    #: Seconds until a message without bytes has arrived, with the waits of the streams on both sides.
    latency: float
    #: Bytes in a second, in one direction.
    bandwidth: float

    def seconds(self, size):
        """Seconds of a message of so many bytes."""
        return self.latency + size / self.bandwidth


# Measured between two H200s (peer_copies.py): a copy of 4 KiB with an event and the other stream's wait, and copies of 1 GiB.
NVLINK = Link("NVLink", 11.7e-6, 397e9)
# Assumed: 90 percent of the bandwidth of an InfiniBand NDR port (50 GB/s), and a latency.
INFINIBAND = Link("InfiniBand", 10e-6, 45e9)
#: Assumed: half of an H200's peak in single precision, in operations a second.
MULTIPLY_RATE = 33e12


def halo_exchange(count, rows, fixed, per_row, edges, message):
    """Seconds of a step of a stencil on bands of rows; `message` is the time of an edge row.

    A band is computed while its edge rows are under way. The slower of the two counts.
    """
    compute = fixed + per_row * rows / count
    if count == 1:
        return compute
    # A band in the middle sends two rows and receives two.
    neighbours = 1 if count == 2 else 2
    return max(compute, edges + neighbours * message)


def ring_all_reduce(count, size, link):
    """Seconds of an all-reduce of `size` bytes around a ring: each device sends 2 (n - 1) parts of size / n."""
    return 2 * (count - 1) * link.seconds(size / count) if count > 1 else 0.0


def tree_reduction(count, size, link, combine):
    """Seconds of a reduction in a tree; `combine` is the time to add two arrays of `size` bytes."""
    return math.ceil(math.log2(count)) * (link.seconds(size) + combine)


def ring_matrix_product(count, order, rate, link):
    """Seconds of a product of square matrices whose bands are passed around a ring; `rate` in operations a second.

    Each device multiplies one band while the next one arrives.
    """
    multiply = 2 * order**3 / count**2 / rate
    return multiply + (count - 1) * max(multiply, link.seconds(FLOAT * order**2 / count))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=32768)
    parser.add_argument("--columns", type=int, default=32768)
    options = parser.parse_args()
    # H200: benches/scaling/halo_exchange.py, one rank, 32768 x 32768.
    fixed, per_element, edges = 10.8e-6, 116.3e-9 / 32768, 21.9e-6
    size = FLOAT * options.columns
    counts = (1, 2, 8, 64, 1024)
    alone = halo_exchange(1, options.rows, fixed, per_element * options.columns, edges, 0)
    print(
        f"halo exchange of {options.rows} x {options.columns} floats; all-reduce of 1 GiB; matrix product of order 65536"
    )
    print(
        f"{'GPUs':>5} {'link':>10} {'step us':>9} {'speed-up':>9} {'efficiency':>10} {'all-reduce ms':>14} {'product s':>10}"
    )
    for count in counts:
        link = NVLINK if count <= 8 else INFINIBAND
        step = halo_exchange(count, options.rows, fixed, per_element * options.columns, edges, link.seconds(size))
        reduce = ring_all_reduce(count, 2**30, link)
        product = ring_matrix_product(count, 65536, MULTIPLY_RATE, link)
        print(
            f"{count:5} {link.name if count > 1 else '':>10} {1e6 * step:9.1f} {alone / step:9.1f} {alone / step / count:10.0%} "
            f"{1e3 * reduce:14.2f} {product:10.3f}"
        )


if __name__ == "__main__":
    main()
