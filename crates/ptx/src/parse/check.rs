//! Checks that operands fit their instruction (PTX ISA, "Type Information for Instructions and Operands").
//!
//! A register fits an operand of the same width, unless one of them is an integer and the other a float. Loads, stores and
//! conversions also take wider registers.

use crate::ErrorKind;
use crate::error::{Error, shortened};
use crate::ir::*;
use crate::isa::{Gate, Recognized};
use crate::parse::Parser;
use crate::parse::lexer::Token;
use crate::parse::operand_requirement::OperandRequirement::{
    self, Address, Any, Bits, Immediate, Is, Pred, Sink, Size, Wide,
};
use crate::textures::TextureForm;

fn is_integer(ty: Type) -> bool {
    use Type::*;
    matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64)
}

/// Spelling of a type, for messages.
fn name(ty: Type) -> String {
    format!(".{ty:?}").to_lowercase()
}

impl<'t> Parser<'t> {
    /// Checks the operands of an instruction, chooses its form by their number, and normalizes its literals and addresses.
    pub fn check(&self, instr: &mut Instr, recognized: &Recognized) -> Result<(), Error> {
        let forms = &recognized.forms;
        // Triton writes `ld.b32 {%r1}, [...]`.
        if let Some(data) = instr.data_operand()
            && let Some(Operand::Vector(elements)) = instr.operands.get_mut(data)
            && elements.len() == 1
            && let Some(only) = elements.pop()
        {
            instr.operands[data] = only;
        }
        if let Some(function) = &self.function
            && let Some(form) = TextureForm::of(instr, &function.body)
        {
            let Err(wrong) = form else { return Ok(()) };
            let token = self.operand_tokens.get(wrong.operand).copied();
            let token = token.unwrap_or(self.tok);
            let message = format!("{}, at '{}'", wrong.message, shortened(token.text));
            return Err(self.error(token, message));
        }
        let count = instr.operands.len();
        let counts = forms.iter().map(|form| form.operand_count(&instr.mods));
        let fits = |&(least, most): &(usize, usize)| (least..=most).contains(&count);
        let Some(chosen) = counts.clone().position(|range| fits(&range)) else {
            let least = counts.clone().map(|range| range.0).min().unwrap_or(0);
            let most = counts.clone().map(|range| range.1).max().unwrap_or(0);
            let token = self.operand_tokens.get(most).copied().unwrap_or(self.tok);
            let wanted = if least == most {
                format!("{least}")
            } else {
                format!("{least} to {most}")
            };
            let message = format!(
                "'{}' takes {wanted} operands, found {count}, at '{}'",
                instr.op,
                shortened(token.text)
            );
            return Err(self.error(token, message));
        };
        // Of the forms with this number of operands, the first that the module can use.
        let met = |gate: &Gate| {
            let target = self.module.target.first().map_or("", String::as_str);
            gate.is_met(self.module.version, target)
        };
        instr.form = (forms.iter().zip(counts).skip(chosen))
            .find(|(form, range)| fits(range) && met(&form.gate))
            .map_or(forms[chosen], |(form, _)| *form);
        let gates = recognized.rules.iter().map(|rule| &rule.gate);
        if let Some(gate) = [&instr.form.gate]
            .into_iter()
            .chain(gates)
            .find(|g| !met(g))
        {
            return Err(self.unmet(instr, gate));
        }
        let Some(function) = &self.function else {
            return Ok(());
        };
        let has_destination = instr.has_destination();
        for (i, operand) in instr.operands.iter_mut().enumerate() {
            let token = self.operand_tokens.get(i).copied().unwrap_or(self.tok);
            let Some(spec) = instr.form.operands.get(i) else {
                break;
            };
            let requirement = OperandRequirement::of(spec, &instr.types);
            if i == 0 && has_destination {
                match operand {
                    Operand::Reg(_)
                    | Operand::RegComponent(..)
                    | Operand::RegSelect(..)
                    | Operand::Vector(_)
                    | Operand::Pair(..)
                    | Operand::Sink => {}
                    _ => {
                        return Err(self.error(
                            token,
                            format!("'{}' cannot be written to", shortened(token.text)),
                        ));
                    }
                }
            }
            if i == 0 && has_destination && matches!(operand, Operand::Sink) {
                if !matches!(instr.op, Op::Atom | Op::Mbarrier) {
                    return Err(self.error(
                        token,
                        format!("the result of '{}' cannot be discarded with '_'", instr.op),
                    ));
                }
                continue;
            }
            if matches!(operand, Operand::Pair(..)) && !spec.pair && instr.op == Op::Setp {
                let message = format!("'{}' writes one predicate", instr.mnemonic());
                return Err(self.error(token, message));
            }
            if spec.elements > 0 {
                self.vector_fits(&function.body, operand, spec.elements, requirement, token)?;
            } else {
                self.fits(&function.body, operand, requirement, token)?;
            }
        }
        if instr.form.open {
            return Ok(());
        }
        if instr.op == Op::Mov && instr.mods.vector > 1 {
            return (0..instr.operands.len())
                .try_for_each(|i| self.element_count(&function.body, instr, i));
        }
        self.vector_length(&function.body, instr)?;
        self.narrow_address(&function.body, instr)
    }

    /// Checks an operand that is a vector of `length` elements.
    fn vector_fits(
        &self,
        body: &Body,
        operand: &mut Operand,
        length: usize,
        requirement: OperandRequirement,
        token: Token<'t>,
    ) -> Result<(), Error> {
        let Operand::Vector(elements) = operand else {
            let text = shortened(token.text);
            let message = format!("expected a vector of {length} registers, found '{text}'");
            return Err(self.error(token, message));
        };
        if elements.len() != length {
            let (text, found) = (shortened(token.text), elements.len());
            let message = format!(
                "expected a vector of {length} registers, found one of {found} at '{text}'"
            );
            return Err(self.error(token, message));
        }
        let mut elements = elements.iter_mut();
        elements.try_for_each(|e| self.fits(body, e, requirement, token))
    }

    /// The error that the module's version or target lacks an instruction.
    fn unmet(&self, instr: &Instr, gate: &Gate) -> Error {
        let (major, minor) = self.module.version;
        let target = self.module.target.first().map_or("", String::as_str);
        let message = format!(
            "'{}' needs {gate}; the module says '.version {major}.{minor}', '.target {target}'",
            instr.mnemonic()
        );
        self.error_of(ErrorKind::Invalid, instr.pos, instr.op.name(), message)
    }

    /// Rejects a 32-bit register in an address of global or generic memory.
    fn narrow_address(&self, body: &Body, instr: &Instr) -> Result<(), Error> {
        if self.module.address_size != 64
            || instr.op.class() != OpClass::Memory
            || !matches!(instr.mods.space, None | Some(Space::Global))
        {
            return Ok(());
        }
        for (i, operand) in instr.operands.iter().enumerate() {
            if let Operand::Addr(Base::Reg(r), _) = operand
                && body.regs[r.0 as usize].ty.bits() < 64
            {
                let token = self.operand_tokens.get(i).copied().unwrap_or(self.tok);
                let message = format!(
                    "the register in the address '{}' has fewer than 64 bits",
                    shortened(token.text)
                );
                return Err(self.error(token, message));
            }
        }
        Ok(())
    }

    /// Checks that a load or store names as many registers as it moves elements.
    fn vector_length(&self, body: &Body, instr: &Instr) -> Result<(), Error> {
        match instr.data_operand() {
            Some(data) => self.element_count(body, instr, data),
            None => Ok(()),
        }
    }

    /// Checks that an operand has as many elements as the instruction moves.
    fn element_count(&self, body: &Body, instr: &Instr, data: usize) -> Result<(), Error> {
        let length = match instr.operands.get(data) {
            Some(Operand::Vector(elements)) => elements.len(),
            Some(Operand::Reg(r)) => body.regs[r.0 as usize].vector as usize,
            _ => 1,
        };
        let wanted = instr.mods.vector as usize;
        if length == wanted {
            return Ok(());
        }
        let token = self.operand_tokens.get(data).copied().unwrap_or(self.tok);
        let message = format!(
            "'{}' moves {wanted} elements, '{}' has {length}",
            instr.op,
            shortened(token.text)
        );
        Err(self.error(token, message))
    }

    fn fits(
        &self,
        body: &Body,
        operand: &mut Operand,
        requirement: OperandRequirement,
        token: Token<'t>,
    ) -> Result<(), Error> {
        let refuse = |found: &str| {
            let wanted = wanted(requirement);
            Err(self.error(
                token,
                format!("expected {wanted}, '{}' is {found}", shortened(token.text)),
            ))
        };
        match operand {
            Operand::Reg(r)
            | Operand::RegComponent(r, _)
            | Operand::NotReg(r)
            | Operand::RegSelect(r, _) => {
                let Register { ty, vector, .. } = body.regs[r.0 as usize];
                let bits = if matches!(operand, Operand::RegComponent(..)) {
                    ty.bits()
                } else {
                    ty.bits() * vector
                };
                if matches!(operand, Operand::NotReg(_)) && !matches!(requirement, Pred | Any) {
                    return refuse("a negated predicate");
                }
                if register_fits(requirement, ty, bits) {
                    Ok(())
                } else {
                    refuse(&format!("a register of type {}", name(ty)))
                }
            }
            Operand::Neg(inner) => self.fits(body, inner, requirement, token),
            Operand::Int(value) => match requirement {
                Pred => {
                    *value = i64::from(*value != 0);
                    Ok(())
                }
                OperandRequirement::Register(_) => refuse("an integer"),
                Is(t) | Wide(t) | Size(t) if is_float(t) || is_format(t) => refuse("an integer"),
                Address => refuse("a constant"),
                Immediate([least, .., most], true) if !(*least..=*most).contains(value) => {
                    refuse("another")
                }
                Immediate(values, false) if !values.is_empty() && !values.contains(value) => {
                    refuse("another")
                }
                _ => Ok(()),
            },
            Operand::F32(_) | Operand::F64(_) => match requirement {
                Any => Ok(()),
                Is(Type::F32) | Wide(Type::F32) | Size(Type::F32) => {
                    *operand = Operand::F32(single(operand));
                    Ok(())
                }
                Is(Type::F64) | Wide(Type::F64) | Size(Type::F64) => {
                    *operand = Operand::F64(double(operand));
                    Ok(())
                }
                Is(Type::B32) | Wide(Type::B32) | Size(Type::B32)
                    if matches!(operand, Operand::F32(_)) =>
                {
                    Ok(())
                }
                Is(Type::B64) | Wide(Type::B64) | Size(Type::B64)
                    if matches!(operand, Operand::F64(_)) =>
                {
                    Ok(())
                }
                _ => refuse("a floating-point constant"),
            },
            Operand::Pair(first, second) => {
                // The second half of every pair is a predicate.
                for (half, requirement) in [(first, requirement), (second, Pred)] {
                    if !matches!(**half, Operand::Sink) {
                        self.fits(body, half, requirement, token)?;
                    }
                }
                Ok(())
            }
            Operand::Vector(elements) => {
                let each = match requirement {
                    Wide(t) => Wide(t),
                    Size(t) if matches!(elements.len(), 2 | 4) => {
                        Bits(t.bits() / elements.len() as u32)
                    }
                    Any => Any,
                    _ => return refuse("a vector"),
                };
                for element in elements {
                    if !matches!(element, Operand::Sink) {
                        self.fits(body, element, each, token)?;
                    }
                }
                Ok(())
            }
            Operand::Special(special) => {
                let wide = match special {
                    Special::Clock64
                    | Special::GlobalTimer
                    | Special::CurrentGraphExec
                    | Special::Pm64(_) => Some(true),
                    // 32 bits before PTX ISA 3.0, 64 bits since.
                    Special::GridId => None,
                    _ => Some(false),
                };
                match requirement {
                    _ if *special == Special::IsExplicitCluster => {
                        if matches!(requirement, Pred | Any) {
                            Ok(())
                        } else {
                            refuse("a predicate")
                        }
                    }
                    Size(t) | Wide(t) if wide.is_none_or(|wide| wide == (t.bits() > 32)) => Ok(()),
                    Any | Bits(_) | OperandRequirement::Register(_) => Ok(()),
                    _ => refuse("a special register; move it into a register first"),
                }
            }
            Operand::Var(var, offset) if matches!(requirement, Address) => {
                *operand = Operand::Addr(Base::Var(*var), *offset);
                Ok(())
            }
            Operand::Var(..) | Operand::Func(_) => match requirement {
                Size(_) | Any => Ok(()),
                _ => refuse("an address; move it into a register first"),
            },
            Operand::Addr(..) if matches!(requirement, Address | Any) => Ok(()),
            Operand::Addr(..) => refuse("an address in brackets"),
            _ if matches!(requirement, Any) => Ok(()),
            Operand::Sink => refuse("nothing"),
            _ => refuse("none"),
        }
    }
}

fn is_untyped(ty: Type) -> bool {
    use Type::*;
    matches!(ty, B8 | B16 | B32 | B64 | B128)
}

fn is_float(ty: Type) -> bool {
    matches!(ty, Type::F32 | Type::F64)
}

/// Whether registers with values of this type have another one; it has no literals.
fn is_format(ty: Type) -> bool {
    !(is_integer(ty) || is_float(ty) || is_untyped(ty))
}

/// Whether a register of this type with `bits` bits in total fits.
fn register_fits(requirement: OperandRequirement, ty: Type, bits: u32) -> bool {
    match requirement {
        Any => true,
        Pred => ty == Type::Pred,
        Address | Sink | Immediate(..) => false,
        _ if ty == Type::Pred => false,
        Bits(n) | OperandRequirement::Register(n) => bits == n,
        Size(t) => bits == t.bits(),
        Wide(t) if is_float(t) && is_float(ty) => bits == t.bits(),
        Wide(t) => {
            bits >= t.bits() && !(is_integer(t) && is_float(ty) || is_float(t) && is_integer(ty))
        }
        // They are in untyped registers, or in those of exactly this type.
        Is(t) if is_format(t) => bits == t.bits() && (ty == t || is_untyped(ty)),
        Is(t) => {
            bits == t.bits() && !(is_integer(t) && is_float(ty) || is_float(t) && is_integer(ty))
        }
    }
}

/// Describes the wanted operand.
fn wanted(requirement: OperandRequirement) -> String {
    match requirement {
        Any => "an operand".to_string(),
        Pred => "a predicate".to_string(),
        Address => "an address in brackets".to_string(),
        Sink => "'_'".to_string(),
        Immediate([], _) => "an integer constant".to_string(),
        Immediate(values, true) => format!(
            "an integer constant from {} to {}",
            values[0],
            values[values.len() - 1]
        ),
        Immediate(values, false) => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            format!("the integer constant {}", values.join(" or "))
        }
        Bits(n) => format!("a value of {n} bits"),
        OperandRequirement::Register(n) => format!("a register of {n} bits"),
        Size(t) => format!("a value of {} bits", t.bits()),
        Wide(t) => format!("a value of type {} in at least {} bits", name(t), t.bits()),
        Is(t) if is_format(t) => format!("a register with a value of type {}", name(t)),
        Is(t) => format!("a value of type {}", name(t)),
    }
}

/// The bits of a floating-point literal in single precision.
fn single(literal: &Operand) -> u32 {
    match *literal {
        Operand::F32(bits) => bits,
        Operand::F64(bits) => (f64::from_bits(bits) as f32).to_bits(),
        _ => 0,
    }
}

/// The bits of a floating-point literal in double precision.
fn double(literal: &Operand) -> u64 {
    match *literal {
        Operand::F32(bits) => f64::from(f32::from_bits(bits)).to_bits(),
        Operand::F64(bits) => bits,
        _ => 0,
    }
}
