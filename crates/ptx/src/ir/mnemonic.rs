//! Spells an instruction's opcode, modifiers and types, for reports and tests.

use super::instruction::{Instr, Semantics};
use super::types::{Space, Type};

/// Spelling of a type, without the dot. [`Mods::other`](super::Mods::other) holds the spelling of a packed format.
fn type_word(ty: Type) -> Option<String> {
    match ty {
        Type::Packed(_) => None,
        _ => Some(format!("{ty:?}").to_lowercase()),
    }
}

/// Spelling of an enum whose variants are named like their modifiers.
fn word(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

impl Space {
    /// Spelling of the state space, without the dot.
    pub fn word(self) -> &'static str {
        match self {
            Space::Reg => "reg",
            Space::Const => "const",
            Space::Global => "global",
            Space::Local => "local",
            Space::Param => "param",
            Space::Shared => "shared",
            Space::SharedCluster => "shared::cluster",
            Space::Tex => "tex",
        }
    }
}

impl Instr {
    /// The opcode with its modifiers and types, such as `ld.volatile.global.v2.u32`. The order of the words is fixed and
    /// need not be the order in the PTX; `shared::cta` reads `shared`, and `membar.gl` reads `membar.gpu`.
    pub fn mnemonic(&self) -> String {
        let m = &self.mods;
        let mut words = vec![self.op.name().to_string()];
        let mut flag = |set: bool, word: &str| {
            if set {
                words.push(word.to_string());
            }
        };
        flag(m.sync, "sync");
        flag(m.aligned, "aligned");
        flag(m.uni, "uni");
        flag(m.to, "to");
        flag(m.volatile, "volatile");
        words.extend(m.semantics.map(|s| {
            if s == Semantics::AcqRel {
                "acq_rel".to_string()
            } else {
                word(s)
            }
        }));
        words.extend(m.scope.map(word));
        words.extend(m.space.map(|s| s.word().to_string()));
        words.extend(m.space2.map(|s| s.word().to_string()));
        words.extend(m.atom.map(word));
        words.extend(m.shfl.map(word));
        words.extend(m.vote.map(word));
        words.extend(m.testp.map(word));
        words.extend(m.mul.map(word));
        words.extend(
            m.shift_left
                .map(|left| if left { "l" } else { "r" }.to_string()),
        );
        words.extend(m.cmp.map(word));
        words.extend(m.bool_op.map(word));
        words.extend(m.rounding.map(word));
        let mut flag = |set: bool, word: &str| {
            if set {
                words.push(word.to_string());
            }
        };
        flag(m.nc, "nc");
        flag(m.approx, "approx");
        flag(m.full, "full");
        flag(m.ftz, "ftz");
        flag(m.noftz, "noftz");
        flag(m.nan, "NaN");
        flag(m.xorsign, "xorsign");
        flag(m.abs, "abs");
        flag(m.sat, "sat");
        flag(m.satfinite, "satfinite");
        flag(m.relu, "relu");
        flag(m.cc, "cc");
        flag(m.shiftamt, "shiftamt");
        words.extend(m.clamp.map(word));
        words.extend(m.other.iter().cloned());
        if m.vector > 1 {
            words.push(format!("v{}", m.vector));
        }
        words.extend(self.types.iter().copied().filter_map(type_word));
        words.extend(m.prmt.map(word));
        words.join(".")
    }
}
