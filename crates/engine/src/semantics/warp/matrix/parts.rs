//! A product as products of 16 by 8 results, of registers that hold eight lines of 16 bytes.
//!
//! A register of a factor holds 16 bytes of eight rows of A, or of eight columns of B, line by line: the fragments of all
//! shapes consist of such registers (see [`super::fragment`]). Only products of 8 by 32 results differ: they are those of the
//! transposed matrices.

use super::Shape;
use super::element::Element;
use super::multiply::Arithmetic;

/// A register that a part does not have: its elements are zeros.
pub const NONE: u8 = u8::MAX;

/// The registers of 16 by 8 results, by position among the registers of A, B and C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Of A: rows 0 to 7 and 8 to 15 of the first 16 bytes of a row, then of the second.
    pub a: [u8; 4],
    /// Of B: the first and the second 16 bytes of a column.
    pub b: [u8; 2],
    /// Of the results and of the accumulators, relative to the first register of D and C: rows 0 to 7, then the others.
    pub d: [u8; 4],
    /// Whether the accumulators are the results of the part before.
    pub is_continued: bool,
}

/// The parts of a product; `None` if it does not consist of them. `registers` are those of A, B, C and D.
pub fn parts(
    shape: Shape,
    elements: [Element; 4],
    arithmetic: Arithmetic,
    registers: [usize; 4],
) -> Option<Vec<Part>> {
    let [d, a, b, c] = elements;
    let step = match arithmetic {
        Arithmetic::Aligned { step } => step,
        Arithmetic::Integer { .. } => shape.k,
        _ => return None,
    };
    // Registers along K: one or two.
    let bytes = shape.k * a.bits() as usize / 8;
    let deep = bytes / 16;
    let is_continued = step != shape.k;
    let fits = bytes == 16 * deep && (deep == 1 || deep == 2) && (!is_continued || deep == 2);
    if a.bits() != b.bits() || c != d || !fits {
        return None;
    }
    let of_results = if d == Element::F16 { 2 } else { 4 };
    let (wide, long) = match (shape.m, shape.n) {
        (8, 8) if of_results == 4 => (1, 1),
        (16, 8) => (1, 1),
        (16, 16) => (1, 2),
        (32, 8) | (8, 32) => (2, 1),
        _ => return None,
    };
    let [of_a, of_b, ..] = registers;
    let (mut a_from, mut b_from) = (0, of_a);
    if shape.n == 32 {
        (a_from, b_from) = (of_a, 0);
    }
    let at = |n: usize| n as u8;
    let mut parts = Vec::new();
    for (i, j) in (0..wide).flat_map(|i| (0..long).map(move |j| (i, j))) {
        let (a, b) = (a_from + 2 * deep * i, b_from + deep * j);
        let first = of_results * (i + j);
        let mut part = Part {
            a: [at(a), at(a + 1), NONE, NONE],
            b: [at(b), NONE],
            d: [0, 1, 2, 3].map(|n| if n < of_results { at(first + n) } else { NONE }),
            is_continued: false,
        };
        if shape.m == 8 && shape.n == 8 {
            if deep != 1 {
                return None;
            }
            (part.a[1], part.d[2], part.d[3]) = (NONE, NONE, NONE);
        }
        if is_continued {
            parts.push(part);
            let a = [at(a + 2), at(a + 3), NONE, NONE];
            let b = [at(b + 1), NONE];
            parts.push(Part {
                a,
                b,
                is_continued,
                ..part
            });
        } else {
            if deep == 2 {
                (part.a[2], part.a[3], part.b[1]) = (at(a + 2), at(a + 3), at(b + 1));
            }
            parts.push(part);
        }
    }
    let results = parts.iter().flat_map(|p| p.d).filter(|n| *n != NONE);
    let enough = results.max().map(usize::from) < Some(registers[2].min(registers[3]));
    let factors = parts.iter().flat_map(|p| p.a.into_iter().chain(p.b));
    let last = factors.filter(|n| *n != NONE).max().map(usize::from);
    (enough && last < Some(of_a + of_b)).then_some(parts)
}
