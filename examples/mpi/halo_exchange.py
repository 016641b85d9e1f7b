"""A stencil with a process for each band of rows, started by MPI: ranks exchange edge rows as MPI messages.

    mpiexec -n 4 python halo_exchange.py [--size N] [--steps N] [--messages {device,host}] [--scaling {strong,weak}] [--plot FILE]

Each rank takes the device of its number on its machine. While neighbours exchange edge rows, a stream computes the rest.

On the CPU device, device memory is host memory, and every MPI sends it. On a GPU, messages go through page-locked host memory,
unless --messages device says that MPI is CUDA-aware: MPI cannot be asked, and one that is not crashes.

Until the first message, all ranks agree on what failed: if one has no device, or cannot compile, it says why, and all end. `Allreduce` adds
the heat of all bands in device memory.
"""

import argparse
import sys
import time
import traceback

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, LegacyPinnedMemoryResource, Program, launch

try:
    from mpi4py import MPI
except ImportError as reason:
    print(f"skipped: mpi4py is not installed: {reason}")
    sys.exit(77)

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
extern "C" __global__ void heat(const float *in, double *sum, int width, int rows)
{
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    double mine = 0;
    if (y < rows)
        for (int x = 0; x < width; x++)
            mine += in[(long long)(1 + y) * width + x];
    atomicAdd(sum, mine);
}
"""
BLOCK = (32, 8)
FLOAT = 4
# Exit status of a program that the machine cannot run.
SKIPPED = 77


def agree(world, make, status):
    """The result of `make()`. If it fails on some ranks, the first of them prints the reason, and all end with `status`."""
    result = reason = None
    try:
        result = make()
    except Exception as error:
        reason = str(error)
    reasons = world.allgather(reason)
    failed = [rank for rank, why in enumerate(reasons) if why is not None]
    if failed:
        if world.rank == failed[0]:
            kind = "skipped: " if status == SKIPPED else ""
            print(f"{kind}rank {world.rank} on {MPI.Get_processor_name()}: {reason}", flush=True)
        MPI.Finalize()
        sys.exit(status)
    return result


def choose_device(local):
    """The device of this rank: that of its number among the ranks of this machine. More ranks than devices share them."""
    try:
        devices = Device.get_all_devices()
    except Exception as error:
        raise RuntimeError(f"no device: {error}") from error
    if not devices:
        raise RuntimeError("no device")
    device = devices[local.rank % len(devices)]
    device.set_current()
    return device


def row(field, number, width):
    """A row of a field, without its memory."""
    return Buffer.from_handle(int(field.handle) + number * width * FLOAT, width * FLOAT)


class Band:
    """The rows of this rank, and its exchange of edge rows."""

    def __init__(self, world, device, rows, staged):
        self.world, self.device = world, device
        self.count, self.width = len(rows) - 2, rows.shape[1]
        self.stream = device.create_stream()
        code = Program(SOURCE, "c++").compile("cubin")
        self.step, self.heat = code.get_kernel("step"), code.get_kernel("heat")
        self.fields = [device.allocate(rows.nbytes, stream=self.stream) for _ in range(2)]
        for field in self.fields:
            field.copy_from(rows, stream=self.stream)
        up, down = world.rank - 1, world.rank + 1
        # Rank, the row that is sent there, and the row that is received from there.
        self.neighbours = []
        if up >= 0:
            self.neighbours.append((up, 1, 0))
        if down < world.size:
            self.neighbours.append((down, self.count, self.count + 1))
        self.staged, self.staging = staged, {}
        if staged:
            host = LegacyPinnedMemoryResource()
            for neighbour, *_ in self.neighbours:
                self.staging[neighbour] = [host.allocate(self.width * FLOAT) for _ in range(2)]
        self.stream.sync()

    def advance(self, source, target, first, rows):
        if rows > 0:
            config = LaunchConfig(grid=(-(-self.width // BLOCK[0]), -(-rows // BLOCK[1])), block=BLOCK)
            launch(self.stream, config, self.step, source, target, *(np.int32(v) for v in (self.width, first, rows)))

    def compute(self, number):
        source, target = self.fields[number % 2], self.fields[1 - number % 2]
        self.advance(source, target, 1, 1)
        self.advance(source, target, self.count, min(1, self.count - 1))
        for neighbour, sent, _ in self.neighbours:
            if self.staged:
                self.staging[neighbour][0].copy_from(row(target, sent, self.width), stream=self.stream)
        edges = self.stream.record()
        # The rest is computed while the messages are under way.
        self.advance(source, target, 2, self.count - 2)
        edges.sync()
        requests = []
        for neighbour, sent, received in self.neighbours:
            if self.staged:
                out, into = self.staging[neighbour]
            else:
                out, into = row(target, sent, self.width), row(target, received, self.width)
            requests.append(self.world.Irecv([into, self.width, MPI.FLOAT], neighbour))
            requests.append(self.world.Isend([out, self.width, MPI.FLOAT], neighbour))
        MPI.Request.Waitall(requests)
        if self.staged:
            for neighbour, _, received in self.neighbours:
                row(target, received, self.width).copy_from(self.staging[neighbour][1], stream=self.stream)

    def total_heat(self, steps):
        """The sum over all ranks."""
        mine, all_ranks = (self.device.allocate(8, stream=self.stream) for _ in range(2))
        mine.fill(0, stream=self.stream)
        config = LaunchConfig(grid=-(-self.count // 64), block=64)
        sizes = (np.int32(self.width), np.int32(self.count))
        launch(self.stream, config, self.heat, self.fields[steps % 2], mine, *sizes)
        result = np.empty(1)
        if self.staged:
            mine.copy_to(result, stream=self.stream)
            self.stream.sync()
            self.world.Allreduce(MPI.IN_PLACE, result)
        else:
            self.stream.sync()
            self.world.Allreduce([mine, 1, MPI.DOUBLE], [all_ranks, 1, MPI.DOUBLE])
            all_ranks.copy_to(result, stream=self.stream)
            self.stream.sync()
        return float(result[0])

    def rows(self, steps):
        """The rows after all steps."""
        part = np.empty((self.count + 2, self.width), np.float32)
        self.fields[steps % 2].copy_to(part, stream=self.stream)
        self.stream.sync()
        return part[1:-1]


def expected(field, steps):
    """The same on the host, with the same order of additions."""
    for _ in range(steps):
        inside = (field[1:-1, :-2] + field[1:-1, 2:]) + field[:-2, 1:-1] + field[2:, 1:-1]
        field = field.copy()
        field[1:-1, 1:-1] = np.float32(0.25) * inside
    return field


def initial(rows, columns):
    field = np.zeros((rows, columns), np.float32)
    field[0], field[:, 0] = 100, np.linspace(100, 0, rows)
    return field


def solve(world, device, field, steps, staged):
    """This rank's band after all steps, and the seconds that they took."""
    numbers = np.array_split(np.arange(1, len(field) - 1), world.size)[world.rank]
    rows = np.ascontiguousarray(field[numbers[0] - 1 : numbers[-1] + 2])
    band = agree(world, lambda: Band(world, device, rows, staged), 1)
    world.Barrier()
    start = time.perf_counter()
    for number in range(steps):
        band.compute(number)
    band.stream.sync()
    world.Barrier()
    return band, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=128, help="rows and columns")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--messages", choices=("device", "host"), help="where MPI finds messages (default: see above)")
    parser.add_argument("--scaling", choices=("strong", "weak"), help="print the time beside that of fewer ranks")
    parser.add_argument("--plot", metavar="FILE", help="with --scaling: save a picture of it, which needs matplotlib")
    options = parser.parse_args()
    world = MPI.COMM_WORLD
    wrong = [
        f"--{name} {getattr(options, name)}: expected at least {least}"
        for name, least in (("size", world.size + 2), ("steps", 1))
        if getattr(options, name) < least
    ]
    if options.plot and not options.scaling:
        wrong.append("--plot: expected --scaling as well")
    if wrong:
        if world.rank == 0:
            print("\n".join(wrong), file=sys.stderr)
        sys.exit(2)
    local = world.Split_type(MPI.COMM_TYPE_SHARED)
    device = agree(world, lambda: choose_device(local), SKIPPED)
    where = options.messages or ("device" if device.name.startswith("CPU") else "host")
    if world.rank == 0:
        print(
            f"on {device.name}: {world.size} ranks, {local.size} on this machine, {MPI.Get_library_version().split(chr(10))[0][:40]}"
        )
    field = initial(options.size, options.size)
    band, seconds = solve(world, device, field, options.steps, where == "host")
    heat = band.total_heat(options.steps)
    parts = world.gather(band.rows(options.steps))
    right = None
    if world.rank == 0:
        wanted = expected(field, options.steps)
        right = np.array_equal(np.concatenate(parts), wanted[1:-1])
        right &= bool(np.isclose(heat, wanted[1:-1].sum(dtype=np.float64), rtol=1e-12))
    if not world.bcast(right):
        sys.exit("wrong result: the temperatures" if world.rank == 0 else 1)
    if options.scaling:
        scaling(world, device, options, where == "host")
    if world.rank == 0:
        print(
            f"{options.steps} steps on {world.size} bands in {1e3 * seconds:.1f} ms, messages in {where} memory, heat {heat:.1f}"
        )
        print("done: the results are right")


def scaling(world, device, options, staged):
    """Prints how the time depends on the number of ranks: of the same field, or of one that grows with it."""
    times = []
    for count in range(1, world.size + 1):
        part = world.Split(0 if world.rank < count else MPI.UNDEFINED)
        if part != MPI.COMM_NULL:
            rows = options.size if options.scaling == "strong" else (options.size - 2) * count + 2
            _, seconds = solve(part, device, initial(rows, options.size), options.steps, staged)
            if part.rank == 0:
                print(f"{count} ranks, {rows} rows: {1e3 * seconds:.1f} ms")
                times.append(1e3 * seconds)
        world.Barrier()
    if options.plot and world.rank == 0:
        plot(times, options)


def plot(times, options):
    """Saves the times in ms of 1, 2, ... ranks beside those of ideal scaling."""
    try:
        import matplotlib
    except ImportError as reason:
        print(f"no plot: {reason}")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ranks = range(1, len(times) + 1)
    ideal = [times[0] / (count if options.scaling == "strong" else 1) for count in ranks]
    figure, axes = pyplot.subplots(figsize=(5, 3.5), layout="constrained")
    axes.plot(ranks, times, "o-", label="measured")
    axes.plot(ranks, ideal, "--", label="ideal")
    axes.set(
        xlabel="ranks", ylabel=f"ms for {options.steps} steps", title=f"{options.scaling} scaling", ylim=0, xticks=ranks
    )
    axes.legend()
    figure.savefig(options.plot)


if __name__ == "__main__":
    try:
        main()
    except Exception:
        # The other ranks may wait for messages of this one.
        traceback.print_exc()
        MPI.COMM_WORLD.Abort(1)
