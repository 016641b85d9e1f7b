//! The macros in which the tables of types are written: one row per class, attribute, enum member, constant, exception.
//!
//! The macros number classes and enums, in the order of the modules ([`super::table::MODULES`]) and of their rows. All other code
//! refers to the ids by name: `class::CUcontext`, `enums::CUresult`.

use std::ffi::CStr;

/// The classes of a module: the table `CLASSES`, `CLASS_INDEX`, and the ids in `mod class`. `after` is the module whose ids
/// come before; `none` for the first module.
///
/// A row has the class's [`Kind`](super::table::Kind), size and alignment in bytes, and the name of the type in C;
/// a row below it has an attribute's [`FieldKind`](super::table::FieldKind), offset in bytes and documented type, and whether it
/// can be assigned (`set`) or only read (`get`).
///
/// ```text
/// CUuuid_st: Record size(16) align(1) flags(SIZEOF) "struct CUuuid_st" {
///     bytes: HexBytes(16) at 0 "bytes" get;
/// }
/// CUuuid: Record size(16) align(1) derives(class::CUuuid_st) flags(SIZEOF) "struct CUuuid_st" {}
/// ```
macro_rules! classes {
    (after $before:ident; $(
        $name:ident: $kind:ident $(($kind_of:expr))? size($size:literal) align($align:literal)
        $(derives($base:expr))? $(flags($($flag:ident)|+))? $(ones($($one:literal),+))? $c_name:literal
        { $($field:ident: $field_kind:ident $(($($field_of:tt)*))? at $offset:literal $doc:literal $access:ident;)* }
    )*) => {
        /// Ids of the classes.
        #[allow(dead_code, missing_docs, non_upper_case_globals)]
        pub mod class {
            #[allow(unused_imports)]
            use $crate::types::table::ClassId;

            /// The id of the first class.
            pub const FIRST: u16 = $crate::types::declare::first_id!($before class);
            /// The first id of the next module.
            pub const END: u16 = FIRST + NAMES.len() as u16;

            const NAMES: &[&str] = &[$(stringify!($name)),*];

            #[allow(clippy::enum_variant_names, clippy::upper_case_acronyms, non_camel_case_types)]
            enum Position { $($name),* }
            $(pub const $name: ClassId = ClassId(FIRST + Position::$name as u16);)*
        }

        const CLASSES: &[$crate::types::table::Class] = {
            #[allow(unused_imports)]
            use $crate::types::table::Prim::*;
            #[allow(unused_imports)]
            use $crate::types::table::*;
            &[$(Class {
                name: $crate::types::declare::c_name(concat!(stringify!($name), "\0")),
                base: $crate::types::declare::or_else!([$(Some($base))?] None),
                kind: Kind::$kind $(($kind_of))?,
                size: $size,
                align: $align,
                flags: $crate::types::declare::or_else!([$($($flag)|+)?] 0),
                c_name: $c_name,
                ones: &[$($($one),+)?],
                fields: &[$(Field {
                    name: $crate::types::declare::c_name(concat!(stringify!($field), "\0")),
                    offset: $offset,
                    kind: FieldKind::$field_kind $(($($field_of)*))?,
                    settable: $crate::types::declare::is_settable!($access),
                    doc: $doc,
                }),*],
            }),*]
        };

        const CLASS_INDEX: &[(&str, u16)] = &$crate::types::declare::index(
            [$(stringify!($name)),*],
            class::FIRST,
        );
    };
}
pub(crate) use classes;

/// The enums of a module: the table `ENUMS`, sorted by name, and the ids in `mod enums`.
///
/// ```text
/// CUctx_flags {
///     CU_CTX_SCHED_AUTO = 0;
/// }
/// ```
///
/// `unsigned` before the braces sets [`Enum::unsigned`](super::table::Enum::unsigned).
macro_rules! enums {
    (after $before:ident; $(
        $name:ident $($signedness:ident)? { $($member:ident = $value:literal;)* }
    )*) => {
        /// Ids of the enums.
        #[allow(dead_code, missing_docs, non_upper_case_globals)]
        pub mod enums {
            use $crate::types::table::EnumId;

            /// The id of the first enum.
            pub const FIRST: u16 = $crate::types::declare::first_id!($before enums);
            /// The first id of the next module.
            pub const END: u16 = FIRST + NAMES.len() as u16;

            const NAMES: &[&str] = &[$(stringify!($name)),*];

            #[allow(clippy::enum_variant_names, clippy::upper_case_acronyms, non_camel_case_types)]
            enum Position { $($name),* }
            $(pub const $name: EnumId = EnumId(FIRST + Position::$name as u16);)*
        }

        const ENUMS: &[$crate::types::table::Enum] = &[$($crate::types::table::Enum {
            name: stringify!($name),
            unsigned: $crate::types::declare::is_unsigned!($($signedness)?),
            members: &[$((stringify!($member), $value)),*],
        }),*];
    };
}
pub(crate) use enums;

/// The constants of a module, sorted by name: `CU_IPC_HANDLE_SIZE = 64;`.
macro_rules! constants {
    ($($name:ident = $value:literal;)*) => {
        const CONSTANTS: &[(&str, i64)] = &[$((stringify!($name), $value)),*];
    };
}
pub(crate) use constants;

/// The NumPy dtypes of a module and their classes, sorted by name: `pci_info_dtype = PciInfo;`.
macro_rules! dtypes {
    ($($name:ident = $class:ident;)*) => {
        const DTYPES: &[(&str, u16)] = &[$((stringify!($name), class::$class.0)),*];
    };
}
pub(crate) use dtypes;

/// The exceptions of a module, `ERRORS`: bases before derived ones. `for` precedes the status that raises the exception.
///
/// ```text
/// errors! { status(enums::Return) text(Explained) unknown_is_value_error(true);
/// NvmlError;
/// UninitializedError: NvmlError for 1;
/// }
/// ```
macro_rules! errors {
    (status($status:expr) text($text:ident) unknown_is_value_error($unknown:literal);
        $($name:ident $(: $base:ident)? $(for $value:literal)?;)*
    ) => {
        static ERRORS: $crate::types::table::Errors = {
            use $crate::types::table::{ErrorText, Errors, Exception};

            #[allow(clippy::enum_variant_names, dead_code, non_camel_case_types)]
            enum Position { $($name),* }
            Errors {
                exceptions: &[$(Exception {
                    name: stringify!($name),
                    base: $crate::types::declare::or_else!([$(Some(Position::$base as u16))?] None),
                }),*],
                index: &$crate::types::declare::index([$(stringify!($name)),*], 0),
                status: $status,
                text: ErrorText::$text,
                unknown_is_value_error: $unknown,
                by_status: &$crate::types::declare::by_status([$($(($value, Position::$name as u16),)?)*]),
            }
        };
    };
}
pub(crate) use errors;

/// The first value, or the second one where the row has no first.
macro_rules! or_else {
    ([] $default:expr) => {
        $default
    };
    ([$($value:tt)+] $default:expr) => {
        $($value)+
    };
}
pub(crate) use or_else;

macro_rules! first_id {
    (none $ids:ident) => {
        0
    };
    ($before:ident $ids:ident) => {
        $crate::generated::$before::$ids::END
    };
}
pub(crate) use first_id;

macro_rules! is_settable {
    (set) => {
        true
    };
    (get) => {
        false
    };
}
pub(crate) use is_settable;

macro_rules! is_unsigned {
    () => {
        false
    };
    (unsigned) => {
        true
    };
}
pub(crate) use is_unsigned;

/// A name that ends in NUL.
pub const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name has one NUL, at its end"),
    }
}

/// The names and their ids, counted from `first`, sorted by name.
pub const fn index<const N: usize>(
    names: [&'static str; N],
    first: u16,
) -> [(&'static str, u16); N] {
    let mut rows = [("", 0); N];
    let mut at = 0;
    while at < N {
        rows[at] = (names[at], first + at as u16);
        at += 1;
    }
    // Heap sort, because constant evaluation counts every step.
    let mut root = N / 2;
    while root > 0 {
        root -= 1;
        sift_down(&mut rows, root, N);
    }
    let mut end = N;
    while end > 1 {
        end -= 1;
        rows.swap(0, end);
        sift_down(&mut rows, 0, end);
    }
    rows
}

/// Moves row `root` down until no child is greater, in a heap of the first `end` rows.
const fn sift_down<const N: usize>(rows: &mut [(&'static str, u16); N], root: usize, end: usize) {
    let mut root = root;
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && is_before(rows[child].0, rows[child + 1].0) {
            child += 1;
        }
        if !is_before(rows[root].0, rows[child].0) {
            return;
        }
        rows.swap(root, child);
        root = child;
    }
}

/// Statuses and positions of their exceptions, sorted by status.
pub const fn by_status<const N: usize>(mut rows: [(i64, u16); N]) -> [(i64, u16); N] {
    let mut sorted = 1;
    while sorted < N {
        let mut at = sorted;
        while at > 0 && rows[at].0 < rows[at - 1].0 {
            rows.swap(at, at - 1);
            at -= 1;
        }
        sorted += 1;
    }
    rows
}

/// `a < b` in constant evaluation.
pub const fn is_before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}
