//! Facts of the headers' documentation comments: the section of NVIDIA's manual that a function belongs to, and the
//! statuses it documents.
//!
//! Only names are read: of groups (`\defgroup`), and of members of the status enum after `\return`. The invariant:
//! no sentence of a header reaches the result.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::ManualEntry;

/// The functions of some headers by name, each with its section and statuses.
#[derive(Debug, Default)]
pub struct Manual {
    /// By name as the header writes it, before macros.
    pub functions: BTreeMap<String, ManualEntry>,
    /// Titles of the sections, by group.
    pub titles: BTreeMap<String, String>,
}

impl Manual {
    /// Reads the text of a header. `prefix` is that of the library's functions, `members` the members of its
    /// enums, among them the statuses. A function that an earlier header documents keeps that entry.
    pub fn read(&mut self, text: &str, prefix: &str, members: &BTreeSet<&str>) {
        // The open groups. A group without a name is a `@{` alone.
        let mut open: Vec<Option<String>> = Vec::new();
        let mut comment = Comment::default();
        let mut code = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(found) = rest.strip_prefix("/*") {
                let (body, after) = found.split_once("*/").unwrap_or((found, ""));
                rest = after;
                if !body.starts_with(['*', '!']) {
                    continue;
                }
                let read = Comment::read(body, &mut open, &mut self.titles, members);
                if read.documents {
                    // A new comment: what precedes it belongs to the one before.
                    code.clear();
                    comment = read;
                }
            } else if rest.starts_with("//") {
                rest = rest.split_once('\n').map_or("", |(_, after)| after);
            } else if rest.starts_with('#') && code.trim_end_matches([' ', '\t']).ends_with('\n') {
                rest = after_directive(rest);
            } else {
                let mut letters = rest.chars();
                let letter = letters.next().unwrap_or_default();
                rest = letters.as_str();
                code.push(letter);
                if letter == ';' {
                    if let Some(name) = declared(&code, prefix) {
                        let group = (comment.group.clone())
                            .or_else(|| open.iter().rev().find_map(Clone::clone))
                            .unwrap_or_default();
                        let entry = ManualEntry {
                            group,
                            statuses: std::mem::take(&mut comment).statuses,
                        };
                        self.functions.entry(name).or_insert(entry);
                    }
                    code.clear();
                    code.push('\n');
                }
            }
        }
    }
}

/// The text after a preprocessor directive and its continuation lines.
fn after_directive(mut rest: &str) -> &str {
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        if !line.trim_end().ends_with('\\') {
            return rest;
        }
    }
}

/// The name of the function that a statement declares: the first identifier with the prefix before a parenthesis.
fn declared(code: &str, prefix: &str) -> Option<String> {
    let mut rest = code;
    while let Some(at) = rest.find(prefix) {
        let preceded = rest[..at].chars().next_back().is_some_and(is_word);
        let from = &rest[at..];
        let end = from.find(|c| !is_word(c)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        if !preceded && after.trim_start().starts_with('(') {
            return Some(name.to_owned());
        }
        rest = after;
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The facts of one documentation comment.
#[derive(Clone, Debug, Default)]
struct Comment {
    /// Whether it may belong to a declaration: it does more than open and close groups.
    documents: bool,
    /// The group that `\ingroup` names.
    group: Option<String>,
    /// The statuses after `\return`, in order.
    statuses: Vec<String>,
}

impl Comment {
    fn read(
        body: &str,
        open: &mut Vec<Option<String>>,
        titles: &mut BTreeMap<String, String>,
        members: &BTreeSet<&str>,
    ) -> Comment {
        let mut out = Comment::default();
        // The group that this comment defines, until its `@{`.
        let mut pending = None;
        let mut in_group = None;
        let mut returns = false;
        for line in body.lines() {
            let line = line.trim().trim_start_matches('*').trim();
            let command = line
                .strip_prefix(['\\', '@'])
                .and_then(|l| l.split(char::is_whitespace).next())
                .unwrap_or_default();
            let mut words = line.split_whitespace().skip(1);
            match command {
                "defgroup" | "addtogroup" => {
                    pending = words.next().map(str::to_owned);
                    let title = words.collect::<Vec<_>>().join(" ");
                    if let (Some(group), false) = (&pending, title.is_empty()) {
                        let known = titles.entry(group.clone()).or_insert_with(|| title.clone());
                        if command == "defgroup" {
                            *known = title;
                        }
                    }
                }
                "ingroup" => in_group = words.next().map(str::to_owned),
                "{" => open.push(pending.take()),
                "}" => {
                    open.pop();
                }
                "return" | "returns" | "retval" => {
                    returns = true;
                    out.documents = true;
                }
                "brief" | "param" | "details" | "note" | "sa" | "see" | "deprecated" => {
                    returns = false;
                    out.documents = true;
                }
                _ => {
                    // A comment without commands documents too, unless it only ends a group.
                    out.documents |= pending.is_none() && !line.is_empty() && command.is_empty();
                }
            }
            if returns {
                for word in line.split(|c| !is_word(c)) {
                    if members.contains(word) && !out.statuses.iter().any(|s| s == word) {
                        out.statuses.push(word.to_owned());
                    }
                }
            }
        }
        if in_group.is_some() && titles.contains_key(in_group.as_deref().unwrap_or_default()) {
            out.group = in_group;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r"
        /**
         * \defgroup X_MEM Memory Management
         * @{
         */
        /**
         * \brief Does something
         * \param size - Size; not X_ERROR_OTHER
         * \return
         * ::X_SUCCESS,
         * ::X_ERROR_VALUE
         * \note X_ERROR_OTHER is not returned
         */
        xStatus API xAlloc(void **p,
            /* bytes */ size_t size);
        #define xAlloc(a) \
            xOther(a);
        xStatus xBare(void);
        /** \defgroup X_INNER Inner
         * @{ */
        /** \brief Nested */
        xStatus xNested(xStatus (*f)(int));
        /** @} */ // @defgroup X_INNER Inner
        typedef void (CB *xCallback)(int);
        /** @} */
        /** \ingroup X_MEM
         * \brief By name
         * \return X_SUCCESS */
        xStatus xNamed(void);
    ";

    #[test]
    fn sections_and_statuses_come_from_comments() {
        let mut manual = Manual::default();
        let members = BTreeSet::from(["X_SUCCESS", "X_ERROR_VALUE", "X_ERROR_OTHER"]);
        manual.read(HEADER, "x", &members);
        let of = |name: &str| {
            let entry = &manual.functions[name];
            (entry.group.as_str(), entry.statuses.join(" "))
        };
        assert_eq!(
            of("xAlloc"),
            ("X_MEM", "X_SUCCESS X_ERROR_VALUE".to_owned())
        );
        assert_eq!(of("xBare"), ("X_MEM", String::new()));
        assert_eq!(of("xNested"), ("X_INNER", String::new()));
        assert_eq!(of("xNamed"), ("X_MEM", "X_SUCCESS".to_owned()));
        assert_eq!(manual.functions.len(), 4);
        assert_eq!(manual.titles["X_MEM"], "Memory Management");
    }
}
