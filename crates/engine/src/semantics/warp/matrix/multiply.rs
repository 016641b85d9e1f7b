//! Matrix products: `mma`, `mma.sp`, `wmma.mma`.

use std::sync::Arc;

use cupyrite_ptx::ir::{Instr, Op, Operand, Rounding, Type, Word};

use super::super::{Detail, Operands, Selected, Warp, row, row_64, set_row, set_row_64};
use super::element::{Element, element_types};
use super::float::{Format, MOST, Numbers, Precision, Sum, WIDE, nearest, single_bits};
use super::fragment::{Axes, Fragment};
use super::sparse::Sparsity;
#[cfg(target_arch = "x86_64")]
use super::vector::Vectored;
use super::{Shape, elements, register_count, shape, slot_type, unexpected};
use crate::fault::LaneFault;
use crate::semantics::lane::{OperandRef, OperandSlot, RM, RN, RP, RZ, fma64, payload64};

/// How products are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// [`Sum::rounded`] of `step` products at a time. A sum is the accumulator of the next step.
    Aligned { step: usize },
    /// As `Aligned`, with [`Precision::COARSE`].
    Coarse { step: usize },
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
    /// The row of B that each element of A is multiplied with, if A is not sparse.
    columns: Vec<u16>,
    /// The positions whose products are added in one step.
    steps: Vec<Vec<u16>>,
    /// The form that vector instructions compute.
    #[cfg(target_arch = "x86_64")]
    vectored: Option<Vectored>,
}

/// Selects the function of `mma` or `wmma.mma`.
pub fn select(i: &Instr) -> Option<Selected> {
    let shape = shape(i)?;
    let elements_of = element_types(i)?;
    let [d, a, _, c] = elements_of;
    let sparse = i.mods.has(Word::Sp) || i.mods.has(Word::SpOrderedMetadata);
    if (shape.m, shape.n, shape.k) == (8, 8, 4) && a == Element::F16 {
        return super::quad::select(i, c, d);
    }
    let count = |k| register_count(i, k);
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
                _ => shape.k,
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
    let registers = [count(0)?, count(1)?, count(2)?, count(3)?];
    let product = Multiply::new(shape, elements_of, registers, arithmetic, sparsity)?;
    Some(Selected {
        run: multiply,
        dsts: operand(0)?,
        srcs,
        address: None,
        detail: Detail::Multiply(Arc::new(product)),
    })
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn multiply(warp: &mut dyn Warp, operands: &Operands) -> Result<(), Box<LaneFault>> {
    let Detail::Multiply(m) = &operands.detail else {
        return Err(unexpected());
    };
    if m.elements[0] == Element::F64 {
        // SAFETY: upheld by the caller.
        unsafe { m.multiply_doubles(warp, operands) };
        return Ok(());
    }
    let file = warp.registers();
    let mut rows = [&[0; 32]; 3 * REGISTERS + 1];
    for (to, at) in rows.iter_mut().zip(&operands.src) {
        // SAFETY: `select` has chosen 32-bit slots. Nothing writes to the register file until the results are computed.
        *to = unsafe { &*file.add(*at as usize).cast() };
    }
    let columns = m.columns(rows[operands.src.len() - 1]);
    let mut results = [[0; 32]; REGISTERS];
    m.of_registers(&rows, columns.as_deref(), &mut results);
    for (&at, values) in operands.dst.iter().zip(&results) {
        // SAFETY: `select` has chosen 32-bit slots.
        unsafe { set_row(warp, at, values) };
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

/// The most registers of an operand.
pub const REGISTERS: usize = 8;

/// The most elements of a matrix of integers.
const INTEGERS: usize = 1024;

impl Multiply {
    /// The product of this shape. `elements` and `registers` are those of D, A, B and C; `None` if the registers do not hold the
    /// matrices.
    pub(super) fn new(
        shape: Shape,
        elements: [Element; 4],
        registers: [usize; 4],
        arithmetic: Arithmetic,
        sparsity: Option<Sparsity>,
    ) -> Option<Self> {
        let [d, a, b, c] = elements;
        let Shape { m, n, .. } = shape;
        let held = if sparsity.is_some() {
            shape.k / 2
        } else {
            shape.k
        };
        let axes = [
            Axes::of_accumulator(d, m, n),
            Axes::of_a(a, m, held),
            Axes::of_b(b, shape.k, n),
            Axes::of_accumulator(c, m, n),
        ];
        let most = match a {
            Element::F16 | Element::BF16 | Element::TF32 | Element::E4M3 | Element::E5M2 => MOST,
            _ => INTEGERS,
        };
        for (n, most) in [RESULTS, most, most, RESULTS].into_iter().enumerate() {
            let (area, held) = (axes[n].group * axes[n].depth, registers[n] * 32);
            // A lane holds half-precision matrices of `wmma` twice.
            let fits = area <= held * axes[n].packed && registers[n] <= REGISTERS;
            if !fits || area > most {
                return None;
            }
        }
        let fragment = |n: usize| Fragment::new(axes[n], registers[n], elements[n].bits());
        let terms = 0..axes[1].depth as u16;
        let steps = match arithmetic {
            Arithmetic::Aligned { step } | Arithmetic::Coarse { step } => {
                let all: Vec<u16> = terms.clone().collect();
                all.chunks(step).map(<[u16]>::to_vec).collect()
            }
            _ => {
                let (first, second) = terms.clone().partition(|k| k % 4 < 2);
                vec![first, second]
            }
        };
        Some(Self {
            elements,
            fragments: [fragment(0), fragment(1), fragment(2), fragment(3)],
            arithmetic,
            sparsity,
            columns: (0..shape.m).flat_map(|_| terms.clone()).collect(),
            steps,
            #[cfg(target_arch = "x86_64")]
            vectored: match sparsity {
                None => Vectored::new(shape, elements, registers, arithmetic),
                Some(_) => None,
            },
        })
    }

    /// Computes the registers of D from those of A, B and C. Of a sparse A, `columns` has what [`Self::columns`] returns.
    pub fn of_registers(
        &self,
        rows: &[&[u32; 32]],
        columns: Option<&[u16]>,
        results: &mut [[u32; 32]; REGISTERS],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.vector_results(rows, results) {
            return;
        }
        *results = self.general(rows, columns);
    }

    /// Computes the registers of D with the vector code, if there is one for this product and these numbers.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn vector_results(
        &self,
        rows: &[&[u32; 32]],
        results: &mut [[u32; 32]; REGISTERS],
    ) -> bool {
        let Some(vectored) = &self.vectored else {
            return false;
        };
        let [_, a, b, _] = &self.fragments;
        let (factors, accumulators) = rows.split_at(a.registers + b.registers);
        vectored.product(factors, accumulators, results)
    }

    /// As [`Self::of_registers`], without vector code for particular shapes.
    #[inline(never)]
    pub(super) fn general(
        &self,
        rows: &[&[u32; 32]],
        columns: Option<&[u16]>,
    ) -> [[u32; 32]; REGISTERS] {
        let mut copy = [[0; 32]; 3 * REGISTERS];
        for (to, from) in copy.iter_mut().zip(rows) {
            *to = **from;
        }
        self.product(&copy, columns.unwrap_or(&self.columns))
    }

    /// The row of B that each element of a sparse A is multiplied with; `None` if A is not sparse.
    pub fn columns(&self, metadata: &[u32; 32]) -> Option<Vec<u16>> {
        let sparsity = self.sparsity?;
        Some(sparsity.columns(&self.fragments[1], self.elements[1], metadata))
    }

    /// The registers of D from those of A, B and C. `columns` has the row of B that each element of A is multiplied with.
    fn product(&self, rows: &[[u32; 32]], columns: &[u16]) -> [[u32; 32]; REGISTERS] {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu_features::has_x86_64_v3() {
            // SAFETY: the machine has these features.
            return unsafe { self.product_v3(rows, columns) };
        }
        self.product_of(rows, columns)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    unsafe fn product_v3(&self, rows: &[[u32; 32]], columns: &[u16]) -> [[u32; 32]; REGISTERS] {
        self.product_of(rows, columns)
    }

    #[inline(always)]
    fn product_of(&self, rows: &[[u32; 32]], columns: &[u16]) -> [[u32; 32]; REGISTERS] {
        let [d, a, b, c] = &self.fragments;
        let (a_rows, rest) = rows.split_at(a.registers);
        let (b_rows, rest) = rest.split_at(b.registers);
        let c_rows = &rest[..c.registers];
        let result = match self.arithmetic {
            Arithmetic::Integer { saturate } => {
                self.integers(a_rows, b_rows, c_rows, columns, saturate)
            }
            Arithmetic::Count { and } => self.counts(a_rows, b_rows, c_rows, and),
            _ => self.sums(a_rows, b_rows, c_rows, columns),
        };
        let mut registers = [[0; 32]; REGISTERS];
        for (register, shift, lanes) in d.places() {
            for (at, word) in lanes.iter().zip(&mut registers[register]) {
                *word |= result[usize::from(*at) % RESULTS] << shift;
            }
        }
        registers
    }

    /// The elements of D whose sums are those of tensor cores.
    #[inline(always)]
    fn sums(
        &self,
        a_rows: &[[u32; 32]],
        b_rows: &[[u32; 32]],
        c_rows: &[[u32; 32]],
        columns: &[u16],
    ) -> [u32; RESULTS] {
        let [of_d, of_a, of_b, of_c] = self.elements;
        let [_, fragment_a, fragment_b, fragment_c] = &self.fragments;
        let (n, terms) = (fragment_b.columns, fragment_a.columns);
        let a = numbers(fragment_a, a_rows, of_a, of_a.format());
        let b = numbers(fragment_b, b_rows, of_b, of_b.format());
        // Accumulators of another type than the results are converted before, and the results after.
        let format = if of_c == of_d {
            of_d.format()
        } else {
            Format::F32
        };
        let c = numbers(fragment_c, c_rows, of_c, format);
        let eight = self.arithmetic == Arithmetic::Eight;
        let precision = match self.arithmetic {
            Arithmetic::Coarse { .. } => Precision::COARSE,
            _ => Precision::FINE,
        };
        let zeros = Numbers::zeros(format);
        let mut between = Numbers::zeros(format);
        let mut result = [0; RESULTS];
        for r in 0..fragment_a.rows {
            for column in (0..n).step_by(WIDE) {
                let sum = Sum {
                    a: &a,
                    a_from: r * terms,
                    row_of_b: &columns[r * terms..][..terms],
                    b: &b,
                    columns: n,
                    column,
                    precision,
                };
                let at = r * n + column;
                let (c_first, from) = if eight { (&zeros, 0) } else { (&c, at) };
                let mut bits = sum.rounded(&self.steps[0], c_first, from);
                for terms in &self.steps[1..] {
                    between.replace(&bits);
                    bits = sum.rounded(terms, &between, 0);
                }
                if eight {
                    for (j, bits) in bits.iter_mut().enumerate() {
                        *bits = nearest(format, format.value(*bits) + c.value(at + j));
                    }
                }
                if format != of_d.format() {
                    bits = bits.map(|bits| nearest(of_d.format(), format.value(bits)));
                }
                result[at..at + WIDE].copy_from_slice(&bits);
            }
        }
        result
    }

    #[inline(always)]
    fn integers(
        &self,
        a_rows: &[[u32; 32]],
        b_rows: &[[u32; 32]],
        c_rows: &[[u32; 32]],
        columns: &[u16],
        saturate: bool,
    ) -> [u32; RESULTS] {
        let [_, of_a, of_b, of_c] = self.elements;
        let [_, fragment_a, fragment_b, fragment_c] = &self.fragments;
        let (n, terms) = (fragment_b.columns, fragment_a.columns);
        let a = integers(fragment_a, a_rows, of_a);
        let b = integers(fragment_b, b_rows, of_b);
        let c = integers(fragment_c, c_rows, of_c);
        let mut result = [0; RESULTS];
        for r in 0..fragment_a.rows {
            for column in (0..n).step_by(WIDE) {
                // The products of 128 positions fit in 24 bits.
                let mut sum = [0i32; WIDE];
                for (k, row) in columns[r * terms..][..terms].iter().enumerate() {
                    let a = a[r * terms + k];
                    let b = b[usize::from(*row) * n + column..].first_chunk::<WIDE>();
                    for (sum, b) in sum.iter_mut().zip(b.into_iter().flatten()) {
                        *sum += a * b;
                    }
                }
                for (j, sum) in sum.into_iter().enumerate() {
                    let at = r * n + column + j;
                    let all = if saturate {
                        sum.saturating_add(c[at])
                    } else {
                        sum.wrapping_add(c[at])
                    };
                    result[at] = all.cast_unsigned();
                }
            }
        }
        result
    }

    #[inline(always)]
    fn counts(
        &self,
        a_rows: &[[u32; 32]],
        b_rows: &[[u32; 32]],
        c_rows: &[[u32; 32]],
        and: bool,
    ) -> [u32; RESULTS] {
        let [_, fragment_a, fragment_b, fragment_c] = &self.fragments;
        let (n, terms) = (fragment_b.columns, fragment_a.columns);
        let a = integers(fragment_a, a_rows, Element::Bits);
        let b = integers(fragment_b, b_rows, Element::Bits);
        let c = integers(fragment_c, c_rows, Element::S32);
        let mut result = [0; RESULTS];
        for (at, result) in result.iter_mut().enumerate().take(fragment_a.rows * n) {
            let (r, j) = (at / n, at % n);
            let count = |k: usize| {
                let (a, b) = (a[r * terms + k], b[k * n + j]);
                if and { a & b } else { a ^ b }.count_ones()
            };
            let sum: u32 = (0..terms).map(count).sum();
            *result = c[at].cast_unsigned().wrapping_add(sum);
        }
        result
    }

    /// Multiplies matrices in double precision: a fused multiply-add for each position, in order.
    ///
    /// # Safety
    /// As [`super::super::WarpFn`], for the operands that `select` chose.
    unsafe fn multiply_doubles(&self, warp: &mut dyn Warp, operands: &Operands) {
        let [d, a, b, c] = &self.fragments;
        let Arithmetic::Double(mode) = self.arithmetic else {
            return;
        };
        let mut sources = operands.src.iter();
        let mut read = |f: &Fragment| -> Vec<f64> {
            let registers: Vec<[u64; 32]> = sources
                .by_ref()
                .take(f.registers)
                // SAFETY: `select` has chosen 64-bit slots.
                .map(|at| unsafe { row_64(warp, *at) })
                .collect();
            f.unpack(&registers)
                .into_iter()
                .map(f64::from_bits)
                .collect()
        };
        let (a_values, b_values, c_values) = (read(a), read(b), read(c));
        let (n, terms) = (b.columns, a.columns);
        let mut result: Vec<u64> = Vec::with_capacity(c_values.len());
        for (at, c) in c_values.into_iter().enumerate() {
            let (r, j) = (at / n, at % n);
            let sum = (0..terms).fold(c, |sum, k| {
                let (a, b) = (a_values[r * terms + k], b_values[k * n + j]);
                let next = if mode == RN {
                    a.mul_add(b, sum)
                } else {
                    fma64(a, b, sum, mode)
                };
                payload64(next, [sum, b, a])
            });
            result.push(sum.to_bits());
        }
        for (&at, values) in operands.dst.iter().zip(&d.pack(&result)) {
            // SAFETY: `select` has chosen 64-bit slots.
            unsafe { set_row_64(warp, at, values) };
        }
    }
}

/// The most elements of D.
const RESULTS: usize = 256;

/// The numbers of a matrix, in a format that has room for them.
#[inline(always)]
fn numbers(f: &Fragment, registers: &[[u32; 32]], e: Element, format: Format) -> Numbers {
    let mut numbers = Numbers::zeros(format);
    let keep = u32::MAX >> (32 - f.bits());
    let widen = e == Element::F16 && format == Format::F32;
    for (register, shift, lanes) in f.places() {
        let mut bits = registers[register].map(|word| e.converted(word >> shift & keep));
        if widen {
            bits = bits.map(|bits| single_bits(Format::F16.value(bits)));
        }
        numbers.set(lanes, &bits);
    }
    numbers
}

/// The integers of a matrix.
#[inline(always)]
fn integers(f: &Fragment, registers: &[[u32; 32]], e: Element) -> [i32; INTEGERS] {
    let mut integers = [0; INTEGERS];
    for (register, shift, lanes) in f.places() {
        for (at, word) in lanes.iter().zip(&registers[register]) {
            integers[usize::from(*at) % INTEGERS] = e.integer(word >> shift);
        }
    }
    integers
}
