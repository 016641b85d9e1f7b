//! Whether operands fit their instruction (PTX ISA, "Type Information for Instructions and Operands").
//!
//! A register fits an operand of the same width, except that integers and floats exclude each other where both say which
//! they are; loads, stores and conversions take wider registers too. Opcodes that [`shape`] does not know are not checked.

use crate::error::{Error, shown};
use crate::ir::*;
use crate::lexer::Token;
use crate::modifiers::is_video;
use crate::parser::Parser;

/// What an operand has to be.
#[derive(Clone, Copy)]
enum Want {
    /// A predicate.
    Pred,
    /// A value of this type.
    Is(Type),
    /// A value of this width, whatever its type.
    Bits(u32),
    /// A value as wide as this type, or a vector of them together; a literal is of this type.
    Size(Type),
    /// A value of this type, possibly in a wider register; or a vector of them.
    Wide(Type),
    /// Something in brackets.
    Address,
    /// Not checked.
    Any,
}

use Want::{Address, Any, Bits, Is, Pred, Size, Wide};

/// The operands of an instruction: how many at least, and what each has to be.
struct Shape {
    least: usize,
    wants: [Want; 6],
    most: usize,
    /// The first operand is written to.
    result: bool,
}

/// A shape with exactly these operands, the first of them the result.
fn exactly<const N: usize>(wants: [Want; N]) -> Option<Shape> {
    between(N, wants)
}

/// A shape with at least `least` of these operands, the first of them the result.
fn between<const N: usize>(least: usize, wants: [Want; N]) -> Option<Shape> {
    let mut all = [Any; 6];
    for (to, from) in all.iter_mut().zip(wants) {
        *to = from;
    }
    Some(Shape {
        least,
        wants: all,
        most: N,
        result: true,
    })
}

/// The same without a result.
fn effect<const N: usize>(least: usize, wants: [Want; N]) -> Option<Shape> {
    between(least, wants).map(|shape| Shape {
        result: false,
        ..shape
    })
}

/// Twice as wide.
fn doubled(ty: Type) -> Option<Type> {
    Some(match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        Type::S32 => Type::S64,
        _ => return None,
    })
}

/// What the operands of this instruction have to be; `None` where that is not checked.
fn shape(op: Op, mods: &Mods, types: &[Type]) -> Option<Shape> {
    use Op::*;
    let first = types.first().copied();
    let second = types.get(1).copied();
    let pred_or = |ty| if ty == Type::Pred { Pred } else { Is(ty) };
    let count = Bits(32);
    if is_video(op) {
        return None;
    }
    match op {
        // Without operands, or with ones of no type.
        Trap | Brkpt | Exit | Ret => return effect(0, []),
        Activemask => return exactly([Bits(32)]),
        Membar => return effect(0, []),
        Mapa | Getctarank | Cvta => return None,
        Isspacep => return exactly([Pred, Any]),
        Nanosleep => return effect(1, [Bits(32)]),
        _ => {}
    }
    let t = first?;
    let is = Is(t);
    match op {
        // The mixed-precision forms name two types.
        Add | Sub | Fma if second.is_some() => None,
        Add | Addc | Sub | Subc | Div | Rem | Copysign => exactly([is, is, is]),
        Mul | Mul24 if mods.mul == Some(MulHalf::Wide) => exactly([Is(doubled(t)?), is, is]),
        Mul | Mul24 => exactly([is, is, is]),
        Mad | Madc if mods.mul == Some(MulHalf::Wide) => {
            exactly([Is(doubled(t)?), is, is, Is(doubled(t)?)])
        }
        Mad | Mad24 | Madc | Sad => exactly([is, is, is, is]),
        Fma => exactly([is, is, is, is]),
        Min | Max => between(3, [is, is, is, is]),
        Abs | Neg | Cnot | Rcp | Sqrt | Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh | Brev => {
            exactly([is, is])
        }
        Not => exactly([pred_or(t), pred_or(t)]),
        And | Or | Xor => exactly([pred_or(t), pred_or(t), pred_or(t)]),
        Shl | Shr => exactly([is, is, count]),
        Shf => exactly([is, is, is, count]),
        Popc | Clz | Bfind => exactly([Bits(32), is]),
        Bfe => exactly([is, is, count, count]),
        Bfi => exactly([is, is, is, count, count]),
        Bmsk => exactly([is, count, count]),
        Szext => exactly([is, is, count]),
        Fns => exactly([Bits(32), Bits(32), Bits(32), Bits(32)]),
        Dp2a | Dp4a => exactly([Bits(32), Bits(32), Bits(32), Bits(32)]),
        Lop3 if mods.bool_op.is_some() => exactly([is, is, is, is, Any, Pred]),
        Lop3 => exactly([is, is, is, is, Any]),
        Prmt => exactly([Bits(32), Bits(32), Bits(32), Bits(32)]),
        Selp => exactly([is, is, is, Pred]),
        Slct => exactly([is, is, is, Is(second?)]),
        Set => between(3, [is, Is(second?), Is(second?), Pred]),
        Setp => between(3, [Pred, is, is, Pred]),
        Testp => exactly([Pred, is]),
        Mov if t == Type::Pred => exactly([Pred, Pred]),
        Mov => exactly([Size(t), Size(t)]),
        Cvt => between(2, [Wide(t), second.map_or(Any, Wide), Any, Any]),
        Ld | Ldu => between(2, [Wide(t), Address, Any]),
        St if mods.other.is_empty() => effect(2, [Address, Wide(t)]),
        Atom if mods.vector > 1 => None,
        Atom if mods.atom == Some(AtomOp::Cas) => between(4, [is, Address, is, is, Any]),
        Atom => between(3, [is, Address, is, Any]),
        Red if mods.vector == 1 => effect(2, [Address, is, Any]),
        Shfl => between(4, [is, is, count, count, Bits(32)]),
        Vote if t == Type::Pred => between(2, [Pred, Pred, Bits(32)]),
        Vote => between(2, [Bits(32), Pred, Bits(32)]),
        Match => exactly([Bits(32), is, Bits(32)]),
        Redux => exactly([is, is, Bits(32)]),
        _ => None,
    }
}

fn is_integer(ty: Type) -> bool {
    use Type::*;
    matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64)
}

/// The name a type is written with, for messages.
fn name(ty: Type) -> String {
    format!(".{ty:?}").to_lowercase()
}

impl<'t> Parser<'t> {
    /// Checks an instruction whose operands have been read, and puts its literals and addresses into one form.
    pub fn check(&self, instr: &mut Instr) -> Result<(), Error> {
        let Some(shape) = shape(instr.op, &instr.mods, &instr.types) else {
            return Ok(());
        };
        let count = instr.operands.len();
        if count < shape.least || count > shape.most {
            let token = self
                .operand_tokens
                .get(shape.most)
                .copied()
                .unwrap_or(self.tok);
            let wanted = if shape.least == shape.most {
                format!("{}", shape.least)
            } else {
                format!("{} to {}", shape.least, shape.most)
            };
            let message = format!(
                "'{}' takes {wanted} operands, found {count}, at '{}'",
                instr.op,
                shown(token.text)
            );
            return Err(self.error(token, message));
        }
        let Some(function) = &self.function else {
            return Ok(());
        };
        for (i, operand) in instr.operands.iter_mut().enumerate() {
            let token = self.operand_tokens.get(i).copied().unwrap_or(self.tok);
            let want = shape.wants[i];
            if i == 0 && shape.result {
                match operand {
                    Operand::Reg(_)
                    | Operand::RegComponent(..)
                    | Operand::Vector(_)
                    | Operand::Pair(..)
                    | Operand::Sink => {}
                    _ => {
                        return Err(self.error(
                            token,
                            format!("'{}' cannot be written to", shown(token.text)),
                        ));
                    }
                }
            }
            self.fits(&function.body, operand, want, token)?;
        }
        Ok(())
    }

    fn fits(
        &self,
        body: &Body,
        operand: &mut Operand,
        want: Want,
        token: Token<'t>,
    ) -> Result<(), Error> {
        let refuse = |wanted: String, found: String| {
            Err(self.error(
                token,
                format!("expected {wanted}, '{}' is {found}", shown(token.text)),
            ))
        };
        match operand {
            Operand::Reg(r) | Operand::RegComponent(r, _) | Operand::NotReg(r) => {
                let Register { ty, vector, .. } = body.regs[r.0 as usize];
                let whole = !matches!(operand, Operand::RegComponent(..));
                let bits = if whole { ty.bits() * vector } else { ty.bits() };
                let negated = matches!(operand, Operand::NotReg(_));
                if negated && !matches!(want, Pred | Any) {
                    return refuse("a value".to_string(), "a negated predicate".to_string());
                }
                let fits = match want {
                    Any => true,
                    Pred => ty == Type::Pred,
                    Address => false,
                    _ if ty == Type::Pred => false,
                    Bits(n) => bits == n,
                    Size(t) => bits == t.bits(),
                    Wide(t) => bits >= t.bits(),
                    Is(t) => {
                        let (f, g) = (
                            matches!(t, Type::F32 | Type::F64),
                            matches!(ty, Type::F32 | Type::F64),
                        );
                        bits == t.bits() && !(is_integer(t) && g || f && is_integer(ty))
                    }
                };
                if fits {
                    return Ok(());
                }
                let wanted = match want {
                    Pred => "a predicate".to_string(),
                    Address => "an address in brackets".to_string(),
                    _ if ty == Type::Pred => "a value".to_string(),
                    Bits(n) => format!("{n} bits"),
                    Size(t) => format!("{} bits", t.bits()),
                    Wide(t) => format!("a register of at least {} bits", t.bits()),
                    Is(t) => format!("an operand of type {}", name(t)),
                    Any => String::new(),
                };
                refuse(wanted, format!("a register of type {}", name(ty)))
            }
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => {
                match want {
                    Pred => match operand {
                        Operand::Int(v) => *v = i64::from(*v != 0),
                        _ => {
                            return refuse(
                                "a predicate".to_string(),
                                "a floating-point constant".to_string(),
                            );
                        }
                    },
                    Address => {
                        return refuse(
                            "an address in brackets".to_string(),
                            "a constant".to_string(),
                        );
                    }
                    Is(t) | Wide(t) | Size(t) => convert(operand, t),
                    Bits(32) => convert(operand, Type::B32),
                    Bits(64) => convert(operand, Type::B64),
                    _ => {}
                }
                Ok(())
            }
            Operand::Pair(first, second) => {
                // The second of a pair is a predicate wherever there is one.
                self.fits(body, first, want, token)?;
                self.fits(body, second, Pred, token)
            }
            Operand::Vector(elements) => {
                let each = match want {
                    Wide(t) => Wide(t),
                    Size(t)
                        if !elements.is_empty()
                            && (t.bits() as usize).is_multiple_of(elements.len()) =>
                    {
                        Bits(t.bits() / elements.len() as u32)
                    }
                    _ => return Ok(()),
                };
                elements
                    .iter_mut()
                    .try_for_each(|element| self.fits(body, element, each, token))
            }
            Operand::Var(var, offset) if matches!(want, Address) => {
                *operand = Operand::Addr(Base::Var(*var), *offset);
                Ok(())
            }
            Operand::Addr(..) if matches!(want, Address | Any) => Ok(()),
            Operand::Addr(..) => {
                refuse("a value".to_string(), "an address in brackets".to_string())
            }
            Operand::Sink | Operand::Special(_) if !matches!(want, Address) => Ok(()),
            _ if matches!(want, Address) => {
                refuse("an address in brackets".to_string(), "none".to_string())
            }
            _ => Ok(()),
        }
    }
}

/// Gives a literal the form that its operand's type asks for: a floating-point literal that of its width, an integer
/// where a float is expected its value.
fn convert(operand: &mut Operand, ty: Type) {
    let float = matches!(ty, Type::F32 | Type::F64);
    let value = match operand {
        Operand::Int(v) if float => *v as f64,
        Operand::F32(bits) if ty.bits() == 64 => f64::from(f32::from_bits(*bits)),
        Operand::F64(bits) if ty.bits() == 32 => f64::from_bits(*bits),
        _ => return,
    };
    *operand = if ty.bits() == 64 {
        Operand::F64(value.to_bits())
    } else {
        Operand::F32((value as f32).to_bits())
    };
}
