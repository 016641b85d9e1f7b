"""What a driver call costs from Python: Cupyrite, NVIDIA's package and plain C in one run, against the budgets.

    calls.py [--wheel FILE] [--peer PYTHON] [--launches 256]

The figures are nanoseconds a call, the smallest mean of many rounds, less what the loop takes by itself. The sides take
turns; the smallest figures of each side count, and how far they go is shown (see paired.py).

Needs a C compiler. On a GPU the C side is a program that opens libcuda; on the CPU device it calls the same addresses
in the same process, and there is no peer.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from paired import Figure, over, take_turns
from sides import HERE, build, machine, parser, sides, table

# Nanoseconds over C, and which row of the design that is.
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


def kernels():
    """PTX of two kernels that do nothing: 16 mixed parameters, and 512 ints."""

    def entry(name, types):
        parameters = ",\n".join(f"    .param .{kind} p{number}" for number, kind in enumerate(types))
        return f".visible .entry {name}(\n{parameters}\n)\n{{\n    ret;\n}}\n"

    head = ".version 7.8\n.target sm_80\n.address_size 64\n\n"
    return head + entry("sixteen", ("u32", "f32", "u64", "f64") * 4) + "\n" + entry("many", ("u32",) * 512)


def main():
    options = parser(__doc__)
    options.add_argument("--launches", type=int, default=256, help="launches between two synchronisations (256)")
    options.add_argument("--turns", type=int, default=9, help="how often the sides take turns (9)")
    options = options.parse_args()
    ours, peer = sides(options)
    on_cpu = ours.run("-W", "ignore", "-c", DEVICE_KIND).strip() == "CPU"
    if on_cpu and peer is not None:
        print("(NVIDIA's package has no CPU device; it is left out)")
        peer = None
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        ptx = folder / "empty.ptx"
        ptx.write_text(kernels())
        program, library = build("calls", folder)
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
    nothing = Figure.of(run["nothing"] for run in mine)
    print(f"\nfor scale: a built-in function that does nothing (id) costs {nothing} ns by itself")
    return 0 if good or on_cpu else 1


DEVICE_KIND = (
    "from cuda.bindings import driver as d; d.cuInit(0); "
    "print('CPU' if d.cuDeviceGetName(256, d.cuDeviceGet(0)[1])[1].startswith(b'CPU') else 'GPU')"
)


def show(device, c, ours, peer):
    """Prints the table; returns whether every budget holds."""
    print(f"driver calls on {device}, ns a call; {machine()}, pid {os.getpid()}\n")
    rows, good = [], True
    for number, (name, budget) in enumerate(BUDGETS.items()):
        figure = over(ours, c, number)
        held = figure.best <= budget
        good &= held
        base = Figure.of(run[number] for run in c).best
        theirs = over(peer, c, number) or "-"
        rows.append((name, f"{base:,.0f}", figure, theirs, f"{budget:,}", "held" if held else "MISSED"))
    table(("call", "C", "cupyrite over C", "peer over C", "budget", ""), rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
