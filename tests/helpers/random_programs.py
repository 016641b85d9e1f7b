"""Random PTX kernels with control flow, and the digests of their results.

`kernel(seed)` returns the PTX of one kernel: arithmetic in every width, nested branches and loops, switches, direct and indirect
calls, local and shared memory, barriers, warp collectives and atomic operations. It is deterministic by construction: memory that
several threads access is guarded by barriers, atomic operations on one cell commute, loops are bounded, and collectives name the
lanes that execute them. `digests(seeds)` runs kernels and returns a digest of what each wrote.
"""

import ctypes
import struct
import zlib

from cuda.bindings import driver

from .device import check

BLOCKS = 2
WORDS = 24  # words of 32 bits that each thread writes
CELLS = 8  # words for atomic operations
KERNELS_PER_MODULE = 8
BATCH = 100  # kernels that share a recorded digest
MASK = (1 << 64) - 1
REGISTERS = {"a": 8, "d": 4, "f": 5, "g": 3, "p": 4, "h": 3}
TYPES = {"a": "b32", "d": "b64", "f": "f32", "g": "f64", "p": "pred", "h": "b16"}

# Instructions as `MNEMONIC: DESTINATION SOURCES`, by register class; `i` is an integer below 32, `j` one below 64, `r` a register
# of class `a`, which otherwise may be a number, `n` one that is never zero, `m` such a register of class `d`.
# Left out, because the driver's compiler (580) differs from the manual (docs/numerics.md): `testp` with a guard and the unsigned
# saturation of scalar video instructions.
ARITHMETIC = """
{add,sub}.{u32,s32}: a a a
{add,sub}.sat.s32: a a a
mul.{lo,hi}.{u32,s32}: a a a
mad.{lo,hi}.{u32,s32}: a a a a
mad.hi.sat.s32: a a a a
mul24.{lo,hi}.{u32,s32}: a a a
mad24.lo.{u32,s32}: a a a a
sad.{u32,s32}: a a a a
{div,rem}.{u32,s32}: a a n
{min,max}.{u32,s32}: a a a
{abs,neg}.s32: a a
{and,or,xor}.b32: a a a
{not,cnot,brev}.b32: a a
{popc,clz}.b32: a a
bfind.{u32,s32}: a a
bfind.shiftamt.u32: a a
shl.b32: a a i
{shr}.{u32,s32,b32}: a a i
shl.b32: a a a
shr.{u32,s32}: a a a
shf.{l,r}.{wrap,clamp}.b32: a a a a
bfe.{u32,s32}: a a i i
bfi.b32: a a a i i
bmsk.{clamp,wrap}.b32: a i i
szext.{clamp,wrap}.{u32,s32}: a a i
prmt.b32: a a a a
prmt.b32.{f4e,b4e,rc8,ecl,ecr,rc16}: a a a a
dp4a.{u32,s32}.{u32,s32}: a a a a
dp2a.{lo,hi}.{u32,s32}.{u32,s32}: a a a a
vadd.{u32,s32}.{u32,s32}.{u32,s32}: a r r
vadd4.{u32,s32}.{u32,s32}.{u32,s32}: a r r r
vavrg4.{u32,s32}.{u32,s32}.{u32,s32}: a r r r
vmax2.{u32,s32}.{u32,s32}.{u32,s32}: a r r r
vset4.{u32,s32}.{u32,s32}.{eq,lt,ge}: a r r r
mul.wide.{u32,s32}: d a a
mad.wide.{u32,s32}: d a a d
{add,sub}.{u64,s64}: d d d
mul.{lo,hi}.{u64,s64}: d d d
mad.lo.{u64,s64}: d d d d
{div,rem}.{u64,s64}: d d m
{min,max}.{u64,s64}: d d d
{and,or,xor}.b64: d d d
{not,cnot,brev}.b64: d d
{abs,neg}.s64: d d
{popc,clz}.b64: a d
bfind.{u64,s64}: a d
shl.b64: d d j
shr.{u64,s64}: d d j
bfe.{u64,s64}: d d j i
bfi.b64: d d d j i
{add,sub}.{u16,s16}: h h h
mul.{lo,hi}.{u16,s16}: h h h
mad.lo.{u16,s16}: h h h h
mul.wide.{u16,s16}: a h h
{min,max}.{u16,s16}: h h h
{and,or,xor}.b16: h h h
shr.{u16,s16}: h h i
{add,mul,sub}.{rn,rz,rm,rp}.f32: f f f
{add,mul,sub}.rn.ftz.f32: f f f
{add,mul}.rn.sat.f32: f f f
fma.{rn,rz,rm,rp}.f32: f f f f
fma.rn.ftz.f32: f f f f
div.{rn,rz,rm,rp}.f32: f f f
{rcp,sqrt}.{rn,rz,rm,rp}.f32: f f
{min,max}.f32: f f f
{min,max}.NaN.f32: f f f
{min,max}.ftz.f32: f f f
{min,max}.xorsign.abs.f32: f f f
{abs,neg}.f32: f f
{abs,neg}.ftz.f32: f f
copysign.f32: f f f
{add,mul,sub}.{rn,rz,rm,rp}.f64: g g g
fma.{rn,rz,rm,rp}.f64: g g g g
div.rn.f64: g g g
{rcp,sqrt}.rn.f64: g g
{min,max}.f64: g g g
{abs,neg}.f64: g g
{add,mul,sub}.rn.f16x2: a r r
fma.rn.{f16x2,bf16x2}: a r r r
fma.rn.relu.{f16x2,bf16x2}: a r r r
{min,max}.{f16x2,bf16x2}: a r r
{min,max}.NaN.{f16x2,bf16x2}: a r r
{abs,neg}.{f16x2,bf16x2}: a r
{abs,neg}.{f16,bf16}: h h
{add,mul,sub}.rn.f16: h h h
fma.rn.{f16,bf16}: h h h h
cvt.{rn,rz,rm,rp}.f32.{u32,s32}: f a
cvt.{rni,rzi,rmi,rpi}.{u32,s32}.f32: a f
cvt.{rni,rzi}.ftz.{u32,s32}.f32: a f
cvt.{rni,rzi,rmi,rpi}.f32.f32: f f
cvt.rn.f64.{u32,s32}: g a
cvt.{rni,rzi,rmi,rpi}.{u32,s32}.f64: a g
cvt.{rn,rz}.f64.{u64,s64}: g d
cvt.{rn,rz}.f32.{u64,s64}: f d
cvt.{rni,rzi}.{u64,s64}.f64: d g
cvt.{rni,rzi}.{u64,s64}.f32: d f
cvt.f64.f32: g f
cvt.{rn,rz,rm,rp}.f32.f64: f g
cvt.{rn,rz}.f16.f32: h f
cvt.f32.f16: f h
cvt.rn.bf16.f32: h f
cvt.rn.{f16x2,bf16x2}.f32: a f f
cvt.{s8,u8,s16,u16}.u32: a a
cvt.sat.{s8,u8,s16,u16}.s32: a a
cvt.u16.u32: h a
cvt.{u32,s32}.{u16,s16}: a h
cvt.{u64,s64}.{u32,s32}: d a
cvt.u32.u64: a d
cvt.sat.{s32,u32}.s64: a d
mov.b32: f a
mov.b32: a f
mov.b64: g d
mov.b64: d g
slct.u32.s32: a a a a
slct.f32.s32: f f f a
selp.b32: a a a p
selp.b64: d d d p
selp.f32: f f f p
set.{eq,lt,ge,ne}.u32.{u32,s32}: a a a
set.{ltu,gt,num}.u32.f32: a f f
setp.{eq,ne,lt,le,gt,ge}.{u32,s32}: p a a
setp.{lt,ge,hi,ls}.u32: p a a
setp.{lt,ge}.{u64,s64}: p d d
setp.{eq,lt,geu,nan,num}.f32: p f f
setp.{lt,neu}.f64: p g g
setp.{lt,ne}.{and,or,xor}.s32: p a a p
testp.{finite,infinite,number,notanumber,normal,subnormal}.f32: p f
{and,or,xor}.pred: p p p
not.pred: p p
"""


def expand(text):
    """All texts that result from the choice of one word for each `{...}`."""
    before, brace, rest = text.partition("{")
    if not brace:
        return [text]
    choices, _, after = rest.partition("}")
    return [before + choice + end for choice in choices.split(",") for end in expand(after)]


def table():
    """Lists of mnemonic, destination class and source classes: one list for each line."""
    rows = []
    for line in ARITHMETIC.strip().splitlines():
        names, _, operands = line.partition(": ")
        destination, *sources = operands.split()
        rows.append([(name, destination, sources) for name in expand(names)])
    return rows


TABLE = table()


class Draw:
    """SplitMix64 (Steele, Lea, Flood, 2014): the same numbers in every version of Python."""

    def __init__(self, seed):
        # Not a multiple of the generator's own step: the numbers of two seeds would overlap.
        self.state = (seed * 0xD1342543DE82EF95 + 0x1234567) & MASK
        self.state = self.word()

    def word(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n):
        return (self.word() >> 11) % n

    def of(self, items):
        return items[self.below(len(items))]

    def chance(self, percent):
        return self.below(100) < percent


class Generator:
    """Writes one kernel and its functions."""

    def __init__(self, seed):
        self.draw = Draw(seed)
        self.name = f"k{seed}"
        self.lines = []
        self.labels = 0
        self.counters = 0
        self.inside = False  # a function, which has no access to the memory of the kernel
        # Lanes of a partial warp cannot be the source of a shuffle.
        self.threads = self.draw.of([32, 64, 96, 128, 40, 7])
        self.full = self.threads % 32 == 0
        self.functions = self.draw.below(3)
        self.cells = [
            self.draw.of(["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"]) for _ in range(CELLS)
        ]

    # Operands.

    def register(self, kind):
        return f"%{kind}{self.draw.below(REGISTERS[kind])}"

    def source(self, kind):
        draw = self.draw
        if kind == "i":
            return str(draw.below(32))
        if kind == "j":
            return str(draw.below(64))
        if kind == "r":
            return self.register("a")
        if kind in "nm":
            old, new, width = self.register("a" if kind == "n" else "d"), f"%{kind}0", "32" if kind == "n" else "64"
            self.emit(f"or.b{width} {new}, {old}, 1;")
            return new
        if kind == "a" and draw.chance(15):
            return str(draw.of([0, 1, 2, 31, 255, 0x7FFFFFFF, 0xFFFFFFFF, draw.below(1 << 32)]))
        if kind == "f" and draw.chance(10):
            return f"0f{draw.of([0, 0x80000000, 0x3F800000, 0x7F800000, 0x00000001, draw.below(1 << 32)]):08X}"
        return self.register(kind)

    def emit(self, text):
        self.lines.append("    " + text)

    def label(self):
        self.labels += 1
        return f"L{self.labels}"

    # Statements. `same` says that all threads of the block execute the statement together.

    def arithmetic(self):
        name, destination, sources = self.draw.of(self.draw.of(TABLE))
        words = [self.source(kind) for kind in sources]
        if name.startswith(("mov.b32", "mov.b64")):
            words = [self.register(sources[0])]
        if name.startswith("prmt.b32.") or name.startswith(("abs", "neg", "not")):
            words = [self.register(kind) if kind in "af" else word for kind, word in zip(sources, words, strict=True)]
        guard = ""
        if self.draw.chance(12) and not name.startswith("testp"):
            guard = f"@{self.draw.of(['', '!'])}{self.register('p')} "
        self.emit(f"{guard}{name} {self.register(destination)}, {', '.join(words)};")

    def carry(self):
        a = [self.register("a") for _ in range(6)]
        first, rest = self.draw.of([("add.cc", "addc"), ("sub.cc", "subc"), ("mad.lo.cc", "madc.hi")])
        more = f", {a[4]}" if first.startswith("mad") else ""
        self.emit(f"{first}.u32 {a[0]}, {a[1]}, {a[2]}{more};")
        self.emit(f"{rest}.u32 {a[3]}, {a[4]}, {a[5]}{', 0' if more else ''};")

    def lop3(self):
        a = [self.register("a") for _ in range(4)]
        self.emit(f"lop3.b32 {', '.join(a)}, {self.draw.below(256)};")

    def setp_both(self):
        p, q = 0, 1
        self.emit(f"setp.lt.s32 %p{p}|%p{q}, {self.register('a')}, {self.source('a')};")

    def pack(self):
        if self.draw.chance(50):
            self.emit(f"mov.b64 {self.register('d')}, {{{self.register('a')}, {self.register('a')}}};")
        else:
            x, y = self.draw.of([(0, 1), (2, 3), (5, 4)])
            self.emit(f"mov.b64 {{%a{x}, %a{y}}}, {self.register('d')};")

    def local(self):
        """A store and a load at an index of the thread, in its local array of 64 bytes."""
        width, kind, types = self.draw.of(
            [(4, "a", ["u32"]), (8, "d", ["u64"]), (1, "a", ["u8", "s8"]), (2, "a", ["u16", "s16"]), (8, "v", ["v2"])]
        )
        place = f"%x{self.draw.below(2)}"
        for store in (True, False):
            self.emit(f"and.b32 %n1, {self.register('a')}, {64 - width};")
            self.emit("cvt.u64.u32 %m1, %n1;")
            self.emit(f"add.u64 {place}, %local, %m1;")
            if kind == "v":
                if store:
                    self.emit(f"st.local.v2.u32 [{place}], {{{self.register('a')}, {self.register('a')}}};")
                else:
                    self.emit(f"ld.local.v2.u32 {{%a0, %a{1 + self.draw.below(7)}}}, [{place}];")
            elif store:
                self.emit(f"st.local.{types[0]} [{place}], {self.register(kind)};")
            else:
                self.emit(f"ld.local.{self.draw.of(types)} {self.register(kind)}, [{place}];")

    def constant(self):
        self.emit(f"and.b32 %n1, {self.register('a')}, 60;")
        self.emit("cvt.u64.u32 %m1, %n1;")
        self.emit(f"mov.u64 %x0, table_{self.name};")
        self.emit("add.u64 %x0, %x0, %m1;")
        self.emit(f"ld.const.u32 {self.register('a')}, [%x0];")

    def own_cell(self):
        """An atomic operation on a word of global memory that no other thread uses, with its old value."""
        name, count = self.draw.of(
            [
                ("add.u32", 1),
                ("inc.u32", 1),
                ("dec.u32", 1),
                ("exch.b32", 1),
                ("cas.b32", 2),
                ("min.s32", 1),
                ("max.s32", 1),
            ]
        )
        values = ", ".join(self.register("a") for _ in range(count))
        self.emit(f"atom.global.{name} {self.register('a')}, [%own], {values};")

    def shared_cell(self):
        cell = self.draw.below(CELLS)
        value = self.register("a")
        space, base = self.draw.of([("shared", f"cells_{self.name}"), ("global", "%cells")])
        operation = self.cells[cell]
        if self.draw.chance(30):
            self.emit(f"atom.{space}.{operation} %n2, [{base}+{4 * cell}], {value};")
        else:
            self.emit(f"red.{space}.{operation} [{base}+{4 * cell}], {value};")

    def exchange(self):
        """Words through shared memory, from another thread of the block."""
        shift = 1 + self.draw.below(self.threads)
        if self.draw.chance(50):
            self.emit(f"st.shared.u32 [%slot], {self.register('a')};")
        else:
            self.emit(f"st.shared.f32 [%slot], {self.register('f')};")
        self.emit("bar.sync 0;")
        self.emit(f"add.u32 %n1, %thread, {shift};")
        self.emit(f"rem.u32 %n1, %n1, {self.threads};")
        self.emit("shl.b32 %n1, %n1, 2;")
        self.emit(f"mov.u32 %n2, slots_{self.name};")
        self.emit("add.u32 %n1, %n1, %n2;")
        self.emit(f"ld.shared.u32 {self.register('a')}, [%n1];")
        self.emit("bar.sync 0;")

    def reduce_barrier(self):
        if not self.full:
            return self.exchange()
        if self.draw.chance(50):
            self.emit(f"bar.red.popc.u32 {self.register('a')}, 0, {self.register('p')};")
        else:
            self.emit(f"bar.red.{self.draw.of(['and', 'or'])}.pred {self.register('p')}, 0, {self.register('p')};")
        return None

    def collective(self, mask="%mask", shuffles=True):
        """A collective of the lanes in the mask."""
        draw = self.draw
        kind = draw.below(5 if shuffles and self.full else 4)
        a, b, p = self.register("a"), self.register("a"), self.register("p")
        if kind == 0:
            self.emit(f"vote.sync.{draw.of(['any', 'all', 'uni'])}.pred {p}, {self.register('p')}, {mask};")
        elif kind == 1:
            self.emit(f"vote.sync.ballot.b32 {a}, {p}, {mask};")
        elif kind == 2:
            self.emit(
                f"redux.sync.{draw.of(['add.u32', 'min.s32', 'max.u32', 'and.b32', 'or.b32', 'xor.b32'])} {a}, {b}, {mask};"
            )
        elif kind == 3:
            self.emit(f"and.b32 %n1, {b}, 3;")
            match = draw.of(["any", "all"])
            self.emit(f"match.{match}.sync.b32 {a}{'|' + p if match == 'all' else ''}, %n1, {mask};")
        else:
            mode = draw.of(["idx", "up", "down", "bfly"])
            clamp = 0 if mode == "up" else 31
            self.emit(f"and.b32 %n1, {b}, 31;")
            # With up and down, lanes without a source keep their own value.
            lane = str(draw.below(32)) if mode != "idx" else "%n1"
            self.emit(f"shfl.sync.{mode}.b32 {a}|{p}, {self.register('a')}, {lane}, {clamp}, {mask};")

    def part_of_a_warp(self):
        """A collective of the lanes that take a branch."""
        skip = self.label()
        p = self.register("p")
        self.emit(f"vote.sync.ballot.b32 %n2, {p}, %mask;")
        self.emit(f"@!{p} bra {skip};")
        if self.draw.chance(40):
            self.emit("brev.b32 %n1, %n2;")
            self.emit("clz.b32 %n1, %n1;")
            self.emit(f"shfl.sync.idx.b32 {self.register('a')}, {self.register('a')}, %n1, 31, %n2;")
        else:
            self.collective("%n2", shuffles=False)
        self.lines.append(f"{skip}:")

    def call(self):
        number = self.draw.below(self.functions)
        arguments = f"{self.register('a')}, {self.register('a')}"
        result = self.register("a")
        x, y = arguments.split(", ")
        target = f"f{number}_{self.name}"
        self.emit("{ .param .b32 x, y, r;")
        self.emit(f"st.param.b32 [x], {x}; st.param.b32 [y], {y};")
        if self.draw.chance(30):
            label = self.label()
            self.lines.append(f"{label}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);")
            self.emit(f"mov.u64 %x0, {target};")
            self.emit(f"call (r), %x0, (x, y), {label};")
        else:
            self.emit(f"call (r), {target}, (x, y);")
        self.emit(f"ld.param.b32 {result}, [r]; }}")

    def branch(self, depth, same):
        """An if with an else; with `same`, on a condition that all threads share."""
        other, end = self.label(), self.label()
        if same:
            self.emit(f"and.b32 %n1, %block, {self.draw.of([1, 3])};")
            self.emit("setp.eq.u32 %q, %n1, 0;")
            condition = "%q"
        else:
            condition = self.register("p")
        self.emit(f"@{condition} bra {other};")
        self.block(depth - 1, same, 1 + self.draw.below(4))
        if self.draw.chance(70):
            self.emit(f"bra {end};")
            self.lines.append(f"{other}:")
            self.block(depth - 1, same, 1 + self.draw.below(4))
        else:
            self.lines.append(f"{other}:")
        self.lines.append(f"{end}:")

    def loop(self, depth, same):
        counter = f"%c{self.counters}"
        self.counters += 1
        begin, end = self.label(), self.label()
        if same:
            self.emit(f"mov.u32 {counter}, {2 + self.draw.below(3)};")
        else:
            self.emit(f"and.b32 {counter}, {self.register('a')}, 3;")
            self.emit(f"add.u32 {counter}, {counter}, 1;")
        self.lines.append(f"{begin}:")
        self.block(depth - 1, same, 1 + self.draw.below(5))
        if not same and self.draw.chance(30):
            self.emit(f"@{self.register('p')} bra {end};")
        self.emit(f"sub.u32 {counter}, {counter}, 1;")
        self.emit(f"setp.ne.u32 %q, {counter}, 0;")
        self.emit(f"@%q bra {begin};")
        self.lines.append(f"{end}:")

    def switch(self, depth):
        ways = [self.label() for _ in range(4)]
        end, targets = self.label(), self.label()
        self.emit(f"and.b32 %n1, {self.register('a')}, 3;")
        self.lines.append(f"{targets}: .branchtargets {', '.join(ways)};")
        self.emit(f"brx.idx %n1, {targets};")
        for way in ways:
            self.lines.append(f"{way}:")
            self.block(depth - 1, False, 1 + self.draw.below(2))
            self.emit(f"bra {end};")
        self.lines.append(f"{end}:")

    def block(self, depth, same, statements):
        draw = self.draw
        for _ in range(statements):
            n = draw.below(100)
            if depth and n < 10:
                self.branch(depth, same and draw.chance(50))
            elif depth and n < 18 and self.counters < 8:
                self.loop(depth, same and draw.chance(50))
            elif depth and n < 20:
                self.switch(depth)
            elif n < 24:
                self.local()
            elif n < 29:
                self.carry()
            elif n < 31:
                self.lop3()
            elif n < 33:
                self.setp_both()
            elif n < 35:
                self.pack()
            elif self.inside:
                self.arithmetic()
            elif n < 37:
                self.constant()
            elif n < 40:
                self.own_cell()
            elif n < 42:
                self.shared_cell()
            elif n < 45 and self.functions:
                self.call()
            elif same and n < 50:
                self.exchange()
            elif same and n < 52:
                self.reduce_barrier()
            elif same and n < 60:
                self.collective()
            elif same and n < 63:
                self.part_of_a_warp()
            else:
                self.arithmetic()

    # The parts of a kernel.

    def declarations(self):
        for kind, count in REGISTERS.items():
            self.emit(f".reg .{TYPES[kind]} %{kind}<{count}>;")
        self.emit(
            ".reg .b32 %n<3>, %c<9>, %thread, %block, %mask, %slot; .reg .b64 %m<2>, %x<2>, %own, %cells, %out, %local;"
        )
        self.emit(".reg .pred %q;")

    def function(self, number):
        """A function of two words, which returns one. It has registers of its own."""
        self.lines.append(f".func (.param .b32 r) f{number}_{self.name}(.param .b32 x, .param .b32 y)\n{{")
        self.declarations()
        self.emit("ld.param.u32 %a0, [x]; ld.param.u32 %a1, [y];")
        self.array(f"f{number}")
        self.initialize("%a0", "%a1")
        self.inside = True
        self.block(2, False, 4 + self.draw.below(8))
        self.inside = False
        self.counters = 0
        self.emit(f"xor.b32 %a0, {self.register('a')}, {self.register('a')};")
        self.emit("st.param.b32 [r], %a0; ret;\n}")

    def array(self, where):
        """A local array of 64 bytes, all zero."""
        self.emit(f".local .align 8 .b8 local_{where}_{self.name}[64];")
        self.emit(f"mov.u64 %local, local_{where}_{self.name}; mov.u64 %m1, 0;")
        for i in range(8):
            self.emit(f"st.local.u64 [%local+{8 * i}], %m1;")

    def initialize(self, x, y):
        """Values of all registers, from two words."""
        self.emit(f"mov.u32 %n0, {x}; mov.u32 %n1, {y};")
        for i in range(REGISTERS["a"]):
            self.emit(f"mad.lo.u32 %a{i}, %n0, {2654435761 + 2 * i}, %n1; xor.b32 %n0, %a{i}, {i * 77};")
        for i in range(REGISTERS["d"]):
            self.emit(f"mov.b64 %d{i}, {{%a{i}, %a{i + 1}}};")
        for i in range(REGISTERS["f"]):
            # Numbers of moderate size, and any bits.
            self.emit(f"cvt.rn.f32.s32 %f{i}, %a{i};" if i % 2 else f"mov.b32 %f{i}, %a{i};")
            self.emit(f"mul.rn.f32 %f{i}, %f{i}, 0f2F800000;" if i % 2 else "")
        for i in range(REGISTERS["g"]):
            self.emit(f"cvt.rn.f64.s32 %g{i}, %a{i};")
        for i in range(REGISTERS["h"]):
            self.emit(f"cvt.u16.u32 %h{i}, %a{i};")
        for i in range(REGISTERS["p"]):
            self.emit(f"setp.lt.s32 %p{i}, %a{i}, %a{i + 1};")

    def text(self):
        """The PTX of the functions and of the kernel, without the module's header."""
        words = ", ".join(str(self.draw.below(1 << 32)) for _ in range(16))
        self.lines.append(f".const .align 4 .u32 table_{self.name}[16] = {{{words}}};")
        for number in range(self.functions):
            self.function(number)
        self.lines.append(f".visible .entry {self.name}(.param .u64 out, .param .u64 cells)\n{{")
        self.declarations()
        self.emit(f".shared .align 4 .b8 slots_{self.name}[{4 * self.threads}];")
        self.emit(f".shared .align 4 .b8 cells_{self.name}[{4 * CELLS}];")
        self.emit("mov.u32 %thread, %tid.x; mov.u32 %block, %ctaid.x;")
        self.emit("ld.param.u64 %out, [out]; ld.param.u64 %cells, [cells];")
        self.emit("cvta.to.global.u64 %out, %out; cvta.to.global.u64 %cells, %cells;")
        self.emit(
            f"mad.lo.u32 %n0, %block, {self.threads}, %thread; mul.wide.u32 %m0, %n0, {4 * WORDS}; add.u64 %own, %out, %m0;"
        )
        # The lanes of this warp that exist.
        self.emit(
            f"and.b32 %n1, %thread, -32; sub.u32 %n1, {self.threads}, %n1; min.u32 %n1, %n1, 32; bmsk.clamp.b32 %mask, 0, %n1;"
        )
        self.emit(f"shl.b32 %n1, %thread, 2; mov.u32 %slot, slots_{self.name}; add.u32 %slot, %slot, %n1;")
        self.emit(
            f"setp.lt.u32 %q, %thread, {CELLS}; mov.u32 %n2, cells_{self.name}; add.u32 %n2, %n2, %n1; @%q st.shared.u32 [%n2], 7;"
        )
        if self.threads < CELLS:
            self.emit(f"@%q st.shared.u32 [cells_{self.name}+{4 * (CELLS - 1)}], 7;")
        self.array("k")
        self.emit("bar.sync 0;")
        self.emit("mov.u32 %c8, %n0;")
        self.initialize("%c8", str(self.draw.below(1 << 32)))
        self.block(3, True, 12 + self.draw.below(40))
        self.store()
        self.emit("ret;\n}")
        return "\n".join(line for line in self.lines if line.strip())

    def store(self):
        """Writes all registers behind the thread's own word, and the block's cells."""
        self.emit("bar.sync 0;")
        offset = 4
        for kind in "ad":
            for i in range(REGISTERS[kind]):
                if kind == "d":
                    self.emit(f"mov.b64 {{%n1, %n2}}, %d{i}; xor.b32 %n1, %n1, %n2;")
                self.emit(f"st.global.u32 [%own+{offset}], {'%n1' if kind == 'd' else f'%a{i}'};")
                offset += 4
        for i in range(REGISTERS["f"]):
            self.emit(f"st.global.f32 [%own+{offset}], %f{i};")
            offset += 4
        for i in range(REGISTERS["g"]):
            self.emit(
                f"mov.b64 %m1, %g{i}; mov.b64 {{%n1, %n2}}, %m1; xor.b32 %n1, %n1, %n2; st.global.u32 [%own+{offset}], %n1;"
            )
            offset += 4
        self.emit("mov.u32 %n1, 0;")
        for i in range(REGISTERS["h"]):
            self.emit(f"cvt.u32.u16 %n2, %h{i}; mad.lo.u32 %n1, %n1, 65599, %n2;")
        for i in range(REGISTERS["p"]):
            self.emit(f"selp.u32 %n2, 1, 0, %p{i}; mad.lo.u32 %n1, %n1, 3, %n2;")
        self.emit(f"st.global.u32 [%own+{offset}], %n1;")
        offset += 4
        self.emit(f"and.b32 %n1, %thread, {min(CELLS, 1 << (self.threads.bit_length() - 1)) - 1}; shl.b32 %n1, %n1, 2;")
        self.emit(f"mov.u32 %n2, cells_{self.name}; add.u32 %n2, %n2, %n1; ld.shared.u32 %n1, [%n2];")
        self.emit(f"st.global.u32 [%own+{offset}], %n1;")
        assert offset < 4 * WORDS, offset


HEADER = ".version 8.0\n.target sm_86\n.address_size 64\n"


def kernel(seed):
    """The name, threads per block and PTX of one kernel."""
    generator = Generator(seed)
    text = generator.text()
    return generator.name, generator.threads, text


def version():
    """A digest of the generator: of the first kernels' PTX."""
    return f"{zlib.crc32(''.join(kernel(seed)[2] for seed in range(10)).encode()):08x}"


def digests(seeds, per_module=KERNELS_PER_MODULE):
    """CRC-32 of what each kernel writes: the words of all threads and the cells. Needs a current context."""
    seeds = list(seeds)
    words = BLOCKS * 128 * WORDS * 4
    size = words + 4 * CELLS
    memory = int(check(driver.cuMemAlloc(per_module * size)))
    host = bytearray(per_module * size)
    found = []
    try:
        for begin in range(0, len(seeds), per_module):
            kernels = [kernel(seed) for seed in seeds[begin : begin + per_module]]
            module = load(HEADER + "\n".join(text for _, _, text in kernels))
            check(driver.cuMemsetD32(memory, 0x01020304, len(host) // 4))
            for i, (name, threads, _) in enumerate(kernels):
                function = check(driver.cuModuleGetFunction(module, name.encode()))
                launch(function, threads, (memory + i * size, memory + i * size + words))
            check(driver.cuMemcpyDtoH(host, memory, len(host)))
            found += [zlib.crc32(host[i * size : (i + 1) * size]) for i in range(len(kernels))]
            check(driver.cuModuleUnload(module))
    finally:
        check(driver.cuMemFree(memory))
    return found


def fold(values):
    """One digest of several; kernels without one are left out."""
    known = [value for value in values if value is not None]
    return zlib.crc32(struct.pack(f"{len(known)}I", *known))


def load(text):
    """A module of the PTX. Without optimisation: the optimiser of driver 580 translates one kernel in a thousand wrongly."""
    options = [driver.CUjit_option.CU_JIT_OPTIMIZATION_LEVEL]
    return check(driver.cuModuleLoadDataEx(text.encode() + b"\0", 1, options, [0]))


def launch(function, threads, addresses):
    """Launches with two addresses as arguments, by a call that every package of `cuda.bindings` accepts."""
    values = (ctypes.c_uint64 * 2)(*addresses)
    pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(values) + 8 * i for i in range(2)))
    check(driver.cuLaunchKernel(function, BLOCKS, 1, 1, threads, 1, 1, 0, 0, ctypes.addressof(pointers), 0))
