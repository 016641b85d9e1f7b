//! Instructions and the other statements of a function's body.

use crate::error::{Error, shortened};
use crate::ir::*;
use crate::isa::{Recognized, Unrecognized, recognize};
use crate::parse::Parser;
use crate::parse::lexer::{Token, TokenKind};
use crate::parse::scopes::{FunctionScopes, Symbol};
use std::mem::take;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum nesting of `{}` in a body.
const DEEPEST: usize = 200;

impl<'t> Parser<'t> {
    /// The scopes of the function that is being parsed.
    pub fn scopes(&mut self) -> &mut FunctionScopes<'t> {
        self.function.get_or_insert_default()
    }

    /// `{ statements }` of a function whose parameters have been declared.
    pub fn body(&mut self) -> Result<(), Error> {
        self.expect(b'{', "before the function's body")?;
        self.scopes().open();
        let mut depth = 0;
        loop {
            let token = self.tok;
            match token.kind {
                TokenKind::Punct(b'{') if depth == DEEPEST => {
                    return Err(self.error(token, "nested too deeply at '{'".to_string()));
                }
                TokenKind::Punct(b'{') => {
                    self.bump();
                    self.scopes().open();
                    depth += 1;
                }
                TokenKind::Punct(b'}') => {
                    self.bump();
                    self.scopes().close();
                    if depth == 0 {
                        return Ok(());
                    }
                    depth -= 1;
                }
                TokenKind::Punct(b';') => {
                    self.bump();
                }
                TokenKind::Punct2([b'@', b'@']) => self.skip_line(),
                TokenKind::Dot => self.body_directive()?,
                TokenKind::Ident if self.peek().is(b':') => self.labelled()?,
                TokenKind::Ident | TokenKind::Punct(b'@') => self.instruction()?,
                _ => return Err(self.expected("an instruction, a directive or '}'")),
            }
        }
    }

    /// `name:`, alone or before a list of targets or a prototype.
    fn labelled(&mut self) -> Result<(), Error> {
        let name = self.bump();
        self.bump();
        let symbol = match self.tok.word() {
            "callprototype" => {
                self.bump();
                let prototype = self.prototype(name)?;
                self.module.prototypes.push(prototype);
                Symbol::Proto(ProtoId(self.module.prototypes.len() as u32 - 1))
            }
            "branchtargets" => {
                self.bump();
                let mut targets = Vec::new();
                loop {
                    let label = self.ident("a label")?;
                    targets.push(self.scopes().refer_label(label.text, label.pos));
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b';', "after label")?;
                let lists = &mut self.scopes().body.branch_targets;
                lists.push((name.text.to_string(), targets));
                Symbol::BranchTargets(lists.len() as u32 - 1)
            }
            "calltargets" => {
                self.bump();
                let mut targets = Vec::new();
                loop {
                    let function = self.ident("a function")?;
                    match self.lookup(function)? {
                        Symbol::Func(f) => targets.push(f),
                        _ => {
                            return Err(self.error(
                                function,
                                format!("'{}' is not a function", shortened(function.text)),
                            ));
                        }
                    }
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b';', "after function")?;
                let lists = &mut self.scopes().body.call_targets;
                lists.push((name.text.to_string(), targets));
                Symbol::CallTargets(lists.len() as u32 - 1)
            }
            _ => {
                if !self.scopes().define_label(name.text) {
                    return Err(self.error(
                        name,
                        format!("the label '{}' is defined twice", shortened(name.text)),
                    ));
                }
                return Ok(());
            }
        };
        self.declare(name, symbol)
    }

    /// Declares a name in the innermost scope.
    pub fn declare(&mut self, name: Token<'t>, symbol: Symbol) -> Result<(), Error> {
        if self.scopes().declare(name.text, symbol) {
            return Ok(());
        }
        Err(self.error(
            name,
            format!("'{}' is declared twice", shortened(name.text)),
        ))
    }

    /// `@!p`.
    fn guard(&mut self) -> Result<Option<(RegId, bool)>, Error> {
        if !self.eat(b'@') {
            return Ok(None);
        }
        let negated = self.eat(b'!');
        let name = self.ident("a predicate register")?;
        if let Symbol::Reg(r) = self.lookup(name)? {
            let reg = &self.scopes().body.regs[r.0 as usize];
            if reg.ty == Type::Pred && reg.vector == 1 {
                return Ok(Some((r, negated)));
            }
        }
        Err(self.error(
            name,
            format!(
                "expected a predicate register, found '{}'",
                shortened(name.text)
            ),
        ))
    }

    fn instruction(&mut self) -> Result<(), Error> {
        let guard = self.guard()?;
        let first = self.ident("an instruction")?;
        let mut words = take(&mut self.words);
        words.clear();
        while self.tok.kind == TokenKind::Dot {
            words.push(self.bump());
        }
        let result = self.instruction_of(guard, first, &words);
        self.words = words;
        result
    }

    fn instruction_of(
        &mut self,
        guard: Option<(RegId, bool)>,
        first: Token<'t>,
        words: &[Token<'t>],
    ) -> Result<(), Error> {
        let recognized = self.recognized(first, words)?;
        let op = recognized.op;
        let mut mods = recognized.mods.clone();
        let operands = match op {
            Op::Call => self.call()?,
            Op::Bra => vec![self.label()?],
            Op::BrxIdx => self.branch_table()?,
            _ => self.operands(&mut mods)?,
        };
        if !self.at(b';') {
            let after = if operands.is_empty() {
                format!("after '{op}'")
            } else {
                "after operand".to_string()
            };
            return Err(self.expected(&format!("';' {after}")));
        }
        let mut instr = Instr {
            guard,
            op,
            form: recognized.forms[0],
            mods,
            types: recognized.types.clone(),
            operands,
            pos: first.pos,
            loc: self.loc,
        };
        self.check(&mut instr, &recognized)?;
        self.bump();
        self.scopes().body.instrs.push(instr);
        Ok(())
    }

    /// The opcode and the modifiers of an instruction.
    fn recognized(
        &mut self,
        first: Token<'t>,
        words: &[Token<'t>],
    ) -> Result<Rc<Recognized>, Error> {
        let text = self.lexer.between(first, *words.last().unwrap_or(&first));
        if let Some(found) = self.recognized.get(text) {
            return Ok(found.clone());
        }
        let names: Vec<&str> = words.iter().map(Token::word).collect();
        let found = match recognize(first.text, &names) {
            Ok(found) => Rc::new(found),
            Err(Unrecognized::Opcode) => {
                let message = format!("unknown instruction '{}'", shortened(first.text));
                return Err(self.error(first, message));
            }
            Err(Unrecognized::Modifier(at, message)) => return Err(self.error(words[at], message)),
            Err(Unrecognized::Incomplete(message)) => return Err(self.error(first, message)),
        };
        self.recognized.insert(text, found.clone());
        Ok(found)
    }

    /// Operands up to the semicolon.
    fn operands(&mut self, mods: &mut Arc<Mods>) -> Result<Vec<Operand>, Error> {
        self.operand_tokens.clear();
        if self.at(b';') {
            return Ok(Vec::new());
        }
        // Most instructions have two to four; a list of its exact length takes less memory.
        let mut operands = take(&mut self.operand_buffer);
        operands.clear();
        loop {
            self.operand_tokens.push(self.tok);
            operands.push(self.operand()?);
            if self.eat_word("unified") {
                Arc::make_mut(mods).other.push(Word::Unified);
            }
            if !self.eat(b',') {
                let list = Vec::from_iter(operands.drain(..));
                self.operand_buffer = operands;
                return Ok(list);
            }
        }
    }

    fn label(&mut self) -> Result<Operand, Error> {
        let label = self.ident("a label")?;
        Ok(Operand::Label(
            self.scopes().refer_label(label.text, label.pos),
        ))
    }

    /// `brx.idx index, list`.
    fn branch_table(&mut self) -> Result<Vec<Operand>, Error> {
        let index = self.operand()?;
        self.expect(b',', "after operand")?;
        let name = self.ident("the label of a '.branchtargets'")?;
        match self.lookup(name)? {
            Symbol::BranchTargets(i) => Ok(vec![index, Operand::Targets(i)]),
            _ => Err(self.error(
                name,
                format!(
                    "'{}' is not the label of a '.branchtargets'",
                    shortened(name.text)
                ),
            )),
        }
    }

    /// `call (returns), target, (arguments), prototype`, every list optional; see [`Instr::operands`].
    fn call(&mut self) -> Result<Vec<Operand>, Error> {
        let mut returns = Vec::new();
        if self.at(b'(') {
            returns = self.arguments()?;
            self.expect(b',', "after the return list")?;
        }
        let name = self.ident("a function")?;
        let target = match self.lookup(name)? {
            Symbol::Func(f) => Operand::Func(f),
            Symbol::Reg(r) => Operand::Reg(r),
            _ => {
                return Err(
                    self.error(name, format!("'{}' cannot be called", shortened(name.text)))
                );
            }
        };
        let mut arguments = Vec::new();
        let mut list = None;
        if self.eat(b',') {
            let bare = !self.at(b'(');
            if !bare {
                arguments = self.arguments()?;
            }
            if bare || self.eat(b',') {
                let token = self.ident("a prototype or a list of targets")?;
                list = Some(match self.lookup(token)? {
                    Symbol::Proto(p) => Operand::Proto(p),
                    Symbol::CallTargets(i) => Operand::Targets(i),
                    Symbol::Var(v) => Operand::Var(v, 0),
                    _ => {
                        let name = shortened(token.text);
                        return Err(self.error(
                            token,
                            format!("'{name}' is neither a prototype nor a list of targets"),
                        ));
                    }
                });
            }
        }
        let counts = match (&target, &list) {
            (Operand::Func(f), _) => {
                let f = &self.module.functions[f.0 as usize];
                if f.is_entry {
                    return Err(self.error(
                        name,
                        format!("the kernel '{}' cannot be called", shortened(name.text)),
                    ));
                }
                Some((&f.returns, &f.params))
            }
            (_, Some(Operand::Proto(p))) => {
                let p = &self.module.prototypes[p.0 as usize];
                Some((&p.returns, &p.params))
            }
            (_, None) => {
                return Err(self.error(
                    name,
                    format!(
                        "the call through '{}' needs a prototype",
                        shortened(name.text)
                    ),
                ));
            }
            _ => None,
        };
        if let Some((wanted_returns, wanted)) = counts {
            let variadic = wanted.last().is_some_and(Variable::is_unsized)
                && arguments.len() + 1 >= wanted.len();
            if wanted_returns.len() != returns.len()
                || (wanted.len() != arguments.len() && !variadic)
            {
                let message = format!(
                    "'{}' takes {} arguments and returns {}, the call has {} and {}",
                    shortened(name.text),
                    wanted.len(),
                    wanted_returns.len(),
                    arguments.len(),
                    returns.len()
                );
                return Err(self.error(name, message));
            }
        }
        let mut operands = vec![Operand::Args(returns), target, Operand::Args(arguments)];
        operands.extend(list);
        Ok(operands)
    }

    /// `(a, b)`.
    fn arguments(&mut self) -> Result<Vec<Operand>, Error> {
        self.expect(b'(', "")?;
        let mut list = Vec::new();
        while !self.at(b')') {
            list.push(self.operand()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')', "after the list of a call")?;
        Ok(list)
    }
}
