"""Cost of cuda.core.graph: Cupyrite, NVIDIA's package and plain C in one run, against the budgets.

    graphs.py [--wheel FILE] [--peer PYTHON] [--rounds 20] [--turns 3]

Figures are nanoseconds: the smallest mean of many rounds. The sides take turns (see harness/turns.py). A budget is met if
the overhead over C is at most half of the peer's; for `Graph.launch`, if it is at most 150 ns. The graph that C launches retains
nothing. The C side opens libcuda. On the CPU device it runs only if that device's driver is first in LD_LIBRARY_PATH.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness.c_code import build_program
from harness.ptx import FOR_CORE, empty_kernels
from harness.sides import find_core_sides, machine, parser, table, verdict
from harness.turns import smallest_of_columns, take_turns

HERE = pathlib.Path(__file__).resolve().parent
LAUNCH, LAUNCH_BUDGET = "Graph.launch, 1 node", 150


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20, help="rounds of each row (20)")
    options.add_argument("--turns", type=int, default=3, help="turns of each side (3)")
    options = options.parse_args()
    ours, peer = find_core_sides(options)
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        ptx = folder / "empty.ptx"
        ptx.write_text(empty_kernels(FOR_CORE))
        program = build_program(HERE / "graphs.c", folder)
        words = ["-W", "ignore", HERE / "graphs_side.py", ptx, options.rounds]

        def in_c():
            done = subprocess.run([program, ptx, str(options.rounds)], capture_output=True, text=True, check=False)
            return [float(line) for line in done.stdout.split()] if done.returncode == 0 else None

        turns = {"ours": lambda: ours.json(*words)}
        if in_c() is not None:
            turns["c"] = in_c
        if peer:
            turns["peer"] = lambda: peer.json(*words)
        runs = take_turns(options.turns, turns)
    first = runs["ours"][0]
    print(f"cuda.core.graph on {first['device']}, ns; {machine()}\n")
    mine, theirs = (smallest_of_columns([run["python"] for run in runs.get(side, [])]) for side in ("ours", "peer"))
    c = smallest_of_columns(runs.get("c", []))
    rows, good = [], True
    for number, name in enumerate(first["rows"]):
        cells = [name] + ["-" if side is None else f"{side[number]:,.0f}" for side in (c, mine, theirs)]
        held = None
        if c is not None and name == LAUNCH:
            held = mine[number] - c[number] <= LAUNCH_BUDGET
        elif c is not None and theirs is not None:
            held = mine[number] - c[number] <= (theirs[number] - c[number]) / 2
        good &= held is not False
        rows.append([*cells, "" if held is None else verdict(held)])
    table(("what", "C", "cupyrite", "peer", ""), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
