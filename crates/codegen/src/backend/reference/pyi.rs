//! Hand-written modules: functions and classes with their docstrings, parsed line by line from `.pyi` or `.py` files.

/// A function, class or annotated name of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Name.
    pub name: String,
    /// `def load(name: str) -> Loaded`, `class Loaded(NamedTuple)`, on one line.
    pub signature: String,
    /// The docstring, without quotes and common indentation; empty without one.
    pub doc: String,
    /// Methods and attributes of a class that do not begin with an underscore.
    pub members: Vec<Item>,
}

/// A parsed module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its docstring.
    pub doc: String,
    /// Functions, classes and annotated names, in order: those in `__all__`, or without it those without a leading
    /// underscore.
    pub items: Vec<Item>,
}

/// Parses a module's source, and that of the module from which it re-exports names, whose items follow.
pub fn parse(text: &str, origin: Option<&str>) -> Module {
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() && (lines[at].is_empty() || lines[at].starts_with('#')) {
        at += 1;
    }
    let doc = docstring(&lines, &mut at, 0);
    let mut items = items(&lines, &mut at, 0);
    if let Some(origin) = origin {
        items.extend(parse(origin, None).items);
    }
    if let Some(names) = exports(text) {
        items.retain(|i| names.contains(&i.name.as_str()));
    }
    Module { doc, items }
}

/// The names in `__all__`.
fn exports(text: &str) -> Option<Vec<&str>> {
    let (_, rest) = text.split_once("\n__all__ = [")?;
    let (list, _) = rest.split_once(']')?;
    Some(list.split('"').skip(1).step_by(2).collect())
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The items of a block indented by `depth`; stops at the first line with less indentation.
fn items(lines: &[&str], at: &mut usize, depth: usize) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    let mut property = false;
    while *at < lines.len() {
        let line = lines[*at];
        if !line.trim().is_empty() && indent(line) < depth {
            break;
        }
        let text = line.trim_start();
        if line.trim().is_empty() || indent(line) != depth {
            *at += 1;
            continue;
        }
        if text.starts_with('@') {
            property = text.starts_with("@property");
            // A setter repeats its property.
            if text.contains(".setter") {
                *at += 1;
                let _ = signature(lines, at);
            }
            *at += 1;
            continue;
        }
        let is_class = text.starts_with("class ");
        if !is_class && !text.starts_with("def ") {
            let found = attribute(text);
            *at += 1;
            if let Some(mut item) = found {
                item.doc = docstring(lines, at, depth);
                out.push(item);
            }
            continue;
        }
        let full = signature(lines, at);
        *at += 1;
        let name = full[if is_class { 6 } else { 4 }..]
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .next()
            .unwrap_or_default()
            .to_owned();
        let doc = docstring(lines, at, depth + 4);
        let members = if is_class {
            items(lines, at, depth + 4)
        } else {
            Vec::new()
        };
        let signature = if property {
            match full.rsplit_once("-> ") {
                Some((_, ty)) => format!("{name}: {ty}"),
                None => name.clone(),
            }
        } else {
            full
        };
        property = false;
        let again = out
            .iter()
            .any(|i| i.name == name && i.signature == signature);
        if !name.starts_with('_') && !again {
            out.push(Item {
                name,
                signature,
                doc,
                members,
            });
        }
    }
    out
}

/// `major: int` in a class.
fn attribute(text: &str) -> Option<Item> {
    let (name, rest) = text.split_once(": ")?;
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with('_');
    let ty = rest.split([' ', '=']).next().filter(|t| !t.is_empty())?;
    let ty = match rest.split_once(" = ") {
        Some((ty, _)) => ty,
        None if rest.contains('#') => ty,
        None => rest,
    };
    plain.then(|| Item {
        name: name.to_owned(),
        signature: format!("{name}: {}", ty.trim().trim_matches('"')),
        doc: String::new(),
        members: Vec::new(),
    })
}

/// A `def` or `class` up to its colon, joined to one line; leaves `at` on its last line.
fn signature(lines: &[&str], at: &mut usize) -> String {
    let mut out = String::new();
    let mut open = 0i32;
    loop {
        let line = lines[*at].trim();
        let mut end = None;
        for (i, c) in line.char_indices() {
            match c {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' => open -= 1,
                ':' if open == 0 => {
                    end = Some(i);
                    break;
                }
                _ => {}
            }
        }
        if !out.is_empty() && !out.ends_with(['(', '[']) && !line.starts_with([')', ']']) {
            out.push(' ');
        }
        let line = &line[..end.unwrap_or(line.len())];
        if line.starts_with([')', ']']) {
            out = out.trim_end_matches(',').to_owned();
        }
        out.push_str(line);
        if end.is_some() || *at + 1 >= lines.len() {
            return out;
        }
        *at += 1;
    }
}

/// The docstring at `at`, if there is one.
fn docstring(lines: &[&str], at: &mut usize, depth: usize) -> String {
    let Some(line) = lines.get(*at) else {
        return String::new();
    };
    let text = line.trim_start();
    let Some(rest) = text
        .strip_prefix("r\"\"\"")
        .or_else(|| text.strip_prefix("\"\"\""))
        .filter(|_| indent(line) == depth)
    else {
        return String::new();
    };
    *at += 1;
    if let Some(whole) = rest.strip_suffix("\"\"\"") {
        return whole.to_owned();
    }
    let mut out = rest.to_owned();
    while *at < lines.len() {
        let line = lines[*at];
        *at += 1;
        let cut = line.get(depth.min(indent(line))..).unwrap_or_default();
        out.push('\n');
        if let Some(last) = cut.strip_suffix("\"\"\"") {
            out.push_str(last);
            break;
        }
        out.push_str(cut);
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# A comment.
"""What the module is for.

More of it.
"""

from typing import Any

_hidden = 1

def load(
    name: str,
    *,
    mode: dict[str, int] = {},
) -> "Loaded":
    """Loads a library.

    Raises OSError.
    """
    return None  # def no(): pass


def _private() -> None: ...
@overload
def find(name: str) -> str: ...
@overload
def find(name: str, major: int) -> str: ...

class Loaded(
    Base
):
    """What came of it."""

    path: str  # where
    count: int = 0
    _secret: int

    def __init__(self) -> None:
        self.x: int = 1

    @property
    def handle(self) -> int:
        """The handle."""
        return 1

    @handle.setter
    def handle(self, value: int) -> None: ...

    def close(self) -> None: ...

def last() -> None: ...
"#;

    #[test]
    fn parses_functions_classes_and_docstrings() {
        let module = parse(TEXT, None);
        assert_eq!(module.doc, "What the module is for.\n\nMore of it.");
        let signatures: Vec<&str> = module.items.iter().map(|i| i.signature.as_str()).collect();
        assert_eq!(
            signatures,
            [
                "def load(name: str, *, mode: dict[str, int] = {}) -> \"Loaded\"",
                "def find(name: str) -> str",
                "def find(name: str, major: int) -> str",
                "class Loaded(Base)",
                "def last() -> None",
            ]
        );
        assert_eq!(module.items[0].doc, "Loads a library.\n\nRaises OSError.");
        let class = &module.items[3];
        assert_eq!(class.doc, "What came of it.");
        let members: Vec<&str> = class.members.iter().map(|i| i.signature.as_str()).collect();
        assert_eq!(
            members,
            [
                "path: str",
                "count: int",
                "handle: int",
                "def close(self) -> None"
            ]
        );
        assert_eq!(class.members[2].doc, "The handle.");
    }

    #[test]
    fn only_exported_names_are_items() {
        let module = parse(
            "__version__: str\n\n__all__ = [\n    \"NAMES\",\n    \"f\",\n]\n\nNAMES: \"Final[tuple[str, ...]]\" = _names[0]\n\
             \"\"\"What can be asked for.\"\"\"\nOther: int\n\
             class Hidden(Error): ...\n@_cached\ndef f() -> None: ...\ndef g() -> None: ...\n",
            None,
        );
        let signatures: Vec<&str> = module.items.iter().map(|i| i.signature.as_str()).collect();
        assert_eq!(
            signatures,
            ["NAMES: Final[tuple[str, ...]]", "def f() -> None"]
        );
        assert_eq!(module.items[0].doc, "What can be asked for.");
        assert_eq!(module.items[1].doc, "");
    }

    #[test]
    fn exported_names_of_another_module_are_items() {
        let module = parse(
            "from native import Failure\n\n__all__ = [\"Failure\", \"f\"]\n\ndef f() -> None: ...\n",
            Some(
                "class Failure(Exception):\n    \"\"\"It failed.\"\"\"\n\nclass Other(Exception): ...\n",
            ),
        );
        let signatures: Vec<&str> = module.items.iter().map(|i| i.signature.as_str()).collect();
        assert_eq!(signatures, ["def f() -> None", "class Failure(Exception)"]);
        assert_eq!(module.items[1].doc, "It failed.");
    }

    #[test]
    fn an_empty_module_has_no_items() {
        assert_eq!(parse("", None), Module::default());
        assert_eq!(parse("x = 1\n", None), Module::default());
    }
}
