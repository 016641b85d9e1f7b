//! Reads the instruction table. `isa/README.md` describes its notation.

use std::collections::HashMap;

/// The whole table.
#[derive(Default)]
pub struct Table {
    pub rows: Vec<Row>,
    /// Named lists of words.
    lists: HashMap<String, Vec<String>>,
}

/// One instruction.
pub struct Row {
    /// Spelling, such as `cp.async`.
    pub name: String,
    pub summary: String,
    /// Heading of the section, and class of its instructions.
    pub section: String,
    pub class: String,
    pub forms: Vec<Form>,
    pub rules: Vec<Rule>,
}

/// What some modifiers of an instruction mean together, whatever its form.
pub struct Rule {
    pub text: String,
    /// The modifiers; of each, one of several.
    pub words: Vec<Vec<String>>,
    pub attributes: Attributes,
}

/// What is written after the semicolon.
#[derive(Clone)]
pub struct Attributes {
    /// Version of PTX times ten, and the architectures of which one is needed.
    pub version: u32,
    pub targets: Vec<String>,
    /// The version of PTX times ten and the architecture from which on, together, it is illegal.
    pub until: Option<(u32, String)>,
    /// What the CPU device does with it.
    pub support: String,
    /// Whether the assembler rejects it.
    pub illegal: bool,
}

/// One combination of modifiers and operands.
#[derive(Clone)]
pub struct Form {
    /// The notation without attributes, for messages and documents.
    pub text: String,
    pub items: Vec<Item>,
    pub operands: Vec<Operand>,
    /// Whether operands after the listed ones are checked elsewhere.
    pub open: bool,
    pub attributes: Attributes,
}

/// A place for one or more modifiers.
#[derive(Clone)]
pub struct Item {
    pub optional: bool,
    /// Several parts are written together or not at all.
    pub parts: Vec<Part>,
}

/// A modifier, or one of several.
#[derive(Clone)]
pub struct Part {
    /// Meaning of words that have several.
    pub kind: String,
    pub words: Vec<String>,
}

/// An operand.
#[derive(Clone)]
pub struct Operand {
    pub name: String,
    /// The name of the second half of a pair.
    pub second: String,
    pub optional: bool,
    /// The modifier that it belongs to.
    pub with: String,
    pub kind: OperandKind,
    /// Number of elements of a vector; zero if it is none.
    pub elements: usize,
}

impl Operand {
    /// Destinations are named `d`, or `d0` and so on.
    pub fn is_written(&self) -> bool {
        self.name.starts_with('d') && !matches!(self.kind, OperandKind::Address)
    }
}

/// The value of an operand.
#[derive(Clone)]
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
    Fixed(String),
    Address,
    /// `_`: nothing is written.
    Sink,
    /// An integer literal: one of these values, or in the range of the first to the last; any, if there are none.
    Immediate(Vec<i64>, bool),
    Any,
}

/// A mistake in the table.
pub struct Mistake {
    pub line: usize,
    pub message: String,
}

impl Table {
    /// Reads one file.
    pub fn read(&mut self, text: &str) -> Result<(), Mistake> {
        let (mut section, mut class) = (String::new(), String::new());
        for (n, line) in text.lines().enumerate() {
            let at = |message: String| Mistake {
                line: n + 1,
                message,
            };
            let content = line.split('#').next().unwrap_or("").trim_end();
            if content.is_empty() {
                continue;
            }
            if let Some(rest) = content.strip_prefix('[') {
                let (title, rest) = rest
                    .split_once(']')
                    .ok_or_else(|| at("']' is missing".into()))?;
                (section, class) = (title.to_string(), rest.trim().to_string());
            } else if let Some(rest) = content.strip_prefix("let ") {
                let (name, words) = rest
                    .split_once('=')
                    .ok_or_else(|| at("'=' is missing".into()))?;
                let words = self.words(words.trim()).map_err(at)?;
                self.lists.insert(name.trim().to_string(), words);
            } else if let Some(rule) = content.strip_prefix("  when ") {
                let rule = self.rule(rule.trim()).map_err(at)?;
                let row = self
                    .rows
                    .last_mut()
                    .ok_or_else(|| at("a rule without an instruction".into()))?;
                row.rules.push(rule);
            } else if content.starts_with(' ') {
                let form = self.form(content.trim()).map_err(at)?;
                let row = self
                    .rows
                    .last_mut()
                    .ok_or_else(|| at("a form without an instruction".into()))?;
                row.forms.push(form);
            } else {
                let (name, summary) = content
                    .split_once(':')
                    .ok_or_else(|| at("':' is missing".into()))?;
                if self.rows.iter().any(|row| row.name == name) {
                    return Err(at(format!("'{name}' is there twice")));
                }
                self.rows.push(Row {
                    name: name.to_string(),
                    summary: summary.trim().to_string(),
                    section: section.clone(),
                    class: class.clone(),
                    forms: Vec::new(),
                    rules: Vec::new(),
                });
            }
        }
        match self.rows.iter().find(|row| row.forms.is_empty()) {
            Some(row) => Err(Mistake {
                line: text.lines().count(),
                message: format!("'{}' has no form", row.name),
            }),
            None => Ok(()),
        }
    }

    /// `a|b|$list`.
    fn words(&self, text: &str) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        for word in text.split('|').map(str::trim) {
            match word.strip_prefix('$') {
                Some(list) => words.extend(
                    self.lists
                        .get(list)
                        .ok_or_else(|| format!("no list '{list}'"))?
                        .iter()
                        .cloned(),
                ),
                None if word.is_empty() => return Err("an empty word".into()),
                None => words.push(word.to_string()),
            }
        }
        Ok(words)
    }

    /// The notation for readers: without kinds of words, and with the words of short lists.
    fn text(&self, syntax: &str) -> String {
        const LONGEST: usize = 10;
        let mut text = syntax.split_whitespace().collect::<Vec<_>>().join(" ");
        for (name, words) in &self.lists {
            let list = if words.len() > LONGEST {
                format!("<{name}>")
            } else {
                words.join("|")
            };
            for end in ["|", ")"] {
                text = text.replace(&format!("${name}{end}"), &format!("{list}{end}"));
            }
        }
        let mut out = String::new();
        for part in text.split_inclusive('(') {
            // The kind of `.KIND(`.
            let kind = part
                .strip_suffix('(')
                .and_then(|p| p.rfind('.').map(|dot| (p, dot)));
            match kind {
                Some((p, dot)) if p[dot + 1..].chars().all(|c| c.is_ascii_alphabetic()) => {
                    out.push_str(&p[..=dot]);
                    out.push('(');
                }
                _ => out.push_str(part),
            }
        }
        out
    }

    fn form(&self, text: &str) -> Result<Form, String> {
        let (syntax, attributes) = text.split_once(';').unwrap_or((text, ""));
        let syntax = syntax.trim();
        let (modifiers, operands) = syntax
            .split_once(char::is_whitespace)
            .unwrap_or((syntax, ""));
        let mut form = Form {
            text: self.text(syntax),
            items: self.items(modifiers)?,
            operands: Vec::new(),
            open: false,
            attributes: Self::attributes(attributes)?,
        };
        for operand in operands.split(',').map(str::trim).filter(|o| !o.is_empty()) {
            if operand == "*" {
                form.open = true;
            } else {
                form.operands.push(Self::operand(operand)?);
            }
        }
        Ok(form)
    }

    /// `.a.(b|c) ; 7.8 sm_90`.
    fn rule(&self, text: &str) -> Result<Rule, String> {
        let (modifiers, attributes) = text.split_once(';').ok_or("';' is missing")?;
        let (parts, rest) = self.parts(modifiers.trim())?;
        if !rest.is_empty() {
            return Err(format!("expected ';' at '{rest}'"));
        }
        Ok(Rule {
            text: self.text(modifiers),
            words: parts.into_iter().map(|part| part.words).collect(),
            attributes: Self::attributes(attributes)?,
        })
    }

    /// `bounded 7.0 sm_80 until 8.0 sm_90`.
    fn attributes(text: &str) -> Result<Attributes, String> {
        let mut attributes = Attributes {
            version: 10,
            targets: Vec::new(),
            until: None,
            support: "Exact".into(),
            illegal: false,
        };
        let mut until = false;
        for word in text.split_whitespace() {
            if word.starts_with("sm_") {
                match &mut attributes.until {
                    Some((_, target)) if until => *target = word.to_string(),
                    _ => attributes.targets = word.split('/').map(str::to_string).collect(),
                }
            } else if let Some((major, minor)) = word.split_once('.') {
                let number = |text: &str| {
                    text.parse::<u32>()
                        .map_err(|_| format!("no version '{word}'"))
                };
                let version = number(major)? * 10 + number(minor)?;
                if until {
                    attributes.until = Some((version, "sm_10".into()));
                } else {
                    attributes.version = version;
                }
            } else {
                match word {
                    "until" => until = true,
                    "illegal" => attributes.illegal = true,
                    "bounded" => attributes.support = "Bounded".into(),
                    "refused" => attributes.support = "Refused".into(),
                    _ => return Err(format!("no attribute '{word}'")),
                }
            }
        }
        if attributes.targets.is_empty() {
            attributes.targets.push("sm_10".into());
        }
        Ok(attributes)
    }

    /// `{.sat}.(s32|u32)`.
    fn items(&self, text: &str) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        let mut rest = text;
        while !rest.is_empty() && rest != "-" {
            if let Some(inner) = rest.strip_prefix('{') {
                let (inner, after) = inner.split_once('}').ok_or("'}' is missing")?;
                items.push(Item {
                    optional: true,
                    parts: self.parts(inner)?.0,
                });
                rest = after;
            } else {
                let (parts, after) = self.parts(rest)?;
                items.extend(parts.into_iter().map(|part| Item {
                    optional: false,
                    parts: vec![part],
                }));
                rest = after;
            }
        }
        Ok(items)
    }

    /// Parts up to a brace.
    fn parts<'t>(&self, text: &'t str) -> Result<(Vec<Part>, &'t str), String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '{', '(']).unwrap_or(after.len());
            let word = &after[..end];
            rest = &after[end..];
            if let Some(list) = rest.strip_prefix('(') {
                let (list, after) = list.split_once(')').ok_or("')' is missing")?;
                parts.push(Part {
                    kind: word.to_string(),
                    words: self.words(list)?,
                });
                rest = after;
            } else {
                parts.push(Part {
                    kind: String::new(),
                    words: self.words(word)?,
                });
            }
        }
        if parts.is_empty() || !(rest.is_empty() || rest.starts_with('{')) {
            return Err(format!("expected '.' at '{rest}'"));
        }
        Ok((parts, rest))
    }

    /// `{@word name|second:4*type}`.
    fn operand(text: &str) -> Result<Operand, String> {
        let inner = text
            .strip_prefix('{')
            .map(|t| t.strip_suffix('}').ok_or("'}' is missing"))
            .transpose()?;
        let (mut rest, optional) = (inner.unwrap_or(text), inner.is_some());
        let mut with = String::new();
        if let Some(conditional) = rest.strip_prefix('@') {
            let (word, after) = conditional
                .split_once(' ')
                .ok_or("a modifier without an operand")?;
            (with, rest) = (word.to_string(), after);
        }
        if let Some(address) = rest.strip_prefix('[') {
            let name = address.strip_suffix(']').ok_or("']' is missing")?;
            return Ok(Operand {
                name: name.to_string(),
                second: String::new(),
                optional,
                with,
                kind: OperandKind::Address,
                elements: 0,
            });
        }
        let (names, kind) = rest.split_once(':').unwrap_or((rest, "0"));
        let (name, second) = names.split_once('|').unwrap_or((names, ""));
        let (elements, kind) = match kind.split_once('*') {
            Some((n, kind)) => (n.parse().map_err(|_| format!("no number '{n}'"))?, kind),
            None => (0, kind),
        };
        let index = |text: &str| {
            text.parse::<usize>()
                .map_err(|_| format!("no type index '{text}'"))
        };
        let kind = match kind {
            "2x" => OperandKind::Doubled,
            "reg32" => OperandKind::Register(32),
            "imm" => OperandKind::Immediate(Vec::new(), false),
            _ if kind.starts_with("imm=") => {
                let values = &kind["imm=".len()..];
                let range = values.contains("..");
                let values = values.split(if range { ".." } else { "/" });
                let values = values.map(|v| v.parse().map_err(|_| format!("no number '{v}'")));
                OperandKind::Immediate(values.collect::<Result<_, _>>()?, range)
            }
            "any" => OperandKind::Any,
            "_" => OperandKind::Sink,
            _ if kind.starts_with('~') => OperandKind::Sized(index(&kind[1..])?),
            _ if kind.starts_with('+') => OperandKind::Wide(index(&kind[1..])?),
            _ if kind.starts_with(|c: char| c.is_ascii_digit()) => OperandKind::Typed(index(kind)?),
            _ => OperandKind::Fixed(kind.to_string()),
        };
        Ok(Operand {
            name: name.to_string(),
            second: second.to_string(),
            optional,
            with,
            kind,
            elements,
        })
    }
}
