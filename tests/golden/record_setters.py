"""Finds the attributes whose assignment crashes the process for a value of a wrong type, and lists them in
tests/golden/setters.json for bindings/types/test_setters.py.

    python tests/golden/record_setters.py [OUTPUT.json]

Works with any installed `cuda.bindings`; the list is empty for one that refuses every wrong value. Each assignment runs
in a forked process.
"""

import contextlib
import ctypes
import importlib
import json
import os
import pathlib
import signal
import sys

MODULES = ("driver", "runtime", "nvrtc", "nvml", "cufile", "cudla")


def kinds():
    """Values of a wrong type for nearly every attribute, by name."""
    values = {
        "None": lambda: None,
        "int": lambda: 1,
        "float": lambda: 1.5,
        "str": lambda: "a",
        "bytes": lambda: b"\x01" * 4,
        "bytearray": lambda: bytearray(4),
        "list": lambda: [None],
        "tuple": lambda: (object(),),
        "object": lambda: object(),
    }
    try:
        import numpy
    except ImportError:
        pass
    else:
        values["ndarray"] = lambda: numpy.zeros(4, numpy.uint8)
    return values


def attributes(cls):
    """Names of the assignable attributes."""
    for name in dir(cls):
        if not name.startswith("_") and type(getattr(cls, name)).__name__ in ("getset_descriptor", "property"):
            yield name


def build(cls, keep):
    """A new object of a struct class, or a view of zeroed memory; None if neither can be created."""
    try:
        return cls()
    except Exception:
        memory = ctypes.create_string_buffer(8192)
        keep.append(memory)
        try:
            return cls(_ptr=ctypes.addressof(memory))
        except Exception:
            return None


def struct_classes(module):
    """The struct classes of a module by name, including those of unnamed members."""
    pending = [getattr(module, name) for name in dir(module)]
    found = {}
    while pending:
        cls = pending.pop()
        is_class = isinstance(cls, type) and not issubclass(cls, (int, BaseException))
        if not is_class or cls.__name__ in found or cls.__module__ != module.__name__:
            continue
        if not (hasattr(cls, "getPtr") or hasattr(cls, "from_ptr")):
            continue
        found[cls.__name__] = cls
        keep = []
        value = build(cls, keep)
        for name in attributes(cls):
            with contextlib.suppress(Exception):
                pending.append(type(getattr(value, name)))
    return found


def ends_the_process(cls, name, value):
    """Whether `x.name = value` crashes the process."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(20)
            keep = []
            setattr(build(cls, keep), name, value())
        except BaseException:
            pass
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def main():
    table = {}
    for short in MODULES:
        try:
            module = importlib.import_module("cuda.bindings." + short)
        except ImportError:
            continue
        for class_name, cls in sorted(struct_classes(module).items()):
            if build(cls, []) is None:
                continue
            for name in attributes(cls):
                bad = [kind for kind, value in kinds().items() if ends_the_process(cls, name, value)]
                if bad:
                    table.setdefault(short, {}).setdefault(class_name, {})[name] = bad
    target = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).with_name("setters.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    cases = sum(len(bad) for m in table.values() for c in m.values() for bad in c.values())
    print(f"{target}: {cases} assignments that end the process")


if __name__ == "__main__":
    main()
