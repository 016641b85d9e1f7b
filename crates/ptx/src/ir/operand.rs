//! Operands of an instruction, and the one function that visits what is nested in them.

use super::module::{FuncId, LabelId, ProtoId, RegId, VarId};

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// One component (0..=3) of a vector register.
    RegComponent(RegId, u8),
    /// Bytes or half-words of a register in a video instruction: `%r.b0`, `%r.h1`, `%r.b3210`.
    RegSelect(RegId, Selector),
    /// `-%r`: a negated source of a video instruction.
    Neg(Box<Operand>),
    /// `!%p`: a negated predicate source.
    NotReg(RegId),
    /// `%p|%q` (setp) or `%r|%p` (shfl, match, elect): two destinations; a sink `_` is [`Operand::Sink`].
    Pair(Box<Operand>, Box<Operand>),
    /// A special register such as `%tid.x`.
    Special(Special),
    /// An integer literal, two's complement in 64 bits.
    Int(i64),
    /// A `0f3F800000` literal, as bits.
    F32(u32),
    /// A `0d...` or decimal floating literal, as bits.
    F64(u64),
    /// A variable's address as a value (`mov.u64 %rd1, var;`), plus an offset.
    Var(VarId, i64),
    /// A function's address as a value, or a direct call's target.
    Func(FuncId),
    /// `[base+offset]`.
    Addr(Base, i64),
    /// `{%f1, %f2, _, 0}`.
    Vector(Vec<Operand>),
    /// A branch target.
    Label(LabelId),
    /// A call's arguments or returns: `(param0, param1)`, variables, or registers in PTX of ISA 1.x.
    Args(Vec<Operand>),
    /// The prototype of an indirect call.
    Proto(ProtoId),
    /// `_`.
    Sink,
    /// The label of a `.branchtargets` list (in `brx.idx`, an index into
    /// [`Body::branch_targets`](crate::ir::Body::branch_targets)) or of a `.calltargets` list (in `call`, an index into
    /// [`Body::call_targets`](crate::ir::Body::call_targets)).
    Targets(u32),
    /// `[tex, {coords}]` of texture and surface instructions: the operands inside the brackets.
    TexAddr(Vec<Operand>),
}

impl Operand {
    /// Calls `f` for this operand and for every operand nested in it, outermost first.
    ///
    /// Code that collects or counts what operands refer to uses this function, so that it cannot miss a nested operand.
    pub fn walk<'o>(&'o self, f: &mut impl FnMut(&'o Operand)) {
        f(self);
        match self {
            Operand::Vector(list) | Operand::Args(list) | Operand::TexAddr(list) => {
                list.iter().for_each(|o| o.walk(f));
            }
            Operand::Neg(inner) => inner.walk(f),
            Operand::Pair(first, second) => {
                first.walk(f);
                second.walk(f);
            }
            Operand::Reg(_)
            | Operand::RegComponent(..)
            | Operand::RegSelect(..)
            | Operand::NotReg(_)
            | Operand::Special(_)
            | Operand::Int(_)
            | Operand::F32(_)
            | Operand::F64(_)
            | Operand::Var(..)
            | Operand::Func(_)
            | Operand::Addr(..)
            | Operand::Label(_)
            | Operand::Proto(_)
            | Operand::Sink
            | Operand::Targets(_) => {}
        }
    }

    /// [`Operand::walk`] with mutable access. `f` must not nest new operands that need a visit of their own.
    pub fn walk_mut(&mut self, f: &mut impl FnMut(&mut Operand)) {
        f(self);
        match self {
            Operand::Vector(list) | Operand::Args(list) | Operand::TexAddr(list) => {
                list.iter_mut().for_each(|o| o.walk_mut(f));
            }
            Operand::Neg(inner) => inner.walk_mut(f),
            Operand::Pair(first, second) => {
                first.walk_mut(f);
                second.walk_mut(f);
            }
            _ => {}
        }
    }

    /// The register that this operand names or addresses memory with; nested operands are not considered.
    pub fn register(&self) -> Option<RegId> {
        match *self {
            Operand::Reg(r)
            | Operand::RegComponent(r, _)
            | Operand::RegSelect(r, _)
            | Operand::NotReg(r)
            | Operand::Addr(Base::Reg(r), _) => Some(r),
            _ => None,
        }
    }

    /// The variable whose address this operand is or contains; nested operands are not considered.
    pub fn variable(&self) -> Option<VarId> {
        match *self {
            Operand::Var(v, _) | Operand::Addr(Base::Var(v), _) => Some(v),
            _ => None,
        }
    }
}

/// Parts of a 32-bit register that a video instruction reads or writes, lowest part first. In SIMD video instructions,
/// numbers from 4 (bytes) or 2 (half-words) select from the second source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// `.b0` to `.b3`.
    Byte(u8),
    /// `.h0`, `.h1`.
    Half(u8),
    /// `.b3210` is `[0, 1, 2, 3]`. A mask such as `.b20` names bytes of the destination: `[0, 2]`, padded with 255.
    Bytes([u8; 4]),
    /// `.h10` is `[0, 1]`.
    Halves([u8; 2]),
}

/// The base of an address operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A register.
    Reg(RegId),
    /// A variable.
    Var(VarId),
    /// None: the offset is an absolute address.
    None,
}

/// Special registers (PTX ISA, "Special Registers"). Three-dimensional ones carry the axis: 0 = x, 1 = y, 2 = z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NWarpId,
    SmId,
    NSmId,
    GridId,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    ClusterId(u8),
    NClusterId(u8),
    ClusterCtaId(u8),
    ClusterNCtaId(u8),
    ClusterCtaRank,
    ClusterNCtaRank,
    IsExplicitCluster,
    DynamicSmemSize,
    TotalSmemSize,
    AggrSmemSize,
    /// `%reserved_smem_offset_0`, `_1`, `_begin` (2), `_end` (3), `_cap` (4).
    ReservedSmemOffset(u8),
    CurrentGraphExec,
    EnvReg(u8),
    Pm(u8),
    Pm64(u8),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_visit_every_nested_operand_in_order() {
        let reg = |n| Operand::Reg(RegId(n));
        let mut operand = Operand::TexAddr(vec![
            Operand::Addr(Base::Var(VarId::Module(9)), 0),
            Operand::Vector(vec![reg(0), Operand::Neg(Box::new(reg(1))), Operand::Sink]),
            Operand::Args(vec![Operand::Pair(
                Box::new(Operand::RegComponent(RegId(2), 0)),
                Box::new(Operand::NotReg(RegId(3))),
            )]),
            Operand::RegSelect(RegId(4), Selector::Byte(1)),
            Operand::Addr(Base::Reg(RegId(5)), 8),
        ]);
        let (mut registers, mut variables, mut visits) = (Vec::new(), Vec::new(), 0);
        operand.walk(&mut |o| {
            visits += 1;
            registers.extend(o.register().map(|r| r.0));
            variables.extend(o.variable());
        });
        assert_eq!(registers, [0, 1, 2, 3, 4, 5]);
        assert_eq!(variables, [VarId::Module(9)]);
        let mut visits_mut = 0;
        operand.walk_mut(&mut |o| {
            visits_mut += 1;
            if let Operand::Reg(r) = o {
                r.0 += 10;
            }
        });
        assert_eq!((visits, visits_mut), (13, 13));
        let mut registers = Vec::new();
        operand.walk(&mut |o| registers.extend(o.register().map(|r| r.0)));
        assert_eq!(registers, [10, 11, 2, 3, 4, 5]);
    }
}
