//! From the words of an instruction to its form.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::{Form, Modifier, Op, ROWS, Rule};
use crate::ir::{Mods, Type};

/// An instruction without its operands.
#[derive(Clone, Debug)]
pub(crate) struct Recognized {
    pub op: Op,
    pub mods: Arc<Mods>,
    pub types: Arc<[Type]>,
    /// The forms that take these modifiers. They differ in their operands.
    pub forms: Vec<&'static Form>,
    /// The rules of the instruction that these modifiers meet.
    pub rules: Vec<&'static Rule>,
}

/// Why an instruction is not in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unrecognized {
    /// There is no such opcode.
    Opcode,
    /// The modifier with this index, counted from the one after the first word, is not one of the opcode, or not one
    /// that can stand here; the message says which can.
    Modifier(usize, String),
    /// A modifier is missing; the message says which.
    Incomplete(String),
}

/// Words assigned to the places of a form.
struct Assignment {
    form: &'static Form,
    /// For each taken part: the item, the part, and the choice.
    taken: Vec<(usize, usize, usize)>,
    /// Number of words that fit.
    fits: usize,
}

impl Assignment {
    /// Assigns the words in order, as far as they fit. Like the assembler, it accepts them in any order, save that types
    /// follow each other as in the form, and state spaces too.
    fn new(form: &'static Form, words: &[&str]) -> Assignment {
        let mut new = Assignment {
            form,
            taken: Vec::new(),
            fits: 0,
        };
        for word in words {
            match new.place(word) {
                Some(place) => new.taken.push(place),
                None => break,
            }
            new.fits += 1;
        }
        new
    }

    fn modifier(&self, (item, part, choice): (usize, usize, usize)) -> Modifier {
        self.form.items[item].parts[part][choice].1
    }

    /// The first free place for a word.
    fn place(&self, word: &str) -> Option<(usize, usize, usize)> {
        let free = self.free();
        free.flat_map(|(item, part)| {
            let choices = self.form.items[item].parts[part].iter().enumerate();
            choices
                .filter(|(_, (text, _))| *text == word)
                .map(move |(choice, _)| (item, part, choice))
        })
        .find(|place| {
            let sequence = self.modifier(*place).sequence();
            let later = |taken: &(usize, usize, usize)| {
                self.modifier(*taken).sequence() == sequence && taken.0 > place.0
            };
            sequence.is_none() || !self.taken.iter().any(later)
        })
    }

    /// Items and parts that no word has taken.
    fn free(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.form.items.iter().enumerate();
        all.flat_map(|(item, parts)| (0..parts.parts.len()).map(move |part| (item, part)))
            .filter(|place| !self.taken.iter().any(|taken| (taken.0, taken.1) == *place))
    }

    /// Places that must be taken still: those that are not optional, and the rest of a sequence that has begun.
    fn missing(&self) -> impl Iterator<Item = (usize, usize)> {
        self.free().filter(|(item, _)| {
            let parts = &self.form.items[*item];
            !parts.optional || self.taken.iter().any(|taken| taken.0 == *item)
        })
    }

    /// The spellings of a place.
    fn spellings(&self, (item, part): (usize, usize)) -> impl Iterator<Item = &'static str> {
        self.form.items[item].parts[part]
            .iter()
            .map(|choice| choice.0)
    }

    fn read(self, op: Op) -> Recognized {
        let (mut mods, mut types) = (Mods::default(), Vec::new());
        for place in &self.taken {
            self.modifier(*place).apply(&mut mods, &mut types);
        }
        mods.vector = mods.vector.max(1);
        Recognized {
            op,
            mods: Arc::new(mods),
            types: types.into(),
            forms: vec![self.form],
            rules: Vec::new(),
        }
    }
}

/// An opcode, and the words of its name after the first.
type Name = (Op, Vec<&'static str>);

/// The opcode of an instruction whose first word and modifiers these are, and how many modifiers belong to its name.
fn opcode(first: &str, words: &[&str]) -> Option<(Op, usize)> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Name>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table: HashMap<_, Vec<_>> = HashMap::new();
        for row in ROWS {
            let mut name = row.op.name().split('.');
            let first = name.next().unwrap_or("");
            table
                .entry(first)
                .or_default()
                .push((row.op, name.collect::<Vec<_>>()));
        }
        // Longer names first.
        table
            .values_mut()
            .for_each(|list| list.sort_by_key(|(_, rest)| std::cmp::Reverse(rest.len())));
        table
    });
    let found = table
        .get(first)?
        .iter()
        .find(|(_, rest)| words.starts_with(rest));
    found.map(|(op, rest)| (*op, rest.len()))
}

/// Recognizes an instruction by its first word and its modifiers, without their dots.
pub(crate) fn recognize(first: &str, words: &[&str]) -> Result<Recognized, Unrecognized> {
    let (op, used) = opcode(first, words).ok_or(Unrecognized::Opcode)?;
    let words = &words[used..];
    let all: Vec<Assignment> = (op.row().forms.iter())
        .map(|form| Assignment::new(form, words))
        .collect();
    let furthest = all.iter().map(|a| a.fits).max().unwrap_or(0);
    let mut found: Option<Recognized> = None;
    let mut best = Vec::new();
    for assignment in all.into_iter().filter(|a| a.fits == furthest) {
        if furthest < words.len() || assignment.missing().next().is_some() {
            best.push(assignment);
        } else if let Some(found) = &mut found {
            found.forms.push(assignment.form);
        } else {
            found = Some(assignment.read(op));
        }
    }
    match found {
        Some(mut found) => {
            (found.rules).extend(op.row().rules.iter().filter(|rule| rule.applies(words)));
            match found.rules.iter().find(|rule| rule.illegal) {
                Some(rule) => Err(illegal(rule, used, words)),
                None => Ok(found),
            }
        }
        None => Err(refuse(op, used, words, furthest, &best)),
    }
}

/// Names the modifiers that a rule rejects together.
fn illegal(rule: &Rule, used: usize, words: &[&str]) -> Unrecognized {
    let meant = |word: &&str| rule.words.iter().any(|one| one.contains(word));
    let last = words.iter().rposition(&meant).unwrap_or(0);
    let others: Vec<String> = (words[..last].iter().filter(|word| meant(word)))
        .map(|word| format!("'.{word}'"))
        .collect();
    let word = words.get(last).unwrap_or(&"");
    let message = if others.is_empty() {
        format!("'.{word}' is not legal here")
    } else {
        format!("'.{word}' cannot be combined with {}", others.join(" and "))
    };
    Unrecognized::Modifier(used + last, message)
}

/// Explains why `words` are no form of an instruction. `best` are the forms that the first `furthest` of them fit.
fn refuse(
    op: Op,
    used: usize,
    words: &[&str],
    furthest: usize,
    best: &[Assignment],
) -> Unrecognized {
    let spelled = std::iter::once(op.name())
        .chain(words[..furthest].iter().copied())
        .collect::<Vec<_>>()
        .join(".");
    let list = |places: &dyn Fn(&Assignment) -> Vec<&'static str>| {
        let mut unique: Vec<String> = Vec::new();
        for word in best.iter().flat_map(places) {
            let word = format!(".{word}");
            if !unique.contains(&word) {
                unique.push(word);
            }
        }
        unique.join(", ")
    };
    let Some(word) = words.get(furthest) else {
        // The first missing place of each form.
        let missing = list(&|a| {
            a.missing()
                .take(1)
                .flat_map(|place| a.spellings(place))
                .collect()
        });
        return Unrecognized::Incomplete(format!(
            "'{op}' lacks a modifier in '{spelled}': one of {missing}"
        ));
    };
    let mut known = op
        .row()
        .forms
        .iter()
        .flat_map(|f| f.items)
        .flat_map(|i| i.parts);
    let message = if !known.any(|part| part.iter().any(|choice| choice.0 == *word)) {
        format!("'{op}' has no modifier '.{word}'")
    } else {
        let possible = list(&|a| a.free().flat_map(|place| a.spellings(place)).collect());
        let possible = if possible.is_empty() {
            "nothing".to_string()
        } else {
            possible
        };
        format!("'.{word}' cannot be combined with '{spelled}', which takes {possible}")
    };
    Unrecognized::Modifier(used + furthest, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Instr, Pos};

    /// The words of a spelling in alphabetical order.
    fn sorted(text: &str) -> Vec<String> {
        let text = text
            .replace("shared::cta", "shared")
            .replace("membar.gl", "membar.gpu");
        let mut words: Vec<String> = text.split('.').map(str::to_string).collect();
        words.sort();
        words
    }

    /// The table has every instruction form found in the output of NVRTC, and its spelling keeps all words.
    #[test]
    fn forms_emitted_by_nvrtc_keep_every_word() {
        let mut count = 0;
        for spelling in include_str!("../../tests/data/forms.txt").lines() {
            let mut words = spelling.split('.');
            let first = words.next().unwrap_or("");
            let words: Vec<&str> = words.collect();
            let found =
                recognize(first, &words).unwrap_or_else(|why| panic!("{spelling}: {why:?}"));
            let instr = Instr {
                guard: None,
                op: found.op,
                form: found.forms[0],
                mods: found.mods,
                types: found.types,
                operands: vec![],
                pos: Pos::default(),
                loc: None,
            };
            assert_eq!(sorted(&instr.mnemonic()), sorted(spelling));
            count += 1;
        }
        assert_eq!(count, 909);
    }
}
