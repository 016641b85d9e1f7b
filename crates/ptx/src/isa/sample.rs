//! Texts of instructions, for tests: each form of the table with each of its modifiers.

use super::{Form, Item, Op, OperandKind, OperandSpec, Presence, Recognized, recognize};
use crate::ir::{Space, Type};

/// Declarations of the registers and variables that the samples name, for the body of a kernel.
pub const DECLARATIONS: &str = "\
.reg .pred p<9>; .reg .b16 h<9>; .reg .b32 r<9>; .reg .b64 l<9>; .reg .b128 q<9>; .reg .f32 f<9>; .reg .f64 d<9>;
.shared .align 16 .b8 shared_bytes[256];
";

/// A spelling of a form: for each item, the choice in each of its parts.
type Spelling = Vec<Option<Vec<usize>>>;

impl Form {
    /// Spellings in which every modifier of the form occurs: the shortest one, and for each modifier that one with it.
    fn spellings(&self) -> Vec<Spelling> {
        let chosen = |item: &Item| vec![0; item.parts.len()];
        let shortest: Spelling = (self.items.iter())
            .map(|item| (!item.optional).then(|| chosen(item)))
            .collect();
        let mut all = vec![shortest.clone()];
        for (n, item) in self.items.iter().enumerate() {
            for (part, choices) in item.parts.iter().enumerate() {
                for choice in usize::from(!item.optional)..choices.len() {
                    let mut with = chosen(item);
                    with[part] = choice;
                    let mut spelling = shortest.clone();
                    spelling[n] = Some(with);
                    all.push(spelling);
                }
            }
        }
        all
    }

    fn words(&self, spelling: &Spelling) -> Vec<&'static str> {
        let items = self.items.iter().zip(spelling);
        let chosen =
            items.filter_map(|(item, choices)| Some(item.parts.iter().zip(choices.as_ref()?)));
        chosen
            .flatten()
            .map(|(part, choice)| part[*choice].0)
            .collect()
    }
}

/// The instructions that [`Op`] has, with every modifier at least once and operands that fit; none for forms whose
/// operands the table does not list.
pub fn samples(op: Op) -> Vec<(&'static Form, String)> {
    let mut all = Vec::new();
    for form in op.row().forms.iter().filter(|form| !form.open) {
        for spelling in form.spellings() {
            let words = form.words(&spelling);
            let mut name = op.name().split('.');
            let first = name.next().unwrap_or("");
            let rest: Vec<&str> = name.chain(words.iter().copied()).collect();
            let Ok(found) = recognize(first, &rest) else {
                continue;
            };
            let wanted = form.operands.iter().filter(|o| match o.presence {
                Presence::Always => true,
                Presence::Optional => false,
                Presence::With(word) => found.mods.other.contains(&word),
            });
            let operands: Vec<String> = wanted
                .enumerate()
                .map(|(n, o)| operand(o, n, &found))
                .collect();
            let spelled = std::iter::once(op.name())
                .chain(words)
                .collect::<Vec<_>>()
                .join(".");
            all.push((
                form,
                format!("{spelled} {};", operands.join(", ")).replace(" ;", ";"),
            ));
        }
    }
    all
}

/// A register of this type with a number.
fn register(ty: Type, n: usize) -> String {
    let letter = match ty {
        Type::Pred => 'p',
        Type::F32 => 'f',
        Type::F64 => 'd',
        _ => match ty.bits() {
            0..=16 => 'h',
            17..=32 => 'r',
            33..=64 => 'l',
            _ => 'q',
        },
    };
    format!("{letter}{n}")
}

fn operand(spec: &OperandSpec, n: usize, found: &Recognized) -> String {
    let ty = |index: usize| found.types.get(index).copied().unwrap_or(Type::B32);
    let doubled = |t: Type| if t.bits() == 16 { Type::B32 } else { Type::B64 };
    let one = |n: usize| match spec.kind {
        OperandKind::Typed(index) | OperandKind::Sized(index) => register(ty(index), n),
        OperandKind::Wide(index) => register(ty(index), n),
        OperandKind::Doubled => register(doubled(ty(0)), n),
        OperandKind::Fixed(t) => register(t, n),
        OperandKind::Address => match found.mods.space {
            Some(Space::Shared | Space::SharedCluster) => "[shared_bytes]".into(),
            _ => format!("[l{n}]"),
        },
        OperandKind::Immediate => "16".into(),
        OperandKind::Any => format!("r{n}"),
    };
    let moved = matches!(spec.kind, OperandKind::Wide(_)) && found.mods.vector > 1;
    if moved {
        let elements: Vec<String> = (1..=found.mods.vector as usize).map(&one).collect();
        format!("{{{}}}", elements.join(", "))
    } else {
        one(n + 1)
    }
}
