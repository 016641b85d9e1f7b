"""Cost of arrays, textures, surfaces and tensor maps of cuda.core: Cupyrite and NVIDIA's package in one run.

    textures.py [--wheel FILE] [--peer PYTHON] [--rounds 20] [--turns 3]

Figures are nanoseconds a call: the smallest mean of many rounds, including the Python loop and the driver's call. The sides
take turns (see harness/turns.py). A row holds if Cupyrite is not slower than its peer.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness.sides import find_core_sides, machine, parser, table, verdict
from harness.turns import smallest_of_columns, take_turns

HERE = pathlib.Path(__file__).resolve().parent


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20, help="rounds of each row (20)")
    options.add_argument("--turns", type=int, default=3, help="turns of each side (3)")
    options = options.parse_args()
    ours, peer = find_core_sides(options)
    words = ["-W", "ignore", HERE / "textures_side.py", options.rounds]
    turns = {"ours": lambda: ours.json(*words)}
    if peer:
        turns["peer"] = lambda: peer.json(*words)
    runs = take_turns(options.turns, turns)
    result = runs["ours"][0]
    print(f"Textures and tensor maps on {result['device']}, ns a call; {machine()}\n")
    rows, good = [], True
    our_best, peer_best = (
        smallest_of_columns([run["python"] for run in runs.get(side, [])]) for side in ("ours", "peer")
    )
    for number, name in enumerate(result["rows"]):
        figures = [None if best is None else best[number] for best in (our_best, peer_best)]
        cells = [name, *("-" if figure is None else f"{figure:,.0f}" for figure in figures)]
        held = None in figures or figures[0] <= figures[1]
        good &= held
        rows.append([*cells, "" if None in figures else verdict(held)])
    table(("call", "cupyrite", "peer", ""), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
