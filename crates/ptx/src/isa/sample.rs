//! Texts of instructions, for tests: each form of the table with each of its modifiers, and what a small change makes of it.

use std::collections::BTreeSet;

use super::{
    Form, Gate, Item, Op, OperandKind, OperandSpec, Presence, Recognized, Rule, Support, recognize,
};
use crate::ir::{Space, Type};

/// Declarations of the variables that the samples name, for module scope.
pub const VARIABLES: &str =
    ".global .align 32 .b8 global_bytes[256]; .const .align 32 .b8 const_bytes[256];\n";

/// Declarations of the registers and variables that the samples name, for the body of a kernel with the parameter
/// `.param .b64 kernel_parameter`.
pub const DECLARATIONS: &str = "\
.reg .pred p<20>; .reg .b8 c<20>; .reg .b16 h<20>; .reg .b32 r<20>; .reg .b64 l<20>; .reg .f32 f<20>; .reg .f64 d<20>;
.shared .align 16 .b8 shared_bytes[256]; .local .align 16 .b8 local_bytes[256];
";

/// Declarations that need PTX ISA 8.3 and sm_70.
pub const WIDE_DECLARATIONS: &str = ".reg .b128 q<20>;\n";

/// The greatest number of spellings of a form that [`samples`] lists completely.
const MOST: usize = 256;

/// A spelling of a form: for each item, the choice in each of its parts.
type Spelling = Vec<Option<Vec<usize>>>;

/// An instruction of the table as text.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its form.
    pub form: &'static Form,
    /// The rules that its modifiers meet.
    pub rules: Vec<&'static Rule>,
    /// The instruction, with its semicolon.
    pub text: String,
}

impl Sample {
    /// What the CPU device does with it.
    pub fn support(&self) -> Support {
        let refused = self
            .rules
            .iter()
            .any(|rule| rule.support == Support::Refused);
        if refused {
            Support::Refused
        } else {
            self.form.support
        }
    }

    /// The requirements of the form and of the modifiers.
    pub fn gates(&self) -> impl Iterator<Item = &'static Gate> {
        std::iter::once(&self.form.gate).chain(self.rules.iter().map(|rule| &rule.gate))
    }
}

impl Form {
    /// Spellings in which every modifier of the form occurs: all, if they are few; else the shortest one, and for each
    /// modifier that one with it.
    fn spellings(&self) -> Vec<Spelling> {
        let count = |item: &Item| {
            let choices: usize = item.parts.iter().map(|part| part.len()).product();
            choices + usize::from(item.optional)
        };
        let counts = self.items.iter().map(count);
        let total = counts.fold(1usize, |a, b| a.saturating_mul(b));
        if total <= MOST {
            return self.all_spellings();
        }
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

    /// Every combination of the modifiers.
    fn all_spellings(&self) -> Vec<Spelling> {
        let mut all: Vec<Spelling> = vec![Vec::new()];
        for item in self.items {
            let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
            for part in item.parts {
                let extended = choices.iter().flat_map(|before| {
                    (0..part.len()).map(move |n| [before.as_slice(), &[n]].concat())
                });
                choices = extended.collect();
            }
            let mut places: Vec<Option<Vec<usize>>> = choices.into_iter().map(Some).collect();
            if item.optional {
                places.insert(0, None);
            }
            let extended = all.iter().flat_map(|before| {
                let places = places.iter().cloned();
                places.map(move |place| [before.as_slice(), &[place]].concat())
            });
            all = extended.collect();
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
pub fn samples(op: Op) -> Vec<Sample> {
    samples_of(op, false)
}

/// Bulk copies and reductions, with every modifier at least once and operands that fit. The table does not list their
/// operands.
pub fn bulk_copy_samples() -> Vec<Sample> {
    let ops = [Op::CpAsyncBulk, Op::CpReduceAsync];
    ops.into_iter()
        .flat_map(|op| samples_of(op, true))
        .collect()
}

/// Samples of the forms whose operands the table lists, or of the others (`open`), which must be bulk copies.
fn samples_of(op: Op, open: bool) -> Vec<Sample> {
    let mut all = Vec::new();
    for form in op.row().forms.iter().filter(|form| form.open == open) {
        for spelling in form.spellings() {
            let words = form.words(&spelling);
            let Some((found, spelled)) = recognized(op, &words) else {
                continue;
            };
            for optional in [false, true] {
                if optional
                    && !form
                        .operands
                        .iter()
                        .any(|o| o.presence == Presence::Optional)
                {
                    continue;
                }
                all.push(Sample {
                    form,
                    rules: found.rules.clone(),
                    text: text(&spelled, form, &found, &words, optional),
                });
            }
        }
    }
    all
}

/// Spellings that differ from those of [`samples`] by a modifier that is left out, added or exchanged for another of the
/// same instruction, with the operands of the sample.
pub fn mutations(op: Op) -> BTreeSet<String> {
    let words = op.row().forms.iter().flat_map(|form| form.items);
    let words = words.flat_map(|item| item.parts).copied().flatten();
    let known: BTreeSet<&str> = words.map(|(word, _)| *word).collect();
    let mut all = BTreeSet::new();
    for sample in samples(op) {
        let (spelled, operands) = sample
            .text
            .split_once([' ', ';'])
            .unwrap_or((&sample.text, ""));
        let end = if operands.is_empty() { ";" } else { " " };
        let own = op.name().split('.').count();
        let words: Vec<&str> = spelled.split('.').collect();
        let mut add = |words: &[&str]| all.insert(format!("{}{end}{operands}", words.join(".")));
        for n in own..words.len() {
            add(&[&words[..n], &words[n + 1..]].concat());
            for other in &known {
                add(&[&words[..n], &[other], &words[n + 1..]].concat());
            }
        }
        for other in &known {
            add(&[&words[..own], &[other], &words[own..]].concat());
        }
    }
    all
}

/// The instruction with these modifiers, and its spelling.
fn recognized(op: Op, words: &[&str]) -> Option<(Recognized, String)> {
    let mut name = op.name().split('.');
    let first = name.next().unwrap_or("");
    let rest: Vec<&str> = name.chain(words.iter().copied()).collect();
    let found = recognize(first, &rest).ok()?;
    Some((found, [&[first], rest.as_slice()].concat().join(".")))
}

/// The instruction with operands; `optional` tells whether with those that may be left out.
fn text(spelled: &str, form: &Form, found: &Recognized, words: &[&str], optional: bool) -> String {
    let wanted = form.operands.iter().filter(|o| match o.presence {
        Presence::Always => true,
        Presence::Optional => optional,
        Presence::With(word) => found.mods.other.contains(&word),
    });
    let mut addresses = 0;
    let mut operands: Vec<String> = wanted
        .enumerate()
        .map(|(n, o)| operand(o, n, found, words, &mut addresses))
        .collect();
    if form.open {
        operands.extend(bulk_operands(found, words));
    }
    format!("{spelled} {};", operands.join(", ")).replace(" ;", ";")
}

/// The operands of a bulk copy with these modifiers.
fn bulk_operands(found: &Recognized, words: &[&str]) -> Vec<String> {
    let has = |word: &str| words.contains(&word);
    let dimensions = words
        .iter()
        .find_map(|word| word.strip_suffix('d')?.parse().ok());
    let is_tensor = has("tensor");
    let memory = match dimensions {
        Some(dimensions) if is_tensor => tensor_address(dimensions, words),
        _ => "[global_bytes]".to_string(),
    };
    let shared = || "[shared_bytes]".to_string();
    let mut all = match (found.mods.space, found.mods.space2) {
        _ if has("prefetch") => vec![memory],
        (Some(Space::Global), _) => vec![memory, shared()],
        (_, Some(Space::Global)) => vec![shared(), memory],
        _ => vec![shared(), shared()],
    };
    let offsets = |count: usize| format!("{{{}}}", vec!["h1"; count].join(", "));
    let mut add = |wanted: bool, operands: &[&str]| {
        if wanted {
            all.extend(operands.iter().map(ToString::to_string));
        }
    };
    add(!is_tensor, &["r1"]);
    add(has("ignore_oob"), &["r2", "r3"]);
    add(has("mbarrier::complete_tx::bytes"), &["[shared_bytes+128]"]);
    if let (true, Some(dimensions @ 3..)) = (has("im2col"), dimensions) {
        add(true, &[&offsets(dimensions - 2)]);
    }
    add(has("im2col::w") || has("im2col::w::128"), &["{h1, h2}"]);
    add(has("multicast::cluster"), &["h3"]);
    add(has("multicast::cluster::32b"), &["r3"]);
    add(has("L2::cache_hint"), &["l1"]);
    add(has("cp_mask"), &["h4"]);
    all
}

/// A tensor map with the coordinates of an element or, in the modes that gather and scatter, of four rows.
fn tensor_address(dimensions: usize, words: &[&str]) -> String {
    let rows = ["tile::gather4", "tile::scatter4"];
    let coordinates = match words.iter().any(|word| rows.contains(word)) {
        true => 5,
        false => dimensions,
    };
    let coordinates: Vec<String> = (1..=coordinates).map(|n| format!("r{n}")).collect();
    format!("[l2, {{{}}}]", coordinates.join(", "))
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

/// An address, the n-th of the instruction.
fn address(n: usize, found: &Recognized, words: &[&str]) -> &'static str {
    let space = match (n, found.mods.space2) {
        (1, Some(space)) => Some(space),
        _ => found.mods.space,
    };
    match space {
        Some(Space::Shared | Space::SharedCluster) => "[shared_bytes]",
        Some(Space::Const) => "[const_bytes]",
        Some(Space::Local) => "[local_bytes]",
        Some(Space::Param) if found.op == Op::St || words.contains(&"param::func") => {
            "[call_parameter]"
        }
        Some(Space::Param) => "[kernel_parameter]",
        Some(_) => "[global_bytes]",
        None => "[l1]",
    }
}

fn operand(
    spec: &OperandSpec,
    n: usize,
    found: &Recognized,
    words: &[&str],
    addresses: &mut usize,
) -> String {
    let ty = |index: usize| found.types.get(index).copied().unwrap_or(Type::B32);
    let doubled = |t: Type| if t.bits() == 16 { Type::B32 } else { Type::B64 };
    let one = |n: usize| match spec.kind {
        OperandKind::Typed(index) if ty(index).bits() <= 8 && ty(index) != Type::Pred => {
            format!("c{n}")
        }
        OperandKind::Typed(index) | OperandKind::Sized(index) => register(ty(index), n),
        OperandKind::Wide(index) => register(ty(index), n),
        OperandKind::Doubled => register(doubled(ty(0)), n),
        OperandKind::Register(_) => register(Type::B32, n),
        OperandKind::Fixed(t) => register(t, n),
        OperandKind::Address => String::new(),
        OperandKind::Sink => "_".to_string(),
        OperandKind::Immediate { values, .. } => values.first().unwrap_or(&0).to_string(),
        OperandKind::Any => format!("r{n}"),
    };
    let vector = found.mods.vector as usize;
    match spec.kind {
        OperandKind::Address => {
            *addresses += 1;
            address(*addresses - 1, found, words).to_string()
        }
        OperandKind::Wide(_) if vector > 1 => {
            let elements: Vec<String> = (1..=vector).map(|i| one(10 * (n % 2) + i)).collect();
            format!("{{{}}}", elements.join(", "))
        }
        _ if spec.elements > 0 => {
            let elements: Vec<String> = (1..=spec.elements).map(|i| one(4 * n + i)).collect();
            format!("{{{}}}", elements.join(", "))
        }
        _ if spec.pair => format!("{}|p{}", one(n + 1), n + 1),
        _ => one(n + 1),
    }
}
