//! Kernels, functions and prototypes (PTX ISA, "Kernel and Function Directives", "Performance-Tuning Directives").

use crate::error::{Error, shortened};
use crate::ir::*;
use crate::parse::Parser;
use crate::parse::lexer::{Token, TokenKind};
use crate::parse::scopes::{FunctionScopes, Symbol};

impl<'t> Parser<'t> {
    /// The function whose body is being parsed.
    pub fn current(&self) -> Option<&Function> {
        self.module.functions.get(self.reading?.0 as usize)
    }

    /// The rest of a function after `.entry` or `.func`.
    pub fn function(&mut self, linkage: Linkage, is_entry: bool) -> Result<(), Error> {
        if self.at_word("attribute") {
            self.attribute()?;
        }
        let returns = if !is_entry && self.at(b'(') {
            self.parameters()?
        } else {
            Vec::new()
        };
        let name = self.ident(if is_entry {
            "the kernel's name"
        } else {
            "the function's name"
        })?;
        let params = if self.at(b'(') {
            self.parameters()?
        } else {
            Vec::new()
        };
        let mut function = Function {
            name: name.text.to_string(),
            is_entry,
            linkage,
            noreturn: false,
            params: params.iter().map(|(_, v)| v.clone()).collect(),
            returns: returns.iter().map(|(_, v)| v.clone()).collect(),
            directives: Directives::default(),
            body: None,
            pos: name.pos,
        };
        self.tuning(&mut function)?;
        let declaration = self.eat(b';');
        let id = self.enter(name, function, !declaration)?;
        if declaration {
            return Ok(());
        }
        self.loc = None;
        self.reading = Some(id);
        let mut scopes = FunctionScopes::default();
        scopes.open();
        self.function = Some(scopes);
        // Returns come first; see `Function::params`.
        for (i, (name, var)) in returns.iter().enumerate() {
            self.declare_parameter(name, var, VarId::Return(i as u32))?;
        }
        for (i, (name, var)) in params.iter().enumerate() {
            self.declare_parameter(name, var, VarId::Param(i as u32))?;
        }
        self.body()?;
        let Some(mut scopes) = self.function.take() else {
            return Ok(());
        };
        if let Some((label, pos)) = scopes.undefined() {
            let message = format!("the label '{}' is not defined", shortened(label));
            return Err(self.error_of(crate::ErrorKind::Invalid, pos, label, message));
        }
        scopes.close();
        self.loc = None;
        self.reading = None;
        let mut body = std::mem::take(&mut scopes.body);
        let resolve = |label: &mut LabelId| *label = scopes.resolved(*label).unwrap_or(*label);
        for instr in &mut body.instrs {
            if let Some(Operand::Label(label)) = instr.operands.first_mut() {
                resolve(label);
            }
        }
        body.branch_targets
            .iter_mut()
            .flat_map(|(_, list)| list)
            .for_each(resolve);
        self.module.functions[id.0 as usize].body = Some(body);
        Ok(())
    }

    fn declare_parameter(&mut self, name: &'t str, var: &Variable, id: VarId) -> Result<(), Error> {
        if name == "_" {
            return Ok(());
        }
        let fresh = if var.space == Space::Reg {
            self.scopes().declare_reg(name, var.ty, var.vector)
        } else {
            self.scopes().declare(name, Symbol::Var(id))
        };
        if fresh {
            return Ok(());
        }
        let message = format!("the parameter '{}' is declared twice", shortened(name));
        Err(self.error_of(crate::ErrorKind::Invalid, var.pos, name, message))
    }

    /// Adds a function to the module, or completes its earlier declaration.
    fn enter(
        &mut self,
        name: Token<'t>,
        function: Function,
        defined: bool,
    ) -> Result<FuncId, Error> {
        let old = match self.names.get(name.text) {
            None => {
                let id = FuncId(self.module.functions.len() as u32);
                self.module.functions.push(function);
                self.defined.push(defined);
                self.names.insert(name.text, Symbol::Func(id));
                return Ok(id);
            }
            Some(Symbol::Func(id)) => *id,
            Some(_) => {
                return Err(self.error(
                    name,
                    format!("'{}' is declared twice", shortened(name.text)),
                ));
            }
        };
        let was = &mut self.module.functions[old.0 as usize];
        if was.is_entry != function.is_entry
            || was.params.len() != function.params.len()
            || was.returns.len() != function.returns.len()
        {
            return Err(self.error(
                name,
                format!("'{}' differs from its declaration", shortened(name.text)),
            ));
        }
        let noreturn = was.noreturn || function.noreturn;
        if defined && self.defined[old.0 as usize] {
            return Err(self.error(name, format!("'{}' is defined twice", shortened(name.text))));
        }
        if defined {
            *was = function;
            self.defined[old.0 as usize] = true;
        }
        self.module.functions[old.0 as usize].noreturn = noreturn;
        Ok(old)
    }

    /// The directives between a function's parameters and its body.
    fn tuning(&mut self, function: &mut Function) -> Result<(), Error> {
        while self.tok.kind == TokenKind::Dot {
            let token = self.bump();
            let d = &mut function.directives;
            match token.word() {
                "noreturn" => function.noreturn = true,
                "maxntid" => d.max_ntid = Some(self.triple(|p| p.positive(token))?),
                "reqntid" => d.req_ntid = Some(self.triple(|p| p.positive(token))?),
                "reqnctapercluster" => {
                    d.req_ncta_per_cluster = Some(self.triple(|p| p.small("a size"))?);
                }
                "minnctapersm" => d.min_ncta_per_sm = Some(self.positive(token)?),
                "maxnreg" => d.max_nreg = Some(self.positive(token)?),
                "maxclusterrank" => d.max_cluster_rank = Some(self.small("a cluster size")?),
                "explicitcluster" => d.explicit_cluster = true,
                "pragma" => self.pragma(&mut d.pragmas)?,
                "blocksareclusters" => d.pragmas.push("blocksareclusters".to_string()),
                word @ ("abi_preserve" | "abi_preserve_control") => {
                    let n = self.small("a number")?;
                    d.pragmas.push(format!("{word} {n}"));
                }
                word @ "maxnctapersm" => {
                    let n = self.positive(token)?;
                    d.pragmas.push(format!("{word} {n}"));
                }
                _ => {
                    return Err(self.error(
                        token,
                        format!(
                            "unknown directive '{}' before a function's body",
                            shortened(token.text)
                        ),
                    ));
                }
            }
            let d = &function.directives;
            for (one, other, both) in [
                (
                    ".maxntid",
                    ".reqntid",
                    d.max_ntid.is_some() && d.req_ntid.is_some(),
                ),
                (
                    ".maxclusterrank",
                    ".reqnctapercluster",
                    d.max_cluster_rank.is_some() && d.req_ncta_per_cluster.is_some(),
                ),
            ] {
                if both {
                    let message = format!(
                        "'{}' in a function with both '{one}' and '{other}': one of them is allowed",
                        shortened(token.text)
                    );
                    return Err(self.error(token, message));
                }
            }
        }
        Ok(())
    }

    /// A number of a directive that has no meaning for zero.
    fn positive(&mut self, directive: Token<'t>) -> Result<u32, Error> {
        let token = self.tok;
        let value = self.integer("a number")?;
        match u32::try_from(value) {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(self.error(
                token,
                format!(
                    "'{}' takes numbers from 1 to {}, not '{}'",
                    shortened(directive.text),
                    u32::MAX,
                    shortened(token.text)
                ),
            )),
        }
    }

    /// One to three numbers; missing ones are 1.
    fn triple(
        &mut self,
        mut number: impl FnMut(&mut Self) -> Result<u32, Error>,
    ) -> Result<[u32; 3], Error> {
        let mut values = [1; 3];
        for (i, value) in values.iter_mut().enumerate() {
            if i > 0 && !self.eat(b',') {
                break;
            }
            *value = number(self)?;
        }
        Ok(values)
    }

    /// The strings after `.pragma`.
    pub fn pragma(&mut self, to: &mut Vec<String>) -> Result<(), Error> {
        loop {
            if self.tok.kind != TokenKind::Str {
                return Err(self.expected("a string after '.pragma'"));
            }
            to.push(self.bump().text.trim_matches('"').to_string());
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';', "after '.pragma'")?;
        Ok(())
    }

    /// The rest of a prototype after `name: .callprototype`.
    pub fn prototype(&mut self, name: Token<'t>) -> Result<Prototype, Error> {
        let returns = if self.at(b'(') {
            self.parameters()?
        } else {
            Vec::new()
        };
        self.ident("'_'")?;
        let params = if self.at(b'(') {
            self.parameters()?
        } else {
            Vec::new()
        };
        let only = |list: Vec<(&str, Variable)>| list.into_iter().map(|(_, v)| v).collect();
        let mut prototype = Prototype {
            name: name.text.to_string(),
            returns: only(returns),
            params: only(params),
            noreturn: false,
        };
        loop {
            if self.eat_word("noreturn") {
                prototype.noreturn = true;
            } else if self.at_word("abi_preserve") || self.at_word("abi_preserve_control") {
                self.bump();
                self.small("a number")?;
            } else {
                break;
            }
        }
        self.expect(b';', "after '.callprototype'")?;
        Ok(prototype)
    }
}
