//! Initial contents of variables (PTX ISA, "Initializers").

use crate::error::{Error, shortened};
use crate::ir::*;
use crate::parse::Parser;
use crate::parse::constants::{Constant, PRODUCT};
use crate::parse::lexer::{Token, TokenKind};
use crate::parse::scopes::Symbol;

impl<'t> Parser<'t> {
    /// The rest of an initializer after `=`.
    pub fn initializer(&mut self, var: &mut Variable) -> Result<(), Error> {
        let token = self.tok;
        if !matches!(var.space, Space::Global | Space::Const) {
            return Err(self.error(
                token,
                format!(
                    "only '.global' and '.const' variables have initial values, at '{}'",
                    shortened(token.text)
                ),
            ));
        }
        if matches!(var.ty, Type::TexRef | Type::SamplerRef | Type::SurfRef) {
            var.properties = self.properties()?;
            return Ok(());
        }
        // Lengths of the levels of braces, outermost first: the dimensions, then the vector.
        let mut levels: Vec<Option<u64>> = var.dims.clone();
        if var.vector > 1 {
            levels.push(Some(u64::from(var.vector)));
        }
        if !self.at(b'{') {
            if !levels.is_empty() {
                return Err(self.expected("'{' before the initial values of an array"));
            }
            let element = self.element(var.ty)?;
            var.init.push(element);
            return Ok(());
        }
        let mut init = Vec::new();
        let count = self.level(var.ty, &levels, &mut init)?;
        if let Some(first @ None) = var.dims.first_mut() {
            // The values determine the length of the array.
            let inner: u64 = levels[1..]
                .iter()
                .fold(1u64, |n, d| n.saturating_mul(d.unwrap_or(1)))
                .max(1);
            *first = Some(count.div_ceil(inner));
        }
        var.init = init;
        Ok(())
    }

    /// One level of braces. Returns the number of elements, with inner levels padded to their full length.
    fn level(
        &mut self,
        ty: Type,
        levels: &[Option<u64>],
        init: &mut Vec<InitElem>,
    ) -> Result<u64, Error> {
        self.nested(|p| {
            p.expect(b'{', "before initial values")?;
            let size = |levels: &[Option<u64>]| {
                levels
                    .iter()
                    .try_fold(1u64, |n, d| d.map(|d| n.saturating_mul(d)))
            };
            let room = if levels.is_empty() {
                Some(1)
            } else {
                size(levels)
            };
            let mut count = 0u64;
            while !p.at(b'}') {
                let token = p.tok;
                if p.at(b'{') && levels.len() > 1 {
                    let inner = size(&levels[1..]).unwrap_or(0);
                    // Values before an inner level are padded to its start.
                    let behind = if inner > 0 { count % inner } else { 0 };
                    if behind > 0 {
                        init.push(InitElem::Zeros(inner - behind));
                        count = count.saturating_add(inner - behind);
                    }
                    let written = p.level(ty, &levels[1..], init)?;
                    if written < inner {
                        init.push(InitElem::Zeros(inner - written));
                    }
                    count = count.saturating_add(inner);
                } else if p.at(b'{') {
                    return Err(p.error(
                        token,
                        "more levels of '{' than the variable has dimensions".to_string(),
                    ));
                } else {
                    let element = p.element(ty)?;
                    init.push(element);
                    count = count.saturating_add(1);
                }
                if room.is_some_and(|room| count > room) {
                    return Err(p.error(
                        token,
                        format!(
                            "more initial values than the variable holds, at '{}'",
                            shortened(token.text)
                        ),
                    ));
                }
                if !p.eat(b',') {
                    break;
                }
            }
            p.expect(b'}', "after initial values")?;
            Ok(count)
        })
    }

    /// One value: a constant, an address, or a byte of an address.
    fn element(&mut self, ty: Type) -> Result<InitElem, Error> {
        let token = self.tok;
        if !self.at_constant() {
            return self.address(token, ty, None);
        }
        let value = self.constant()?;
        if let Constant::Int(mask, _) = value
            && self.at(b'(')
        {
            // 0xFF00(name) is one byte of the address.
            let byte = mask.trailing_zeros() / 8;
            if mask == 0 || mask != 0xff << (8 * byte) {
                return Err(self.error(
                    token,
                    format!(
                        "the mask '{}' does not select a single byte",
                        shortened(token.text)
                    ),
                ));
            }
            self.bump();
            let element = self.address(self.tok, Type::U64, Some(byte as u8))?;
            self.expect(b')', "after a masked address")?;
            return Ok(element);
        }
        Ok(InitElem::Bits(bits(value, ty)))
    }

    /// `name`, `name + 8`, `generic(name) + 8`.
    fn address(&mut self, token: Token<'t>, ty: Type, byte: Option<u8>) -> Result<InitElem, Error> {
        if self.tok.kind != TokenKind::Ident {
            return Err(self.expected("an initial value"));
        }
        let mut name = self.bump();
        let generic = name.text == "generic" && self.at(b'(');
        if generic {
            self.bump();
            name = self.ident("a variable")?;
        }
        let mut offset = 0i64;
        // The offset may be inside or after the parentheses.
        for inside in [true, false] {
            while self.at(b'+') || self.at(b'-') {
                let minus = self.bump().is(b'-');
                let at = self.tok;
                let Constant::Int(value, _) = self.binary(PRODUCT)? else {
                    return Err(self.error(
                        at,
                        format!("expected an integer offset, found '{}'", shortened(at.text)),
                    ));
                };
                offset = if minus {
                    offset.wrapping_sub(value as i64)
                } else {
                    offset.wrapping_add(value as i64)
                };
            }
            if inside && generic {
                self.expect(b')', "after 'generic(name'")?;
            }
        }
        if byte.is_none() && (ty.bits() < 32 || ty.is_float()) {
            return Err(self.error(
                token,
                format!(
                    "the address '{}' does not fit the variable's type",
                    shortened(token.text)
                ),
            ));
        }
        match self.lookup(name)? {
            Symbol::Var(var) => Ok(InitElem::Var {
                var,
                offset,
                generic,
                byte,
            }),
            Symbol::Func(func) => Ok(InitElem::Func { func, byte }),
            _ => Err(self.error(name, format!("'{}' has no address", shortened(name.text)))),
        }
    }

    /// `{ width = 4, filter_mode = nearest }` of an opaque reference.
    fn properties(&mut self) -> Result<Vec<(String, String)>, Error> {
        let mut properties = Vec::new();
        self.expect(b'{', "before the properties")?;
        while !self.at(b'}') {
            let name = self.ident("a property")?;
            self.expect(b'=', "before the value of a property")?;
            let value = match self.tok.kind {
                TokenKind::Ident | TokenKind::Int(..) => self.bump(),
                _ => return Err(self.expected("the value of a property")),
            };
            properties.push((name.text.to_owned(), value.text.to_owned()));
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}', "after the properties")?;
        Ok(properties)
    }
}

/// A constant as an element of this type.
fn bits(value: Constant, ty: Type) -> u64 {
    let wide = match (ty, value) {
        (Type::F64, value) => value.as_f64().to_bits(),
        (Type::F32 | Type::TF32, Constant::F32(bits)) => u64::from(bits),
        (Type::F32 | Type::TF32, value) => u64::from((value.as_f64() as f32).to_bits()),
        (_, Constant::Int(v, _)) => v,
        (_, Constant::F32(bits)) => u64::from(bits),
        (ty, Constant::F64(bits)) if ty.bits() >= 64 => bits,
        (_, Constant::F64(bits)) => u64::from((f64::from_bits(bits) as f32).to_bits()),
    };
    if ty.bits() >= 64 {
        wide
    } else {
        wide & ((1 << ty.bits()) - 1)
    }
}
