"""Finding and loading libraries: Cupyrite, and NVIDIA's package where it is installed.

Budgets: 5 ms for the import, 1 ms for a successful search. Each figure is the median of --runs fresh processes; the sides
take turns. Both find the same CUDA runtime in the same folder, which both treat as site-packages. The cost of loading the
file alone (`ctypes.CDLL`, also in a fresh process) is shown, and subtracted for the budget.
"""

import pathlib
import shutil
import site
import statistics
import sys
import sysconfig
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness.c_code import compile_c
from harness.import_time import once
from harness.sides import find_sides, machine, parser, table, verdict

HERE = pathlib.Path(__file__).resolve().parent

BUDGET_MS = {"import": 5.0, "own": 1.0}


def wheels(folder):
    """Puts the CUDA runtime of this environment, or an empty library in its place, into a folder; (description, file)."""
    for root in {*site.getsitepackages(), sysconfig.get_paths()["purelib"]}:
        real = pathlib.Path(root) / "nvidia" / "cu13"
        if (real / "lib" / "libcudart.so.13").is_file():
            (folder / "nvidia").mkdir()
            (folder / "nvidia" / "cu13").symlink_to(real)
            return "the CUDA runtime", folder / "nvidia" / "cu13" / "lib" / "libcudart.so.13"
    library = folder / "nvidia" / "cu13" / "lib" / "libcudart.so.13"
    library.parent.mkdir(parents=True)
    source = folder / "empty.c"
    source.write_text("int empty;\n")
    compile_c("-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o", library, source)
    header = folder / "nvidia" / "cu13" / "include" / "cuda_runtime.h"
    header.parent.mkdir()
    header.touch()
    return "an empty library", library


def tools(folder):
    """Adds a made-up tool: no wheel of the environment has one."""
    tool = folder / "nvidia" / "cuda_nvcc" / "bin" / "nvcc"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)


def main():
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=15, help="processes started for each figure (15)")
    options = options.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cupyrite-bench-"))
    try:
        return measure(options, folder)
    finally:
        shutil.rmtree(folder)


def measure(options, folder):
    """Prints the table; the exit status."""
    both = find_sides(options)
    for side in filter(None, both):
        for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "LD_LIBRARY_PATH"):
            side.environment = {k: v for k, v in side.environment.items() if k != name}
    what, library = wheels(folder)
    tools(folder)
    print(f"cuda.pathfinder, ms, median of {options.runs} fresh processes; {machine()}\nthe library: {what}\n")

    def figures(*words):
        """The medians of both sides in milliseconds, and their last answers."""
        seconds, results = {}, {}
        for _ in range(options.runs):
            for side in filter(None, both):
                answer = side.json(HERE / "pathfinder_side.py", words[0], folder, *words[1:])
                seconds.setdefault(side.name, []).append(answer["seconds"] * 1e3)
                results[side.name] = answer["result"]
        return {name: statistics.median(all_) for name, all_ in seconds.items()}, results

    imports = {side.name: [] for side in filter(None, both)}
    for side in filter(None, both):
        once(side, "import cuda.pathfinder")  # fills the byte-code and page caches
    for _ in range(options.runs):
        for side in filter(None, both):
            bare = once(side, "pass")
            imports[side.name].append(once(side, "import cuda.pathfinder") - bare)
    imports = {name: statistics.median(all_) for name, all_ in imports.items()}
    first, found = figures("load", "cudart")
    plain, _ = figures("plain", library)
    own = {name: first[name] - plain[name] for name in first}
    again, _ = figures("again", "cudart")
    rows = [
        ("import, over bare Python", imports, BUDGET_MS["import"]),
        ("first call, found in wheels", first, None),
        ("  the same file by ctypes.CDLL", plain, None),
        ("  the difference", own, BUDGET_MS["own"]),
        ("already loaded by other code", figures("loaded", "cudart", library)[0], BUDGET_MS["own"]),
        ("the same name again (ns)", {name: value * 1e6 for name, value in again.items()}, None),
        ("not found", figures("load", "cufftMp")[0], None),
        ("headers, found in wheels", figures("header", "cudart")[0], BUDGET_MS["own"]),
        ("headers, not found", figures("header", "cutensor")[0], None),
        ("tool, found in wheels", figures("binary", "nvcc")[0], BUDGET_MS["own"]),
        ("tool, not found", figures("binary", "nsys")[0], None),
    ]
    shown, good = [], True
    for name, values, budget in rows:
        digits = 0 if "(ns)" in name else 2 if name.startswith("import") else 3
        cells = [f"{values[side.name]:.{digits}f}" if side else "not installed" for side in both]
        last = "-"
        if budget is not None:
            held = values[both[0].name] <= budget
            good &= held
            last = f"{budget:.0f}, {verdict(held)}"
        shown.append((name, *cells, last))
    table(("", "cupyrite", "peer", "budget"), shown)
    for side in filter(None, both):
        if found[side.name] != str(library):
            print(f"\n{side.name} found another file: {found[side.name]}")
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
