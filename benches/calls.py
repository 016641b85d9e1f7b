"""What a driver call costs from Python: Cupyrite, NVIDIA's package and plain C in one run, against the budgets.

    calls.py [--wheel FILE] [--peer PYTHON] [--launches 256]

The figures are nanoseconds a call, the smallest mean of many rounds, the Python loop included. The sides take turns.
Needs a C compiler. On a GPU the C side is a program that opens libcuda; on the CPU device it calls the same addresses
in the same process, and there is no peer.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from sides import HERE, build, machine, parser, sides, table

# Nanoseconds over C, and which row of the design that is.
BUDGETS = {
    "cuCtxSetCurrent": 60,
    "cuStreamQuery": 60,
    "cuCtxGetCurrent": 100,
    "cuStreamGetCtx": 100,
    "cuDeviceGetAttribute": 100,
    "cuEventCreate + cuEventDestroy": 160,
    "cuLaunchKernel, 16 arguments": 400,
    "cuLaunchKernel, 512 arguments": 6000,
}


def kernels():
    """PTX of two kernels that do nothing: 16 mixed parameters, and 512 ints."""

    def entry(name, types):
        parameters = ",\n".join(f"    .param .{kind} p{number}" for number, kind in enumerate(types))
        return f".visible .entry {name}(\n{parameters}\n)\n{{\n    ret;\n}}\n"

    head = ".version 7.8\n.target sm_80\n.address_size 64\n\n"
    return head + entry("sixteen", ("u32", "f32", "u64", "f64") * 4) + "\n" + entry("many", ("u32",) * 512)


def best(runs):
    """The smallest figure of each row over some runs."""
    return [min(column) for column in zip(*runs)] if runs else None


def main():
    options = parser(__doc__)
    options.add_argument("--launches", type=int, default=256, help="launches between two synchronisations (256)")
    options.add_argument("--turns", type=int, default=3, help="how often the sides take turns (3)")
    options = options.parse_args()
    ours, peer = sides(options)
    on_cpu = ours.run("-W", "ignore", "-c", DEVICE_KIND).strip() == "CPU"
    if on_cpu and peer is not None:
        print("(NVIDIA's package has no CPU device; it is left out)")
        peer = None
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        ptx = folder / "empty.ptx"
        ptx.write_text(kernels())
        program, library = build("calls", folder)
        words = ["-W", "ignore", HERE / "calls_side.py", ptx, options.launches]
        c_runs, our_runs, peer_runs, nothing, device = [], [], [], [], ""
        for _ in range(options.turns):
            result = ours.json(*words, *([library] if on_cpu else []))
            our_runs.append(result["python"])
            nothing.append(result["nothing"])
            device = result["device"]
            if on_cpu:
                c_runs.append(result["c"])
            else:
                text = subprocess.run([program, ptx, str(options.launches)], check=True, capture_output=True, text=True)
                c_runs.append([float(line) for line in text.stdout.split()])
            if peer:
                peer_runs.append(peer.json(*words)["python"])
    good = show(device, best(c_runs), best(our_runs), best(peer_runs))
    print(f"\nfor scale: a built-in function that does nothing (id) costs {min(nothing):.0f} ns in the same loop")
    return 0 if good or on_cpu else 1


DEVICE_KIND = (
    "from cuda.bindings import driver as d; d.cuInit(0); "
    "print('CPU' if d.cuDeviceGetName(256, d.cuDeviceGet(0)[1])[1].startswith(b'CPU') else 'GPU')"
)


def show(device, c, ours, peer):
    """Prints the table; returns whether every budget holds."""
    print(f"driver calls on {device}, ns a call; {machine()}, pid {os.getpid()}\n")
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
