"""Matrix instructions of PTX with inputs for them, and digests of their results.

    python -m helpers.matrix_cases          # in tests/: prints the digests of this process's device as JSON

An instruction runs in the blocks of one grid, a warp each (four for `wgmma`). Its inputs are random. The blocks form groups with
numbers of similar magnitude, of different magnitude, of any exponent, with infinities and NaNs, subnormal or close to it, with
many zeros, and subnormal without accumulators. A digest covers the results of one group, bit for bit.
"""

import hashlib
import itertools
import json
import re

import numpy as np

from helpers.device import DeviceArray, Module, synchronize

# Blocks of a group, and groups.
BLOCKS = 16
GROUPS = 7
COUNT = BLOCKS * GROUPS

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8}
BITS |= {"s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
# Bits of the exponent and of the fraction. A register of tf32 is an f32 whose last 13 bits do not count.
FLOATS = {
    "f16": (5, 10),
    "bf16": (8, 7),
    "tf32": (8, 23),
    "f32": (8, 23),
    "f64": (11, 52),
    "e4m3": (4, 3),
    "e5m2": (5, 2),
}


class Random:
    """Numbers that are the same everywhere (splitmix64)."""

    def __init__(self, name):
        self.at = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")

    def words(self, *shape):
        n = int(np.prod(shape))
        z = np.uint64(self.at) + np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self.at = (self.at + n * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))).reshape(shape)

    def below(self, end, *shape):
        return (self.words(*shape) % np.uint64(end)).astype(np.int64)

    def between(self, low, high, *shape):
        return low + self.below(high - low + 1, *shape)

    def floats(self, kind, group, *shape):
        """The bits of numbers of a group."""
        exponent_bits, fraction_bits = FLOATS[kind]
        most = 2**exponent_bits - 1
        one = most // 2
        exponent = {
            0: lambda: self.between(one - 1, one + 1, *shape),
            1: lambda: self.between(one - min(one - 1, 14), one + min(one - 1, 14), *shape),
            2: lambda: self.below(most, *shape),
            3: lambda: self.below(most + 1, *shape),
            4: lambda: self.below(3, *shape),
            5: lambda: self.between(one - 6, one + 6, *shape) * self.below(2, *shape),
            6: lambda: self.below(1, *shape),
        }[group]().astype(np.uint64)
        fraction = self.words(*shape) % np.uint64(2**fraction_bits)
        if group == 5:
            fraction *= exponent != 0
        sign = self.words(*shape) % np.uint64(2)
        shift = np.uint64(fraction_bits)
        return (((sign << np.uint64(exponent_bits)) | exponent) << shift) | fraction

    def elements(self, kind, group, *shape):
        if kind in FLOATS:
            return self.floats(kind, group, *shape)
        return self.words(*shape) & np.uint64(2 ** BITS[kind] - 1)


def packed(elements, bits):
    """Elements in memory, from the last axis on, as words of 32 bits, or of 64 for elements of 64."""
    if bits == 64:
        return elements
    per_word = 32 // bits
    elements = elements.reshape(*elements.shape[:-1], -1, per_word)
    words = np.zeros(elements.shape[:-1], np.uint64)
    for n in range(per_word):
        words |= elements[..., n] << np.uint64(n * bits)
    return words.astype(np.uint32)


def digests(results):
    """A digest for each group of blocks."""
    groups = np.split(np.ascontiguousarray(results), GROUPS)
    return [hashlib.sha256(group.tobytes()).hexdigest()[:12] for group in groups]


def register_list(name, count):
    return "{" + ", ".join(f"%{name}{n}" for n in range(count)) + "}"


def register_type(kind):
    return kind if kind in ("f32", "f64") else "b32"


def sparse_metadata(name, kind, *shape):
    """Random words that say which elements of a sparse matrix are stored."""
    pairs = [0b0100, 0b1110] if kind == "tf32" else [i | j << 2 for i, j in itertools.combinations(range(4), 2)]
    chosen = Random(f"{name} metadata").below(len(pairs), *shape, 8)
    return packed(np.array(pairs, np.uint64)[chosen], 4)[..., 0]


class Mma:
    """`mma`: the operands are registers, random words of each lane."""

    def __init__(self, spelling, kinds, shape, *, sparse=None, target="sm_80", version="8.7"):
        self.spelling, self.kinds, self.sparse = spelling, kinds, sparse
        self.target, self.version = target, version
        m, n, k = shape
        stored = k // 2 if sparse is not None else k
        d, a, b, c = kinds
        areas = (m * n, m * stored, n * k, m * n)
        if shape == (8, 8, 4) and a == "f16":
            # Four products at once.
            areas = tuple(4 * area for area in areas)
        self.registers = [
            max(1, area * BITS[kind] // (64 if kind == "f64" else 32) // 32)
            for area, kind in zip(areas, (d, a, b, c), strict=True)
        ]
        self.id = spelling + ("" if sparse is None else f" {sparse}")

    def ptx(self):
        lines = [f".version {self.version}", f".target {self.target}", ".address_size 64"]
        lines += [
            ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pe, .param .u64 pd)",
            "{",
        ]
        lines += [".reg .b32 %e, %i, %block, %lane; .reg .b64 %p, %q;"]
        lines += ["mov.u32 %block, %ctaid.x; mov.u32 %lane, %tid.x;"]
        for name, kind, count in zip("dabc", self.kinds, self.registers, strict=True):
            lines += [f".reg .{register_type(kind)} %{name}<{count}>;"]
            size = 8 if kind == "f64" else 4
            lines += [f"ld.param.u64 %q, [p{name}]; mad.lo.u32 %i, %block, {32 * count}, %lane;"]
            lines += [f"mad.wide.u32 %{'q' if name == 'd' else 'p'}, %i, {size}, %q;"]
            if name != "d":
                lines += [f"ld.global.{register_type(kind)} %{name}{n}, [%p+{32 * size * n}];" for n in range(count)]
        d, a, b, c = (register_list(name, count) for name, count in zip("dabc", self.registers, strict=True))
        metadata = ""
        if self.sparse is not None:
            lines += ["ld.param.u64 %p, [pe]; mad.lo.u32 %i, %block, 32, %lane; mad.wide.u32 %p, %i, 4, %p;"]
            lines += ["ld.global.b32 %e, [%p];"]
            metadata = f", %e, {self.sparse}"
        lines += [f"{self.spelling} {d}, {a}, {b}, {c}{metadata};"]
        kind, count = self.kinds[0], self.registers[0]
        size = 8 if kind == "f64" else 4
        lines += [
            "ld.param.u64 %q, [pd]; mad.lo.u32 %i, %block, " + f"{32 * count}, %lane; mad.wide.u32 %q, %i, {size}, %q;"
        ]
        lines += [f"st.global.{register_type(kind)} [%q+{32 * size * n}], %d{n};" for n in range(count)]
        return "\n".join([*lines, "ret;", "}", ""])

    def inputs(self, name, kind, count):
        random = Random(f"{self.id} {name}")
        in_register = max(1, 32 // BITS[kind])
        blocks = []
        for group in range(GROUPS):
            elements = random.elements(kind, group, BLOCKS, count, 32, in_register)
            if name == "c" and group in (0, 6):
                # Without an accumulator, in every second block.
                elements[:: 2 if group == 0 else 1] = 0
            blocks.append(packed(elements, BITS[kind])[..., 0])
        return np.concatenate(blocks)

    def run(self):
        operands = [
            self.inputs(name, kind, count)
            for name, kind, count in zip("abc", self.kinds[1:], self.registers[1:], strict=True)
        ]
        result = np.zeros((COUNT, self.registers[0], 32), np.uint64 if self.kinds[0] == "f64" else np.uint32)
        metadata = sparse_metadata(self.id, self.kinds[1], COUNT, 32)
        arrays = [DeviceArray(array) for array in (*operands, metadata, result)]
        Module(self.ptx().encode()).launch("k", COUNT, 32, *arrays)
        synchronize()
        return digests(arrays[-1].get())


class Wmma:
    """`wmma`: the operands are matrices in memory. The results are those in memory, and the fragments of the operands."""

    def __init__(self, shape, layouts, kinds, tail, *, operation="mma", target="sm_80"):
        self.shape, self.layouts, self.kinds, self.target = shape, layouts, kinds, target
        self.spelling = f"wmma.{operation}.sync.aligned.{'.'.join(layouts)}.m{shape[0]}n{shape[1]}k{shape[2]}{tail}"
        self.id = self.spelling
        m, n, k = shape
        self.extents = {"d": (m, n), "a": (m, k), "b": (k, n), "c": (m, n)}

    def fragment(self, name):
        rows, columns = self.extents[name]
        kind = self.kinds["dabc".index(name)]
        if name in "ab" and kind == "f16":
            return kind, 8
        return kind, max(1, rows * columns * BITS[kind] // (64 if kind == "f64" else 32) // 32)

    def layout(self, name):
        return {"a": self.layouts[0], "b": self.layouts[1]}.get(name, "row")

    def ptx(self):
        m, n, k = self.shape
        shape = f"m{m}n{n}k{k}"
        lines = [".version 8.7", f".target {self.target}", ".address_size 64"]
        lines += [
            ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u64 pf)",
            "{",
        ]
        lines += [".reg .b32 %i, %block, %lane, %stride; .reg .b64 %p, %f;"]
        lines += ["mov.u32 %block, %ctaid.x; mov.u32 %lane, %tid.x; ld.param.u64 %f, [pf];"]
        count = sum(self.fragment(name)[1] for name in "abc")
        lines += [f"mad.lo.u32 %i, %block, {32 * count}, %lane; mad.wide.u32 %f, %i, 8, %f;"]
        at = 0
        for name in "abcd":
            kind, registers = self.fragment(name)
            rows, columns = self.extents[name]
            matrix = rows * columns * BITS[kind] // 8
            stride = columns if self.layout(name) == "row" else rows
            lines += [f".reg .{register_type(kind)} %{name}<{registers}>;"]
            lines += [f"ld.param.u64 %p, [p{name}]; mul.lo.u32 %i, %block, {matrix}; cvt.u64.u32 %q{name}, %i;"]
            lines.insert(5, f".reg .b64 %q{name};")
            lines += [f"add.u64 %p, %p, %q{name}; mov.u32 %stride, {stride};"]
            list_ = register_list(name, registers)
            if name == "d":
                a, b, c = (register_list(other, self.fragment(other)[1]) for other in "abc")
                lines += [f"{self.spelling} {list_}, {a}, {b}, {c};"]
                lines += [f"wmma.store.d.sync.aligned.row.{shape}.global.{kind} [%p], {list_}, %stride;"]
                continue
            lines += [
                f"wmma.load.{name}.sync.aligned.{self.layout(name)}.{shape}.global.{kind} {list_}, [%p], %stride;"
            ]
            for register in range(registers):
                lines += [f"st.global.{register_type(kind)} [%f+{256 * at}], %{name}{register};"]
                at += 1
        return "\n".join([*lines, "ret;", "}", ""])

    def run(self):
        arrays = []
        for name in "abc":
            rows, columns = self.extents[name]
            kind = self.kinds["dabc".index(name)]
            random = Random(f"{self.id} {name}")
            blocks = [random.elements(kind, group, BLOCKS, rows * columns) for group in range(GROUPS)]
            if name == "c":
                blocks[-1][:] = 0
            arrays.append(packed(np.concatenate(blocks), BITS[kind]))
        rows, columns = self.extents["d"]
        arrays.append(np.zeros((COUNT, rows * columns * BITS[self.kinds[0]] // 32), np.uint32))
        arrays.append(np.zeros((COUNT, sum(self.fragment(name)[1] for name in "abc"), 32), np.uint64))
        arrays = [DeviceArray(array) for array in arrays]
        Module(self.ptx().encode()).launch("k", COUNT, 32, *arrays)
        synchronize()
        return digests(arrays[3].get()) + digests(arrays[4].get())


class Wgmma:
    """`wgmma` of one warpgroup. Its matrices are in shared memory, A possibly in registers; both parts of shared memory are
    random, so that the layout decides which elements are used.
    """

    # Bytes for matrix A and for matrix B.
    A_BYTES, B_BYTES = 8192, 32768
    # In descriptors: the codes of swizzles by their width in bytes.
    SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}
    BLOCKS_OF_GROUP = 2

    def __init__(
        self,
        n,
        kinds,
        *,
        registers=False,
        a=(0, "k"),
        b=(0, "k"),
        scales=None,
        options="",
        add=True,
        tail="",
        sparse=None,
    ):
        self.n, self.kinds, self.in_registers, self.a, self.b, self.add = n, kinds, registers, a, b, add
        self.sparse = sparse
        d, kind_a, kind_b = kinds
        k = (256 if sparse is None else 512) // BITS[kind_a]
        form = "" if sparse is None else ".sp"
        self.spelling = f"wgmma.mma_async{form}.sync.aligned.m64n{n}k{k}{options}.{d}.{kind_a}.{kind_b}{tail}"
        self.count = n * (BITS[d] // 16) // 4
        immediates = []
        if kind_a in FLOATS:
            immediates += scales or (1, 1)
        if kind_a in ("f16", "bf16"):
            immediates += [int(b[1] != "k")] if registers else [int(a[1] != "k"), int(b[1] != "k")]
        self.immediates = "".join(f", {value}" for value in immediates)
        place = "registers" if registers else "{} {}".format(*a)
        self.id = f"{self.spelling} {place}, {b[0]} {b[1]}{self.immediates}{'' if add else ' zeroed'}"
        if sparse is not None:
            self.id += f" selector {sparse}"

    def descriptor(self, layout):
        """The constant bits: strides and swizzle."""
        swizzle, major = layout
        # The strides between tiles along the leading and the other dimension, in bytes.
        if major == "k":
            leading, stride = (128, 256) if swizzle == 0 else (16, 8 * swizzle)
            if swizzle == 32 and self.sparse is not None:
                # A sparse product reads 64 bytes of a column of B, of two swizzles: the leading stride lies between them.
                leading = 8192
        else:
            leading, stride = (4096, 128) if swizzle == 0 else (16 * swizzle, 8 * swizzle)
        return leading >> 4 << 16 | stride >> 4 << 32 | self.SWIZZLES[swizzle] << 62

    def ptx(self):
        register = "f32" if self.kinds[0] == "f32" else "b32"
        shared = (self.A_BYTES + self.B_BYTES) // 4
        lines = [".version 8.4", ".target sm_90a", ".address_size 64"]
        lines += [".visible .entry k(.param .u64 pa, .param .u64 ps, .param .u64 pc, .param .u64 pd)", "{"]
        lines += [f".shared .align 1024 .b8 memory[{4 * shared}];"]
        lines += [".reg .pred %more, %add; .reg .b32 %i, %s, %w, %block, %lane, %e, %a<4>; .reg .b64 %p, %q, %da, %db;"]
        lines += [f".reg .{register} %d<{self.count}>;"]
        lines += ["mov.u32 %block, %ctaid.x; mov.u32 %lane, %tid.x; mov.u32 %i, %lane;"]
        lines += [f"ld.param.u64 %p, [ps]; mul.wide.u32 %q, %block, {4 * shared}; add.u64 %p, %p, %q;"]
        lines += ["NEXT: mul.wide.u32 %q, %i, 4; add.u64 %q, %p, %q; ld.global.u32 %w, [%q];"]
        lines += ["mov.u32 %s, memory; mad.lo.u32 %s, %i, 4, %s; st.shared.u32 [%s], %w;"]
        lines += [f"add.u32 %i, %i, 128; setp.lt.u32 %more, %i, {shared}; @%more bra NEXT;"]
        lines += ["ld.param.u64 %p, [pa]; mad.lo.u32 %i, %block, 640, %lane; mad.wide.u32 %p, %i, 4, %p;"]
        lines += [f"ld.global.u32 %a{n}, [%p+{512 * n}];" for n in range(4)]
        lines += ["ld.global.u32 %e, [%p+2048];"]
        lines += [
            f"ld.param.u64 %p, [pc]; mad.lo.u32 %i, %block, {128 * self.count}, %lane; mad.wide.u32 %p, %i, 4, %p;"
        ]
        lines += [f"ld.global.{register} %d{n}, [%p+{512 * n}];" for n in range(self.count)]
        for name, offset, layout in (("a", 0, self.a), ("b", self.A_BYTES, self.b)):
            lines += [f"mov.u32 %s, memory; add.u32 %s, %s, {offset}; shr.u32 %s, %s, 4; cvt.u64.u32 %d{name}, %s;"]
            lines += [f"or.b64 %d{name}, %d{name}, {self.descriptor(layout)};"]
        a = register_list("a", 4) if self.in_registers else "%da"
        lines += [f"setp.ne.u32 %add, %block, {'0x7fffffff' if self.add else '%block'};"]
        metadata = "" if self.sparse is None else f"%e, {self.sparse}, "
        lines += ["fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;"]
        lines += [f"{self.spelling} {register_list('d', self.count)}, {a}, %db, {metadata}%add{self.immediates};"]
        lines += ["wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"]
        lines += [
            f"ld.param.u64 %p, [pd]; mad.lo.u32 %i, %block, {128 * self.count}, %lane; mad.wide.u32 %p, %i, 4, %p;"
        ]
        lines += [f"st.global.{register} [%p+{512 * n}], %d{n};" for n in range(self.count)]
        return "\n".join([*lines, "ret;", "}", ""])

    def operands(self):
        d, a, b = self.kinds

        def words(name, kind, count):
            random = Random(f"{self.id} {name}")
            groups = [
                random.elements(kind, group, self.BLOCKS_OF_GROUP, count * 32 // BITS[kind]) for group in range(GROUPS)
            ]
            return packed(np.concatenate(groups), BITS[kind])

        c = words("c", d, 128 * self.count)
        c[-self.BLOCKS_OF_GROUP :] = 0
        shared = np.concatenate([words("a", a, self.A_BYTES // 4), words("b", b, self.B_BYTES // 4)], axis=1)
        metadata = sparse_metadata(self.id, a, self.BLOCKS_OF_GROUP * GROUPS, 128)
        return np.concatenate([words("registers", a, 512), metadata], axis=1), shared, c

    def results(self):
        operands = self.operands()
        arrays = [DeviceArray(np.ascontiguousarray(array)) for array in (*operands, np.zeros_like(operands[-1]))]
        Module(self.ptx().encode()).launch("k", self.BLOCKS_OF_GROUP * GROUPS, 128, *arrays)
        synchronize()
        return arrays[-1].get()

    def run(self):
        return digests(self.results())


def extents(shape):
    return tuple(int(number) for number in re.findall(r"\d+", shape))


def mma(shape, d, a, b, c, *, layouts="row.col", options="", tail="", sparse=None, target="sm_80"):
    form = "" if sparse is None else f".{sparse[0]}"
    spelling = f"mma{form}.sync.aligned.{shape}.{layouts}{options}.{d}.{a}.{b}.{c}{tail}"
    selector = None if sparse is None else sparse[1]
    return Mma(spelling, (d, a, b, c), extents(shape), sparse=selector, target=target)


def _dense():
    for rows, columns in itertools.product(("row", "col"), repeat=2):
        for d, c in (("f32", "f32"), ("f16", "f16"), ("f32", "f16")):
            yield mma("m8n8k4", d, "f16", "f16", c, layouts=f"{rows}.{columns}")
    for k in (8, 16):
        yield mma(f"m16n8k{k}", "f32", "f16", "f16", "f32")
        yield mma(f"m16n8k{k}", "f16", "f16", "f16", "f16")
        yield mma(f"m16n8k{k}", "f32", "bf16", "bf16", "f32")
        yield mma(f"m16n8k{k // 2}", "f32", "tf32", "tf32", "f32")
    for rounding in ("", ".rn", ".rz", ".rm", ".rp"):
        for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"):
            target = "sm_80" if shape == "m8n8k4" else "sm_90"
            yield mma(shape, "f64", "f64", "f64", "f64", options=rounding, target=target)
    for saturate in ("", ".satfinite"):
        for a, b in itertools.product(("s8", "u8"), repeat=2):
            for shape in ("m8n8k16", "m16n8k16", "m16n8k32"):
                yield mma(shape, "s32", a, b, "s32", options=saturate)
        for a, b in itertools.product(("s4", "u4"), repeat=2):
            for shape in ("m8n8k32", "m16n8k32", "m16n8k64"):
                yield mma(shape, "s32", a, b, "s32", options=saturate)
    for operation in ("xor", "and"):
        for shape in ("m8n8k128", "m16n8k128", "m16n8k256"):
            yield mma(shape, "s32", "b1", "b1", "s32", tail=f".{operation}.popc")
    for a, b in itertools.product(("e4m3", "e5m2"), repeat=2):
        for k, sums in itertools.product((16, 32), ("f32", "f16")):
            yield mma(f"m16n8k{k}", sums, a, b, sums, target="sm_89")


def _sparse():
    for form in ("sp", "sp::ordered_metadata"):
        for selector in range(4):
            sparse = (form, selector)
            for k in (16, 32) if selector < 2 else (16,):
                yield mma(f"m16n8k{k}", "f32", "f16", "f16", "f32", sparse=sparse)
                yield mma(f"m16n8k{k}", "f16", "f16", "f16", "f16", sparse=sparse)
                yield mma(f"m16n8k{k}", "f32", "bf16", "bf16", "f32", sparse=sparse)
                yield mma(f"m16n8k{k // 2}", "f32", "tf32", "tf32", "f32", sparse=sparse)
            if selector < 2:
                for a, b in itertools.product(("s8", "u8"), repeat=2):
                    yield mma("m16n8k32", "s32", a, b, "s32", sparse=sparse)
                for a, b in itertools.product(("s4", "u4"), repeat=2):
                    yield mma("m16n8k64", "s32", a, b, "s32", sparse=sparse)
            if selector == 0:
                for a, b in itertools.product(("s8", "u8"), repeat=2):
                    yield mma("m16n8k64", "s32", a, b, "s32", sparse=sparse, options=".satfinite")
                for a, b in itertools.product(("s4", "u4"), repeat=2):
                    yield mma("m16n8k128", "s32", a, b, "s32", sparse=sparse)
                for a, b in itertools.product(("e4m3", "e5m2"), repeat=2):
                    yield mma("m16n8k64", "f32", a, b, "f32", sparse=sparse, target="sm_89")


def _wmma():
    for layouts in itertools.product(("row", "col"), repeat=2):
        for shape in ((16, 16, 16), (8, 32, 16), (32, 8, 16)):
            for d, c in itertools.product(("f16", "f32"), repeat=2):
                yield Wmma(shape, layouts, (d, "f16", "f16", c), f".{d}.{c}")
            yield Wmma(shape, layouts, ("f32", "bf16", "bf16", "f32"), ".f32.bf16.bf16.f32")
            for kind, saturate in itertools.product(("s8", "u8"), ("", ".satfinite")):
                yield Wmma(shape, layouts, ("s32", kind, kind, "s32"), f"{saturate}.s32.{kind}.{kind}.s32")
        yield Wmma((16, 16, 8), layouts, ("f32", "tf32", "tf32", "f32"), ".f32.tf32.tf32.f32")
        yield Wmma((8, 8, 4), layouts, ("f64",) * 4, ".f64.f64.f64.f64")
    for rounding in (".rn", ".rz", ".rm", ".rp"):
        yield Wmma((8, 8, 4), ("row", "col"), ("f64",) * 4, f"{rounding}.f64.f64.f64.f64")
    for kind, saturate in itertools.product(("s4", "u4"), ("", ".satfinite")):
        yield Wmma((8, 8, 32), ("row", "col"), ("s32", kind, kind, "s32"), f"{saturate}.s32.{kind}.{kind}.s32")
    for operation in ("xor", "and"):
        kinds = ("s32", "b1", "b1", "s32")
        yield Wmma((8, 8, 128), ("row", "col"), kinds, ".s32.b1.b1.s32", operation=f"mma.{operation}.popc")


def _wgmma():
    for n in (8, 24, 96, 256):
        yield Wgmma(n, ("f32", "f16", "f16"))
        yield Wgmma(n, ("f16", "f16", "f16"))
    for swizzle in (0, 32, 64, 128):
        for a, b in itertools.product(("k", "mn"), repeat=2):
            yield Wgmma(64, ("f32", "bf16", "bf16"), a=(swizzle, a), b=(swizzle, b))
        yield Wgmma(64, ("f32", "f16", "f16"), registers=True, b=(swizzle, "mn"))
        yield Wgmma(128, ("f32", "tf32", "tf32"), a=(swizzle, "k"), b=(swizzle, "k"))
    for registers in (False, True):
        yield Wgmma(64, ("f32", "f16", "f16"), registers=registers, scales=(-1, 1))
        yield Wgmma(64, ("f16", "f16", "f16"), registers=registers, scales=(1, -1), add=False)
        yield Wgmma(64, ("f32", "tf32", "tf32"), registers=registers, add=False)
        for a, b in itertools.product(("e4m3", "e5m2"), repeat=2):
            yield Wgmma(64, ("f32", a, b), registers=registers)
            yield Wgmma(64, ("f16", a, b), registers=registers)
        for a, b in itertools.product(("s8", "u8"), repeat=2):
            yield Wgmma(64, ("s32", a, b), registers=registers)
            yield Wgmma(64, ("s32", a, b), registers=registers, options=".satfinite", b=(128, "k"))
        yield Wgmma(64, ("s32", "b1", "b1"), registers=registers, tail=".and.popc")


def _sparse_wgmma():
    for n, selector in itertools.product((8, 256), (0, 1)):
        yield Wgmma(n, ("f32", "f16", "f16"), sparse=selector)
        yield Wgmma(n, ("f16", "f16", "f16"), sparse=selector)
    for swizzle, selector in itertools.product((0, 32, 64, 128), (0, 1)):
        for a, b in itertools.product(("k", "mn"), repeat=2):
            yield Wgmma(64, ("f32", "bf16", "bf16"), a=(swizzle, a), b=(swizzle, b), sparse=selector)
        yield Wgmma(64, ("f32", "f16", "f16"), registers=True, b=(swizzle, "mn"), sparse=selector)
        yield Wgmma(128, ("f32", "tf32", "tf32"), a=(swizzle, "k"), b=(swizzle, "k"), sparse=selector)
        yield Wgmma(24, ("s32", "s8", "u8"), a=(swizzle, "k"), b=(swizzle, "k"), sparse=0)
    for registers in (False, True):
        yield Wgmma(64, ("f32", "f16", "f16"), registers=registers, scales=(-1, 1), sparse=1)
        yield Wgmma(64, ("f16", "f16", "f16"), registers=registers, scales=(1, -1), add=False, sparse=0)
        yield Wgmma(64, ("f32", "tf32", "tf32"), registers=registers, add=False, sparse=1)
        for a, b in itertools.product(("e4m3", "e5m2"), repeat=2):
            yield Wgmma(64, ("f32", a, b), registers=registers, sparse=0)
            yield Wgmma(64, ("f16", a, b), registers=registers, sparse=0)
        for a, b in itertools.product(("s8", "u8"), repeat=2):
            yield Wgmma(64, ("s32", a, b), registers=registers, options=".satfinite", b=(128, "k"), sparse=0)


CASES = [*_dense(), *_sparse(), *_wmma(), *_wgmma(), *_sparse_wgmma()]


def main():
    from cuda.bindings import driver

    from helpers.device import check

    check(driver.cuInit(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))))
    print(json.dumps({case.id: case.run() for case in CASES}))


if __name__ == "__main__":
    main()
