//! The instruction table: every instruction, its modifiers, its operands, and what the CPU device does with it.
//!
//! The rows are in `isa/*.isa`, whose notation `isa/README.md` describes. The build script turns them into [`Op`], [`Word`]
//! and static [`Row`]s. From the rows come the recognition of instructions, the checks of operands, the spelling of an
//! instruction, and `docs/ptx.md`.

mod gate;
mod recognize;
mod sample;

use crate::ir::{
    AtomOp, BoolOp, ClampMode, Cmp, Destination, Mods, MulHalf, OpClass, PrmtMode, Rounding, Scope,
    Semantics, ShflMode, Space, TestpOp, Type, VoteMode,
};

pub use gate::Gate;
pub(crate) use recognize::{Recognized, Unrecognized, recognize};
pub use sample::{
    DECLARATIONS, Sample, VARIABLES, WIDE_DECLARATIONS, bulk_copy_samples, mutations, samples,
};

include!(concat!(env!("OUT_DIR"), "/isa.rs"));

/// An instruction of the table.
#[derive(Debug)]
pub struct Row {
    /// The opcode.
    pub op: Op,
    /// Whether its first operand is a destination.
    pub destination: Destination,
    /// What the instruction does, in a sentence.
    pub summary: &'static str,
    /// Section of the PTX ISA manual.
    pub section: &'static str,
    /// Its forms. A spelling belongs to the first form that takes it.
    pub forms: &'static [Form],
    /// What holds for all forms.
    pub rules: &'static [Rule],
}

/// What some modifiers of an instruction mean together, whatever its form.
#[derive(Debug)]
pub struct Rule {
    /// The notation of the table.
    pub text: &'static str,
    /// The modifiers; of each, one of several spellings.
    pub words: &'static [&'static [&'static str]],
    /// The version and the architecture that it needs.
    pub gate: Gate,
    /// What the CPU device does with it.
    pub support: Support,
    /// Whether the assembler rejects it.
    pub illegal: bool,
}

impl Rule {
    /// Whether the modifiers of an instruction have all words of the rule.
    pub fn applies(&self, words: &[&str]) -> bool {
        (self.words.iter()).all(|one| one.iter().any(|word| words.contains(word)))
    }
}

/// A combination of modifiers and operands that an instruction has.
#[derive(Debug)]
pub struct Form {
    /// The notation of the table.
    pub text: &'static str,
    /// The modifiers in the order in which they are written.
    pub items: &'static [Item],
    /// The operands in order.
    pub operands: &'static [OperandSpec],
    /// Whether the operands are checked elsewhere, or not at all.
    pub open: bool,
    /// The version and the architecture that it needs.
    pub gate: Gate,
    /// What the CPU device does with it.
    pub support: Support,
}

/// What the CPU device does with a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The results are those that the manual defines, bit for bit.
    Exact,
    /// The results are within the bound that the manual states.
    Bounded,
    /// A kernel with it is refused.
    Refused,
}

/// A place for modifiers.
#[derive(Debug)]
pub struct Item {
    /// Whether it may be left out.
    pub optional: bool,
    /// Modifiers that are written together: for each, the spellings of which one is written.
    pub parts: &'static [&'static [(&'static str, Modifier)]],
}

/// The meaning of a modifier in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Modifier {
    Type(Type),
    /// A format that has no [`Type`] of its own.
    Packed(Type, Word),
    Flag(Flag),
    Rounding(Rounding),
    Semantics(Semantics),
    Scope(Scope),
    Space(Space),
    Vector(u32),
    MulHalf(MulHalf),
    ClampMode(ClampMode),
    Cmp(Cmp),
    BoolOp(BoolOp),
    AtomOp(AtomOp),
    ShflMode(ShflMode),
    VoteMode(VoteMode),
    TestpOp(TestpOp),
    PrmtMode(PrmtMode),
    /// `.l` (true) or `.r` of `shf`.
    ShiftLeft(bool),
    Word(Word),
}

/// Modifiers that are there or not, with a field of their own in [`Mods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Flag {
    Ftz,
    Sat,
    Satfinite,
    Relu,
    Approx,
    Full,
    NaN,
    Xorsign,
    Abs,
    Noftz,
    Cc,
    Shiftamt,
    To,
    Volatile,
    Nc,
    Sync,
    Aligned,
    Uni,
}

/// An operand of a form.
#[derive(Debug)]
pub struct OperandSpec {
    /// The name in the table.
    pub name: &'static str,
    /// Whether the instruction writes it.
    pub written: bool,
    /// Whether a predicate may follow after `|`.
    pub pair: bool,
    /// Whether it may be left out.
    pub presence: Presence,
    /// Its value; of one element, if it is a vector.
    pub kind: OperandKind,
    /// Number of elements of a vector; zero if it is none.
    pub elements: usize,
}

/// Whether an operand is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Always,
    /// Or not.
    Optional,
    /// Only together with a modifier.
    With(Word),
}

/// The value of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// As the instruction's type with this index.
    Typed(usize),
    /// As wide as that type.
    Sized(usize),
    /// As that type, or wider.
    Wide(usize),
    /// Twice as wide as the first type.
    Doubled,
    /// A register of this width.
    Register(u32),
    /// This type.
    Fixed(Type),
    /// An address in brackets.
    Address,
    /// `_`: nothing is written.
    Sink,
    /// An integer literal: one of these values, or in the range from the first to the last; any, if there are none.
    Immediate {
        /// The values, or the ends of the range.
        values: &'static [i64],
        /// Whether they are the ends of a range.
        range: bool,
    },
    /// Anything.
    Any,
}

impl Op {
    /// The row of the table.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

impl Flag {
    fn is_in(self, mods: &Mods) -> bool {
        match self {
            Flag::Ftz => mods.ftz,
            Flag::Sat => mods.sat,
            Flag::Satfinite => mods.satfinite,
            Flag::Relu => mods.relu,
            Flag::Approx => mods.approx,
            Flag::Full => mods.full,
            Flag::NaN => mods.nan,
            Flag::Xorsign => mods.xorsign,
            Flag::Abs => mods.abs,
            Flag::Noftz => mods.noftz,
            Flag::Cc => mods.cc,
            Flag::Shiftamt => mods.shiftamt,
            Flag::To => mods.to,
            Flag::Volatile => mods.volatile,
            Flag::Nc => mods.nc,
            Flag::Sync => mods.sync,
            Flag::Aligned => mods.aligned,
            Flag::Uni => mods.uni,
        }
    }

    fn of(self, mods: &mut Mods) -> &mut bool {
        match self {
            Flag::Ftz => &mut mods.ftz,
            Flag::Sat => &mut mods.sat,
            Flag::Satfinite => &mut mods.satfinite,
            Flag::Relu => &mut mods.relu,
            Flag::Approx => &mut mods.approx,
            Flag::Full => &mut mods.full,
            Flag::NaN => &mut mods.nan,
            Flag::Xorsign => &mut mods.xorsign,
            Flag::Abs => &mut mods.abs,
            Flag::Noftz => &mut mods.noftz,
            Flag::Cc => &mut mods.cc,
            Flag::Shiftamt => &mut mods.shiftamt,
            Flag::To => &mut mods.to,
            Flag::Volatile => &mut mods.volatile,
            Flag::Nc => &mut mods.nc,
            Flag::Sync => &mut mods.sync,
            Flag::Aligned => &mut mods.aligned,
            Flag::Uni => &mut mods.uni,
        }
    }
}

impl Modifier {
    /// Adds the modifier to those of an instruction.
    fn apply(self, mods: &mut Mods, types: &mut Vec<Type>) {
        match self {
            Modifier::Type(ty) => types.push(ty),
            Modifier::Packed(ty, word) => {
                types.push(ty);
                mods.other.push(word);
            }
            Modifier::Flag(flag) => *flag.of(mods) = true,
            Modifier::Rounding(x) => mods.rounding = Some(x),
            Modifier::Semantics(x) => mods.semantics = Some(x),
            Modifier::Scope(x) => mods.scope = Some(x),
            Modifier::Space(x) if mods.space.is_some() => mods.space2 = Some(x),
            Modifier::Space(x) => mods.space = Some(x),
            Modifier::Vector(x) => mods.vector = x,
            Modifier::MulHalf(x) => mods.mul = Some(x),
            Modifier::ClampMode(x) => mods.clamp = Some(x),
            Modifier::Cmp(x) => mods.cmp = Some(x),
            Modifier::BoolOp(x) => mods.bool_op = Some(x),
            Modifier::AtomOp(x) => mods.atom = Some(x),
            Modifier::ShflMode(x) => mods.shfl = Some(x),
            Modifier::VoteMode(x) => mods.vote = Some(x),
            Modifier::TestpOp(x) => mods.testp = Some(x),
            Modifier::PrmtMode(x) => mods.prmt = Some(x),
            Modifier::ShiftLeft(x) => mods.shift_left = Some(x),
            Modifier::Word(word) => mods.other.push(word),
        }
    }

    /// Whether an instruction has the modifier. Types and state spaces, of which it can have several, are not asked for.
    pub(crate) fn is_in(self, mods: &Mods) -> bool {
        match self {
            Modifier::Type(_) | Modifier::Packed(..) | Modifier::Space(_) => false,
            Modifier::Flag(flag) => flag.is_in(mods),
            Modifier::Rounding(x) => mods.rounding == Some(x),
            Modifier::Semantics(x) => mods.semantics == Some(x),
            Modifier::Scope(x) => mods.scope == Some(x),
            Modifier::Vector(x) => mods.vector == x,
            Modifier::MulHalf(x) => mods.mul == Some(x),
            Modifier::ClampMode(x) => mods.clamp == Some(x),
            Modifier::Cmp(x) => mods.cmp == Some(x),
            Modifier::BoolOp(x) => mods.bool_op == Some(x),
            Modifier::AtomOp(x) => mods.atom == Some(x),
            Modifier::ShflMode(x) => mods.shfl == Some(x),
            Modifier::VoteMode(x) => mods.vote == Some(x),
            Modifier::TestpOp(x) => mods.testp == Some(x),
            Modifier::PrmtMode(x) => mods.prmt == Some(x),
            Modifier::ShiftLeft(x) => mods.shift_left == Some(x),
            Modifier::Word(word) => mods.other.contains(&word),
        }
    }

    /// The modifiers of one sequence are told apart by their order.
    fn sequence(self) -> Option<u8> {
        match self {
            Modifier::Type(_) | Modifier::Packed(..) => Some(0),
            Modifier::Space(_) => Some(1),
            _ => None,
        }
    }
}
