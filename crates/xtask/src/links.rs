//! Paths and links in the project's Markdown: each names a file that exists, and `file::name` a name in that file.

use std::path::Path;

use crate::Error;
use crate::report::output;

/// Top-level folders: a code span that begins with one of them is a path.
const FOLDERS: &[&str] = &[
    ".cargo/",
    ".ci/",
    ".config/",
    ".github/",
    "api/",
    "benches/",
    "crates/",
    "docs/",
    "examples/",
    "python/",
    "tests/",
];
/// Folders that commands make; paths below them need not exist.
const MADE: &[&str] = &["target/", "dist/"];

/// Checks every Markdown page that git knows.
pub fn check(root: &Path) -> Result<(), Error> {
    let pages = output(std::process::Command::new("git").arg("-C").arg(root).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.md",
    ]))?;
    let mut violations = Vec::new();
    let mut count = 0;
    for page in pages.lines() {
        let Ok(text) = std::fs::read_to_string(root.join(page)) else {
            continue; // deleted and not yet committed
        };
        for (line, path) in named_paths(&text) {
            count += 1;
            if !exists(root, page, &path) {
                violations.push(format!("{page}:{line}: '{path}' does not exist"));
            }
        }
    }
    if violations.is_empty() {
        println!("{count} paths and links in Markdown exist");
        Ok(())
    } else {
        Err(violations.join("\n"))
    }
}

/// A path as a page names it.
#[derive(Debug, PartialEq)]
enum Named {
    /// In a code span, relative to the root; `file::name` also names something in the file.
    FromRoot(String),
    /// In a link, relative to the page.
    FromPage(String),
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Named::FromRoot(path) | Named::FromPage(path)) = self;
        f.write_str(path)
    }
}

fn exists(root: &Path, page: &str, path: &Named) -> bool {
    match path {
        Named::FromPage(path) => root
            .join(page)
            .parent()
            .is_some_and(|at| at.join(path).exists()),
        Named::FromRoot(path) => match path.split_once("::") {
            Some((file, name)) => std::fs::read_to_string(root.join(file))
                .is_ok_and(|text| has_word(&text, name.rsplit("::").next().unwrap_or(name))),
            None => expand(path).iter().all(|path| root.join(path).exists()),
        },
    }
}

/// Whether `word` occurs in `text` as a whole identifier.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|part| part == word)
}

/// `a/{b,c}.rs` names two files; `a/*.rs` and `a/NAME.rs` name the folder they lie in.
fn expand(path: &str) -> Vec<String> {
    if let Some((before, rest)) = path.split_once('{')
        && let Some((names, after)) = rest.split_once('}')
    {
        let each = names
            .split(',')
            .map(|name| format!("{before}{}{after}", name.trim()));
        return each.flat_map(|path| expand(&path)).collect();
    }
    let fixed: Vec<&str> = path
        .split('/')
        .take_while(|part| !part.contains(['*', '<']))
        .collect();
    vec![fixed.join("/")]
}

/// Every path in code spans and links, with its line. Fenced blocks are passed over.
fn named_paths(text: &str) -> Vec<(usize, Named)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            let is_path = FOLDERS.iter().any(|folder| span.starts_with(folder))
                && !span.contains([' ', '(', '"'])
                && !MADE.iter().any(|folder| span.starts_with(folder));
            if is_path {
                found.push((number + 1, Named::FromRoot(span.to_owned())));
            }
        }
        // `kernel[grid, block](x)` in a code span is no link.
        let outside = line.split('`').step_by(2);
        for rest in outside.flat_map(|text| text.split("](").skip(1)) {
            let target = rest.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number + 1, Named::FromPage(target.to_owned())));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Named, expand, has_word, named_paths};

    #[test]
    fn code_spans_and_links_are_found() {
        let text = "see `crates/ptx/src/lib.rs` and [that](core.md#x), `cuda.core`,\n\
                    [out](https://example.org), `k[g, b](*args)`, [`a`](b.md)\n```\n`tests/none`\n```\n`tests/test_a.py::test_b`";
        assert_eq!(
            named_paths(text),
            [
                (1, Named::FromRoot("crates/ptx/src/lib.rs".into())),
                (1, Named::FromPage("core.md".into())),
                (2, Named::FromPage("b.md".into())),
                (6, Named::FromRoot("tests/test_a.py::test_b".into())),
            ]
        );
    }

    #[test]
    fn names_are_whole_identifiers() {
        assert!(has_word("pub fn launch_raw(&self)", "launch_raw"));
        assert!(!has_word("pub fn launch_raw(&self)", "launch"));
    }

    #[test]
    fn braces_and_patterns_are_expanded() {
        assert_eq!(expand("a/{b,c}.rs"), ["a/b.rs", "a/c.rs"]);
        assert_eq!(expand("api/overlay/*.toml"), ["api/overlay"]);
        assert_eq!(expand("api/overlay/<library>.toml"), ["api/overlay"]);
    }
}
