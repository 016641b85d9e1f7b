//! Sums of products as tensor cores compute them.
//!
//! All terms of a sum, the products and the accumulator, are aligned to the largest exponent among them and truncated to two
//! bits behind those of single precision. The exponent of a product is the sum of those of its factors; zeros have none. The sum
//! of the aligned terms is exact. It is truncated to single precision, or rounded to the nearest half.
//!
//! Read off an H100: `tests/differential/matrices.py` compares every form with a GPU, bit by bit.

use half::f16;

/// Bits behind the point of the aligned terms.
const POINT: i32 = 23 + 2;

/// The exponent of zero: lower than that of any term.
const NO_EXPONENT: i32 = -400;

/// Columns that are computed together.
const WIDE: usize = 8;

/// Numbers, with the exponents that their encodings have: that of a subnormal number is the least.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Values.
    pub value: Vec<f64>,
    /// Exponents.
    pub exponent: Vec<i32>,
    /// Whether any is infinite or NaN.
    pub special: bool,
}

impl Numbers {
    /// Appends a number.
    pub fn push(&mut self, value: f64, exponent: i32) {
        self.special |= !value.is_finite();
        self.value.push(value);
        self.exponent
            .push(if value == 0.0 { NO_EXPONENT } else { exponent });
    }
}

/// The number with these bits, in a format with `exponent_bits` and `fraction` bits, and its exponent.
pub fn decode(bits: u32, exponent_bits: u32, fraction: u32) -> (f64, i32) {
    let most = (1 << exponent_bits) - 1;
    let bias = most >> 1;
    let exponent = (bits >> fraction & most as u32).cast_signed();
    let low = bits & ((1 << fraction) - 1);
    let significand = if exponent == 0 {
        low
    } else {
        low | 1 << fraction
    };
    let of_number = exponent.max(1) - bias;
    let magnitude = match (exponent == most, low == 0) {
        (false, _) => f64::from(significand) * power_of_two(of_number - fraction.cast_signed()),
        (true, true) => f64::INFINITY,
        (true, false) => f64::NAN,
    };
    let negative = bits >> (exponent_bits + fraction) & 1 != 0;
    (if negative { -magnitude } else { magnitude }, of_number)
}

/// `2^exponent`, for the exponents of normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A row of A, a matrix B and a row of C: the operands of one row of the result.
#[derive(Clone, Copy, Debug)]
pub struct RowOf<'a> {
    /// Elements of the row of A, by position in the sum.
    pub a: &'a [f64],
    /// Their exponents.
    pub a_exponent: &'a [i32],
    /// The row of B that each is multiplied with.
    pub row_of_b: &'a [u16],
    /// Matrix B.
    pub b: &'a Numbers,
    /// Columns of B.
    pub columns: usize,
}

/// The exact sums of the aligned terms of a row: `c` and the products of the positions in `terms`. Infinities and NaNs count as
/// zero.
pub fn aligned_sums(row: &RowOf<'_>, terms: &[usize], c: &Numbers, from: usize, out: &mut [f64]) {
    for (n, out) in out.chunks_mut(WIDE).enumerate() {
        let column = WIDE * n;
        #[cfg(target_arch = "x86_64")]
        if crate::cpu_features::has_x86_64_v3() {
            // SAFETY: the machine has these features.
            unsafe { aligned_sums_v3(row, terms, c, from + column, column, out) };
            continue;
        }
        aligned_sums_of(row, terms, c, from + column, column, out);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn aligned_sums_v3(
    row: &RowOf<'_>,
    terms: &[usize],
    c: &Numbers,
    from: usize,
    column: usize,
    out: &mut [f64],
) {
    aligned_sums_of(row, terms, c, from, column, out);
}

#[inline(always)]
fn aligned_sums_of(
    row: &RowOf<'_>,
    terms: &[usize],
    c: &Numbers,
    from: usize,
    column: usize,
    out: &mut [f64],
) {
    let wide = |list: &[f64], at: usize| -> [f64; WIDE] {
        list[at..].first_chunk().copied().unwrap_or_default()
    };
    let wide_exponents = |list: &[i32], at: usize| -> [i32; WIDE] {
        list[at..].first_chunk().copied().unwrap_or_default()
    };
    let c_value = wide(&c.value, from);
    let mut largest = wide_exponents(&c.exponent, from);
    for &k in terms {
        let b = wide_exponents(
            &row.b.exponent,
            usize::from(row.row_of_b[k]) * row.columns + column,
        );
        let a = row.a_exponent[k];
        for (most, b) in largest.iter_mut().zip(b) {
            *most = (*most).max(a + b);
        }
    }
    let mut scale = [0.0; WIDE];
    for (scale, most) in scale.iter_mut().zip(&mut largest) {
        *most = (*most).max(NO_EXPONENT);
        *scale = power_of_two(POINT - *most);
    }
    // A term has at most two bits before the point: it fits in 32 bits. What does not is infinite or NaN.
    let aligned = |term: f64| f64::from(term as i32);
    let mut sum = [0.0; WIDE];
    for ((sum, c), scale) in sum.iter_mut().zip(c_value).zip(scale) {
        *sum += aligned(c * scale);
    }
    for &k in terms {
        let b = wide(
            &row.b.value,
            usize::from(row.row_of_b[k]) * row.columns + column,
        );
        let a = row.a[k];
        for ((sum, b), scale) in sum.iter_mut().zip(b).zip(scale) {
            *sum += aligned(a * b * scale);
        }
    }
    for ((out, sum), most) in out.iter_mut().zip(sum).zip(largest) {
        *out = sum * power_of_two(most - POINT);
    }
}

/// A finite number in single precision, rounded toward zero, which is positive; infinity if it is too large.
pub fn truncated(v: f64) -> u32 {
    if v.abs() < f64::from(f32::MIN_POSITIVE) {
        // Subnormal: a multiple of 2^-149, truncated.
        let magnitude = (v.abs() * power_of_two(149)) as u32;
        let negative = v < 0.0 && magnitude != 0;
        return magnitude | u32::from(negative) << 31;
    }
    (f64::from_bits(v.to_bits() & !0x1fff_ffff) as f32).to_bits()
}

/// The nearest half; infinity if there is none. A NaN is `0x7fff`.
pub fn half_bits(v: f64) -> u32 {
    if v.is_nan() {
        return 0x7fff;
    }
    // Rounding to odd first keeps the second rounding exact.
    let kept = v.to_bits() & !0x1fff_ffff;
    let odd = if kept == v.to_bits() { 0 } else { 1 << 29 };
    let single = f64::from_bits(kept | odd) as f32;
    u32::from(f16::from_f32(single).to_bits())
}

/// The nearest number in single precision; a NaN is `0x7fffffff`.
pub fn single_bits(v: f64) -> u32 {
    if v.is_nan() {
        0x7fff_ffff
    } else {
        (v as f32).to_bits()
    }
}
