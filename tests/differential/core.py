"""Records what this interpreter's `cuda.core` does, line by line of the programs in ``core_cases``.

    python tests/differential/core.py --out ours.json [GROUP ...]

A group is a short program: a setup, then lines that run one after the other in a process of their own. The record keeps
the value of each line (or the class and status of the exception, and the categories of warnings). The same programs run
in an interpreter with NVIDIA's package, and core_compare.py compares the two records. Addresses, handles and folders
are removed; messages are kept for the reader and not compared, because our texts are our own.

A line that ends the process is recorded as a crash, and the group runs again without it.
"""

import argparse
import ast
import concurrent.futures
import enum
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

SECONDS = float(os.environ.get("CUPYRITE_DIFFERENTIAL_SECONDS", "60"))  # Seconds after which a group counts as hanging.
ADDRESS = 1 << 40  # Larger numbers are addresses or handles.

# ----------------------------------------------------------------------------------------------------------
# Values


def words(text):
    """A text without the parts that change from run to run."""
    text = re.sub(r"0x0*[1-9a-fA-F][0-9a-fA-F]*", "0x#", text)
    text = re.sub(re.escape(tempfile.gettempdir()) + r"/[\w./-]+", "PATH", text)
    return re.sub(r"\bcuda\.core\.[\w.]*?(?=[A-Z])", "cuda.core.", text)


def class_name(kind):
    """The name of a class; all private modules of `cuda.core` count as one, because their layout is not compared."""
    module = kind.__module__
    return (
        f"{'cuda.core' if module.startswith(('cuda.core.', 'cupyrite')) else module}.{kind.__qualname__.split('.')[-1]}"
    )


def describe(value, depth=6):
    """A value as JSON."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, type):
        return {"class": class_name(value)}
    if isinstance(value, enum.Enum) or hasattr(kind, "__members__"):
        return {"enum": kind.__name__, "name": value.name, "value": describe(getattr(value, "value", None), 0)}
    if kind is str:
        return {"str": words(value)}
    if kind is int:
        return {"int": "address" if abs(value) >= ADDRESS else value}
    if kind is float:
        return {"float": repr(value)}
    if kind in (bytes, bytearray, memoryview):
        raw = bytes(value)
        return {kind.__name__: raw[:64].hex(), "len": len(raw)}
    if depth == 0:
        return {"object": class_name(kind)}
    if isinstance(value, tuple):
        return {kind.__name__: [describe(v, depth - 1) for v in value]}
    if kind is list:
        return {"list": [describe(v, depth - 1) for v in value]}
    if kind is dict:
        return {"dict": [[describe(k, depth - 1), describe(v, depth - 1)] for k, v in value.items()]}
    if kind in (set, frozenset):
        return {kind.__name__: sorted(json.dumps(describe(v, depth - 1)) for v in value)}
    if isinstance(value, types.ModuleType):
        return {"module": value.__name__}
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, type):
        return {"function": value.__name__}
    if isinstance(value, BaseException):
        return {"exception": class_name(kind)}
    if isinstance(value, int) and kind.__module__.startswith("cuda.core"):
        return {"int": int(value)}
    if kind.__module__.startswith("cuda.bindings"):
        try:
            return {"object": f"{kind.__module__}.{kind.__name__}", "zero": int(value) == 0}
        except Exception:
            return {"object": f"{kind.__module__}.{kind.__name__}"}
    if kind.__module__.startswith(("cuda.", "cupyrite", "__main__")):
        try:
            return {"object": class_name(kind), "repr": words(repr(value))}
        except Exception as error:
            return {"object": class_name(kind), "repr raises": describe(error)}
    return {"object": class_name(kind)}


STATUS = re.compile(r"\b(CUDA_ERROR_\w+|cudaError[A-Z]\w+|NVRTC_ERROR_\w+|ERROR_[A-Z_]+)")


def describe_error(error):
    """An exception: its class, the status that its text names, and the text for the reader."""
    try:
        text = str(error)
    except Exception as broken:
        text = f"str() raises {type(broken).__name__}"
    found = STATUS.search(text)
    names = {"raises": class_name(type(error)), "text": text[:500]}
    if isinstance(error, UnicodeError) or class_name(type(error)).startswith(("cuda.", "builtins.RuntimeError")):
        names["status"] = found.group(1) if found else None
    return names


# ----------------------------------------------------------------------------------------------------------
# Names that the programs use besides the package


class Streamlike:
    """An object whose `__cuda_stream__` returns any given value."""

    def __init__(self, result):
        self.result = result

    def __cuda_stream__(self):
        return self.result


def public(kind):
    """The public names of a class or an object."""
    return sorted(n for n in dir(kind) if not n.startswith("_"))


def in_thread(call):
    """The result of the call, made in another thread."""
    out = []

    def run():
        try:
            out.append(call())
        except BaseException as error:
            out.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(out[0], BaseException):
        raise out[0]
    return out[0]


def python(code, **environment):
    """(exit status, output, last line of stderr) of a program run by this interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=SECONDS
    )
    return done.returncode, done.stdout.strip(), (done.stderr.strip().splitlines() or [""])[-1].split(":")[0]


# ----------------------------------------------------------------------------------------------------------
# One group, in this process


def run_group(module, name, skip, out):
    """Runs one group and appends an outcome for each of its lines to the file `out`."""
    setup, lines = importlib.import_module(f"core_cases.{module}").GROUPS[name]
    scope = {
        "public": public,
        "in_thread": in_thread,
        "python": python,
        "Streamlike": Streamlike,
        "__name__": "__main__",
    }
    sys.modules["__main__"].__dict__.update(scope)
    exec(compile(setup, f"<setup of {name}>", "exec"), scope)
    sys.modules["__main__"].__dict__.update(
        {k: v for k, v in scope.items() if isinstance(v, (type, types.FunctionType))}
    )
    with open(out, "a") as file:
        for number, line in enumerate(split(lines)):
            if number in skip:
                continue
            file.write(json.dumps({"begin": number}) + "\n")
            file.flush()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    outcome = {"value": describe(run_line(line, scope))}
                except Exception as error:
                    outcome = describe_error(error)
                    error.__traceback__ = None
            seen = {w.category.__name__ for w in caught} - {"ResourceWarning"}
            if seen:
                outcome["warns"] = sorted(seen)
            file.write(json.dumps({"end": number, **outcome}) + "\n")
            file.flush()


def run_line(line, scope):
    """Runs the statements of a line; the value of the last one if that is an expression."""
    tree = ast.parse(line)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    if tree.body:
        exec(compile(tree, "<line>", "exec"), scope)
    return eval(compile(last, "<line>", "eval"), scope) if last is not None else None


def split(lines):
    return [line.strip() for line in lines.strip().splitlines() if line.strip()]


# ----------------------------------------------------------------------------------------------------------
# All groups, each in a process


def groups():
    """(module, group) of all core_cases."""
    for path in sorted((HERE / "core_cases").glob("[a-z]*.py")):
        for name in importlib.import_module(f"core_cases.{path.stem}").GROUPS:
            yield path.stem, name


def named(lines):
    """The lines as keys of the record: repeated lines are numbered."""
    return [
        f"{line}  # {lines[:number].count(line) + 1}" if line in lines[:number] else line
        for number, line in enumerate(lines)
    ]


def record_group(module, name, end_by):
    """The outcomes of a group's lines; a line that ends the process is left out of the next attempt.

    `end_by` is a time of time.monotonic() that no attempt exceeds; lines not run by then are recorded as such.
    """
    lines = split(importlib.import_module(f"core_cases.{module}").GROUPS[name][1])
    ended, skip, outcomes = {}, [], {}
    for _ in range(8):
        seconds = min(SECONDS, end_by - time.monotonic())
        if seconds <= 0:
            return {name: {"crash": "not run in the time given"} for name in named(lines)}
        with tempfile.TemporaryDirectory(prefix="cupyrite-core-") as folder:
            out = pathlib.Path(folder) / "out"
            out.touch()
            command = [
                sys.executable,
                HERE / "core.py",
                "--group",
                f"{module}:{name}",
                "--skip",
                ",".join(map(str, skip)),
                "--out",
                out,
            ]
            environment = {**os.environ, "TMPDIR": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
            try:
                done = subprocess.run(
                    list(map(str, command)), capture_output=True, text=True, timeout=seconds, env=environment
                )
                end = None if done.returncode == 0 else f"ends with {done.returncode}"
                complaint = done.stderr[-1500:]
            except subprocess.TimeoutExpired:
                end, complaint = f"no answer in {seconds:.0f} s", ""
            entries = [json.loads(line) for line in out.read_text().splitlines()]
        outcomes = {e["end"]: {k: v for k, v in e.items() if k != "end"} for e in entries if "end" in e}
        begun = [e["begin"] for e in entries if "begin" in e]
        if end is None:
            break
        if not begun or len(outcomes) == len(lines) - len(skip):
            # Before the first line or after the last one: the setup, or the interpreter's exit.
            ended["end"] = {"crash": end, "text": complaint}
            break
        ended[begun[-1]] = {"crash": end, "text": complaint}
        skip.append(begun[-1])
    ended.update(outcomes)
    found = {name: ended.get(number, {"crash": "not reached"}) for number, name in enumerate(named(lines))}
    if "end" in ended:
        found["(end of the process)" if outcomes else "(setup)"] = ended["end"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--group", help="run this group here (used by the command itself)")
    parser.add_argument("--skip", default="")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)), help="groups at a time")
    parser.add_argument(
        "--limit",
        type=float,
        default=1800,
        help="seconds for the whole; groups that are not run by then are not reached",
    )
    parser.add_argument("only", nargs="*", metavar="GROUP", help="groups whose names begin so; all without")
    options = parser.parse_args()
    if options.group:
        module, _, name = options.group.partition(":")
        run_group(module, name, {int(n) for n in options.skip.split(",") if n}, options.out)
        return
    chosen = [(module, name) for module, name in groups() if not options.only or name.startswith(tuple(options.only))]
    end_by = time.monotonic() + options.limit
    # The longest groups first, so that none runs alone at the end.
    longest = ("processes", "devices", "caches", "linking", "resources", "managed", "memory", "views")
    order = sorted(chosen, key=lambda group: longest.index(group[0]) if group[0] in longest else len(longest))
    took = {}

    def timed(group):
        begin = time.monotonic()
        found = record_group(*group, end_by)
        took[group[1]] = time.monotonic() - begin
        return found

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = dict(zip(order, pool.map(timed, order)))
    record = {group[1]: found[group] for group in chosen}
    slowest = sorted(took, key=took.get, reverse=True)[:5]
    print(
        f"{sum(took.values()):.0f} s, {options.jobs} at a time; longest:",
        ", ".join(f"{name} {took[name]:.0f} s" for name in slowest),
    )
    pathlib.Path(options.out).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
