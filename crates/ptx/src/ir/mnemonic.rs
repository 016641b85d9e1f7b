//! An instruction's opcode and modifiers as words again, for reports and tests.

use crate::ir::*;

/// The word of a [`Type`], without the dot. Packed formats have none of their own: it stands among [`Mods::other`].
fn type_word(ty: Type) -> Option<String> {
    match ty {
        Type::Packed(_) => None,
        _ => Some(format!("{ty:?}").to_lowercase()),
    }
}

/// The word of an enum whose variants are spelled like their words.
fn word(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

impl Space {
    /// The word of the state space, without the dot.
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
    /// The opcode with its modifiers and types, such as `ld.volatile.global.v2.u32`. The words are those that were written
    /// (but `shared` for `shared::cta`, `gpu` for the `gl` of `membar`), in an order of our own.
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

#[cfg(test)]
mod tests {
    use crate::ir::*;
    use crate::parse::{modifiers, opcode_lookup};

    /// Every form that NVRTC was seen to emit is understood, and no word of it gets lost.
    #[test]
    fn forms() {
        let mut count = 0;
        for form in include_str!("../../tests/data/forms.txt").lines() {
            let mut words = form.split('.');
            let first = words.next().unwrap_or("");
            let words: Vec<&str> = words.collect();
            let (op, used) = opcode_lookup::find(first, &words[..words.len().min(2)])
                .unwrap_or_else(|| panic!("{form}"));
            let (mut mods, mut types) = (Mods::default(), Vec::new());
            for word in &words[used..] {
                assert!(
                    modifiers::apply(op, word, &mut mods, &mut types),
                    "{form}: {word}"
                );
            }
            let instr = Instr {
                guard: None,
                op,
                mods,
                types,
                operands: vec![],
                pos: Pos::default(),
                loc: None,
            };
            let sorted = |text: &str| {
                let text = text
                    .replace("shared::cta", "shared")
                    .replace("membar.gl", "membar.gpu");
                let mut words: Vec<String> = text.split('.').map(str::to_string).collect();
                words.sort();
                words
            };
            assert_eq!(sorted(form), sorted(&instr.mnemonic()));
            count += 1;
        }
        assert_eq!(count, 909);
    }
}
