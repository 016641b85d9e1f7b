//! The parser. This file holds the token cursor that every rule of the grammar uses, and the errors that they raise; the
//! other files hold the rules.

mod check;
mod constants;
mod directives;
mod functions;
mod initializers;
mod instructions;
mod lexer;
mod operand_requirement;
mod operands;
mod scopes;
mod variables;

pub use directives::known_architecture;

use crate::error::{Error, ErrorKind, shortened};
use std::collections::HashMap;
use std::rc::Rc;

use crate::ir::{FuncId, Module, Operand, Pos, SourceLoc};
use crate::isa::Recognized;
use crate::parse::lexer::{Lexer, Token, TokenKind};
use crate::parse::scopes::{FunctionScopes, Names};

/// Maximum nesting of expressions, braces and scopes.
const DEEPEST: u32 = 100;

/// State of parsing one module.
pub(crate) struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The next token.
    pub tok: Token<'t>,
    /// The token after it, if it has been read.
    ahead: Option<Token<'t>>,
    /// The module so far.
    pub module: Module,
    /// Names of module scope.
    pub names: Names<'t>,
    /// Names and body of the current function.
    pub function: Option<FunctionScopes<'t>>,
    /// Last `.loc` of the current function.
    pub loc: Option<SourceLoc>,
    /// The current function.
    pub reading: Option<FuncId>,
    /// For each function, whether it has a body.
    pub defined: Vec<bool>,
    /// The instructions that have been recognized, by their text.
    pub recognized: HashMap<&'t str, Rc<Recognized>>,
    /// Modifiers of the current instruction. The buffer is reused.
    pub words: Vec<Token<'t>>,
    /// Operands of the current instruction. The buffer is reused.
    pub operand_buffer: Vec<Operand>,
    /// First tokens of the operands of the current instruction.
    pub operand_tokens: Vec<Token<'t>>,
    depth: u32,
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str) -> Self {
        let mut lexer = Lexer::new(text);
        let tok = lexer.next();
        Parser {
            lexer,
            tok,
            ahead: None,
            module: Module::default(),
            names: Names::default(),
            function: None,
            loc: None,
            reading: None,
            defined: Vec::new(),
            recognized: HashMap::new(),
            words: Vec::new(),
            operand_buffer: Vec::new(),
            operand_tokens: Vec::new(),
            depth: 0,
        }
    }

    /// Takes the next token.
    pub fn bump(&mut self) -> Token<'t> {
        let next = match self.ahead.take() {
            Some(token) => token,
            None => self.lexer.next(),
        };
        std::mem::replace(&mut self.tok, next)
    }

    /// The token after the next one.
    pub fn peek(&mut self) -> Token<'t> {
        let lexer = &mut self.lexer;
        *self.ahead.get_or_insert_with(|| lexer.next())
    }

    /// Whether the next token is this character.
    pub fn at(&self, c: u8) -> bool {
        self.tok.is(c)
    }

    /// Takes the next token if it is this character.
    pub fn eat(&mut self, c: u8) -> bool {
        let there = self.at(c);
        if there {
            self.bump();
        }
        there
    }

    /// Whether the next token is the directive or modifier `.word`.
    pub fn at_word(&self, word: &str) -> bool {
        self.tok.kind == TokenKind::Dot && self.tok.word() == word
    }

    /// Takes the next token if it is `.word`.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let there = self.at_word(word);
        if there {
            self.bump();
        }
        there
    }

    /// Takes this character or fails. `context` completes the message "expected ';' ...".
    pub fn expect(&mut self, c: u8, context: &str) -> Result<Token<'t>, Error> {
        if self.at(c) {
            return Ok(self.bump());
        }
        let space = if context.is_empty() { "" } else { " " };
        Err(self.expected(&format!("'{}'{space}{context}", char::from(c))))
    }

    /// Takes a name or fails.
    pub fn ident(&mut self, what: &str) -> Result<Token<'t>, Error> {
        if self.tok.kind == TokenKind::Ident {
            Ok(self.bump())
        } else {
            Err(self.expected(what))
        }
    }

    /// Skips the next token and the rest of its line.
    pub fn skip_line(&mut self) {
        let line = self.tok.pos.line;
        while self.tok.pos.line == line && self.tok.kind != TokenKind::End {
            if self.ahead.is_none() {
                self.lexer.skip_line();
            }
            self.bump();
        }
    }

    /// The error that the next token is not `what`.
    pub fn expected(&self, what: &str) -> Error {
        let token = self.tok;
        match token.kind {
            TokenKind::Bad(why) => self.error(token, format!("{why} '{}'", shortened(token.text))),
            TokenKind::End => {
                self.error(token, format!("expected {what}, found the end of the text"))
            }
            _ => self.error(
                token,
                format!("expected {what}, found '{}'", shortened(token.text)),
            ),
        }
    }

    /// An error at a token, which the message must name.
    pub fn error(&self, token: Token<'_>, message: String) -> Error {
        self.error_of(ErrorKind::Invalid, token.pos, token.text, message)
    }

    /// An error of any kind.
    pub fn error_of(&self, kind: ErrorKind, pos: Pos, token: &str, message: String) -> Error {
        Error {
            kind,
            pos,
            token: shortened(token),
            message,
        }
    }

    /// Runs a recursive rule, unless the nesting is too deep.
    pub fn nested<T>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth >= DEEPEST {
            return Err(self.error(
                self.tok,
                format!("nested too deeply at '{}'", shortened(self.tok.text)),
            ));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }
}
