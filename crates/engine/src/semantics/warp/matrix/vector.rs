//! Products of 16 by 8 results with the vector instructions of x86-64-v3. The results are those of [`super::float`], bit by bit.
//!
//! A row of eight results is a vector. The product of two factors is exact in single precision. Multiplied with
//! `2^(25 - e)`, where `e` is the largest exponent of a term, and converted to an integer, which truncates, it is the aligned
//! term. Exponents are bytes relative to the largest of a matrix, 32 of them in a vector; a zero has [`NO_EXPONENT`].
//!
//! What does not fit into this form, such as infinities or a row whose products are all very small, is left to the general
//! functions: [`Vectored::product`] returns `false` then.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::Shape;
use super::element::Element;
use super::multiply::{Arithmetic, REGISTERS};
use super::parts::{Part, parts};

/// A register of all lanes.
pub type Register = [u32; 32];

/// The registers of 16 by 8 results and of their operands.
#[derive(Clone, Copy)]
struct PartRegisters<'r> {
    a: [&'r Register; 4],
    b: [&'r Register; 2],
    c: [&'r Register; 4],
    /// Positions of the results.
    d: [usize; 4],
}

/// Computes a part of a product; returns `false` if a general function must do it. Its callers must have an x86-64-v3.
type Multiplication = unsafe fn(&PartRegisters<'_>, &mut [Register; REGISTERS]) -> bool;

/// A product that vector instructions compute.
#[derive(Debug)]
pub struct Vectored {
    multiplication: Multiplication,
    parts: Vec<Part>,
}

/// The relative exponent of zero. The sum of two, saturated, is again that.
const NO_EXPONENT: i8 = i8::MIN;

/// The relative exponent of a number with this exponent or a lower one. Sums of two that are greater are exact; a sum of two
/// numbers is never [`NO_EXPONENT`].
const LEAST: i8 = -63;

/// The least exponent of a sum whose results are all normal.
const LEAST_OF_SUM: i32 = -100;

/// The elements of matrix A: 16 rows of 16, or of eight of TF32.
type ValuesOfA = MaybeUninit<[[f32; 16]; 16]>;

/// The exponents of matrix A: of four rows, for each half of the columns, eight of rows 0, 2, 1 and 3.
type ExponentsOfA = [[__m256i; 2]; 4];

/// Matrix B: eight columns.
#[repr(C, align(64))]
struct MatrixB {
    /// The elements, by row.
    values: [__m256; 16],
    /// The exponents of each row.
    exponents: [u64; 16],
}

static ZEROS: Register = [0; 32];

/// The registers of a list at these positions.
#[inline(always)]
fn pick<'r, const N: usize>(list: &[&'r Register], at: [u8; N]) -> [&'r Register; N] {
    at.map(|n| list.get(usize::from(n)).copied().unwrap_or(&ZEROS))
}

impl Vectored {
    /// The product of this shape; `None` if the vector code does not compute it, or the machine cannot execute that.
    /// `elements` and `registers` are those of D, A, B and C.
    pub(super) fn new(
        shape: Shape,
        elements: [Element; 4],
        registers: [usize; 4],
        arithmetic: Arithmetic,
    ) -> Option<Self> {
        use Element::{S8, S32, U8};
        if !crate::cpu_features::has_x86_64_v3() {
            return None;
        }
        let all_columns = shape.n == 32;
        let multiplication: Multiplication = match (elements, arithmetic) {
            ([d, a, b, c], Arithmetic::Aligned { .. }) => match (a, b, c, d) {
                (Element::F16, Element::F16, Element::F32, Element::F32) => numbers::<F16, false>,
                (Element::F16, Element::F16, Element::F16, Element::F16) => numbers::<F16, true>,
                (Element::BF16, Element::BF16, Element::F32, Element::F32) => {
                    numbers::<BF16, false>
                }
                (Element::TF32, Element::TF32, Element::F32, Element::F32) => {
                    numbers::<TF32, false>
                }
                _ => return None,
            },
            ([S32, a @ (S8 | U8), b @ (S8 | U8), S32], Arithmetic::Integer { saturate }) => {
                // Of a product of 8 by 32 results, B takes the place of A.
                let (a, b) = if all_columns { (b, a) } else { (a, b) };
                match (a == S8, b == S8, saturate) {
                    (true, true, false) => integers::<true, true, false>,
                    (true, true, true) => integers::<true, true, true>,
                    (true, false, false) => integers::<true, false, false>,
                    (true, false, true) => integers::<true, false, true>,
                    (false, true, false) => integers::<false, true, false>,
                    (false, true, true) => integers::<false, true, true>,
                    (false, false, false) => integers::<false, false, false>,
                    (false, false, true) => integers::<false, false, true>,
                }
            }
            _ => return None,
        };
        let [of_d, of_a, of_b, of_c] = registers;
        Some(Self {
            multiplication,
            parts: parts(shape, elements, arithmetic, [of_a, of_b, of_c, of_d])?,
        })
    }

    /// Computes the registers of D from those of A, B and C, which `factors` and `accumulators` hold. Returns `false`, with any
    /// results, if a general function must compute them.
    pub fn product(
        &self,
        factors: &[&Register],
        accumulators: &[&Register],
        results: &mut [Register; REGISTERS],
    ) -> bool {
        self.parts.iter().all(|part| {
            let before;
            let c = if part.is_continued {
                before = part.d.map(|n| results[usize::from(n) % REGISTERS]);
                before.each_ref()
            } else {
                pick(accumulators, part.d)
            };
            let registers = PartRegisters {
                a: pick(factors, part.a),
                b: pick(factors, part.b),
                c,
                // A part that lacks registers leaves the last ones unused.
                d: part.d.map(|n| usize::from(n) % REGISTERS),
            };
            // SAFETY: `new` has checked that the machine is an x86-64-v3.
            unsafe { (self.multiplication)(&registers, results) }
        })
    }
}

const F16: u8 = 0;
const BF16: u8 = 1;
const TF32: u8 = 2;

/// The column of each vector element in a row of 32-bit accumulators: one register holds the even columns, the next the odd ones.
const PAIRED: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
/// The columns of a row of half-precision accumulators.
const ORDERED: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// 16 bytes of a line of a register.
#[inline(always)]
fn line(r: &Register, n: usize) -> __m128i {
    debug_assert!(n < 8);
    // SAFETY: a register has eight lines of 16 bytes; callers pass numbers below eight.
    unsafe { _mm_loadu_si128(r.as_ptr().cast::<__m128i>().add(n)) }
}

/// Two lines of a register.
#[inline]
#[target_feature(enable = "avx2")]
fn lines(r: &Register, low: usize, high: usize) -> __m256i {
    _mm256_set_m128i(line(r, high), line(r, low))
}

/// Sets 16 bytes of a line of a register.
#[inline(always)]
fn set_line(r: &mut Register, n: usize, v: __m128i) {
    debug_assert!(n < 8);
    // SAFETY: as for `line`.
    unsafe { _mm_storeu_si128(r.as_mut_ptr().cast::<__m128i>().add(n), v) }
}

/// The largest of 16 integers of 16 bits that are not negative.
#[inline]
#[target_feature(enable = "avx2")]
fn largest_16(v: __m256i) -> i32 {
    let v = _mm_max_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    let least = _mm_minpos_epu16(_mm_xor_si128(v, _mm_set1_epi16(0x7fff)));
    _mm_extract_epi16::<0>(least) ^ 0x7fff
}

/// The largest of eight integers of 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn largest_32(v: __m256i) -> i32 {
    let v = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    let v = _mm_max_epi32(v, _mm_shuffle_epi32::<0b01_00_11_10>(v));
    _mm_cvtsi128_si32(_mm_max_epi32(v, _mm_shuffle_epi32::<0b10_11_00_01>(v)))
}

/// The bits of a number without the sign, and without those that its format lacks.
#[inline]
#[target_feature(enable = "avx2")]
fn magnitudes<const F: u8>(v: __m256i) -> __m256i {
    match F {
        TF32 => _mm256_and_si256(v, _mm256_set1_epi32(0x7fff_e000)),
        _ => _mm256_and_si256(v, _mm256_set1_epi16(0x7fff)),
    }
}

/// The exponent of the largest magnitude, with its bias. `None` if it is that of an infinity or a NaN, or so small that subnormal
/// numbers have relative exponents above [`LEAST`]: these have the exponent of the least normal number.
#[inline]
#[target_feature(enable = "avx2")]
fn largest_exponent<const F: u8>(magnitudes: __m256i) -> Option<i32> {
    let (largest, exponent) = match F {
        // All exponents of half precision fit into the range of relative ones: the largest is that of the format.
        F16 => return (largest_16(magnitudes) < 0x7c00).then_some(30),
        BF16 => (largest_16(magnitudes), largest_16(magnitudes) >> 7),
        _ => (largest_32(magnitudes), largest_32(magnitudes) >> 23),
    };
    (largest == 0 || (1 - i32::from(LEAST)..255).contains(&exponent)).then_some(exponent)
}

/// The bias of the exponents.
const fn bias<const F: u8>() -> i32 {
    if F == F16 { 15 } else { 127 }
}

/// The relative exponents of magnitudes, as integers of 16 bits, or of 32 for TF32.
#[inline]
#[target_feature(enable = "avx2")]
fn exponents<const F: u8>(magnitudes: __m256i, largest: i32) -> __m256i {
    let zero = _mm256_setzero_si256();
    match F {
        F16 => {
            // A subnormal number has the exponent of the least normal one.
            let e = _mm256_max_epi16(_mm256_srli_epi16::<10>(magnitudes), _mm256_set1_epi16(1));
            let e = _mm256_sub_epi16(e, _mm256_set1_epi16(30));
            let none = _mm256_cmpeq_epi16(magnitudes, zero);
            _mm256_min_epi16(e, _mm256_slli_epi16::<15>(none))
        }
        BF16 => {
            let e = _mm256_srli_epi16::<7>(magnitudes);
            let e = _mm256_sub_epi16(e, _mm256_set1_epi16(largest as i16));
            let e = _mm256_max_epi16(e, _mm256_set1_epi16(LEAST.into()));
            let none = _mm256_cmpeq_epi16(magnitudes, zero);
            _mm256_min_epi16(e, _mm256_slli_epi16::<15>(none))
        }
        _ => {
            let e = _mm256_srli_epi32::<23>(magnitudes);
            let e = _mm256_sub_epi32(e, _mm256_set1_epi32(largest));
            let e = _mm256_max_epi32(e, _mm256_set1_epi32(LEAST.into()));
            let none = _mm256_cmpeq_epi32(magnitudes, zero);
            _mm256_min_epi32(e, _mm256_slli_epi32::<31>(none))
        }
    }
}

/// Eight numbers of 16 bits in single precision.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn widen<const F: u8>(v: __m128i) -> __m256 {
    match F {
        F16 => _mm256_cvtph_ps(v),
        _ => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(v))),
    }
}

/// The exponent that those of matrix A are relative to; `None` as of [`largest_exponent`].
#[inline]
#[target_feature(enable = "avx2")]
fn largest_of_a<const F: u8>(r: &[&Register; 4]) -> Option<i32> {
    let mut all = _mm256_setzero_si256();
    for r in r {
        for n in [0, 2, 4, 6] {
            let v = magnitudes::<F>(lines(r, n, n + 1));
            all = match F {
                TF32 => _mm256_max_epi32(all, v),
                _ => _mm256_max_epi16(all, v),
            };
        }
    }
    largest_exponent::<F>(all)
}

/// Initializes the elements of matrix A.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn set_values_of_a<const F: u8>(values: &mut ValuesOfA, r: &[&Register; 4]) {
    let values = values.as_mut_ptr().cast::<f32>();
    for row in 0..16 {
        for half in 0..2 {
            let v = line(r[row / 8 + 2 * half], row % 8);
            // SAFETY: a row has room for 16 elements.
            unsafe {
                if F == TF32 {
                    let v = _mm_and_si128(v, _mm_set1_epi32(!0x1fff));
                    _mm_storeu_ps(values.add(16 * row + 4 * half), _mm_castsi128_ps(v));
                } else {
                    _mm256_storeu_ps(values.add(16 * row + 8 * half), widen::<F>(v));
                }
            }
        }
    }
}

/// The exponents of matrix A, relative to the largest.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn exponents_of_a<const F: u8>(r: &[&Register; 4], largest: i32) -> ExponentsOfA {
    let mut bytes = [[_mm256_setzero_si256(); 2]; 4];
    for (group, bytes) in bytes.iter_mut().enumerate() {
        let first = 4 * group % 8;
        // Of rows 0 and 1, and of rows 2 and 3.
        let mut of_rows = [[_mm256_setzero_si256(); 2]; 2];
        for (half, of_rows) in of_rows.iter_mut().enumerate() {
            for (n, of_rows) in of_rows.iter_mut().enumerate() {
                let row = first + 2 * n;
                let v = lines(r[group / 2 + 2 * half], row, row + 1);
                *of_rows = exponents::<F>(magnitudes::<F>(v), largest);
            }
        }
        let [left, right] = of_rows;
        if F == TF32 {
            let low = _mm256_packs_epi32(left[0], right[0]);
            let high = _mm256_packs_epi32(left[1], right[1]);
            bytes[0] = _mm256_packs_epi16(low, high);
        } else {
            bytes[0] = _mm256_packs_epi16(left[0], left[1]);
            bytes[1] = _mm256_packs_epi16(right[0], right[1]);
        }
    }
    bytes
}

/// Columns of 2 by 8 elements of 16 bits: vector `n` has element `n` of the first register's lines, in this order, and then of
/// the second's.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed_16(r: &[&Register; 2], order: &[usize; 8]) -> [__m256i; 8] {
    let zero = _mm256_setzero_si256();
    // Pairs of columns: the first and the last four elements.
    let mut pairs = [[zero; 2]; 4];
    for (n, pairs) in pairs.iter_mut().enumerate() {
        let (i, j) = (order[2 * n], order[2 * n + 1]);
        let i = _mm256_set_m128i(line(r[1], i), line(r[0], i));
        let j = _mm256_set_m128i(line(r[1], j), line(r[0], j));
        *pairs = [_mm256_unpacklo_epi16(i, j), _mm256_unpackhi_epi16(i, j)];
    }
    let mut rows = [zero; 8];
    for (n, rows) in rows.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let (half, high) = (n / 2, n % 2 != 0);
        let [a, b, c, d] = pairs;
        let (a, b, c, d) = (a[half], b[half], c[half], d[half]);
        let (left, right) = if high {
            (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d))
        } else {
            (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d))
        };
        *rows = [
            _mm256_unpacklo_epi64(left, right),
            _mm256_unpackhi_epi64(left, right),
        ];
    }
    rows
}

/// Columns of eight by four elements of 32 bits: vector `n` has element `n` of the register's lines, in this order.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed_32(r: &Register, order: &[usize; 8]) -> [__m256i; 4] {
    let v = [
        lines(r, order[0], order[4]),
        lines(r, order[1], order[5]),
        lines(r, order[2], order[6]),
        lines(r, order[3], order[7]),
    ];
    let low = [
        _mm256_unpacklo_epi32(v[0], v[1]),
        _mm256_unpackhi_epi32(v[0], v[1]),
    ];
    let high = [
        _mm256_unpacklo_epi32(v[2], v[3]),
        _mm256_unpackhi_epi32(v[2], v[3]),
    ];
    [
        _mm256_unpacklo_epi64(low[0], high[0]),
        _mm256_unpackhi_epi64(low[0], high[0]),
        _mm256_unpacklo_epi64(low[1], high[1]),
        _mm256_unpackhi_epi64(low[1], high[1]),
    ]
}

/// Sets matrix B, with its columns in this order. Returns the exponent that the others are relative to; `None` as of
/// [`largest_exponent`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn set_matrix_b<const F: u8>(
    m: &mut MatrixB,
    r: &[&Register; 2],
    order: &[usize; 8],
) -> Option<i32> {
    let rows = if F == TF32 {
        let ([i, j, k, l], [m, n, o, p]) = (transposed_32(r[0], order), transposed_32(r[1], order));
        [i, j, k, l, m, n, o, p]
    } else {
        transposed_16(r, order)
    };
    let mut sizes = [_mm256_setzero_si256(); 8];
    let mut all = _mm256_setzero_si256();
    for (size, row) in sizes.iter_mut().zip(rows) {
        *size = magnitudes::<F>(row);
        all = match F {
            TF32 => _mm256_max_epi32(all, *size),
            _ => _mm256_max_epi16(all, *size),
        };
    }
    let largest = largest_exponent::<F>(all)?;
    let mut e = [_mm256_setzero_si256(); 8];
    for (k, e) in e.iter_mut().enumerate() {
        *e = exponents::<F>(sizes[k], largest);
        if F == TF32 {
            let v = _mm256_and_si256(rows[k], _mm256_set1_epi32(!0x1fff));
            m.values[k] = _mm256_castsi256_ps(v);
        } else {
            m.values[k] = widen::<F>(_mm256_castsi256_si128(rows[k]));
            m.values[k + 8] = widen::<F>(_mm256_extracti128_si256::<1>(rows[k]));
        }
    }
    let to = m.exponents.as_mut_ptr();
    if F == TF32 {
        for (half, e) in e.as_chunks::<4>().0.iter().enumerate() {
            let (low, high) = (
                _mm256_packs_epi32(e[0], e[1]),
                _mm256_packs_epi32(e[2], e[3]),
            );
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
            // SAFETY: there is room for four double words from each place on.
            unsafe { _mm256_storeu_si256(to.add(4 * half).cast(), bytes) };
        }
    } else {
        for (pair, e) in e.as_chunks::<2>().0.iter().enumerate() {
            // Rows k, k + 1, k + 8 and k + 9, where k is twice the number of the pair.
            let bytes = _mm256_packs_epi16(e[0], e[1]);
            // SAFETY: there is room for two double words from each place on.
            unsafe {
                let to = to.add(2 * pair);
                _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(bytes));
                _mm_storeu_si128(to.add(8).cast(), _mm256_extracti128_si256::<1>(bytes));
            }
        }
    }
    Some(largest)
}

/// The largest relative exponents of the products of four rows: eight of rows 0, 2, 1 and 3.
#[inline]
#[target_feature(enable = "avx2")]
fn exponents_of_products<const F: u8>(a: &[__m256i; 2], b: &[u64; 16]) -> __m256i {
    let mut largest = _mm256_set1_epi8(NO_EXPONENT);
    let halves = if F == TF32 { 1 } else { 2 };
    // Byte k of both rows of a lane, eight times each.
    let first = _mm256_setr_epi64x(0, 0x0808_0808_0808_0808, 0, 0x0808_0808_0808_0808);
    for (a, b) in a.iter().zip(b.as_chunks::<8>().0).take(halves) {
        let mut at = first;
        for b in b {
            let sum = _mm256_adds_epi8(
                _mm256_shuffle_epi8(*a, at),
                _mm256_set1_epi64x(b.cast_signed()),
            );
            largest = _mm256_max_epi8(largest, sum);
            at = _mm256_add_epi8(at, _mm256_set1_epi8(1));
        }
    }
    largest
}

/// A row of accumulators.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn row_of_c<const HALF: bool>(c: &[&Register; 4], row: usize) -> __m256 {
    if HALF {
        _mm256_cvtph_ps(line(c[row / 8], row % 8))
    } else {
        let pair = 2 * (row / 8);
        let v = _mm256_set_m128i(line(c[pair + 1], row % 8), line(c[pair], row % 8));
        _mm256_castsi256_ps(v)
    }
}

/// Sets a row of results of 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn set_row_of_d(results: &mut [Register; REGISTERS], d: &[usize; 4], row: usize, v: __m256i) {
    let pair = 2 * (row / 8);
    let (low, high) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    set_line(&mut results[d[pair] % REGISTERS], row % 8, low);
    set_line(&mut results[d[pair + 1] % REGISTERS], row % 8, high);
}

/// The sign bits of the sums of integers that overflow.
#[inline]
#[target_feature(enable = "avx2")]
fn overflows(a: __m256i, b: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(a, b);
    _mm256_and_si256(_mm256_xor_si256(a, sum), _mm256_xor_si256(b, sum))
}

/// The product of matrices of floating-point numbers; `false` if it has another form (see above).
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn numbers<const F: u8, const HALF: bool>(
    part: &PartRegisters<'_>,
    results: &mut [Register; REGISTERS],
) -> bool {
    let PartRegisters { c, d, .. } = part;
    let Some(largest_of_a) = largest_of_a::<F>(&part.a) else {
        return false;
    };
    let order = if HALF { &ORDERED } else { &PAIRED };
    let mut b = MatrixB {
        values: [_mm256_setzero_ps(); 16],
        exponents: [0; 16],
    };
    let Some(largest_of_b) = set_matrix_b::<F>(&mut b, &part.b, order) else {
        return false;
    };
    let mut values_of_a = ValuesOfA::uninit();
    set_values_of_a::<F>(&mut values_of_a, &part.a);
    let values_of_a = values_of_a.as_ptr().cast::<f32>();
    let exponents_of_a = exponents_of_a::<F>(&part.a, largest_of_a);
    let terms = if F == TF32 { 8 } else { 16 };
    // Exponents of products are relative to this one.
    let base = largest_of_a + largest_of_b - 2 * bias::<F>();
    // Lower relative exponents of sums are inexact or too low. None is valid if products can overflow.
    let least = match base {
        ..=120 => (LEAST_OF_SUM - base).clamp(i32::from(LEAST) + 1, 1) as i8,
        _ => 1,
    };
    let mut general = _mm256_setzero_si256();
    let biased = _mm256_set1_epi32(base + 127);
    let infinity = _mm256_set1_epi32(0x7f80_0000);
    for (group, exponents_of_a) in exponents_of_a.iter().enumerate() {
        let largest = exponents_of_products::<F>(exponents_of_a, &b.exponents);
        let none = _mm256_cmpeq_epi8(largest, _mm256_set1_epi8(NO_EXPONENT));
        let any_none = _mm256_movemask_epi8(none) != 0;
        let low = _mm256_cmpgt_epi8(_mm256_set1_epi8(least), largest);
        general = _mm256_or_si256(general, _mm256_andnot_si256(none, low));
        // Where there are no products, any exponent will do that keeps the scale finite.
        let finite = _mm256_max_epi8(largest, _mm256_set1_epi8(least - 1));
        let (low, high) = (
            _mm256_castsi256_si128(finite),
            _mm256_extracti128_si256::<1>(finite),
        );
        let of_rows = [
            low,
            high,
            _mm_unpackhi_epi64(low, low),
            _mm_unpackhi_epi64(high, high),
        ];
        let mut of_c = [_mm256_setzero_ps(); 4];
        let mut scale = [_mm256_setzero_ps(); 4];
        for n in 0..4 {
            of_c[n] = row_of_c::<HALF>(c, 4 * group + n);
            let bits = _mm256_castps_si256(of_c[n]);
            let magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fff_ffff));
            let special = _mm256_cmpgt_epi32(infinity, magnitude);
            general = _mm256_or_si256(general, _mm256_xor_si256(special, _mm256_set1_epi32(-1)));
            let mut e = _mm256_srli_epi32::<23>(magnitude);
            if HALF {
                // A subnormal number has the exponent of the least normal one; a zero has none.
                let nonzero = _mm256_cmpgt_epi32(magnitude, _mm256_setzero_si256());
                let least = _mm256_and_si256(nonzero, _mm256_set1_epi32(127 - 14));
                e = _mm256_max_epi32(e, least);
            }
            let of_products = _mm256_add_epi32(_mm256_cvtepi8_epi32(of_rows[n]), biased);
            e = _mm256_max_epi32(e, of_products);
            let e = _mm256_sub_epi32(_mm256_set1_epi32(127 + 25 + 127), e);
            scale[n] = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(e));
        }
        let mut sum = [_mm256_setzero_si256(); 4];
        for (k, b) in b.values.iter().enumerate().take(terms) {
            for n in 0..4 {
                // SAFETY: `set_values_of_a` has initialized this element.
                let a = unsafe { *values_of_a.add(16 * (4 * group + n) + k) };
                let product = _mm256_mul_ps(_mm256_set1_ps(a), *b);
                let term = _mm256_cvttps_epi32(_mm256_mul_ps(product, scale[n]));
                // Sixteen products of at most 27 bits and some fit in 32, as factors have at most eleven bits.
                sum[n] = _mm256_add_epi32(sum[n], term);
            }
        }
        let mut term = [_mm256_setzero_si256(); 4];
        let mut overflow = _mm256_setzero_si256();
        for n in 0..4 {
            term[n] = _mm256_cvttps_epi32(_mm256_mul_ps(of_c[n], scale[n]));
            overflow = _mm256_or_si256(overflow, overflows(sum[n], term[n]));
        }
        let any_overflow = _mm256_movemask_ps(_mm256_castsi256_ps(overflow)) != 0;
        for n in 0..4 {
            let row = 4 * group + n;
            let result = match any_overflow {
                false => rounded::<HALF>(_mm256_add_epi32(sum[n], term[n])),
                true => rounded_wide::<HALF>(sum[n], term[n]),
            };
            // The reciprocal of the scale.
            let unit = _mm256_castsi256_ps(_mm256_sub_epi32(
                _mm256_set1_epi32(254 << 23),
                _mm256_castps_si256(scale[n]),
            ));
            let mut result = _mm256_mul_ps(result, unit);
            if any_none {
                // Without products, the result is the accumulator; a zero is positive.
                let half = match n % 2 {
                    0 => _mm256_castsi256_si128(none),
                    _ => _mm256_extracti128_si256::<1>(none),
                };
                let none = _mm256_cvtepi8_epi32(match n / 2 {
                    0 => half,
                    _ => _mm_unpackhi_epi64(half, half),
                });
                let of_c = _mm256_add_ps(of_c[n], _mm256_setzero_ps());
                result = _mm256_blendv_ps(result, of_c, _mm256_castsi256_ps(none));
            }
            if HALF {
                let bits = _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(result);
                let negative = _mm_cmpeq_epi16(bits, _mm_set1_epi16(i16::MIN));
                set_line(
                    &mut results[d[row / 8]],
                    row % 8,
                    _mm_andnot_si128(negative, bits),
                );
            } else {
                let bits = _mm256_castps_si256(result);
                set_row_of_d(results, d, row, bits);
            }
        }
    }
    _mm256_testz_si256(general, general) != 0
}

/// An integer in single precision: truncated, or rounded to odd if it will be rounded to half precision. A zero is positive.
#[inline]
#[target_feature(enable = "avx2")]
fn rounded<const ODD: bool>(sum: __m256i) -> __m256 {
    let nearest = _mm256_cvtepi32_ps(sum);
    let back = _mm256_cvttps_epi32(nearest);
    // By how much the magnitude has grown. The difference wraps for a number that was rounded to 2^31.
    let grown = _mm256_sign_epi32(_mm256_sub_epi32(back, sum), sum);
    let up = _mm256_cmpgt_epi32(grown, _mm256_setzero_si256());
    let mut bits = _mm256_add_epi32(_mm256_castps_si256(nearest), up);
    if ODD {
        let exact = _mm256_cmpeq_epi32(grown, _mm256_setzero_si256());
        let odd = _mm256_andnot_si256(exact, _mm256_set1_epi32(1));
        bits = _mm256_or_si256(bits, odd);
    }
    _mm256_castsi256_ps(bits)
}

/// As [`rounded`], for sums that overflow 32 bits.
#[cold]
#[target_feature(enable = "avx2")]
fn rounded_wide<const ODD: bool>(a: __m256i, b: __m256i) -> __m256 {
    let (mut of_a, mut of_b, mut sums) = ([0i32; 8], [0i32; 8], [0f32; 8]);
    // SAFETY: the arrays have the size of a vector.
    unsafe {
        _mm256_storeu_si256(of_a.as_mut_ptr().cast(), a);
        _mm256_storeu_si256(of_b.as_mut_ptr().cast(), b);
    }
    for (n, to) in sums.iter_mut().enumerate() {
        let sum = i64::from(of_a[n]) + i64::from(of_b[n]);
        let magnitude = sum.unsigned_abs();
        let dropped = (64 - magnitude.leading_zeros()).saturating_sub(24);
        let mut kept = magnitude >> dropped;
        if ODD && kept << dropped != magnitude {
            kept |= 1;
        }
        let value = (kept << dropped) as f32;
        *to = if sum < 0 { -value } else { value };
    }
    // SAFETY: the array has eight elements of 32 bits, and the load needs no alignment.
    unsafe { _mm256_loadu_ps(sums.as_ptr()) }
}

/// Sixteen integers of eight bits in 16.
#[inline]
#[target_feature(enable = "avx2")]
fn widen_integers<const IS_SIGNED: bool>(v: __m128i) -> __m256i {
    if IS_SIGNED {
        _mm256_cvtepi8_epi16(v)
    } else {
        _mm256_cvtepu8_epi16(v)
    }
}

/// The product of matrices of integers of eight bits.
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn integers<const A_IS_SIGNED: bool, const B_IS_SIGNED: bool, const SATURATE: bool>(
    part: &PartRegisters<'_>,
    results: &mut [Register; REGISTERS],
) -> bool {
    let PartRegisters { a, b, c, d } = part;
    // Pairs of elements of B: vector `n` has rows 2n and 2n + 1 of the first 16, and then of the others.
    let bytes = transposed_16(b, &PAIRED);
    let mut pairs = [_mm256_setzero_si256(); 16];
    for (n, bytes) in bytes.into_iter().enumerate() {
        let (low, high) = (
            _mm256_castsi256_si128(bytes),
            _mm256_extracti128_si256::<1>(bytes),
        );
        pairs[n] = widen_integers::<B_IS_SIGNED>(low);
        pairs[n + 8] = widen_integers::<B_IS_SIGNED>(high);
    }
    for group in 0..4 {
        // The pairs of elements of a row of A.
        let mut rows = [[0i32; 16]; 4];
        let mut sum = [_mm256_setzero_si256(); 4];
        for (n, row) in rows.iter_mut().enumerate() {
            let at = 4 * group + n;
            for half in 0..2 {
                let v = line(a[at / 8 + 2 * half], at % 8);
                let v = widen_integers::<A_IS_SIGNED>(v);
                // SAFETY: a row has room for two vectors.
                unsafe { _mm256_storeu_si256(row.as_mut_ptr().add(8 * half).cast(), v) };
            }
        }
        for (k, b) in pairs.iter().enumerate() {
            for n in 0..4 {
                let term = _mm256_madd_epi16(_mm256_set1_epi32(rows[n][k]), *b);
                sum[n] = _mm256_add_epi32(sum[n], term);
            }
        }
        for (n, sum) in sum.into_iter().enumerate() {
            let row = 4 * group + n;
            let c = _mm256_castps_si256(row_of_c::<false>(c, row));
            let mut all = _mm256_add_epi32(sum, c);
            if SATURATE {
                let overflow = overflows(sum, c);
                // The largest integer, or the smallest if the terms are negative.
                let most =
                    _mm256_xor_si256(_mm256_srai_epi32::<31>(c), _mm256_set1_epi32(i32::MAX));
                let overflow = _mm256_castsi256_ps(overflow);
                all = _mm256_castps_si256(_mm256_blendv_ps(
                    _mm256_castsi256_ps(all),
                    _mm256_castsi256_ps(most),
                    overflow,
                ));
            }
            set_row_of_d(results, d, row, all);
        }
    }
    true
}
