//! Names that a reader understands only with their comment (docs/style.md, "Names"), and `SAFETY` comments without a
//! reason.

use std::path::Path;

use crate::Error;
use crate::report::output;

/// Types and classes: bare words that do not say of what, and words that the field does not use.
const TYPES: &[&str] = &[
    "Entry", "Inner", "Made", "Of", "Others", "Own", "Place", "Spot", "State", "Thing", "Trick",
    "Want", "Wanted", "Which",
];
/// Functions and methods.
const FUNCTIONS: &[&str] = &[
    "discourage",
    "ended",
    "forget",
    "gone",
    "own",
    "remember",
    "shown",
    "taken_apart",
    "trick",
    "wrong",
];
/// First words of functions: `forget_context`.
const FIRST_WORDS: &[&str] = &["forget_", "remember_"];
/// Modules, and files without their suffix.
const FILES: &[&str] = &["in_use", "others", "own", "trick", "tricks"];

/// A file, a name in it, and why the name is right there.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Texts of a `SAFETY` comment that state no reason.
const REFERENCES: &[&str] = &[
    "as above",
    "as before",
    "ditto",
    "likewise",
    "same as above",
    "see above",
    "the same",
    "the same as above",
];

/// Checks the names that Rust and Python files of `crates/` and `python/` define, and the `SAFETY` comments of Rust files.
pub fn check(root: &Path) -> Result<(), Error> {
    let files = output(std::process::Command::new("git").arg("-C").arg(root).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "crates",
        "python",
    ]))?;
    let mut violations = Vec::new();
    let mut found = Vec::new();
    for file in files.lines() {
        let source = [".rs", ".py", ".pyi"].iter().any(|end| file.ends_with(end));
        if !source || file.contains("/generated/") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(file)) else {
            continue; // deleted and not yet committed
        };
        for (line, name) in banned_names(file, &text) {
            if allows(file, name) {
                found.push((file.to_owned(), name.to_owned()));
            } else {
                violations.push(format!(
                    "{file}:{line}: the name `{name}` does not say of what; choose a longer one (docs/style.md)"
                ));
            }
        }
        for line in unexplained(&text) {
            violations.push(format!(
                "{file}:{line}: the SAFETY comment states no reason; name the invariant and who upholds it"
            ));
        }
    }
    for &(file, name, _) in EXCEPTIONS {
        if !found
            .iter()
            .any(|(f, n)| (f.as_str(), n.as_str()) == (file, name))
        {
            violations.push(format!(
                "crates/xtask/src/names.rs: {file} does not define `{name}`; remove the exception"
            ));
        }
    }
    if violations.is_empty() {
        println!("names and SAFETY comments follow docs/style.md");
        Ok(())
    } else {
        Err(violations.join("\n"))
    }
}

fn allows(file: &str, name: &str) -> bool {
    EXCEPTIONS
        .iter()
        .any(|&(known, allowed, _)| (known, allowed) == (file, name))
}

/// The lines that define banned names, from 1, with the names; line 1 for the name of the file.
fn banned_names<'t>(file: &'t str, text: &'t str) -> Vec<(usize, &'t str)> {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    let mut names: Vec<_> = stem
        .filter(|stem| FILES.contains(stem))
        .map(|stem| (1, stem))
        .into_iter()
        .collect();
    for (n, line) in text.lines().enumerate() {
        if let Some((keyword, name)) = definition(line, file.ends_with(".rs"))
            && is_banned(keyword, name)
        {
            names.push((n + 1, name));
        }
    }
    names
}

fn is_banned(keyword: &str, name: &str) -> bool {
    match keyword {
        "fn" | "def" => {
            FUNCTIONS.contains(&name) || FIRST_WORDS.iter().any(|word| name.starts_with(word))
        }
        "mod" => FILES.contains(&name),
        _ => TYPES.contains(&name),
    }
}

/// The keyword and the name of the definition that a line begins with.
fn definition(line: &str, rust: bool) -> Option<(&str, &str)> {
    let keywords: &[&str] = if rust {
        &["struct", "enum", "union", "trait", "type", "fn", "mod"]
    } else {
        &["class", "def"]
    };
    let mut rest = line.trim_start();
    loop {
        let end = rest.find(|c: char| !is_identifier(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if keywords.contains(&word) {
            let name = after.trim_start().trim_start_matches("r#");
            let end = name.find(|c: char| !is_identifier(c)).unwrap_or(name.len());
            return (end > 0).then_some((word, &name[..end]));
        }
        // Words that may precede the keyword.
        rest = match word {
            "pub" => after.strip_prefix('(').map_or(after, |path| {
                path.split_once(')').map_or("", |(_, rest)| rest)
            }),
            "async" | "const" | "default" | "unsafe" => after,
            "extern" => after.trim_start().strip_prefix('"').map_or(after, |abi| {
                abi.split_once('"').map_or("", |(_, rest)| rest)
            }),
            _ => return None,
        }
        .trim_start();
    }
}

fn is_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The lines, from 1, of `SAFETY` comments that only refer to another comment.
fn unexplained(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((n, line)) = lines.next() {
        let Some((_, reason)) = line.split_once("// SAFETY:") else {
            continue;
        };
        let continues = lines.peek().is_some_and(|(_, next)| {
            next.trim_start().starts_with("//") && !next.contains("SAFETY:")
        });
        let reason = reason.trim().trim_end_matches('.').to_lowercase();
        if !continues && REFERENCES.contains(&reason.as_str()) {
            found.push(n + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{EXCEPTIONS, banned_names, definition, unexplained};

    #[test]
    fn definitions_are_found_behind_their_modifiers() {
        let rust = |line| definition(line, true);
        assert_eq!(rust("struct State {"), Some(("struct", "State")));
        assert_eq!(
            rust("    pub(crate) enum Want<T> {"),
            Some(("enum", "Want"))
        );
        assert_eq!(rust("pub unsafe fn gone(x: u8)"), Some(("fn", "gone")));
        assert_eq!(rust("unsafe extern \"C\" fn own()"), Some(("fn", "own")));
        assert_eq!(rust("pub const fn shown() {"), Some(("fn", "shown")));
        assert_eq!(rust("// struct State"), None);
        assert_eq!(rust("let state = State::new();"), None);
        assert_eq!(rust("const LIMIT: usize = 1;"), None);
        let python = |line| definition(line, false);
        assert_eq!(python("class Entry(Base):"), Some(("class", "Entry")));
        assert_eq!(python("    async def wrong(self):"), Some(("def", "wrong")));
    }

    #[test]
    fn whole_names_are_banned() {
        let names = |text| banned_names("crates/a/src/b.rs", text).len();
        assert_eq!(names("struct State;\nstruct StreamState;\n"), 1);
        assert_eq!(names("fn wrong() {}\nfn wrong_type() {}\n"), 1);
        assert_eq!(names("fn forget_context() {}\nfn remove_context() {}\n"), 1);
        assert_eq!(names("mod own;\nfn owner() {}\n"), 1);
        assert_eq!(banned_names("python/cuda/tricks.py", ""), [(1, "tricks")]);
    }

    #[test]
    fn a_reason_may_follow_a_reference() {
        assert_eq!(unexplained("// SAFETY: as above.\nunsafe {}\n"), [1]);
        assert_eq!(unexplained("x; // SAFETY: See above\n"), [1]);
        let reason = "// SAFETY: as above; every lane is set.\nunsafe {}\n";
        assert_eq!(unexplained(reason), [0_usize; 0]);
        let longer = "// SAFETY: as above.\n// The buffer has this size.\nunsafe {}\n";
        assert_eq!(unexplained(longer), [0_usize; 0]);
    }

    #[test]
    fn exceptions_have_reasons() {
        assert!(EXCEPTIONS.iter().all(|(_, _, reason)| !reason.is_empty()));
    }
}
