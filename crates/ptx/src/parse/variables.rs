//! Declarations of variables and registers (PTX ISA, "State Spaces, Types, and Variables").

use crate::error::{Error, shortened};
use crate::ir::*;
use crate::isa::{space_of, type_of};
use crate::parse::Parser;
use crate::parse::constants::{Constant, SUM};
use crate::parse::lexer::TokenKind;
use crate::parse::scopes::Symbol;

/// Largest count of `name<count>` for registers.
const MOST_REGISTERS: u64 = 1 << 24;

/// The part of a declaration before the names.
struct Head {
    space: Space,
    align: Option<u32>,
    ty: Type,
    vector: u32,
    managed: bool,
    ptr: Option<(Option<Space>, u32)>,
}

impl<'t> Parser<'t> {
    /// The words between the state space and the names.
    fn head(&mut self, space: Space) -> Result<Head, Error> {
        let mut head = Head {
            space,
            align: None,
            ty: Type::Pred,
            vector: 1,
            managed: false,
            ptr: None,
        };
        let mut typed = false;
        if space == Space::Const && self.eat(b'[') {
            // Numbered banks of PTX ISA 1.x.
            self.integer("a bank number")?;
            self.expect(b']', "after the bank number")?;
        }
        while self.tok.kind == TokenKind::Dot {
            let token = self.tok;
            match token.word() {
                "align" => head.align = Some(self.alignment()?),
                "attribute" => head.managed |= self.attribute()?,
                "ptr" => {
                    self.bump();
                    let to = space_of(self.tok.word());
                    if to.is_some() {
                        self.bump();
                    }
                    // The default alignment of `.ptr` is four bytes.
                    let align = if self.at_word("align") {
                        self.alignment()?
                    } else {
                        4
                    };
                    head.ptr = Some((to, align));
                }
                "v2" | "v4" | "v8" if head.vector == 1 => {
                    self.bump();
                    head.vector = u32::from(token.word().as_bytes()[1] - b'0');
                }
                word => match type_of(word) {
                    Some(ty) if !typed => {
                        self.bump();
                        head.ty = ty;
                        typed = true;
                    }
                    _ => return Err(self.expected("a type, an alignment or a name")),
                },
            }
        }
        if !typed {
            return Err(self.expected("a type"));
        }
        if head.ty == Type::Pred && space != Space::Reg {
            return Err(self.error(
                self.tok,
                format!(
                    "the predicate '{}' must be a register",
                    shortened(self.tok.text)
                ),
            ));
        }
        Ok(head)
    }

    fn alignment(&mut self) -> Result<u32, Error> {
        self.bump();
        let token = self.tok;
        let align = self.small("an alignment")?;
        if align.is_power_of_two() {
            return Ok(align);
        }
        Err(self.error(
            token,
            format!(
                "the alignment '{}' is not a power of two",
                shortened(token.text)
            ),
        ))
    }

    /// `.attribute(...)`. Returns whether it contains `.managed`.
    pub fn attribute(&mut self) -> Result<bool, Error> {
        self.bump();
        self.expect(b'(', "after '.attribute'")?;
        let mut managed = false;
        loop {
            match self.tok.word() {
                "managed" => {
                    self.bump();
                    managed = true;
                }
                "unified" => {
                    self.bump();
                    self.expect(b'(', "after '.unified'")?;
                    self.integer("an identifier")?;
                    self.expect(b',', "between the halves of the identifier")?;
                    self.integer("an identifier")?;
                    self.expect(b')', "after the identifier")?;
                }
                _ => return Err(self.expected("'.managed' or '.unified'")),
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')', "after the attributes")?;
        Ok(managed)
    }

    /// `[2][3]`, `[]`.
    fn dims(&mut self) -> Result<Vec<Option<u64>>, Error> {
        let mut dims = Vec::new();
        while self.at(b'[') {
            let bracket = self.bump();
            if dims.len() == 16 {
                return Err(self.error(bracket, "too many dimensions at '['".to_string()));
            }
            if self.at(b']') && dims.is_empty() {
                dims.push(None);
            } else {
                let token = self.tok;
                let length = self.integer("an array length")?;
                if length > i64::MAX as u64 {
                    return Err(self.error(
                        token,
                        format!(
                            "the array length '{}' is out of range",
                            shortened(token.text)
                        ),
                    ));
                }
                dims.push(Some(length));
            }
            self.expect(b']', "after the array length")?;
        }
        Ok(dims)
    }

    fn make(
        &self,
        head: &Head,
        name: &str,
        dims: Vec<Option<u64>>,
        linkage: Linkage,
        pos: Pos,
    ) -> Result<Variable, Error> {
        let natural = (head.ty.bytes() * head.vector).max(1).next_power_of_two();
        let var = Variable {
            name: name.to_string(),
            space: head.space,
            align: head.align.unwrap_or(natural),
            ty: head.ty,
            vector: head.vector,
            dims,
            linkage,
            init: Vec::new(),
            properties: Vec::new(),
            managed: head.managed,
            ptr: head.ptr,
            pos,
        };
        self.addressable(&var)?;
        Ok(var)
    }

    /// Rejects a variable that is larger than the address space.
    fn addressable(&self, var: &Variable) -> Result<(), Error> {
        if var.size() <= i64::MAX as u64 {
            return Ok(());
        }
        let message = format!(
            "the variable '{}' is larger than the address space",
            shortened(&var.name)
        );
        Err(self.error_of(crate::ErrorKind::Invalid, var.pos, &var.name, message))
    }

    /// A parameter of a function or prototype. Its name may be `_`.
    pub fn parameter(&mut self) -> Result<(&'t str, Variable), Error> {
        let space = match space_of(self.tok.word()) {
            Some(space @ (Space::Param | Space::Reg)) => space,
            _ => return Err(self.expected("'.param' or '.reg'")),
        };
        self.bump();
        let head = self.head(space)?;
        let name = self.ident("a parameter's name")?;
        let dims = self.dims()?;
        Ok((
            name.text,
            self.make(&head, name.text, dims, Linkage::None, name.pos)?,
        ))
    }

    /// A list of parameters in parentheses.
    pub fn parameters(&mut self) -> Result<Vec<(&'t str, Variable)>, Error> {
        self.expect(b'(', "before the parameters")?;
        let mut list = Vec::new();
        while !self.at(b')') {
            list.push(self.parameter()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')', "after the parameters")?;
        Ok(list)
    }

    /// `.space ... name, name ...;` in a body or at module scope.
    pub fn declaration(&mut self, linkage: Linkage) -> Result<(), Error> {
        let local = self.function.is_some();
        let Some(space) = space_of(self.tok.word()) else {
            return Err(self.expected("a state space"));
        };
        let first = self.bump();
        let fits = match space {
            Space::Reg | Space::Param => local,
            Space::SharedCluster => false,
            Space::Tex => !local,
            _ => true,
        };
        if !fits {
            return Err(self.error(
                first,
                format!("'{}' cannot be declared here", shortened(first.text)),
            ));
        }
        let head = self.head(space)?;
        loop {
            let name = self.ident("a name")?;
            let count = if self.eat(b'<') {
                let token = self.tok;
                let value = if self.at_constant() {
                    self.binary(SUM)?
                } else {
                    return Err(self.expected("a number of names"));
                };
                self.expect(b'>', "after the number of names")?;
                match value {
                    Constant::Int(count, _) if count <= MOST_REGISTERS => Some(count as u32),
                    _ => {
                        return Err(self.error(
                            token,
                            format!("'{}' are too many names", shortened(token.text)),
                        ));
                    }
                }
            } else {
                None
            };
            if space == Space::Reg {
                let scopes = self.scopes();
                let fresh = match count {
                    Some(count) => scopes.declare_range(name.text, count, head.ty, head.vector),
                    None => scopes.declare_reg(name.text, head.ty, head.vector),
                };
                if !fresh {
                    return Err(self.error(
                        name,
                        format!("'{}' is declared twice", shortened(name.text)),
                    ));
                }
            } else if count.is_some() {
                let message = format!(
                    "only registers can have numbered names such as '{}'",
                    shortened(name.text)
                );
                return Err(self.error(name, message));
            } else {
                let dims = self.dims()?;
                let mut var = self.make(&head, name.text, dims, linkage, name.pos)?;
                if self.eat(b'=') {
                    self.initializer(&mut var)?;
                    self.addressable(&var)?;
                }
                self.add(name, var)?;
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';', "after the declaration")?;
        Ok(())
    }

    /// Adds a variable to the module or the body. A definition replaces its `.extern` declaration.
    fn add(&mut self, name: crate::parse::lexer::Token<'t>, var: Variable) -> Result<(), Error> {
        if let Some(function) = &mut self.function {
            let id = VarId::Local(function.body.vars.len() as u32);
            function.body.vars.push(var);
            return self.declare(name, Symbol::Var(id));
        }
        match self.names.get(name.text) {
            None => {
                let id = VarId::Module(self.module.globals.len() as u32);
                self.module.globals.push(var);
                self.names.insert(name.text, Symbol::Var(id));
                Ok(())
            }
            Some(Symbol::Var(VarId::Module(i))) => {
                let old = &mut self.module.globals[*i as usize];
                let shared = |l| matches!(l, Linkage::Extern | Linkage::Common | Linkage::Weak);
                if old.space != var.space
                    || old.ty.bits() != var.ty.bits()
                    || !(shared(old.linkage) || shared(var.linkage))
                {
                    return Err(self.error(
                        name,
                        format!("'{}' is declared twice", shortened(name.text)),
                    ));
                }
                if var.linkage != Linkage::Extern {
                    *old = var;
                }
                Ok(())
            }
            Some(_) => Err(self.error(
                name,
                format!("'{}' is declared twice", shortened(name.text)),
            )),
        }
    }
}
