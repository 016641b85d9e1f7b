//! Constant expressions (PTX ISA, "Constant Expressions").

use crate::error::{Error, shortened};
use crate::parse::Parser;
use crate::parse::lexer::{Token, TokenKind};

/// Value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Constant {
    /// An integer in 64 bits, and whether it is unsigned.
    Int(u64, bool),
    /// The bits of a `0f` literal.
    F32(u32),
    /// The bits of a `0d` literal or of a computed value.
    F64(u64),
}

impl Constant {
    pub fn as_f64(self) -> f64 {
        match self {
            Constant::Int(v, true) => v as f64,
            Constant::Int(v, false) => v as i64 as f64,
            Constant::F32(bits) => f64::from(f32::from_bits(bits)),
            Constant::F64(bits) => f64::from_bits(bits),
        }
    }

    fn truth(self) -> bool {
        match self {
            Constant::Int(v, _) => v != 0,
            other => other.as_f64() != 0.0,
        }
    }
}

fn float(x: f64) -> Constant {
    Constant::F64(x.to_bits())
}

fn truth(b: bool) -> Constant {
    Constant::Int(u64::from(b), false)
}

/// Precedence of a binary operator; 0 for other tokens.
fn precedence(kind: TokenKind) -> u8 {
    match kind {
        TokenKind::Punct2([b'|', b'|']) => 1,
        TokenKind::Punct2([b'&', b'&']) => 2,
        TokenKind::Punct(b'|') => 3,
        TokenKind::Punct(b'^') => 4,
        TokenKind::Punct(b'&') => 5,
        TokenKind::Punct2([b'=' | b'!', b'=']) => 6,
        TokenKind::Punct(b'<' | b'>') | TokenKind::Punct2([b'<' | b'>', b'=']) => 7,
        TokenKind::Punct2([b'<', b'<'] | [b'>', b'>']) => 8,
        TokenKind::Punct(b'+' | b'-') => 9,
        TokenKind::Punct(b'*' | b'/' | b'%') => 10,
        _ => 0,
    }
}

/// Precedence of products: the operands of an address offset.
pub(crate) const PRODUCT: u8 = 10;
/// Precedence of sums: the expressions between `<` and `>`.
pub(crate) const SUM: u8 = 9;

impl<'t> Parser<'t> {
    /// Whether the next token starts a constant expression.
    pub fn at_constant(&mut self) -> bool {
        match self.tok.kind {
            TokenKind::Int(..)
            | TokenKind::F32(_)
            | TokenKind::F64(..)
            | TokenKind::Punct(b'(' | b'~' | b'+') => true,
            TokenKind::Punct(b'-' | b'!') => {
                let next = self.peek();
                next.kind != TokenKind::Ident || next.text == "WARP_SZ"
            }
            TokenKind::Ident => self.tok.text == "WARP_SZ",
            TokenKind::Dot => self.tok.text.as_bytes()[1].is_ascii_digit(),
            _ => false,
        }
    }

    /// A constant expression.
    pub fn constant(&mut self) -> Result<Constant, Error> {
        self.nested(|p| {
            let condition = p.binary(1)?;
            if !p.eat(b'?') {
                return Ok(condition);
            }
            let yes = p.constant()?;
            p.expect(b':', "in a conditional expression")?;
            let no = p.constant()?;
            Ok(if condition.truth() { yes } else { no })
        })
    }

    /// A constant expression with an integer value, in two's complement.
    pub fn integer(&mut self, what: &str) -> Result<u64, Error> {
        let token = self.tok;
        if !self.at_constant() {
            return Err(self.expected(what));
        }
        match self.constant()? {
            Constant::Int(v, _) => Ok(v),
            _ => Err(self.error(
                token,
                format!(
                    "expected {what}, found the floating-point constant '{}'",
                    shortened(token.text)
                ),
            )),
        }
    }

    /// A constant expression with a value that fits in 32 unsigned bits.
    pub fn small(&mut self, what: &str) -> Result<u32, Error> {
        let token = self.tok;
        let value = self.integer(what)?;
        u32::try_from(value).map_err(|_| {
            self.error(
                token,
                format!(
                    "expected {what}, '{}' is out of range",
                    shortened(token.text)
                ),
            )
        })
    }

    /// Operators of at least this precedence.
    pub fn binary(&mut self, least: u8) -> Result<Constant, Error> {
        let mut left = self.unary()?;
        loop {
            let how = precedence(self.tok.kind);
            if how < least || how == 0 {
                return Ok(left);
            }
            let operator = self.bump();
            let right = self.nested(|p| p.binary(how + 1))?;
            left = self.apply(operator, left, right)?;
        }
    }

    fn unary(&mut self) -> Result<Constant, Error> {
        let token = self.tok;
        match token.kind {
            TokenKind::Int(v, unsigned) => {
                self.bump();
                Ok(Constant::Int(v, unsigned || v > i64::MAX as u64))
            }
            TokenKind::F32(bits) => {
                self.bump();
                Ok(Constant::F32(bits))
            }
            TokenKind::F64(bits, _) => {
                self.bump();
                Ok(Constant::F64(bits))
            }
            TokenKind::Ident if token.text == "WARP_SZ" => {
                self.bump();
                Ok(Constant::Int(32, false))
            }
            TokenKind::Dot => match token.text.parse::<f64>() {
                Ok(x) if token.text.as_bytes()[1].is_ascii_digit() => {
                    self.bump();
                    Ok(float(x))
                }
                _ => Err(self.expected("a constant")),
            },
            TokenKind::Punct(b'(') => {
                self.bump();
                if self.tok.kind == TokenKind::Dot && matches!(self.tok.word(), "s64" | "u64") {
                    let unsigned = self.bump().word() == "u64";
                    self.expect(b')', "after a cast")?;
                    return Ok(match self.nested(Self::unary)? {
                        Constant::Int(v, _) => Constant::Int(v, unsigned),
                        other if unsigned => Constant::Int(other.as_f64() as u64, true),
                        other => Constant::Int(other.as_f64() as i64 as u64, false),
                    });
                }
                let value = self.constant()?;
                self.expect(b')', "after a constant expression")?;
                Ok(value)
            }
            TokenKind::Punct(b'-' | b'+' | b'!' | b'~') => {
                self.bump();
                let value = self.nested(Self::unary)?;
                match (token.kind, value) {
                    (TokenKind::Punct(b'+'), v) => Ok(v),
                    (TokenKind::Punct(b'!'), v) => Ok(truth(!v.truth())),
                    (TokenKind::Punct(b'-'), Constant::Int(v, unsigned)) => {
                        Ok(Constant::Int(v.wrapping_neg(), unsigned))
                    }
                    (TokenKind::Punct(b'-'), Constant::F32(bits)) => {
                        Ok(Constant::F32(bits ^ 1 << 31))
                    }
                    (TokenKind::Punct(b'-'), Constant::F64(bits)) => {
                        Ok(Constant::F64(bits ^ 1 << 63))
                    }
                    (_, Constant::Int(v, unsigned)) => Ok(Constant::Int(!v, unsigned)),
                    _ => Err(self.error(token, "'~' of a floating-point constant".to_string())),
                }
            }
            _ => Err(self.expected("a constant")),
        }
    }

    fn apply(
        &self,
        operator: Token<'t>,
        left: Constant,
        right: Constant,
    ) -> Result<Constant, Error> {
        use Constant::Int;
        let (Int(a, ua), Int(b, ub)) = (left, right) else {
            let (a, b) = (left.as_f64(), right.as_f64());
            return match operator.text {
                "+" => Ok(float(a + b)),
                "-" => Ok(float(a - b)),
                "*" => Ok(float(a * b)),
                "/" => Ok(float(a / b)),
                "<" => Ok(truth(a < b)),
                ">" => Ok(truth(a > b)),
                "<=" => Ok(truth(a <= b)),
                ">=" => Ok(truth(a >= b)),
                "==" => Ok(truth(a == b)),
                "!=" => Ok(truth(a != b)),
                "&&" => Ok(truth(left.truth() && right.truth())),
                "||" => Ok(truth(left.truth() || right.truth())),
                other => {
                    Err(self.error(operator, format!("'{other}' of a floating-point constant")))
                }
            };
        };
        let unsigned = ua || ub;
        let (sa, sb) = (a as i64, b as i64);
        let less = |x: u64, y: u64| {
            if unsigned {
                x < y
            } else {
                (x as i64) < (y as i64)
            }
        };
        Ok(match operator.text {
            "+" => Int(a.wrapping_add(b), unsigned),
            "-" => Int(a.wrapping_sub(b), unsigned),
            "*" => Int(a.wrapping_mul(b), unsigned),
            "/" | "%" if b == 0 => {
                return Err(self.error(
                    operator,
                    format!("'{}' by zero in a constant expression", operator.text),
                ));
            }
            "/" if unsigned => Int(a / b, true),
            "/" => Int(sa.wrapping_div(sb) as u64, false),
            "%" if unsigned => Int(a % b, true),
            "%" => Int(sa.wrapping_rem(sb) as u64, false),
            "<<" => Int(if b < 64 { a << b } else { 0 }, ua),
            ">>" if ua => Int(if b < 64 { a >> b } else { 0 }, true),
            ">>" => Int((sa >> b.min(63)) as u64, false),
            "<" => truth(less(a, b)),
            ">" => truth(less(b, a)),
            "<=" => truth(!less(b, a)),
            ">=" => truth(!less(a, b)),
            "==" => truth(a == b),
            "!=" => truth(a != b),
            "&" => Int(a & b, unsigned),
            "|" => Int(a | b, unsigned),
            "^" => Int(a ^ b, unsigned),
            "&&" => truth(a != 0 && b != 0),
            "||" => truth(a != 0 || b != 0),
            other => return Err(self.error(operator, format!("unexpected operator '{other}'"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Constant, Error> {
        let mut parser = Parser::new(text);
        let value = parser.constant()?;
        if parser.tok.kind == TokenKind::End {
            Ok(value)
        } else {
            Err(parser.expected("the end"))
        }
    }

    #[test]
    fn arithmetic() {
        let int = |text| match value(text) {
            Ok(Constant::Int(v, _)) => v as i64,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(int("1 + 2 * 3 - 4"), 3);
        assert_eq!(int("0x10 + 3 * (4 - 1)"), 25);
        assert_eq!(int("-(1 << 40)"), -(1 << 40));
        assert_eq!(int("7 / -2"), -3);
        assert_eq!(int("-7 % 3"), -1);
        assert_eq!(int("3U > 2 ? 8 : 9"), 8);
        assert_eq!(int("0 ? 1 : 0 ? 2 : 3"), 3);
        assert_eq!(int("~0 & 0xff ^ 1 | 256"), 0x1fe);
        assert_eq!(int("-1 < 0 && !(1 == 2)"), 1);
        assert_eq!(int("(.u64) -1 > 0"), 1);
        assert_eq!(int("-8 >> 1"), -4);
        assert_eq!(int("(.s64)0xffffffffffffffff >> 63"), -1);
        assert_eq!(int("WARP_SZ - 1"), 31);
        assert_eq!(int("1 << 64"), 0);
        assert_eq!(int("(.s64) 2.9"), 2);
        assert_eq!(value("-0f3F800000"), Ok(Constant::F32((-1f32).to_bits())));
        assert_eq!(value("1.5 * 2"), Ok(float(3.0)));
        assert_eq!(value(".5"), Ok(float(0.5)));
    }

    #[test]
    fn refusals() {
        for bad in [
            "1 / 0", "5 % 0", "~1.0", "1 +", "(1", "1 ? 2", "1.0 << 2", "x",
        ] {
            assert!(value(bad).is_err(), "{bad}");
        }
        let deep = "(".repeat(100_000);
        assert!(value(&deep).unwrap_err().message.contains("deep"));
        assert!(value(&"-".repeat(100_000)).is_err());
        assert!(value(&"1 ? ".repeat(100_000)).is_err());
        // Long expressions do not nest.
        assert!(value(&format!("1{}", " + 1".repeat(100_000))).is_ok());
    }
}
