//! From a function of one lane to an instruction over 32.
//!
//! [`Lane`] is a function of the values of one lane; [`code`] compiles it for each version of the code. The loops are
//! written so that LLVM vectorizes them: results go to a local array, which cannot alias a source, and are then copied or
//! blended.

use super::blend::{BIT, Blend, pack};
use super::operation::{OpArgs, OpFn};
use std::mem::MaybeUninit;

/// One instruction, for one lane.
pub trait Lane: 'static {
    /// A tuple of source values, in the same order as [`OpArgs::src`].
    type I: Inputs;
    /// A result or a tuple of results, in the same order as [`OpArgs::dst`].
    type O: Outputs;
    /// Computes one lane; `imm` is [`OpArgs::imm`]. Must be `#[inline(always)]`.
    fn lane(i: Self::I, imm: u32) -> Self::O;
    /// Whether [`Lane::upper`] computes the upper halves of packed results. A loop per half vectorizes, a loop over both
    /// does not.
    const HAS_UPPER: bool = false;
    /// Computes the bits of the result that [`Lane::lane`] leaves zero.
    #[inline(always)]
    fn upper(i: Self::I, imm: u32) -> Self::O {
        Self::lane(i, imm)
    }
}

/// An element of a slot.
pub trait Elem: Copy + 'static {
    /// Type in the slot.
    type Raw: Blend;
    /// Converts from the type in the slot.
    fn of(raw: Self::Raw) -> Self;
    /// Converts to the type in the slot.
    fn raw(self) -> Self::Raw;
}

macro_rules! elem {
    ($($t:ty, $raw:ty, |$r:ident| $of:expr, |$v:ident| $to:expr;)*) => { $(
        impl Elem for $t {
            type Raw = $raw;
            #[inline(always)]
            fn of($r: $raw) -> $t { $of }
            #[inline(always)]
            fn raw(self) -> $raw { let $v = self; $to }
        }
        single!($t);
    )* };
}
macro_rules! single {
    ($t:ty) => {
        impl Value for $t {
            type Tmp = [MaybeUninit<<$t as Elem>::Raw>; 32];
            #[inline(always)]
            unsafe fn load(p: *const u8, lane: usize) -> $t {
                // SAFETY: the caller passes a slot of this shape and a lane below 32.
                unsafe { <$t as Elem>::of(*p.cast::<<$t as Elem>::Raw>().add(lane)) }
            }
            #[inline(always)]
            fn tmp() -> Self::Tmp {
                [MaybeUninit::uninit(); 32]
            }
            #[inline(always)]
            fn put(self, t: &mut Self::Tmp, lane: usize) {
                t[lane] = MaybeUninit::new(self.raw());
            }
            #[inline(always)]
            unsafe fn commit<const V3: bool>(p: *mut u8, t: &Self::Tmp, mask: u32) {
                let p = p.cast::<<$t as Elem>::Raw>();
                // SAFETY: the caller passes a slot of this shape and a fully written array.
                unsafe {
                    if mask == u32::MAX {
                        for n in 0..32 {
                            *p.add(n) = t[n].assume_init();
                        }
                    } else {
                        // The copy keeps the address of `t` from escaping, so that `t` can live in registers.
                        let spill = *t;
                        <<$t as Elem>::Raw as Blend>::blend::<V3>(p, spill.as_ptr().cast(), mask);
                    }
                }
            }
        }
        impl Outputs for $t {
            type Tmps = <$t as Value>::Tmp;
            #[inline(always)]
            fn tmps() -> Self::Tmps {
                <$t as Value>::tmp()
            }
            #[inline(always)]
            fn set(self, t: &mut Self::Tmps, lane: usize) {
                self.put(t, lane)
            }
            #[inline(always)]
            unsafe fn add(self, t: &mut Self::Tmps, lane: usize) {
                // SAFETY: the caller has set it.
                let low = unsafe { t[lane].assume_init() };
                t[lane] = MaybeUninit::new(low | self.raw());
            }
            #[inline(always)]
            unsafe fn finish<const V3: bool>(regs: *mut u8, a: &OpArgs, t: &Self::Tmps, mask: u32) {
                // SAFETY: the caller upholds the conditions of `commit`.
                unsafe { <$t as Value>::commit::<V3>(regs.add(a.dst[0] as usize), t, mask) }
            }
        }
    };
}

/// A value of one lane: an element or a predicate.
pub trait Value: Copy + 'static {
    /// 32 values outside the register file.
    type Tmp;
    /// Reads lane `lane` of the slot at `p`.
    ///
    /// # Safety
    /// `p` is a slot of this value's shape, `lane` is below 32.
    unsafe fn load(p: *const u8, lane: usize) -> Self;
    /// Uninitialized space for 32 values.
    fn tmp() -> Self::Tmp;
    /// Sets the value of one lane.
    fn put(self, t: &mut Self::Tmp, lane: usize);
    /// Stores the lanes of `mask`.
    ///
    /// # Safety
    /// As for [`Value::load`], and `t` has been set in every lane.
    unsafe fn commit<const V3: bool>(p: *mut u8, t: &Self::Tmp, mask: u32);
}

elem! {
    u8, u32, |r| r as u8, |v| u32::from(v);
    i8, u32, |r| r as i8, |v| u32::from(v as u8);
    u16, u32, |r| r as u16, |v| u32::from(v);
    i16, u32, |r| r as i16, |v| u32::from(v as u16);
    u32, u32, |r| r, |v| v;
    i32, u32, |r| r as i32, |v| v as u32;
    f32, u32, |r| f32::from_bits(r), |v| v.to_bits();
    u64, u64, |r| r, |v| v;
    i64, u64, |r| r as i64, |v| v as u64;
    f64, u64, |r| f64::from_bits(r), |v| v.to_bits();
    u128, u128, |r| r, |v| v;
}

impl Value for bool {
    type Tmp = [u32; 32];
    #[inline(always)]
    unsafe fn load(p: *const u8, lane: usize) -> bool {
        // SAFETY: the caller passes a predicate slot.
        unsafe { *p.cast::<u32>() & BIT[lane] != 0 }
    }
    #[inline(always)]
    fn tmp() -> [u32; 32] {
        [0; 32]
    }
    #[inline(always)]
    fn put(self, t: &mut [u32; 32], lane: usize) {
        t[lane] = if self { u32::MAX } else { 0 };
    }
    #[inline(always)]
    unsafe fn commit<const V3: bool>(p: *mut u8, t: &[u32; 32], mask: u32) {
        let new = pack(t);
        let p = p.cast::<u32>();
        // SAFETY: the caller passes a predicate slot.
        unsafe { *p = (*p & !mask) | (new & mask) }
    }
}

impl Outputs for bool {
    type Tmps = [u32; 32];
    #[inline(always)]
    fn tmps() -> [u32; 32] {
        <bool as Value>::tmp()
    }
    #[inline(always)]
    fn set(self, t: &mut [u32; 32], lane: usize) {
        self.put(t, lane);
    }
    #[inline(always)]
    unsafe fn finish<const V3: bool>(regs: *mut u8, a: &OpArgs, t: &[u32; 32], mask: u32) {
        // SAFETY: the caller upholds the conditions of `commit`.
        unsafe { <bool as Value>::commit::<V3>(regs.add(a.dst[0] as usize), t, mask) }
    }
}

/// The sources of an instruction.
pub trait Inputs: Copy {
    /// Reads lane `lane` of each source.
    ///
    /// # Safety
    /// The conditions of [`OpFn`].
    unsafe fn load(regs: *const u8, a: &OpArgs, lane: usize) -> Self;
}

/// The destinations of an instruction.
pub trait Outputs: Copy {
    /// 32 values of each destination, outside the register file.
    type Tmps;
    /// Uninitialized space for 32 values of each destination.
    fn tmps() -> Self::Tmps;
    /// Sets the values of one lane.
    fn set(self, t: &mut Self::Tmps, lane: usize);
    /// Adds bits to the value of one lane. Only a single destination that is a number supports this.
    ///
    /// # Safety
    /// The lane has been set.
    #[inline(always)]
    unsafe fn add(self, t: &mut Self::Tmps, lane: usize) {
        self.set(t, lane);
    }
    /// Stores the lanes of `mask`.
    ///
    /// # Safety
    /// The conditions of [`OpFn`], and `t` has been set in every lane.
    unsafe fn finish<const V3: bool>(regs: *mut u8, a: &OpArgs, t: &Self::Tmps, mask: u32);
}

macro_rules! tuple {
    ($($t:ident $n:tt),*) => {
        impl<$($t: Value),*> Inputs for ($($t,)*) {
            #[inline(always)]
            unsafe fn load(regs: *const u8, a: &OpArgs, lane: usize) -> Self {
                // SAFETY: the caller's guarantee covers each source.
                unsafe { ($($t::load(regs.add(a.src[$n] as usize), lane),)*) }
            }
        }
        impl<$($t: Value),*> Outputs for ($($t,)*) {
            type Tmps = ($($t::Tmp,)*);
            #[inline(always)]
            fn tmps() -> Self::Tmps { ($($t::tmp(),)*) }
            #[inline(always)]
            fn set(self, t: &mut Self::Tmps, lane: usize) { $(self.$n.put(&mut t.$n, lane);)* }
            #[inline(always)]
            unsafe fn finish<const V3: bool>(regs: *mut u8, a: &OpArgs, t: &Self::Tmps, mask: u32) {
                // SAFETY: the caller's guarantee covers each destination.
                unsafe { $($t::commit::<V3>(regs.add(a.dst[$n] as usize), &t.$n, mask);)* }
            }
        }
    };
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

#[inline(always)]
unsafe fn vector<L: Lane, const V3: bool>(regs: *mut u8, a: &OpArgs, mask: u32) {
    let mut t = <L::O as Outputs>::tmps();
    for lane in 0..32 {
        // SAFETY: upheld by the caller; every lane below 32 is set before `finish`.
        let i = unsafe { <L::I as Inputs>::load(regs, a, lane) };
        L::lane(i, a.imm).set(&mut t, lane);
    }
    if L::HAS_UPPER {
        for lane in 0..32 {
            // SAFETY: the caller upholds the conditions of `load`; the loop above has set every lane of `t`.
            unsafe {
                let i = <L::I as Inputs>::load(regs, a, lane);
                L::upper(i, a.imm).add(&mut t, lane);
            }
        }
    }
    // SAFETY: the caller upholds the conditions of `finish`; the first loop has set every lane of `t`.
    unsafe { <L::O as Outputs>::finish::<V3>(regs, a, &t, mask) }
}

unsafe fn vector_base<L: Lane>(regs: *mut u8, a: &OpArgs, mask: u32) {
    // SAFETY: upheld by the caller.
    unsafe { vector::<L, false>(regs, a, mask) }
}
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn vector_v3<L: Lane>(regs: *mut u8, a: &OpArgs, mask: u32) {
    // SAFETY: upheld by the caller.
    unsafe { vector::<L, true>(regs, a, mask) }
}
/// Compiles a lane function, and returns the version for this machine.
pub fn code<L: Lane>() -> OpFn {
    #[cfg(target_arch = "x86_64")]
    if version::v3() {
        return vector_v3::<L>;
    }
    vector_base::<L>
}

/// The version that [`code`] returns; tests ask for both.
#[cfg(target_arch = "x86_64")]
mod version {
    use crate::cpu_features::has_x86_64_v3;

    /// Whether to use the `x86-64-v3` version.
    #[cfg(not(test))]
    pub fn v3() -> bool {
        has_x86_64_v3()
    }
    #[cfg(test)]
    pub fn v3() -> bool {
        has_x86_64_v3() && !BASELINE.with(std::cell::Cell::get)
    }
    #[cfg(test)]
    thread_local! {
        /// Makes `code` return the baseline version on this thread.
        pub static BASELINE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
}

/// Runs `f` with the baseline version selected.
#[cfg(test)]
pub fn with_baseline<T>(f: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        version::BASELINE.with(|b| b.set(true));
        let r = f();
        version::BASELINE.with(|b| b.set(false));
        r
    }
    #[cfg(not(target_arch = "x86_64"))]
    f()
}

/// A lane function as an expression: `lane!(|a: u32, b: u32| -> u32 { a & b })`; with `imm n;` in front, `n` is
/// the instruction's immediate; `upper { .. }` at the end is [`Lane::upper`].
macro_rules! lane {
    (imm $imm:ident; |$($a:ident: $t:ty),*| -> $o:ty $body:block) => {{
        struct L;
        impl $crate::semantics::lane::lanes::Lane for L {
            type I = ($($t,)*);
            type O = $o;
            #[inline(always)]
            fn lane(($($a,)*): Self::I, $imm: u32) -> $o $body
        }
        $crate::semantics::lane::lanes::code::<L>()
    }};
    (imm $imm:ident; |$($a:ident: $t:ty),*| -> $o:ty $body:block upper $upper:block) => {{
        struct L;
        impl $crate::semantics::lane::lanes::Lane for L {
            type I = ($($t,)*);
            type O = $o;
            #[inline(always)]
            fn lane(($($a,)*): Self::I, $imm: u32) -> $o $body
            const HAS_UPPER: bool = true;
            #[inline(always)]
            fn upper(($($a,)*): Self::I, $imm: u32) -> $o $upper
        }
        $crate::semantics::lane::lanes::code::<L>()
    }};
    (|$($a:ident: $t:ty),*| -> $o:ty $body:block) => { lane!(imm _imm; |$($a: $t),*| -> $o $body) };
}
pub(super) use lane;
