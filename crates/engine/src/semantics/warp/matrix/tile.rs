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

/// The elements of a matrix, by row and column.
fn unpack(register: &[u32; 32]) -> [[u32; 8]; 8] {
    std::array::from_fn(|r| {
        std::array::from_fn(|c| register[4 * r + c / 2] >> (16 * (c % 2)) & 0xffff)
    })
}

/// The register that holds a matrix.
fn pack(matrix: &[[u32; 8]; 8]) -> [u32; 32] {
    std::array::from_fn(|l| {
        let pair = &matrix[l / 4][2 * (l % 4)..][..2];
        pair[0] | pair[1] << 16
    })
}

fn transposed(matrix: &[[u32; 8]; 8]) -> [[u32; 8]; 8] {
    std::array::from_fn(|r| std::array::from_fn(|c| matrix[c][r]))
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
    // The results are written last: the address may be in one of their registers.
    let mut results = vec![[0u32; 32]; operands.dst.len()];
    for (matrix, result) in results.iter_mut().enumerate() {
        // Eight lanes hold the addresses of the rows.
        let mut rows = [0u128; 8];
        for (r, to) in rows.iter_mut().enumerate() {
            let lane = 8 * matrix + r;
            // A lane that has exited has no address.
            if warp.active() >> lane & 1 != 0 {
                *to = warp.load(lane, addresses[lane], 16)?;
            }
        }
        let element = |r: usize, c: usize| (rows[r] >> (16 * c)) as u32 & 0xffff;
        for (l, to) in result.iter_mut().enumerate() {
            let (group, place) = (l / 4, 2 * (l % 4));
            let pair = [place, place + 1].map(|c| match TRANSPOSED {
                true => element(c, group),
                false => element(group, c),
            });
            *to = pair[0] | pair[1] << 16;
        }
    }
    for (&at, result) in operands.dst.iter().zip(&results) {
        // SAFETY: `load` has chosen 32-bit slots.
        unsafe { set_row(warp, at, result) };
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
        for (r, elements) in matrix.iter().enumerate() {
            let lane = 8 * n + r;
            if warp.active() >> lane & 1 == 0 {
                continue;
            }
            let element = |(c, v): (usize, &u32)| u128::from(*v) << (16 * c);
            let bits = elements.iter().enumerate().map(element).sum();
            warp.store(lane, addresses[lane], 16, bits)?;
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
