"""Cost of a runtime API call from Python: Cupyrite, NVIDIA's package and plain C in one run.

    runtime.py [--wheel FILE] [--peer PYTHON] [--rounds 20]

Figures are nanoseconds a call (or a pair of calls): the smallest mean of many rounds, less the cost of the loop. The sides
take turns; the smallest figure of each side counts, and its spread is shown (see harness/turns.py). The budget is half of
the peer's overhead over C. Where the peer has no overhead the device dominates, and the row is marked "noise".
"Lower bound" is the overhead of harness/lower_bound.c: a hand-written extension for one pair of calls that releases the GIL
around each of them and does nothing else that a binding does.

Needs a C compiler. Where Cupyrite calls a libcudart, a C program calls the same file; where Cupyrite's own runtime serves
(the CPU device, or a machine without libcudart), C calls the same addresses in the same process.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness import lower_bound, probes
from harness.c_code import build_library, build_program
from harness.ptx import FOR_BINDINGS, empty_kernels
from harness.sides import find_sides, machine, parser, table, verdict, without_cpu_peer
from harness.turns import Figure, over_c, take_turns

HERE = pathlib.Path(__file__).resolve().parent


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20, help="rounds of each row (20)")
    options.add_argument("--turns", type=int, default=9, help="turns of each side (9)")
    options = options.parse_args()
    ours, peer = find_sides(options)
    on_cpu = probes.answer(ours, probes.DEVICE) == "cpu"
    peer = without_cpu_peer(peer, on_cpu)
    libcudart = probes.answer(ours, probes.LIBCUDART)
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        ptx = folder / "empty.ptx"
        ptx.write_text(empty_kernels(FOR_BINDINGS))
        program, library = (build(HERE / "runtime.c", folder) for build in (build_program, build_library))
        words = ["-W", "ignore", HERE / "runtime_side.py", ptx, options.rounds]

        def in_c():
            command = [program, libcudart, ptx, str(options.rounds)]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            return [float(line) for line in text.split()]

        turns = {"ours": lambda: ours.json(*words, *([] if libcudart else [library]))}
        if libcudart:
            turns["c"] = in_c
        if peer:
            turns["peer"] = lambda: peer.json(*words)
        extension = lower_bound.build(folder) if libcudart else None
        if extension:
            environment = dict(os.environ)
            turns[lower_bound.COLUMN] = lambda: lower_bound.run(extension, options.rounds, environment, libcudart)
        runs = take_turns(options.turns, turns, one_core=not on_cpu)
    first = runs["ours"][0]
    c = runs["c"] if libcudart else [run["c"] for run in runs["ours"]]
    device, names = first["device"], first["rows"]
    print(f"runtime calls on {device}, ns a call; {machine()}, pid {os.getpid()}")
    print(f"runtime: {libcudart or 'built into Cupyrite'}\n")
    return 0 if show(names, c, runs["ours"], runs.get("peer", []), lower_bound.as_runs(runs, names)) else 1


def show(names, c, ours, peer, bound):
    """Prints the table; returns whether every budget holds (all do where there is no peer)."""
    rows, good = [], True
    for number, name in enumerate(names):
        mine, theirs = over_c(ours, c, number), over_c(peer, c, number)
        row = [name, f"{Figure.of(run[number] for run in c).best:,.0f}", mine]
        if theirs:
            ratio = mine.best / theirs.best if theirs.best > 0 else None
            held = ratio is None or ratio <= 0.5
            good &= held
            row += [theirs, over_c(bound, c, number) or "-"]
            row += ["-", "noise"] if ratio is None else [f"{ratio:.2f}", verdict(held)]
        rows.append(row)
    header = ["call", "C", "cupyrite over C"]
    table([*header, "peer over C", lower_bound.COLUMN, "ours / peer's", "half"] if peer else header, rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
