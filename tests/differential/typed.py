"""Ordinary arguments for functions whose parameters have types: handles, structs, lists, enums, attributes, options.

The types come from ``arguments.json``, which recorder.py writes beside the recording library.
"""

import contextlib
import ctypes
import functools
import json

# Selectors of the values beside them: one member each whose value is an ordinary number.
SELECTED = {
    "CUjit_option": ("CU_JIT_MAX_REGISTERS", "CU_JIT_OPTIMIZATION_LEVEL"),
    "CUlibraryOption": ("CU_LIBRARY_BINARY_IS_PRESERVED", "CU_LIBRARY_BINARY_IS_PRESERVED"),
    "cudaJitOption": ("cudaJitMaxRegisters", "cudaJitOptimizationLevel"),
    "cudaLibraryOption": ("cudaLibraryBinaryIsPreserved", "cudaLibraryBinaryIsPreserved"),
}
ELEMENTS = 2  # Of every list.


def data_attributes(kind):
    """Names of the attributes of a class that hold data."""
    return sorted(
        n
        for n in dir(kind)
        if not n.startswith("_") and n not in ("ptr", "from_buffer", "from_data", "from_ptr", "getPtr", "name", "value")
        and not callable(getattr(kind, n, None))
    )  # fmt: skip


def filled(kind, depth=2):
    """A struct with a different small number in every member that takes one."""
    it = kind()
    fill(it, depth, 1)
    return it


def fill(it, depth, number):
    for name in data_attributes(type(it)):
        try:
            value = getattr(it, name)
        except Exception:
            continue  # An enum member without a value of its own.
        number += 1
        if depth and type(value).__module__.startswith("cuda.bindings") and not hasattr(type(value), "__members__"):
            if data_attributes(type(value)):
                fill(value, depth - 1, number)
                continue
            number_of = number
            with contextlib.suppress(Exception):
                setattr(it, name, type(value)(number_of))
            continue
        if type(value) in (int, float):
            with contextlib.suppress(Exception):
                setattr(it, name, number if type(value) is int else number + 0.5)


class Typed:
    """Makes the arguments of a function from the description's types; tables of a module's cases take precedence."""

    def __init__(self, module, cases, folder):
        self.module = module
        self.table = getattr(cases, "ARGUMENTS", {})
        described = json.loads((folder / "arguments.json").read_text())
        self.functions, self.sizes = described["functions"], described["sizes"]

    def of(self, function, names):
        """One argument per parameter."""
        kinds = self.functions.get(function)
        if function == "sizeof":
            kinds = [{"kind": "class"}]
        if kinds is None or len(kinds) != len(names):
            raise ValueError(f"{function} has other parameters than described: {names}")
        counts = {k["count"] for k in kinds if k["kind"] in ("list", "option_values") and k.get("count") is not None}
        out = []
        for position, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            entry = self.table.get((function, name), self.table.get(("*", name)))
            if entry is not None or (function, name) in self.table:
                out.append(entry(self.module) if callable(entry) else entry)
            elif position in counts:
                out.append(ELEMENTS)
            else:
                out.append(self.one(kind, position + 1))
        return out

    def one(self, kind, number):
        """An argument of a kind; `number` distinguishes it from others."""
        m = self.module
        match kind["kind"]:
            case "int":
                return number
            case "float":
                return number + 0.5
            case "enum":
                members = list(getattr(m, kind["name"]))
                return members[min(number, len(members) - 1)]
            case "handle" | "callback":
                return getattr(m, kind["class"])(16 * number)
            case "struct":
                return filled(getattr(m, kind["class"]))
            case "list":
                of = kind["of"]
                if of["kind"] == "enum" and of["name"] in SELECTED:
                    return [getattr(getattr(m, of["name"]), n) for n in SELECTED[of["name"]]]
                return [self.one(of, number + i) for i in range(ELEMENTS)]
            case "option_values":
                return list(range(number, number + ELEMENTS))
            case "c_string":
                return b"text"
            case "bytes_out":
                return bytearray(64)
            case "attribute":
                return 1
            case "void_ptr":
                return 4096 + number
            case "kernel_params" | "void_ptr_ptr":
                return 0
        raise ValueError(f"no argument of kind {kind}")

    def others(self, kind):
        """{label: function that makes an argument}: further valid and invalid arguments for a kind."""
        m = self.module
        of = getattr(m, kind.get("class") or kind.get("name") or "", None)
        out = {
            "ctypes int": lambda: ctypes.c_int(5),
            "bytearray": lambda: bytearray(b"abcdefgh"),
            "0": lambda: 0,
            "1": lambda: 1,
            "99": lambda: 99,
        }
        match kind["kind"]:
            case "handle":
                out["same class"] = lambda: of(5)
                out["null of the class"] = lambda: of()
                out["another class"] = lambda: m.CUlinkState(5) if hasattr(m, "CUlinkState") else m.cudaGraphNode_t(5)
            case "enum":
                out["first"] = lambda: next(iter(of))
                out["last"] = lambda: list(of)[-1]
                out["of another enum"] = lambda: next(
                    iter(m.CUmemorytype if hasattr(m, "CUmemorytype") else m.cudaMemcpyKind)
                )
            case "struct":
                out["empty"] = lambda: of()
                out["list of it"] = lambda: [of()]
            case "list":
                one = functools.partial(self.one, kind["of"], 3)
                out["tuple of one"] = lambda: (one(),)
                out["three"] = lambda: [one(), one(), one()]
                out["mixed"] = lambda: [one(), "x"]
                out["list of None"] = lambda: [None, None]
                out["[0, 1]"] = lambda: [0, 1]
                out["not a list"] = one
            case "void_ptr" | "attribute":
                out["bytes of 64"] = lambda: b"abcdefgh" * 8
                out["ctypes pointer"] = lambda: ctypes.cast(0x1000, ctypes.c_void_p)
            case "c_string":
                out["empty"] = lambda: b""
        return out
