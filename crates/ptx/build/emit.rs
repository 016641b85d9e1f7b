//! Writes the table as Rust.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::table::{Attributes, Form, Item, Operand, OperandKind, Part, Row, Rule, Table};

/// Types by spelling.
const TYPES: &[&str] = &[
    "Pred",
    "B8",
    "B16",
    "B32",
    "B64",
    "B128",
    "U8",
    "U16",
    "U32",
    "U64",
    "S8",
    "S16",
    "S32",
    "S64",
    "U16x2",
    "S16x2",
    "F16",
    "F16x2",
    "BF16",
    "BF16x2",
    "TF32",
    "F32",
    "F32x2",
    "F64",
    "E4M3",
    "E5M2",
    "E4M3x2",
    "E5M2x2",
    "TexRef",
    "SamplerRef",
    "SurfRef",
];

/// Formats without a type of their own, and their widths in bits.
const PACKED: &[(&str, u32)] = &[
    ("b1", 1),
    ("s2", 2),
    ("u2", 2),
    ("s4", 4),
    ("u4", 4),
    ("b4", 4),
    ("e2m1", 4),
    ("e2m3", 6),
    ("e3m2", 6),
    ("b6", 6),
    ("ue8m0", 8),
    ("ue4m3", 8),
    ("e2m1x2", 8),
    ("ue8m0x2", 16),
    ("e2m3x2", 16),
    ("e3m2x2", 16),
    ("e2m1x4", 16),
    ("s2f6x2", 16),
    ("ue5m3x2", 16),
    ("e4m3x4", 32),
    ("e5m2x4", 32),
    ("e2m3x4", 32),
    ("e3m2x4", 32),
    ("u8x4", 32),
    ("s8x4", 32),
    ("b8x4", 32),
    ("b16x2", 32),
    ("u32x2", 64),
    ("s32x2", 64),
    ("b32x2", 64),
    ("b1024", 1024),
];

/// The kinds of modifiers with an enum of their own: kind, enum, words. The words of a kind in capitals are recognized
/// only where the table names the kind, because they mean other things elsewhere.
const KINDS: &[(&str, &str, &[&str])] = &[
    (
        "rounding",
        "Rounding",
        &[
            "rn", "rna", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rs",
        ],
    ),
    (
        "order",
        "Semantics",
        &["weak", "relaxed", "acquire", "release", "acq_rel", "sc"],
    ),
    ("scope", "Scope", &["cta", "cluster", "gpu", "sys"]),
    ("HALF", "MulHalf", &["lo", "hi", "wide"]),
    ("CLAMP", "ClampMode", &["clamp", "wrap", "zero", "trap"]),
    (
        "CMP",
        "Cmp",
        &[
            "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu",
            "gtu", "geu", "num", "nan",
        ],
    ),
    ("BOOL", "BoolOp", &["and", "or", "xor"]),
    (
        "OP",
        "AtomOp",
        &[
            "and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max", "popc",
        ],
    ),
    ("SHFL", "ShflMode", &["up", "down", "bfly", "idx"]),
    ("VOTE", "VoteMode", &["all", "any", "uni", "ballot"]),
    (
        "TESTP",
        "TestpOp",
        &[
            "finite",
            "infinite",
            "number",
            "notanumber",
            "normal",
            "subnormal",
        ],
    ),
    (
        "PRMT",
        "PrmtMode",
        &["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"],
    ),
];

/// Modifiers that are there or not.
const FLAGS: &[&str] = &[
    "ftz",
    "sat",
    "satfinite",
    "relu",
    "approx",
    "full",
    "NaN",
    "xorsign",
    "abs",
    "noftz",
    "cc",
    "shiftamt",
    "to",
    "volatile",
    "nc",
    "sync",
    "aligned",
    "uni",
];

const SPACES: &[(&str, &str)] = &[
    ("reg", "Reg"),
    ("const", "Const"),
    ("global", "Global"),
    ("local", "Local"),
    ("param", "Param"),
    ("param::entry", "Param"),
    ("param::func", "Param"),
    ("shared", "Shared"),
    ("shared::cta", "Shared"),
    ("shared::cluster", "SharedCluster"),
    ("tex", "Tex"),
];

/// `L2::cache_hint` as the name of an enum variant.
fn variant(word: &str) -> String {
    let mut name = String::new();
    let mut upper = true;
    for c in word.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        } else {
            upper = true;
        }
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("N{name}")
    } else {
        name
    }
}

fn type_of(word: &str) -> Option<String> {
    let known = TYPES.iter().find(|t| t.to_lowercase() == word);
    let packed = || {
        PACKED
            .iter()
            .find(|p| p.0 == word)
            .map(|p| format!("Type::Packed({})", p.1))
    };
    known.map(|t| format!("Type::{t}")).or_else(packed)
}

/// The modifier that a word is, as an expression, and whether it is one of [`Word`]'s.
fn modifier(kind: &str, word: &str, words: &mut BTreeSet<String>) -> String {
    if kind.is_empty() {
        if PACKED.iter().any(|p| p.0 == word) {
            words.insert(word.to_string());
            return format!(
                "Modifier::Packed({}, Word::{})",
                type_of(word).unwrap_or_default(),
                variant(word)
            );
        }
        if let Some(ty) = type_of(word) {
            return format!("Modifier::Type({ty})");
        }
        if FLAGS.contains(&word) {
            return format!("Modifier::Flag(Flag::{})", variant(word));
        }
        if let Some((_, space)) = SPACES.iter().find(|s| s.0 == word) {
            return format!("Modifier::Space(Space::{space})");
        }
        if matches!(word, "v2" | "v4" | "v8") {
            return format!("Modifier::Vector({})", &word[1..]);
        }
    }
    let found = KINDS.iter().find(|(name, _, list)| {
        let named = name.eq_ignore_ascii_case(kind);
        let plain = kind.is_empty() && !name.starts_with(|c: char| c.is_ascii_uppercase());
        (named || plain) && list.contains(&word)
    });
    if let Some((_, ty, _)) = found {
        let name: String = word.split('_').map(variant).collect();
        let name = if word == "notanumber" {
            "NotANumber".into()
        } else {
            name
        };
        return format!("Modifier::{ty}({ty}::{name})");
    }
    match (kind, word) {
        ("shift", "l") => "Modifier::ShiftLeft(true)".into(),
        ("shift", "r") => "Modifier::ShiftLeft(false)".into(),
        ("scope", "gl") => "Modifier::Scope(Scope::Gpu)".into(),
        ("", _) => {
            words.insert(word.to_string());
            format!("Modifier::Word(Word::{})", variant(word))
        }
        _ => panic!("the kind '{kind}' has no word '{word}'"),
    }
}

fn part(part: &Part, words: &mut BTreeSet<String>) -> String {
    let choices: Vec<String> = (part.words.iter())
        .map(|word| format!("({word:?}, {})", modifier(&part.kind, word, words)))
        .collect();
    format!("&[{}]", choices.join(", "))
}

fn item(item: &Item, words: &mut BTreeSet<String>) -> String {
    let parts: Vec<String> = item.parts.iter().map(|p| part(p, words)).collect();
    format!(
        "Item {{ optional: {}, parts: &[{}] }}",
        item.optional,
        parts.join(", ")
    )
}

fn operand(operand: &Operand, words: &mut BTreeSet<String>) -> String {
    let kind = match &operand.kind {
        OperandKind::Typed(n) => format!("Typed({n})"),
        OperandKind::Sized(n) => format!("Sized({n})"),
        OperandKind::Wide(n) => format!("Wide({n})"),
        OperandKind::Doubled => "Doubled".into(),
        OperandKind::Register(bits) => format!("Register({bits})"),
        OperandKind::Fixed(ty) => format!(
            "Fixed({})",
            type_of(ty).unwrap_or_else(|| panic!("no type '{ty}'"))
        ),
        OperandKind::Address => "Address".into(),
        OperandKind::Sink => "Sink".into(),
        OperandKind::Immediate(values, range) => {
            format!("Immediate {{ values: &{values:?}, range: {range} }}")
        }
        OperandKind::Any => "Any".into(),
    };
    let presence = match (operand.optional, operand.with.as_str()) {
        (false, _) => "Presence::Always".into(),
        (true, "") => "Presence::Optional".into(),
        (true, word) => {
            words.insert(word.to_string());
            format!("Presence::With(Word::{})", variant(word))
        }
    };
    format!(
        "OperandSpec {{ name: {:?}, written: {}, pair: {}, presence: {presence}, kind: OperandKind::{kind}, elements: {} }}",
        operand.name,
        operand.is_written(),
        !operand.second.is_empty(),
        operand.elements,
    )
}

fn form(form: &Form, words: &mut BTreeSet<String>) -> String {
    let items: Vec<String> = form.items.iter().map(|i| item(i, words)).collect();
    let operands: Vec<String> = form.operands.iter().map(|o| operand(o, words)).collect();
    format!(
        "Form {{ text: {:?}, items: &[{}], operands: &[{}], open: {}, gate: {}, support: Support::{} }}",
        form.text,
        items.join(", "),
        operands.join(", "),
        form.open,
        gate(&form.attributes),
        form.attributes.support,
    )
}

fn gate(attributes: &Attributes) -> String {
    let version = |v: u32| format!("({}, {})", v / 10, v % 10);
    let until = match &attributes.until {
        Some((v, target)) => format!("Some(({}, {target:?}))", version(*v)),
        None => "None".into(),
    };
    format!(
        "Gate {{ version: {}, targets: &{:?}, until: {until} }}",
        version(attributes.version),
        attributes.targets,
    )
}

fn rule(rule: &Rule) -> String {
    let words: Vec<String> = rule.words.iter().map(|w| format!("&{w:?}")).collect();
    format!(
        "Rule {{ text: {:?}, words: &[{}], gate: {}, support: Support::{}, illegal: {} }}",
        rule.text,
        words.join(", "),
        gate(&rule.attributes),
        rule.attributes.support,
        rule.attributes.illegal,
    )
}

/// Whether the first operand of an instruction is a destination.
fn destination(row: &Row) -> &'static str {
    let writes = |form: &Form| form.operands.first().is_some_and(Operand::is_written);
    let count = row.forms.iter().filter(|form| writes(form)).count();
    match count {
        0 => "None",
        n if n == row.forms.len() => "First",
        _ => "ByForm",
    }
}

/// The table as Rust.
pub fn rust(table: &Table) -> String {
    // Follows the address of a load.
    let mut words = BTreeSet::from(["unified".to_string()]);
    let mut rows = String::new();
    for row in &table.rows {
        let forms: Vec<String> = row
            .forms
            .iter()
            .map(|f| format!("        {},\n", form(f, &mut words)))
            .collect();
        let _ = writeln!(
            rows,
            "    Row {{ op: Op::{}, destination: Destination::{}, summary: {:?}, section: {:?}, rules: &[{}], forms: &[\n{}    ] }},",
            variant(&row.name),
            destination(row),
            row.summary,
            row.section,
            row.rules.iter().map(rule).collect::<Vec<_>>().join(", "),
            forms.concat(),
        );
    }
    let arms = |value: &dyn Fn(&Row) -> String| -> String {
        table
            .rows
            .iter()
            .map(|r| format!("            Op::{} => {},\n", variant(&r.name), value(r)))
            .collect()
    };
    let mut out = String::new();
    out.push_str("/// Opcodes: the word before the first modifier, or the words that name an instruction family (`cp.async`,\n/// `bar.warp`).\n");
    out.push_str("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum Op {\n");
    for row in &table.rows {
        let _ = writeln!(
            out,
            "    /// `{}`: {}\n    {},",
            row.name,
            row.summary,
            variant(&row.name)
        );
    }
    out.push_str("}\n\nimpl Op {\n    /// Every opcode.\n    pub const ALL: &'static [Op] = &[");
    for row in &table.rows {
        let _ = write!(out, "Op::{}, ", variant(&row.name));
    }
    out.push_str("];\n");
    let _ = write!(
        out,
        "    /// The spelling.\n    pub const fn name(self) -> &'static str {{\n        match self {{\n{}        }}\n    }}\n",
        arms(&|r| format!("{:?}", r.name))
    );
    let _ = write!(
        out,
        "    /// What it does.\n    pub const fn class(self) -> OpClass {{\n        match self {{\n{}        }}\n    }}\n}}\n",
        arms(&|r| format!("OpClass::{}", r.class))
    );
    out.push_str("\n/// Modifiers that have no enum of their own.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n#[allow(missing_docs)]\npub enum Word {\n");
    for word in &words {
        let _ = writeln!(out, "    {},", variant(word));
    }
    out.push_str("}\n\nimpl Word {\n    /// The spelling, without the dot.\n    pub const fn text(self) -> &'static str {\n        match self {\n");
    for word in &words {
        let _ = writeln!(out, "            Word::{} => {word:?},", variant(word));
    }
    out.push_str("        }\n    }\n}\n\n");
    out.push_str("/// The type with this name.\npub(crate) fn type_of(word: &str) -> Option<Type> {\n    Some(match word {\n");
    for name in TYPES
        .iter()
        .map(|t| t.to_lowercase())
        .chain(PACKED.iter().map(|p| p.0.to_string()))
    {
        let _ = writeln!(
            out,
            "        {name:?} => {},",
            type_of(&name).unwrap_or_default()
        );
    }
    out.push_str("        _ => return None,\n    })\n}\n\n/// The state space with this name.\npub(crate) fn space_of(word: &str) -> Option<Space> {\n    Some(match word {\n");
    for (name, space) in SPACES {
        let _ = writeln!(out, "        {name:?} => Space::{space},");
    }
    out.push_str("        _ => return None,\n    })\n}\n\n");
    let _ = write!(out, "pub(crate) static ROWS: &[Row] = &[\n{rows}];\n");
    out
}
