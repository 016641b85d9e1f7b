"""A stencil with a Ray actor and a device for each band of rows: edge rows pass through Ray's object store.

    CUPYRITE_CPU_DEVICES=3 python actors.py [--workers N] [--size N] [--steps N] [--every N] [--no-crash] [--address A]

A step of an actor returns its edge rows as buffers in device memory. The program passes references to them to the neighbours'
next steps, and never has the rows. It queues many steps before the first is done; Ray starts each when its arguments are there.

Every few steps, the actors put their bands into the object store. Each step gets references to its actor's last band and to the
edge rows since then. To show what they are for, an actor is killed in the middle of a step. Ray starts it again and repeats the
step, and the actor computes its band again from these. The other actors and the program do not notice.
"""

import argparse
import os
import signal
import sys
import time

import numpy as np
from cuda.core import LaunchConfig, Program, launch
from cuda.core.utils import StridedMemoryView

try:
    import cupyrite.ray
    import ray
except ImportError as reason:
    print(f"skipped: {reason}")
    sys.exit(77)

# Writes the rows of a band. The sides of the plate keep their temperatures.
SOURCE = r"""
extern "C" __global__ void step(const float *in, float *out, int width, int rows)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= rows)
        return;
    long long i = (long long)(1 + y) * width + x;
    bool side = x == 0 || x == width - 1;
    out[i] = side ? in[i] : 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}
"""
BLOCK = (32, 8)
FLOAT = 4
# Seconds after which silent actors count as dead.
TIMEOUT = 120


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


@ray.remote(num_gpus=1)
def compile_code():
    cupyrite.ray.device()
    return Program(SOURCE, "c++").compile("cubin")


@ray.remote(num_gpus=1, max_restarts=3, max_task_retries=3)
class Band:
    """The rows of an actor, with one of each neighbour."""

    def __init__(self, code, crash_at):
        self.device = cupyrite.ray.device()
        self.stream = self.device.create_stream()
        self.kernel = code.get_kernel("step")
        self.crash_at = crash_at
        # The number of steps of the rows; None without rows, also after a crash.
        self.number = None
        self.repeated = None

    def name(self):
        return self.device.name

    # `previous` comes from the actor's last step. Without this argument, Ray could repeat a step after later ones.

    def advance(self, number, history, previous, above, below):
        """Computes a step; returns the edge rows. `above` and `below` are the neighbours' edge rows, if there are neighbours."""
        self.recover(number, history)
        self.compute(above, below)
        if self.number == self.crash_at:
            os.kill(os.getpid(), signal.SIGKILL)
        # Ray copies them to the object store before the next method starts.
        return self.rows(1), self.rows(self.count)

    def keep(self, number, history, previous):
        """The rows in device memory, without the neighbours'."""
        self.recover(number, history)
        return StridedMemoryView.from_buffer(self.rows(1, self.count), (self.count, self.width), dtype=np.float32)

    def result(self, number, history, previous):
        """The rows in host memory, and how many steps were computed again after a crash: None without one."""
        self.recover(number, history)
        result = np.empty((self.count, self.width), np.float32)
        self.rows(1, self.count).copy_to(result, stream=self.stream)
        self.stream.sync()
        return result, self.repeated

    def recover(self, number, history):
        """Computes the rows of a step again from those in the object store, if this process does not have them."""
        if self.number == number:
            return
        first, band, outside, received = history
        self.load(first, *ray.get([band, outside], timeout=TIMEOUT))
        if number > 0:
            # Ray has started this process in the place of another.
            self.crash_at, self.repeated = None, len(received)
        for references in received:
            self.compute(*(reference and ray.get(reference, timeout=TIMEOUT) for reference in references))

    def load(self, number, band, outside):
        """Takes rows: those of this band as a view, and the two around it, which are neighbours' or never change."""
        self.number, (self.count, self.width) = number, band.shape
        size = (self.count + 2) * self.width * FLOAT
        self.fields = [self.device.allocate(size, stream=self.stream) for _ in range(2)]
        for _ in self.fields:
            self.rows(0).copy_from(outside[0], stream=self.stream)
            self.rows(self.count + 1).copy_from(outside[1], stream=self.stream)
            self.fields.reverse()
        inside = StridedMemoryView.from_buffer(self.rows(1, self.count), band.shape, dtype=np.float32)
        inside.copy_from(band, self.stream)
        self.stream.sync()

    def rows(self, first, count=1):
        """Rows of the current field. The slice refers to the field's memory."""
        size = self.width * FLOAT
        return self.fields[0][first * size : (first + count) * size]

    def compute(self, above, below):
        if above is not None:
            self.rows(0).copy_from(above, stream=self.stream)
        if below is not None:
            self.rows(self.count + 1).copy_from(below, stream=self.stream)
        config = LaunchConfig(grid=(-(-self.width // BLOCK[0]), -(-self.count // BLOCK[1])), block=BLOCK)
        launch(self.stream, config, self.kernel, *self.fields, np.int32(self.width), np.int32(self.count))
        self.fields.reverse()
        self.number += 1
        # The neighbours' rows are freed when the method returns.
        self.stream.sync()


def start(field, options):
    """The actors, and what each computes its rows from: a step, references to rows, references to edge rows since then."""
    # The code itself: Ray keeps no references for actors that it starts again.
    code = ray.get(compile_code.remote(), timeout=TIMEOUT)
    # A process that is killed in its first step cannot be distinguished from the one that replaces it.
    crash_at = options.steps // 2 if options.crash and options.steps >= 4 else None
    bands, histories = [], []
    for n, numbers in enumerate(np.array_split(np.arange(1, len(field) - 1), options.workers)):
        bands.append(Band.remote(code, crash_at if n == options.workers // 2 else None))
        rows = StridedMemoryView.from_array_interface(field[numbers[0] : numbers[-1] + 1])
        outside = field[numbers[0] - 1], field[numbers[-1] + 1]
        histories.append((0, ray.put(rows), ray.put(outside), []))
    return bands, histories


def run(field, options):
    """The field after all steps; prints what happened."""
    bands, histories = start(field, options)
    names = ray.get([band.name.remote() for band in bands], timeout=TIMEOUT)
    print(f"on {', '.join(names)}")
    # The edge rows of each band, and those above and below it, from its neighbours: none before the first step.
    edges, arriving = [(None, None)] * len(bands), [(None, None)] * len(bands)
    for number in range(options.steps):
        edges = [
            band.advance.options(num_returns=2).remote(number, history, own[0], *received)
            for band, history, own, received in zip(bands, histories, edges, arriving)
        ]
        for history, received in zip(histories, arriving):
            history[-1].append(received)
        arriving = [
            (edges[n - 1][1] if n > 0 else None, edges[n + 1][0] if n + 1 < len(bands) else None)
            for n in range(len(bands))
        ]
        if (number + 1) % options.every == 0:
            kept = [band.keep.remote(number + 1, *rest) for band, *rest in zip(bands, histories, (e[0] for e in edges))]
            ready, _ = ray.wait(kept, num_returns=len(kept), timeout=TIMEOUT, fetch_local=False)
            if len(ready) < len(kept):
                sys.exit(f"{len(kept) - len(ready)} actors have not computed step {number + 1} in {TIMEOUT} s")
            histories = [(number + 1, rows, outside, []) for rows, (_, _, outside, _) in zip(kept, histories)]
    results = ray.get(
        [band.result.remote(options.steps, *rest) for band, *rest in zip(bands, histories, (e[0] for e in edges))],
        timeout=TIMEOUT,
    )
    for n, (_, repeated) in enumerate(results):
        if repeated is not None:
            print(f"actor {n} was started again, and computed {repeated} steps again")
    return np.concatenate([field[:1], *(rows for rows, _ in results), field[-1:]])


def expected(field, steps):
    """The same on the host, with the same order of additions."""
    for _ in range(steps):
        inside = (field[1:-1, :-2] + field[1:-1, 2:]) + field[:-2, 1:-1] + field[2:, 1:-1]
        field = field.copy()
        field[1:-1, 1:-1] = np.float32(0.25) * inside
    return field


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=3, help="number of actors, each with a device")
    parser.add_argument("--size", type=int, default=512, help="rows and columns")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=20, help="steps between the bands that the object store keeps")
    parser.add_argument("--no-crash", dest="crash", action="store_false", help="kill no actor")
    parser.add_argument("--address", help="of a Ray cluster (default: one for this program alone)")
    options = parser.parse_args()
    if options.workers < 1:
        parser.error(f"--workers {options.workers}: expected at least 1")
    if options.size < options.workers + 2:
        parser.error(
            f"--size {options.size}: expected at least {options.workers + 2}, a row for each actor and two edges"
        )
    for name in ("steps", "every"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: expected at least 1")
    try:
        if options.address:
            cupyrite.ray.init(options.address)
        else:
            cupyrite.ray.init("local", include_dashboard=False, object_store_memory=200 << 20, logging_level="WARNING")
    except RuntimeError as reason:
        skip(f"no device: {reason}")
    devices = int(ray.cluster_resources().get("GPU", 0))
    if options.workers > devices:
        skip(
            f"{options.workers} devices are needed, and there are {devices}; without GPUs, CUPYRITE_CPU_DEVICES is their number"
        )
    field = np.zeros((options.size, options.size), np.float32)
    field[0], field[:, 0] = 100, np.linspace(100, 0, options.size)
    begin = time.perf_counter()
    result = run(field, options)
    seconds = time.perf_counter() - begin
    if not np.array_equal(result, expected(field, options.steps)):
        sys.exit("wrong result: the temperatures")
    # Ray prints nothing more after this.
    ray.shutdown()
    print(f"{options.steps} steps by {options.workers} actors in {seconds:.1f} s")
    print("done: the results are right")


if __name__ == "__main__":
    main()
