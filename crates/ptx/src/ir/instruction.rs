//! An instruction and its modifiers.

use std::sync::Arc;

use super::module::{Pos, RegId, SourceLoc};
use super::opcode::{Destination, OpClass};
use super::operand::Operand;
use super::types::{Space, Type};
use crate::isa::{Form, Op, Support, Word};

/// One instruction.
#[derive(Clone, Debug)]
pub struct Instr {
    /// `@p` or `@!p`: the predicate register and whether it is negated.
    pub guard: Option<(RegId, bool)>,
    /// Base opcode.
    pub op: Op,
    /// The row of the instruction table that it is, before a compiler changes it.
    pub form: &'static Form,
    /// Modifiers. Instructions with the same spelling share them.
    pub mods: Arc<Mods>,
    /// Types in the order written: `[F32, S32]` for `cvt.rn.f32.s32`, `[U32]` for `setp.lt.u32`.
    pub types: Arc<[Type]>,
    /// Operands in the order written, destination first. A `call` always has [`Operand::Args`] (returns), the target,
    /// [`Operand::Args`] (arguments) and, if it is indirect, the prototype or target list. The parser normalizes
    /// operands: `ld d, var[1]` becomes `ld d, [var+4]`; where the operand's type is known, a floating-point literal
    /// becomes [`Operand::F32`] or [`Operand::F64`] of that type, and an integer literal for a predicate becomes 0 or 1.
    pub operands: Vec<Operand>,
    /// Position in the PTX text.
    pub pos: Pos,
    /// The last `.loc` before it.
    pub loc: Option<SourceLoc>,
}

impl Instr {
    /// Whether the first operand is a destination.
    pub fn has_destination(&self) -> bool {
        match self.op.destination() {
            Destination::First => true,
            Destination::None => false,
            Destination::ByForm => self.form.operands.first().is_some_and(|o| o.written),
        }
    }

    /// What the CPU device does with it.
    pub fn support(&self) -> Support {
        let mut refusals = self.op.row().rules.iter();
        if !refusals.any(|rule| rule.support == Support::Refused) {
            return self.form.support;
        }
        let spelling = self.mnemonic();
        let words: Vec<&str> = spelling.split('.').skip(1).collect();
        let mut rules = self.op.row().rules.iter();
        let refused = rules.any(|r| r.support == Support::Refused && r.applies(&words));
        if refused {
            Support::Refused
        } else {
            self.form.support
        }
    }

    /// Whether this is a `.red` form of a block barrier.
    pub fn is_barrier_reduction(&self) -> bool {
        matches!(self.op, Op::Bar | Op::Barrier) && self.mods.has(Word::Red)
    }

    /// Whether this is a call through a register.
    pub fn is_indirect_call(&self) -> bool {
        self.op == Op::Call && !self.operands.iter().any(|o| matches!(o, Operand::Func(_)))
    }

    /// Index of the operand that a load, store or atomic moves to or from memory.
    pub fn data_operand(&self) -> Option<usize> {
        (self.op.class() == OpClass::Memory).then(|| usize::from(!self.has_destination()))
    }

    /// Calls `f` for every register that the instruction writes.
    pub fn for_each_written(&self, mut f: impl FnMut(RegId)) {
        let results = match self.operands.first() {
            Some(o @ Operand::Args(_)) if self.op == Op::Call => o,
            Some(o) if self.has_destination() => o,
            _ => return,
        };
        results.walk(&mut |o| {
            if let Operand::Reg(r) | Operand::RegComponent(r, _) | Operand::RegSelect(r, _) = *o {
                f(r);
            }
        });
    }

    /// Calls `f` for every register that the operands and the guard name, destinations included.
    pub fn for_each_register(&self, mut f: impl FnMut(RegId)) {
        for o in &self.operands {
            o.walk(&mut |o| o.register().into_iter().for_each(&mut f));
        }
        self.guard.iter().for_each(|g| f(g.0));
    }

    /// Calls `f` for every register that the instruction reads, the guard included.
    pub fn for_each_read(&self, mut f: impl FnMut(RegId)) {
        for o in &self.operands[usize::from(self.has_destination()).min(self.operands.len())..] {
            o.walk(&mut |o| o.register().into_iter().for_each(&mut f));
        }
        self.guard.iter().for_each(|g| f(g.0));
    }
}

/// Modifiers of an instruction. A field holds `None`, `false` or zero if its modifier was not written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mods {
    /// Floating-point or integer rounding.
    pub rounding: Option<Rounding>,
    /// `.ftz`.
    pub ftz: bool,
    /// `.sat`.
    pub sat: bool,
    /// `.satfinite`.
    pub satfinite: bool,
    /// `.relu`.
    pub relu: bool,
    /// `.approx`.
    pub approx: bool,
    /// `.full` (div).
    pub full: bool,
    /// `.NaN` (min, max).
    pub nan: bool,
    /// `.xorsign`, with `.abs`.
    pub xorsign: bool,
    /// `.abs` as a modifier (min.xorsign.abs).
    pub abs: bool,
    /// `.noftz` (atom, red on half types).
    pub noftz: bool,
    /// `.lo`, `.hi`, `.wide` of integer multiplication (and `.lo`/`.hi` of dp2a in `mul` too).
    pub mul: Option<MulHalf>,
    /// `.cc`: writes the carry flag.
    pub cc: bool,
    /// `.shiftamt` (bfind).
    pub shiftamt: bool,
    /// `.clamp`, `.wrap`, `.zero` or `.trap`.
    pub clamp: Option<ClampMode>,
    /// `shf.l` / `shf.r`.
    pub shift_left: Option<bool>,
    /// Comparison of setp, set, slct.
    pub cmp: Option<Cmp>,
    /// Combination of setp/set with a predicate (`.and`, `.or`, `.xor`), and of `lop3.or d|p`.
    pub bool_op: Option<BoolOp>,
    /// State space; `None` is generic.
    pub space: Option<Space>,
    /// Second state space: the source of `cp.async`, whose destination is `space`.
    pub space2: Option<Space>,
    /// `.to` (cvta).
    pub to: bool,
    /// Vector width of ld, st, atom, red and mov: 1 (not written), 2, 4 or 8.
    pub vector: u32,
    /// `.volatile`.
    pub volatile: bool,
    /// `.weak`, `.relaxed`, `.acquire`, `.release`, `.acq_rel`, `.sc`. `.mmio` is in `other`.
    pub semantics: Option<Semantics>,
    /// `.cta`, `.cluster`, `.gpu`, `.sys`; the parser reads `membar.gl` as `.gpu`.
    pub scope: Option<Scope>,
    /// `.nc`.
    pub nc: bool,
    /// Operation of atom, red, redux, multimem, cp.reduce.async and of `bar.red`/`barrier.red`; the second operation of
    /// a video instruction.
    pub atom: Option<AtomOp>,
    /// Mode of shfl.
    pub shfl: Option<ShflMode>,
    /// Mode of vote.
    pub vote: Option<VoteMode>,
    /// `.sync`.
    pub sync: bool,
    /// `.aligned`.
    pub aligned: bool,
    /// `.uni` (bra, call, ret).
    pub uni: bool,
    /// `testp` operation.
    pub testp: Option<TestpOp>,
    /// `prmt` mode.
    pub prmt: Option<PrmtMode>,
    /// All other modifiers, in the order written: cache operators (`ca`, `cg`, `L2::128B`), matrix
    /// shapes and layouts (`m16n8k16`, `row`, `col`), texture geometries (`1d`, `a2d`, `cube`), `all` and `any` of `match`,
    /// `arrive` and `red` of barriers, the operations of `mbarrier`.
    pub other: Vec<Word>,
}

impl Mods {
    /// Whether `word` is one of [`Mods::other`].
    pub fn has(&self, word: Word) -> bool {
        self.other.contains(&word)
    }
}

/// Rounding modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Rounding {
    Rn,
    Rna,
    Rz,
    Rm,
    Rp,
    Rni,
    Rzi,
    Rmi,
    Rpi,
    Rs,
}
/// Halves of an integer product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MulHalf {
    Lo,
    Hi,
    Wide,
}
/// Out-of-range behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ClampMode {
    Clamp,
    Wrap,
    Zero,
    Trap,
}
/// Comparisons. Those that end in `u` are true for unordered operands; `Lo`, `Ls`, `Hi` and `Hs` are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Lo,
    Ls,
    Hi,
    Hs,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}
/// Boolean combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BoolOp {
    And,
    Or,
    Xor,
}
/// Memory-order semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Semantics {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}
/// Memory-order scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}
/// Atomic and reduction operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AtomOp {
    And,
    Or,
    Xor,
    Cas,
    Exch,
    Add,
    Inc,
    Dec,
    Min,
    Max,
    Popc,
}
/// Shuffle modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}
/// Vote modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}
/// `testp` properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TestpOp {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}
/// `prmt` modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum PrmtMode {
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module of a million instructions fits in the memory of a small machine.
    #[test]
    fn instructions_are_small() {
        assert!(size_of::<Instr>() <= 96);
        assert!(size_of::<Operand>() <= 32);
    }
}
