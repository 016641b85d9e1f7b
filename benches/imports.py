"""Import time over bare Python, beside NVIDIA's package where there is one.

Budgets: 8 ms for cuda.bindings.driver and each other module of cuda.bindings, 5 ms for cuda.pathfinder.
"""

import statistics
import subprocess
import sys
import time

from sides import machine, parser, sides, table

NAMES = ("driver", "runtime", "nvrtc", "nvjitlink", "nvvm", "nvfatbin", "nvml", "cufile", "cudla", "utils")
# The others are tables of the extension module that the driver is in, so what it may cost is enough for each.
BUDGET_MS = {**dict.fromkeys((f"cuda.bindings.{name}" for name in NAMES), 8.0), "cuda.pathfinder": 5.0}
MODULES = tuple(BUDGET_MS)


def once(side, statement):
    """Milliseconds of one interpreter that runs one statement."""
    start = time.perf_counter()
    subprocess.run([side.python, "-c", statement], env=side.environment, check=True)
    return (time.perf_counter() - start) * 1e3


def over_bare(side, statement, runs):
    """(median, smallest) milliseconds of a statement over the bare interpreter.

    Each run of the statement has a bare one right before or after it, and counts as the difference of the two: whatever
    else the machine does hits both, and who goes first changes from pair to pair. The smallest is that of the module
    less that of the bare interpreter, each over all runs.
    """
    statements = ("pass", statement)
    for statement in statements:
        once(side, statement)  # byte code and page cache
    pairs = []
    for number in range(runs):
        order = statements if number % 2 == 0 else statements[::-1]
        took = {statement: once(side, statement) for statement in order}
        pairs.append(tuple(took[statement] for statement in statements))
    smallest = min(full for _, full in pairs) - min(bare for bare, _ in pairs)
    return statistics.median(full - bare for bare, full in pairs), smallest


def main():
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=51, help="pairs of interpreters for each figure (51)")
    options = options.parse_args()
    ours, peer = sides(options)
    print(f"import time over bare Python, ms, median (smallest) of {options.runs} pairs; {machine()}\n")
    rows = []
    good = True
    for module in MODULES:
        row = [module]
        for side in (ours, peer):
            if side is None:
                row.append("not installed")
                continue
            median, smallest = over_bare(side, f"import {module}", options.runs)
            row.append(f"{median:.2f} ({smallest:.2f})")
            if side is ours and module in BUDGET_MS:
                verdict = median <= BUDGET_MS[module]
                good &= verdict
        row.append(f"{BUDGET_MS[module]:.0f}, {'held' if verdict else 'MISSED'}" if module in BUDGET_MS else "-")
        rows.append(row)
    table(("module", "cupyrite", "peer", "budget"), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
