//! Virtual registers.

use cupyrite_ptx::ir::Special;

use crate::semantics::lane::Slot;

/// An operand: a virtual register of the function that names it. Register allocation replaces its index by a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg {
    /// Index into [`Function::registers`](super::Function::registers); in the operations of a tier, the byte offset of the
    /// register's slot.
    pub at: u32,
    /// Shape of its slot.
    pub slot: Slot,
}

/// A virtual register.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Shape of its slot.
    pub slot: Slot,
    /// Where its value comes from.
    pub source: Source,
    /// How often its value changes, as far as is known.
    pub uniformity: Uniformity,
}

/// Where the value of a register comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Written by instructions: a register that the PTX declares (its index) and, of a vector, the component.
    Declared(u32, u8),
    /// Written by instructions: an intermediate value in the lowering of one PTX instruction.
    Temporary,
    /// The same element in every lane; of a predicate, the lane mask.
    Constant(u128),
    /// A special register whose value does not change while a warp runs.
    Special(Special),
    /// The address of this byte of the parameter bank.
    ParameterAddress(u64),
    /// The address of this byte of the block's shared memory, as other blocks of the cluster can use it.
    SharedAddress(u32),
    /// A location of the register file that every kernel has.
    Fixed(Fixed),
}

/// Registers that every function has, with these indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Fixed {
    /// A predicate that is true in every lane.
    True,
    /// The carry flag.
    Carry,
    /// Destination of discarded predicates.
    DiscardedPredicate,
    /// Destination of discarded 32-bit results.
    Discarded32,
    /// Destination of discarded 64-bit results.
    Discarded64,
    /// Destination of discarded 128-bit results.
    Discarded128,
    /// Offset of the function's frame in local memory.
    Frame,
}

impl Fixed {
    /// All of them, by index.
    pub const ALL: [Fixed; 7] = [
        Fixed::True,
        Fixed::Carry,
        Fixed::DiscardedPredicate,
        Fixed::Discarded32,
        Fixed::Discarded64,
        Fixed::Discarded128,
        Fixed::Frame,
    ];

    /// The register.
    pub const fn reg(self) -> Reg {
        let slot = match self {
            Fixed::True | Fixed::Carry | Fixed::DiscardedPredicate => Slot::Pred,
            Fixed::Discarded32 | Fixed::Frame => Slot::R32,
            Fixed::Discarded64 => Slot::R64,
            Fixed::Discarded128 => Slot::R128,
        };
        Reg {
            at: self as u32,
            slot,
        }
    }

    /// The destination of discarded results of this shape.
    pub const fn discarded(slot: Slot) -> Reg {
        match slot {
            Slot::Pred => Fixed::DiscardedPredicate.reg(),
            Slot::R32 => Fixed::Discarded32.reg(),
            Slot::R64 => Fixed::Discarded64.reg(),
            Slot::R128 => Fixed::Discarded128.reg(),
        }
    }
}

/// How often a value changes. A later variant changes more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uniformity {
    /// Never during a launch.
    Launch,
    /// Once per block.
    Block,
    /// Per thread, as a copy of `%tid` of this axis.
    Tid(u8),
    /// At any instruction.
    Varying,
}

impl Uniformity {
    /// Whether all threads of a block have the same value.
    pub fn is_uniform(self) -> bool {
        matches!(self, Uniformity::Launch | Uniformity::Block)
    }
}
