//! Lane masks: stores under a mask, and masks of 32 results.

/// `1 << n` as a table. A variable shift does not vectorize on the baseline.
pub const BIT: [u32; 32] = {
    let mut t = [0; 32];
    let mut n = 0;
    while n < 32 {
        t[n] = 1 << n;
        n += 1;
    }
    t
};

/// The element of a slot.
pub trait Blend: Copy + std::ops::BitOr<Output = Self> + 'static {
    /// Copies the lanes of `mask` from `t` to `p`.
    ///
    /// # Safety
    /// Both have 32 elements and do not overlap. `V3` requires AVX2.
    unsafe fn blend<const V3: bool>(p: *mut Self, t: *const Self, mask: u32);
}

impl Blend for u32 {
    #[inline(always)]
    unsafe fn blend<const V3: bool>(p: *mut u32, t: *const u32, mask: u32) {
        // SAFETY: upheld by the caller.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if V3 {
                x86::blend32_v3(p, t, mask)
            } else {
                x86::blend32(p, t, mask)
            }
            #[cfg(not(target_arch = "x86_64"))]
            blend_any(p, t, mask);
        }
    }
}

impl Blend for u64 {
    #[inline(always)]
    unsafe fn blend<const V3: bool>(p: *mut u64, t: *const u64, mask: u32) {
        // SAFETY: upheld by the caller.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if V3 {
                x86::blend64_v3(p, t, mask)
            } else {
                x86::blend64(p, t, mask)
            }
            #[cfg(not(target_arch = "x86_64"))]
            blend_any(p, t, mask);
        }
    }
}

impl Blend for u128 {
    #[inline(always)]
    unsafe fn blend<const V3: bool>(p: *mut u128, t: *const u128, mask: u32) {
        // SAFETY: upheld by the caller.
        unsafe { blend_any(p, t, mask) }
    }
}

/// Scalar version.
#[inline(never)]
unsafe fn blend_any<T: Copy>(p: *mut T, t: *const T, mask: u32) {
    let mut rest = mask;
    while rest != 0 {
        let n = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        // SAFETY: n is below 32.
        unsafe { *p.add(n) = *t.add(n) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::semantics::lane::blend::BIT;
    use std::arch::x86_64::*;

    #[inline(never)]
    pub unsafe fn blend32(p: *mut u32, t: *const u32, mask: u32) {
        // SAFETY: SSE2 is part of x86-64; 8 × 4 elements.
        unsafe {
            let m = _mm_set1_epi32(mask as i32);
            for n in (0..32).step_by(4) {
                let bit = _mm_loadu_si128(BIT.as_ptr().add(n).cast());
                let on = _mm_cmpeq_epi32(_mm_and_si128(m, bit), bit);
                let d = p.add(n).cast::<__m128i>();
                let new = _mm_and_si128(on, _mm_loadu_si128(t.add(n).cast()));
                _mm_storeu_si128(
                    d,
                    _mm_or_si128(new, _mm_andnot_si128(on, _mm_loadu_si128(d))),
                );
            }
        }
    }

    #[inline(never)]
    pub unsafe fn blend64(p: *mut u64, t: *const u64, mask: u32) {
        // SAFETY: SSE2 is part of x86-64; 16 × 2 elements.
        unsafe {
            let m = _mm_set1_epi32(mask as i32);
            for n in (0..32).step_by(2) {
                let bit = _mm_set_epi32(
                    BIT[n + 1] as i32,
                    BIT[n + 1] as i32,
                    BIT[n] as i32,
                    BIT[n] as i32,
                );
                let on = _mm_cmpeq_epi32(_mm_and_si128(m, bit), bit);
                let d = p.add(n).cast::<__m128i>();
                let new = _mm_and_si128(on, _mm_loadu_si128(t.add(n).cast()));
                _mm_storeu_si128(
                    d,
                    _mm_or_si128(new, _mm_andnot_si128(on, _mm_loadu_si128(d))),
                );
            }
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline(never)]
    pub unsafe fn blend32_v3(p: *mut u32, t: *const u32, mask: u32) {
        // SAFETY: 4 × 8 elements.
        unsafe {
            let m = _mm256_set1_epi32(mask as i32);
            for n in (0..32).step_by(8) {
                let bit = _mm256_loadu_si256(BIT.as_ptr().add(n).cast());
                let on = _mm256_cmpeq_epi32(_mm256_and_si256(m, bit), bit);
                let d = p.add(n).cast::<__m256i>();
                let new = _mm256_loadu_si256(t.add(n).cast());
                _mm256_storeu_si256(d, _mm256_blendv_epi8(_mm256_loadu_si256(d), new, on));
            }
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline(never)]
    pub unsafe fn blend64_v3(p: *mut u64, t: *const u64, mask: u32) {
        // SAFETY: 8 × 4 elements.
        unsafe {
            let m = _mm256_set1_epi64x(i64::from(mask));
            for n in (0..32).step_by(4) {
                let bit = _mm256_cvtepu32_epi64(_mm_loadu_si128(BIT.as_ptr().add(n).cast()));
                let on = _mm256_cmpeq_epi64(_mm256_and_si256(m, bit), bit);
                let d = p.add(n).cast::<__m256i>();
                let new = _mm256_loadu_si256(t.add(n).cast());
                _mm256_storeu_si256(d, _mm256_blendv_epi8(_mm256_loadu_si256(d), new, on));
            }
        }
    }
}

/// The mask of 32 elements that are zero or all ones.
#[inline(always)]
pub fn pack(t: &[u32; 32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            __m128i, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
        };
        // SAFETY: SSE2 is part of x86-64; the array has 8 × 16 bytes.
        unsafe {
            let p = t.as_ptr().cast::<__m128i>();
            let four = |n: usize| {
                let a = _mm_packs_epi32(_mm_loadu_si128(p.add(n)), _mm_loadu_si128(p.add(n + 1)));
                let b =
                    _mm_packs_epi32(_mm_loadu_si128(p.add(n + 2)), _mm_loadu_si128(p.add(n + 3)));
                _mm_movemask_epi8(_mm_packs_epi16(a, b)) as u32
            };
            four(0) | four(4) << 16
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        t.iter().zip(&BIT).fold(0, |m, (v, b)| m | (v & b))
    }
}
