"""Cost of views of other libraries' arrays: Cupyrite and NVIDIA's package in one run, against the budgets.

    views.py [--wheel FILE] [--peer PYTHON] [--rounds 20] [--turns 3]

Figures are nanoseconds a call: the smallest mean of many rounds, including the Python loop. The sides take turns (see
harness/turns.py). CuPy and PyTorch are timed where a side's interpreter has them; the last rows, in parentheses, show the
cost of the arrays' own methods.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness.sides import find_core_sides, machine, parser, table, verdict
from harness.turns import smallest_of_columns, take_turns

HERE = pathlib.Path(__file__).resolve().parent

# Nanoseconds in total.
BUDGETS = {
    "view of a CuPy array": 300,
    "view of a PyTorch tensor": 300,
    "view of a view, DLPack in C": 300,
    "DLPack export of a view": 200,
    "DLPack export of a view, version 1": 200,
    "DLPack export of a Buffer": 200,
}


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20, help="rounds of each row (20)")
    options.add_argument("--turns", type=int, default=3, help="turns of each side (3)")
    options = options.parse_args()
    ours, peer = find_core_sides(options)
    words = ["-W", "ignore", HERE / "views_side.py", options.rounds]
    turns = {"ours": lambda: ours.json(*words)}
    if peer:
        turns["peer"] = lambda: peer.json(*words)
    runs = take_turns(options.turns, turns)
    result = runs["ours"][0]
    print(f"StridedMemoryView on {result['device']}, ns a call; {machine()}\n")
    rows, good = [], True
    our_best, peer_best = (
        smallest_of_columns([run["python"] for run in runs.get(side, [])]) for side in ("ours", "peer")
    )
    for number, name in enumerate(result["rows"]):
        value, budget = our_best[number], BUDGETS.get(name)
        cells = [name]
        for side in (our_best, peer_best):
            cells.append("-" if side is None or side[number] is None else f"{side[number]:,.0f}")
        if budget is None or value is None:
            cells += ["-", ""]
        else:
            held = value <= budget
            good &= held
            cells += [str(budget), verdict(held)]
        rows.append(cells)
    table(("call", "cupyrite", "peer", "budget", ""), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
