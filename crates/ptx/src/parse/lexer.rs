//! The lexer: characters to tokens (PTX ISA, "Syntax").
//!
//! Tokens borrow from the text. The lexer does not fail: invalid text becomes [`TokenKind::Bad`], which no rule of the grammar
//! accepts, so that the parser reports it at its position.

use crate::ir::Pos;

/// Kind of token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A name, an opcode, a register with its `%`, or `_`.
    Ident,
    /// `.word`, `.word::word`: a directive or modifier. The token's text includes the dot.
    Dot,
    /// An integer; whether it was written with the suffix `U`.
    Int(u64, bool),
    /// `0f` and eight digits: the bits.
    F32(u32),
    /// `0d` and sixteen digits, or a decimal floating-point number: the bits, and whether it was decimal.
    F64(u64, bool),
    /// A string; the text includes the quotes.
    Str,
    /// Punctuation of one character.
    Punct(u8),
    /// Punctuation of two characters: `<<`, `>>`, `<=`, `>=`, `==`, `!=`, `&&`, `||`, `@@`.
    Punct2([u8; 2]),
    /// Invalid text, and the reason.
    Bad(&'static str),
    /// The end of the text.
    End,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'t> {
    pub kind: TokenKind,
    pub text: &'t str,
    pub pos: Pos,
}

impl Token<'_> {
    /// Whether this is the punctuation character `c`.
    pub fn is(&self, c: u8) -> bool {
        self.kind == TokenKind::Punct(c)
    }
}

impl<'t> Lexer<'t> {
    /// The text from the start of one token to the end of another.
    pub fn between(&self, first: Token<'t>, last: Token<'t>) -> &'t str {
        let at = |part: &str| part.as_ptr().addr() - self.text.as_ptr().addr();
        &self.text[at(first.text)..at(last.text) + last.text.len()]
    }
}

impl<'t> Token<'t> {
    /// The word of a [`TokenKind::Dot`] token without its dot; empty for other tokens.
    pub fn word(&self) -> &'t str {
        if self.kind == TokenKind::Dot {
            &self.text[1..]
        } else {
            ""
        }
    }
}

/// A cursor over the text.
#[derive(Clone)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
    /// Start of the line, advanced by one for each continuation byte of a character, so that columns are differences.
    line_start: usize,
    /// Whether the line has contained only blanks so far.
    fresh_line: bool,
}

fn is_follow(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Lexer {
            text,
            at,
            line: 1,
            line_start: at,
            fresh_line: true,
        }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.at + ahead)
            .copied()
            .unwrap_or(0)
    }

    fn pos(&self) -> Pos {
        Pos {
            line: self.line,
            column: (self.at.saturating_sub(self.line_start)).min(u32::MAX as usize - 1) as u32 + 1,
        }
    }

    /// Skips one byte and counts lines and columns.
    fn step(&mut self) {
        match self.byte(0) {
            b'\n' => {
                self.line = self.line.saturating_add(1);
                self.line_start = self.at + 1;
                self.fresh_line = true;
            }
            0x80..=0xbf => self.line_start += 1,
            _ => {}
        }
        self.at += 1;
    }

    /// Skips the rest of the line.
    pub fn skip_line(&mut self) {
        while self.at < self.text.len() && self.byte(0) != b'\n' {
            self.step();
        }
    }

    /// Skips blanks, comments and preprocessor lines. Returns false at an unterminated comment.
    fn skip_blanks(&mut self) -> bool {
        while self.at < self.text.len() {
            match (self.byte(0), self.byte(1)) {
                (b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c, _) => self.step(),
                (b'/', b'/') => self.skip_line(),
                (b'/', b'*') => {
                    let mark = self.clone();
                    self.at += 2;
                    loop {
                        if self.at >= self.text.len() {
                            *self = mark;
                            return false;
                        }
                        if self.byte(0) == b'*' && self.byte(1) == b'/' {
                            self.at += 2;
                            break;
                        }
                        self.step();
                    }
                }
                (b'#', _) if self.fresh_line => self.skip_line(),
                _ => break,
            }
        }
        true
    }

    /// The next token.
    pub fn next(&mut self) -> Token<'t> {
        if !self.skip_blanks() {
            let token = Token {
                kind: TokenKind::Bad("unterminated comment"),
                text: "/*",
                pos: self.pos(),
            };
            self.at = self.text.len();
            return token;
        }
        self.fresh_line = false;
        let (pos, start) = (self.pos(), self.at);
        let kind = self.scan();
        Token {
            kind,
            text: &self.text[start..self.at],
            pos,
        }
    }

    /// Reads one token. Always ends on a character boundary.
    fn scan(&mut self) -> TokenKind {
        let c = self.byte(0);
        match c {
            _ if self.at >= self.text.len() => TokenKind::End,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => self.ident(),
            b'%' if is_follow(self.byte(1)) => self.ident(),
            b'.' if is_follow(self.byte(1)) => self.dot(),
            b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b',' | b';' | b':' | b'+' | b'-' | b'*'
            | b'/' | b'%' | b'~' | b'^' | b'?' => {
                self.at += 1;
                TokenKind::Punct(c)
            }
            b'<' | b'>' | b'=' | b'!' | b'&' | b'|' | b'@' => {
                let pair = [c, self.byte(1)];
                if matches!(
                    &pair,
                    b"<<" | b">>" | b"<=" | b">=" | b"==" | b"!=" | b"&&" | b"||" | b"@@"
                ) {
                    self.at += 2;
                    TokenKind::Punct2(pair)
                } else {
                    self.at += 1;
                    TokenKind::Punct(c)
                }
            }
            _ => {
                self.at += 1;
                while !self.text.is_char_boundary(self.at) {
                    self.step();
                }
                TokenKind::Bad("unexpected character")
            }
        }
    }

    fn ident(&mut self) -> TokenKind {
        self.at += 1;
        while is_follow(self.byte(0)) {
            self.at += 1;
        }
        TokenKind::Ident
    }

    fn dot(&mut self) -> TokenKind {
        self.at += 1;
        loop {
            while is_follow(self.byte(0)) {
                self.at += 1;
            }
            if self.byte(0) == b':' && self.byte(1) == b':' && is_follow(self.byte(2)) {
                self.at += 2;
            } else {
                return TokenKind::Dot;
            }
        }
    }

    fn string(&mut self) -> TokenKind {
        self.at += 1;
        loop {
            match self.byte(0) {
                b'"' => {
                    self.at += 1;
                    return TokenKind::Str;
                }
                b'\n' => return TokenKind::Bad("unterminated string"),
                _ if self.at >= self.text.len() => return TokenKind::Bad("unterminated string"),
                _ => self.step(),
            }
        }
    }

    fn number(&mut self) -> TokenKind {
        let rest = &self.text[self.at..];
        let second = self.byte(1) | 0x20;
        if self.byte(0) == b'0' && matches!(second, b'f' | b'd') {
            let digits = if second == b'f' { 8 } else { 16 };
            let word = rest.bytes().skip(2).take_while(|c| is_follow(*c)).count();
            self.at += 2 + word;
            let Some(bits) = (word == digits)
                .then(|| u64::from_str_radix(&rest[2..2 + word], 16).ok())
                .flatten()
            else {
                return TokenKind::Bad("floating-point literal of the wrong length");
            };
            return if second == b'f' {
                TokenKind::F32(bits as u32)
            } else {
                TokenKind::F64(bits, false)
            };
        }
        if self.byte(0) == b'0' && matches!(second, b'x' | b'b') {
            let radix = if second == b'x' { 16 } else { 2 };
            self.at += 2;
            return self.integer(&rest[2..], radix);
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let after = rest.as_bytes().get(digits).copied().unwrap_or(0);
        let then = rest.as_bytes().get(digits + 1).copied().unwrap_or(0);
        let exponent = |at: usize| {
            let b = rest.as_bytes();
            let sign = usize::from(matches!(b.get(at + 1), Some(b'+' | b'-')));
            matches!(b.get(at), Some(b'e' | b'E'))
                && b.get(at + 1 + sign).is_some_and(u8::is_ascii_digit)
        };
        // `1.` and `1.5` are numbers, `1.b0` is not, and neither is `1..`.
        let number_goes_on = !then.is_ascii_alphabetic() || exponent(digits + 1);
        let point = after == b'.' && number_goes_on && then != b'.' && then != b'_';
        if point || exponent(digits) {
            let mut end = digits;
            if point {
                end += 1;
                end += rest
                    .bytes()
                    .skip(end)
                    .take_while(u8::is_ascii_digit)
                    .count();
            }
            if exponent(end) {
                end += 2;
                end += rest
                    .bytes()
                    .skip(end)
                    .take_while(u8::is_ascii_digit)
                    .count();
            }
            let glued = rest.bytes().skip(end).take_while(|c| is_follow(*c)).count();
            self.at += end + glued;
            return match rest[..end].parse::<f64>() {
                Ok(x) if glued == 0 => TokenKind::F64(x.to_bits(), true),
                _ => TokenKind::Bad("malformed number"),
            };
        }
        if self.byte(0) == b'0' && digits > 1 {
            self.at += 1;
            return self.integer(&rest[1..], 8);
        }
        self.integer(rest, 10)
    }

    /// An integer of this radix with an optional suffix `U`; `rest` is the text at the cursor.
    fn integer(&mut self, rest: &str, radix: u32) -> TokenKind {
        let word = rest.bytes().take_while(|c| is_follow(*c)).count();
        self.at += word;
        let word = &rest[..word];
        let (digits, unsigned) = match word.strip_suffix(['U', 'u']) {
            Some(digits) => (digits, true),
            None => (word, false),
        };
        match u64::from_str_radix(digits, radix) {
            Ok(value) => TokenKind::Int(value, unsigned),
            Err(e) if *e.kind() == std::num::IntErrorKind::PosOverflow => {
                TokenKind::Bad("integer does not fit in 64 bits")
            }
            Err(_) => TokenKind::Bad("malformed number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| Some(lexer.next().kind))
            .take_while(|k| *k != TokenKind::End)
            .collect()
    }
    fn texts(text: &str) -> Vec<&str> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| Some(lexer.next()))
            .take_while(|t| t.kind != TokenKind::End)
            .map(|t| t.text)
            .collect()
    }

    #[test]
    fn words() {
        assert_eq!(
            texts("ld.shared::cluster.v4.u32 {%r1,_}, [$a+8];"),
            [
                "ld",
                ".shared::cluster",
                ".v4",
                ".u32",
                "{",
                "%r1",
                ",",
                "_",
                "}",
                ",",
                "[",
                "$a",
                "+",
                "8",
                "]",
                ";"
            ]
        );
        assert_eq!(
            texts("tex.2d %tid.x%r1|%p _|q"),
            ["tex", ".2d", "%tid", ".x", "%r1", "|", "%p", "_", "|", "q"]
        );
        assert_eq!(
            texts("a // b\n/* c\n */ d\n# 1 \"x\"\ne #"),
            ["a", "d", "e", "#"]
        );
    }

    #[test]
    fn numbers() {
        assert_eq!(
            kinds("0 17 017 0x1f 0b101 4U 18446744073709551615"),
            [
                TokenKind::Int(0, false),
                TokenKind::Int(17, false),
                TokenKind::Int(15, false),
                TokenKind::Int(31, false),
                TokenKind::Int(5, false),
                TokenKind::Int(4, true),
                TokenKind::Int(u64::MAX, false)
            ]
        );
        assert_eq!(
            kinds("0f3F800000 0D3ff0000000000000 1.5 2. 1e3 1.e-1 3.25E+2"),
            [
                TokenKind::F32(0x3f80_0000),
                TokenKind::F64(1f64.to_bits(), false),
                TokenKind::F64(1.5f64.to_bits(), true),
                TokenKind::F64(2f64.to_bits(), true),
                TokenKind::F64(1000f64.to_bits(), true),
                TokenKind::F64(0.1f64.to_bits(), true),
                TokenKind::F64(325f64.to_bits(), true)
            ]
        );
        for bad in [
            "0f3F80",
            "0x",
            "09",
            "18446744073709551616",
            "12ab",
            "0b2",
            "1e5x",
            "\"abc",
            "/* abc",
            "\u{e9}",
            "0d1é",
        ] {
            assert!(
                kinds(bad).iter().any(|k| matches!(k, TokenKind::Bad(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn positions() {
        let mut lexer = Lexer::new("/* é */ a\n  \"é\" b");
        let at = |t: Token| (t.pos.line, t.pos.column);
        assert_eq!(at(lexer.next()), (1, 9));
        assert_eq!(at(lexer.next()), (2, 3));
        assert_eq!(at(lexer.next()), (2, 7));
        assert_eq!(at(lexer.next()), (2, 8));
    }
}
