//! HTML fragments, links from names to their definitions, and a check of all links.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Text with code between backquotes.
pub fn prose(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.replace("``", "`").split('`').enumerate() {
        if i % 2 == 0 {
            out.push_str(&escape(part));
        } else {
            let _ = write!(out, "<code>{}</code>", escape(part));
        }
    }
    out
}

/// A whole page. `title` is plain text, `body` HTML.
pub fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"stylesheet\" href=\"style.css\">\n</head>\n<body>\n\
         <nav><a href=\"index.html\">Modules</a> <a href=\"names.html\">All names</a></nav>\n\
         <main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// A table; empty where there are no rows. Cells are HTML; columns that are empty in every row are left out.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let visible: Vec<usize> = (0..head.len())
        .filter(|&i| rows.iter().any(|r| !r[i].is_empty()))
        .collect();
    let mut out = String::from("<table>\n<thead><tr>");
    for &i in &visible {
        let _ = write!(out, "<th>{}</th>", escape(head[i]));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for &i in &visible {
            let _ = write!(out, "<td>{}</td>", row[i]);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
    out
}

/// Code, as HTML.
pub fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

/// The pages that define names.
#[derive(Debug, Default)]
pub struct Names {
    /// Pages (without `.html`) by name.
    pages: BTreeMap<String, Vec<String>>,
}

impl Names {
    /// Records an anchor `name` on `page`.
    pub fn add(&mut self, page: &str, name: &str) {
        let pages = self.pages.entry(name.to_owned()).or_default();
        if !pages.iter().any(|p| p == page) {
            pages.push(page.to_owned());
        }
    }

    /// All names with their pages, in alphabetical order.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.pages.iter().map(|(n, p)| (n.as_str(), p.as_slice()))
    }

    /// The link target of `name` on `page`: on the same page, else on the first other one.
    pub fn address(&self, page: &str, name: &str) -> Option<String> {
        let pages = self.pages.get(name)?;
        if pages.iter().any(|p| p == page) {
            return Some(format!("#{name}"));
        }
        Some(format!("{}.html#{name}", pages.first()?))
    }

    /// Code in which every defined name is a link.
    pub fn code(&self, page: &str, text: &str) -> String {
        let mut out = String::from("<code>");
        let mut rest = text;
        while !rest.is_empty() {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            if end == 0 {
                let end = rest.find(word).unwrap_or(rest.len());
                out.push_str(&escape(&rest[..end]));
                rest = &rest[end..];
                continue;
            }
            let name = &rest[..end];
            match self.address(page, name) {
                Some(address) => {
                    let _ = write!(out, "<a href=\"{address}\">{name}</a>");
                }
                None => out.push_str(name),
            }
            rest = &rest[end..];
        }
        out.push_str("</code>");
        out
    }
}

/// The values of `attribute="..."` in a page.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let key = format!(" {attribute}=\"");
    html.split(key.as_str())
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

/// Checks that every link has a target file and anchor, and that no page has duplicate anchors.
///
/// # Errors
///
/// The broken links and duplicate anchors.
pub fn check(files: &[(PathBuf, String)]) -> Result<(), String> {
    let mut anchors: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut invalid = Vec::new();
    for (path, text) in files {
        let name = path.to_str().unwrap_or_default();
        let ids = anchors.entry(name).or_default();
        for id in values(text, "id") {
            if !ids.insert(id) {
                invalid.push(format!("{name}: duplicate anchor {id}"));
            }
        }
    }
    for (path, text) in files {
        let name = path.to_str().unwrap_or_default();
        for link in values(text, "href") {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { name } else { file };
            match anchors.get(file) {
                None => invalid.push(format!("{name}: no file {file}")),
                Some(ids) if !anchor.is_empty() && !ids.contains(anchor) => {
                    invalid.push(format!("{name}: no {anchor} in {file}"));
                }
                Some(_) => {}
            }
        }
    }
    if invalid.is_empty() {
        Ok(())
    } else {
        invalid.sort();
        invalid.dedup();
        Err(invalid.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("a < \"b\" & c"), "a &lt; &quot;b&quot; &amp; c");
        assert_eq!(
            prose("see ``x<y>`` and `z`."),
            "see <code>x&lt;y&gt;</code> and <code>z</code>."
        );
    }

    #[test]
    fn names_link_to_the_same_page_first() {
        let mut names = Names::default();
        names.add("driver", "CUresult");
        names.add("nvml", "Result");
        names.add("nvvm", "Result");
        assert_eq!(
            names.code("nvvm", "tuple[Result | None]"),
            "<code>tuple[<a href=\"#Result\">Result</a> | None]</code>"
        );
        assert_eq!(
            names.code("nvvm", "CUresult"),
            "<code><a href=\"driver.html#CUresult\">CUresult</a></code>"
        );
        assert_eq!(
            names.code("x", "CUresult2 <a>"),
            "<code>CUresult2 &lt;a&gt;</code>"
        );
    }

    #[test]
    fn empty_columns_are_omitted() {
        let rows = vec![vec!["a".to_owned(), String::new()]];
        let html = table(&["one", "two"], &rows);
        assert!(html.contains("one") && !html.contains("two"));
        assert_eq!(table(&["one"], &[]), "");
    }

    #[test]
    fn broken_links_and_duplicate_anchors_are_errors() {
        let file = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
        let good = [
            file(
                "a.html",
                "<p id=\"x\"> <a href=\"b.html#y\"> <a href=\"#x\"> <a href=\"https://z\">",
            ),
            file("b.html", "<p id=\"y\"> <a href=\"a.html\">"),
        ];
        assert_eq!(check(&good), Ok(()));
        let bad = [file(
            "a.html",
            "<p id=\"x\"> <p id=\"x\"> <a href=\"c.html\"> <a href=\"#q\">",
        )];
        let error = check(&bad).unwrap_err();
        assert_eq!(
            error,
            "a.html: duplicate anchor x\na.html: no file c.html\na.html: no q in a.html"
        );
    }
}
