//! Matrices of 8 by 8 elements of 16 bits in a register of a warp: `ldmatrix`, `stmatrix`, `movmatrix`.
//!
//! Lane `l` holds elements `2 * (l % 4)` and the next of row `l / 4`.

use cupyrite_ptx::ir::{Instr, Type, Word};

use super::super::{Detail, Operands, Selected, Warp, row, set_row};
use super::elements;
use crate::fault::LaneFault;

/// The number of matrices of an instruction on matrices of 8 by 8 elements of 16 bits; `None` for another shape.
fn count(i: &Instr) -> Option<u8> {
    let has = |word| i.mods.has(word);
    let count = [(Word::X1, 1), (Word::X2, 2), (Word::X4, 4)];
    let (_, count) = count.into_iter().find(|(word, _)| has(*word))?;
    (has(Word::M8n8) && i.types[..] == [Type::B16]).then_some(count)
}

/// The rows of a matrix: eight elements each.
pub type Lines = [u128; 8];

/// The rows of the matrix in a register.
fn unpack(register: &[u32; 32]) -> Lines {
    std::array::from_fn(|r| {
        let words = register[4 * r..][..4].iter().rev();
        words.fold(0, |row, word| row << 32 | u128::from(*word))
    })
}

/// The register that holds a matrix.
#[inline]
pub fn pack(rows: &Lines) -> [u32; 32] {
    std::array::from_fn(|l| (rows[l / 4] >> (32 * (l % 4))) as u32)
}

/// The columns of a matrix.
#[cfg(target_arch = "x86_64")]
pub fn transposed(rows: &Lines) -> Lines {
    use std::arch::x86_64::*;
    let mut columns: Lines = [0; 8];
    // SAFETY: every x86-64 has SSE2; a row and a column have the size of a vector.
    unsafe {
        let load = |n: usize| _mm_loadu_si128((&raw const rows[n]).cast());
        // Pairs of rows: the first and the last four elements.
        let mut pairs = [[_mm_setzero_si128(); 2]; 4];
        for (n, pairs) in pairs.iter_mut().enumerate() {
            let (i, j) = (load(2 * n), load(2 * n + 1));
            *pairs = [_mm_unpacklo_epi16(i, j), _mm_unpackhi_epi16(i, j)];
        }
        for (n, columns) in columns.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let (half, high) = (n / 2, n % 2 != 0);
            let [a, b, c, d] = pairs;
            let (a, b, c, d) = (a[half], b[half], c[half], d[half]);
            let (upper, lower) = if high {
                (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d))
            } else {
                (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d))
            };
            let [i, j] = columns;
            _mm_storeu_si128((&raw mut *i).cast(), _mm_unpacklo_epi64(upper, lower));
            _mm_storeu_si128((&raw mut *j).cast(), _mm_unpackhi_epi64(upper, lower));
        }
    }
    columns
}

/// The columns of a matrix.
#[cfg(not(target_arch = "x86_64"))]
pub fn transposed(rows: &Lines) -> Lines {
    std::array::from_fn(|c| {
        let elements = rows.iter().rev().map(|row| row >> (16 * c) & 0xffff);
        elements.fold(0, |column, element| column << 16 | element)
    })
}

/// Selects the function of `ldmatrix`.
pub fn load(i: &Instr) -> Option<Selected> {
    let count = count(i)?;
    Some(Selected {
        run: if i.mods.has(Word::Trans) {
            load_matrices::<true>
        } else {
            load_matrices::<false>
        },
        dsts: elements(i, 0, count, Type::B32)?,
        srcs: Vec::new(),
        address: Some(1),
        detail: Detail::None,
    })
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn load_matrices<const TRANSPOSED: bool>(
    warp: &mut dyn Warp,
    operands: &Operands,
) -> Result<(), Box<LaneFault>> {
    let addresses = *warp.addresses();
    let count = operands.dst.len().min(4);
    // Eight lanes hold the addresses of the rows of a matrix.
    let mut rows = [0u128; 32];
    let rows = &mut rows[..8 * count];
    let all = warp.active().trailing_ones() as usize >= rows.len();
    if !(all && warp.load_shared(&addresses[..rows.len()], rows)) {
        for (lane, to) in rows.iter_mut().enumerate() {
            // A lane that has exited has no address.
            if warp.active() >> lane & 1 != 0 {
                *to = warp.load(lane, addresses[lane], 16)?;
            }
        }
    }
    for (&at, rows) in operands.dst.iter().zip(rows.as_chunks::<8>().0) {
        let register = match TRANSPOSED {
            true => pack(&transposed(rows)),
            false => pack(rows),
        };
        // SAFETY: `load` has chosen 32-bit slots.
        unsafe { set_row(warp, at, &register) };
    }
    Ok(())
}

/// Selects the function of `stmatrix`.
pub fn store(i: &Instr) -> Option<Selected> {
    let count = count(i)?;
    Some(Selected {
        run: if i.mods.has(Word::Trans) {
            store_matrices::<true>
        } else {
            store_matrices::<false>
        },
        dsts: Vec::new(),
        srcs: elements(i, 1, count, Type::B32)?,
        address: Some(0),
        detail: Detail::None,
    })
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn store_matrices<const TRANSPOSED: bool>(
    warp: &mut dyn Warp,
    operands: &Operands,
) -> Result<(), Box<LaneFault>> {
    let addresses = *warp.addresses();
    for (n, &at) in operands.src.iter().enumerate() {
        // SAFETY: `store` has chosen 32-bit slots.
        let mut matrix = unpack(&unsafe { row(warp, at) });
        if TRANSPOSED {
            matrix = transposed(&matrix);
        }
        // Eight lanes hold the addresses of the rows.
        for (r, elements) in matrix.into_iter().enumerate() {
            let lane = 8 * n + r;
            if warp.active() >> lane & 1 != 0 {
                warp.store(lane, addresses[lane], 16, elements)?;
            }
        }
    }
    Ok(())
}

/// Selects the function of `movmatrix`.
pub fn transpose(i: &Instr) -> Option<Selected> {
    (i.mods.has(Word::M8n8) && i.types[..] == [Type::B16]).then_some(())?;
    Some(Selected {
        run: transpose_matrix,
        dsts: elements(i, 0, 1, Type::B32)?,
        srcs: elements(i, 1, 1, Type::B32)?,
        address: None,
        detail: Detail::None,
    })
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn transpose_matrix(warp: &mut dyn Warp, operands: &Operands) -> Result<(), Box<LaneFault>> {
    if let (&[to], &[from]) = (&operands.dst[..], &operands.src[..]) {
        // SAFETY: `transpose` has chosen 32-bit slots.
        unsafe {
            let matrix = transposed(&unpack(&row(warp, from)));
            set_row(warp, to, &pack(&matrix));
        }
    }
    Ok(())
}
