"""What a call of the runtime API costs from Python: Cupyrite, NVIDIA's package and plain C in one run.

    runtime.py [--wheel FILE] [--peer PYTHON] [--rounds 20]

The figures are nanoseconds a call (or a pair of calls), the smallest mean of many rounds, less what the loop takes by
itself. The sides take turns; the smallest figures of each side count, and how far they go is shown (see paired.py). The
budget: at most half of what the peer costs over C. Where the peer costs nothing over C, the device decides how long a call
takes, and the row says nothing. "The least" is what floor.c costs over C: an extension written by hand for one pair of
calls, which gives the GIL back around each of them and does nothing else that a binding does.

Needs a C compiler. Where Cupyrite calls a libcudart, C calls the same one from a program of its own; where it is
Cupyrite's own runtime (the CPU device, or a machine without libcudart), C calls the same addresses in the same process.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import floor
from calls import DEVICE_KIND, kernels
from paired import Figure, over, take_turns
from sides import HERE, build, machine, parser, sides, table


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20, help="rounds of each row (20)")
    options.add_argument("--turns", type=int, default=9, help="how often the sides take turns (9)")
    options = options.parse_args()
    ours, peer = sides(options)
    on_cpu = ours.run("-W", "ignore", "-c", DEVICE_KIND).strip() == "CPU"
    if on_cpu and peer is not None:
        print("(NVIDIA's package has no CPU device; it is left out)")
        peer = None
    libcudart = ours.run("-W", "ignore", "-c", LIBCUDART).strip()
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        ptx = folder / "empty.ptx"
        ptx.write_text(kernels())
        program, library = build("runtime", folder)
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
        least = floor.build(folder) if libcudart else None
        if least:
            turns["floor"] = lambda: floor.run(least, options.rounds, None, libcudart)
        runs = take_turns(options.turns, turns, one_core=not on_cpu)
    first = runs["ours"][0]
    c = runs["c"] if libcudart else [run["c"] for run in runs["ours"]]
    device, names = first["device"], first["rows"]
    print(f"runtime calls on {device}, ns a call; {machine()}, pid {os.getpid()}")
    print(f"the runtime is {libcudart or 'of Cupyrite'}\n")
    return 0 if show(names, c, runs["ours"], runs.get("peer", []), floor.in_order(runs, names)) else 1


# The file of the runtime in use; nothing for Cupyrite's own.
LIBCUDART = (
    "from cuda.bindings import runtime; runtime.cudaGetDeviceCount(); from cupyrite import _native; "
    "print(_native.library_path('cudart') or '')"
)


def show(names, c, ours, peer, least):
    """Prints the table; returns whether every budget holds (all do where there is no peer)."""
    rows, good = [], True
    for number, name in enumerate(names):
        mine, theirs = over(ours, c, number), over(peer, c, number)
        row = [name, f"{Figure.of(run[number] for run in c).best:,.0f}", mine]
        if theirs:
            ratio = mine.best / theirs.best if theirs.best > 0 else None
            held = ratio is None or ratio <= 0.5
            good &= held
            verdict = "noise" if ratio is None else "held" if held else "MISSED"
            row += [theirs, over(least, c, number) or "-", "-" if ratio is None else f"{ratio:.2f}", verdict]
        rows.append(row)
    header = ["call", "C", "cupyrite over C"]
    table(header + ["peer over C", "the least", "ours / peer's", "half"] if peer else header, rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
