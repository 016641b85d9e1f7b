//! `wmma.load` and `wmma.store`: matrices between memory and the registers of a warp.

use std::sync::Arc;

use cupyrite_ptx::ir::{Instr, Type, Word};

use super::super::{Detail, Operands, Selected, Warp, row};
use super::element::{Element, element_type};
use super::fragment::{Axes, Fragment};
use super::multiply::{read_row, write_row};
use super::{elements, first_lane, register_count, shape, slot_type, unexpected};
use crate::fault::LaneFault;
use crate::semantics::lane::{OperandRef, OperandSlot};

/// A matrix in memory and its fragment.
#[derive(Debug)]
pub struct Tile {
    fragment: Fragment,
    element: Element,
    /// Bits of an element in memory.
    bits: usize,
    /// Whether rows are contiguous in memory, not columns.
    by_row: bool,
    /// Whether the stride is an operand. Otherwise the matrix is dense.
    strided: bool,
}

/// Selects the function.
pub fn select(i: &Instr) -> Option<Selected> {
    let has = |word| i.mods.has(word);
    let store = has(Word::Store);
    let (data, address) = if store { (1, 0) } else { (0, 1) };
    let shape = shape(i)?;
    let element = element_type(i)?;
    let registers = register_count(i, usize::from(data))?;
    let axes = if has(Word::A) {
        Axes::of_a(element, shape.m, shape.k)
    } else if has(Word::B) {
        Axes::of_b(element, shape.k, shape.n)
    } else {
        Axes::of_accumulator(element, shape.m, shape.n)
    };
    let list = elements(i, data, u8::try_from(registers).ok()?, slot_type(element))?;
    let strided = i.operands.len() > 2;
    let mut srcs = if store { list.clone() } else { Vec::new() };
    if strided {
        srcs.push(OperandSlot::new(OperandRef::Operand(2), Type::B32));
    }
    Some(Selected {
        run: if store { store_matrix } else { load_matrix },
        dsts: if store { Vec::new() } else { list },
        srcs,
        address: Some(address),
        detail: Detail::Tile(Arc::new(Tile {
            fragment: Fragment::new(axes, registers, element.bits()),
            element,
            bits: element.bits() as usize,
            by_row: has(Word::Row),
            strided,
        })),
    })
}

impl Tile {
    /// The rows, or columns, that are contiguous in memory: their number and the elements of each.
    fn lines(&self) -> (usize, usize) {
        let (rows, columns) = (self.fragment.rows, self.fragment.columns);
        if self.by_row {
            (rows, columns)
        } else {
            (columns, rows)
        }
    }

    /// Row-major index of element `n` of line `line`.
    fn index(&self, line: usize, n: usize) -> usize {
        if self.by_row {
            line * self.fragment.columns + n
        } else {
            n * self.fragment.columns + line
        }
    }

    /// Bytes from one line to the next. The stride operand is a number of elements; of `.b1`, of bits.
    ///
    /// # Safety
    /// The last source of `operands` is a 32-bit slot if there is a stride.
    unsafe fn pitch(&self, warp: &mut dyn Warp, operands: &Operands, lane: usize) -> u64 {
        let bits = match self.element {
            Element::Bits => 1,
            _ => self.bits as u64,
        };
        match operands.src.last() {
            // SAFETY: upheld by the caller.
            Some(&at) if self.strided => u64::from(unsafe { row(warp, at) }[lane]) * bits / 8,
            _ => (self.lines().1 * self.bits / 8) as u64,
        }
    }
}

/// Splits `[address, address + len)` into aligned accesses of 16 bytes, or of fewer where the address is aligned to fewer. Calls
/// `f` with the offset and size of each.
fn pieces(
    address: u64,
    len: usize,
    mut f: impl FnMut(usize, usize) -> Result<(), Box<LaneFault>>,
) -> Result<(), Box<LaneFault>> {
    let aligned = 1 << (address | len as u64 | 16).trailing_zeros();
    (0..len).step_by(aligned).try_for_each(|at| f(at, aligned))
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn load_matrix(warp: &mut dyn Warp, operands: &Operands) -> Result<(), Box<LaneFault>> {
    let Detail::Tile(tile) = &operands.detail else {
        return Err(unexpected());
    };
    // All lanes have the same address and stride (PTX ISA, "wmma.load").
    let lane = first_lane(warp);
    // SAFETY: `select` has chosen a 32-bit slot.
    let pitch = unsafe { tile.pitch(warp, operands, lane) };
    let address = warp.addresses()[lane];
    let (lines, length) = tile.lines();
    let mut matrix = vec![0; lines * length];
    let mut bytes = vec![0u8; length * tile.bits / 8];
    for line in 0..lines {
        let at = address.wrapping_add(line as u64 * pitch);
        pieces(at, bytes.len(), |offset, size| {
            let loaded = warp.load(lane, at.wrapping_add(offset as u64), size as u32)?;
            bytes[offset..offset + size].copy_from_slice(&loaded.to_le_bytes()[..size]);
            Ok(())
        })?;
        for n in 0..length {
            matrix[tile.index(line, n)] = element(&bytes, n, tile.bits);
        }
    }
    let registers = tile.fragment.pack(&matrix);
    for (&at, values) in operands.dst.iter().zip(&registers) {
        // SAFETY: `select` has chosen slots of this width.
        unsafe { write_row(warp, at, tile.element, values) };
    }
    Ok(())
}

/// Element `n` of a line.
fn element(bytes: &[u8], n: usize, bits: usize) -> u64 {
    if bits == 4 {
        return u64::from(bytes[n / 2] >> (4 * (n % 2)) & 15);
    }
    let size = bits / 8;
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[n * size..][..size]);
    u64::from_le_bytes(word)
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn store_matrix(warp: &mut dyn Warp, operands: &Operands) -> Result<(), Box<LaneFault>> {
    let Detail::Tile(tile) = &operands.detail else {
        return Err(unexpected());
    };
    // All lanes have the same address and stride (PTX ISA, "wmma.load").
    let lane = first_lane(warp);
    // SAFETY: `select` has chosen a 32-bit slot.
    let pitch = unsafe { tile.pitch(warp, operands, lane) };
    let address = warp.addresses()[lane];
    let sources = operands.src.iter().take(tile.fragment.registers);
    let registers: Vec<[u64; 32]> = sources
        // SAFETY: `select` has chosen slots of this width.
        .map(|at| unsafe { read_row(warp, *at, tile.element) })
        .collect();
    let matrix = tile.fragment.unpack(&registers);
    let (lines, length) = tile.lines();
    let size = tile.bits / 8;
    let mut bytes = Vec::with_capacity(length * size);
    for line in 0..lines {
        bytes.clear();
        for n in 0..length {
            bytes.extend_from_slice(&matrix[tile.index(line, n)].to_le_bytes()[..size]);
        }
        let at = address.wrapping_add(line as u64 * pitch);
        pieces(at, bytes.len(), |offset, size| {
            let mut word = [0; 16];
            word[..size].copy_from_slice(&bytes[offset..offset + size]);
            let at = at.wrapping_add(offset as u64);
            warp.store(lane, at, size as u32, u128::from_le_bytes(word))
        })?;
    }
    Ok(())
}
