"""What cuda.core costs: Cupyrite, NVIDIA's package, CuPy and plain C in one run, against the budgets.

    core.py [--wheel FILE] [--peer PYTHON] [--rounds 20] [--idle DRIVER]

The figures are nanoseconds a call (or a pair of calls), the smallest mean of many rounds, less what the loop takes by
itself. The sides take turns; the smallest figures of each side count, and how far they go is shown (see paired.py). CuPy is
timed where the peer's interpreter (or this one) has it. "The least" is floor.c: an extension written by hand for one pair
of calls, which gives the GIL back around each of them and does nothing else that cuda.core does.

Needs a C compiler. On a GPU the C side is a program that opens libcuda; on the CPU device it calls the same addresses in
the same process, and there is no peer.

With --idle all sides use a driver whose launches, copies and allocations do nothing, made of idle_driver.c around DRIVER, a file
that offers what libcuda does (that of the CPU device: cargo build -p cupyrite-cpu-driver). It needs no GPU, and shows
what each side costs by itself.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import floor
from imports import over_bare
from paired import Figure, alone, over, take_turns
from sides import HERE, build, compiler, machine, parser, sides, table

# Nanoseconds over C (or in all, for the rows without C), and which row of the design that is; None: no budget.
BUDGETS = {
    "launch, 3 arguments": 250,
    "Device()": 60,
    "create_event + close": 150,
    "Buffer: allocate + close": 200,
    "a hit of the disk cache, 32 kB": 50_000,
}
# In all, not over C: nothing is asked of the driver.
ALONE = ("Device()", "a hit of the disk cache, 32 kB")
NAMES = "Buffer, Device, LaunchConfig, ObjectCode, Program, Stream, launch"
IMPORTS = {"import cuda.core": 15.0, f"from cuda.core import {NAMES}": 15.0}


def kernels():
    """PTX of three kernels that do nothing, with no, 3 and 16 parameters."""

    def entry(name, types):
        parameters = ",\n".join(f"    .param .{kind} p{number}" for number, kind in enumerate(types))
        return f".visible .entry {name}(\n{parameters}\n)\n{{\n    ret;\n}}\n"

    head = ".version 7.8\n.target sm_80\n.address_size 64\n\n"
    sixteen = ("u64", "f32", "u32", "u64") * 4
    return head + entry("none", ()) + entry("three", ("f32", "u64", "u64")) + entry("sixteen", sixteen)


def idle_driver(driver, folder):
    """Builds the idle driver; returns the folder that it is in."""
    folder = folder / "driver"
    folder.mkdir()
    driver = pathlib.Path(driver).resolve()
    words = [compiler(), "-O2", "-shared", "-fPIC", f'-DDRIVER="{driver}"', "-o", folder / "libcuda.so.1"]
    words += [HERE / "idle_driver.c", "-ldl"]
    subprocess.run(words, check=True)
    return folder


def with_driver(side, folder, **more):
    """The side with a folder that libraries are looked for in first."""
    path = os.pathsep.join(filter(None, (str(folder), side.environment.get("LD_LIBRARY_PATH"))))
    return dataclasses.replace(side, environment=dict(side.environment, LD_LIBRARY_PATH=path, **more))


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20, help="rounds of each row (20)")
    options.add_argument("--turns", type=int, default=9, help="how often the sides take turns (9)")
    options.add_argument("--runs", type=int, default=21, help="pairs of interpreters for the time of an import (21)")
    options.add_argument("--idle", metavar="DRIVER", help="use a driver whose launches do nothing, around this one")
    options = options.parse_args()
    ours, peer = sides(options)
    if peer is not None and not peer.has("cuda.core", without="cupyrite"):
        print("(the peer has no cuda.core; it is left out)")
        peer = None
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        environment = dict(os.environ)
        if options.idle:
            path = idle_driver(options.idle, folder)
            ours = with_driver(ours, path, CUPYRITE_DEVICE="gpu")
            peer = peer and with_driver(peer, path)
            environment["LD_LIBRARY_PATH"] = ours.environment["LD_LIBRARY_PATH"]
        in_process = not options.idle and ours.run("-W", "ignore", "-c", BACKEND).strip() == "cpu"
        if in_process and peer is not None:
            print("(NVIDIA's package has no CPU device; it is left out)")
            peer = None
        cupy = next((side for side in (peer, ours) if side and side.has("cupy") and not in_process), None)
        ptx = folder / "empty.ptx"
        ptx.write_text(kernels())
        program, library = build("core", folder)
        words = ["-W", "ignore", HERE / "core_side.py", ptx, options.rounds]

        def in_c():
            command = [program, ptx, str(options.rounds)]
            text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            return [float(line) for line in text.split()]

        def with_cupy():
            found = cupy.run("-W", "ignore", HERE / "core_cupy_side.py", ptx, options.rounds, check=False)
            return found and json.loads(found.splitlines()[-1])

        turns = {"ours": lambda: ours.json(*words, *([library] if in_process else []))}
        if not in_process:
            turns["c"] = in_c
        if peer:
            turns["peer"] = lambda: peer.json(*words)
        if cupy:
            turns["cupy"] = with_cupy
        least = None if in_process else floor.build(folder)
        if least:
            turns["floor"] = lambda: floor.run(least, options.rounds, environment)
        runs = take_turns(options.turns, turns, one_core=not in_process)
        if None in runs.get("cupy", ()):
            print("(CuPy is there but does not run; it is left out)")
            del runs["cupy"]
        mine = runs["ours"]
        c = [run["c"] for run in mine] if in_process else runs["c"]
        device, names = mine[0]["device"], mine[0]["rows"]
        print(f"cuda.core on {device}{', an idle driver' if options.idle else ''}, ns a call; {machine()}\n")
        good = show(names, c, [mine, runs.get("peer", []), runs.get("cupy", []), floor.in_order(runs, names)])
        print()
        good &= imports(ours, peer, options.runs)
    return 0 if good or in_process or options.idle else 1


# Which driver the process has.
BACKEND = "from cuda.core import Device; print('cpu' if Device(0).name.startswith('CPU') else 'gpu')"


def best_or_none(runs):
    """The smallest figure of each row; None where there is none."""
    return [min(column) if None not in column else None for column in zip(*runs)] if runs else None


def show(names, c, sides):
    """Prints the table; returns whether every budget holds."""
    rows, good = [], True
    for number, name in enumerate(names):
        has_c = number < len(c[0])
        cells = [name, f"{Figure.of(run[number] for run in c).best:,.0f}" if has_c else "-"]
        figures = [alone(runs, number) if name in ALONE else over(runs, c, number) for runs in sides]
        cells += [figure or "-" for figure in figures]
        budget = BUDGETS.get(name)
        if budget is None:
            cells += ["-", ""]
        else:
            held = figures[0].best <= budget
            good &= held
            cells += [f"{budget:,}", "held" if held else "MISSED"]
        rows.append(cells)
    print("(over C, but for " + " and ".join(ALONE) + ")")
    table(("call", "C", "cupyrite", "peer", "CuPy", "the least", "budget", ""), rows)
    return good


def imports(ours, peer, runs):
    """The same for the time of the imports, in milliseconds over bare Python."""
    rows, good = [], True
    for statement, budget in IMPORTS.items():
        row = [statement]
        for side in (ours, peer):
            row.append(f"{over_bare(side, statement, runs)[0]:.2f}" if side else "-")
        held = float(row[1]) <= budget
        good &= held
        rows.append([*row, f"{budget:.0f}", "held" if held else "MISSED"])
    table(("ms over bare Python", "cupyrite", "peer", "budget", ""), rows)
    script = f"import sys; from cuda.core import {NAMES}; print('numpy' in sys.modules)"
    if ours.run("-W", "ignore", "-c", script).strip() != "False":
        print("NumPy is imported: MISSED")
        good = False
    return good


if __name__ == "__main__":
    sys.exit(main())
