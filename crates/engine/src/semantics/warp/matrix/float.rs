//! Sums of products as tensor cores compute them.
//!
//! All terms of a sum, the products and the accumulator, are aligned to the largest exponent among them and truncated, usually to
//! two bits behind those of single precision. The exponent of a product is the sum of those of its factors; zeros have none. The sum
//! of the aligned terms is exact. It is truncated to single precision, or rounded to the nearest half.
//!
//! Read off an H100: `tests/cpu_device/test_matrices.py` compares every form with a GPU, bit by bit.

use std::array::from_fn;

use half::f16;

/// What a sum keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    /// Bits behind the point of the aligned terms.
    point: u32,
    /// Bits of the fraction of a result in single precision.
    fraction: u32,
}

impl Precision {
    /// Two bits behind those of single precision.
    pub const FINE: Self = Self {
        point: 23 + 2,
        fraction: 23,
    };
    /// That of `wgmma` for numbers of eight bits.
    pub const COARSE: Self = Self {
        point: 13,
        fraction: 13,
    };
}

/// The exponent of zero: lower than that of any term.
const NO_EXPONENT: i32 = -400;

/// Columns that are computed together: a vector of 32-bit integers.
pub const WIDE: usize = 8;

/// The most elements of a matrix of numbers.
pub const MOST: usize = 512;

/// A binary format of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the fraction.
    pub fraction: u32,
}

impl Format {
    /// Half precision.
    pub const F16: Self = Self::new(5, 10);
    /// The upper half of single precision.
    pub const BF16: Self = Self::new(8, 7);
    /// The upper 19 bits of single precision.
    pub const TF32: Self = Self::new(8, 10);
    /// Single precision.
    pub const F32: Self = Self::new(8, 23);

    const fn new(exponent: u32, fraction: u32) -> Self {
        Self { exponent, fraction }
    }

    /// The value of a number.
    pub fn value(self, bits: u32) -> f64 {
        let most = (1 << self.exponent) - 1;
        let (significand, exponent) = self.split(bits);
        let negative = bits >> (self.exponent + self.fraction) & 1 != 0;
        let sign = if negative { -1.0 } else { 1.0 };
        if bits >> self.fraction & most == most {
            let infinite = bits & ((1 << self.fraction) - 1) == 0;
            return if infinite {
                f64::INFINITY * sign
            } else {
                f64::NAN
            };
        }
        let exponent = exponent.max(1 - (most >> 1).cast_signed());
        let unit = power_of_two(exponent - self.fraction.cast_signed());
        f64::from(significand.unsigned_abs()) * unit * sign
    }

    /// The significand of a finite number, with its sign, and the exponent: that of a subnormal number is the least.
    #[inline(always)]
    fn split(self, bits: u32) -> (i32, i32) {
        let most = (1u32 << self.exponent) - 1;
        let exponent = bits >> self.fraction & most;
        let low = bits & ((1 << self.fraction) - 1);
        let significand = (low | u32::from(exponent != 0) << self.fraction).cast_signed();
        let negative = bits >> (self.exponent + self.fraction) & 1;
        let signed = if negative != 0 {
            -significand
        } else {
            significand
        };
        let of_number = exponent.max(1).cast_signed() - (most >> 1).cast_signed();
        let exponent = if significand == 0 {
            NO_EXPONENT
        } else {
            of_number
        };
        (signed, exponent)
    }

    /// Whether a number is infinite or NaN.
    #[inline(always)]
    fn is_special(self, bits: u32) -> bool {
        let most = (1 << self.exponent) - 1;
        bits >> self.fraction & most == most
    }
}

/// `2^exponent`, for the exponents of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The elements of a matrix, row by row.
#[derive(Debug)]
pub struct Numbers {
    format: Format,
    bits: [u32; MOST],
    significand: [i32; MOST],
    exponent: [i32; MOST],
    /// Whether any is infinite or NaN.
    special: bool,
}

impl Numbers {
    /// Zeros.
    #[inline(always)]
    pub fn zeros(format: Format) -> Self {
        Self {
            format,
            bits: [0; MOST],
            significand: [0; MOST],
            exponent: [NO_EXPONENT; MOST],
            special: false,
        }
    }

    /// Sets the elements at these indices to the numbers with these bits.
    #[inline(always)]
    pub fn set(&mut self, at: &[u16; 32], bits: &[u32; 32]) {
        let (mut significand, mut exponent, mut special) = ([0; 32], [0; 32], false);
        for n in 0..32 {
            (significand[n], exponent[n]) = self.format.split(bits[n]);
            special |= self.format.is_special(bits[n]);
        }
        self.special |= special;
        for (n, &at) in at.iter().enumerate() {
            let at = usize::from(at) % MOST;
            self.bits[at] = bits[n];
            self.significand[at] = significand[n];
            self.exponent[at] = exponent[n];
        }
    }

    /// Sets the first eight elements. The others must be zeros.
    #[inline(always)]
    pub fn replace(&mut self, bits: &[u32; WIDE]) {
        self.special = false;
        for (n, bits) in bits.iter().enumerate() {
            self.bits[n] = *bits;
            (self.significand[n], self.exponent[n]) = self.format.split(*bits);
            self.special |= self.format.is_special(*bits);
        }
    }

    /// Value of an element.
    pub fn value(&self, at: usize) -> f64 {
        self.format.value(self.bits[at])
    }

    /// Eight elements of a list from `at` on.
    #[inline(always)]
    fn eight(list: &[i32; MOST], at: usize) -> [i32; WIDE] {
        list[at..].first_chunk().copied().unwrap_or_default()
    }
}

/// Significands with the point moved from one bit to another, and then shifted to the right, toward zero. They have at most two bits
/// before the point.
#[inline(always)]
fn align(significand: [i32; WIDE], from: u32, to: u32, right: [i32; WIDE]) -> [i32; WIDE] {
    let (left, more) = (to.saturating_sub(from), from.saturating_sub(to));
    let right = right.map(|shift| shift.saturating_add_unsigned(more));
    // In this form, the compiler uses vector instructions.
    let sign = significand.map(|s| s >> 31);
    let magnitude: [u32; WIDE] = from_fn(|n| ((significand[n] ^ sign[n]) - sign[n]) as u32);
    let right = right.map(|shift| shift.min(31) as u32 & 31);
    let aligned: [i32; WIDE] = from_fn(|n| (magnitude[n] << left >> right[n]) as i32);
    from_fn(|n| (aligned[n] ^ sign[n]) - sign[n])
}

/// The operands of eight elements of a row of the result.
#[derive(Clone, Copy, Debug)]
pub struct Sum<'a> {
    /// Matrix A.
    pub a: &'a Numbers,
    /// Index of the first element of the row of A.
    pub a_from: usize,
    /// The row of B that each element of the row of A is multiplied with.
    pub row_of_b: &'a [u16],
    /// Matrix B.
    pub b: &'a Numbers,
    /// Columns of B.
    pub columns: usize,
    /// First of the eight columns.
    pub column: usize,
    /// What the sums keep.
    pub precision: Precision,
}

impl Sum<'_> {
    /// Adds the products of the positions in `terms` to the elements of `c` from `c_from` on. The results are exact
    /// sums of aligned terms. Infinities and NaNs count as finite numbers.
    #[inline(always)]
    fn aligned(&self, terms: &[u16], c: &Numbers, c_from: usize) -> [f64; WIDE] {
        let b_at = |k: u16| {
            let row = usize::from(self.row_of_b[usize::from(k)]);
            row * self.columns + self.column
        };
        let mut largest = Numbers::eight(&c.exponent, c_from);
        for &k in terms {
            let a = self.a.exponent[self.a_from + usize::from(k)];
            let b = Numbers::eight(&self.b.exponent, b_at(k));
            largest = from_fn(|n| largest[n].max(a + b[n]));
        }
        let c_significand = Numbers::eight(&c.significand, c_from);
        let c_exponent = Numbers::eight(&c.exponent, c_from);
        let right = from_fn(|n| largest[n] - c_exponent[n]);
        let Precision { point, .. } = self.precision;
        let term = align(c_significand, c.format.fraction, point, right);
        let mut sum = term.map(f64::from);
        let point_of_product = 2 * self.a.format.fraction;
        // Eight terms of 28 bits fit in 32.
        for terms in terms.chunks(8) {
            let mut part = [0i32; WIDE];
            for &k in terms {
                let at = self.a_from + usize::from(k);
                let (significand, exponent) = (self.a.significand[at], self.a.exponent[at]);
                let b_significand = Numbers::eight(&self.b.significand, b_at(k));
                let b_exponent = Numbers::eight(&self.b.exponent, b_at(k));
                let right = from_fn(|n| largest[n] - exponent - b_exponent[n]);
                let product = b_significand.map(|b| significand * b);
                let term = align(product, point_of_product, point, right);
                part = from_fn(|n| part[n] + term[n]);
            }
            sum = from_fn(|n| sum[n] + f64::from(part[n]));
        }
        from_fn(|n| sum[n] * power_of_two(largest[n] - point.cast_signed()))
    }

    /// [`Self::aligned`], in the format of the accumulators: truncated to single precision, or the nearest half.
    #[inline(always)]
    pub fn rounded(&self, terms: &[u16], c: &Numbers, c_from: usize) -> [u32; WIDE] {
        let sums = self.aligned(terms, c, c_from);
        let mut bits = if c.format == Format::F16 {
            // A zero is positive.
            sums.map(|sum| match half_bits(sum) {
                0x8000 => 0,
                bits => bits,
            })
        } else {
            let unused = 23 - self.precision.fraction;
            sums.map(|sum| truncated(sum) >> unused << unused)
        };
        if self.a.special || self.b.special || c.special {
            self.replace_specials(terms, c, c_from, &mut bits);
        }
        bits
    }

    /// Replaces the results whose terms include an infinity or a NaN.
    #[cold]
    fn replace_specials(
        &self,
        terms: &[u16],
        c: &Numbers,
        c_from: usize,
        results: &mut [u32; WIDE],
    ) {
        for (n, result) in results.iter_mut().enumerate() {
            let product = |k: &u16| {
                let k = usize::from(*k);
                let row = usize::from(self.row_of_b[k]);
                let b = self.b.value(row * self.columns + self.column + n);
                self.a.value(self.a_from + k) * b
            };
            let sum = terms.iter().map(product).sum::<f64>() + c.value(c_from + n);
            if !sum.is_finite() {
                *result = nearest(c.format, sum);
            }
        }
    }
}

/// The nearest number in half or single precision.
pub fn nearest(format: Format, v: f64) -> u32 {
    if format == Format::F16 {
        half_bits(v)
    } else {
        single_bits(v)
    }
}

/// Rounds a finite number toward zero to single precision; to infinity if it is too large. Zero results are positive.
#[inline(always)]
fn truncated(v: f64) -> u32 {
    if v.abs() < f64::from(f32::MIN_POSITIVE) {
        // Subnormal: a multiple of 2^-149, truncated.
        let magnitude = (v.abs() * power_of_two(149)) as u32;
        let negative = v < 0.0 && magnitude != 0;
        return magnitude | u32::from(negative) << 31;
    }
    (f64::from_bits(v.to_bits() & !0x1fff_ffff) as f32).to_bits()
}

/// Rounds to the nearest half-precision number, or to infinity on overflow. A NaN becomes `0x7fff`.
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

/// Rounds to the nearest single-precision number. A NaN becomes `0x7fffffff`.
pub fn single_bits(v: f64) -> u32 {
    if v.is_nan() {
        0x7fff_ffff
    } else {
        (v as f32).to_bits()
    }
}
