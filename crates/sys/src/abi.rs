//! What the generated declarations are made with: the shape of C enums and of lazily resolved functions.

use std::ffi::{CStr, c_int};

use crate::loader::PerThreadVariant;

/// One exported symbol of a library, older ABI versions and per-thread variants included: what
/// `cuGetProcAddress` chooses from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPoint {
    /// The name to ask for: `cuMemcpyHtoD`.
    pub base: &'static CStr,
    /// The exported symbol: `cuMemcpyHtoD_v2_ptds`.
    pub symbol: &'static CStr,
    /// The CUDA version that introduced this form, as 1000 × major + 10 × minor.
    pub version: c_int,
    /// What the null stream means to it ([`PerThreadVariant::None`]: the legacy stream, or no stream is involved).
    pub per_thread: PerThreadVariant,
}

/// Declares C enums: transparent integers with constants, because a library may return a value that its
/// header does not know.
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

            /// Members in the order of declaration; two may have the same value.
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

/// Declares functions: the type of each, and a caller that resolves the symbol on first use.
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
        /// As the C function: pointers must be valid for what NVIDIA's documentation says the call does with them.
        #[inline]
        pub unsafe fn $name($($arg: $ty),*) -> Result<$ret, &'static $crate::loader::LoadError> {
            let address = $table.get($index::$name as usize)?;
            // SAFETY: the address is that of the function of this name and ABI version, hence of this type.
            let function = unsafe { std::mem::transmute::<*const std::ffi::c_void, $pfn>(address) };
            // SAFETY: the caller keeps the C function's contract.
            Ok(unsafe { function($($arg),*) })
        }
    )*};
}
pub(crate) use c_functions;

/// Declares structs and unions: C layout, copied as bytes, all zero by default.
macro_rules! zero_default {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> $name {
                // SAFETY: a C struct or union of integers, floats, raw pointers and optional function pointers, for
                // all of which zero bytes are a value.
                unsafe { std::mem::zeroed() }
            }
        }
    )*};
}
pub(crate) use zero_default;
