//! Addresses that are computed from indices: pseudo-random computations, and the edges of 32-bit indices.

use std::fmt::Write as _;

use super::{Both, Random, module};
use crate::FaultKind;

/// Registers of indices.
const INDICES: usize = 6;
/// Registers of addresses.
const ADDRESSES: usize = 6;
/// Bytes of the buffer that kernels load from.
const BYTES: i64 = 1 << 16;
/// The most threads of a block.
const BLOCK: usize = 100;
/// Rows of elements of eight bytes that threads store.
const ROWS: usize = 8;

/// What is known of the values of an index.
#[derive(Clone, Copy)]
struct Range {
    low: i64,
    high: i64,
    align: i64,
}

impl Range {
    fn join(self, o: Range) -> Range {
        Range {
            low: self.low.min(o.low),
            high: self.high.max(o.high),
            align: self.align.min(o.align),
        }
    }

    fn plus(self, o: Range) -> Range {
        Range {
            low: self.low + o.low,
            high: self.high + o.high,
            align: self.align.min(o.align),
        }
    }

    fn times(self, factor: i64) -> Range {
        Range {
            low: self.low * factor,
            high: self.high * factor,
            align: (self.align * (factor & -factor)).min(16),
        }
    }

    /// Whether 32-bit arithmetic does not overflow.
    fn is_small(self) -> bool {
        self.low > -(1 << 24) && self.high < 1 << 24
    }
}

const ANY: Range = Range {
    low: i32::MIN as i64,
    high: u32::MAX as i64,
    align: 1,
};

/// What is known of the registers. Pointers are relative to the buffer.
#[derive(Clone)]
struct Registers {
    indices: [Range; INDICES],
    /// Values, and whether they are pointers.
    addresses: [(Range, bool); ADDRESSES],
}

impl Registers {
    fn join(&self, o: &Registers) -> Option<Registers> {
        let mut joined = self.clone();
        for (a, b) in joined.indices.iter_mut().zip(&o.indices) {
            *a = a.join(*b);
        }
        for (a, b) in joined.addresses.iter_mut().zip(&o.addresses) {
            if a.1 != b.1 {
                return None;
            }
            a.0 = a.0.join(b.0);
        }
        Some(joined)
    }
}

/// Uniform registers: their values, and whether they are pointers.
const UNIFORMS: [(&str, i64, bool); 5] = [
    ("%q50", 0, true),
    ("%q51", BYTES / 2, true),
    ("%q52", 16, false),
    ("%q53", 256, false),
    ("%q54", -64, false),
];

/// An instruction. Numbers are those of registers.
#[derive(Clone, Copy, Debug)]
enum Op {
    AddIndex(usize, usize, i64),
    AddIndices(usize, usize, usize),
    MaskIndex(usize, usize, i64),
    MoveIndex(usize, usize),
    MultiplyWide(usize, usize, i64, bool),
    MultiplyAddWide(usize, usize, i64, usize),
    Widen(usize, usize, bool),
    Shift(usize, usize, u32),
    AddUniform(usize, usize, usize),
    Add(usize, usize, usize),
    Move(usize, usize),
    Load(usize, usize, i64),
    LoadWide(usize, usize, i64),
    LoadVector(usize, usize, i64),
    Store(usize, usize),
    StoreAddress(usize, usize),
}

impl Op {
    fn new(random: &mut Random) -> Op {
        let mut r = || random.below(INDICES);
        let (d, a, b) = (r(), r(), r());
        let mut q = || random.below(ADDRESSES);
        let (x, y, z) = (q(), q(), q());
        let u = random.below(UNIFORMS.len());
        let offset = random.of(&[0, 0, 0, 8, 16, -8, 32, 4]);
        let factor = random.of(&[1, 2, 4, 4, 4, 8, 8, 16, 3]);
        let signed = random.below(2) == 0;
        match random.below(24) {
            0 => Op::AddIndex(d, a, random.of(&[1, 2, -1, 16, -32, 5])),
            1 => Op::AddIndices(d, a, b),
            2 => Op::MaskIndex(d, a, random.of(&[127, 255, 1023, 63, 0])),
            3 => Op::MoveIndex(d, a),
            4..8 => Op::MultiplyWide(x, a, factor, signed),
            8 => Op::MultiplyAddWide(x, a, factor, u),
            9 => Op::Widen(x, a, signed),
            10 => Op::Shift(x, y, random.of(&[1, 2, 3, 4, 5])),
            11..14 => Op::AddUniform(x, y, u),
            14 => Op::Add(x, y, z),
            15 => Op::Move(x, y),
            16..20 => Op::Load(d, y, offset),
            20 => Op::LoadWide(x, y, offset),
            21 => Op::LoadVector(d, y, offset),
            22 => Op::Store(random.below(ROWS), d),
            _ => Op::StoreAddress(random.below(ROWS), x),
        }
    }

    fn text(self) -> String {
        match self {
            Op::AddIndex(d, a, n) => format!("add.s32 %r{d}, %r{a}, {n};"),
            Op::AddIndices(d, a, b) => format!("add.s32 %r{d}, %r{a}, %r{b};"),
            Op::MaskIndex(d, a, mask) => format!("and.b32 %r{d}, %r{a}, {mask};"),
            Op::MoveIndex(d, a) => format!("mov.u32 %r{d}, %r{a};"),
            Op::MultiplyWide(x, a, n, signed) => {
                let ty = if signed { "s32" } else { "u32" };
                format!("mul.wide.{ty} %q{x}, %r{a}, {n};")
            }
            Op::MultiplyAddWide(x, a, n, u) => {
                format!("mad.wide.s32 %q{x}, %r{a}, {n}, {};", UNIFORMS[u].0)
            }
            Op::Widen(x, a, true) => format!("cvt.s64.s32 %q{x}, %r{a};"),
            Op::Widen(x, a, false) => format!("cvt.u64.u32 %q{x}, %r{a};"),
            Op::Shift(x, y, by) => format!("shl.b64 %q{x}, %q{y}, {by};"),
            Op::AddUniform(x, y, u) => format!("add.s64 %q{x}, {}, %q{y};", UNIFORMS[u].0),
            Op::Add(x, y, z) => format!("add.s64 %q{x}, %q{y}, %q{z};"),
            Op::Move(x, y) => format!("mov.b64 %q{x}, %q{y};"),
            Op::Load(d, y, offset) => format!("ld.global.u32 %r{d}, [%q{y}+{offset}];"),
            Op::LoadWide(x, y, offset) => format!("ld.global.u64 %q{x}, [%q{y}+{offset}];"),
            Op::LoadVector(d, y, offset) => {
                let other = (d + 1) % INDICES;
                format!("ld.global.v2.u32 {{%r{d}, %r{other}}}, [%q{y}+{offset}];")
            }
            Op::Store(row, a) => format!("st.global.u32 [%q60+{}], %r{a};", 8 * BLOCK * row),
            Op::StoreAddress(row, x) => format!("st.global.u64 [%q60+{}], %q{x};", 8 * BLOCK * row),
        }
    }

    /// What is known afterwards; `None` if an index overflows, or if a load is not allowed.
    fn apply(self, s: &Registers) -> Option<Registers> {
        let mut to = s.clone();
        let load = |y: usize, offset: i64, bytes: i64| {
            let (range, pointer) = s.addresses[y];
            let inside = range.low + offset >= 0 && range.high + offset + bytes <= BYTES;
            let aligned = range.align >= bytes && offset % bytes == 0;
            (pointer && inside && aligned).then_some(())
        };
        let small = |range: Range| range.is_small().then_some(range);
        let constant = |n: i64| Range {
            low: n,
            high: n,
            align: (n & -n).clamp(1, 16),
        };
        match self {
            Op::AddIndex(d, a, n) => to.indices[d] = small(s.indices[a])?.plus(constant(n)),
            Op::AddIndices(d, a, b) => {
                to.indices[d] = small(s.indices[a])?.plus(small(s.indices[b])?);
            }
            Op::MaskIndex(d, _, mask) => {
                to.indices[d] = Range {
                    low: 0,
                    high: mask,
                    align: 1,
                };
            }
            Op::MoveIndex(d, a) => to.indices[d] = s.indices[a],
            Op::MultiplyWide(x, a, n, signed) => {
                let range = small(s.indices[a])?;
                if !signed && range.low < 0 {
                    return None;
                }
                to.addresses[x] = (range.times(n), false);
            }
            Op::MultiplyAddWide(x, a, n, u) => {
                let (_, value, pointer) = UNIFORMS[u];
                let sum = small(s.indices[a])?.times(n).plus(constant(value));
                to.addresses[x] = (sum, pointer);
            }
            Op::Widen(x, a, signed) => {
                let range = small(s.indices[a])?;
                if !signed && range.low < 0 {
                    return None;
                }
                to.addresses[x] = (range, false);
            }
            Op::Shift(x, y, by) => {
                let (range, pointer) = s.addresses[y];
                if pointer {
                    return None;
                }
                to.addresses[x] = (small(range)?.times(1 << by), false);
            }
            Op::AddUniform(x, y, u) => {
                let (_, value, pointer) = UNIFORMS[u];
                let (range, other) = s.addresses[y];
                if pointer && other {
                    return None;
                }
                to.addresses[x] = (small(range)?.plus(constant(value)), pointer || other);
            }
            Op::Add(x, y, z) => {
                let ((a, first), (b, second)) = (s.addresses[y], s.addresses[z]);
                if first && second {
                    return None;
                }
                to.addresses[x] = (small(a)?.plus(small(b)?), first || second);
            }
            Op::Move(x, y) => to.addresses[x] = s.addresses[y],
            Op::Load(d, y, offset) => {
                load(y, offset, 4)?;
                to.indices[d] = ANY;
            }
            Op::LoadWide(x, y, offset) => {
                load(y, offset, 8)?;
                to.addresses[x] = (ANY, false);
            }
            Op::LoadVector(d, y, offset) => {
                load(y, offset, 8)?;
                to.indices[d] = ANY;
                to.indices[(d + 1) % INDICES] = ANY;
            }
            Op::Store(..) | Op::StoreAddress(..) => {}
        }
        Some(to)
    }
}

/// Adds pseudo-random instructions that are allowed in `state`, in blocks and loops.
fn generate(random: &mut Random, text: &mut String, mut state: Registers) {
    for part in 0..random.below(6) + 2 {
        let mut ops = Vec::new();
        // What is known before the first, after the first, and so on.
        let mut after = state.clone();
        for _ in 0..random.below(20) + 3 {
            let op = Op::new(random);
            if let Some(next) = op.apply(&after) {
                let guard = random.below(16) == 0;
                let joined = if guard { after.join(&next) } else { Some(next) };
                if let Some(joined) = joined {
                    after = joined;
                    ops.push((op, guard));
                }
            }
        }
        let step = |s: &Registers| {
            ops.iter().try_fold(s.clone(), |s, (op, guard)| {
                let next = op.apply(&s)?;
                if *guard { s.join(&next) } else { Some(next) }
            })
        };
        // A part is executed once, by some threads, or in a loop of up to four rounds.
        let mut kind = random.below(3);
        let joined = match kind {
            0 => Some(after.clone()),
            1 => state.join(&after),
            _ => (0..4).try_fold(state.clone(), |s, _| s.join(&step(&s)?)),
        };
        state = joined.unwrap_or_else(|| {
            kind = 0;
            after
        });
        match kind {
            0 => {}
            1 => {
                let _ = writeln!(text, "@%p{} bra END{part};", random.below(2));
            }
            _ => {
                let source = random.of(&["3", "%r21"]);
                let _ = writeln!(text, "mov.u32 %r20, {source};\nLOOP{part}:");
            }
        }
        for (op, guard) in &ops {
            let guard = if *guard { "@%p1 " } else { "" };
            let _ = writeln!(text, "{guard}{}", op.text());
        }
        match kind {
            0 => {}
            1 => {
                let _ = writeln!(text, "END{part}:");
            }
            _ => {
                let _ = writeln!(
                    text,
                    "add.s32 %r20, %r20, -1; setp.gt.s32 %p2, %r20, 0; @%p2 bra LOOP{part};"
                );
            }
        }
    }
}

#[test]
fn random_computations() {
    let count = if cfg!(debug_assertions) { 300 } else { 3000 };
    for seed in 0..count {
        let random = &mut Random(seed);
        let mut text = format!(
            ".reg .b32 %r<30>; .reg .b64 %q<70>; .reg .pred %p<4>;
            ld.param.u64 %q50, [p0]; add.u64 %q51, %q50, {}; mov.u64 %q52, 16; mov.u64 %q53, 256; mov.u64 %q54, -64;
            ld.param.u64 %q60, [p1]; mov.u32 %r10, %tid.x; mul.wide.u32 %q61, %r10, 8; add.u64 %q60, %q60, %q61;
            and.b32 %r21, %r10, 3; setp.lt.u32 %p0, %r10, 21; and.b32 %r22, %r10, 5; setp.eq.u32 %p1, %r22, 1;\n",
            BYTES / 2
        );
        for d in 0..INDICES {
            let factor = random.of(&["1", "1", "2", "0"]);
            let _ = writeln!(text, "mul.lo.u32 %r{d}, %r10, {factor};");
        }
        for x in 0..ADDRESSES {
            let _ = writeln!(text, "mul.wide.u32 %q{x}, %r{}, 4;", x % INDICES);
        }
        let range = |high| Range {
            low: 0,
            high,
            align: 1,
        };
        let state = Registers {
            indices: [range(2 * BLOCK as i64); INDICES],
            addresses: [(range(8 * BLOCK as i64).times(4), false); ADDRESSES],
        };
        generate(random, &mut text, state);
        for n in 0..INDICES {
            let _ = writeln!(
                text,
                "st.global.u32 [%q60+{}], %r{n};",
                8 * BLOCK * (ROWS + n)
            );
        }
        for n in 0..ADDRESSES {
            let row = ROWS + INDICES + n;
            let _ = writeln!(text, "st.global.u64 [%q60+{}], %q{n};", 8 * BLOCK * row);
        }
        text.push_str("ret;");
        let Some(both) = Both::new(module("", 2, &text)) else {
            return;
        };
        let words: Vec<u32> = (0..BYTES / 4).map(|_| random.bits() as u32).collect();
        let results = vec![0; 2 * BLOCK * (ROWS + INDICES + ADDRESSES)];
        let block = random.of(&[32, 64, 20, BLOCK as u32]);
        both.same(1, block, vec![words, results]);
    }
}

/// A load or store at `p2 + 4096 + index * scale` with the indices in `p0`, in threads whose flag in `p1` is set.
fn indexed(signed: bool, scale: u32, bytes: u32, store: bool, base: i64) -> String {
    let ty = if signed { "s32" } else { "u32" };
    let width = 8 * bytes;
    let register = if bytes == 8 { "%q9" } else { "%r9" };
    let access = match store {
        true => format!("cvt.u64.u32 %q9, %r9; st.global.b{width} [%q5+4096], {register};"),
        false => format!("ld.global.b{width} {register}, [%q5+4096];"),
    };
    let kept = match (store, bytes) {
        (true, _) => "",
        (false, 8) => "st.global.b64 [%q7], %q9;",
        (false, _) => "st.global.b32 [%q7], %r9;",
    };
    module(
        "",
        4,
        &format!(
            ".reg .b32 %r<10>; .reg .b64 %q<10>; .reg .pred %p<2>;
            ld.param.u64 %q1, [p0]; ld.param.u64 %q2, [p1]; ld.param.u64 %q3, [p2]; ld.param.u64 %q4, [p3]; add.s64 %q3, %q3, {base};
            mov.u32 %r1, %tid.x; mul.wide.u32 %q6, %r1, 4; add.s64 %q1, %q1, %q6; add.s64 %q2, %q2, %q6;
            mul.wide.u32 %q7, %r1, 8; add.s64 %q7, %q4, %q7;
            ld.global.u32 %r2, [%q1]; ld.global.u32 %r3, [%q2]; add.s32 %r9, %r1, 77; setp.eq.u32 %p1, %r3, 0; @%p1 bra END;
            mul.wide.{ty} %q5, %r2, {scale}; add.s64 %q5, %q3, %q5; {access} {kept}
            END: ret;"
        ),
    )
}

#[test]
fn edges_of_indices() {
    const WORDS: i64 = 4096;
    for (signed, scale, bytes, store) in [
        (true, 4u32, 4u32, false),
        (true, 4, 4, true),
        (false, 4, 4, false),
        (false, 8, 8, true),
        (true, 8, 8, false),
        (true, 8, 4, false),
        (false, 8, 4, true),
        (true, 16, 8, false),
        (false, 2, 4, false),
        (true, 4, 8, true),
        (true, 1, 4, false),
    ] {
        // The buffer ends at byte 12288 from where indices count.
        let end = (4 * WORDS - 4096) / i64::from(scale);
        let start = -4096 / i64::from(scale);
        let step = i64::from(bytes.div_ceil(scale));
        let limit = if signed { 1i64 << 31 } else { 1 << 32 };
        let cases = [
            // Indices of the lanes, and the number that the base makes up for.
            (0, 0, step),
            (start, 0, step),
            (start - step, 0, step),
            (end - 32 * step, 0, step),
            (end - 31 * step, 0, step),
            (end - 100 * step, 0, 3 * step),
            (limit - 16, limit - 16, 1),
            (limit - 32, limit - 32, 1),
            (limit - 24, limit, 1),
            (1 - limit, 1 - limit, 1),
            (-limit, -limit, 2 * step),
            (5 - limit, -limit, 0),
            (end / 2, 0, 0),
            (end, 0, 0),
            (start, 0, 0),
            (start - 1, 0, 0),
            (0x7fff_fff0, 0x7fff_fff0, step),
            (0x7fff_fff0, 0x7fff_fff0, 2 * step),
        ];
        for (first, base, step) in cases {
            let base = -base.wrapping_mul(i64::from(scale));
            let Some(both) = Both::new(indexed(signed, scale, bytes, store, base)) else {
                return;
            };
            for (swapped, divergent) in [(false, false), (true, false), (true, true), (false, true)]
            {
                let lane = |n: i64| if swapped { n ^ 3 } else { n };
                let indices: Vec<u32> = (0..32).map(|n| (first + step * lane(n)) as u32).collect();
                let flags: Vec<u32> = (0..32)
                    .map(|n| u32::from(!divergent || n % 7 != 2))
                    .collect();
                if store && step == 0 {
                    continue;
                }
                let memory = (0..WORDS as u32).map(|n| n.wrapping_mul(0x9e37)).collect();
                let found = both.compare(
                    [1; 3],
                    [32, 1, 1],
                    vec![indices, flags, memory, vec![0; 64]],
                );
                if let Err(fault) = found {
                    let kind = super::address_fault(fault.kind);
                    let expected = [FaultKind::IllegalAddress, FaultKind::MisalignedAddress];
                    assert!(expected.contains(&kind), "{fault}\n{}", both.ptx);
                }
            }
        }
    }
}
