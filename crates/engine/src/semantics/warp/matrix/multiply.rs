//! Matrix products: `mma`, `mma.sp`, `wmma.mma`.

use std::sync::Arc;

use cupyrite_ptx::ir::{Instr, Op, Operand, Rounding, Type, Word};

use super::super::{Detail, Operands, Selected, Warp, row, row_64, set_row, set_row_64};
use super::float::{Numbers, RowOf, aligned_sums, decode, half_bits, single_bits, truncated};
use super::fragment::{Axes, Fragment};
use super::{Shape, elements, shape, slot_type};
use crate::fault::LaneFault;
use crate::semantics::lane::{
    OperandRef, OperandSlot, RM, RN, RP, RZ, fma64, from_e4m3, from_e5m2, payload64,
};

/// The type of the elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    F16,
    BF16,
    /// 19 bits of an `f32`.
    TF32,
    F32,
    F64,
    E4M3,
    E5M2,
    S32,
    S8,
    U8,
    S4,
    U4,
    /// A word of 32 elements of one bit.
    Bits,
}

impl Element {
    /// Bits in a register.
    pub fn bits(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::TF32 | Self::F32 | Self::S32 | Self::Bits => 32,
            Self::F16 | Self::BF16 => 16,
            Self::E4M3 | Self::E5M2 | Self::S8 | Self::U8 => 8,
            Self::S4 | Self::U4 => 4,
        }
    }

    /// The value of a number and its exponent.
    fn number(self, bits: u64) -> (f64, i32) {
        let low = bits as u16;
        match self {
            Self::F16 => decode(u32::from(low), 5, 10),
            Self::BF16 => decode(u32::from(low), 8, 7),
            Self::TF32 => decode((bits >> 13) as u32, 8, 10),
            // Converted to half-precision numbers, whose exponents count.
            Self::E4M3 => decode(u32::from(from_e4m3(low)), 5, 10),
            Self::E5M2 => decode(u32::from(from_e5m2(low)), 5, 10),
            _ => decode(bits as u32, 8, 23),
        }
    }

    /// The value of an integer.
    fn integer(self, bits: u64) -> i64 {
        let width = self.bits();
        let value = bits.cast_signed();
        match self {
            Self::S8 | Self::S4 | Self::S32 => value << (64 - width) >> (64 - width),
            _ => value,
        }
    }

    fn numbers(self, bits: &[u64]) -> Numbers {
        let mut out = Numbers::default();
        for b in bits {
            let (value, exponent) = self.number(*b);
            out.push(value, exponent);
        }
        out
    }

    fn numbers_of(self, bits: &[u32]) -> Numbers {
        let bits: Vec<u64> = bits.iter().map(|b| u64::from(*b)).collect();
        self.numbers(&bits)
    }
}

/// The nonzero elements of a sparse matrix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sparsity {
    /// Which lanes hold the metadata (PTX ISA, "Sparse matrix storage").
    selector: usize,
    /// Elements of a group of A, and of those, the ones that are stored: 4 and 2, or 8 and 4 in pairs, or 2 and 1.
    group: usize,
}

/// How products are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Arithmetic {
    /// [`aligned_sums`] of this many positions, which are the accumulator of the next.
    Aligned { step: usize },
    /// The numbers of eight bits are converted to half precision and multiplied in two steps: the first two of every four
    /// positions, then the others. The accumulator is added last.
    Eight,
    /// A fused multiply-add for each position, in order, with this rounding.
    Double(u8),
    /// Exact; the result wraps, or saturates.
    Integer { saturate: bool },
    /// Counts the ones of the exclusive or, or of the conjunction.
    Count { and: bool },
}

/// A product of matrices with its operands.
#[derive(Debug)]
pub struct Multiply {
    elements: [Element; 4],
    fragments: [Fragment; 4],
    arithmetic: Arithmetic,
    sparsity: Option<Sparsity>,
}

/// Selects the function of `mma` or `wmma.mma`.
pub fn select(i: &Instr) -> Option<Selected> {
    let shape = shape(i)?;
    let elements_of = element_types(i)?;
    let [d, a, b, c] = elements_of;
    let sparse = i.mods.has(Word::Sp) || i.mods.has(Word::SpOrderedMetadata);
    if (shape.m, shape.n, shape.k) == (8, 8, 4) && a == Element::F16 {
        return super::quad::select(i, c, d);
    }
    let count = |k: usize| match i.operands.get(k)? {
        Operand::Vector(list) => Some(list.len()),
        _ => Some(1),
    };
    let k = if a == Element::Bits {
        shape.k / 32
    } else {
        shape.k
    };
    let stored = if sparse { k / 2 } else { k };
    let inner = |e: Element, group, depth, group_first, by_row| Axes {
        group,
        depth,
        run: (32 / e.bits()).max(1) as usize,
        packed: (32 / e.bits()).max(1) as usize,
        group_first,
        by_row,
    };
    let fragments = [
        Fragment::new(outer(shape, d), count(0)?, d.bits()),
        Fragment::new(inner(a, shape.m, stored, true, true), count(1)?, a.bits()),
        Fragment::new(
            inner(b, shape.n, k, shape.n == 32, false),
            count(2)?,
            b.bits(),
        ),
        Fragment::new(outer(shape, c), count(3)?, c.bits()),
    ];
    let arithmetic = match a {
        Element::E4M3 | Element::E5M2 => Arithmetic::Eight,
        Element::F64 => Arithmetic::Double(match i.mods.rounding {
            Some(Rounding::Rz) => RZ,
            Some(Rounding::Rm) => RM,
            Some(Rounding::Rp) => RP,
            _ => RN,
        }),
        Element::Bits => Arithmetic::Count {
            and: i.mods.has(Word::And),
        },
        Element::S8 | Element::U8 | Element::S4 | Element::U4 => Arithmetic::Integer {
            saturate: i.mods.satfinite,
        },
        _ => Arithmetic::Aligned {
            step: match (i.op, a) {
                (Op::Wmma, Element::TF32) => 4,
                _ => stored,
            },
        },
    };
    let sparsity = match (sparse, i.operands.get(5)) {
        (false, _) => None,
        (true, Some(Operand::Int(selector))) => Some(Sparsity {
            selector: usize::try_from(*selector).ok()?,
            group: match a {
                Element::TF32 => 2,
                Element::S4 | Element::U4 => 8,
                _ => 4,
            },
        }),
        (true, _) => return None,
    };
    let operand = |k: usize| elements(i, k as u8, count(k)? as u8, slot_type(elements_of[k]));
    let mut srcs = operand(1)?;
    srcs.extend(operand(2)?);
    srcs.extend(operand(3)?);
    if sparse {
        srcs.push(OperandSlot::new(OperandRef::Operand(4), Type::B32));
    }
    Some(Selected {
        run: multiply,
        dsts: operand(0)?,
        srcs,
        address: None,
        detail: Detail::Multiply(Arc::new(Multiply {
            elements: elements_of,
            fragments,
            arithmetic,
            sparsity,
        })),
    })
}

/// The layout of an accumulator.
pub fn outer(shape: Shape, e: Element) -> Axes {
    let by_row = shape.n != 32;
    let (group, depth) = if by_row {
        (shape.m, shape.n)
    } else {
        (shape.n, shape.m)
    };
    Axes {
        group,
        depth,
        run: 2,
        packed: if e == Element::F16 { 2 } else { 1 },
        group_first: true,
        by_row,
    }
}

/// The types of D, A, B and C.
fn element_types(i: &Instr) -> Option<[Element; 4]> {
    use Element::{BF16, Bits, E4M3, E5M2, F16, F32, F64, S4, S8, S32, TF32, U4, U8};
    // The types that are no types of registers are words.
    let mut narrow = i.mods.other.iter().filter_map(|w| match w {
        Word::S4 => Some(S4),
        Word::U4 => Some(U4),
        Word::B1 => Some(Bits),
        _ => None,
    });
    if let (Some(a), Some(b)) = (narrow.next(), narrow.next()) {
        return Some([S32, a, b, S32]);
    }
    let of = |ty: &Type| {
        Some(match ty {
            Type::F16 => F16,
            Type::BF16 => BF16,
            Type::TF32 => TF32,
            Type::F32 => F32,
            Type::F64 => F64,
            Type::E4M3 => E4M3,
            Type::E5M2 => E5M2,
            Type::S32 => S32,
            Type::S8 => S8,
            Type::U8 => U8,
            _ => return None,
        })
    };
    let types: Vec<Element> = i.types.iter().map(of).collect::<Option<_>>()?;
    match types[..] {
        [d, a, b, c] => Some([d, a, b, c]),
        // `wmma.mma` of half-precision matrices names the accumulators only.
        [d, c] => Some([d, F16, F16, c]),
        _ => None,
    }
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn multiply(warp: &mut dyn Warp, operands: &Operands) -> Result<(), Box<LaneFault>> {
    let Detail::Multiply(m) = &operands.detail else {
        return Ok(());
    };
    let [.., a, b, c] = &m.fragments;
    let mut sources = operands.src.iter();
    let mut read = |f: &Fragment, e: Element| -> Vec<u64> {
        let registers: Vec<[u64; 32]> = sources
            .by_ref()
            .take(f.registers)
            // SAFETY: `select` has chosen slots of these widths.
            .map(|at| unsafe { read_row(warp, *at, e) })
            .collect();
        f.unpack(&registers)
    };
    let [_, of_a, of_b, of_c] = m.elements;
    let (a, b, c) = (read(a, of_a), read(b, of_b), read(c, of_c));
    let columns = match (m.sparsity, sources.next()) {
        (Some(sparsity), Some(at)) => {
            // SAFETY: `select` has chosen a 32-bit slot.
            let metadata = unsafe { row(warp, *at) };
            sparsity.columns(&m.fragments[1], of_a, &metadata)
        }
        _ => {
            let stored = m.fragments[1].columns as u16;
            (0..m.fragments[1].rows).flat_map(|_| 0..stored).collect()
        }
    };
    let result = m.fragments[0].pack(&m.product(&a, &columns, &b, &c));
    for (&at, values) in operands.dst.iter().zip(&result) {
        // SAFETY: `select` has chosen slots of these widths.
        unsafe { write_row(warp, at, m.elements[0], values) };
    }
    Ok(())
}

/// A register of all lanes.
///
/// # Safety
/// `at` is a slot of 64 bits if the elements have 64, otherwise of 32.
pub unsafe fn read_row(warp: &mut dyn Warp, at: u32, e: Element) -> [u64; 32] {
    // SAFETY: upheld by the caller.
    unsafe {
        match e {
            Element::F64 => row_64(warp, at),
            _ => row(warp, at).map(u64::from),
        }
    }
}

/// Writes a register of the active lanes.
///
/// # Safety
/// As for [`read_row`].
pub unsafe fn write_row(warp: &mut dyn Warp, at: u32, e: Element, values: &[u64; 32]) {
    // SAFETY: upheld by the caller.
    unsafe {
        match e {
            Element::F64 => set_row_64(warp, at, values),
            _ => set_row(warp, at, &values.map(|v| v as u32)),
        }
    }
}

impl Sparsity {
    /// The column of A, which is the row of B, of each stored element.
    fn columns(self, a: &Fragment, e: Element, metadata: &[u32; 32]) -> Vec<u16> {
        let groups = a.columns / (self.group / 2);
        // Four bits for each group of a row.
        let bits_of_row = 4 * groups;
        let wide = matches!(e, Element::F16 | Element::BF16 | Element::TF32);
        let mut out = Vec::with_capacity(a.rows * a.columns);
        for r in 0..a.rows {
            let (quad, upper) = (4 * (r % 8), r / 8);
            for n in 0..groups {
                let bit = 4 * n;
                let (lane, bit) = match (bits_of_row, wide) {
                    (16, _) => (quad + self.selector, bit + 16 * upper),
                    (_, true) => (quad + 2 * self.selector + bit / 16, bit % 16 + 16 * upper),
                    (32, false) => (quad + 2 * self.selector + upper, bit),
                    (_, false) => (quad + upper + 2 * (bit / 32), bit % 32),
                };
                let found = metadata[lane & 31] >> bit & 15;
                let (first, second) = ((found & 3) as u16, (found >> 2) as u16);
                let at = (self.group * n) as u16;
                match self.group {
                    2 => out.push(at + u16::from(found == 0b1110)),
                    4 => out.extend([at + first, at + second]),
                    _ => out.extend([first, second].iter().flat_map(|pair| {
                        let at = at + 2 * pair;
                        [at, at + 1]
                    })),
                }
            }
        }
        out
    }
}

impl Multiply {
    /// The elements of D, row by row. `columns` has the row of B that each element of A is multiplied with.
    fn product(&self, a: &[u64], columns: &[u16], b: &[u64], c: &[u64]) -> Vec<u64> {
        let rows = self.fragments[1].rows;
        let n = self.fragments[2].columns;
        let terms = self.fragments[1].columns;
        let [_, of_a, of_b, of_c] = self.elements;
        match self.arithmetic {
            Arithmetic::Aligned { .. } | Arithmetic::Eight => self.sums(a, columns, b, c),
            Arithmetic::Double(mode) => {
                let value = |v: &u64| f64::from_bits(*v);
                each(rows, n, |r, j| {
                    let mut sum = value(&c[r * n + j]);
                    for k in 0..terms {
                        let a = value(&a[r * terms + k]);
                        let b = value(&b[usize::from(columns[r * terms + k]) * n + j]);
                        sum = payload64(fma64(a, b, sum, mode), [a, b, sum]);
                    }
                    sum.to_bits()
                })
            }
            Arithmetic::Integer { saturate } => each(rows, n, |r, j| {
                let mut sum = of_c.integer(c[r * n + j]);
                for k in 0..terms {
                    let b = b[usize::from(columns[r * terms + k]) * n + j];
                    sum += of_a.integer(a[r * terms + k]) * of_b.integer(b);
                }
                if saturate {
                    sum = sum.clamp(i32::MIN.into(), i32::MAX.into());
                }
                u64::from(sum as u32)
            }),
            Arithmetic::Count { and } => each(rows, n, |r, j| {
                let mut sum = c[r * n + j] as u32;
                for k in 0..terms {
                    let (a, b) = (a[r * terms + k], b[k * n + j]);
                    let both = if and { a & b } else { a ^ b };
                    sum = sum.wrapping_add(both.count_ones());
                }
                u64::from(sum)
            }),
        }
    }

    /// The elements of D whose sums are those of tensor cores.
    fn sums(&self, a: &[u64], columns: &[u16], b: &[u64], c: &[u64]) -> Vec<u64> {
        let [of_d, of_a, of_b, of_c] = self.elements;
        let (n, terms) = (self.fragments[2].columns, self.fragments[1].columns);
        let (a, b) = (of_a.numbers(a), of_b.numbers(b));
        // Accumulators of another type than the results are converted before, and the results after.
        let sums_are = if of_c == of_d { of_d } else { Element::F32 };
        let c = match of_c {
            Element::F16 if sums_are == Element::F32 => {
                let single = |bits: &u64| u64::from(single_bits(of_c.number(*bits).0));
                let c: Vec<u64> = c.iter().map(single).collect();
                sums_are.numbers(&c)
            }
            _ => of_c.numbers(c),
        };
        let steps: Vec<Vec<usize>> = match self.arithmetic {
            Arithmetic::Aligned { step } => {
                let all: Vec<usize> = (0..terms).collect();
                all.chunks(step).map(<[usize]>::to_vec).collect()
            }
            _ => {
                let (first, second) = (0..terms).partition(|k| k % 4 < 2);
                vec![first, second]
            }
        };
        let eight = self.arithmetic == Arithmetic::Eight;
        let mut zeros = Numbers::default();
        (0..n).for_each(|_| zeros.push(0.0, 0));
        let mut sums = vec![0.0; n];
        let mut out = Vec::with_capacity(c.value.len());
        for r in 0..self.fragments[1].rows {
            let row = RowOf {
                a: &a.value[r * terms..][..terms],
                a_exponent: &a.exponent[r * terms..][..terms],
                row_of_b: &columns[r * terms..][..terms],
                b: &b,
                columns: n,
            };
            let mut step = |terms: &[usize], c: &Numbers, from: usize| -> Vec<u32> {
                aligned_sums(&row, terms, c, from, &mut sums);
                let mut bits: Vec<u32> = sums.iter().map(|sum| rounded(sums_are, *sum)).collect();
                if a.special || b.special || c.special {
                    replace_specials(&row, terms, &c.value[from..], sums_are, &mut bits);
                }
                bits
            };
            let mut bits = match steps.split_first() {
                Some((first, _)) if eight => step(first, &zeros, 0),
                Some((first, _)) => step(first, &c, r * n),
                None => Vec::new(),
            };
            for terms in &steps[1..] {
                bits = step(terms, &sums_are.numbers_of(&bits), 0);
            }
            let value = |bits: &u32| sums_are.number(u64::from(*bits)).0;
            if eight {
                for (bits, c) in bits.iter_mut().zip(&c.value[r * n..]) {
                    *bits = nearest(sums_are, value(bits) + c);
                }
            }
            if sums_are != of_d {
                bits.iter_mut().for_each(|b| *b = nearest(of_d, value(b)));
            }
            out.extend(bits.into_iter().map(u64::from));
        }
        out
    }
}

/// A finite sum in the format of D: the nearest half, where zero is positive, or truncated to single precision.
fn rounded(of_d: Element, sum: f64) -> u32 {
    match of_d {
        Element::F16 => match half_bits(sum) {
            0x8000 => 0,
            bits => bits,
        },
        _ => truncated(sum),
    }
}

/// The nearest number in the format of D.
fn nearest(of_d: Element, v: f64) -> u32 {
    match of_d {
        Element::F16 => half_bits(v),
        _ => single_bits(v),
    }
}

/// Replaces the results of a row whose terms include an infinity or a NaN.
fn replace_specials(
    row: &RowOf<'_>,
    terms: &[usize],
    c: &[f64],
    of_d: Element,
    results: &mut [u32],
) {
    for (j, (result, c)) in results.iter_mut().zip(c).enumerate() {
        let product = |k: &usize| {
            let b = usize::from(row.row_of_b[*k]) * row.columns + j;
            row.a[*k] * row.b.value[b]
        };
        let sum = terms.iter().map(product).sum::<f64>() + c;
        if !sum.is_finite() {
            *result = nearest(of_d, sum);
        }
    }
}

/// The elements of a matrix, row by row.
fn each(rows: usize, columns: usize, element: impl Fn(usize, usize) -> u64) -> Vec<u64> {
    let at = |n: usize| (n / columns, n % columns);
    (0..rows * columns)
        .map(at)
        .map(|(r, j)| element(r, j))
        .collect()
}
