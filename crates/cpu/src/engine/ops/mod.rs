//! What every arithmetic, logic, comparison, selection and conversion instruction of PTX computes.
//!
//! Belongs here: value functions over the 32 lanes of a warp. Does not belong here: control flow, memory,
//! special registers, anything that looks at more than one lane.
//!
//! # Register file
//!
//! A warp's register file is one block of bytes, aligned to 64. A register is a *slot* in it ([`Slot`]):
//!
//! | slot   | bytes | contents                                                                 |
//! |--------|-------|--------------------------------------------------------------------------|
//! | `Pred` | 4     | one `u32`, bit n is lane n                                               |
//! | `R32`  | 128   | 32 × `u32`; 8- and 16-bit registers live here, zero-extended             |
//! | `R64`  | 256   | 32 × `u64`                                                               |
//! | `R128` | 512   | 32 × `u128`                                                              |
//!
//! Immediates are slots that the decoder filled beforehand ([`immediate`] gives the element). A destination may
//! be the same slot as a source, but slots never overlap otherwise. A sink (`_`) is a scratch slot.
//!
//! # Two code versions
//!
//! Every function is compiled for the baseline of the architecture and, on x86-64, for `x86-64-v3` (AVX2, FMA);
//! [`select`] answers with the one this machine can run. Both give the same bits.

mod blend;
mod compare;
mod convert;
mod float;
mod formats;
mod half;
mod integer;
mod lanes;
mod logic;
mod math;
mod rounding;
#[cfg(test)]
mod tests;
mod video;

use lanes::Code;

use cupyrite_ptx::ir::{Instr, Operand, Register, Type};

/// Computes one instruction for all lanes of `mask`.
///
/// The vector form ([`Selected::run`]) computes the 32 lanes and stores those in `mask`; others keep their value.
/// The uniform form ([`Selected::uniform`]) reads and writes lane 0 only (the first element of each slot) and
/// ignores `mask`; a predicate source is its bit 0, a predicate result is written as all ones or zero.
///
/// # Safety
///
/// `regs` is aligned to 64 bytes; every offset in `args` that [`Selected`] names is a multiple of the element size and lies, with the
/// whole slot, inside the register file; no other thread touches the register file meanwhile.
pub type OpFn = unsafe fn(regs: *mut u8, args: &OpArgs, mask: u32);

/// Where an [`OpFn`] finds its operands: byte offsets into the register file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpArgs {
    /// Destinations, as [`Selected::dsts`] lists them.
    pub dst: [u32; 4],
    /// Sources, as [`Selected::srcs`] lists them.
    pub src: [u32; 4],
    /// [`Selected::imm`].
    pub imm: u32,
}

/// The shape of a register's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// A lane mask: 4 bytes.
    Pred,
    /// 32 × `u32`: 128 bytes.
    R32,
    /// 32 × `u64`: 256 bytes.
    R64,
    /// 32 × `u128`: 512 bytes.
    R128,
}

impl Slot {
    /// The slot of a register declared with `ty`.
    pub const fn of(ty: Type) -> Slot {
        match ty {
            Type::Pred => Slot::Pred,
            _ => match ty.bits() {
                0..=32 => Slot::R32,
                33..=64 => Slot::R64,
                _ => Slot::R128,
            },
        }
    }
    /// Size in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Slot::Pred => 4,
            Slot::R32 => 128,
            Slot::R64 => 256,
            Slot::R128 => 512,
        }
    }
}

/// Which part of the instruction an offset stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The operand with this index. A register, an immediate. A negation (`!%p`, `-%r`) and the part of a
    /// register that a video instruction selects have been taken into account: the slot is that of the register itself.
    Operand(u8),
    /// A component of an operand that is an [`Operand::Vector`] or an [`Operand::Pair`]: operand index, then
    /// component index. A component may be an [`Operand::Sink`] if it is a destination.
    Part(u8, u8),
    /// The warp's carry flag: a predicate slot that belongs to no register. Bit n is lane n's flag.
    Carry,
    /// A destination that the instruction does not name: any slot of the shape whose contents nobody needs.
    /// As a source: the same, its contents do not matter.
    Scratch,
}

/// One source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which part of the instruction it is.
    pub from: From,
    /// The slot that the function reads or writes. A register of another slot size (PTX lets `cvt`, and only
    /// `cvt`, have such) needs [`resize`] before or after.
    pub slot: Slot,
    /// The type in which the value is meant: what [`immediate`] wants.
    pub ty: Type,
}

/// What [`select`] found.
#[derive(Clone, Copy, Debug)]
pub struct Selected {
    /// Computes 32 lanes.
    pub run: OpFn,
    /// Computes lane 0.
    pub uniform: OpFn,
    /// Destinations; `None` after the last.
    pub dsts: [Option<Place>; 4],
    /// Sources; `None` after the last.
    pub srcs: [Option<Place>; 4],
    /// Goes into [`OpArgs::imm`].
    pub imm: u32,
}

/// An instruction that this module has no function for; `Display` gives its opcode as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Opcode with types.
    pub opcode: String,
}

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the CPU device has no implementation of `{}`",
            self.opcode
        )
    }
}

/// Finds the functions of an instruction. `regs` is the body's register table ([`cupyrite_ptx::ir::Body::regs`]).
///
/// Handles every instruction whose result depends on its own lane's register operands only; `mov` from special
/// registers, addresses and functions is the caller's (as an operand they are immediates or slots like any other).
///
/// # Errors
///
/// [`Unsupported`] for everything else.
pub fn select(i: &Instr, regs: &[Register]) -> Result<Selected, Unsupported> {
    pick(i, regs).ok_or_else(|| Unsupported { opcode: spell(i) })
}

fn pick(i: &Instr, regs: &[Register]) -> Option<Selected> {
    integer::select(i)
        .or_else(|| logic::select(i))
        .or_else(|| compare::select(i))
        .or_else(|| float::select(i))
        .or_else(|| half::select(i))
        .or_else(|| convert::select(i, regs))
        .or_else(|| formats::select(i))
        .or_else(|| math::select(i))
        .or_else(|| video::select(i))
}

impl Selected {
    /// Operand 0 is the destination, the ones after it the sources.
    fn new(code: Code, dst: Type, srcs: &[Type]) -> Selected {
        let place = |n: usize, ty: Type| Place {
            from: From::Operand(n as u8),
            slot: Slot::of(ty),
            ty,
        };
        let mut s = Selected {
            run: code.run,
            uniform: code.uniform,
            dsts: [Some(place(0, dst)), None, None, None],
            srcs: [None; 4],
            imm: 0,
        };
        for (n, &ty) in srcs.iter().enumerate() {
            s.srcs[n] = Some(place(n + 1, ty));
        }
        s
    }
    /// Sources that the function reads and the instruction does not have.
    fn scratch_up_to(&mut self, count: usize, ty: Type) {
        for s in &mut self.srcs[..count] {
            s.get_or_insert(Place {
                from: From::Scratch,
                slot: Slot::of(ty),
                ty,
            });
        }
    }
    fn with_imm(mut self, imm: u32) -> Selected {
        self.imm = imm;
        self
    }
}

/// Copies between slots of different size: the value is truncated, or extended (by sign if `signed`).
/// One source, one destination. Predicates cannot be resized.
pub fn resize(from: Slot, to: Slot, signed: bool) -> Option<(OpFn, OpFn)> {
    convert::resize(from, to, signed).map(|c| (c.run, c.uniform))
}

/// The element of the slot that holds an immediate operand read as `ty`: integers are truncated to the type's
/// width and zero-extended to the slot, decimal floating literals are rounded to the type. A predicate literal is all ones or zero.
/// `None` for operands that are no literals.
pub fn immediate(operand: &Operand, ty: Type) -> Option<u128> {
    let bits = ty.bits();
    let trim = |v: u64| {
        if bits >= 64 {
            u128::from(v)
        } else {
            u128::from(v & ((1 << bits) - 1))
        }
    };
    match *operand {
        Operand::Int(v) => Some(match ty {
            Type::Pred => {
                if v != 0 {
                    u128::from(u32::MAX)
                } else {
                    0
                }
            }
            Type::B128 => v as i128 as u128,
            Type::F32 => u128::from((v as f32).to_bits()),
            Type::F64 => u128::from((v as f64).to_bits()),
            _ => trim(v as u64),
        }),
        Operand::F32(b) => Some(match ty {
            Type::F64 => u128::from(f64::from(f32::from_bits(b)).to_bits()),
            _ => trim(u64::from(b)),
        }),
        Operand::F64(b) => Some(match ty {
            Type::F32 => u128::from((f64::from_bits(b) as f32).to_bits()),
            _ => trim(b),
        }),
        _ => None,
    }
}

/// The opcode with its modifiers, near enough to how it was written.
fn spell(i: &Instr) -> String {
    let mut s = i.op.name().to_string();
    for w in &i.mods.other {
        s.push('.');
        s.push_str(w);
    }
    for t in &i.types {
        s.push('.');
        s.push_str(&format!("{t:?}").to_lowercase());
    }
    s
}
