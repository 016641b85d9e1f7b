//! References for rounding: exact comparison with the numbers of a format, and the rounding modes of the processor.

use crate::semantics::lane::rounding::{Format, RM, RN, RNA, RP, RZ};
use std::cmp::Ordering;

/// A number as an integer times a power of two.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    pub negative: bool,
    pub sig: u128,
    pub exp: i32,
}

impl Number {
    pub fn of(x: f64) -> Number {
        let bits = x.to_bits();
        let (negative, sig, exp) = decode(
            Format {
                fraction: 52,
                exponent: 11,
            },
            bits & !(1 << 63),
            bits >> 63 != 0,
        );
        Number { negative, sig, exp }
    }
    fn magnitude(self, sig: u128, exp: i32) -> Ordering {
        if self.sig == 0 || sig == 0 {
            return self.sig.cmp(&sig);
        }
        let top = |sig: u128, exp: i32| exp + 128 - sig.leading_zeros() as i32;
        let by_top = top(self.sig, self.exp).cmp(&top(sig, exp));
        by_top.then((self.sig << self.sig.leading_zeros()).cmp(&(sig << sig.leading_zeros())))
    }
}

fn decode(f: Format, magnitude: u64, negative: bool) -> (bool, u128, i32) {
    let field = (magnitude >> f.fraction) as i32;
    let fraction = u128::from(magnitude & ((1 << f.fraction) - 1));
    let bias = (1 << (f.exponent - 1)) - 1;
    let sig = if field == 0 {
        fraction
    } else {
        fraction | 1 << f.fraction
    };
    (negative, sig, field.max(1) - bias - f.fraction as i32)
}

/// Rounds by a search among the numbers of the format.
pub fn round(x: Number, f: Format, mode: u8) -> u64 {
    let sign = u64::from(x.negative) << (f.fraction + f.exponent);
    let infinity = ((1_u64 << f.exponent) - 1) << f.fraction;
    // The greatest number that is not greater.
    let (mut low, mut high) = (0, infinity);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let (_, sig, exp) = decode(f, middle, false);
        if x.magnitude(sig, exp) == Ordering::Less {
            high = middle
        } else {
            low = middle
        }
    }
    let (_, sig, exp) = decode(f, low, false);
    if x.magnitude(sig, exp) == Ordering::Equal {
        return sign | low;
    }
    // The midpoint to the next number; beyond the last one, as if the format continued.
    let half = x.magnitude(2 * sig + 1, exp - 1);
    let up = match mode {
        RN => half == Ordering::Greater || half == Ordering::Equal && low & 1 == 1,
        RNA => half != Ordering::Less,
        RM => x.negative,
        RP => !x.negative,
        _ => false,
    };
    sign | (low + u64::from(up))
}

pub const F16: Format = Format {
    fraction: 10,
    exponent: 5,
};
pub const BF16: Format = Format {
    fraction: 7,
    exponent: 8,
};
pub const F32: Format = Format {
    fraction: 23,
    exponent: 8,
};
pub const F64: Format = Format {
    fraction: 52,
    exponent: 11,
};

/// A finite, infinite or NaN double in another format; `nan` is that format's NaN.
pub fn from_f64(x: f64, f: Format, mode: u8, nan: u64) -> u64 {
    if x.is_nan() {
        nan
    } else if x.is_infinite() {
        u64::from(x < 0.0) << (f.fraction + f.exponent) | ((1 << f.exponent) - 1) << f.fraction
    } else {
        round(Number::of(x), f, mode)
    }
}

pub const MODES: [(&str, u8); 4] = [("rn", RN), ("rz", RZ), ("rm", RM), ("rp", RP)];

/// Instructions of the processor under a rounding mode.
#[cfg(target_arch = "x86_64")]
pub mod hardware {
    use super::{RM, RN, RP};
    use std::arch::asm;

    fn control(mode: u8) -> u32 {
        0x1f80
            | match mode {
                RN => 0,
                RM => 1 << 13,
                RP => 2 << 13,
                _ => 3 << 13,
            }
    }

    macro_rules! binary {
        ($($name:ident $t:ty, $op:literal;)*) => { $(
            pub fn $name(a: $t, b: $t, mode: u8) -> $t {
                let (mut r, set, mut saved) = (a, control(mode), 0_u32);
                // SAFETY: the control register is restored before the block ends.
                unsafe {
                    asm!(
                        "stmxcsr [{saved}]", "ldmxcsr [{set}]", concat!($op, " {r}, {b}"), "ldmxcsr [{saved}]",
                        saved = in(reg) &mut saved, set = in(reg) &set, r = inout(xmm_reg) r, b = in(xmm_reg) b,
                    );
                }
                r
            }
        )* };
    }
    binary! {
        add32 f32, "addss"; mul32 f32, "mulss"; div32 f32, "divss"; sqrt32 f32, "sqrtss";
        add64 f64, "addsd"; mul64 f64, "mulsd"; div64 f64, "divsd"; sqrt64 f64, "sqrtsd";
    }

    macro_rules! fused {
        ($($name:ident $t:ty, $op:literal;)*) => { $(
            /// Only where the processor has fused multiply-add.
            pub fn $name(a: $t, b: $t, c: $t, mode: u8) -> $t {
                let (mut r, set, mut saved) = (a, control(mode), 0_u32);
                // SAFETY: the control register is restored before the block ends.
                unsafe {
                    asm!(
                        "stmxcsr [{saved}]", "ldmxcsr [{set}]", concat!($op, " {r}, {b}, {c}"), "ldmxcsr [{saved}]",
                        saved = in(reg) &mut saved, set = in(reg) &set, r = inout(xmm_reg) r, b = in(xmm_reg) b,
                        c = in(xmm_reg) c,
                    );
                }
                r
            }
        )* };
    }
    fused! { fma32 f32, "vfmadd213ss"; fma64 f64, "vfmadd213sd"; }
}
