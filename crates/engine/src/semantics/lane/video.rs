//! Video instructions: arithmetic on bytes and half-words chosen from 32-bit registers (PTX ISA, "Scalar Video
//! Instructions" and "SIMD Video Instructions").

use super::lanes::lane;
use super::operation::{OpFn, Selected};
use cupyrite_ptx::ir::{AtomOp, ClampMode, Cmp, Instr, Mods, Op, Operand, Selector, Type, Word};

/// Selects the function of a video instruction.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    use Op::*;
    match i.op {
        Vadd | Vsub | Vabsdiff | Vmin | Vmax | Vshl | Vshr | Vset => scalar(i),
        Vmad => vmad(i),
        Vadd2 | Vsub2 | Vavrg2 | Vabsdiff2 | Vmin2 | Vmax2 | Vset2 => simd(i, 2),
        Vadd4 | Vsub4 | Vavrg4 | Vabsdiff4 | Vmin4 | Vmax4 | Vset4 => simd(i, 4),
        _ => None,
    }
}

fn selector(o: Option<&Operand>) -> Option<Selector> {
    match o? {
        Operand::RegSelect(_, s) => Some(*s),
        Operand::Neg(inner) => selector(Some(inner)),
        _ => None,
    }
}

/// Encodes a part of a word in three bits: 0 to 3 are bytes, 4 and 5 are half-words, 7 is the word.
fn part(o: Option<&Operand>) -> Option<u32> {
    match selector(o) {
        None => Some(7),
        Some(Selector::Byte(n)) if n < 4 => Some(u32::from(n)),
        Some(Selector::Half(n)) if n < 2 => Some(4 + u32::from(n)),
        Some(_) => None,
    }
}
/// First bit and width of a part.
#[inline(always)]
fn span(part: u32) -> (u32, u32) {
    if part == 7 {
        (0, 32)
    } else if part >= 4 {
        (16 * (part & 1), 16)
    } else {
        (8 * part, 8)
    }
}
/// Value of a part of a word.
#[inline(always)]
fn extract(x: u32, part: u32, signed: bool) -> i64 {
    let (at, width) = span(part);
    let top = x >> at << (32 - width);
    if signed {
        i64::from(top as i32 >> (32 - width))
    } else {
        i64::from(top >> (32 - width))
    }
}
/// Range of the values of a part.
#[inline(always)]
fn limits(width: u32, signed: bool) -> (i64, i64) {
    if signed {
        (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        (0, (1 << width) - 1)
    }
}

// Bits of `imm`: the parts of d, a and b, the signs of d, a and b, `.sat`, the second operation.
const A: u32 = 3;
const B: u32 = 6;
const D_SIGNED: u32 = 1 << 9;
const A_SIGNED: u32 = 1 << 10;
const B_SIGNED: u32 = 1 << 11;
const SAT: u32 = 1 << 12;
const SECOND: u32 = 13;
const WRAP: u32 = 1 << 15;

/// The second operation: `.add`, `.min` and `.max` with the third operand.
fn second(m: &Mods) -> Option<u32> {
    Some(match m.atom {
        None => 0,
        Some(AtomOp::Add) => 1,
        Some(AtomOp::Min) => 2,
        Some(AtomOp::Max) => 3,
        _ => return None,
    })
}

/// Applies saturation, the second operation and the merge into the third operand.
#[inline(always)]
fn finish(v: i64, c: u32, imm: u32) -> u32 {
    let (at, width) = span(imm & 7);
    let signed = imm & D_SIGNED != 0;
    let (low, high) = limits(width, signed);
    let v = if imm & SAT != 0 {
        v.clamp(low, high)
    } else {
        v
    } as u32;
    let flip = if signed { 1 << 31 } else { 0 };
    let (x, y) = (v ^ flip, c ^ flip);
    match imm >> SECOND & 3 {
        1 => v.wrapping_add(c),
        2 => x.min(y) ^ flip,
        3 => x.max(y) ^ flip,
        _ if width == 32 => v,
        _ => {
            let field = ((1 << width) - 1) << at;
            (c & !field) | ((v << at) & field)
        }
    }
}

fn scalar(i: &Instr) -> Option<Selected> {
    let set = i.op == Op::Vset;
    // `vset` has no result type; its result is unsigned.
    let types = &*i.types;
    let (d, a, b) = match (set, types) {
        (true, &[a, b]) => (Type::U32, a, b),
        (false, &[d, a, b]) => (d, a, b),
        _ => return None,
    };
    for t in [d, a, b] {
        if !matches!(t, Type::U32 | Type::S32) {
            return None;
        }
    }
    let [pd, pa, pb] = [
        part(i.operands.first())?,
        part(i.operands.get(1))?,
        part(i.operands.get(2))?,
    ];
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    let imm = pd
        | pa << A
        | pb << B
        | flag(d.is_signed(), D_SIGNED)
        | flag(a.is_signed(), A_SIGNED)
        | flag(b.is_signed(), B_SIGNED)
        | flag(i.mods.sat, SAT)
        | second(&i.mods)? << SECOND
        | flag(i.mods.clamp == Some(ClampMode::Wrap), WRAP);
    macro_rules! op {
        (|$x:ident, $y:ident, $n:ident| $e:expr) => {
            lane!(imm $n; |a: u32, b: u32, c: u32| -> u32 {
                let $x = extract(a, $n >> A & 7, $n & A_SIGNED != 0);
                let $y = extract(b, $n >> B & 7, $n & B_SIGNED != 0);
                finish($e, c, $n)
            })
        };
    }
    /// A shift amount, clamped to 32 or wrapped to five bits.
    #[inline(always)]
    fn amount(y: i64, imm: u32) -> i64 {
        if imm & WRAP != 0 { y & 31 } else { y.min(32) }
    }
    let code = match i.op {
        Op::Vadd => op!(|x, y, n| x + y),
        Op::Vsub => op!(|x, y, n| x - y),
        Op::Vabsdiff => op!(|x, y, n| (x - y).abs()),
        Op::Vmin => op!(|x, y, n| x.min(y)),
        Op::Vmax => op!(|x, y, n| x.max(y)),
        Op::Vshl => op!(|x, y, n| x.wrapping_shl(amount(y, n) as u32)),
        Op::Vshr => op!(|x, y, n| x >> (amount(y, n) & 63)),
        _ => match i.mods.cmp? {
            Cmp::Eq => op!(|x, y, n| i64::from(x == y)),
            Cmp::Ne => op!(|x, y, n| i64::from(x != y)),
            Cmp::Lt => op!(|x, y, n| i64::from(x < y)),
            Cmp::Le => op!(|x, y, n| i64::from(x <= y)),
            Cmp::Gt => op!(|x, y, n| i64::from(x > y)),
            Cmp::Ge => op!(|x, y, n| i64::from(x >= y)),
            _ => return None,
        },
    };
    sources(code, i, d, a, b).map(|s| s.with_imm(imm))
}

/// Sets the sources. A second operation or a merge needs a third one.
fn sources(code: OpFn, i: &Instr, d: Type, a: Type, b: Type) -> Option<Selected> {
    let third = i.operands.len() == 4;
    let needs = i.mods.atom.is_some() || selector(i.operands.first()).is_some();
    if i.operands.len() < 3 || i.operands.len() > 4 || (needs && !third) {
        return None;
    }
    let mut s = Selected::new(code, d, &[a, b, d][..if third { 3 } else { 2 }]);
    s.scratch_up_to(3, d);
    Some(s)
}

/// `vmad`: `±(a · b) ± c`, shifted right and saturated.
fn vmad(i: &Instr) -> Option<Selected> {
    const PLUS_ONE: u32 = 1 << 13;
    const NEGATE_PRODUCT: u32 = 1 << 14;
    const NEGATE_C: u32 = 1 << 15;
    const SHIFT: u32 = 16;
    let &[d, a, b] = &*i.types else {
        return None;
    };
    let [pa, pb] = [part(i.operands.get(1))?, part(i.operands.get(2))?];
    let negated = |n: usize| matches!(i.operands.get(n), Some(Operand::Neg(_)));
    let product = negated(1) != negated(2);
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    let shift = if i.mods.has(Word::Shr7) {
        7
    } else if i.mods.has(Word::Shr15) {
        15
    } else {
        0
    };
    // The sign of the result follows from the operands, not from its type.
    let signed = a.is_signed() || b.is_signed() || product || negated(3);
    let imm = pa << A
        | pb << B
        | flag(signed, D_SIGNED)
        | flag(a.is_signed(), A_SIGNED)
        | flag(b.is_signed(), B_SIGNED)
        | flag(i.mods.sat, SAT)
        | flag(i.mods.has(Word::Po), PLUS_ONE)
        | flag(product, NEGATE_PRODUCT)
        | flag(negated(3), NEGATE_C)
        | shift << SHIFT;
    let code = lane!(imm n; |a: u32, b: u32, c: u32| -> u32 {
        let x = i128::from(extract(a, n >> A & 7, n & A_SIGNED != 0));
        let y = i128::from(extract(b, n >> B & 7, n & B_SIGNED != 0));
        // The addend is signed if the product is, before its own negation.
        let inner = n & (A_SIGNED | B_SIGNED | NEGATE_PRODUCT) != 0;
        let c = if inner { i128::from(c as i32) } else { i128::from(c) };
        let p = if n & NEGATE_PRODUCT != 0 { -(x * y) } else { x * y };
        let c = if n & NEGATE_C != 0 { -c } else { c };
        let v = (p + c + i128::from(n & PLUS_ONE != 0)) >> (n >> SHIFT & 15);
        let (low, high) = limits(32, n & D_SIGNED != 0);
        let v = if n & SAT != 0 { v.clamp(i128::from(low), i128::from(high)) } else { v };
        v as u32
    });
    (i.operands.len() == 4).then(|| Selected::new(code, d, &[a, b, d]).with_imm(imm))
}

// Bits of `imm` of SIMD instructions: four selectors of a and four of b, three bits each; the mask of the parts to write;
// the signs; saturation.
const SIMD_B: u32 = 12;
const SIMD_MASK: u32 = 24;
const SIMD_D_SIGNED: u32 = 1 << 28;
const SIMD_A_SIGNED: u32 = 1 << 29;
const SIMD_B_SIGNED: u32 = 1 << 30;
const SIMD_SAT: u32 = 1 << 31;

/// The parts of an operand, lowest first.
fn parts(o: Option<&Operand>, count: u8, first: u8) -> Option<Vec<u8>> {
    let all = 2 * count;
    let parts = match (selector(o), count) {
        (None, _) => (first..first + count).collect(),
        (Some(Selector::Bytes(p)), 4) => p.to_vec(),
        (Some(Selector::Halves(p)), 2) => p.to_vec(),
        _ => return None,
    };
    parts.iter().all(|&p| p < all).then_some(parts)
}
/// The parts of the destination to write.
fn mask(o: Option<&Operand>, count: u8) -> Option<u32> {
    let listed = match (selector(o), count) {
        (None, _) => return Some((1 << count) - 1),
        (Some(Selector::Bytes(p)), 4) => p.to_vec(),
        (Some(Selector::Halves(p)), 2) => p.to_vec(),
        (Some(Selector::Byte(p)), 4) | (Some(Selector::Half(p)), 2) => vec![p],
        _ => return None,
    };
    Some(
        listed
            .iter()
            .filter(|&&p| p < count)
            .fold(0, |m, &p| m | 1 << p),
    )
}

/// Part `n` of the words `a` (low) and `b`.
#[inline(always)]
fn pick<const WIDTH: u32>(both: u64, n: u32, signed: bool) -> i32 {
    let v = (both >> (WIDTH * (n & 7))) as u32;
    let top = v << (32 - WIDTH);
    if signed {
        top as i32 >> (32 - WIDTH)
    } else {
        (top >> (32 - WIDTH)) as i32
    }
}

/// Combines the parts: merges them into `c`, or adds them to it.
#[inline(always)]
fn each<const WIDTH: u32, const SUM: bool>(
    a: u32,
    b: u32,
    c: u32,
    imm: u32,
    f: impl Fn(i32, i32) -> i32,
) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    let (low, high) = limits(WIDTH, imm & SIMD_D_SIGNED != 0);
    let (low, high) = (low as i32, high as i32);
    let mut d = c;
    for k in 0..32 / WIDTH {
        let x = pick::<WIDTH>(both, imm >> (3 * k), imm & SIMD_A_SIGNED != 0);
        let y = pick::<WIDTH>(both, imm >> (SIMD_B + 3 * k), imm & SIMD_B_SIGNED != 0);
        let v = f(x, y);
        let v = if imm & SIMD_SAT != 0 {
            v.max(low).min(high)
        } else {
            v
        };
        let on = imm >> (SIMD_MASK + k) & 1 != 0;
        if SUM {
            d = d.wrapping_add(if on { v as u32 } else { 0 });
        } else {
            let field = if on {
                ((1 << WIDTH) - 1) << (WIDTH * k)
            } else {
                0
            };
            d = (d & !field) | (((v as u32) << (WIDTH * k)) & field);
        }
    }
    d
}

fn simd(i: &Instr, count: u8) -> Option<Selected> {
    let set = matches!(i.op, Op::Vset2 | Op::Vset4);
    let (d, a, b) = match (set, &*i.types) {
        (true, &[a, b]) => (Type::U32, a, b),
        (false, &[d, a, b]) => (d, a, b),
        _ => return None,
    };
    for t in [d, a, b] {
        if !matches!(t, Type::U32 | Type::S32) {
            return None;
        }
    }
    let sum = match i.mods.atom {
        None => false,
        Some(AtomOp::Add) => true,
        _ => return None,
    };
    let pa = parts(i.operands.get(1), count, 0)?;
    let pb = parts(i.operands.get(2), count, count)?;
    let packed = |p: &[u8]| {
        p.iter()
            .enumerate()
            .fold(0, |n, (k, &p)| n | u32::from(p) << (3 * k))
    };
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    let imm = packed(&pa)
        | packed(&pb) << SIMD_B
        | mask(i.operands.first(), count)? << SIMD_MASK
        | flag(d.is_signed(), SIMD_D_SIGNED)
        | flag(a.is_signed(), SIMD_A_SIGNED)
        | flag(b.is_signed(), SIMD_B_SIGNED)
        | flag(i.mods.sat, SIMD_SAT);
    macro_rules! op {
        (|$x:ident, $y:ident| $e:expr) => {
            match (count, sum) {
                (2, false) => lane!(imm n; |a: u32, b: u32, c: u32| -> u32 { each::<16, false>(a, b, c, n, |$x, $y| $e) }),
                (2, true) => lane!(imm n; |a: u32, b: u32, c: u32| -> u32 { each::<16, true>(a, b, c, n, |$x, $y| $e) }),
                (_, false) => lane!(imm n; |a: u32, b: u32, c: u32| -> u32 { each::<8, false>(a, b, c, n, |$x, $y| $e) }),
                (_, true) => lane!(imm n; |a: u32, b: u32, c: u32| -> u32 { each::<8, true>(a, b, c, n, |$x, $y| $e) }),
            }
        };
    }
    let code = match i.op {
        Op::Vadd2 | Op::Vadd4 => op!(|x, y| x + y),
        Op::Vsub2 | Op::Vsub4 => op!(|x, y| x - y),
        // Ties round away from zero for sums that are not negative, and towards minus infinity for negative sums.
        Op::Vavrg2 | Op::Vavrg4 => op!(|x, y| (x + y + i32::from(x + y >= 0)) >> 1),
        Op::Vabsdiff2 | Op::Vabsdiff4 => op!(|x, y| (x - y).abs()),
        Op::Vmin2 | Op::Vmin4 => op!(|x, y| x.min(y)),
        Op::Vmax2 | Op::Vmax4 => op!(|x, y| x.max(y)),
        _ => match i.mods.cmp? {
            Cmp::Eq => op!(|x, y| i32::from(x == y)),
            Cmp::Ne => op!(|x, y| i32::from(x != y)),
            Cmp::Lt => op!(|x, y| i32::from(x < y)),
            Cmp::Le => op!(|x, y| i32::from(x <= y)),
            Cmp::Gt => op!(|x, y| i32::from(x > y)),
            Cmp::Ge => op!(|x, y| i32::from(x >= y)),
            _ => return None,
        },
    };
    (i.operands.len() == 4).then(|| Selected::new(code, d, &[a, b, d]).with_imm(imm))
}
