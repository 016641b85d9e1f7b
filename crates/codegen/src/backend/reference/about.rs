//! What functions do, on the reference pages: descriptions, notes about parameters, statuses, sections of the manual.

use std::fmt::Write;

use super::html::{code, escape};
use crate::backend::python_descriptions::status_enum;
use crate::ir::{Function, LibraryApi, PyFunction, Ret, Role, Style};

/// The name of a function's description: that in C, or in Python if there is no C function.
fn key<'a>(c: Option<&'a Function>, python: &'a PyFunction) -> &'a str {
    c.map_or(&python.name, |c| &c.name)
}

/// What a function does, as a paragraph; empty if it has no description.
pub fn does(lib: &LibraryApi, c: Option<&Function>, python: &PyFunction) -> String {
    match lib.about(key(c, python)) {
        Some(about) => format!("<p>{}</p>\n", escape(&about.does)),
        None => String::new(),
    }
}

/// The note about an argument or a result; empty if it has none.
pub fn note(
    lib: &LibraryApi,
    c: Option<&Function>,
    python: &PyFunction,
    index: usize,
    is_result: bool,
) -> String {
    let Some(about) = lib.about(key(c, python)) else {
        return String::new();
    };
    let name = match c {
        Some(c) => c.params.iter().find(|p| match p.role {
            Role::In { arg } => !is_result && arg == index,
            Role::Out { result } => is_result && result == index,
            Role::InOut { arg, result } => index == if is_result { result } else { arg },
            _ => false,
        }),
        None if is_result => None,
        None => return own_note(about, python, index),
    };
    let found = name.and_then(|p| about.parameters.get(&p.name));
    found.map(|note| escape(note)).unwrap_or_default()
}

fn own_note(about: &crate::ir::About, python: &PyFunction, index: usize) -> String {
    let arg = python.args.get(index);
    let found = arg.and_then(|a| about.parameters.get(&a.name));
    found.map(|note| escape(note)).unwrap_or_default()
}

/// The statuses that a function documents, with their names in this module. `meanings` is sorted by value.
pub fn statuses(
    lib: &LibraryApi,
    c: Option<&Function>,
    python: &PyFunction,
    meanings: &[(i64, &str)],
) -> String {
    let returned = matches!(python.ret, Ret::Status | Ret::CuFile | Ret::Size);
    let (Some(c), true) = (c, returned) else {
        return String::new();
    };
    let own = status_enum(lib);
    let (Some(entry), Some(enumeration), Some(names)) = (
        lib.manual_of(c),
        lib.enumeration(&lib.status_enum),
        lib.python.enums.iter().find(|e| e.name == own),
    ) else {
        return String::new();
    };
    let mut rows = String::new();
    let mut count = 0;
    for status in &entry.statuses {
        let value = enumeration.members.iter().find(|m| m.name == *status);
        let Some(value) = value.map(|m| m.value) else {
            continue;
        };
        // Where functions raise, success is no status that a caller meets.
        if value == 0 && lib.python.style == Style::Raises {
            continue;
        }
        let name = names.members.iter().find(|(_, v)| *v == value);
        let name = name.map_or(status.as_str(), |(name, _)| name);
        let meaning = meanings.binary_search_by(|(v, _)| v.cmp(&value));
        let meaning = meaning.map_or("", |at| meanings[at].1);
        let _ = writeln!(rows, "<dt>{}</dt><dd>{}</dd>", code(name), escape(meaning));
        count += 1;
    }
    if count == 0 {
        return String::new();
    }
    format!("<details><summary>Statuses: {count}</summary>\n<dl>\n{rows}</dl></details>\n")
}

/// The C function and its section in the manual, as a sentence.
pub fn section(lib: &LibraryApi, c: &Function) -> String {
    let (title, url) = lib.section_of(c);
    let symbol = escape(&c.symbol);
    match title.as_str() {
        "" => format!("C function: <a href=\"{url}\"><code>{symbol}</code></a>."),
        title => format!(
            "C function: <code>{symbol}</code>, in <a href=\"{url}\">{}</a>.",
            escape(title)
        ),
    }
}
