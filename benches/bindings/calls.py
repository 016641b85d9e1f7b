"""Cost of a driver call from Python: Cupyrite, NVIDIA's package and plain C in one run, against the budgets.

    calls.py [--wheel FILE] [--peer PYTHON] [--launches 256]

Figures are nanoseconds a call: the smallest mean of many rounds, less the cost of the loop. The sides take turns; the
smallest figure of each side counts, and its spread is shown (see harness/turns.py).

Needs a C compiler. On a GPU the C side is a program that opens libcuda; on the CPU device C calls the same addresses in
the same process, and there is no peer.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness import probes
from harness.c_code import build_library, build_program
from harness.ptx import FOR_BINDINGS, empty_kernels
from harness.sides import find_sides, machine, parser, table, verdict, without_cpu_peer
from harness.turns import Figure, over_c, take_turns

HERE = pathlib.Path(__file__).resolve().parent

# Nanoseconds over C.
BUDGETS = {
    "cuCtxSetCurrent": 60,
    "cuStreamQuery": 60,
    "cuCtxGetCurrent": 100,
    "cuStreamGetCtx": 100,
    "cuDeviceGetAttribute": 100,
    "cuEventCreate + cuEventDestroy": 160,
    "cuLaunchKernel, 16 arguments": 400,
    "cuLaunchKernel, 512 arguments": 6000,
}


def main():
    options = parser(__doc__)
    options.add_argument("--launches", type=int, default=256, help="launches between two synchronisations (256)")
    options.add_argument("--turns", type=int, default=9, help="turns of each side (9)")
    options = options.parse_args()
    ours, peer = find_sides(options)
    on_cpu = probes.answer(ours, probes.DEVICE) == "cpu"
    peer = without_cpu_peer(peer, on_cpu)
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        ptx = folder / "empty.ptx"
        ptx.write_text(empty_kernels(FOR_BINDINGS))
        program, library = (build(HERE / "calls.c", folder) for build in (build_program, build_library))
        words = ["-W", "ignore", HERE / "calls_side.py", ptx, options.launches]

        def in_c():
            text = subprocess.run([program, ptx, str(options.launches)], check=True, capture_output=True, text=True)
            return [float(line) for line in text.stdout.split()]

        turns = {"ours": lambda: ours.json(*words, *([library] if on_cpu else []))}
        if not on_cpu:
            turns["c"] = in_c
        if peer:
            turns["peer"] = lambda: peer.json(*words)
        runs = take_turns(options.turns, turns, one_core=not on_cpu)
    mine = runs["ours"]
    good = show(mine[0]["device"], runs.get("c") or [run["c"] for run in mine], mine, runs.get("peer", []))
    builtin = Figure.of(run["id"] for run in mine)
    print(f"\nfor scale: a call of the built-in function id costs {builtin} ns")
    return 0 if good or on_cpu else 1


def show(device, c, ours, peer):
    """Prints the table; returns whether every budget holds."""
    print(f"driver calls on {device}, ns a call; {machine()}, pid {os.getpid()}\n")
    rows, good = [], True
    for number, (name, budget) in enumerate(BUDGETS.items()):
        figure = over_c(ours, c, number)
        held = figure.best <= budget
        good &= held
        base = Figure.of(run[number] for run in c).best
        theirs = over_c(peer, c, number) or "-"
        rows.append((name, f"{base:,.0f}", figure, theirs, f"{budget:,}", verdict(held)))
    table(("call", "C", "cupyrite over C", "peer over C", "budget", ""), rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
