//! Spells an instruction's opcode, modifiers and types.

use super::instruction::Instr;
use super::types::Space;
use crate::isa::Modifier;

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
    /// The opcode with its modifiers and types, such as `ld.volatile.global.v2.u32`, in the order of the instruction table.
    /// `shared::cta` reads `shared`, and `membar.gl` reads `membar.gpu`, where both are possible.
    pub fn mnemonic(&self) -> String {
        let mut words = vec![self.op.name()];
        let mut position = Position::default();
        for item in self.form.items {
            let mut next = position;
            let spelled: Option<Vec<&str>> = (item.parts.iter())
                .map(|part| {
                    let written = part
                        .iter()
                        .find(|(_, modifier)| next.takes(self, *modifier));
                    written.map(|(word, _)| *word)
                })
                .collect();
            if let Some(spelled) = spelled {
                words.extend(spelled);
                position = next;
            }
        }
        words.join(".")
    }
}

/// What has been spelled.
#[derive(Clone, Copy, Default)]
struct Position {
    /// Number of types.
    types: usize,
    /// Number of state spaces.
    spaces: usize,
    /// Bit n: element n of [`Mods::other`](super::Mods::other).
    others: u64,
}

impl Position {
    /// Whether `i` has this modifier next.
    fn takes(&mut self, i: &Instr, modifier: Modifier) -> bool {
        match modifier {
            Modifier::Type(ty) | Modifier::Packed(ty, _) => {
                let packed = match modifier {
                    Modifier::Packed(_, word) => i.mods.other.contains(&word),
                    _ => true,
                };
                let takes = packed && i.types.get(self.types) == Some(&ty);
                self.types += usize::from(takes);
                takes
            }
            Modifier::Space(space) => {
                let next = [i.mods.space, i.mods.space2]
                    .get(self.spaces)
                    .copied()
                    .flatten();
                let takes = next == Some(space);
                self.spaces += usize::from(takes);
                takes
            }
            // The same word can stand in two places: the layouts of two matrices.
            Modifier::Word(word) => {
                let mut others = i.mods.other.iter().take(64).enumerate();
                let next = others.find(|(n, w)| **w == word && self.others >> n & 1 == 0);
                self.others |= next.map_or(0, |(n, _)| 1 << n);
                next.is_some()
            }
            _ => modifier.is_in(&i.mods),
        }
    }
}
