//! Directed rounding that does not change the rounding mode of the processor.
//!
//! Single precision is computed in double precision: a result rounded to odd rounds to a shorter format like the exact
//! value. Double precision is computed in integers ([`Exact`]).

/// To nearest, ties to even.
pub const RN: u8 = 0;
/// Towards zero.
pub const RZ: u8 = 1;
/// Towards minus infinity.
pub const RM: u8 = 2;
/// Towards plus infinity.
pub const RP: u8 = 3;
/// To nearest, ties away from zero.
pub const RNA: u8 = 4;

/// Sum of two doubles rounded to odd: an inexact sum becomes the neighbour with an odd significand. The sum must not be near
/// the ends of the range; sums of single-precision values and products are not.
#[inline(always)]
pub fn odd_sum(a: f64, b: f64) -> f64 {
    let s = a + b;
    let bb = s - a;
    let err = (a - (s - bb)) + (b - bb);
    let bits = s.to_bits();
    let outwards = (err > 0.0) == (s > 0.0);
    let other = if outwards {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    f64::from_bits(if (err.abs() > 0.0) & (bits & 1 == 0) {
        other
    } else {
        bits
    })
}

/// Zero as the exact sum of opposite numbers: negative when rounding down, otherwise positive.
#[inline(always)]
fn zero_sign<const M: u8>(s: f64, a: f64, b: f64) -> f64 {
    if M == RM && s == 0.0 && (a.is_sign_negative() | b.is_sign_negative()) {
        -0.0
    } else {
        s
    }
}

/// Rounds a double, exact or rounded to odd, to single precision.
#[inline(always)]
pub fn narrow<const M: u8>(x: f64) -> f32 {
    let t = x as f32;
    if M == RN {
        return t;
    }
    let back = f64::from(t);
    let bits = t.to_bits();
    let negative = bits >> 31 != 0;
    let inwards = match M {
        RZ => back.abs() > x.abs(),
        RM => (back > x) & !negative,
        _ => (back < x) & negative,
    };
    let outwards = match M {
        RZ => false,
        RM => (back > x) & negative,
        _ => (back < x) & !negative,
    };
    let bits = if inwards { bits.wrapping_sub(1) } else { bits };
    f32::from_bits(if outwards { bits.wrapping_add(1) } else { bits })
}

/// Rounds a double to odd in single precision, for a second rounding to a format of at most 22 bits.
#[inline(always)]
pub fn narrow_odd(x: f64) -> f32 {
    let t = narrow::<RZ>(x);
    let inexact = f64::from(t) != x;
    // Setting the lowest bit of a NaN leaves it a NaN.
    f32::from_bits(t.to_bits() | u32::from(inexact))
}

/// Converts an integer to a double, rounded to odd.
#[inline(always)]
pub fn odd_u64(v: u64) -> f64 {
    // Above 2^53, the lowest 11 bits are folded into one, which leaves at most 53 significant bits.
    let folded = v & !0x7ff | if v & 0x7ff != 0 { 0x800 } else { 0 };
    if v < 1 << 53 { v as f64 } else { folded as f64 }
}

/// `a + b` in single precision.
#[inline(always)]
pub fn add<const M: u8>(a: f32, b: f32) -> f32 {
    if M == RN {
        return a + b;
    }
    let (a, b) = (f64::from(a), f64::from(b));
    narrow::<M>(zero_sign::<M>(odd_sum(a, b), a, b))
}
/// `a · b` in single precision.
#[inline(always)]
pub fn mul<const M: u8>(a: f32, b: f32) -> f32 {
    if M == RN {
        a * b
    } else {
        narrow::<M>(f64::from(a) * f64::from(b))
    }
}
/// `a · b + c` with one rounding, in single precision.
#[inline(always)]
pub fn fma<const M: u8>(a: f32, b: f32, c: f32) -> f32 {
    if M == RN {
        return a.mul_add(b, c);
    }
    let (p, c) = (f64::from(a) * f64::from(b), f64::from(c));
    narrow::<M>(zero_sign::<M>(odd_sum(p, c), p, c))
}
/// `a / b` in single precision. Rounding twice is exact: a quotient of 24-bit numbers is a 24-bit number, or its distance
/// from one exceeds the rounding error of a double.
#[inline(always)]
pub fn div<const M: u8>(a: f32, b: f32) -> f32 {
    if M == RN {
        a / b
    } else {
        narrow::<M>(f64::from(a) / f64::from(b))
    }
}
/// Square root in single precision. Rounding twice is exact for the same reason as in [`div`].
#[inline(always)]
pub fn sqrt<const M: u8>(a: f32) -> f32 {
    if M == RN {
        a.sqrt()
    } else {
        narrow::<M>(f64::from(a).sqrt())
    }
}

/// The number `(-1)^negative · sig · 2^exp`. The lowest bit of `sig` may be sticky if `sig` has at least two bits more than
/// the result.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    /// The sign.
    pub negative: bool,
    /// The significand.
    pub sig: u128,
    /// Exponent of its lowest bit.
    pub exp: i32,
}

/// A binary floating-point format with IEEE encoding.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Bits of the significand after the point.
    pub fraction: u32,
    /// Bits of the exponent.
    pub exponent: u32,
}
/// Double precision.
pub const F64: Format = Format {
    fraction: 52,
    exponent: 11,
};

impl Exact {
    /// Decodes a finite double.
    pub fn new(x: f64) -> Exact {
        let bits = x.to_bits();
        let field = (bits >> 52 & 0x7ff) as i32;
        let fraction = u128::from(bits & ((1 << 52) - 1));
        let sig = if field == 0 {
            fraction
        } else {
            fraction | 1 << 52
        };
        Exact {
            negative: bits >> 63 != 0,
            sig,
            exp: field.max(1) - 1075,
        }
    }

    /// Normalizes the significand so that its top bit is bit 125.
    fn normal(self) -> Exact {
        let up = self.sig.leading_zeros() as i32 - 2;
        if self.sig == 0 {
            return self;
        }
        let sig = if up >= 0 {
            self.sig << up
        } else {
            self.sig >> -up | u128::from(self.sig << (128 + up) != 0)
        };
        Exact {
            sig,
            exp: self.exp - up,
            ..self
        }
    }

    /// Sum, exact except for a sticky lowest bit; `None` if it is zero.
    fn plus(self, other: Exact) -> Option<Exact> {
        let (a, b) = (self.normal(), other.normal());
        if b.sig == 0 {
            return if a.sig == 0 { None } else { Some(a) };
        }
        if a.sig == 0 {
            return Some(b);
        }
        let (a, b) = if a.exp >= b.exp { (a, b) } else { (b, a) };
        let d = (a.exp - b.exp) as u32;
        let low = if d > 127 {
            1
        } else {
            b.sig >> d | u128::from(d > 0 && b.sig << (128 - d) != 0)
        };
        if a.negative == b.negative {
            return Some(Exact {
                sig: a.sig + low,
                ..a
            });
        }
        match a.sig.cmp(&low) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(Exact {
                sig: a.sig - low,
                ..a
            }),
            std::cmp::Ordering::Less => Some(Exact {
                negative: b.negative,
                sig: low - a.sig,
                ..a
            }),
        }
    }

    /// Rounds to a format and encodes the result.
    pub fn encode(self, f: Format, mode: u8) -> u64 {
        let sign = u64::from(self.negative) << (f.fraction + f.exponent);
        if self.sig == 0 {
            return sign;
        }
        let bias = (1 << (f.exponent - 1)) - 1;
        let lowest = 1 - bias - f.fraction as i32;
        let top = self.exp + 127 - self.sig.leading_zeros() as i32;
        let unit = (top - f.fraction as i32).max(lowest);
        let shift = unit - self.exp;
        // The kept bits, and the comparison of the dropped bits with half a unit.
        let (kept, dropped) = if shift <= 0 {
            ((self.sig << -shift) as u64, 0)
        } else if shift > 127 {
            (
                0,
                if shift == 128 {
                    (self.sig > 1 << 127) as i32 + (self.sig >= 1 << 127) as i32 + 1
                } else {
                    1
                },
            )
        } else {
            let rest = self.sig & ((1 << shift) - 1);
            let half = 1 << (shift - 1);
            let dropped = if rest == 0 {
                0
            } else {
                1 + (rest >= half) as i32 + (rest > half) as i32
            };
            ((self.sig >> shift) as u64, dropped)
        };
        let up = match mode {
            RN => dropped == 3 || dropped == 2 && kept & 1 == 1,
            RNA => dropped >= 2,
            RM => dropped > 0 && self.negative,
            RP => dropped > 0 && !self.negative,
            _ => false,
        };
        let bits = ((unit - lowest) as u64)
            .saturating_mul(1 << f.fraction)
            .saturating_add(kept + u64::from(up));
        let infinity = ((1 << f.exponent) - 1) << f.fraction;
        let bits = if bits < infinity {
            bits
        } else {
            let stays = match mode {
                RZ => true,
                RM => !self.negative,
                RP => self.negative,
                _ => false,
            };
            infinity - u64::from(stays)
        };
        sign | bits
    }

    fn double(self, mode: u8) -> f64 {
        f64::from_bits(self.encode(F64, mode))
    }
}

/// `a · b + c` in double precision.
pub fn fma64(a: f64, b: f64, c: f64, mode: u8) -> f64 {
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        // Infinite or NaN. The product of finite factors might overflow and is not needed.
        return if a.is_finite() && b.is_finite() {
            c
        } else {
            a * b + c
        };
    }
    let (x, y, z) = (Exact::new(a), Exact::new(b), Exact::new(c));
    let p = Exact {
        negative: x.negative != y.negative,
        sig: x.sig * y.sig,
        exp: x.exp + y.exp,
    };
    match p.plus(z) {
        Some(s) => s.double(mode),
        // The sum of zeros of the same sign keeps the sign.
        None if p.sig == 0 && z.sig == 0 && p.negative == z.negative => c,
        None if mode == RM => -0.0,
        None => 0.0,
    }
}
/// `a + b` in double precision.
pub fn add64(a: f64, b: f64, mode: u8) -> f64 {
    fma64(a, 1.0, b, mode)
}
/// `a · b` in double precision.
pub fn mul64(a: f64, b: f64, mode: u8) -> f64 {
    if !(a.is_finite() && b.is_finite()) {
        return a * b;
    }
    let (x, y) = (Exact::new(a), Exact::new(b));
    Exact {
        negative: x.negative != y.negative,
        sig: x.sig * y.sig,
        exp: x.exp + y.exp,
    }
    .double(mode)
}
/// `a / b` in double precision.
pub fn div64(a: f64, b: f64, mode: u8) -> f64 {
    if !(a.is_finite() && b.is_finite()) || a == 0.0 || b == 0.0 {
        return a / b;
    }
    let (x, y) = (Exact::new(a), Exact::new(b));
    let up = x.sig.leading_zeros();
    let n = x.sig << up;
    // The quotient has at least 128 - 53 bits, more than two beyond the 53 of the result.
    let q = (n / y.sig) | u128::from(n % y.sig != 0);
    Exact {
        negative: x.negative != y.negative,
        sig: q,
        exp: x.exp - up as i32 - y.exp,
    }
    .double(mode)
}
/// Square root in double precision.
pub fn sqrt64(a: f64, mode: u8) -> f64 {
    if a.is_nan() || a <= 0.0 || a.is_infinite() {
        return a.sqrt();
    }
    let x = Exact::new(a);
    let up = x.sig.leading_zeros() as i32;
    // Make the exponent even.
    let up = if (x.exp - up) % 2 == 0 { up } else { up - 1 };
    let n = x.sig << up;
    let r = n.isqrt();
    Exact {
        negative: false,
        sig: r | u128::from(r * r != n),
        exp: (x.exp - up) / 2,
    }
    .double(mode)
}
