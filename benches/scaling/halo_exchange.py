"""Strong scaling of the MPI halo exchange: measured, and predicted from figures that are taken without the exchange.

    mpiexec -n 4 python benches/scaling/halo_exchange.py [--size N] [--steps N] [--turns N] [--messages {device,host}]

Without GPUs, CUPYRITE_CPU_DEVICES is the number of ranks, and CUPYRITE_CPU_THREADS their share of the cores.

Three figures are measured. `fixed` and `per row`: the time of a step on a band of one rank that has no neighbours, as a linear
function of its rows, while the other ranks compute such bands as well. `message`: half of a round trip of an edge row
between two ranks. `edges`: from the launch of the edge rows to the end of the wait for them. docs/scaling.md has the model.
"""

import argparse
import time

import model
import numpy as np
from load_example import load_example
from mpi4py import MPI

example = load_example("mpi/halo_exchange.py")


def smallest_of_each(turns, *functions):
    """The smallest result of each function, called in turns: disturbances only add, and pass."""
    results = [[function() for function in functions] for _ in range(turns)]
    return [min(column) for column in zip(*results)]


def step_seconds(ranks, device, rows, columns, steps, staged):
    """The seconds of a step of a field that the ranks of a communicator share; of the slowest rank."""
    _, seconds = example.solve(ranks, device, example.initial(rows + 2, columns), steps, staged)
    return seconds / steps


def alone_seconds(world, device, rows, columns, steps):
    """The seconds of a step if every rank of `world` computes a field of its own: of the slowest rank."""
    world.Barrier()
    mine = step_seconds(MPI.COMM_SELF, device, rows, columns, steps, False)
    return world.allreduce(mine, MPI.MAX)


def message_seconds(world, columns, count=200):
    """Half of a round trip of an edge row between the first two ranks."""
    row = np.zeros(columns, np.float32)
    world.Barrier()
    start = time.perf_counter()
    for _ in range(count):
        if world.rank == 0:
            world.Send(row, 1)
            world.Recv(row, 1)
        elif world.rank == 1:
            world.Recv(row, 0)
            world.Send(row, 0)
    return world.bcast((time.perf_counter() - start) / (2 * count))


def edge_seconds(world, device, columns, count=200):
    """From the launch of two edge rows to the end of the wait for them."""
    band = example.Band(MPI.COMM_SELF, device, example.initial(6, columns), False)
    world.Barrier()
    start = time.perf_counter()
    for number in range(count):
        source, target = band.fields[number % 2], band.fields[1 - number % 2]
        band.advance(source, target, 1, 1)
        band.advance(source, target, 4, 1)
        band.stream.record().sync()
    return world.allreduce((time.perf_counter() - start) / count, MPI.MAX)


def measure(part, device, options, staged):
    """Seconds of a step without rows and of a row, each without neighbours, and of a step with neighbours."""
    size, steps = options.size, options.steps
    short, long = size // 8, size
    short_band, long_band, step = smallest_of_each(
        options.turns,
        lambda: alone_seconds(part, device, short, size, steps),
        lambda: alone_seconds(part, device, long, size, steps),
        lambda: step_seconds(part, device, size, size, steps, staged),
    )
    per_row = (long_band - short_band) / (long - short)
    return max(0.0, short_band - per_row * short), per_row, step


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2048, help="rows and columns")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--messages", choices=("device", "host"))
    options = parser.parse_args()
    world = MPI.COMM_WORLD
    device = example.choose_device(world.Split_type(MPI.COMM_TYPE_SHARED))
    where = options.messages or ("device" if device.name.startswith("CPU") else "host")
    staged = where == "host"
    size, turns = options.size, options.turns
    message, edges = smallest_of_each(
        turns,
        lambda: message_seconds(world, size) if world.size > 1 else 0.0,
        lambda: edge_seconds(world, device, size),
    )
    if world.rank == 0:
        print(f"{device.name}, {world.size} ranks, {size} x {size}, messages in {where} memory")
        print(f"message {1e6 * message:.1f} us, edges {1e6 * edges:.1f} us")
        print(
            f"{'ranks':>5} {'fixed us':>9} {'row ns':>8} {'predicted us':>13} {'measured us':>12} {'error':>6} {'speed-up':>8}"
        )
    first = None
    for count in range(1, world.size + 1):
        part = world.Split(0 if world.rank < count else MPI.UNDEFINED)
        if part != MPI.COMM_NULL:
            fixed, per_row, measured = measure(part, device, options, staged)
            first = first or measured
            if part.rank == 0:
                predicted = model.halo_exchange(count, size, fixed, per_row, edges, message)
                print(
                    f"{count:5} {1e6 * fixed:9.1f} {1e9 * per_row:8.1f} {1e6 * predicted:13.1f} {1e6 * measured:12.1f} "
                    f"{100 * (predicted / measured - 1):5.1f}% {first / measured:8.2f}",
                    flush=True,
                )
        world.Barrier()


if __name__ == "__main__":
    main()
