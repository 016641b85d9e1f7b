"""Overhead over C of calls whose time in the driver far exceeds Python's share: Cupyrite and NVIDIA's package in one run.

    differences.py [--wheel FILE] [--peer PYTHON] [--rounds 600] [--turns 9]

The rows of runtime.py and core.py whose time in C varies between processes by more than the overhead. C runs in the same
process as Python, and the two take turns round by round. The smallest figures count, and the largest of a process is shown,
in nanoseconds. "Lower bound" is harness/lower_bound.c, a hand-written extension for one pair of calls.

Budgets: half of the peer's overhead for the runtime's rows, those of core.py for cuda.core's. Needs a GPU, libcudart and a
C compiler.
"""

import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from core import BUDGETS
from differences_side import ROWS

from harness import lower_bound, probes
from harness.c_code import build_library
from harness.sides import Side, find_sides, machine, parser, table, verdict
from harness.turns import Figure, take_turns

HERE = pathlib.Path(__file__).resolve().parent


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=600, help="rounds of each row in a process (600)")
    options.add_argument("--turns", type=int, default=9, help="processes of each side (9)")
    options = options.parse_args()
    ours, peer = find_sides(options)
    libcudart = probes.answer(ours, probes.LIBCUDART)
    if not libcudart:
        sys.exit("no libcudart found: this benchmark needs a GPU and the CUDA runtime")
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        library = build_library(HERE / "differences.c", folder)
        extension = lower_bound.build(folder)
        words = [library, libcudart, options.rounds]

        def of(side, what="package"):
            return lambda: side.json("-W", "ignore", HERE / "differences_side.py", what, *words)

        turns = {"ours": of(ours)}
        if peer:
            turns["peer"] = of(peer)
        if extension:
            turns[lower_bound.COLUMN] = of(Side(lower_bound.COLUMN, sys.executable, ours.environment), extension)
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
        # Where the overhead is below 2 % of the device's time, the row is noise and has no budget.
        if budget is None and theirs and theirs.best > c.best / 50:
            budget = theirs.best / 2
        held = budget is None or mine.best <= budget
        good &= held
        ratio = f"{mine.best / theirs.best:.2f}" if theirs and theirs.best > 0 else "-"
        cells = [name, f"{c.best:,.0f}", mine, theirs or "-", over.get(lower_bound.COLUMN) or "-", ratio]
        rows.append([*cells, *(("-", "-") if budget is None else (f"{budget:,.0f}", verdict(held)))])
    table(("pair", "C", "cupyrite", "peer", lower_bound.COLUMN, "ours / peer's", "budget", ""), rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
