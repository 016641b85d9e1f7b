"""Ordinary arguments for functions whose parameters have types: handles, structs, lists, enums, attributes, options.

The types come from ``arguments.json``, which recorder.py writes beside the recording library.
"""

import array
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
# Kinds of lists, whose lengths other parameters have.
COUNTED = ("list", "option_values", "addresses", "buffer_structs")


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


KEPT = []  # Memory whose addresses are arguments.


def address_of(size):
    """The address of zeroed memory."""
    KEPT.append(ctypes.create_string_buffer(size))
    return ctypes.addressof(KEPT[-1])


def holds_several(kind):
    """Whether one object of a class can hold several structs."""
    return hasattr(kind, "__getitem__")


def several(kind, count):
    """An object with `count` filled structs, or with one where the class holds one."""
    if not holds_several(kind):
        return filled(kind)
    it = kind(count)
    for i in range(count):
        fill(it[i], 2, 5 * i)
    return it


class Typed:
    """Makes the arguments of a function from the description's types; tables of a module's cases take precedence."""

    def __init__(self, module, cases, folder):
        self.module = module
        self.table = getattr(cases, "ARGUMENTS", {})
        described = json.loads((folder / "arguments.json").read_text())
        self.functions, self.sizes = described["functions"], described["sizes"]
        self.second = "._v2." in module.__name__

    def of(self, function, names):
        """One argument per parameter."""
        kinds = self.functions.get(function)
        if function == "sizeof":
            kinds = [{"kind": "class"}]
        if kinds is None and self.second:
            # An alias of the module: its parameters are handles and numbers.
            kinds = [{"kind": "address"}] * len(names)
        if kinds is None or len(kinds) != len(names):
            raise ValueError(f"{function} has other parameters than described: {names}")
        counts = {k["count"] for k in kinds if k["kind"] in COUNTED and k.get("count") is not None}
        out = []
        for position, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            entry = self.table.get((function, name), self.table.get(("*", name)))
            if entry is not None or (function, name) in self.table:
                out.append(entry(self.module) if callable(entry) else entry)
            elif position in counts:
                out.append(self.elements(kinds, position))
            else:
                out.append(self.one(kind, position + 1))
        return out

    def structs(self):
        """The classes with data members."""
        return [c for c in map(functools.partial(getattr, self.module), self.sizes) if data_attributes(c)]

    def address(self, kind, count):
        """The address of `count` filled structs."""
        one = filled(kind)
        KEPT.append(ctypes.create_string_buffer(ctypes.string_at(one.ptr, self.sizes[kind.__name__]) * count))
        return ctypes.addressof(KEPT[-1])

    def elements(self, kinds, position):
        """The value of the parameter at `position`, which is the length of other parameters."""
        counted = (k for k in kinds if k["kind"] == "buffer_structs" and k["count"] == position)
        return ELEMENTS if all(holds_several(getattr(self.module, k["class"])) for k in counted) else 1

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
            # Functions that raise: handles are numbers, and one object holds several structs.
            case "address" | "handle_by_pointer":
                return 16 * number
            case "address_of":
                return address_of(kind["size"])
            case "buffer_struct":
                return filled(getattr(m, kind["class"]))
            case "buffer_structs":
                return several(getattr(m, kind["class"]), ELEMENTS)
            case "addresses":
                return [16 * (number + i) for i in range(ELEMENTS)]
            case "text":
                return b"text"
            case "str":
                return "text"
            case "memory" | "writable":
                return bytearray(b"abcdefgh" * 8)
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
            case "c_string" | "text" | "str":
                out["empty"] = lambda: b""
            case "buffer_struct" | "buffer_structs":
                out["empty"] = lambda: of()
                out["address"] = lambda: self.address(of, ELEMENTS)
                out["another class"] = lambda: next(c for c in self.structs() if c is not of)()
                out["list of it"] = lambda: [of()]
            case "addresses":
                out["tuple of one"] = lambda: (16,)
                out["three"] = lambda: [16, 32, 48]
                out["mixed"] = lambda: [16, "x"]
                out["list of None"] = lambda: [None, None]
                out["array"] = lambda: array.array("Q", (16, 32))
                out["address"] = lambda: address_of(16)
            case "memory" | "writable":
                out["bytes of 64"] = lambda: b"abcdefgh" * 8
                out["ctypes array"] = lambda: (ctypes.c_int * 16)(*range(16))
                out["view"] = lambda: memoryview(bytearray(64))
                out["address"] = lambda: address_of(64)
        return out
