"""The calls that programs make most: a wheel beside an earlier one, NVIDIA's package and C, in turns.

    against.py --wheel FILE [--before FILE] [--peer PYTHON] [--turns 5] [--rounds 8]

Prints nanoseconds a call, the smallest of all turns on the core that is fastest at that moment, and the overhead over C
divided by that of NVIDIA's package, with its geometric means. With --before it lists the rows that became slower by more
than 5 % and 10 ns, and fails if there are any. `cargo xtask bench --against REF` builds both wheels.

Needs a C compiler. Another busy process doubles figures: measure on an idle machine.
"""

import math
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness import probes
from harness.c_code import build_library
from harness.sides import Side, find_core_sides, machine, parser, table, without_cpu_peer
from harness.turns import take_turns

HERE = pathlib.Path(__file__).resolve().parent
# Slower than this, in both, is reported. Rows that take microseconds in C differ by more with one wheel on both sides of a
# busy machine: run again, and compare instructions, before a row is believed.
SLOWER, SLOWER_NS = 1.05, 10


def earlier_side(wheel, options):
    """The side of the earlier wheel."""
    options.wheel = wheel
    found, _ = find_core_sides(options)
    return Side("before", found.python, found.environment)


def ratio(mine, theirs, c):
    """Overhead over C beside the peer's; None where the peer's is within noise of C."""
    return (mine - c) / (theirs - c) if theirs - c > 5 else None


def geometric_mean(values):
    """The geometric mean; values below 0.01, of calls that are faster than their counterpart in C, count as 0.01."""
    return math.exp(sum(math.log(max(value, 0.01)) for value in values) / len(values)) if values else math.nan


def slower(names, best):
    """The rows that became slower: name, before, now."""
    pairs = zip(names, best["before"], best["cupyrite"])
    return [row for row in pairs if row[2] > row[1] * SLOWER and row[2] > row[1] + SLOWER_NS]


def show(device, names, best):
    """Prints the table and the geometric means."""
    print(f"calls on {device}, ns; {machine()}\n")
    sides = [name for name in ("c", "before", "cupyrite", "peer") if name in best]
    rows, ratios = [], {"bindings": [], "cuda.core": []}
    for number, name in enumerate(names):
        cells = [f"{best[side][number]:,.0f}" if best[side][number] > 0 else "-" for side in sides]
        if "peer" in best and best["c"][number] > 0:
            found = ratio(*(best[side][number] for side in ("cupyrite", "peer", "c")))
            cells.append("-" if found is None else f"{found:.2f}")
            if found is not None:
                ratios["cuda.core" if name.startswith("core:") else "bindings"].append(found)
        elif "peer" in best:
            cells.append("-")
        rows.append((name, *cells))
    table(("call", *sides, *(["of peer's overhead"] if "peer" in best else [])), rows)
    for name, values in ratios.items():
        if values:
            print(f"{name}: geometric mean {geometric_mean(values):.3f}, worst {max(values):.2f}")


def main():
    options = parser(__doc__)
    options.add_argument("--before", type=pathlib.Path, help="the earlier wheel")
    options.add_argument("--turns", type=int, default=5, help="turns of each side (5)")
    options.add_argument("--rounds", type=int, default=8, help="rounds of each row in a turn (8)")
    options = options.parse_args()
    ours, peer = find_core_sides(options)
    on_cpu = probes.answer(ours, probes.DEVICE) == "cpu"
    peer = without_cpu_peer(peer, on_cpu)
    sides = {"cupyrite": ours}
    if options.before:
        sides["before"] = earlier_side(options.before, options)
    if peer:
        sides["peer"] = peer
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as folder:
        library = build_library(HERE / "rows.c", pathlib.Path(folder))
        words = ["-W", "ignore", HERE / "rows_side.py", options.rounds]
        turns = {name: lambda side=side: side.json(*words) for name, side in sides.items()}
        turns["c"] = lambda: ours.json(*words, library)
        runs = take_turns(options.turns, turns, one_core=not on_cpu)
    best = {}
    for name, found in runs.items():
        loop = 0 if name == "c" else min(run["loop"] for run in found)
        columns = zip(*(run["c" if name == "c" else "python"] for run in found))
        best[name] = [min(column) - loop for column in columns]
    first = runs["cupyrite"][0]
    show(first["device"], first["rows"], best)
    found = slower(first["rows"], best) if options.before else []
    for name, before, now in found:
        print(f"SLOWER  {name}: {before:,.0f} before, {now:,.0f} now")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
