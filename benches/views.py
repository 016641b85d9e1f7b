"""What views of everyone's arrays cost: Cupyrite and NVIDIA's package in one run, against the budgets.

    views.py [--wheel FILE] [--peer PYTHON] [--rounds 20] [--turns 3]

The figures are nanoseconds a call, the smallest mean of many rounds, the Python loop included. The sides take turns (see
paired.py). CuPy and PyTorch are timed where a side's interpreter has them; what their own methods cost is in the last
rows, in brackets.
"""

import sys

from core import best_or_none
from paired import take_turns
from sides import HERE, machine, parser, sides, table

# Nanoseconds in all.
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
    options.add_argument("--turns", type=int, default=3, help="how often the sides take turns (3)")
    options = options.parse_args()
    ours, peer = sides(options)
    if peer is not None and not peer.has("cuda.core", without="cupyrite"):
        print("(the peer has no cuda.core; it is left out)")
        peer = None
    words = ["-W", "ignore", HERE / "views_side.py", options.rounds]
    turns = {"ours": lambda: ours.json(*words)}
    if peer:
        turns["peer"] = lambda: peer.json(*words)
    runs = take_turns(options.turns, turns)
    result = runs["ours"][0]
    print(f"StridedMemoryView on {result['device']}, ns a call; {machine()}\n")
    rows, good = [], True
    our_best, peer_best = (best_or_none([run["python"] for run in runs.get(side, [])]) for side in ("ours", "peer"))
    for number, name in enumerate(result["rows"]):
        value, budget = our_best[number], BUDGETS.get(name)
        cells = [name]
        for side in (our_best, peer_best):
            cells.append("-" if side is None or side[number] is None else f"{side[number]:,.0f}")
        if budget is None or value is None:
            cells += ["-", ""]
        else:
            good &= value <= budget
            cells += [str(budget), "held" if value <= budget else "MISSED"]
        rows.append(cells)
    table(("call", "cupyrite", "peer", "budget", ""), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
