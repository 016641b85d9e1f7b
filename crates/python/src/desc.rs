//! What a function of the bindings is: data. The tables in `generated/` are made of these.

#![allow(
    dead_code,
    reason = "the vocabulary is larger than what today's tables say with it"
)]

use std::ffi::c_void;

use cupyrite_sys::loader::Library;

use crate::types::{ClassId, EnumId};

/// Calls `symbol` with the words at the pointer, each taken as the C signature says (a by-value struct is a word
/// with its address). One exists for each distinct C signature.
pub type Thunk = unsafe fn(symbol: *const c_void, words: *const u64) -> i64;

/// The most Python parameters a function has.
pub const MAX_PARAMS: usize = 16;
/// The most C parameters a function has.
pub const MAX_WORDS: usize = 20;
/// The most results a function has, besides its status.
pub const MAX_RESULTS: usize = 8;
/// The most results a plain function has.
pub const PLAIN_RESULTS: usize = 4;

/// A function of `cuda.bindings`.
#[derive(Debug)]
pub struct Function {
    /// Python name.
    pub name: &'static str,
    /// The library it belongs to.
    pub library: Library,
    /// Index of its symbol in the library's table.
    pub symbol: u16,
    /// How it is called.
    pub thunk: Thunk,
    /// Whether the GIL stays held: reads that take no lock and never call back.
    pub keep_gil: bool,
    /// Python parameters in order.
    pub params: &'static [Param],
    /// C parameters in order.
    pub words: &'static [Word],
    /// What comes back after the status.
    pub results: &'static [Output],
    /// Set where the general engine does not do.
    pub special: Special,
    /// Whether every argument and result is one word, so that the short way through the engine does.
    pub plain: bool,
}

/// A Python parameter.
#[derive(Debug)]
pub struct Param {
    /// Name.
    pub name: &'static str,
    /// Documented type, e.g. `size_t`, `CUstream`.
    pub doc: &'static str,
    /// How the value is converted.
    pub conv: Conv,
    /// The value if it is not given.
    pub default: Option<i64>,
}

/// C's integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Int {
    /// `signed char`
    I8,
    /// `unsigned char`
    U8,
    /// `short`
    I16,
    /// `unsigned short`
    U16,
    /// `int`
    I32,
    /// `unsigned int`
    U32,
    /// `long long`
    I64,
    /// `unsigned long long`, `size_t`
    U64,
}

impl Int {
    /// Size in bytes.
    pub const fn size(self) -> usize {
        match self {
            Int::I8 | Int::U8 => 1,
            Int::I16 | Int::U16 => 2,
            Int::I32 | Int::U32 => 4,
            Int::I64 | Int::U64 => 8,
        }
    }

    /// As C writes it.
    pub const fn c_name(self) -> &'static str {
        match self {
            Int::I8 => "signed char",
            Int::U8 => "unsigned char",
            Int::I16 => "short",
            Int::U16 => "unsigned short",
            Int::I32 => "int",
            Int::U32 => "unsigned int",
            Int::I64 => "long long",
            Int::U64 => "unsigned long long",
        }
    }
}

/// How a Python argument becomes a C value.
#[derive(Clone, Copy, Debug)]
pub enum Conv {
    /// An integer within the range of the type.
    Int(Int),
    /// The same, where `None` is zero.
    IntOrNone(Int),
    /// A float.
    F32,
    /// A double.
    F64,
    /// A member of an enum, or anything `int()` takes.
    Enum(EnumId),
    /// An instance of a handle class, an integer or `None`; the C type's range.
    Handle(ClassId, Int),
    /// The same, passed by address: the object's own storage where there is one, null for `None`.
    HandlePtr(ClassId, Int),
    /// The same as [`Conv::HandlePtr`], where C takes an array as long as the parameter with this index says, and
    /// Python can give one element only.
    HandleArray(ClassId, Int, u8),
    /// A struct by address, `None` is null, where C takes an array as long as the parameter with this index says, and
    /// Python can give one element only.
    StructArray(ClassId, u8),
    /// A struct by address, `None` is null.
    Struct(ClassId),
    /// A struct by value: the word is its address.
    StructValue(ClassId),
    /// A list or tuple as a C array, and its least length.
    List(Element, Option<Count>),
    /// `bytes` as `const char *`.
    Bytes,
    /// `bytes` that C writes into; the index of the parameter with its size, where there is one.
    BytesOut(Option<u8>),
    /// `void *`: an address, a buffer, an object that knows its pointer, `None`; the index of the parameter with
    /// the number of bytes C touches there, where there is one.
    VoidPtr(Option<u8>),
    /// `void *` to a value whose type the parameter with this index selects.
    Attribute(EnumId, u8),
    /// Option values: the enum of the options, the parameters with the options and their number.
    Options(EnumId, u8, u8),
    /// Arguments of a kernel.
    KernelParams,
    /// `void **` as an address.
    VoidPtrPtr,
}

/// The least length of a list: the value of a parameter, less a constant.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// Index of the parameter.
    pub param: u8,
    /// What is taken off its value.
    pub less: u8,
    /// Whether an empty list or `None` is a null pointer whatever the count.
    pub optional: bool,
}

/// Element of a list.
#[derive(Clone, Copy, Debug)]
pub enum Element {
    /// An integer.
    Int(Int),
    /// A float.
    F32,
    /// A double.
    F64,
    /// An enum member, 4 bytes.
    Enum(EnumId),
    /// A handle, and its C type's range.
    Handle(ClassId, Int),
    /// A struct, and its size.
    Struct(ClassId, u32),
    /// `const char *`.
    Bytes,
    /// `void *`.
    VoidPtr,
}

impl Element {
    /// Size in bytes in the C array.
    pub const fn size(self) -> usize {
        match self {
            Element::Int(int) => int.size(),
            Element::F32 | Element::Enum(_) => 4,
            Element::F64 | Element::Bytes | Element::VoidPtr => 8,
            Element::Handle(_, kind) => kind.size(),
            Element::Struct(_, size) => size as usize,
        }
    }
}

/// Where a C argument comes from.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// The converted Python argument.
    Arg(u8),
    /// The address of the converted Python argument.
    ArgAddress(u8),
    /// The storage of a result.
    Result(u8),
    /// The storage of a result, holding the converted argument before the call.
    InOut(u8, u8),
    /// Zero.
    Null,
}

/// A result.
#[derive(Debug)]
pub struct Output {
    /// Documented name.
    pub name: &'static str,
    /// Type as it shows in Python.
    pub doc: &'static str,
    /// How it is made.
    pub kind: Out,
}

/// How a C output becomes a Python object.
#[derive(Clone, Copy, Debug)]
pub enum Out {
    /// An int.
    Int(Int),
    /// A float.
    F32,
    /// A double.
    F64,
    /// An enum member.
    Enum(EnumId),
    /// A fresh handle, and its C type's range.
    Handle(ClassId, Int),
    /// A fresh struct.
    Struct(ClassId),
    /// `bytes` of a length; cut at the first nul if the flag says so.
    Bytes(Len, bool),
    /// `bytes` from `const char *`, `None` from null.
    CString,
    /// A list.
    List(Element, Len),
    /// An address as an int.
    VoidPtr,
    /// A value whose type the parameter with this index selects.
    Attribute(EnumId, u8),
}

/// A number of elements.
#[derive(Clone, Copy, Debug)]
pub enum Len {
    /// The value of a Python argument.
    Arg(u8),
    /// Known.
    Const(u32),
}

/// Functions with a part written by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Nothing special.
    None,
    /// `cuCtxCreate`: CUDA 12's two arguments too.
    CtxCreate,
    /// `cuCoredumpGetAttribute[Global]`
    CoredumpGet,
    /// `cuCoredumpSetAttribute[Global]`
    CoredumpSet,
    /// `cuPointerGetAttributes`
    PointerGetAttributes,
    /// `cuMemRangeGetAttribute`
    RangeGetAttribute,
    /// `cuMemRangeGetAttributes`
    RangeGetAttributes,
    /// `cuStreamGetCaptureInfo`
    CaptureInfo,
    /// `cuLinkCreate`: what the options point at lives until `cuLinkDestroy`.
    LinkCreate,
    /// `cuLinkDestroy`
    LinkDestroy,
    /// `nvrtcGetPTX` and its like: the buffer is checked against the size that another function tells.
    NvrtcGet,
    /// `nvrtcGetCUBIN`: remembered for the CPU device.
    NvrtcGetCubin,
    /// `nvrtcGetSupportedArchs`
    NvrtcArchs,
    /// `nvrtcGetErrorString`: returns the text, not a status.
    NvrtcErrorString,
    /// `sizeof`
    Sizeof,
}

/// Checks a table while it is compiled: the engine reads it without checking again.
///
/// # Panics
///
/// An index leads out of its table, a table is too long for a call's frame, or the names are not sorted.
pub const fn verify(functions: &[Function]) {
    let mut at = 0;
    while at < functions.len() {
        let f = &functions[at];
        assert!(f.params.len() <= MAX_PARAMS, "too many parameters");
        assert!(f.words.len() <= MAX_WORDS, "too many C parameters");
        assert!(f.results.len() <= MAX_RESULTS, "too many results");
        assert!(
            !f.plain || f.results.len() <= PLAIN_RESULTS,
            "too many results"
        );
        let mut word = 0;
        while word < f.words.len() {
            match f.words[word] {
                Word::Arg(arg) | Word::ArgAddress(arg) => {
                    assert!((arg as usize) < f.params.len(), "no such parameter");
                }
                Word::Result(result) => {
                    assert!((result as usize) < f.results.len(), "no such result");
                }
                Word::InOut(arg, result) => {
                    assert!((arg as usize) < f.params.len(), "no such parameter");
                    assert!((result as usize) < f.results.len(), "no such result");
                }
                Word::Null => {}
            }
            word += 1;
        }
        let mut param = 0;
        while param < f.params.len() {
            let other = match f.params[param].conv {
                Conv::HandleArray(_, _, other) | Conv::StructArray(_, other) => other,
                Conv::BytesOut(Some(other)) | Conv::VoidPtr(Some(other)) => other,
                Conv::List(_, Some(count)) => count.param,
                Conv::Attribute(_, other) => other,
                Conv::Options(_, options, count) => {
                    assert!((options as usize) < f.params.len(), "no such parameter");
                    count
                }
                _ => 0,
            };
            assert!((other as usize) < f.params.len(), "no such parameter");
            param += 1;
        }
        let mut result = 0;
        while result < f.results.len() {
            let other = match f.results[result].kind {
                Out::Bytes(Len::Arg(other), _) | Out::List(_, Len::Arg(other)) => other,
                Out::Attribute(_, other) => other,
                _ => 0,
            };
            let known = (other as usize) < f.params.len();
            assert!(other == 0 || known, "no such parameter");
            result += 1;
        }
        if at > 0 {
            assert!(
                before(functions[at - 1].name, f.name),
                "names are not sorted"
            );
        }
        at += 1;
    }
}

/// Whether `a` sorts before `b`, for constants.
const fn before(a: &str, b: &str) -> bool {
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
