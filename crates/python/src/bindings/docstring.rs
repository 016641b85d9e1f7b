//! Docstrings of the functions, composed when `__doc__` is read.
//!
//! The parts are a descriptor and its line in a generated text ([`Descriptions`]). Nothing here runs at import.

use std::fmt::Write;

use cupyrite_sys::loader::CudaLibrary;

use crate::bindings::descriptions::{Description, Descriptions};
use crate::bindings::descriptor::{Function, Ret, Word};
use crate::types::table::{Enum, MODULES, ModuleTypes, enumeration};

/// A parameter or a result of the Python function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Argument(usize),
    Result(usize),
}

/// A descriptor and its description.
struct Subject {
    function: &'static Function,
    library: Descriptions,
    row: Option<Description>,
    types: Option<&'static ModuleTypes>,
}

/// The docstring of a function.
pub fn of(f: &'static Function) -> String {
    if f.value_alone && f.name == "sizeof" {
        return "The size in bytes of the C type that a class of this module stands for.\n\nParameters\n----------\n\
                objType : class\n\nReturns\n-------\nint\n"
            .to_owned();
    }
    let library = Descriptions::of(f.library());
    let subject = Subject {
        function: f,
        library,
        row: library.function(f.export().unwrap_or(f.name)),
        types: MODULES.iter().find(|t| t.module == f.module).copied(),
    };
    let mut text = subject.summary();
    // Writing to a String cannot fail.
    let _ = subject.parameters(&mut text);
    let _ = subject.results(&mut text);
    let _ = subject.statuses(&mut text);
    let _ = subject.raises(&mut text);
    let _ = subject.section(&mut text);
    text
}

impl Subject {
    /// The name in C; empty if there is no C function.
    fn symbol(&self) -> &'static str {
        match (self.function.raising, self.function.export()) {
            (_, None) => "",
            (Some(_), Some(export)) => export,
            (None, Some(_)) => self.function.name,
        }
    }

    /// What the function does: the first sentence on the first line, the rest as a paragraph.
    fn summary(&self) -> String {
        let does = self.row.as_ref().map_or("", |row| row.does);
        match (does.split_once(". "), self.symbol()) {
            (None, "") if does.is_empty() => format!("{}\n\n", self.library.title()),
            (None, symbol) if does.is_empty() => format!("{}: {symbol}\n\n", self.library.title()),
            (None, _) => format!("{does}\n\n"),
            (Some((first, rest)), _) => format!("{first}.\n\n{}\n", wrapped(rest, "")),
        }
    }

    /// The text about a parameter or a result.
    fn note(&self, position: Position) -> Option<&'static str> {
        let f = self.function;
        let is_here = |index: u8| match f.words.get(usize::from(index)) {
            None => position == Position::Argument(index.into()),
            Some(Word::Arg(arg) | Word::ArgAddress(arg)) => {
                position == Position::Argument((*arg).into())
            }
            Some(Word::Result(result)) => position == Position::Result((*result).into()),
            Some(Word::InOut(arg, result)) => {
                position == Position::Argument((*arg).into())
                    || position == Position::Result((*result).into())
            }
            Some(_) => false,
        };
        let mut notes = self.row.as_ref()?.notes();
        notes.find_map(|(index, note)| is_here(index).then_some(note))
    }

    fn parameters(&self, text: &mut String) -> std::fmt::Result {
        if self.function.params.is_empty() {
            return Ok(());
        }
        writeln!(text, "Parameters\n----------")?;
        for (index, p) in self.function.params.iter().enumerate() {
            match p.default_text() {
                Some(default) => writeln!(text, "{} : {}, default {default}", p.name, p.doc)?,
                None => writeln!(text, "{} : {}", p.name, p.doc)?,
            }
            if let Some(note) = self.note(Position::Argument(index)) {
                text.push_str(&wrapped(note, "    "));
            }
        }
        text.push('\n');
        Ok(())
    }

    fn results(&self, text: &mut String) -> std::fmt::Result {
        let f = self.function;
        match (f.raising, f.results.len()) {
            _ if f.value_alone => writeln!(text, "Returns\n-------")?,
            (None, _) => writeln!(
                text,
                "Returns\n-------\nA tuple. All but the status are None after an error.\n\n{}",
                self.status().map_or("", |e| e.name)
            )?,
            (Some(_), 0) => writeln!(text, "Returns\n-------\nNone")?,
            (Some(_), 1) => writeln!(text, "Returns\n-------")?,
            (Some(_), _) => writeln!(text, "Returns\n-------\nA tuple.\n")?,
        }
        for (index, result) in f.results.iter().enumerate() {
            match result.name {
                "" => writeln!(text, "{}", result.doc)?,
                name => writeln!(text, "{name} : {}", result.doc)?,
            }
            if let Some(note) = self.note(Position::Result(index)) {
                text.push_str(&wrapped(note, "    "));
            }
        }
        text.push('\n');
        Ok(())
    }

    /// The status enum of the function's module.
    fn status(&self) -> Option<&'static Enum> {
        let types = self.types?;
        if let Some(errors) = types.errors {
            return Some(enumeration(errors.status).1);
        }
        let name = match self.function.library() {
            CudaLibrary::Driver => "CUresult",
            CudaLibrary::Runtime => "cudaError_t",
            CudaLibrary::Nvrtc => "nvrtcResult",
            _ => return None,
        };
        types.enums.iter().find(|e| e.name == name)
    }

    /// The statuses that the function documents, with their names in this module.
    fn statuses(&self, text: &mut String) -> std::fmt::Result {
        let (Some(row), Some(names)) = (&self.row, self.status()) else {
            return Ok(());
        };
        let raises = self.function.raising.is_some();
        let returns_status = match self.function.raising {
            Some(raising) => matches!(raising.ret, Ret::Status | Ret::CuFile | Ret::Size),
            None => !self.function.value_alone,
        };
        let listed: Vec<i64> = (row.statuses())
            // Where functions raise, success is no status that a caller meets.
            .filter(|value| returns_status && !(raises && *value == 0))
            .collect();
        if listed.is_empty() {
            return Ok(());
        }
        writeln!(text, "Statuses\n--------")?;
        for value in listed {
            let name = names.members.iter().find(|(_, v)| *v == value);
            let Some((name, _)) = name else { continue };
            match self.library.meaning(value) {
                Some(meaning) => writeln!(text, "{name}: {meaning}")?,
                None => writeln!(text, "{name}")?,
            }
        }
        text.push('\n');
        Ok(())
    }

    fn raises(&self, text: &mut String) -> std::fmt::Result {
        text.push_str("Raises\n------\n");
        let exception = self
            .types
            .and_then(|types| Some(types.errors?.exceptions.first()?.name));
        if let Some(exception) = exception {
            writeln!(text, "{exception}\n    For an error status.")?;
        }
        writeln!(
            text,
            "TypeError, ValueError, OverflowError\n    For an argument that does not convert; nothing \
             is called then.\n"
        )
    }

    /// The section of NVIDIA's manual.
    fn section(&self, text: &mut String) -> std::fmt::Result {
        let module = self.types.map_or("", |types| types.url);
        let (title, url) = match &self.row {
            Some(row) => (row.section, row.url),
            None => ("", module),
        };
        text.push_str("See\n---\n");
        match (self.symbol(), title) {
            ("", _) => writeln!(text, "{}", self.library.title())?,
            (symbol, "") => writeln!(text, "{symbol}: {}", self.library.title())?,
            (symbol, title) => writeln!(text, "{symbol}: {}, {title}", self.library.title())?,
        }
        writeln!(text, "{url}")
    }
}

/// The text in lines of at most 88 columns, each with the indentation and a line break.
fn wrapped(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() > 88 {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(indent);
            column = indent.len();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words() {
        let text = "word ".repeat(20).trim_end().to_owned();
        let lines: Vec<String> = wrapped(&text, "    ").lines().map(str::to_owned).collect();
        assert!(
            lines.len() == 2
                && lines
                    .iter()
                    .all(|l| l.len() <= 88 && l.starts_with("    word"))
        );
        assert_eq!(wrapped("a", ""), "a\n");
    }
}
