"""Records what the bindings of this interpreter do: types, values, exceptions, and the C calls below.

    python tests/differential/record.py --module nvml --recorder FOLDER --out ours.json
    python tests/differential/record.py --module nvvm --out ours.json

With ``--recorder`` the folder holds the recording library (recorder.py): every function is called with ordinary and
with wrong arguments, under every answer that the library can give. Without it the real library is used, through the
scripts of ``cases/MODULE.py``. In both cases every class, attribute, enum and exception of the module is recorded. The
same command runs in an interpreter with NVIDIA's package; compare.py compares the two records.

Needs only the interpreter and the bindings. Calls run in forked children, so that a crash or a hang becomes an entry of
the record.
"""

import argparse
import ctypes
import enum
import importlib
import inspect
import json
import os
import pathlib
import platform
import select
import signal
import sys
import tempfile
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import contextlib

from typed import Typed, data_attributes

SECONDS = 10  # Seconds after which a call counts as hanging.
MODES = ("ok", "fill", "two:7", "error:3", "error:7", "error:999")
ROOM = ctypes.create_string_buffer(1 << 16)  # The memory behind an address argument.


class Opaque:
    """An object that no binding accepts."""


WRONG = {
    "None": None,
    "str": "x",
    "bytes": b"x",
    "float": 1.5,
    "negative": -1,
    "2**31": 1 << 31,
    "2**32": 1 << 32,
    "2**63": 1 << 63,
    "2**64": 1 << 64,
    "list": [],
    "tuple": (1, 2),
    "True": True,
    "object": Opaque(),
    "surrogate": "\ud800",
    "nul": "a\0b",
}


# ----------------------------------------------------------------------------------------------------------
# Values


def describe(value, depth=5):
    """A value as JSON: its type's name and its contents."""
    kind = type(value)
    name = kind.__name__
    if value is None or kind in (bool, str):
        return (
            value
            if kind is not str
            else {"str": value.encode("utf-8", "surrogatepass").hex() if not value.isprintable() else value}
        )
    if kind is int:
        return {"int": str(value) if abs(value) > 1 << 53 else value}
    if kind is float:
        return {"float": repr(value)}
    if kind in (bytes, bytearray):
        return {name: bytes(value[:512]).hex(), "len": len(value)}
    if kind in (tuple, list):
        return {name: [describe(v, depth - 1) for v in value[:64]], "len": len(value)}
    if isinstance(value, enum.Enum) or hasattr(kind, "__members__"):
        return {"enum": f"{kind.__module__}.{name}", "name": getattr(value, "name", None), "value": int(value)}
    if isinstance(value, BaseException):
        return describe_exception(value)
    if name in ("ndarray", "recarray"):
        return {
            name: json.loads(json.dumps(value.tolist(), default=repr)),
            "dtype": str(value.dtype.descr),
            "shape": list(value.shape),
        }
    if name in ("_memoryviewslice", "memoryview", "array") and kind.__module__ != "array":
        view = memoryview(value)
        return {
            name: [describe(v) for v in view.tolist()[:64]] if view.ndim == 1 else None,
            "format": view.format,
            "shape": list(view.shape),
        }
    if kind.__module__.startswith("cuda.bindings"):
        return describe_object(value, depth)
    return {"object": f"{kind.__module__}.{name}"}


def describe_object(value, depth):
    out = {"class": type(value).__name__}
    with contextlib.suppress(TypeError):
        out["len"] = len(value)
    if not data_attributes(type(value)):
        # A handle: its number, unless that is an address.
        with contextlib.suppress(Exception):
            out["int"] = int(value) if int(value) < 1 << 28 else "address"
    if depth > 0:
        for name in data_attributes(type(value)):
            try:
                out["." + name] = describe(getattr(value, name), depth - 1)
            except Exception as error:
                out["." + name] = describe_exception(error)
    return out


def describe_exception(error):
    kind = type(error)
    out = {"exception": f"{kind.__module__}.{kind.__qualname__}"}
    if kind.__module__.startswith("cuda.") and hasattr(error, "status"):
        # C's error texts are part of the interface; our texts for refused arguments are not.
        out["args"] = [describe(a) for a in error.args]
        out["text"] = str(error)
        out["status"] = int(error.status)
        if hasattr(error, "cuda_error"):
            out["cuda_error"] = describe(error.cuda_error)
    return out


# ----------------------------------------------------------------------------------------------------------
# Children


def in_children(tasks):
    """{label: outcome} of (label, function) pairs, each run in a child that serves until it crashes or hangs."""
    results, position = {}, 0
    while position < len(tasks):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            status = 1
            try:
                with os.fdopen(write, "w") as out:
                    for label, function in tasks[position:]:
                        try:
                            result = function()
                        except Exception as error:
                            result = {"impossible": f"{type(error).__name__}: {error}"}
                        out.write(json.dumps([label, result]) + "\n")
                        out.flush()
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        lines, hung = read_lines(read, len(tasks) - position)
        if hung:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        for line in lines:
            label, outcome = json.loads(line)
            results[label] = outcome
        position += len(lines)
        if position < len(tasks):
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {os.WEXITSTATUS(status)}"
            results[tasks[position][0]] = {"hangs": True} if hung else {"crash": how}
            position += 1
    return results


def read_lines(descriptor, wanted):
    """The lines that a child writes, and whether it hung."""
    data, deadline = b"", time.monotonic() + SECONDS
    with os.fdopen(descriptor, "rb", buffering=0) as pipe:
        while data.count(b"\n") < wanted:
            ready, _, _ = select.select([pipe], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return data.split(b"\n")[:-1], True
            chunk = pipe.read(1 << 16)
            if not chunk:
                break
            if b"\n" in chunk:
                deadline = time.monotonic() + SECONDS
            data += chunk
    return data.split(b"\n")[:-1], False


def outcome(function, *args, log=None, **keywords):
    """The outcome of a call: {"value": ..} or {"raises": ..}, and the C calls if `log` is the recorder's file."""
    if log:
        open(log, "w").close()
    try:
        out = {"value": describe(function(*args, **keywords))}
    except BaseException as error:
        out = {"raises": describe_exception(error)}
    if log:
        with open(log) as file:
            out["calls"] = [json.loads(line) for line in file]
    return out


# ----------------------------------------------------------------------------------------------------------
# Contents of a module


def public(module):
    """{name: object} of a module's own public names."""
    found = {}
    for name in sorted(dir(module)):
        if name.startswith("__") or (name.startswith("_") and not name.startswith("_py_anon")):
            continue
        value = getattr(module, name)
        if isinstance(value, types.ModuleType) or (
            isinstance(value, type) and not value.__module__.startswith("cuda.bindings")
        ):
            continue
        found[name] = value
    return found


def functions(module):
    """{name: function}"""
    return {
        n: f
        for n, f in public(module).items()
        if callable(f) and not isinstance(f, type) and getattr(f, "__module__", "") != "typing"
    }


def classes(module):
    """{name: class} of the classes that are neither enums nor exceptions."""
    return {
        n: c
        for n, c in public(module).items()
        if isinstance(c, type) and not issubclass(c, BaseException) and not hasattr(c, "__members__")
    }


def parameters(function):
    """Names of a function's parameters."""
    return [p.name for p in inspect.signature(function).parameters.values()]


# ----------------------------------------------------------------------------------------------------------
# Cases


class Arguments:
    """Ordinary arguments, by the tables of a module's cases."""

    def __init__(self, module, cases):
        self.module = module
        self.table = getattr(cases, "ARGUMENTS", {})

    def of(self, function, names):
        """One argument per parameter: from the table, else derived from its position, so that all differ."""
        out = []
        for position, name in enumerate(names, 1):
            entry = self.table.get((function, name), self.table.get(("*", name), position))
            out.append(entry(self.module) if callable(entry) else entry)
        return out


def function_tasks(module, cases, folder, log):
    """Every function, in every mode of the recorder, with ordinary and wrong arguments."""
    typed = (folder / "arguments.json").exists()
    arguments = Typed(module, cases, folder) if typed else Arguments(module, cases)
    modes = getattr(cases, "MODES", MODES)
    tasks = []
    for name, function in functions(module).items():
        if name in getattr(cases, "SKIP", ()):
            continue
        names = parameters(function)

        def call(mode, values, function=function):
            os.environ["RECORDER_MODE"] = mode
            return outcome(function, *values, log=log)

        def by_name(function=function, name=name, names=names):
            os.environ["RECORDER_MODE"] = "ok"
            return outcome(function, log=log, **dict(zip(names, arguments.of(name, names))))

        for mode in modes:
            tasks.append(
                (
                    f"{name} {mode}",
                    lambda mode=mode, call=call, name=name, names=names: call(mode, arguments.of(name, names)),
                )
            )
        tasks.append((f"{name} keywords", by_name))
        tasks.append(
            (
                f"{name} too few",
                lambda call=call, name=name, names=names: call("ok", arguments.of(name, names)[:-1]) if names else None,
            )
        )
        tasks.append(
            (f"{name} too many", lambda call=call, name=name, names=names: call("ok", [*arguments.of(name, names), 1]))
        )
        for i, parameter in enumerate(names):
            makers = {what: lambda value=value: value for what, value in WRONG.items()}
            if typed and name in arguments.functions:
                makers.update(arguments.others(arguments.functions[name][i]))
            for what, make in makers.items():

                def wrong(i=i, make=make, call=call, name=name, names=names):
                    values = arguments.of(name, names)
                    values[i] = make()
                    return call("ok", values)

                tasks.append((f"{name} {parameter}={what}", wrong))
    for label, name, call in getattr(cases, "recorded", lambda m: ())(module):

        def run(call=call, name=name):
            os.environ["RECORDER_MODE"] = "ok"
            os.environ.pop("RECORDER_KERNEL", None)
            return {**outcome(call, log=log), "function": name}

        tasks.append((f"{name} {label}", run))
    return tasks


VALUES = {
    "None": lambda m: None,
    "0": lambda m: 0,
    "1": lambda m: 1,
    "7": lambda m: 7,
    "-1": lambda m: -1,
    "2**31": lambda m: 1 << 31,
    "2**32": lambda m: 1 << 32,
    "2**64": lambda m: 1 << 64,
    "1.5": lambda m: 1.5,
    "str": lambda m: "ab",
    "long str": lambda m: "x" * 100,
    "bytes": lambda m: b"ab",
    "[]": lambda m: [],
    "[1, 2, 3]": lambda m: [1, 2, 3],
    "(1, 2)": lambda m: (1, 2),
    "object": lambda m: Opaque(),
}


def attribute_tasks(module):
    """Every attribute of every class: its initial value, and its value after assignments."""
    tasks = []
    for name, kind in classes(module).items():
        tasks.append((f"{name}()", lambda kind=kind: outcome(kind)))
        tasks.append((f"{name}(1)", lambda kind=kind: outcome(kind, 1)))
        tasks.append((f"{name}(3)", lambda kind=kind: outcome(kind, 3)))
        tasks.append((f"{name}(-1)", lambda kind=kind: outcome(kind, -1)))
        for attribute in data_attributes(kind):
            values = dict(VALUES)
            # Its present value is certainly valid.
            values["own"] = None
            for what, make in values.items():

                def assign(kind=kind, attribute=attribute, make=make):
                    it = kind()
                    value = make(module) if make else getattr(it, attribute)
                    try:
                        setattr(it, attribute, value)
                    except Exception as error:
                        return {"raises": describe_exception(error)}
                    try:
                        value = getattr(it, attribute)
                    except Exception as error:
                        value = error
                    # Bytes behind the end of a text are irrelevant.
                    return {"value": describe(value), "bytes": None if isinstance(value, str) else content(it)}

                tasks.append((f"{name}.{attribute} = {what}", assign))
    return tasks


SIZES = {}  # Of the classes without a size.


def content(it):
    """The C bytes of an object, as hexadecimal digits."""
    try:
        if type(it).__name__ in SIZES:
            return ctypes.string_at(it.getPtr(), min(SIZES[type(it).__name__], 256)).hex()
        size = memoryview(it).nbytes
        return ctypes.string_at(int(it), min(size, 256)).hex()
    except Exception:
        return None


def facts(module):
    """The module's contents: enums, exceptions, constants, NumPy layouts, signatures."""
    out = {}
    for name, value in public(module).items():
        if isinstance(value, type) and hasattr(value, "__members__"):
            members = {k: int(v) for k, v in value.__members__.items()}
            out[f"enum {name}"] = {"members": members, "len": len(value), "base": value.__mro__[1].__name__}
        elif isinstance(value, type) and issubclass(value, BaseException):
            # A name may be an alias of a class with another name.
            out[f"exception {name}"] = {"class": value.__name__, "bases": [b.__name__ for b in value.__mro__[1:]]}
        elif name.endswith("_dtype"):
            out[f"dtype {name}"] = {
                "descr": repr(value.fields and {k: (str(v[0]), v[1]) for k, v in value.fields.items()}),
                "itemsize": value.itemsize,
            }
        elif isinstance(value, (int, str)):
            out[f"constant {name}"] = describe(value)
        elif callable(value) and not isinstance(value, type) and getattr(value, "__module__", "") != "typing":
            out[f"signature {name}"] = parameters(value)
    return out


class Script:
    """Passed to the scripts of a module's cases: makes calls and records their outcomes."""

    def __init__(self, emit):
        self.emit = emit
        self.counts = {}

    def __call__(self, label, function, *args, volatile=False):
        """Calls `function(*args)` and returns its value, None if it raises.

        `volatile` values differ from call to call (a temperature, an address): only their types are compared.
        """
        self.counts[label] = self.counts.get(label, 0) + 1
        label = label if self.counts[label] == 1 else f"{label} #{self.counts[label]}"
        self.emit(["begin", label])
        value = None
        try:
            value = function(*args)
            out = {"value": describe(value)}
        except Exception as error:
            out = {"raises": describe_exception(error)}
        out["function"] = getattr(function, "__name__", "")
        if volatile:
            out["volatile"] = True
        self.emit(["end", label, out])
        return value


def run_scripts(module, cases):
    """{script: {label: outcome}}, with a child per script; a script that yields has a child per (label, function)."""
    out = {}
    for script in getattr(cases, "TASKS", ()):
        tasks = [
            (label, lambda function=function, name=name, volatile=volatile: {
                **outcome(function), "function": name, **({"volatile": True} if volatile else {})
            })
            for label, name, function, volatile in script(module)
        ]  # fmt: skip
        out[script.__name__] = in_children(tasks)
    for script in getattr(cases, "SCRIPTS", ()):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            status = 1
            try:
                with os.fdopen(write, "w") as file:

                    def emit(entry, file=file):
                        file.write(json.dumps(entry) + "\n")
                        file.flush()

                    script(module, Script(emit))
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(write)
        lines, hung = read_lines(read, 1 << 30)
        if hung:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        entries = [json.loads(line) for line in lines]
        results = {e[1]: e[2] for e in entries if e[0] == "end"}
        for entry in entries:
            if entry[0] == "begin" and entry[1] not in results:
                results[entry[1]] = {"hangs": True} if hung else {"crash": f"signal {os.WTERMSIG(status)}"}
        if not hung and os.WIFEXITED(status) and os.WEXITSTATUS(status):
            results["the script itself"] = {"crash": "an exception, see the output"}
        out[script.__name__] = results
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", required=True, help="nvml, cufile, ... : a file of cases/")
    parser.add_argument(
        "--recorder", type=pathlib.Path, help="folder of the recording library; without it the real one is used"
    )
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    if options.recorder and str(options.recorder) not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        # The loader reads the variable when a process starts.
        path = ":".join(filter(None, (str(options.recorder), os.environ.get("LD_LIBRARY_PATH"))))
        os.execve(sys.executable, [sys.executable, *sys.argv], dict(os.environ, LD_LIBRARY_PATH=path))
    cases = importlib.import_module(f"cases.{options.module}")
    module = importlib.import_module(cases.MODULE)
    if options.recorder and (options.recorder / "arguments.json").exists():
        SIZES.update(json.loads((options.recorder / "arguments.json").read_text())["sizes"])
    record = {
        "module": cases.MODULE,
        "file": getattr(module, "__file__", None),
        "python": platform.python_version(),
        "recorder": bool(options.recorder),
        "facts": facts(module),
        "attributes": in_children(attribute_tasks(module)),
    }
    if options.recorder:
        with tempfile.NamedTemporaryFile(suffix=".log") as log:
            os.environ["RECORDER_LOG"] = log.name
            record["functions"] = in_children(function_tasks(module, cases, options.recorder, log.name))
    else:
        record["scripts"] = run_scripts(module, cases)
    options.out.write_text(json.dumps(record, indent=1))
    counts = {k: len(v) for k, v in record.items() if isinstance(v, dict)}
    print(f"{cases.MODULE}: {counts}, {record['file']}")


if __name__ == "__main__":
    main()
