"""Import time over bare Python: Cupyrite, and NVIDIA's package where it is installed.

Budgets (docs/performance.md): 5 ms for each module of cuda.bindings and for cuda.pathfinder, 10 ms for cuda.core.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness.import_time import over_bare
from harness.sides import find_sides, machine, parser, table, verdict

NAMES = ("driver", "runtime", "nvrtc", "nvjitlink", "nvvm", "nvfatbin", "nvml", "cufile", "cudla", "utils")
# All modules of cuda.bindings live in one extension module, so the driver's budget applies to each.
BUDGET_MS = {
    **dict.fromkeys((f"cuda.bindings.{name}" for name in NAMES), 5.0),
    "cuda.core": 10.0,
    "cuda.pathfinder": 5.0,
}


def main():
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=51, help="pairs of interpreters for each figure (51)")
    options = options.parse_args()
    ours, peer = find_sides(options)
    print(f"import time over bare Python, ms, median (smallest) of {options.runs} pairs; {machine()}\n")
    rows = []
    good = True
    for module, budget in BUDGET_MS.items():
        row = [module]
        for side in (ours, peer):
            if side is None:
                row.append("not installed")
                continue
            median, smallest = over_bare(side, f"import {module}", options.runs)
            row.append(f"{median:.2f} ({smallest:.2f})")
            if side is ours:
                held = median <= budget
                good &= held
        row.append(f"{budget:.0f}, {verdict(held)}")
        rows.append(row)
    table(("module", "cupyrite", "peer", "budget"), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
