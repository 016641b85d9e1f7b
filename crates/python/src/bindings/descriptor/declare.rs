//! The macros in which the tables of functions are written: one row per function, one per thunk.

use std::ffi::c_void;

/// A type of a C parameter, which a thunk reads from a word.
pub trait FromWord {
    /// The value that a word stands for.
    ///
    /// # Safety
    ///
    /// For a struct, the word is the address of a value of this type.
    unsafe fn from_word(word: u64) -> Self;
}

macro_rules! integers_from_words {
    ($($ty:ident)*) => {$(
        impl FromWord for $ty {
            #[inline(always)]
            unsafe fn from_word(word: u64) -> $ty {
                word as $ty
            }
        }
    )*};
}
integers_from_words!(u8 u16 u32 u64);

impl FromWord for f32 {
    #[inline(always)]
    unsafe fn from_word(word: u64) -> f32 {
        f32::from_bits(word as u32)
    }
}

impl FromWord for f64 {
    #[inline(always)]
    unsafe fn from_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

/// Structs that C takes by value: the word is the struct's address.
macro_rules! structs_by_value {
    ($($ty:path),* $(,)?) => {$(
        impl $crate::bindings::descriptor::declare::FromWord for $ty {
            #[inline(always)]
            unsafe fn from_word(word: u64) -> $ty {
                // SAFETY: as promised by the caller.
                unsafe { std::ptr::with_exposed_provenance::<$ty>(word as usize).read() }
            }
        }
    )*};
}
pub(crate) use structs_by_value;

/// A result of a C function, which a thunk widens to a word.
pub trait IntoWord {
    /// The word; 0 for `void`.
    fn into_word(self) -> i64;
}

impl IntoWord for i32 {
    #[inline(always)]
    fn into_word(self) -> i64 {
        i64::from(self)
    }
}

impl IntoWord for i64 {
    #[inline(always)]
    fn into_word(self) -> i64 {
        self
    }
}

impl IntoWord for () {
    #[inline(always)]
    fn into_word(self) -> i64 {
        0
    }
}

/// Reads the words of a call in order.
pub struct Words(pub *const u64);

impl Words {
    /// The next word as a value of type `T`.
    ///
    /// # Safety
    ///
    /// There is a next word, and it fulfils the contract of [`FromWord::from_word`].
    #[inline(always)]
    pub unsafe fn next<T: FromWord>(&mut self) -> T {
        // SAFETY: as promised by the caller.
        unsafe {
            let word = *self.0;
            self.0 = self.0.add(1);
            T::from_word(word)
        }
    }
}

/// Thunks ([`Thunk`](super::Thunk)): a name and the C signature, in which an integer or pointer is an unsigned integer of its
/// size.
///
/// ```text
/// call_qqw_w: (u64, u64, u32) -> i32;
/// ```
macro_rules! thunks {
    ($($name:ident: ($($ty:ty),*) -> $ret:ty;)*) => {$(
        #[allow(missing_docs, non_snake_case, unused_mut, unused_variables)]
        pub unsafe fn $name(symbol: *const std::ffi::c_void, words: *const u64) -> i64 {
            use $crate::bindings::descriptor::declare::{IntoWord, Words};
            let mut words = Words(words);
            // SAFETY: the caller passes a function of this C signature and one word for each parameter. Arguments are
            // evaluated from left to right.
            unsafe {
                let function = std::mem::transmute::<
                    *const std::ffi::c_void,
                    unsafe extern "C" fn($($ty),*) -> $ret,
                >(symbol);
                function($(words.next::<$ty>()),*).into_word()
            }
        }
    )*};
}
pub(crate) use thunks;

/// The thunk of functions without a C function, whose hook never calls it.
///
/// # Safety
///
/// None; the signature is that of all thunks.
pub unsafe fn no_thunk(_symbol: *const c_void, _words: *const u64) -> i64 {
    0
}

/// The table `FUNCTIONS` of a module, verified at compile time. Its functions return a status (`returns_status`) or raise for a bad one
/// (`raises`).
///
/// A row has the Python signature, in which each parameter has a conversion ([`Conv`](super::Conv)) and its documented type,
/// and each result a conversion ([`Out`](super::Out)) and its documented type; then the thunk, the symbol, and the sources of
/// the C arguments ([`Word`](super::Word)). A function without a C function has nothing between the braces.
///
/// ```text
/// cuMemAlloc(bytesize: Int(U64) "size_t") -> (dptr: Handle(class::CUdeviceptr, U64) "CUdeviceptr") { call_qq_w cuMemAlloc(Result(0), Arg(0)) };
/// ```
///
/// What follows, each at most once and in this order, deviates from the usual:
///
/// - `gil(keep)`: [`Function::keep_gil`](super::Function::keep_gil)
/// - `hook(path)`: [`Function::hook`](super::Function::hook), a path in `crate::bindings::custom`
/// - `alone(true)`: [`Function::value_alone`](super::Function::value_alone)
/// - `ret(...)`: [`Raising::ret`](super::Raising::ret), otherwise a status
/// - `sizing(type, arrays)`: [`Raising::sizing`](super::Raising::sizing)
/// - `requests(...)`: [`Raising::requests`](super::Raising::requests)
macro_rules! functions {
    ($module:ident $style:ident; $(
        $name:ident($(
            $param:ident: $conv:ident $(($($conv_of:tt)*))? $param_doc:literal $(= $default:expr)?
        ),*) -> ($(
            $result:tt: $out:ident $(($($out_of:tt)*))? $result_doc:literal
        ),*) { $($thunk:ident $symbol:ident($($word:ident $(($($word_of:tt)*))?),*))? }
        $(gil($gil:ident))?
        $(hook($hook:path))?
        $(alone($alone:literal))?
        $(ret($ret:expr))?
        $(sizing($count:expr, $arrays:expr))?
        $(requests($($request:expr),*))?;
    )*) => {
        /// All functions, sorted by name.
        #[allow(unused_imports)]
        pub static FUNCTIONS: &[$crate::bindings::descriptor::Function] = {
            use $crate::bindings::descriptor::Int::{I8, I16, I32, I64, U8, U16, U32, U64};
            use $crate::bindings::descriptor::*;
            use $crate::bindings::descriptor::declare::{keeps_gil, raising, result_name};
            use $crate::types::declare::or_else;
            &[$(Function {
                name: stringify!($name),
                module: Module::$module,
                symbol: or_else!([$(Symbol::$symbol as u16)?] NO_SYMBOL),
                thunk: or_else!([$($thunk)?] $crate::bindings::descriptor::declare::no_thunk),
                keep_gil: keeps_gil!($($gil)?),
                params: &[$(Param {
                    name: stringify!($param),
                    doc: $param_doc,
                    conv: Conv::$conv $(($($conv_of)*))?,
                    default: or_else!([$(Some($default))?] None),
                }),*],
                words: &[$($(Word::$word $(($($word_of)*))?),*)?],
                results: &[$(Output {
                    name: result_name!($result),
                    doc: $result_doc,
                    kind: Out::$out $(($($out_of)*))?,
                }),*],
                hook: or_else!([$(Some($hook))?] None),
                raising: raising!(
                    $style,
                    or_else!([$($ret)?] Ret::Status),
                    or_else!([$(Some(Sizing { count: $count, arrays: &$arrays }))?] None),
                    &[$($($request),*)?]
                ),
                value_alone: or_else!([$($alone)?] false),
            }),*]
        };

        const _: () = $crate::bindings::descriptor::verify::verify(FUNCTIONS);
    };
}
pub(crate) use functions;

macro_rules! keeps_gil {
    () => {
        false
    };
    (keep) => {
        true
    };
}
pub(crate) use keeps_gil;

/// The name of a result; `_` is a result without a name.
macro_rules! result_name {
    (_) => {
        ""
    };
    ($name:ident) => {
        stringify!($name)
    };
}
pub(crate) use result_name;

macro_rules! raising {
    (returns_status, $ret:expr, $sizing:expr, $requests:expr) => {
        None
    };
    (raises, $ret:expr, $sizing:expr, $requests:expr) => {
        Some(&Raising {
            ret: $ret,
            sizing: $sizing,
            requests: $requests,
        })
    };
}
pub(crate) use raising;
