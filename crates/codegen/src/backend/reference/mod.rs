//! The reference pages: static HTML without scripts, one page per module.
//!
//! They are generated from the same IR as the bindings, so that they cannot diverge. Hand-written modules are
//! described by their docstrings ([`pyi`]).

mod about;
mod classes;
mod functions;
pub mod html;
pub mod pyi;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::backend::python_descriptions::status_meanings;
use crate::ir::{Api, LibraryApi, Style};
use crate::meanings::Meanings;
use crate::naming::{short_title, title};
use html::{Names, code, escape, page, prose, table};

/// Hand-written modules: name, path of the source without its extension, and that of the module from which it
/// re-exports names.
const BY_HAND: &[(&str, &str, Option<&str>)] = &[
    ("cuda.bindings.utils", "python/cuda/bindings/utils", None),
    (
        "cuda.pathfinder",
        "python/cuda/pathfinder/__init__",
        Some("python/cupyrite/_native/__init__"),
    ),
    ("cupyrite", "python/cupyrite/__init__", None),
];

/// The files by name. `root` is the repository root, for hand-written modules.
///
/// # Errors
///
/// A module cannot be read, or a link is broken.
pub fn generate(api: &Api, root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let libraries: Vec<&LibraryApi> = api.in_python().collect();
    let mut custom = Vec::new();
    for (name, path, origin) in BY_HAND {
        let origin = origin.map(|path| read(&root.join(path))).transpose()?;
        let text = read(&root.join(path))?;
        custom.push((*name, pyi::parse(&text, origin.as_deref())));
    }
    let meanings = Meanings::load(root, &libraries)?;
    let mut names = Names::default();
    for lib in &libraries {
        for name in own_names(lib) {
            names.add(&lib.name, name);
        }
    }
    for (name, module) in &custom {
        for item in &module.items {
            names.add(last(name), &item.name);
        }
    }
    let mut files = vec![
        (
            PathBuf::from("style.css"),
            include_str!("style.css").to_owned(),
        ),
        (PathBuf::from("index.html"), index(&libraries, &custom)),
        (PathBuf::from("names.html"), all_names(&names)),
    ];
    for lib in libraries {
        let first = api.library(lib.c_library()).unwrap_or(lib);
        let statuses = status_meanings(first, &meanings);
        files.push((
            PathBuf::from(format!("{}.html", lib.name)),
            module(lib, &names, &meanings, &statuses),
        ));
    }
    for (name, module) in &custom {
        let text = hand_written(name, module, &names);
        files.push((PathBuf::from(format!("{}.html", last(name))), text));
    }
    html::check(&files)?;
    Ok(files)
}

/// The stub if it exists, else the module.
fn read(stem: &Path) -> Result<String, String> {
    let stub = stem.with_extension("pyi");
    let file = if stub.exists() {
        stub
    } else {
        stem.with_extension("py")
    };
    std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))
}

fn last(module: &str) -> &str {
    module.rsplit('.').next().unwrap_or(module)
}

/// Every name of a module with a heading.
fn own_names(lib: &LibraryApi) -> Vec<&str> {
    let python = &lib.python;
    let mut out: Vec<&str> = functions::of(lib)
        .iter()
        .map(|(_, p)| p.name.as_str())
        .collect();
    out.extend(python.classes.iter().map(|c| c.name.as_str()));
    out.extend(python.enums.iter().map(|e| e.name.as_str()));
    out.extend(python.exceptions.iter().map(|e| e.name.as_str()));
    if python.style == Style::Tuple {
        out.push("sizeof");
    }
    out
}

fn index(libraries: &[&LibraryApi], custom: &[(&str, pyi::Module)]) -> String {
    let mut body = String::from(
        "<h1>Reference</h1>\n<p>Every function, class, enum and exception of the Python modules: types, shapes, units \
         and errors. Each page links to NVIDIA's documentation for the semantics.</p>\n",
    );
    let mut rows = Vec::new();
    for lib in libraries {
        rows.push(vec![
            format!(
                "<a href=\"{}.html\">{}</a>",
                lib.name,
                code(&lib.python.name)
            ),
            escape(title(lib)),
            functions::of(lib).len().to_string(),
            lib.python.classes.len().to_string(),
            lib.python.enums.len().to_string(),
        ]);
    }
    for (name, module) in custom {
        let classes = module
            .items
            .iter()
            .filter(|i| i.signature.starts_with("class "));
        let count = classes.count();
        rows.push(vec![
            format!("<a href=\"{}.html\">{}</a>", last(name), code(name)),
            prose(module.doc.lines().next().unwrap_or_default()),
            (module.items.len() - count).to_string(),
            count.to_string(),
            String::new(),
        ]);
    }
    body.push_str(&table(
        &["module", "description", "functions", "classes", "enums"],
        &rows,
    ));
    page("Reference", &body)
}

fn all_names(names: &Names) -> String {
    let mut body = String::from("<h1>All names</h1>\n<div class=\"columns\">\n");
    for (name, pages) in names.all() {
        for p in pages {
            let _ = writeln!(
                body,
                "<a href=\"{p}.html#{name}\">{name} <span class=\"note\">{p}</span></a>"
            );
        }
    }
    body.push_str("</div>\n");
    page("All names", &body)
}

/// `statuses` says what the statuses of the library mean, by value.
fn module(
    lib: &LibraryApi,
    names: &Names,
    meanings: &Meanings,
    statuses: &[(i64, &str)],
) -> String {
    let python = &lib.python;
    let mut body = format!(
        "<h1>{}</h1>\n<p>{}. Semantics: <a href=\"{}\">NVIDIA's documentation</a>.</p>\n",
        escape(&python.name),
        escape(title(lib)),
        lib.doc_url
    );
    body.push_str(&answers(lib, names));
    body.push_str("<h2>Contents</h2>\n");
    for (what, list) in [
        (
            "Functions",
            functions::of(lib)
                .iter()
                .map(|(_, p)| p.name.as_str())
                .collect(),
        ),
        (
            "Classes",
            python
                .classes
                .iter()
                .map(|c| c.name.as_str())
                .collect::<Vec<_>>(),
        ),
        (
            "Enums",
            python.enums.iter().map(|e| e.name.as_str()).collect(),
        ),
        (
            "Exceptions",
            python.exceptions.iter().map(|e| e.name.as_str()).collect(),
        ),
    ] {
        if list.is_empty() {
            continue;
        }
        let _ = writeln!(
            body,
            "<details><summary>{what}: {}</summary><div class=\"columns\">",
            list.len()
        );
        for name in list {
            let _ = writeln!(body, "<a href=\"#{name}\">{name}</a>");
        }
        body.push_str("</div></details>\n");
    }
    body.push_str("<h2>Functions</h2>\n");
    for (c, p) in functions::of(lib) {
        body.push_str(&functions::section(lib, c, p, names, statuses));
    }
    if python.style == Style::Tuple {
        // The only function of these modules that is not in the C library.
        body.push_str(
            "<h3 id=\"sizeof\">sizeof</h3>\n<pre>sizeof(objType: type) -&gt; int</pre>\n\
             <p>The size in bytes of the C type of a class of this module.</p>\n",
        );
    }
    body.push_str(&classes::sections(lib, names, meanings));
    page(&python.name, &body)
}

/// The conventions of the module's functions.
fn answers(lib: &LibraryApi, names: &Names) -> String {
    let here = |text: &str| names.code(&lib.name, text);
    let gil = "Calls release the GIL unless noted.";
    match (&lib.python.style, &lib.python.errors) {
        (Style::Raises, Some(errors)) => format!(
            "<p>Functions return their results: one value, a tuple, or None. A {} other than success raises {} or the \
             subclass for that status; <code>e.status</code> is its number. {gil}</p>\n",
            here(&errors.status_enum),
            here(&errors.exception),
        ),
        _ => format!(
            "<p>Functions return a tuple whose first element is a member of {}. If it is not success, the other elements \
             are None; the failure raises no exception. Before the C call, an argument of the invalid type raises \
             TypeError and a number out of range OverflowError. {gil}</p>\n",
            here(&lib.status_enum),
        ),
    }
}

fn hand_written(name: &str, module: &pyi::Module, names: &Names) -> String {
    let here = last(name);
    let mut body = format!("<h1>{}</h1>\n{}", escape(name), paragraphs(&module.doc));
    let mut headed = String::new();
    for item in &module.items {
        // Overloads follow the first signature.
        if item.name != headed {
            let _ = writeln!(body, "<h3 id=\"{0}\">{0}</h3>", escape(&item.name));
            headed.clone_from(&item.name);
        }
        let _ = writeln!(body, "<pre>{}</pre>", names.code(here, &item.signature));
        body.push_str(&paragraphs(&item.doc));
        if !item.members.is_empty() {
            body.push_str("<dl>\n");
            for m in &item.members {
                let _ = writeln!(
                    body,
                    "<dt>{}</dt><dd>{}</dd>",
                    names.code(here, &m.signature),
                    paragraphs(&m.doc)
                );
            }
            body.push_str("</dl>\n");
        }
    }
    page(name, &body)
}

/// A docstring section in NumPy style: a title, a rule, then names or types with indented descriptions.
fn section(block: &str) -> Option<String> {
    let mut lines = block.lines();
    let title = lines.next()?;
    let line = lines.next()?;
    if line.is_empty() || !line.trim_matches('-').is_empty() {
        return None;
    }
    let mut out = format!("<h4>{}</h4>\n<dl>\n", escape(title));
    let mut words = String::new();
    let end = |words: &mut String| match std::mem::take(words) {
        words if words.is_empty() => String::new(),
        words => format!("<dd>{}</dd>\n", prose(&words)),
    };
    for line in lines {
        if line.starts_with(' ') {
            if !words.is_empty() {
                words.push('\n');
            }
            words.push_str(line.trim());
        } else {
            out.push_str(&end(&mut words));
            let _ = writeln!(out, "<dt>{}</dt>", code(line));
        }
    }
    out.push_str(&end(&mut words));
    out.push_str("</dl>\n");
    Some(out)
}

/// Converts a docstring: paragraphs, sections, and indented blocks, which stay preformatted.
fn paragraphs(doc: &str) -> String {
    let mut out = String::new();
    for block in doc.split("\n\n").filter(|b| !b.trim().is_empty()) {
        if let Some(section) = section(block) {
            out.push_str(&section);
            continue;
        }
        if block.lines().all(|l| l.is_empty() || l.starts_with(' ')) || block.contains(">>>") {
            let _ = writeln!(out, "<pre>{}</pre>", escape(block));
        } else {
            let _ = writeln!(out, "<p>{}</p>", prose(block));
        }
    }
    out
}

/// The short title, for use in sentences: "NVRTC".
fn called(lib: &LibraryApi) -> &'static str {
    short_title(lib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docstrings_have_sections() {
        let text = "Finds it.\n\nParameters\n----------\nname : str\n    Its name,\n    or `None`.\n\nReturns\n-------\nint\n";
        assert_eq!(
            paragraphs(text),
            "<p>Finds it.</p>\n\
             <h4>Parameters</h4>\n<dl>\n<dt><code>name : str</code></dt>\n<dd>Its name,\nor <code>None</code>.</dd>\n</dl>\n\
             <h4>Returns</h4>\n<dl>\n<dt><code>int</code></dt>\n</dl>\n"
        );
        assert_eq!(paragraphs("One\ntwo"), "<p>One\ntwo</p>\n");
    }
}
