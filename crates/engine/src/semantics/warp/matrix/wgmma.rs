//! `wgmma`: products of the four warps of a warpgroup, of matrices in shared memory.
//!
//! Each warp computes 16 rows of the result, eight columns at a time, as `mma` and `mma.sp` do. A product is complete when its last warp
//! has issued it, for which the others wait, so that fences, groups and waits have nothing to do.

use std::sync::Arc;

use cupyrite_ptx::ir::{Instr, Operand, Type, Word};

use super::super::{Detail, Operands, Selected, Warp, mask, row, row_64, set_row};
use super::element::{Element, element_types};
use super::multiply::{Arithmetic, Multiply, REGISTERS};
use super::sparse::Sparsity;
use super::tile::{pack, transposed};
use super::{Shape, elements, first_lane, register_count, shape, slot_type, unexpected};
use crate::fault::{FaultDetail, FaultKind, LaneFault};
use crate::semantics::lane::{OperandRef, OperandSlot};

/// A product with its operands.
#[derive(Debug)]
pub struct Warpgroup {
    /// The product of 16 rows and eight columns.
    product: Multiply,
    /// Registers of D that hold eight columns.
    registers_of_eight: usize,
    /// Whether A is in registers, not in shared memory.
    a_in_registers: bool,
    /// Whether A is M-major and B is N-major; otherwise, they are K-major.
    transposed: [bool; 2],
    /// The bits of A that change if the products are negated.
    sign: u32,
    /// Whether the predicate is negated that says whether to add to D.
    add_if_false: bool,
    /// Whether A is sparse, with metadata in a register. B has then 64 bytes of a column, otherwise 32.
    sparse: bool,
}

/// Selects the function.
pub fn select(i: &Instr) -> Option<Selected> {
    if !i.mods.has(Word::MmaAsync) {
        return Some(Selected {
            run: nothing,
            dsts: Vec::new(),
            srcs: Vec::new(),
            address: None,
            detail: Detail::None,
        });
    }
    let shape = shape(i)?;
    let [d, a, b, _] = element_types(i)?;
    let registers = register_count(i, 0)?;
    let a_in_registers = matches!(i.operands.get(1), Some(Operand::Vector(_)));
    let sparse = i.mods.has(Word::Sp);
    // The metadata and its selector stand before the predicate.
    let predicate = if sparse { 5 } else { 3 };
    let immediates: Vec<i64> = i
        .operands
        .get(predicate + 1..)?
        .iter()
        .map(|o| match o {
            Operand::Int(v) => Some(*v),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let half = matches!(a, Element::F16 | Element::BF16);
    let integer = matches!(a, Element::S8 | Element::U8 | Element::Bits);
    let (signs, transposed) = match (&immediates[..], a_in_registers) {
        ([], _) if integer => ([1, 1], [0, 0]),
        (&[a, b], _) if !half && !integer => ([a, b], [0, 0]),
        (&[a, b, of_b], true) if half => ([a, b], [0, of_b]),
        (&[a, b, of_a, of_b], false) if half => ([a, b], [of_a, of_b]),
        _ => return None,
    };
    if signs.iter().any(|s| s.abs() != 1) || transposed.iter().any(|t| !(0..=1).contains(t)) {
        return None;
    }
    let negative = signs[0] != signs[1];
    let sign = match a {
        Element::F16 | Element::BF16 => 0x8000_8000,
        Element::E4M3 | Element::E5M2 => 0x8080_8080,
        _ => 0x8000_0000,
    };
    let sparsity = match (sparse, i.operands.get(4)) {
        (false, _) => None,
        (true, Some(Operand::Int(selector))) => Some(Sparsity {
            selector: usize::try_from(*selector).ok()?,
            group: if a == Element::TF32 { 2 } else { 4 },
        }),
        (true, _) => return None,
    };
    let arithmetic = match a {
        Element::E4M3 | Element::E5M2 => Arithmetic::Coarse { step: shape.k },
        Element::Bits => Arithmetic::Count { and: true },
        Element::S8 | Element::U8 => Arithmetic::Integer {
            saturate: i.mods.satfinite,
        },
        _ => Arithmetic::Aligned { step: shape.k },
    };
    let of_warp = Shape {
        m: 16,
        n: 8,
        k: shape.k,
    };
    let of_d = if d == Element::F16 { 2 } else { 4 };
    let of_b = if sparse { 4 } else { 2 };
    let product = Multiply::new(
        of_warp,
        [d, a, b, d],
        [of_d, 4, of_b, of_d],
        arithmetic,
        sparsity,
    )?;
    if registers * 8 != shape.n * of_d {
        return None;
    }
    let dsts = elements(i, 0, u8::try_from(registers).ok()?, slot_type(d))?;
    let operand = |k, ty| OperandSlot::new(OperandRef::Operand(k), ty);
    let mut srcs = vec![operand(predicate as u8, Type::Pred), operand(2, Type::B64)];
    if sparse {
        srcs.push(operand(3, Type::B32));
    }
    if a_in_registers {
        srcs.extend(elements(i, 1, 4, Type::B32)?);
    } else {
        srcs.push(operand(1, Type::B64));
    }
    srcs.extend(dsts.iter().copied());
    Some(Selected {
        run: multiply,
        dsts,
        srcs,
        address: None,
        detail: Detail::Warpgroup(Arc::new(Warpgroup {
            product,
            registers_of_eight: of_d,
            a_in_registers,
            transposed: transposed.map(|t| t == 1),
            sign: if negative { sign } else { 0 },
            add_if_false: matches!(i.operands.get(predicate), Some(Operand::NotReg(_))),
            sparse,
        })),
    })
}

/// # Safety
/// Accesses nothing.
unsafe fn nothing(_: &mut dyn Warp, _: &Operands) -> Result<(), Box<LaneFault>> {
    Ok(())
}

/// The descriptor of a matrix in shared memory (PTX ISA, "Matrix Descriptor Format").
#[derive(Clone, Copy)]
struct Matrix {
    start: u64,
    leading: u64,
    stride: u64,
    /// Width of the swizzle in bytes; zero without one.
    swizzle: u64,
    transposed: bool,
    /// The lane that the descriptor is from.
    lane: usize,
}

impl Matrix {
    fn new(bits: u64, transposed: bool, lane: usize) -> Result<Self, Box<LaneFault>> {
        if bits >> 49 & 7 != 0 {
            return Err(Box::new(LaneFault {
                kind: FaultKind::IllegalInstruction,
                lane: lane as u32,
                detail: FaultDetail::Text(
                    "the CPU device does not implement the base offset of a matrix descriptor: align the matrix to its swizzle"
                        .to_string(),
                ),
            }));
        }
        let field = |at: u32| (bits >> at & 0x3fff) << 4;
        Ok(Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            swizzle: match bits >> 62 {
                1 => 128,
                2 => 64,
                3 => 32,
                _ => 0,
            },
            transposed,
            lane,
        })
    }

    /// Address of 16 bytes. Of a K-major matrix: part `part` of row `along` of A, or of column `along` of B. Otherwise: the eight
    /// elements from `along` on in column `part` of A, or in row `part` of B.
    fn address(&self, along: u64, part: u64) -> u64 {
        let &Self {
            leading,
            stride,
            swizzle,
            ..
        } = self;
        let offset = match (self.transposed, swizzle) {
            (false, 0) => along / 8 * stride + part * leading + along % 8 * 16,
            (false, _) => {
                let of_swizzle = swizzle / 16;
                let line = along / 8 * stride + along % 8 * swizzle;
                line + part % of_swizzle * 16 + part / of_swizzle * leading
            }
            (true, 0) => along / 8 * stride + part / 8 * leading + part % 8 * 16,
            (true, _) => {
                let (unit, of_swizzle) = (along / 8, swizzle / 16);
                unit % of_swizzle * 16
                    + unit / of_swizzle * leading
                    + part % 8 * swizzle
                    + part / 8 * stride
            }
        };
        let address = self.start + offset;
        // The bits of the address above 128 bytes change those above 16.
        let mask = (swizzle / 16).saturating_sub(1);
        address ^ (address >> 7 & mask) << 4
    }

    /// Loads the registers of the rows of A, or columns of B, from `from` on: eight of them, 16 bytes of each in a register.
    fn load(
        &self,
        warp: &mut dyn Warp,
        from: u64,
        registers: &mut [[u32; 32]],
    ) -> Result<(), Box<LaneFault>> {
        // Sorted by register, then by line.
        let mut addresses = [0; 32];
        let mut lines = [0u128; 32];
        let count = (8 * registers.len()).min(32);
        for (n, address) in addresses[..count].iter_mut().enumerate() {
            *address = match self.transposed {
                true => self.address(from, n as u64),
                false => self.address(from + n as u64 % 8, n as u64 / 8),
            };
        }
        let (addresses, lines) = (&addresses[..count], &mut lines[..count]);
        if !warp.load_shared(addresses, lines) {
            for (address, line) in addresses.iter().zip(&mut *lines) {
                *line = warp.load(self.lane, *address, 16)?;
            }
        }
        for (register, lines) in registers.iter_mut().zip(lines.as_chunks::<8>().0) {
            *register = match self.transposed {
                true => pack(&transposed(lines)),
                false => pack(lines),
            };
        }
        Ok(())
    }
}

/// # Safety
/// As [`super::super::WarpFn`].
unsafe fn multiply(warp: &mut dyn Warp, operands: &Operands) -> Result<(), Box<LaneFault>> {
    let Detail::Warpgroup(of) = &operands.detail else {
        return Err(unexpected());
    };
    let first = first_lane(warp);
    let [add, b, rest @ ..] = &operands.src[..] else {
        return Err(unexpected());
    };
    let (metadata, rest) = rest.split_at(usize::from(of.sparse));
    let (a, d) = rest.split_at(if of.a_in_registers { 4 } else { 1 });
    // SAFETY: `select` has chosen a predicate, and a slot of 64 bits.
    let (add, b) = unsafe { (mask(warp, *add), row_64(warp, *b)[first]) };
    let add = (add >> first & 1 != 0) != of.add_if_false;
    let [a_transposed, b_transposed] = of.transposed;
    let b = Matrix::new(b, b_transposed, first)?;
    let registers_of_b = if of.sparse { 4 } else { 2 };
    let at_d = 4 + registers_of_b;
    let mut rows = [[0; 32]; 4 + 4 + 4];
    if of.a_in_registers {
        for (to, at) in rows.iter_mut().zip(a) {
            // SAFETY: `select` has chosen 32-bit slots.
            *to = unsafe { row(warp, *at) };
        }
    } else {
        // SAFETY: `select` has chosen a 64-bit slot.
        let a = Matrix::new(unsafe { row_64(warp, a[0]) }[first], a_transposed, first)?;
        let from = u64::from(warp.rank() % 4) * 16;
        for half in 0..2 {
            let mut registers = [[0; 32]; 2];
            a.load(warp, from + 8 * half as u64, &mut registers)?;
            (rows[half], rows[half + 2]) = (registers[0], registers[1]);
        }
    }
    for word in rows[..4].iter_mut().flatten() {
        *word ^= of.sign;
    }
    // SAFETY: `select` has chosen a 32-bit slot.
    let metadata = metadata.first().map(|at| unsafe { row(warp, *at) });
    let columns = metadata.and_then(|m| of.product.columns(&m));
    let mut results: Vec<[u32; 32]> = Vec::with_capacity(d.len());
    let mut product = [[0; 32]; REGISTERS];
    for (n, d) in d.chunks(of.registers_of_eight).enumerate() {
        b.load(warp, 8 * n as u64, &mut rows[4..at_d])?;
        for (to, at) in rows[at_d..].iter_mut().zip(d) {
            *to = if add {
                // SAFETY: `select` has chosen 32-bit slots.
                unsafe { row(warp, *at) }
            } else {
                [0; 32]
            };
        }
        of.product
            .of_registers(&rows.each_ref(), columns.as_deref(), &mut product);
        results.extend(&product[..d.len()]);
    }
    for (&at, values) in operands.dst.iter().zip(&results) {
        // SAFETY: `select` has chosen 32-bit slots.
        unsafe { set_row(warp, at, values) };
    }
    Ok(())
}
