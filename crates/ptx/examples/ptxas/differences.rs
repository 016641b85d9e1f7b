//! The deliberate differences from NVIDIA's assembler: `tests/ptxas_differences.toml`.

use crate::assembler::Question;

/// A class of instructions on which the parser and the assembler differ.
#[derive(Debug, Default)]
pub struct Difference {
    /// Why.
    pub reason: String,
    /// `refuses` or `accepts`: what the parser does, other than the assembler.
    parser: String,
    /// First words of the instructions; all, if there are none.
    opcodes: Vec<String>,
    /// Modifiers that the instructions have.
    with: Vec<String>,
    /// Modifiers that they do not have.
    without: Vec<String>,
    /// Whether they have a modifier twice.
    repeated: bool,
    /// A part of the message of whoever refuses.
    message: String,
}

impl Difference {
    /// Whether this instruction is one of the class. `accepts` tells what the parser does, `message` what the other says.
    pub fn covers(&self, question: &Question, accepts: bool, message: &str) -> bool {
        let spelled = question.text.split([' ', ';']).next().unwrap_or("");
        let mut words = spelled.split('.');
        let opcode = words.next().unwrap_or("");
        let words: Vec<&str> = words.collect();
        let has = |word: &String| words.contains(&word.as_str());
        let twice = |n: usize| words[..n].contains(&words[n]);
        (self.parser == "accepts") == accepts
            && (self.opcodes.is_empty() || self.opcodes.iter().any(|o| o == opcode))
            && self.with.iter().all(has)
            && !self.without.iter().any(has)
            && (!self.repeated || (0..words.len()).any(twice))
            && message.contains(&self.message)
    }
}

/// Reads the list: tables `[[difference]]` whose values are strings, lists of strings, and `true`, each on one line.
pub fn read(text: &str) -> Result<Vec<Difference>, String> {
    let mut all: Vec<Difference> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}", n + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "[[difference]]" {
            all.push(Difference::default());
            continue;
        }
        let (key, value) = line.split_once(" = ").ok_or_else(|| wrong("no value"))?;
        let last = all.last_mut().ok_or_else(|| wrong("no [[difference]]"))?;
        let strings = || -> Vec<String> {
            let odd = value.split('"').skip(1).step_by(2);
            odd.map(str::to_string).collect()
        };
        let string = || strings().pop().unwrap_or_default();
        match key {
            "reason" => last.reason = string(),
            "parser" => last.parser = string(),
            "message" => last.message = string(),
            "opcodes" => last.opcodes = strings(),
            "with" => last.with = strings(),
            "without" => last.without = strings(),
            "repeated" => last.repeated = value == "true",
            _ => return Err(wrong("no such key")),
        }
    }
    let incomplete = |one: &&Difference| {
        one.reason.is_empty() || !["accepts", "refuses"].contains(&one.parser.as_str())
    };
    match all.iter().find(incomplete) {
        Some(one) => Err(format!("'reason' or 'parser' is missing: {one:?}")),
        None => Ok(all),
    }
}
