//! The value of constant macros: integer literals, names of enumerators and other macros, casts, `-`, `~`, `+`, `|`, `<<`.

use std::collections::HashMap;

use crate::read::declarations::Macro;

/// A macro's value and the type it is cast to, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Value, its low 64 bits.
    pub value: i64,
    /// Whether the bits are unsigned: a literal above `i64::MAX`.
    pub unsigned: bool,
    /// `CUstream` in `((CUstream)0x1)`.
    pub cast: Option<String>,
}

/// The values of all constant macros. `known` contains the enumerators.
pub fn evaluate(macros: &[Macro], known: &HashMap<String, i64>) -> Vec<(String, Value)> {
    let bodies: HashMap<&str, &Macro> = macros.iter().map(|m| (m.name.as_str(), m)).collect();
    let mut out = Vec::new();
    for m in macros {
        let mut p = Parser {
            tokens: &m.body,
            at: 0,
            bodies: &bodies,
            known,
            depth: 0,
        };
        if let Some(value) = p.expression()
            && p.at == m.body.len()
        {
            out.push((m.name.clone(), value));
        }
    }
    out
}

struct Parser<'a> {
    tokens: &'a [String],
    at: usize,
    bodies: &'a HashMap<&'a str, &'a Macro>,
    known: &'a HashMap<String, i64>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn eat(&mut self, token: &str) -> bool {
        let hit = self.peek() == Some(token);
        self.at += usize::from(hit);
        hit
    }

    fn expression(&mut self) -> Option<Value> {
        let mut left = self.unary()?;
        loop {
            let op = match self.peek() {
                Some(op @ ("|" | "<<" | "+")) => op.to_owned(),
                _ => return Some(left),
            };
            self.at += 1;
            let right = self.unary()?;
            if left.unsigned || right.unsigned {
                return None; // no header computes with such numbers
            }
            left.value = match op.as_str() {
                "|" => left.value | right.value,
                "<<" => left.value.checked_shl(u32::try_from(right.value).ok()?)?,
                _ => left.value.checked_add(right.value)?,
            };
        }
    }

    fn unary(&mut self) -> Option<Value> {
        if self.eat("-") {
            let v = self.unary()?;
            if v.unsigned {
                return None;
            }
            return Some(Value {
                value: v.value.checked_neg()?,
                ..v
            });
        }
        if self.eat("~") {
            // The only use is `~0u`: 32 bits.
            let v = self.unary()?;
            return Some(Value {
                value: i64::from(!(v.value as u32)),
                ..v
            });
        }
        if self.eat("(") {
            if let Some(cast) = self.cast() {
                let v = self.unary()?;
                return Some(Value {
                    cast: Some(cast),
                    ..v
                });
            }
            let v = self.expression()?;
            return self.eat(")").then_some(v);
        }
        self.primary()
    }

    /// `CUstream )` or `void * )` after an opening parenthesis.
    fn cast(&mut self) -> Option<String> {
        let start = self.at;
        let name = self.peek()?.to_owned();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_name && !self.known.contains_key(&name) && !self.bodies.contains_key(name.as_str()) {
            self.at += 1;
            let mut text = name;
            while self.eat("*") {
                text.push_str(" *");
            }
            if self.eat(")") {
                return Some(text);
            }
        }
        self.at = start;
        None
    }

    fn primary(&mut self) -> Option<Value> {
        let token = self.peek()?.to_owned();
        self.at += 1;
        let plain = |value: i64, unsigned: bool| Value {
            value,
            unsigned,
            cast: None,
        };
        if let Some(bits) = literal(&token) {
            return Some(plain(bits as i64, bits > i64::MAX as u64));
        }
        if let Some(&value) = self.known.get(&token) {
            return Some(plain(value, false));
        }
        let body = self.bodies.get(token.as_str())?;
        if self.depth > 8 {
            return None; // macros may name each other in a circle
        }
        let mut inner = Parser {
            tokens: &body.body,
            at: 0,
            bodies: self.bodies,
            known: self.known,
            depth: self.depth + 1,
        };
        let value = inner.expression()?;
        (inner.at == body.body.len()).then_some(value)
    }
}

fn literal(token: &str) -> Option<u64> {
    let digits = token.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok(),
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(body: &str) -> Option<Value> {
        let macros = [
            Macro {
                name: "M".into(),
                body: body.split(' ').map(str::to_owned).collect(),
            },
            Macro {
                name: "N".into(),
                body: vec!["0x02".into()],
            },
        ];
        let known = HashMap::from([("CU_ENUM".to_owned(), 7)]);
        evaluate(&macros, &known)
            .into_iter()
            .find(|(n, _)| n == "M")
            .map(|(_, v)| v)
    }

    #[test]
    fn values() {
        let plain = |v| {
            Some(Value {
                value: v,
                unsigned: false,
                cast: None,
            })
        };
        assert_eq!(one("0x1"), plain(1));
        assert_eq!(one("- 1"), plain(-1));
        assert_eq!(one("( ~ 0u )"), plain(0xffff_ffff));
        assert_eq!(one("CU_ENUM"), plain(7));
        assert_eq!(one("010"), plain(8));
        assert_eq!(one("1 << 4"), plain(16));
        let all = one("0xFFFFFFFFFFFFFFFF").unwrap();
        assert_eq!((all.value, all.unsigned), (-1, true));
        assert_eq!(one("- 0xFFFFFFFFFFFFFFFF"), None);
        assert_eq!(one("9223372036854775807"), plain(i64::MAX));
        let cast = one("( ( void * ) N )").unwrap();
        assert_eq!((cast.value, cast.cast.as_deref()), (2, Some("void *")));
        let cast = one("( ( CUdevice ) - 2 )").unwrap();
        assert_eq!((cast.value, cast.cast.as_deref()), (-2, Some("CUdevice")));
    }

    #[test]
    fn not_constants() {
        assert_eq!(one("cuMemAlloc_v2"), None);
        assert_eq!(one("M"), None);
        assert_eq!(one("1 2"), None);
        assert_eq!(one("__attribute__ ( ( deprecated ) )"), None);
    }
}
