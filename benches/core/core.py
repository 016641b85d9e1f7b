"""Cost of cuda.core: Cupyrite, NVIDIA's package, CuPy and plain C in one run, against the budgets.

    core.py [--wheel FILE] [--peer PYTHON] [--rounds 20] [--idle DRIVER]

Figures are nanoseconds a call (or a pair of calls): the smallest mean of many rounds, less the cost of the loop. The sides
take turns; the smallest figure of each side counts, and its spread is shown (see harness/turns.py). CuPy is timed where the
peer's interpreter (or this one) has it. "Lower bound" is harness/lower_bound.c: a hand-written extension for one pair of
calls that releases the GIL around each of them and does nothing else that cuda.core does.

Needs a C compiler. On a GPU the C side is a program that opens libcuda; on the CPU device C calls the same addresses in
the same process, and there is no peer.

With --idle all sides use a driver whose launches, copies and allocations do nothing: idle_driver.c around DRIVER, a shared
library with the symbols of libcuda (for the CPU device: python -m cupyrite run --print-libdir). This needs no GPU and shows
the cost of each side without the device.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness import lower_bound, probes
from harness.c_code import build_library, build_program, compile_c
from harness.import_time import over_bare
from harness.ptx import FOR_CORE, empty_kernels
from harness.sides import find_core_sides, machine, parser, table, verdict, without_cpu_peer
from harness.turns import Figure, over_c, take_turns, total

HERE = pathlib.Path(__file__).resolve().parent

# Nanoseconds over C; in total for the rows of TOTALS.
BUDGETS = {
    "launch, 3 arguments": 250,
    "Device()": 60,
    "create_event + close": 200,
    "Buffer: allocate + close": 300,
    "a hit of the disk cache, 32 kB": 50_000,
}
# Rows without a driver call.
TOTALS = ("Device()", "a hit of the disk cache, 32 kB")
NAMES = "Buffer, Device, LaunchConfig, ObjectCode, Program, Stream, launch"
IMPORTS = {"import cuda.core": 15.0, f"from cuda.core import {NAMES}": 15.0}


def idle_driver(driver, folder):
    """Builds the idle driver around another one; returns its folder."""
    folder = folder / "driver"
    folder.mkdir()
    driver = pathlib.Path(driver).resolve()
    library = folder / "libcuda.so.1"
    compile_c("-shared", "-fPIC", f'-DDRIVER="{driver}"', "-o", library, HERE / "idle_driver.c", "-ldl")
    return folder


def with_driver(side, folder, **more):
    """The side with a folder in front of LD_LIBRARY_PATH."""
    path = os.pathsep.join(filter(None, (str(folder), side.environment.get("LD_LIBRARY_PATH"))))
    return dataclasses.replace(side, environment=dict(side.environment, LD_LIBRARY_PATH=path, **more))


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20, help="rounds of each row (20)")
    options.add_argument("--turns", type=int, default=9, help="turns of each side (9)")
    options.add_argument("--runs", type=int, default=21, help="pairs of interpreters for the time of an import (21)")
    options.add_argument(
        "--idle", metavar="DRIVER", help="replace launches, copies and allocations of this driver by no-ops"
    )
    options = options.parse_args()
    ours, peer = find_core_sides(options)
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as name:
        folder = pathlib.Path(name)
        environment = dict(os.environ)
        if options.idle:
            path = idle_driver(options.idle, folder)
            ours = with_driver(ours, path, CUPYRITE_DEVICE="gpu")
            peer = peer and with_driver(peer, path)
            environment["LD_LIBRARY_PATH"] = ours.environment["LD_LIBRARY_PATH"]
        in_process = not options.idle and probes.answer(ours, probes.DEVICE) == "cpu"
        peer = without_cpu_peer(peer, in_process)
        cupy = next((side for side in (peer, ours) if side and side.has("cupy") and not in_process), None)
        ptx = folder / "empty.ptx"
        ptx.write_text(empty_kernels(FOR_CORE))
        program, library = (build(HERE / "core.c", folder) for build in (build_program, build_library))
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
        extension = None if in_process else lower_bound.build(folder)
        if extension:
            turns[lower_bound.COLUMN] = lambda: lower_bound.run(extension, options.rounds, environment)
        runs = take_turns(options.turns, turns, one_core=not in_process)
        if None in runs.get("cupy", ()):
            print("(CuPy is installed but fails and is left out)")
            del runs["cupy"]
        mine = runs["ours"]
        c = [run["c"] for run in mine] if in_process else runs["c"]
        device, names = mine[0]["device"], mine[0]["rows"]
        print(f"cuda.core on {device}{', an idle driver' if options.idle else ''}, ns a call; {machine()}\n")
        good = show(names, c, [mine, runs.get("peer", []), runs.get("cupy", []), lower_bound.as_runs(runs, names)])
        print()
        good &= imports(ours, peer, options.runs)
    return 0 if good or in_process or options.idle else 1


def show(names, c, sides):
    """Prints the table; returns whether every budget holds."""
    rows, good = [], True
    for number, name in enumerate(names):
        has_c = number < len(c[0])
        cells = [name, f"{Figure.of(run[number] for run in c).best:,.0f}" if has_c else "-"]
        figures = [total(runs, number) if name in TOTALS else over_c(runs, c, number) for runs in sides]
        cells += [figure or "-" for figure in figures]
        budget = BUDGETS.get(name)
        if budget is None:
            cells += ["-", ""]
        else:
            held = figures[0].best <= budget
            good &= held
            cells += [f"{budget:,}", verdict(held)]
        rows.append(cells)
    print("(over C, except " + " and ".join(TOTALS) + ")")
    table(("call", "C", "cupyrite", "peer", "CuPy", lower_bound.COLUMN, "budget", ""), rows)
    return good


def imports(ours, peer, runs):
    """Prints the import times; returns whether every budget holds."""
    rows, good = [], True
    for statement, budget in IMPORTS.items():
        row = [statement]
        for side in (ours, peer):
            row.append(f"{over_bare(side, statement, runs)[0]:.2f}" if side else "-")
        held = float(row[1]) <= budget
        good &= held
        rows.append([*row, f"{budget:.0f}", verdict(held)])
    table(("ms over bare Python", "cupyrite", "peer", "budget", ""), rows)
    script = f"import sys; from cuda.core import {NAMES}; print('numpy' in sys.modules)"
    if ours.run("-W", "ignore", "-c", script).strip() != "False":
        print("NumPy is imported: MISSED")
        good = False
    return good


if __name__ == "__main__":
    sys.exit(main())
