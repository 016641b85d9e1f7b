//! The part of the Python half that only libraries with [`Style::Raises`] have: their functions return values alone, and
//! a bad status is an exception.

use serde::{Deserialize, Serialize};

use super::Builtin;

/// How the functions of a module tell success from failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A tuple that begins with the status; names as in C.
    #[default]
    Tuple,
    /// The values alone; a failure is an exception. Names in snake_case, without the library's prefix.
    Raises,
}

/// What a C function returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ret")]
pub enum Ret {
    /// A status: zero is success.
    #[default]
    Status,
    /// `CUfileError_t` by value: the library's status, then the driver's.
    CuFile,
    /// `ssize_t`: the first result; -1 is an error that `errno` tells.
    Size,
    /// The first result itself.
    Value {
        /// C type.
        builtin: Builtin,
    },
    /// `const char *`: the first result, a `str`.
    Text,
    /// Nothing.
    Void,
}

/// A call made twice: first with a count of zero and null arrays, to learn the count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizing {
    /// C type of the count ([`super::Role::Count`] is its parameter).
    pub count: Builtin,
    /// Results whose parameters are null the first time.
    pub arrays: Vec<usize>,
}

/// A struct that Python does not see, or sees with a part filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The C parameter that takes its address.
    pub param: usize,
    /// IR record.
    pub record: String,
    /// `sizeof`.
    pub size: usize,
    /// Where its bytes are.
    pub store: Store,
    /// What its first 32 bits hold: `sizeof | number << 24`; 0 leaves them alone.
    pub version: u32,
    /// Fields written before the call.
    pub inputs: Vec<RequestField>,
    /// Fields read after the call; the result's kind says how.
    pub outputs: Vec<RequestField>,
}

/// Where the bytes of a [`Request`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "store")]
pub enum Store {
    /// Zeroed, for the call only.
    Scratch,
    /// Those of this result, a [`super::ResultKind::Pod`].
    Result {
        /// Result index.
        result: usize,
    },
    /// Those of this argument, an [`super::ArgKind::Pod`].
    Arg {
        /// Argument index.
        arg: usize,
    },
}

/// A field of a [`Request`] and what it is to Python.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestField {
    /// C name.
    pub field: String,
    /// Offset in bytes.
    pub offset: usize,
    /// C type of an integer field; `Char` for `char[N]`.
    pub builtin: Builtin,
    /// Index of the argument or of the result.
    pub index: usize,
}

/// How much C writes into a buffer of the caller's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "size")]
pub enum OutSize {
    /// As many bytes as an argument says.
    Arg {
        /// Argument index.
        arg: usize,
    },
    /// As many as another function says.
    Call {
        /// Its Python name.
        function: String,
    },
    /// Known.
    Const {
        /// Bytes.
        value: usize,
    },
    /// Nobody knows.
    Unknown,
}

/// What is taken for a struct by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PodRule {
    /// An instance, an address, or None for null.
    Address,
    /// An instance only.
    Exact,
    /// An address only.
    Plain,
}

/// The exceptions of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PyErrors {
    /// Class raised where no other is: `NvmlError`.
    pub exception: String,
    /// Python name of the status enum: `Result`.
    pub status_enum: String,
    /// Where the text comes from.
    pub text: ErrorText,
    /// Whether making an exception of a status that is no member is a `ValueError`.
    pub unknown_is_value_error: bool,
    /// Statuses that have classes of their own, by value.
    pub by_status: Vec<(i64, String)>,
}

/// Where the text of an exception comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorText {
    /// The member's name and value.
    #[default]
    Name,
    /// The library's own function.
    Library,
    /// cuFile's: name and value, what it means, and the driver's status.
    #[serde(rename = "cufile")]
    CuFile,
}

/// An exception class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PyException {
    /// Name.
    pub name: String,
    /// Base class; `None` is `Exception`.
    pub base: Option<String>,
}
