//! The operands of each opcode.

use crate::ir::*;

/// Requirement of an operand.
#[derive(Clone, Copy)]
pub(crate) enum OperandRequirement {
    /// A predicate.
    Pred,
    /// A value of this type.
    Is(Type),
    /// A value of this width, whatever its type.
    Bits(u32),
    /// A value as wide as this type, or a vector of them together; a literal is of this type.
    Size(Type),
    /// A value of this type, possibly in a wider register; or a vector of them.
    Wide(Type),
    /// An address in brackets.
    Address,
    /// Not checked.
    Any,
}

use OperandRequirement::{Address, Any, Bits, Is, Pred, Size, Wide};

/// The operands of an instruction: their least and greatest number, and the requirement of each.
pub(crate) struct OperandShape {
    pub least: usize,
    pub requirements: [OperandRequirement; 6],
    pub most: usize,
}

/// A shape with exactly these operands.
fn exactly<const N: usize>(requirements: [OperandRequirement; N]) -> Option<OperandShape> {
    between(N, requirements)
}

/// A shape with at least the first `least` of these operands.
fn between<const N: usize>(
    least: usize,
    requirements: [OperandRequirement; N],
) -> Option<OperandShape> {
    let mut all = [Any; 6];
    for (to, from) in all.iter_mut().zip(requirements) {
        *to = from;
    }
    Some(OperandShape {
        least,
        requirements: all,
        most: N,
    })
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

/// The operands of an instruction; `None` if they are not checked.
pub(crate) fn shape(op: Op, mods: &Mods, types: &[Type], count: usize) -> Option<OperandShape> {
    use Op::*;
    let first = types.first().copied();
    let second = types.get(1).copied();
    let pred_or = |ty| if ty == Type::Pred { Pred } else { Is(ty) };
    let word = Bits(32);
    // A cache policy is an operand if its modifier is written.
    let policy = usize::from(mods.has("L2::cache_hint"));
    if op.class() == OpClass::Video {
        let simd = op.name().ends_with(['2', '4']);
        let least = if simd || op == Vmad || mods.atom.is_some() {
            4
        } else {
            3
        };
        return between(least, [word, word, word, word]);
    }
    match op {
        // Instructions without operand types.
        Trap | Brkpt | Exit | Ret => return between(0, []),
        Activemask => return exactly([Bits(32)]),
        Membar => return between(0, []),
        Bar | Barrier if mods.has("red") => {
            let result = match first? {
                Type::Pred => Pred,
                t => Is(t),
            };
            return if count == 3 {
                exactly([result, word, Pred])
            } else {
                exactly([result, word, word, Pred])
            };
        }
        Bar | Barrier if mods.has("arrive") => return between(2, [word, word]),
        Bar | Barrier => return between(1, [word, word]),
        BarWarp => return between(1, [word]),
        BarrierCluster => return between(0, []),
        Elect => return exactly([word, word]),
        CpAsync if mods.has("commit_group") || mods.has("wait_all") => return between(0, []),
        CpAsync if mods.has("wait_group") => return between(1, [word]),
        CpAsync if mods.has("mbarrier") => return between(1, [Address]),
        CpAsync => return between(3, [Address, Address, word, Any, Any]),
        Mbarrier
            if mods.has("init")
                || mods.has("expect_tx") && !mods.has("arrive") && !mods.has("arrive_drop") =>
        {
            return between(2, [Address, word]);
        }
        Mbarrier if mods.has("inval") => return between(1, [Address]),
        Mbarrier if mods.has("test_wait") || mods.has("try_wait") => {
            let phase = if mods.has("parity") { word } else { Bits(64) };
            let most = if mods.has("try_wait") { 4 } else { 3 };
            return between(3, [Pred, Address, phase, word])
                .map(|shape| OperandShape { most, ..shape });
        }
        Mbarrier if mods.has("pending_count") => return exactly([word, Bits(64)]),
        Mbarrier if mods.has("arrive") || mods.has("arrive_drop") => {
            return between(2, [Bits(64), Address, word]);
        }
        Isspacep => return exactly([Pred, Any]),
        Nanosleep => return between(1, [Bits(32)]),
        _ => {}
    }
    let t = first?;
    let is = Is(t);
    match op {
        // The mixed-precision forms name two types.
        Add | Sub | Fma if second.is_some() => None,
        Add | Addc | Sub | Subc | Div | Rem | Copysign => exactly([is, is, is]),
        Mul | Mul24 if mods.mul == Some(MulHalf::Wide) => exactly([Is(doubled(t)?), is, is]),
        Mul | Mul24 => exactly([is, is, is]),
        Mad | Madc if mods.mul == Some(MulHalf::Wide) => {
            exactly([Is(doubled(t)?), is, is, Is(doubled(t)?)])
        }
        Mad | Mad24 | Madc | Sad => exactly([is, is, is, is]),
        Fma => exactly([is, is, is, is]),
        Min | Max if t == Type::F32 => between(3, [is, is, is, is]),
        Min | Max => exactly([is, is, is]),
        Abs | Neg | Cnot | Rcp | Sqrt | Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh | Brev => {
            exactly([is, is])
        }
        Not => exactly([pred_or(t), pred_or(t)]),
        And | Or | Xor => exactly([pred_or(t), pred_or(t), pred_or(t)]),
        Shl | Shr => exactly([is, is, word]),
        Shf => exactly([is, is, is, word]),
        Popc | Clz | Bfind => exactly([Bits(32), is]),
        Bfe => exactly([is, is, word, word]),
        Bfi => exactly([is, is, is, word, word]),
        Bmsk => exactly([is, word, word]),
        Szext => exactly([is, is, word]),
        Fns => exactly([Bits(32), Bits(32), Bits(32), Bits(32)]),
        Dp2a | Dp4a => exactly([Bits(32), Bits(32), Bits(32), Bits(32)]),
        Lop3 if mods.bool_op.is_some() => exactly([is, is, is, is, Any, Pred]),
        Lop3 => exactly([is, is, is, is, Any]),
        Prmt => exactly([Bits(32), Bits(32), Bits(32), Bits(32)]),
        Selp => exactly([is, is, is, Pred]),
        Slct => exactly([is, is, is, Is(second?)]),
        Set => between(3, [is, Is(second?), Is(second?), Pred]),
        Setp => between(3, [Pred, is, is, Pred]),
        Testp => exactly([Pred, is]),
        Mov if t == Type::Pred => exactly([Pred, Pred]),
        Mov => exactly([Size(t), Size(t)]),
        Cvt if matches!(t, Type::Packed(_))
            || mods.rounding == Some(Rounding::Rs)
            || !mods.other.is_empty() =>
        {
            between(2, [Wide(t), Any, Any, Any, Any])
        }
        Cvt if second? == Type::F32
            && matches!(t, Type::F16x2 | Type::BF16x2 | Type::E4M3x2 | Type::E5M2x2) =>
        {
            exactly([Wide(t), Wide(Type::F32), Wide(Type::F32)])
        }
        Cvt => exactly([Wide(t), Wide(second?)]),
        Cvta => exactly([Size(t), Size(t)]),
        Mapa => exactly([is, Any, word]),
        Getctarank => exactly([word, Any]),
        Ld | Ldu => between(2, [Wide(t), Address, Any]).map(|s| OperandShape {
            most: 2 + policy,
            ..s
        }),
        St if mods.has("async") || mods.has("bulk") => None,
        St => between(2, [Address, Wide(t), Any]).map(|s| OperandShape {
            most: 2 + policy,
            ..s
        }),
        Red if mods.has("async") => None,
        Atom | Red if mods.vector > 1 => None,
        Atom if mods.atom == Some(AtomOp::Cas) => {
            between(4, [is, Address, is, is, Any]).map(|s| OperandShape {
                most: 4 + policy,
                ..s
            })
        }
        Atom => between(3, [is, Address, is, Any]).map(|s| OperandShape {
            most: 3 + policy,
            ..s
        }),
        Red => between(2, [Address, is, Any]).map(|s| OperandShape {
            most: 2 + policy,
            ..s
        }),
        Shfl if mods.sync => exactly([is, is, word, word, word]),
        Shfl => exactly([is, is, word, word]),
        Vote if !mods.sync => exactly([if t == Type::Pred { Pred } else { word }, Pred]),
        Vote if t == Type::Pred => exactly([Pred, Pred, word]),
        Vote => exactly([word, Pred, word]),
        Match => exactly([Bits(32), is, Bits(32)]),
        Redux => exactly([is, is, Bits(32)]),
        _ => None,
    }
}
