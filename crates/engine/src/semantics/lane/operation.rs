//! Description of a lane function for the compiler and the interpreter: its operands, its code, the shape of slots.

use cupyrite_ptx::ir::{Operand, Type};

/// Computes one instruction for the lanes of `mask`; the other lanes keep their values.
///
/// # Safety
///
/// `regs` is aligned to 64 bytes. Every offset in `args` that [`Selected`] names is a multiple of the element size, and
/// its slot lies inside the register file. No other thread accesses the register file during the call.
pub type OpFn = unsafe fn(regs: *mut u8, args: &OpArgs, mask: u32);

/// Operands of an [`OpFn`], as byte offsets into the register file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpArgs {
    /// Offsets of the destination slots, parallel to [`Selected::dsts`].
    pub dst: [u32; 4],
    /// Offsets of the source slots, parallel to [`Selected::srcs`].
    pub src: [u32; 4],
    /// [`Selected::imm`].
    pub imm: u32,
}

/// Shape of a register's slot.
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
    /// Shape of a register declared with `ty`.
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

    /// Writes `element` into every lane of the slot of this shape at offset `at` of a register file. For a predicate,
    /// `element` is the lane mask.
    pub fn broadcast(self, file: &mut [u8], at: u32, element: u128) {
        let lane = match self {
            Slot::Pred | Slot::R32 => 4,
            Slot::R64 => 8,
            Slot::R128 => 16,
        };
        let bytes = element.to_ne_bytes();
        // The low bytes of the element.
        let bytes = if cfg!(target_endian = "little") {
            &bytes[..lane]
        } else {
            &bytes[16 - lane..]
        };
        let at = at as usize;
        for to in file[at..at + self.bytes() as usize].chunks_exact_mut(lane) {
            to.copy_from_slice(bytes);
        }
    }
}

/// The part of an instruction that supplies or receives a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandRef {
    /// The operand with this index: a register or an immediate. The lane function applies a negation (`!%p`, `-%r`) and
    /// selects the part of a register that a video instruction names; the slot is that of the whole register.
    Operand(u8),
    /// A component of an [`Operand::Vector`] or an [`Operand::Pair`]: operand index, component index. A destination may
    /// be an [`Operand::Sink`].
    Part(u8, u8),
    /// The warp's carry flag: a predicate slot that belongs to no register.
    Carry,
    /// A slot that the function accesses but the instruction does not name. Its contents do not matter.
    Scratch,
}

/// A source or destination of a lane function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandSlot {
    /// The part of the instruction.
    pub operand: OperandRef,
    /// Shape of the slot that the function accesses. A register of another shape, which PTX allows in `cvt` only, needs
    /// [`resize`](super::resize) before or after.
    pub slot: Slot,
    /// Type of the value, for [`immediate`].
    pub ty: Type,
}

impl OperandSlot {
    /// An operand of this type.
    pub const fn new(operand: OperandRef, ty: Type) -> Self {
        Self {
            operand,
            slot: Slot::of(ty),
            ty,
        }
    }
}

/// The lane function selected for an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Selected {
    /// The function.
    pub run: OpFn,
    /// Destinations, then `None`.
    pub dsts: [Option<OperandSlot>; 4],
    /// Sources, then `None`.
    pub srcs: [Option<OperandSlot>; 4],
    /// Value of [`OpArgs::imm`].
    pub imm: u32,
}

impl Selected {
    /// A function whose destination is operand 0, and whose sources are the operands after it.
    pub(super) fn new(run: OpFn, dst: Type, srcs: &[Type]) -> Selected {
        let operand = |n: usize, ty: Type| Some(OperandSlot::new(OperandRef::Operand(n as u8), ty));
        let mut s = Selected {
            run,
            dsts: [operand(0, dst), None, None, None],
            srcs: [None; 4],
            imm: 0,
        };
        for (n, &ty) in srcs.iter().enumerate() {
            s.srcs[n] = operand(n + 1, ty);
        }
        s
    }

    /// Fills the sources that the function reads and the instruction does not have, up to `count`.
    pub(super) fn scratch_up_to(&mut self, count: usize, ty: Type) {
        for s in &mut self.srcs[..count] {
            s.get_or_insert(OperandSlot::new(OperandRef::Scratch, ty));
        }
    }

    pub(super) fn with_imm(mut self, imm: u32) -> Selected {
        self.imm = imm;
        self
    }
}

/// The element of the slot that holds an immediate operand of type `ty`; `None` if the operand is not a literal.
/// Integers are truncated to the width of the type and zero-extended to the slot, floating-point literals are rounded to
/// the type, and a predicate literal is all ones or zero.
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
