"""Builds a recording library: it exports every function of a CUDA library and records its calls.

    cargo run -p cupyrite-codegen -- --dump > ir.json
    python tests/differential/recorder.py ir.json nvml FOLDER      # FOLDER/libnvidia-ml.so.1
    python tests/differential/recorder.py ir.json driver_v2 FOLDER # the driver, and arguments for cuda.bindings._v2.driver

The library is C, generated from the same description as the bindings and compiled with ``cc`` (or ``$CC``). Environment
variables, read at each call, choose its behaviour:

    RECORDER_LOG     the file that receives a line per call: a JSON object {"f": symbol, "a": [argument, ...]}
    RECORDER_MODE    ok       return success and zero in every output (the default)
                     fill     fill every output with small numbers and texts, return success
                     two:N    as fill, but a call without room for an array gets the size, 2, and the status N
                     error:N  return N and touch nothing

It allows comparing two bindings on a machine that has neither the library nor the hardware.
"""

import json
import os
import pathlib
import subprocess
import sys

SONAMES = {
    "driver": "libcuda.so.1",
    "nvrtc": "libnvrtc.so.13",
    "nvjitlink": "libnvJitLink.so.13",
    "nvvm": "libnvvm.so.4",
    "nvfatbin": "libnvfatbin.so.13",
    "nvml": "libnvidia-ml.so.1",
    "cufile": "libcufile.so.0",
    "cudla": "libcudla.so.1",
}

STATIC = ("runtime",)

BUILTINS = {
    "char": ("char", 1), "s_char": ("signed char", 1), "u_char": ("unsigned char", 1), "short": ("short", 2),
    "u_short": ("unsigned short", 2), "int": ("int", 4), "u_int": ("unsigned int", 4), "long": ("long", 8),
    "u_long": ("unsigned long", 8), "long_long": ("long long", 8), "u_long_long": ("unsigned long long", 8),
    "size_t": ("size_t", 8), "float": ("float", 4), "double": ("double", 8), "bool": ("_Bool", 1),
}  # fmt: skip

# Words in the names of count parameters.
COUNT_WORDS = ("count", "num", "size", "length", "len", "nr")
# Parameters with such a word that are not counts.
NO_COUNTS = {
    ("cudlaMemRegister", "size"),
    ("nvmlDeviceGetEncoderStats", "sessionCount"),
    ("nvmlVgpuInstanceGetEncoderStats", "sessionCount"),
}

# Arrays of a tensor map whose length depends on its rank, and the difference to the rank.
RANKED = ("globalDim", "globalStrides", "boxDim", "elementStrides", "pixelBoxLowerCorner", "pixelBoxUpperCorner")
LESS = {"globalStrides": 1, "pixelBoxLowerCorner": 2, "pixelBoxUpperCorner": 2}

PREAMBLE = r"""
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef unsigned long long word;

/* A member of a struct: i integer, f float, c text, p pointer. */
struct field { unsigned offset, size, count; char kind; };

/* v value, f float, h handle or untyped pointer, t text, i struct or array that C reads, o one that C writes,
   n number of elements by address (m: C changes it), s a text that C gives out, l a list that C gives out, a untyped memory that C
   writes, b untyped memory that C reads, k parameters of a kernel. `count`: the parameter with the number of elements,
   or -1; `less`: how many fewer there are. */
struct param { char kind; signed char count, less; unsigned size, fields_n; const struct field *fields; };

static int can_read(word address, void *to, size_t size) {
    struct iovec here = {to, size}, there = {(void *)address, size};
    return address > 4096 && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

static void put(word address, const void *from, size_t size) {
    struct iovec here = {(void *)from, size}, there = {(void *)address, size};
    if (address > 4096) process_vm_writev(getpid(), &here, 1, &there, 1, 0);
}

struct line { char text[16384]; size_t used; };

static void add(struct line *line, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    int n = vsnprintf(line->text + line->used, sizeof line->text - line->used, format, rest);
    va_end(rest);
    if (n > 0) line->used += (size_t)n;
    if (line->used >= sizeof line->text) line->used = sizeof line->text - 1;
}

/* Bytes as hexadecimal digits; of many, the first ones and a hash of all. */
static void add_bytes(struct line *line, const unsigned char *bytes, size_t size) {
    word hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
    size_t shown = size > 1024 ? 1024 : size;
    for (size_t i = 0; i < shown; i++) add(line, "%02x", bytes[i]);
    if (shown < size) add(line, "+%zu:%016llx", size - shown, hash);
}

static void add_structs(struct line *line, const char *what, word address, const struct param *p, word count) {
    size_t size = p->size * count;
    unsigned char bytes[size ? size : 1];
    if (!can_read(address, bytes, size)) { add(line, "\"%#llx\"", address); return; }
    for (word k = 0; k < count; k++)
        for (unsigned i = 0; i < p->fields_n; i++) {
            const struct field *f = &p->fields[i];
            unsigned char *at = bytes + k * p->size + f->offset;
            word value;
            if (f->kind != 'p') continue;
            memcpy(&value, at, 8);
            /* Pointers differ from run to run; a small number is a forged handle. */
            if (value >= 4096) memset(at, 0xee, 8);
        }
    add(line, "\"%s ", what);
    add_bytes(line, bytes, size);
    add(line, "\"");
}

/* The parameters of a kernel; RECORDER_KERNEL says how many bytes each has ("4,8,8"). */
static void add_kernel(struct line *line, word address) {
    const char *sizes = getenv("RECORDER_KERNEL");
    word one;
    if (!sizes || !can_read(address, &one, 8)) { add(line, can_read(address, &one, 1) ? "\"address\"" : "\"%#llx\"", address); return; }
    add(line, "\"kernel");
    for (int i = 0; *sizes; i++) {
        unsigned char bytes[256] = {0};
        size_t size = strtoul(sizes, (char **)&sizes, 10);
        if (*sizes == ',') sizes++;
        if (size > sizeof bytes || !can_read(address + 8 * i, &one, 8) || !can_read(one, bytes, size)) { add(line, " ?"); continue; }
        add(line, " ");
        add_bytes(line, bytes, size);
    }
    add(line, "\"");
}

static word elements(const struct param *p, const struct param *all, const word *words) {
    if (p->count < 0) return 1;
    const struct param *c = &all[(int)p->count];
    word n = words[(int)p->count];
    if (c->kind == 'n' || c->kind == 'm') {
        word size = 0;
        n = can_read(n, &size, c->size) ? size : 0;
    } else if (c->size < 8) n &= (1ull << 8 * c->size) - 1;
    n = n > (word)p->less ? n - p->less : 0;
    return n > 64 ? 64 : n;
}

static void fill(word address, const struct param *p, int zero) {
    unsigned number = 0;
    for (unsigned i = 0; i < p->fields_n; i++) {
        const struct field *f = &p->fields[i];
        for (unsigned k = 0; k < f->count; k++) {
            word at = address + f->offset + (word)k * f->size;
            word value = zero ? 0 : number++ % 5 + 1;
            double real = zero ? 0.0 : (double)value + 0.5;
            float small = (float)real;
            switch (f->kind) {
            case 'i': put(at, &value, f->size); break;
            case 'f': if (f->size == 4) put(at, &small, 4); else put(at, &real, 8); break;
            case 'c': { char text[16] = "a text"; unsigned n = f->size < 7 ? f->size : 7; text[zero ? 0 : n - 1] = 0; put(at, text, n); } break;
            default: break;
            }
        }
    }
}

static long hit(const char *name, int n, const struct param *params, const word *words) {
    const char *mode = getenv("RECORDER_MODE"), *log = getenv("RECORDER_LOG");
    if (!mode) mode = "ok";
    if (log) {
        struct line line = {.used = 0};
        add(&line, "{\"f\": \"%s\", \"a\": [", name);
        for (int i = 0; i < n; i++) {
            const struct param *p = &params[i];
            word w = words[i];
            char first;
            if (i) add(&line, ", ");
            switch (p->kind) {
            case 'v': add(&line, "\"%#llx\"", p->size < 8 ? w & ((1ull << 8 * p->size) - 1) : w); break;
            case 'f': { double real; memcpy(&real, &w, 8); add(&line, "\"%g\"", real); } break;
            case 'h': if (can_read(w, &first, 1)) add(&line, "\"address\""); else add(&line, "\"%#llx\"", w); break;
            case 'b': {
                unsigned char bytes[4];
                if (!can_read(w, bytes, 4)) { add(&line, "\"%#llx\"", w); break; }
                add(&line, "\"memory ");
                add_bytes(&line, bytes, 4);
                add(&line, "\"");
            } break;
            case 'k': add_kernel(&line, w); break;
            case 't': {
                if (!can_read(w, &first, 1)) { add(&line, "\"%#llx\"", w); break; }
                const unsigned char *text = (const unsigned char *)w;
                size_t length = strnlen((const char *)text, 200);
                add(&line, "\"text ");
                add_bytes(&line, text, length);
                add(&line, "\"");
            } break;
            case 'i': case 'n': case 'm': add_structs(&line, p->kind == 'i' ? "in" : "count", w, p, p->kind == 'i' ? elements(p, params, words) : 1); break;
            default:
                /* The initial value of a scalar output does not matter; a struct contains its version word. */
                if (w == 0) add(&line, "\"0\"");
                else if (p->size > 8) add_structs(&line, "out", w, p, 1);
                else add(&line, "\"out\"");
            }
        }
        add(&line, "]}\n");
        FILE *file = fopen(log, "a");
        if (file) { fwrite(line.text, 1, line.used, file); fclose(file); }
    }
    if (strncmp(mode, "error:", 6) == 0) return strtol(mode + 6, NULL, 0);
    int zero = strcmp(mode, "ok") == 0;
    long status = 0;
    for (int i = 0; i < n; i++) {
        const struct param *p = &params[i];
        static unsigned char storage[1 << 14];
        static const char *text = "a text";
        word list = (word)storage;
        switch (p->kind) {
        case 's': put(words[i], &text, 8); continue;
        case 'l': put(words[i], &list, 8); continue;
        case 'a': if (!zero) put(words[i], "\1", 1); continue;
        case 'o': break;
        default: continue;
        }
        if (p->count >= 0 && params[(int)p->count].kind == 'n' && words[i] == 0) {
            word two = zero ? 0 : 2;
            put(words[(int)p->count], &two, params[(int)p->count].size);
            if (strncmp(mode, "two:", 4) == 0) status = strtol(mode + 4, NULL, 0);
            continue;
        }
        word many = elements(p, params, words);
        if (p->fields_n == 1 && p->fields[0].kind == 'c') {          /* a text in a buffer */
            word room = p->count < 0 ? 7 : many;
            char text[] = "a text";
            if (zero) text[0] = 0;
            else if (room && room < 7) text[room - 1] = 0;
            if (room) put(words[i], text, room < 7 ? room : 7);
            continue;
        }
        for (word k = 0; k < many; k++) fill(words[i] + k * p->size, p, zero);
    }
    for (int i = 0; i < n && !zero; i++) {
        word five = 5;
        if (params[i].kind == 'm') put(words[i], &five, params[i].size);   /* there are more than asked for */
    }
    return status;
}

static word bits(double value) { word w; memcpy(&w, &value, 8); return w; }
"""

# The driver resolves its own functions; so does the recorder, in the requested version.
GET_PROC = r"""
struct entry { const char *base; int version, mode; void *address; };
extern const struct entry entries[];
static int get_proc(const char *name, void **out, int version, word flags, int *status) {
    void *best = NULL;
    int best_version = -1, best_mode = -1, mode = (flags & 2) != 0;
    for (const struct entry *e = entries; e->base; e++)
        if (strcmp(e->base, name) == 0 && e->version <= version && e->mode <= mode
            && (e->version > best_version || (e->version == best_version && e->mode > best_mode))) {
            best = e->address; best_version = e->version; best_mode = e->mode;
        }
    *out = best;
    if (status) *status = best ? 0 : 1;
    return best ? 0 : 500;
}
int cuGetProcAddress(const char *name, void **out, int version, word flags) { return get_proc(name, out, version, flags, NULL); }
int cuGetProcAddress_v2(const char *name, void **out, int version, word flags, int *status) { return get_proc(name, out, version, flags, status); }
int cuDriverGetVersion(int *version) { if (version) *version = 13050; return 0; }
"""
OWN = {"cuGetProcAddress", "cuGetProcAddress_v2", "cuDriverGetVersion"}


def roles(library):
    """{symbol: {parameter's index: (role, index of its count or -1)}} of the functions that return tuples.

    Roles: in, out, count, text (a text that C returns), list (an array that C returns), untyped (memory of any type
    that C writes), word (memory of any type that C reads), kernel (a kernel's parameters), address (an address passed
    unchanged).
    """
    out = {}
    for function in library["functions"]:
        python = function["python"]
        if not python:
            continue
        found, by_argument, by_result = {}, {}, {}
        for i, param in enumerate(function["params"]):
            role = param["role"]
            if "arg" in role:
                by_argument.setdefault(role["arg"], i)
            if "result" in role:
                by_result.setdefault(role["result"], i)
        for i, param in enumerate(function["params"]):
            role = param["role"]
            if role["role"] == "out":
                kind = python["results"][role["result"]]["kind"]
                length = kind.get("len")
                count = -1
                if isinstance(length, dict) and length["len"] == "arg":
                    count = by_argument[length["arg"]]
                what = {"c_string": "text", "attribute": "untyped", "attributes": "address"}.get(kind["kind"], "out")
                if isinstance(length, dict) and length["len"] == "result":
                    what = "list"
                found[i] = what, count
            elif role["role"] == "in_out":
                # The count of an array that C fills, or a number that C changes.
                counted = any(r["kind"].get("len") == {"len": "arg", "arg": role["arg"]} for r in python["results"])
                found[i] = ("count" if counted else "in"), -1
            elif role["role"] == "in":
                kind = python["args"][role["arg"]]["kind"]
                count = (
                    by_argument.get(kind["count"], -1) if kind["kind"] == "list" and kind["count"] is not None else -1
                )
                if kind["kind"] == "option_values":
                    count = by_argument[kind["count"]]
                if kind["kind"] in ("list", "struct", "option_values") or kind.get("by_pointer"):
                    found[i] = "in", count
                elif kind["kind"] in ("void_ptr", "bytes_out", "void_ptr_ptr"):
                    found[i] = "address", -1
                elif kind["kind"] in ("attribute", "kernel_params"):
                    found[i] = {"attribute": "word", "kernel_params": "kernel"}[kind["kind"]], -1
        names = [p["name"] for p in function["params"]]
        if "tensorRank" in names:
            found.update({names.index(n): ("in", names.index("tensorRank")) for n in RANKED if n in names})
        for symbol in (function["symbol"], function["per_thread_symbol"]):
            if symbol:
                out[symbol] = found
    return out


class Description:
    """One library of the description."""

    def __init__(self, library):
        self.library = library
        self.typedefs = {t["name"]: t["ty"] for t in library["typedefs"]}
        self.records = {r["name"]: r for r in library["records"]}
        self.enums = {e["name"]: e for e in library["enums"]}
        self.foreign = {f["name"]: f["ty"] for f in library.get("uses", [])}
        self.tables = {}
        # For functions that return tuples the description relates counts to arrays.
        self.roles = roles(library) if library["python"]["style"] == "tuple" else None

    def resolve(self, ty):
        """The type without typedefs: its kind is void, builtin, pointer, array, function, record, enum or opaque."""
        while ty["kind"] == "named":
            name = ty["name"]
            if name in self.typedefs:
                ty = self.typedefs[name]
            elif name in self.foreign:
                ty = self.foreign[name]
            elif name in self.records:
                return {"kind": "record", "record": self.records[name]}
            elif name in self.enums:
                return {"kind": "enum"}
            else:
                return {"kind": "opaque"}
        return ty

    def size(self, ty):
        """Bytes of a type; 0 if it has no size."""
        ty = self.resolve(ty)
        match ty["kind"]:
            case "builtin":
                return BUILTINS[ty["builtin"]][1]
            case "enum":
                return 4
            case "pointer":
                return 8
            case "record":
                return ty["record"]["size"]
            case "array":
                return ty["len"] * self.size(ty["of"])
        return 0

    def fields(self, ty, offset=0):
        """The scalars to fill in a type: (offset, size, count, kind), including pointers."""
        ty = self.resolve(ty)
        match ty["kind"]:
            case "builtin":
                name, size = BUILTINS[ty["builtin"]]
                kind = "f" if name in ("float", "double") else "i"
                return [(offset, size, 1, kind)]
            case "enum":
                return [(offset, 4, 1, "i")]
            case "pointer":
                return [(offset, 8, 1, "p")]
            case "array":
                inner = self.resolve(ty["of"])
                if inner == {"kind": "builtin", "builtin": "char"}:
                    return [(offset, ty["len"], 1, "c")]
                one = self.fields(ty["of"])
                if len(one) == 1 and one[0][2] == 1 and one[0][3] in "if":
                    return [(offset, one[0][1], ty["len"], one[0][3])]
                step = self.size(ty["of"])
                return [(offset + k * step + o, s, c, kind) for k in range(ty["len"]) for o, s, c, kind in one]
            case "record":
                fields = ty["record"]["fields"][:1] if ty["record"]["union"] else ty["record"]["fields"]
                found = []
                for field in fields:
                    # The caller sets the version word, and a bit-field shares its storage.
                    if (field["name"] == "version" and field["offset"] == 0) or field["bits"]:
                        continue
                    found += self.fields(field["ty"], offset + field["offset"])
                return found
        return []

    def table(self, ty):
        """The C name and length of the table of a type's fields."""
        fields = self.fields(ty)
        if self.resolve(ty)["kind"] == "pointer":
            fields = [(0, 8, 1, "i")]  # A returned handle is a number in Python.
        key = tuple(fields)
        if key not in self.tables:
            self.tables[key] = f"fields_{len(self.tables)}"
        return self.tables[key], len(fields)

    def c_type(self, ty):
        """The C type of a parameter or result in the recorder."""
        ty = self.resolve(ty)
        match ty["kind"]:
            case "void":
                return "void"
            case "builtin":
                return BUILTINS[ty["builtin"]][0]
            case "enum":
                return "int"
            case "record":
                return f"struct by_value_{ty['record']['size']}_{ty['record']['align']}"
        return "void *"

    def param(self, symbol, index, params):
        """(kind, index of the count, size, type with the fields or None) of a parameter."""
        if self.roles is not None:
            return self.described(self.roles.get(symbol, {}).get(index, (None, -1)), params[index][1])
        _name, declared = params[index]
        ty = self.resolve(declared)
        if ty["kind"] == "builtin" and ty["builtin"] in ("float", "double"):
            return "f", -1, 8, None
        if ty["kind"] in ("builtin", "enum"):
            return "v", -1, self.size(ty), None
        if ty["kind"] == "record":
            return "v", -1, 8, None
        if ty["kind"] != "pointer":
            return "h", -1, 8, None
        to = self.resolve(ty["to"])
        size = self.size(to)
        if to == {"kind": "builtin", "builtin": "char"} and ty["is_const"]:
            return "t", -1, 8, None
        if size == 0:
            return "h", -1, 8, None
        if ty["is_const"]:
            return "i", -1, size, to
        if self.is_count(index, params) and self.array_of(index, params) >= 0:
            return "n", -1, size, None
        count = self.count_of(index, params)
        if to == {"kind": "builtin", "builtin": "char"}:
            to = {"kind": "array", "of": to, "len": 1}
        return "o", count, size, to

    def described(self, role, declared):
        """The result of `param` for a parameter with a role in the description: (role, index of the count)."""
        what, count = role
        ty = self.resolve(declared)
        if ty["kind"] == "builtin" and ty["builtin"] in ("float", "double"):
            return "f", -1, 8, None
        if ty["kind"] in ("builtin", "enum"):
            return "v", -1, self.size(ty), None
        if ty["kind"] == "record":
            return "v", -1, 8, None
        if ty["kind"] != "pointer":
            return "h", -1, 8, None
        to = self.resolve(ty["to"])
        size = self.size(to)
        char = {"kind": "builtin", "builtin": "char"}
        if what in ("text", "list"):
            return what[0] if what == "list" else "s", -1, 8, None
        if what in ("untyped", "word", "kernel"):
            return {"untyped": "a", "word": "b", "kernel": "k"}[what], -1, 8, None
        if size == 0 or what == "address":
            return "h", -1, 8, None
        if to == char and ty["is_const"]:
            return "t", -1, 8, None
        if what == "count":
            return "m", count, size, None
        if what in ("in", None):
            return ("i", count, size, to) if what == "in" or ty["is_const"] else ("h", -1, 8, None)
        if to == char:
            to = {"kind": "array", "of": to, "len": 1}
        return "o", count, size, to

    def is_count(self, index, params):
        """Whether a parameter, by value or by address, holds a number of elements."""
        name, declared = params[index]
        ty = self.resolve(declared)
        if ty["kind"] == "pointer":
            if ty["is_const"]:
                return False
            ty = self.resolve(ty["to"])
        return ty.get("builtin") in ("int", "u_int", "size_t", "u_long") and any(w in name.lower() for w in COUNT_WORDS)

    def is_array(self, index, params, count):
        """Whether a parameter may be an array that C writes, counted by a parameter called `count`."""
        if not 0 <= index < len(params):
            return False
        ty = self.resolve(params[index][1])
        if ty["kind"] != "pointer" or ty["is_const"] or self.size(ty["to"]) == 0:
            return False
        # The "size" of a struct is in bytes.
        return self.resolve(ty["to"])["kind"] != "record" or "size" not in count.lower()

    def array_of(self, index, params):
        """The array whose elements a count counts, or -1."""
        name, declared = params[index]
        before, after = index - 1, index + 1
        by_address = self.resolve(declared)["kind"] == "pointer"
        if not by_address and before >= 0:
            # A character buffer precedes its size.
            ty = self.resolve(params[before][1])
            if ty["kind"] == "pointer" and self.resolve(ty["to"]) == {"kind": "builtin", "builtin": "char"}:
                return -1 if ty["is_const"] else before
        for near in (after, before):
            if self.is_array(near, params, name) and not self.is_count(near, params):
                return near
        return -1

    def count_of(self, index, params):
        """The parameter with the number of elements of an array, or -1."""
        for near in (index - 1, index + 1):
            if 0 <= near < len(params) and self.is_count(near, params) and self.array_of(near, params) == index:
                return near
        return -1

    def entry(self, entry):
        """The C of one exported function."""
        params = [
            ("value" if (entry["symbol"], name) in NO_COUNTS else name or f"a{i}", ty)
            for i, (name, ty) in enumerate(entry["params"])
        ]
        rows, words, declared = [], [], []
        for i, (_, ty) in enumerate(params):
            kind, count, size, of = self.param(entry["symbol"], i, params)
            table, length = self.table(of) if of else ("NULL", 0)
            less = LESS.get(params[i][0], 0) if count >= 0 else 0
            rows.append(f"{{'{kind}', {count}, {less}, {size}, {length}, {table}}}")
            declared.append(f"{self.c_type(ty)} a{i}")
            resolved = self.resolve(ty)["kind"]
            if kind == "f":
                words.append(f"bits(a{i})")
            elif resolved == "record":
                words.append(f"a{i}.w[0]")
            else:
                words.append(f"(word)a{i}")
        n = len(params)
        ret = self.resolve(entry["ret"])
        call = f'hit("{entry["symbol"]}", {n}, {"p" if n else "NULL"}, {"w" if n else "NULL"})'
        lines = [f"{self.ret_type(ret)} {entry['symbol']}({', '.join(declared) or 'void'}) {{"]
        if n:
            lines.append(f"    static const struct param p[] = {{{', '.join(rows)}}};")
            lines.append(f"    word w[] = {{{', '.join(words)}}};")
        match ret["kind"]:
            case "void":
                lines.append(f"    {call};")
            case "pointer":
                lines.append(f'    {call};\n    return "a text";')
            case _:
                lines.append(f"    return {call};")
        return "\n".join([*lines, "}"])

    def ret_type(self, ret):
        # A struct of two words (CUfileError_t) is returned in the same register as an integer.
        return {"pointer": "const char *", "record": "word"}.get(ret["kind"], self.c_type(ret))

    def source(self):
        """The whole C file."""
        entries = [e for e in self.library["entry_points"] if e["symbol"] not in OWN]
        # A symbol is listed once for each name that resolves to it.
        bodies = [self.entry(e) for e in {e["symbol"]: e for e in entries}.values()]
        structs = {}
        for entry in entries:
            for _, ty in entry["params"]:
                resolved = self.resolve(ty)
                if resolved["kind"] == "record":
                    size, align = resolved["record"]["size"], resolved["record"]["align"]
                    word = "unsigned" if size < 8 else "word"
                    structs[f"by_value_{size}_{align}"] = f"{word} w[{max(1, size // (4 if size < 8 else 8))}];"
        out = [PREAMBLE]
        out += [f"struct {name} {{ {members} }};" for name, members in sorted(structs.items())]
        out += [
            f"static const struct field {name}[] = {{{', '.join('{{{}, {}, {}, {!r}}}'.format(*f) for f in fields)}}};"
            for fields, name in self.tables.items()
            if fields
        ]
        out += [f"#define {name} NULL" for fields, name in self.tables.items() if not fields]
        out += bodies
        if self.library["name"] == "driver":
            modes = {"legacy": 0, "ptds": 1, "ptsz": 1}
            out.append(GET_PROC)
            out.append("const struct entry entries[] = {")
            out += [
                f'    {{"{e["base"]}", {e["abi_version"]}, {modes[e["stream"]]}, (void *){e["symbol"]}}},'
                for e in entries
            ]
            out.append('    {"cuDriverGetVersion", 2020, 0, (void *)cuDriverGetVersion},')
            out.append('    {"cuGetProcAddress", 11030, 0, (void *)cuGetProcAddress},')
            out.append('    {"cuGetProcAddress", 12000, 0, (void *)cuGetProcAddress_v2},')
            out.append("    {NULL, 0, 0, NULL}};")
        return "\n".join(out) + "\n"


def arguments(library):
    """The input of typed.py: {"functions": {function: [kind of each parameter]}, "sizes": {class: bytes}}."""
    python = library["python"]
    functions = {
        f["python"]["name"]: [a["kind"] for a in f["python"]["args"]] for f in library["functions"] if f["python"]
    }
    return {"functions": functions, "sizes": {c["name"]: c["size"] for c in python["classes"]}}


def build(description, name, folder):
    """Compiles the recorder for a library of the description (the JSON of ``--dump``); returns the file."""
    # The second module of a library has arguments of its own.
    second = next((lib for lib in description["second"] if lib["name"] == name), None)
    base = name.removesuffix("_v2") if second else name
    library = next((lib for lib in description["libraries"] if lib["name"] == base), None)
    if library is None:
        raise SystemExit(f"no library {name!r} in the description: {[lib['name'] for lib in description['libraries']]}")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    source, out = folder / f"{base}.c", folder / SONAMES[base]
    source.write_text(Description(library).source())
    compiler = os.environ.get("CC", "cc")
    command = [compiler, "-std=gnu11", "-O1", "-w", "-fPIC", "-shared", f"-Wl,-soname,{out.name}", "-o", out, source]
    subprocess.run(command, check=True)
    if library["python"]["style"] == "tuple":
        (folder / "arguments.json").write_text(json.dumps(arguments(second or library)))
    return out


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit("usage: recorder.py DESCRIPTION.json LIBRARY FOLDER")
    described = json.loads(pathlib.Path(sys.argv[1]).read_text())
    if sys.argv[2] in STATIC:
        # NVIDIA's package contains this library: only the arguments are generated, for whichever library each side has.
        pathlib.Path(sys.argv[3]).mkdir(parents=True, exist_ok=True)
        library = next(lib for lib in described["libraries"] if lib["name"] == sys.argv[2])
        (pathlib.Path(sys.argv[3]) / "arguments.json").write_text(json.dumps(arguments(library)))
    else:
        print(build(described, sys.argv[2], sys.argv[3]))
