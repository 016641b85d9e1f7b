"""What pairs of calls cost over C where the driver takes far longer than Python: Cupyrite and NVIDIA's package in one run.

    differences.py [--wheel FILE] [--peer PYTHON] [--rounds 600] [--turns 9]

The rows of runtime.py and core.py whose own C differs from process to process by more than what is looked for. Here C runs
in the process that it is compared with, and takes turns with Python there, round by round. As elsewhere the smallest figures
count, and the largest of a process is shown. All figures are nanoseconds.
"The least" is floor.c, an extension written by hand for one pair of calls, which gives the GIL back around each of them.

The budgets: of the runtime's rows at most half of what the peer costs over C; of cuda.core's the figures of core.py. Needs a
GPU, libcudart and a C compiler.
"""

import sys
import tempfile
from pathlib import Path

import floor
from core import BUDGETS
from differences_side import ROWS
from paired import Figure, take_turns
from runtime import LIBCUDART
from sides import HERE, Side, build_library, machine, parser, sides, table


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=600, help="rounds of each row in a process (600)")
    options.add_argument("--turns", type=int, default=9, help="processes of each side (9)")
    options = options.parse_args()
    ours, peer = sides(options)
    libcudart = ours.run("-W", "ignore", "-c", LIBCUDART).strip()
    if not libcudart:
        sys.exit("there is no libcudart: this needs a GPU and CUDA's runtime")
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = Path(name)
        library, least = build_library("differences", folder), floor.build(folder)
        words = [library, libcudart, options.rounds]

        def of(side, what="package"):
            return lambda: side.json("-W", "ignore", HERE / "differences_side.py", what, *words)

        turns = {"ours": of(ours)}
        if peer:
            turns["peer"] = of(peer)
        if least:
            turns["least"] = of(Side("the least", sys.executable, ours.environment), least)
        runs = take_turns(options.turns, turns)
    print(f"over C in the same process, ns; {machine()}; {options.turns} processes of {options.rounds} rounds\n")
    return 0 if show(runs) else 1


def show(runs):
    """Prints the table; returns whether every budget holds."""
    rows, good = [], True
    for number, name in enumerate(ROWS):
        figures = {side: [run[number] for run in found if run[number]] for side, found in runs.items()}
        over = {side: Figure.of(one["over"] for one in found) for side, found in figures.items() if found}
        c = Figure.of(one["c"] for one in figures["ours"])
        mine, theirs, budget = over["ours"], over.get("peer"), BUDGETS.get(name)
        # Where Python costs next to nothing of what the device takes, the row says nothing.
        if budget is None and theirs and theirs.best > c.best / 50:
            budget = theirs.best / 2
        held = budget is None or mine.best <= budget
        good &= held
        verdict = "-" if budget is None else "held" if held else "MISSED"
        ratio = f"{mine.best / theirs.best:.2f}" if theirs and theirs.best > 0 else "-"
        cells = [name, f"{c.best:,.0f}", mine, theirs or "-", over.get("least") or "-", ratio]
        rows.append([*cells, "-" if budget is None else f"{budget:,.0f}", verdict])
    table(("pair", "C", "cupyrite", "peer", "the least", "ours / peer's", "budget", ""), rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
