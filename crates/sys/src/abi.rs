//! Macros of the generated declarations: C enums, zero-initialized structs, lazily resolved functions.

use std::ffi::{CStr, c_int};

use crate::loader::PerThreadVariant;

/// One exported symbol of a library, including older ABI versions and per-thread variants: a candidate of
/// `cuGetProcAddress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPoint {
    /// The name that `cuGetProcAddress` takes: `cuMemcpyHtoD`.
    pub base: &'static CStr,
    /// The exported symbol: `cuMemcpyHtoD_v2_ptds`.
    pub symbol: &'static CStr,
    /// The CUDA version that introduced this ABI version, as 1000 × major + 10 × minor.
    pub version: c_int,
    /// The meaning of the null stream ([`PerThreadVariant::None`]: the legacy stream, or no stream).
    pub per_thread: PerThreadVariant,
}

/// Declares C enums as transparent integers with constants, because a library may return a value that its header does
/// not declare.
macro_rules! c_enums {
    ($(
        $(#[$meta:meta])*
        $name:ident: $int:ty { $($member:ident = $value:expr),* $(,)? }
    )*) => {$(
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            $(pub const $member: $name = $name($value);)*

            /// Members in declaration order; values may repeat.
            pub const MEMBERS: &'static [(&'static str, $name)] =
                &[$((stringify!($member), $name($value))),*];

            /// The name of the first member with this value.
            pub fn name(self) -> Option<&'static str> {
                Self::MEMBERS.iter().find(|(_, value)| *value == self).map(|(name, _)| *name)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({})"), self.0),
                }
            }
        }
    )*};
}
pub(crate) use c_enums;

/// Declares functions: the type of each, and a wrapper that resolves the symbol on first use.
macro_rules! c_functions {
    ($table:ident, $index:ident; $(
        $(#[$meta:meta])*
        $name:ident / $pfn:ident ($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty;
    )*) => {$(
        #[doc = concat!("The C type of [`", stringify!($name), "`].")]
        pub type $pfn = unsafe extern "C" fn($($arg: $ty),*) -> $ret;

        $(#[$meta])*
        ///
        /// # Errors
        ///
        /// The library or the symbol is missing; nothing was called.
        ///
        /// # Safety
        ///
        /// The contract of the C function: pointers must be valid for the accesses that NVIDIA's manual documents.
        #[inline]
        pub unsafe fn $name($($arg: $ty),*) -> Result<$ret, &'static $crate::loader::LoadError> {
            let address = $table.get($index::$name as usize)?;
            // SAFETY: the symbol table returns the function of this name and ABI version, which has this type.
            let function = unsafe { std::mem::transmute::<*const std::ffi::c_void, $pfn>(address) };
            // SAFETY: the caller upholds the C function's contract.
            Ok(unsafe { function($($arg),*) })
        }
    )*};
}
pub(crate) use c_functions;

/// Implements `Default` as all zero bytes, and [`Plain`](crate::checked::caller::Plain), for structs and unions.
macro_rules! plain_structs {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> $name {
                // SAFETY: a C struct or union of integers, floats, raw pointers and optional function pointers, for
                // which zero bytes are valid.
                unsafe { std::mem::zeroed() }
            }
        }

        // SAFETY: such a struct or union has no invalid bit patterns; C enums are integers.
        unsafe impl $crate::checked::caller::Plain for $name {}
    )*};
}
pub(crate) use plain_structs;
