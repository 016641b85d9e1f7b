"""What a call of the runtime API costs from Python: Cupyrite, NVIDIA's package and plain C in one run.

    runtime.py [--wheel FILE] [--peer PYTHON] [--rounds 20]

The figures are nanoseconds a call (or a pair of calls), the smallest mean of many rounds, the Python loop included. The
sides take turns. The budget: at most half of what the peer costs over C.

Needs a C compiler. Where Cupyrite calls a libcudart, C calls the same one from a program of its own; where it is
Cupyrite's own runtime (the CPU device, or a machine without libcudart), C calls the same addresses in the same process.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from calls import DEVICE_KIND, best, kernels
from sides import HERE, build, machine, parser, sides, table


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20, help="rounds of each row (20)")
    options.add_argument("--turns", type=int, default=3, help="how often the sides take turns (3)")
    options = options.parse_args()
    ours, peer = sides(options)
    on_cpu = ours.run("-W", "ignore", "-c", DEVICE_KIND).strip() == "CPU"
    if on_cpu and peer is not None:
        print("(NVIDIA's package has no CPU device; it is left out)")
        peer = None
    libcudart = ours.run("-W", "ignore", "-c", LIBCUDART).strip()
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        ptx = folder / "empty.ptx"
        ptx.write_text(kernels())
        program, library = build("runtime", folder)
        words = ["-W", "ignore", HERE / "runtime_side.py", ptx, options.rounds]
        c_runs, our_runs, peer_runs, device, names = [], [], [], "", []
        for _ in range(options.turns):
            result = ours.json(*words, *([] if libcudart else [library]))
            our_runs.append(result["python"])
            device, names = result["device"], result["rows"]
            if libcudart:
                command = [program, libcudart, ptx, str(options.rounds)]
                text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                c_runs.append([float(line) for line in text.split()])
            else:
                c_runs.append(result["c"])
            if peer:
                peer_runs.append(peer.json(*words)["python"])
    print(f"runtime calls on {device}, ns a call; {machine()}, pid {os.getpid()}")
    print(f"the runtime is {libcudart or 'of Cupyrite'}\n")
    return 0 if show(names, best(c_runs), best(our_runs), best(peer_runs)) else 1


# The file of the runtime in use; nothing for Cupyrite's own.
LIBCUDART = (
    "from cuda.bindings import runtime; runtime.cudaGetDeviceCount(); from cupyrite import _native; "
    "print(_native.library_path('cudart') or '')"
)


def show(names, c, ours, peer):
    """Prints the table; returns whether every budget holds (all do where there is no peer)."""
    rows, good = [], True
    for number, name in enumerate(names):
        over = ours[number] - c[number]
        row = [name, f"{c[number]:,.0f}", f"{ours[number]:,.0f}", f"C + {over:,.0f}"]
        if peer:
            theirs = peer[number] - c[number]
            held = over <= theirs / 2
            good &= held
            row += [f"C + {theirs:,.0f}", f"{over / theirs:.2f}" if theirs > 0 else "-", "held" if held else "MISSED"]
        rows.append(row)
    header = ["call", "C", "cupyrite", "over C"]
    table(header + ["peer", "ours / peer's", "half"] if peer else header, rows)
    return good


if __name__ == "__main__":
    sys.exit(main())
