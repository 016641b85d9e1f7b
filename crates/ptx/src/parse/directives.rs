//! Directives of module scope and of bodies (PTX ISA, "Directives").

use crate::ErrorKind;
use crate::error::{Error, shortened};
use crate::ir::*;
use crate::parse::Parser;
use crate::parse::lexer::TokenKind;
use crate::parse::scopes::Symbol;

/// Architectures of `.target`, without `sm_`, and whether they also exist with the suffixes `a` and `f`.
const ARCHITECTURES: &[(u32, bool)] = &[
    (10, false),
    (11, false),
    (12, false),
    (13, false),
    (20, false),
    (21, false),
    (30, false),
    (32, false),
    (35, false),
    (37, false),
    (50, false),
    (52, false),
    (53, false),
    (60, false),
    (61, false),
    (62, false),
    (70, false),
    (72, false),
    (75, false),
    (80, false),
    (86, false),
    (87, false),
    (88, false),
    (89, false),
    (90, true),
    (100, true),
    (101, true),
    (103, true),
    (107, true),
    (110, true),
    (120, true),
    (121, true),
];

/// Whether a word names an architecture of `.target`, such as `sm_89` or `sm_90a`.
pub fn known_architecture(word: &str) -> bool {
    let Some(number) = word.strip_prefix("sm_") else {
        return false;
    };
    let plain = number.trim_end_matches(['a', 'f']);
    let suffixed = number.len() == plain.len() + 1;
    plain.parse().is_ok_and(|n: u32| {
        ARCHITECTURES.iter().any(|(known, suffixes)| {
            *known == n && (number.len() == plain.len() || suffixed && *suffixes)
        })
    })
}

impl<'t> Parser<'t> {
    /// A whole module.
    pub fn module(mut self) -> Result<Module, Error> {
        self.version()?;
        self.target()?;
        // The default without a directive: CUDA has no 32-bit devices.
        self.module.address_size = 64;
        while self.tok.kind != TokenKind::End {
            match self.tok.kind {
                TokenKind::Dot => self.module_directive()?,
                TokenKind::Punct2([b'@', b'@']) => self.skip_line(),
                TokenKind::Punct(b';') => {
                    self.bump();
                }
                _ => return Err(self.expected("a directive")),
            }
        }
        Ok(self.module)
    }

    fn version(&mut self) -> Result<(), Error> {
        if !self.eat_word("version") {
            return Err(self.expected("'.version' at the beginning"));
        }
        let token = self.tok;
        // The lexer reads "9.5" as a floating-point number; its digits are the version.
        let (major, minor) = token.text.split_once('.').unwrap_or((token.text, ""));
        let (TokenKind::F64(_, true), Ok(major), Ok(minor)) =
            (token.kind, major.parse(), minor.parse())
        else {
            return Err(self.expected("a version such as 8.0"));
        };
        if (major, minor) > crate::NEWEST_VERSION {
            let (a, b) = crate::NEWEST_VERSION;
            let message = format!(
                "PTX version '{}' is newer than {a}.{b}, the newest that is supported",
                shortened(token.text)
            );
            return Err(self.error_of(
                ErrorKind::UnsupportedVersion,
                token.pos,
                token.text,
                message,
            ));
        }
        self.bump();
        self.module.version = (major, minor);
        Ok(())
    }

    fn target(&mut self) -> Result<(), Error> {
        if !self.eat_word("target") {
            return Err(self.expected("'.target' after '.version'"));
        }
        loop {
            let word = self.ident("an architecture such as sm_80")?;
            let first = self.module.target.is_empty();
            let option = matches!(
                word.text,
                "debug" | "texmode_unified" | "texmode_independent" | "map_f64_to_f32"
            );
            if first && !known_architecture(word.text) {
                let message = format!("unknown target '{}'", shortened(word.text));
                return Err(self.error_of(
                    ErrorKind::UnsupportedTarget,
                    word.pos,
                    word.text,
                    message,
                ));
            }
            if !first && !option && !known_architecture(word.text) {
                return Err(self.error(
                    word,
                    format!("unknown target option '{}'", shortened(word.text)),
                ));
            }
            self.module.target.push(word.text.to_string());
            if !self.eat(b',') {
                return Ok(());
            }
        }
    }

    fn module_directive(&mut self) -> Result<(), Error> {
        let mut linkage = Linkage::None;
        loop {
            let next = match self.tok.word() {
                "extern" => Linkage::Extern,
                "visible" => Linkage::Visible,
                "weak" => Linkage::Weak,
                "common" => Linkage::Common,
                _ => break,
            };
            let token = self.bump();
            if linkage != Linkage::None {
                return Err(self.error(
                    token,
                    format!("a second linking directive '{}'", token.text),
                ));
            }
            linkage = next;
        }
        match self.tok.word() {
            "entry" => {
                self.bump();
                self.function(linkage, true)
            }
            "func" => {
                self.bump();
                self.function(linkage, false)
            }
            "address_size" => {
                self.bump();
                let token = self.tok;
                self.module.address_size = self.small("32 or 64")?;
                if matches!(self.module.address_size, 32 | 64) {
                    return Ok(());
                }
                Err(self.error(
                    token,
                    format!(
                        "expected an address size of 32 or 64, found '{}'",
                        shortened(token.text)
                    ),
                ))
            }
            "alias" => self.alias(),
            "pragma" => {
                self.bump();
                self.pragma(&mut Vec::new())
            }
            "file" | "loc" | "section" => self.debug_directive(),
            "version" | "target" => {
                Err(self.error(self.tok, format!("a second '{}'", self.tok.text)))
            }
            _ if self.at_space() => self.declaration(linkage),
            _ => Err(self.error(
                self.tok,
                format!("unknown directive '{}'", shortened(self.tok.text)),
            )),
        }
    }

    fn at_space(&self) -> bool {
        matches!(
            self.tok.word(),
            "const" | "global" | "local" | "shared" | "shared::cta" | "tex" | "param" | "reg"
        )
    }

    /// A directive inside a body.
    pub fn body_directive(&mut self) -> Result<(), Error> {
        match self.tok.word() {
            "loc" | "file" | "section" => self.debug_directive(),
            "pragma" => {
                self.bump();
                let mut pragmas = Vec::new();
                self.pragma(&mut pragmas)?;
                if let Some(id) = self.reading {
                    self.module.functions[id.0 as usize]
                        .directives
                        .pragmas
                        .append(&mut pragmas);
                }
                Ok(())
            }
            "extern" => {
                self.bump();
                self.declaration(Linkage::Extern)
            }
            _ if self.at_space() => self.declaration(Linkage::None),
            _ => Err(self.error(
                self.tok,
                format!("unknown directive '{}'", shortened(self.tok.text)),
            )),
        }
    }

    fn debug_directive(&mut self) -> Result<(), Error> {
        match self.bump().word() {
            "file" => {
                let number = self.small("a file number")?;
                if self.tok.kind != TokenKind::Str {
                    return Err(self.expected("a file name"));
                }
                let path = self.bump().text.trim_matches('"').to_string();
                // Time stamp and size.
                while self.eat(b',') {
                    self.integer("a number")?;
                }
                self.module.files.push((number, path));
            }
            "loc" => {
                let file = self.small("a file number")?;
                let line = self.small("a line number")?;
                let column = self.small("a column number")?;
                self.loc = Some(SourceLoc { file, line, column });
                while self.at(b',') {
                    self.bump();
                    let word = self.ident("'function_name' or 'inlined_at'")?;
                    match word.text {
                        "function_name" => {
                            self.ident("a label")?;
                            if self.eat(b'+') {
                                self.integer("an offset")?;
                            }
                        }
                        "inlined_at" => {
                            for what in ["a file number", "a line number", "a column number"] {
                                self.small(what)?;
                            }
                        }
                        _ => {
                            return Err(self.error(
                                word,
                                format!("unknown attribute '{}' of '.loc'", shortened(word.text)),
                            ));
                        }
                    }
                }
            }
            // DWARF is not used.
            _ => {
                if !matches!(
                    self.tok.kind,
                    TokenKind::Dot | TokenKind::Ident | TokenKind::Str
                ) {
                    return Err(self.expected("a section's name"));
                }
                self.bump();
                self.expect(b'{', "before the section's contents")?;
                let mut depth = 1u32;
                while depth > 0 {
                    match self.tok.kind {
                        TokenKind::Punct(b'{') => depth += 1,
                        TokenKind::Punct(b'}') => depth -= 1,
                        TokenKind::End | TokenKind::Bad(_) => {
                            return Err(self.expected("'}' after the section's contents"));
                        }
                        _ => {}
                    }
                    self.bump();
                }
            }
        }
        Ok(())
    }

    /// `.alias name, function;`
    fn alias(&mut self) -> Result<(), Error> {
        self.bump();
        let mut pair = [FuncId(0); 2];
        for (i, id) in pair.iter_mut().enumerate() {
            if i > 0 {
                self.expect(b',', "after the alias")?;
            }
            let name = self.ident("a function")?;
            *id = match self.names.get(name.text) {
                Some(Symbol::Func(f)) => *f,
                _ => {
                    return Err(self.error(
                        name,
                        format!("'{}' is not a function", shortened(name.text)),
                    ));
                }
            };
        }
        self.expect(b';', "after the alias")?;
        self.module.aliases.push((pair[0], pair[1]));
        Ok(())
    }
}
