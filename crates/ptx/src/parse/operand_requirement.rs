//! What an operand must be, by the form of its instruction.

use crate::ir::{Mods, Type};
use crate::isa::{Form, OperandKind, OperandSpec, Presence};

/// Requirement of an operand.
#[derive(Clone, Copy)]
pub(crate) enum OperandRequirement {
    /// A predicate.
    Pred,
    /// A value of this type.
    Is(Type),
    /// A value of this width, whatever its type.
    Bits(u32),
    /// A register of this width.
    Register(u32),
    /// A value as wide as this type, or a vector of them together; a literal is of this type.
    Size(Type),
    /// A value of this type, possibly in a wider register; or a vector of them.
    Wide(Type),
    /// An address in brackets.
    Address,
    /// `_`.
    Sink,
    /// An integer literal: one of these values, or in the range from the first to the last; any, if there are none.
    Immediate(&'static [i64], bool),
    /// Not checked.
    Any,
}

/// The type of twice the width.
fn doubled(ty: Type) -> Option<Type> {
    Some(match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        Type::S32 => Type::S64,
        _ => return None,
    })
}

impl OperandRequirement {
    /// The requirement of an operand of an instruction with these types.
    pub fn of(spec: &OperandSpec, types: &[Type]) -> OperandRequirement {
        use OperandRequirement::{
            Address, Any, Bits, Immediate, Is, Pred, Register, Sink, Size, Wide,
        };
        let ty = |n: usize| types.get(n).copied();
        let found = match spec.kind {
            OperandKind::Typed(n) => ty(n).map(|t| if t == Type::Pred { Pred } else { Is(t) }),
            OperandKind::Sized(n) => ty(n).map(|t| if t == Type::Pred { Pred } else { Size(t) }),
            OperandKind::Wide(n) => ty(n).map(Wide),
            OperandKind::Doubled => ty(0).and_then(doubled).map(Is),
            OperandKind::Register(bits) => Some(Register(bits)),
            OperandKind::Fixed(Type::Pred) => Some(Pred),
            OperandKind::Fixed(t @ (Type::B32 | Type::B64)) => Some(Bits(t.bits())),
            OperandKind::Fixed(t) => Some(Is(t)),
            OperandKind::Address => Some(Address),
            OperandKind::Sink => Some(Sink),
            OperandKind::Immediate { values, range } => Some(Immediate(values, range)),
            OperandKind::Any => Some(Any),
        };
        found.unwrap_or(Any)
    }
}

impl Form {
    /// The least and greatest number of operands.
    pub(crate) fn operand_count(&self, mods: &Mods) -> (usize, usize) {
        let count = |wanted: &dyn Fn(Presence) -> bool| {
            self.operands.iter().filter(|o| wanted(o.presence)).count()
        };
        let least = count(&|p| match p {
            Presence::With(word) => mods.other.contains(&word),
            Presence::Always => true,
            Presence::Optional => false,
        });
        let most = count(&|p| match p {
            Presence::With(word) => mods.other.contains(&word),
            Presence::Always | Presence::Optional => true,
        });
        (least, if self.open { usize::MAX } else { most })
    }
}
