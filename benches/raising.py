"""What a call of a function that raises costs from Python: Cupyrite, NVIDIA's package and plain C in one run.

    raising.py [--wheel FILE] [--peer PYTHON]

The functions are some of NVVM and nvJitLink, which need no GPU. The figures are nanoseconds a call, the smallest mean
of many rounds, the Python loop included. The sides take turns. Needs a C compiler and both libraries (the extra
`all`).
"""

import pathlib
import subprocess
import sys
import tempfile

from sides import HERE, compiler, machine, parser, sides, table

# Nanoseconds over C: as for driver calls with outputs, once for each output.
BUDGETS = {
    "nvvm.version": 160,
    "nvvm.get_program_log_size": 100,
    "nvjitlink.version": 160,
    "nvjitlink.get_error_log_size": 100,
}


def best(runs):
    """The smallest figure of each row over some runs."""
    return [min(column) for column in zip(*runs)] if runs else None


def main():
    options = parser(__doc__)
    options.add_argument("--turns", type=int, default=3, help="how often the sides take turns (3)")
    options = options.parse_args()
    ours, peer = sides(options)
    cc = compiler()
    if cc is None:
        sys.exit("a C compiler is needed (cc, gcc or clang on PATH, or CC)")
    c_runs, our_runs, peer_runs, nothing = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        program = pathlib.Path(name) / "raising"
        subprocess.run([cc, "-O2", "-o", program, HERE / "raising.c", "-ldl"], check=True)
        for _ in range(options.turns):
            result = ours.json("-W", "ignore", HERE / "raising_side.py")
            our_runs.append(result["python"])
            nothing.append(result["nothing"])
            text = subprocess.run([program, *result["paths"]], check=True, capture_output=True, text=True)
            c_runs.append([float(line) for line in text.stdout.split()])
            if peer:
                peer_runs.append(peer.json("-W", "ignore", HERE / "raising_side.py")["python"])
    good = show(best(c_runs), best(our_runs), best(peer_runs))
    print(f"\nfor scale: a built-in function that does nothing (id) costs {min(nothing):.0f} ns in the same loop")
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
                "held" if held else "MISSED",
            )
        )
    table(("call", "C", "cupyrite", "over C", "peer", "budget", ""), rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
