//! `mma.m8n8k4` of half-precision matrices: four products, each of the lanes of two quads, 16 lanes apart (PTX ISA, "Matrix
//! Fragments for mma.m8n8k4 with .f16 floating point type").

use cupyrite_ptx::ir::{Instr, Type, Word};
use half::f16;

use super::super::{Detail, Operands, Selected, Warp, row, set_row};
use super::element::Element;
use super::float::{half_bits, single_bits};
use super::{elements, slot_type, unexpected};
use crate::fault::LaneFault;

/// The layouts of A and B, and the accumulators.
#[derive(Clone, Copy, Debug)]
pub struct QuadPairs {
    a_by_row: bool,
    b_by_row: bool,
    c: Element,
    d: Element,
}

/// Selects the function.
pub fn select(i: &Instr, c: Element, d: Element) -> Option<Selected> {
    let layouts = i.mods.other.iter();
    let mut layouts = layouts.filter(|w| matches!(w, Word::Row | Word::Col));
    let a_by_row = *layouts.next()? == Word::Row;
    let b_by_row = *layouts.next()? == Word::Row;
    let registers = |e: Element| if e == Element::F16 { 4 } else { 8 };
    let mut srcs = elements(i, 1, 2, Type::B32)?;
    srcs.extend(elements(i, 2, 2, Type::B32)?);
    srcs.extend(elements(i, 3, registers(c), slot_type(c))?);
    Some(Selected {
        run: multiply,
        dsts: elements(i, 0, registers(d), slot_type(d))?,
        srcs,
        address: None,
        detail: Detail::QuadPairs(QuadPairs {
            a_by_row,
            b_by_row,
            c,
            d,
        }),
    })
}

/// Row and column of element `n` of a lane's accumulators.
fn place(e: Element, lane: usize, n: usize) -> (usize, usize) {
    let upper = lane / 16 * 4;
    match e {
        Element::F16 => (lane % 4 + upper, n),
        _ => ((lane & 1) + (n & 2) + upper, (n & 4) + (lane & 2) + (n & 1)),
    }
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn multiply(warp: &mut dyn Warp, operands: &Operands) -> Result<(), Box<LaneFault>> {
    let Detail::QuadPairs(q) = operands.detail else {
        return Err(unexpected());
    };
    let sources = operands.src.iter();
    // SAFETY: `select` has chosen 32-bit slots.
    let rows: Vec<[u32; 32]> = sources.map(|at| unsafe { row(warp, *at) }).collect();
    let half = |word: u32, n: usize| f16::from_bits((word >> (16 * (n % 2))) as u16).to_f32();
    let (mut a, mut b, mut c) = (
        [[[0f32; 4]; 8]; 4],
        [[[0f32; 8]; 4]; 4],
        [[[0f32; 8]; 8]; 4],
    );
    for lane in 0..32 {
        let (quad, upper) = (lane % 16 / 4, lane / 16 * 4);
        for n in 0..4 {
            let v = half(rows[n / 2][lane], n);
            if q.a_by_row {
                a[quad][lane % 4 + upper][n] = v;
            } else {
                a[quad][n + upper][lane % 4] = v;
            }
            let v = half(rows[2 + n / 2][lane], n);
            if q.b_by_row {
                b[quad][lane % 4][n + upper] = v;
            } else {
                b[quad][n][lane % 4 + upper] = v;
            }
        }
        for n in 0..8 {
            let (r, j) = place(q.c, lane, n);
            c[quad][r][j] = match q.c {
                Element::F16 => half(rows[4 + n / 2][lane], n),
                _ => f32::from_bits(rows[4 + n][lane]),
            };
        }
    }
    // An H100 multiplies and adds in single precision, in these orders.
    let result = |lane: usize, n: usize| {
        let (quad, (r, j)) = (lane % 16 / 4, place(q.d, lane, n));
        let (a, b, c) = (a[quad][r], b[quad].map(|row| row[j]), c[quad][r][j]);
        if q.d == Element::F16 {
            let first = a[1].mul_add(b[1], a[0] * b[0]);
            let second = a[3].mul_add(b[3], a[2] * b[2]);
            half_bits(f64::from(first + c + second))
        } else {
            let sum = (0..4).fold(0.0, |sum, k| a[k].mul_add(b[k], sum));
            single_bits(f64::from(sum + c))
        }
    };
    let registers = 0..operands.dst.len();
    let out: Vec<[u32; 32]> = registers
        .map(|n| {
            std::array::from_fn(|lane| match q.d {
                Element::F16 => result(lane, 2 * n) | result(lane, 2 * n + 1) << 16,
                _ => result(lane, n),
            })
        })
        .collect();
    for (&at, values) in operands.dst.iter().zip(&out) {
        // SAFETY: `select` has chosen 32-bit slots.
        unsafe { set_row(warp, at, values) };
    }
    Ok(())
}
