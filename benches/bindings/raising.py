"""Cost of calls in the modules whose functions raise: Cupyrite, NVIDIA's package and plain C in one run.

    raising.py [--wheel FILE] [--peer PYTHON]

Functions of NVVM and nvJitLink, which need no GPU. Figures are nanoseconds a call: the smallest mean of many rounds,
including the Python loop. The sides take turns. Needs a C compiler and both libraries (the extra `all`).
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness.c_code import build_program
from harness.sides import find_sides, machine, parser, table, verdict
from harness.turns import smallest_of_columns

HERE = pathlib.Path(__file__).resolve().parent

# Nanoseconds over C: as for driver calls with outputs, per output.
BUDGETS = {
    "nvvm.version": 160,
    "nvvm.get_program_log_size": 100,
    "nvjitlink.version": 160,
    "nvjitlink.get_error_log_size": 100,
}


def main():
    options = parser(__doc__)
    options.add_argument("--turns", type=int, default=3, help="turns of each side (3)")
    options = options.parse_args()
    ours, peer = find_sides(options)
    c_runs, our_runs, peer_runs, builtin = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        program = build_program(HERE / "raising.c", pathlib.Path(name))
        for _ in range(options.turns):
            result = ours.json("-W", "ignore", HERE / "raising_side.py")
            our_runs.append(result["python"])
            builtin.append(result["id"])
            text = subprocess.run([program, *result["paths"]], check=True, capture_output=True, text=True)
            c_runs.append([float(line) for line in text.stdout.split()])
            if peer:
                peer_runs.append(peer.json("-W", "ignore", HERE / "raising_side.py")["python"])
    good = show(*map(smallest_of_columns, (c_runs, our_runs, peer_runs)))
    print(f"\nfor scale: a call of the built-in function id costs {min(builtin):.0f} ns in the same loop")
    return 0 if good else 1


def show(c, ours, peer):
    """Prints the table; returns whether every budget holds."""
    print(f"calls of functions that raise, ns a call; {machine()}\n")
    rows, good = [], True
    for number, (name, budget) in enumerate(BUDGETS.items()):
        over = ours[number] - c[number]
        held = over <= budget
        good &= held
        rows.append(
            (
                name,
                f"{c[number]:,.0f}",
                f"{ours[number]:,.0f}",
                f"C + {over:,.0f}",
                f"C + {peer[number] - c[number]:,.0f}" if peer else "-",
                f"C + {budget:,}",
                verdict(held),
            )
        )
    table(("call", "C", "cupyrite", "over C", "peer", "budget", ""), rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
