//! The token cursor every rule of the grammar reads from, and the errors they raise.

mod check;
mod constants;
mod directives;
mod functions;
mod initialisers;
mod instructions;
mod lexer;
pub(crate) mod modifiers;
pub(crate) mod opcode_lookup;
mod operand_shapes;
mod operands;
mod scopes;
mod variables;

use crate::error::{Error, ErrorKind, shown};
use crate::ir::{FuncId, Module, Pos, SourceLoc};
use crate::parse::lexer::{Lexer, Token, TokenKind};
use crate::parse::scopes::{FunctionScopes, Names};

/// How deep expressions, braces and scopes may nest.
const DEEPEST: u32 = 100;

/// The state of parsing one module. The rules are spread over the files of this crate, one idea each.
pub(crate) struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The token to be read next.
    pub tok: Token<'t>,
    /// The one after it, if somebody had to look.
    ahead: Option<Token<'t>>,
    /// What has been read so far.
    pub module: Module,
    /// The names of module scope.
    pub names: Names<'t>,
    /// The names and the body of the function being read.
    pub function: Option<FunctionScopes<'t>>,
    /// The latest `.loc` of the function being read.
    pub loc: Option<SourceLoc>,
    /// The function being read.
    pub reading: Option<FuncId>,
    /// For each function whether its body has been seen.
    pub defined: Vec<bool>,
    /// The modifiers of the instruction being read; kept for its memory.
    pub words: Vec<Token<'t>>,
    /// Where the operands of the instruction being read begin.
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
            words: Vec::new(),
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

    /// Takes this character or fails: `context` completes "expected ';' ...".
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

    /// Takes the rest of a line away from the grammar, the next token included.
    pub fn skip_line(&mut self) {
        let line = self.tok.pos.line;
        while self.tok.pos.line == line && self.tok.kind != TokenKind::End {
            if self.ahead.is_none() {
                self.lexer.skip_line();
            }
            self.bump();
        }
    }

    /// The next token is not what the grammar wants here.
    pub fn expected(&self, what: &str) -> Error {
        let token = self.tok;
        match token.kind {
            TokenKind::Bad(why) => self.error(token, format!("{why} '{}'", shown(token.text))),
            TokenKind::End => {
                self.error(token, format!("expected {what}, found the end of the text"))
            }
            _ => self.error(
                token,
                format!("expected {what}, found '{}'", shown(token.text)),
            ),
        }
    }

    /// An error at a token; the message has to name it.
    pub fn error(&self, token: Token<'_>, message: String) -> Error {
        self.error_of(ErrorKind::Invalid, token.pos, token.text, message)
    }

    /// An error of any kind.
    pub fn error_of(&self, kind: ErrorKind, pos: Pos, token: &str, message: String) -> Error {
        Error {
            kind,
            pos,
            token: shown(token),
            message,
        }
    }

    /// Runs a rule that can contain itself, unless that has gone too deep already.
    pub fn nested<T>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth >= DEEPEST {
            return Err(self.error(
                self.tok,
                format!("nested too deeply at '{}'", shown(self.tok.text)),
            ));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }
}
