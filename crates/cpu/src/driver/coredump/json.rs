//! JSON text for the note of a core dump.

use std::fmt::Write;

/// An object under construction.
#[derive(Default)]
pub(super) struct Object(String);

impl Object {
    fn key(&mut self, key: &str) {
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        let _ = write!(self.0, "\"{key}\": ");
    }

    /// Adds a member whose value is JSON already: a number, an object, a list.
    pub(super) fn raw(&mut self, key: &str, value: impl std::fmt::Display) -> &mut Self {
        self.key(key);
        let _ = write!(self.0, "{value}");
        self
    }

    /// Adds a text.
    pub(super) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        quote(value, &mut self.0);
        self
    }

    /// The object.
    pub(super) fn end(&self) -> String {
        format!("{{{}}}", self.0)
    }
}

/// A list of values that are JSON already.
pub(super) fn list(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<String> = values.into_iter().collect();
    format!("[{}]", values.join(", "))
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        let mut object = Object::default();
        object
            .text("a", "x\"\\\n\u{1}é")
            .raw("b", list(["1".into(), "2".into()]));
        assert_eq!(
            object.end(),
            "{\"a\": \"x\\\"\\\\\\u000a\\u0001é\", \"b\": [1, 2]}"
        );
    }
}
