//! The part of the Python half for libraries with [`Style::Raises`], whose functions return values and raise on a
//! failure status.

use serde::{Deserialize, Serialize};

use super::Builtin;

/// How the functions of a module report failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A tuple that begins with the status; names as in C.
    #[default]
    Tuple,
    /// Functions return values and raise on failure. Names in snake_case, without the library's prefix.
    Raises,
}

/// The return value of a C function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ret")]
pub enum Ret {
    /// A status: zero is success.
    #[default]
    Status,
    /// `CUfileError_t` by value: the library's status, then the driver's.
    CuFile,
    /// `ssize_t`: the first result; -1 is an error with its number in `errno`.
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
    /// Results whose parameters are null in the first call.
    pub arrays: Vec<usize>,
}

/// A struct that the call builds or completes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The C parameter that takes its address.
    pub param: usize,
    /// IR record.
    pub record: String,
    /// `sizeof`.
    pub size: usize,
    /// The storage of its bytes.
    pub store: Store,
    /// Value of its first 32 bits: `sizeof | number << 24`; 0 leaves them unchanged.
    pub version: u32,
    /// Fields written before the call.
    pub inputs: Vec<RequestField>,
    /// Fields read after the call, by the kind of the result.
    pub outputs: Vec<RequestField>,
}

/// The storage of a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "store")]
pub enum Store {
    /// Zeroed, for the call only.
    Scratch,
    /// The bytes of this result, a [`super::ResultKind::BufferStruct`].
    Result {
        /// Result index.
        result: usize,
    },
    /// The bytes of this argument, an [`super::ArgKind::BufferStruct`].
    Arg {
        /// Argument index.
        arg: usize,
    },
}

/// A field of a [`Request`] and its argument or result.
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

/// How many bytes C writes into a caller's buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "size")]
pub enum OutSize {
    /// The value of an argument.
    Arg {
        /// Argument index.
        arg: usize,
    },
    /// The result of another function.
    Call {
        /// Its Python name.
        function: String,
    },
    /// Known.
    Const {
        /// Bytes.
        value: usize,
    },
    /// Unknown.
    Unknown,
}

/// The accepted values for a struct passed by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructRule {
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
    /// The default class: `NvmlError`.
    pub exception: String,
    /// Python name of the status enum: `Result`.
    pub status_enum: String,
    /// Source of the message text.
    pub text: ErrorText,
    /// Whether an exception of an unknown status raises `ValueError`.
    pub unknown_is_value_error: bool,
    /// Statuses with their own classes, by value.
    pub by_status: Vec<(i64, String)>,
}

/// Source of an exception's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorText {
    /// The member's name and value.
    #[default]
    Name,
    /// The library's own function.
    Library,
    /// The member's name and value, and the library's description.
    Explained,
    /// cuFile's: name and value, meaning, and the driver's status.
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
