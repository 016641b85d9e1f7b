"""Kernels on the CPU device, beside plain C (-O3 -march=native -ffast-math) and PoCL.

    kernels.py [--kernels a,b] [--turns N] [--threads N] [--sides c,pocl,cupyrite] [--pocl-python PATH] [--json FILE]

Each side is a process of its own (kernels_side.py) that keeps the compiled kernel and its arrays. The sides take turns; a
turn is a few runs, from launch to completion, with the data in place: compilation and copies do not count. The smallest
time of each side counts. Every result is compared with that of C, within the tolerance that kernels_table.py states.

With one thread, all sides run on the same core. With more, C uses OpenMP, and the system places the threads.

PoCL compiles with -cl-fast-relaxed-math, as C does with -ffast-math; NVRTC compiles with its defaults.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import numpy as np
from kernels_table import BY_NAME

from harness.sides import machine, table, verdict
from harness.turns import take_turns

TITLES = {"c": "C", "pocl": "PoCL", "cupyrite": "Cupyrite"}


class SideFailed(Exception):
    """A side is missing, or failed to load or run a kernel."""


class Worker:
    """The process of a side."""

    def __init__(self, name, python, folder, threads):
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(HERE.parent))))
        environment = dict(os.environ, PYTHONPATH=path, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
        words = [python, str(HERE / "kernels_side.py"), name, str(folder), str(threads)]
        try:
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
        except OSError as reason:
            raise SideFailed(f"{python}: {reason.strerror}") from None
        first = self.receive()
        if "missing" in first:
            self.close()
            raise SideFailed(f"{python}: {first['missing']}")
        self.description = first["description"]

    def receive(self):
        """The next answer of the process."""
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise SideFailed(f"the process ended with status {self.process.returncode}")
        return json.loads(line)

    def request(self, **request):
        """Sends a request and returns its answer."""
        if self.process.poll() is not None:
            raise SideFailed(f"the process ended with status {self.process.returncode}")
        # `receive` reports that a process has ended.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        answer = self.receive()
        if "error" in answer:
            raise SideFailed(answer["error"])
        return answer

    def turn(self, rounds):
        """One turn on the cores of this process: the seconds of each run."""
        cores = os.sched_getaffinity(0)
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            # A thread may have ended.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), cores)
        return self.request(time=rounds)["seconds"]

    def close(self):
        """Ends the process."""
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()


def start_workers(options, folder):
    """The processes of the sides that are available, by name; prints why a side is left out."""
    workers = {}
    for name in options.sides:
        python = options.pocl_python if name == "pocl" else sys.executable
        try:
            workers[name] = Worker(name, python, folder, options.threads)
        except SideFailed as reason:
            print(f"({TITLES[name]} is left out: {reason})")
    return workers


def write_inputs(kernel, folder):
    """Writes the inputs of a kernel to FOLDER/KERNEL, where the sides read them."""
    (folder / kernel.name).mkdir()
    for name, array in kernel.make_inputs(np.random.default_rng(1)).items():
        np.save(folder / kernel.name / f"{name}.npy", array)


def read_outputs(kernel, worker, folder):
    """The outputs of the last run of a side."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        worker.request(save=own)
        return {name: np.load(pathlib.Path(own) / f"{name}.npy") for name in kernel.outputs}


def compare(kernel, outputs):
    """What differs from C, as one message a side and output; `outputs` maps sides to their outputs."""
    messages = []
    for side in outputs.keys() - {"c"} if "c" in outputs else ():
        for name, expected in outputs["c"].items():
            difference = kernel.tolerance.difference(expected, outputs[side][name])
            if difference:
                messages.append(f"{kernel.name}: '{name}' of {TITLES[side]}: {difference}")
    return messages


def measure(kernel, workers, folder, options):
    """(milliseconds of each turn by side, messages about failures and differences) of a kernel."""
    write_inputs(kernel, folder)
    messages, loaded = [], {}
    for side, worker in workers.items():
        try:
            worker.request(load=kernel.name)
            loaded[side] = worker
        except SideFailed as reason:
            messages.append(f"{kernel.name}: {TITLES[side]} failed: {reason}")
    turns = take_turns(
        options.turns,
        {side: lambda worker=worker: min(worker.turn(options.rounds)) * 1e3 for side, worker in loaded.items()},
        one_core=options.threads == 1,
    )
    outputs = {side: read_outputs(kernel, worker, folder) for side, worker in loaded.items()}
    for file in (folder / kernel.name).iterdir():
        file.unlink()
    return turns, messages + compare(kernel, outputs)


def ratio(best, side, other):
    """The ratio of the smallest times of two sides; None where one is missing."""
    return best[side] / best[other] if side in best and other in best else None


def geometric_mean(values):
    """The geometric mean of the values that are not None; None without any."""
    values = [value for value in values if value is not None]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def text(value, digits):
    """A number for the table."""
    return "-" if value is None else f"{value:,.{digits}f}"


def print_table(results):
    """The smallest time of each side, Cupyrite's ratios to the others, and the geometric means."""
    rows, to_c, to_pocl, pocl_to_c = [], [], [], []
    for name, turns in results.items():
        best = {side: min(times) for side, times in turns.items()}
        to_c.append(ratio(best, "cupyrite", "c"))
        to_pocl.append(ratio(best, "cupyrite", "pocl"))
        pocl_to_c.append(ratio(best, "pocl", "c"))
        times = (text(best.get(side), 2) for side in TITLES)
        rows.append((f"{name}: {BY_NAME[name].size}", *times, text(to_c[-1], 2), text(to_pocl[-1], 2)))
    means = (text(geometric_mean(values), 2) for values in (to_c, to_pocl))
    rows.append(("geometric mean", "", "", "", *means))
    table(("kernel", *(f"{title} ms" for title in TITLES.values()), "times C", "times PoCL"), rows)
    if any(pocl_to_c):
        print(f"\nPoCL beside C: geometric mean {text(geometric_mean(pocl_to_c), 2)} times C")


def print_budgets(results):
    """The kernels with a budget in docs/performance.md."""
    for name, turns in results.items():
        kernel = BY_NAME[name]
        if kernel.budget is not None and "c" in turns and "cupyrite" in turns:
            factor = min(turns["cupyrite"]) / min(turns["c"])
            print(f"budget of {name}: {kernel.budget:g} times C: {verdict(factor <= kernel.budget)}")


def names_from(allowed):
    """A converter of comma-separated names, for argparse."""

    def convert(words):
        names = words.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r}: expected one of {', '.join(allowed)}")
        return names

    return convert


def positive(word):
    """A converter of positive integers, for argparse."""
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word}: expected a positive number")
    return number


def parse_options():
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kernels", type=names_from(BY_NAME), default=list(BY_NAME), metavar="A,B")
    options.add_argument("--sides", type=names_from(TITLES), default=list(TITLES), metavar="A,B")
    options.add_argument("--turns", type=positive, default=15)
    options.add_argument("--rounds", type=positive, default=5, help="runs in a turn, at most")
    options.add_argument("--threads", type=positive, default=1, help="threads of every side")
    options.add_argument("--pocl-python", default=sys.executable, metavar="PYTHON", help="interpreter with pyopencl")
    options.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the time of every turn")
    return options.parse_args()


def main():
    options = parse_options()
    results, messages = {}, []
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as folder:
        folder = pathlib.Path(folder)
        workers = start_workers(options, folder)
        if "c" not in workers:
            print("(results are not compared, because C is left out)")
        try:
            for name in options.kernels:
                results[name], found = measure(BY_NAME[name], workers, folder, options)
                messages += found
        finally:
            for worker in workers.values():
                worker.close()
    descriptions = {name: worker.description for name, worker in workers.items()}
    print(f"{options.threads} thread(s), the smallest of {options.turns} turns; {machine()}")
    for name, description in descriptions.items():
        print(f"{TITLES[name]}: {description}")
    print()
    print_table(results)
    print()
    print_budgets(results)
    for message in messages:
        print(message, file=sys.stderr)
    if options.json:
        record = {"machine": machine(), "threads": options.threads, "sides": descriptions, "ms": results}
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
