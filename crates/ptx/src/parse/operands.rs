//! Operands (PTX ISA, "Instruction Operands").

use crate::error::{Error, shortened};
use crate::ir::*;
use crate::parse::Parser;
use crate::parse::constants::{Constant, PRODUCT};
use crate::parse::lexer::{Token, TokenKind};
use crate::parse::scopes::Symbol;

impl<'t> Parser<'t> {
    /// The symbol of a name in the current scope.
    pub fn lookup(&mut self, name: Token<'t>) -> Result<Symbol, Error> {
        let local = self.function.as_mut().and_then(|f| f.find(name.text));
        match local.or_else(|| self.names.get(name.text).copied()) {
            Some(symbol) => Ok(symbol),
            None => Err(self.error(name, format!("'{}' is not declared", shortened(name.text)))),
        }
    }

    /// Any operand, pairs included.
    pub fn operand(&mut self) -> Result<Operand, Error> {
        let first = self.single()?;
        if !self.at(b'|') {
            return Ok(first);
        }
        let bar = self.bump();
        if !matches!(first, Operand::Reg(_) | Operand::Sink | Operand::Vector(_)) {
            return Err(self.error(bar, "only a destination can be followed by '|'".to_string()));
        }
        let second = self.single()?;
        Ok(Operand::Pair(Box::new(first), Box::new(second)))
    }

    fn single(&mut self) -> Result<Operand, Error> {
        let token = self.tok;
        match token.kind {
            TokenKind::Punct(b'{') => self.nested(Self::vector),
            TokenKind::Punct(b'[') => self.nested(Self::bracket),
            TokenKind::Punct(b'!') if self.peek().kind == TokenKind::Ident => {
                self.bump();
                let name = self.bump();
                match self.lookup(name)? {
                    Symbol::Reg(r) => Ok(Operand::NotReg(r)),
                    _ => Err(self.error(
                        name,
                        format!(
                            "'!' needs a predicate register, '{}' is none",
                            shortened(name.text)
                        ),
                    )),
                }
            }
            TokenKind::Ident if token.text == "_" => {
                self.bump();
                Ok(Operand::Sink)
            }
            _ if self.at_constant() => Ok(literal(self.constant()?)),
            TokenKind::Punct(b'-') => {
                self.bump();
                let inner = self.nested(Self::single)?;
                match inner {
                    Operand::Reg(_) | Operand::RegSelect(..) => Ok(Operand::Neg(Box::new(inner))),
                    _ => Err(self.error(token, "'-' needs a register or a constant".to_string())),
                }
            }
            TokenKind::Ident => self.named(),
            _ => Err(self.expected("an operand")),
        }
    }

    /// An operand that starts with a name.
    fn named(&mut self) -> Result<Operand, Error> {
        let name = self.bump();
        if name.text.starts_with('%')
            && let Some(special) = self.special(name)?
        {
            return Ok(special);
        }
        match self.lookup(name)? {
            Symbol::Reg(r) if self.tok.kind == TokenKind::Dot => {
                let word = self.bump();
                self.part_of(r, word)
            }
            Symbol::Reg(r) => Ok(Operand::Reg(r)),
            Symbol::Var(v) => {
                let mut offset = 0i64;
                if self.eat(b'[') {
                    let index = self.integer("an array index")? as i64;
                    self.expect(b']', "after the array index")?;
                    let var = self.variable(v);
                    let size = var.map_or(1, |v| i64::from(v.ty.bytes()) * i64::from(v.vector));
                    offset = index.wrapping_mul(size);
                }
                Ok(Operand::Var(v, offset.wrapping_add(self.offset()?)))
            }
            Symbol::Func(f) => Ok(Operand::Func(f)),
            Symbol::Proto(p) => Ok(Operand::Proto(p)),
            Symbol::BranchTargets(i) | Symbol::CallTargets(i) => Ok(Operand::Targets(i)),
        }
    }

    /// The variable of an id.
    pub fn variable(&self, id: VarId) -> Option<&Variable> {
        match id {
            VarId::Module(i) => self.module.globals.get(i as usize),
            VarId::Local(i) => self.function.as_ref()?.body.vars.get(i as usize),
            VarId::Param(i) => self.current()?.params.get(i as usize),
            VarId::Return(i) => self.current()?.returns.get(i as usize),
        }
    }

    /// `+ expression` or `- expression` after a base, repeated; 0 without an offset.
    fn offset(&mut self) -> Result<i64, Error> {
        let mut offset = 0i64;
        while self.at(b'+') || self.at(b'-') {
            let minus = self.bump().is(b'-');
            let token = self.tok;
            let Constant::Int(value, _) = self.binary(PRODUCT)? else {
                return Err(self.error(
                    token,
                    format!(
                        "expected an integer offset, found '{}'",
                        shortened(token.text)
                    ),
                ));
            };
            offset = if minus {
                offset.wrapping_sub(value as i64)
            } else {
                offset.wrapping_add(value as i64)
            };
        }
        Ok(offset)
    }

    /// `{a, b, c}`.
    fn vector(&mut self) -> Result<Operand, Error> {
        self.expect(b'{', "")?;
        let mut elements = Vec::new();
        while !self.at(b'}') {
            elements.push(self.single()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}', "after vector element")?;
        Ok(Operand::Vector(elements))
    }

    /// `[base + offset]`, or `[texture, {coordinates}]` of texture and surface instructions.
    fn bracket(&mut self) -> Result<Operand, Error> {
        self.expect(b'[', "")?;
        let mut parts = Vec::new();
        loop {
            let token = self.tok;
            let part = self.single()?;
            let offset = self.offset()?;
            // A register with the coordinates may follow an object.
            if let Operand::Reg(r) = part
                && parts.is_empty()
            {
                self.addressing(r, token)?;
            }
            parts.push(match part {
                Operand::Reg(r) => Operand::Addr(Base::Reg(r), offset),
                Operand::Var(v, at) => Operand::Addr(Base::Var(v), at.wrapping_add(offset)),
                Operand::Int(at) => Operand::Addr(Base::None, at.wrapping_add(offset)),
                Operand::Vector(_) | Operand::RegComponent(..) if !parts.is_empty() => part,
                _ => {
                    return Err(self.error(
                        token,
                        format!("'{}' cannot be part of an address", shortened(token.text)),
                    ));
                }
            });
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']', "after address")?;
        if parts.len() > 1 {
            let plain = |part| match part {
                Operand::Addr(Base::Reg(r), 0) => Operand::Reg(r),
                Operand::Addr(Base::Var(v), at) => Operand::Var(v, at),
                Operand::Addr(Base::None, at) => Operand::Int(at),
                other => other,
            };
            return Ok(Operand::TexAddr(parts.into_iter().map(plain).collect()));
        }
        Ok(parts.remove(0))
    }

    /// Checks that a register in an address is an integer of 32 or 64 bits.
    fn addressing(&self, reg: RegId, token: Token<'t>) -> Result<(), Error> {
        use Type::*;
        let Some(Register { ty, vector, .. }) =
            self.function.as_ref().map(|f| &f.body.regs[reg.0 as usize])
        else {
            return Ok(());
        };
        if matches!(ty, B32 | U32 | S32 | B64 | U64 | S64) && *vector == 1 {
            return Ok(());
        }
        Err(self.error(
            token,
            format!(
                "'{}' cannot be part of an address: it is not an integer of 32 or 64 bits",
                shortened(token.text)
            ),
        ))
    }

    /// `%v.x` of a vector register, `%r.b0` of a video instruction.
    fn part_of(&mut self, reg: RegId, word: Token<'t>) -> Result<Operand, Error> {
        let vector = self
            .function
            .as_ref()
            .map_or(1, |f| f.body.regs[reg.0 as usize].vector);
        let component = match word.word() {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => u8::MAX,
        };
        if u32::from(component) < vector && vector > 1 {
            return Ok(Operand::RegComponent(reg, component));
        }
        match selector(word.word()) {
            Some(selector) => Ok(Operand::RegSelect(reg, selector)),
            None => Err(self.error(
                word,
                format!("the register has no part '{}'", shortened(word.text)),
            )),
        }
    }

    /// The special register with this name. Its axis is the next token.
    fn special(&mut self, name: Token<'t>) -> Result<Option<Operand>, Error> {
        let Some(special) = special_of(&name.text[1..]) else {
            return Ok(None);
        };
        if self
            .function
            .as_mut()
            .is_some_and(|f| f.find(name.text).is_some())
        {
            return Ok(None);
        }
        let SpecialName::Axes(make) = special else {
            let SpecialName::One(special) = special else {
                return Ok(None);
            };
            return Ok(Some(Operand::Special(special)));
        };
        if self.tok.kind != TokenKind::Dot {
            let axes = (0..4).map(|axis| {
                if axis < 3 {
                    Operand::Special(make(axis))
                } else {
                    Operand::Int(0)
                }
            });
            return Ok(Some(Operand::Vector(axes.collect())));
        }
        let word = self.bump();
        Ok(Some(match word.word() {
            "x" | "r" => Operand::Special(make(0)),
            "y" | "g" => Operand::Special(make(1)),
            "z" | "b" => Operand::Special(make(2)),
            "w" | "a" => Operand::Int(0),
            _ => {
                return Err(self.error(
                    word,
                    format!(
                        "'{}' has no component '{}'",
                        name.text,
                        shortened(word.text)
                    ),
                ));
            }
        }))
    }
}

/// The operand of a constant.
fn literal(value: Constant) -> Operand {
    match value {
        Constant::Int(v, _) => Operand::Int(v as i64),
        Constant::F32(bits) => Operand::F32(bits),
        Constant::F64(bits) => Operand::F64(bits),
    }
}

/// The meaning of `b0`, `h1`, `b3210`, `h10`.
fn selector(word: &str) -> Option<Selector> {
    let (kind, digits) = word.split_at_checked(1)?;
    let (limit, simd) = match kind {
        "b" => (8, 4),
        "h" => (4, 2),
        _ => return None,
    };
    let mut parts = [u8::MAX; 4];
    if digits.is_empty() || digits.len() > simd {
        return None;
    }
    for (part, digit) in parts.iter_mut().zip(digits.bytes().rev()) {
        *part = digit.checked_sub(b'0').filter(|d| *d < limit)?;
    }
    Some(match (kind, digits.len()) {
        ("b", 1) if parts[0] < 4 => Selector::Byte(parts[0]),
        ("h", 1) if parts[0] < 2 => Selector::Half(parts[0]),
        ("b", _) => Selector::Bytes(parts),
        _ => Selector::Halves([parts[0], parts[1]]),
    })
}

enum SpecialName {
    One(Special),
    Axes(fn(u8) -> Special),
}

fn special_of(name: &str) -> Option<SpecialName> {
    use Special::*;
    let axes: fn(u8) -> Special = match name {
        "tid" => Tid,
        "ntid" => Ntid,
        "ctaid" => Ctaid,
        "nctaid" => Nctaid,
        "clusterid" => ClusterId,
        "nclusterid" => NClusterId,
        "cluster_ctaid" => ClusterCtaId,
        "cluster_nctaid" => ClusterNCtaId,
        _ => return scalar_of(name).map(SpecialName::One),
    };
    Some(SpecialName::Axes(axes))
}

fn scalar_of(name: &str) -> Option<Special> {
    use Special::*;
    Some(match name {
        "laneid" => LaneId,
        "warpid" => WarpId,
        "nwarpid" => NWarpId,
        "smid" => SmId,
        "nsmid" => NSmId,
        "gridid" => GridId,
        "lanemask_eq" => LaneMaskEq,
        "lanemask_le" => LaneMaskLe,
        "lanemask_lt" => LaneMaskLt,
        "lanemask_ge" => LaneMaskGe,
        "lanemask_gt" => LaneMaskGt,
        "clock" => Clock,
        "clock_hi" => ClockHi,
        "clock64" => Clock64,
        "globaltimer" => GlobalTimer,
        "globaltimer_lo" => GlobalTimerLo,
        "globaltimer_hi" => GlobalTimerHi,
        "cluster_ctarank" => ClusterCtaRank,
        "cluster_nctarank" => ClusterNCtaRank,
        "is_explicit_cluster" => IsExplicitCluster,
        "dynamic_smem_size" => DynamicSmemSize,
        "total_smem_size" => TotalSmemSize,
        "aggr_smem_size" => AggrSmemSize,
        "reserved_smem_offset_0" => ReservedSmemOffset(0),
        "reserved_smem_offset_1" => ReservedSmemOffset(1),
        "reserved_smem_offset_begin" => ReservedSmemOffset(2),
        "reserved_smem_offset_end" => ReservedSmemOffset(3),
        "reserved_smem_offset_cap" => ReservedSmemOffset(4),
        "current_graph_exec" => CurrentGraphExec,
        _ => {
            let below = |digits: &str, limit| digits.parse::<u8>().ok().filter(|n| *n < limit);
            if let Some(n) = name.strip_prefix("envreg") {
                EnvReg(below(n, 32)?)
            } else if let Some(n) = name.strip_prefix("pm") {
                match n.strip_suffix("_64") {
                    Some(n) => Pm64(below(n, 8)?),
                    None => Pm(below(n, 8)?),
                }
            } else {
                return None;
            }
        }
    })
}
