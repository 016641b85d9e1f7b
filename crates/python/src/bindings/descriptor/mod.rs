//! Descriptors: the bound functions as data. The tables in `generated/` consist of these types.
//!
//! Belongs here: the types, the macros in which the tables are written ([`declare`]), and their verification at compile time
//! ([`verify`]). Does not belong here: what the engine does with them ([`crate::bindings::call`]).

pub mod declare;
pub mod verify;

use std::ffi::c_void;

use cupyrite_sys::loader::CudaLibrary;
use pyo3::ffi;

use crate::bindings::errors::Site;
use crate::cpython::{Obj, Owned, R};
pub use crate::types::Module;
pub use crate::types::table::Slice;
use crate::types::{ClassId, EnumId};

/// Calls `symbol` with the words at the pointer, each converted to its type in the C signature (a by-value struct is a
/// word with its address). There is one thunk for each distinct C signature.
pub type Thunk = unsafe fn(symbol: *const c_void, words: *const u64) -> i64;

/// Largest number of Python parameters.
pub const MAX_PARAMS: usize = 16;
/// Largest number of C parameters.
pub const MAX_WORDS: usize = 20;
/// Largest number of results, not counting the status.
pub const MAX_RESULTS: usize = 8;
/// Largest number of [`Request`]s of a function.
pub const MAX_REQUESTS: usize = 2;

/// A function of `cuda.bindings`.
#[derive(Debug)]
pub struct Function {
    /// Python name.
    pub name: &'static str,
    /// The module it belongs to.
    pub module: Module,
    /// Index of its symbol in the library's table; [`NO_SYMBOL`] if it has no C function.
    pub symbol: u16,
    /// Calls the symbol.
    pub thunk: Thunk,
    /// Whether the GIL is held during the call: for reads that take no lock and never call back.
    pub keep_gil: bool,
    /// Python parameters in order.
    pub params: &'static [Param],
    /// C parameters in order.
    pub words: &'static [Word],
    /// Results after the status.
    pub results: &'static [Output],
    /// Code of its own (`crate::bindings::custom`).
    pub hook: Option<Hook>,
    /// Additional data for libraries whose functions raise.
    pub raising: Option<&'static Raising>,
    /// Whether a function that does not raise returns its value without a status: `sizeof`, `make_cudaExtent`.
    pub value_alone: bool,
}

impl Function {
    /// The C library that the function calls.
    #[inline(always)]
    pub const fn library(&self) -> CudaLibrary {
        self.module.library()
    }

    /// The symbol that the function calls, with the suffix of its ABI version: `cuMemAlloc_v2`. `None` if it has no C
    /// function.
    pub fn export(&self) -> Option<&'static str> {
        let symbols = cupyrite_sys::table(self.library()).symbols();
        let symbol = symbols.get(usize::from(self.symbol))?;
        symbol.export.to_str().ok()
    }
}

/// The [`Function::symbol`] of a function without a C function. Such a function has a hook.
pub const NO_SYMBOL: u16 = u16::MAX;

/// Makes a call with bound arguments, in place of [`crate::bindings::call::general::call`].
pub type Hook = fn(Arguments<'_>) -> R<Owned>;

/// The arguments of a call, one for each parameter.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// The function.
    pub f: &'static Function,
    args: *const *mut ffi::PyObject,
    life: std::marker::PhantomData<&'a ffi::PyObject>,
}

impl<'a> Arguments<'a> {
    /// The arguments of a call of `f`.
    ///
    /// # Safety
    ///
    /// `args` holds one pointer for each parameter, null or to an object that is live for `'a`.
    #[inline(always)]
    pub unsafe fn new(f: &'static Function, args: *const *mut ffi::PyObject) -> Arguments<'a> {
        Arguments {
            f,
            args,
            life: std::marker::PhantomData,
        }
    }

    /// The argument for parameter `index`; `None` if it was not passed.
    #[inline(always)]
    pub fn get(self, index: usize) -> Option<Obj<'a>> {
        debug_assert!(index < self.f.params.len());
        // SAFETY: as promised by the caller of `new`.
        unsafe {
            let ptr = *self.args.add(index);
            (!ptr.is_null()).then(|| Obj::new(ptr))
        }
    }

    /// The site of parameter `index`, for messages.
    #[inline(always)]
    pub fn site(self, index: usize) -> Site {
        Site {
            func: self.f.name,
            param: self.f.params[index].name,
        }
    }
}

/// Additional data of a function that raises: it returns its values without a status and raises for a bad status.
#[derive(Debug)]
pub struct Raising {
    /// Return type of the C function.
    pub ret: Ret,
    /// How a first call queries the number of elements.
    pub sizing: Option<Sizing>,
    /// Structs that C takes and that the engine creates or completes.
    pub requests: &'static [Request],
}

/// Return type of a C function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ret {
    /// A status: zero is success.
    Status,
    /// `CUfileError_t`: the library's status in the low 32 bits, the driver's above.
    CuFile,
    /// `ssize_t`: the first result; -1 is an error whose code is in `errno`.
    Size,
    /// The first result itself.
    Value(Int),
    /// `const char *`: the first result, a `str`.
    Text,
    /// Nothing.
    Void,
}

/// A function that is called twice: a first call, without room for the arrays, returns the number of elements.
#[derive(Debug)]
pub struct Sizing {
    /// The type of the number.
    pub count: Int,
    /// The results ([`Out::Slice`], [`Out::BufferStructs`], [`Out::Str`] of [`Len::Counted`]) that are null in the first call.
    pub arrays: &'static [u8],
}

/// A struct created or completed by the engine ([`Word::Request`]).
#[derive(Debug)]
pub struct Request {
    /// Storage of its bytes.
    pub store: Store,
    /// Value of its first 32 bits: size and number of the struct's version. 0 leaves them unchanged.
    pub version: u32,
    /// Fields written before the call: offset, type, Python parameter.
    pub inputs: &'static [(u32, Int, u8)],
    /// Fields read after the call: offset, result. The result's kind is the field's type ([`Out::Int`], [`Out::Bool`],
    /// [`Out::Address`], [`Out::Str`] of [`Len::Const`]).
    pub outputs: &'static [(u32, u8)],
}

/// Storage of the bytes of a [`Request`].
#[derive(Clone, Copy, Debug)]
pub enum Store {
    /// This many zeroed bytes, valid during the call.
    Scratch(u32),
    /// The result with this index, an [`Out::BufferStruct`].
    Result(u8),
    /// The argument with this index, a [`Conv::BufferStruct`].
    Arg(u8),
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
    /// Default value; [`NONE`] for `None`.
    pub default: Option<i64>,
}

/// The default value `None` of a parameter that a hook converts.
pub const NONE: i64 = i64::MIN;

impl Param {
    /// The default value in Python.
    pub fn default_text(&self) -> Option<String> {
        self.default.map(|value| match value {
            NONE => "None".to_owned(),
            value => value.to_string(),
        })
    }
}

/// C's integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the headers determine which variants occur")]
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

    /// Name in C.
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

/// Conversion of a Python argument to a C value.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the headers determine which variants occur")]
pub enum Conv {
    /// An integer within the range of the type.
    Int(Int),
    /// The same; `None` is zero.
    IntOrNone(Int),
    /// A float.
    F32,
    /// A double.
    F64,
    /// A member of an enum, or anything `int()` takes.
    Enum(EnumId),
    /// An instance of a handle class, an integer or `None`; the C type, for its range.
    Handle(ClassId, Int),
    /// The same, passed by address: of the object's own storage if it has one; null for `None`.
    HandlePtr(Int),
    /// The same as [`Conv::HandlePtr`], where C takes an array whose length is the parameter with this index, and Python
    /// can pass a single element only.
    HandleArray(Int, u8),
    /// A struct by address, `None` is null, where C takes an array whose length is the parameter with this index, and
    /// Python can pass a single element only.
    StructArray(ClassId, u8),
    /// A struct by address, `None` is null.
    Struct(ClassId),
    /// A struct by value: the word is its address.
    StructValue(ClassId),
    /// A list or tuple as a C array, and its minimum length.
    List(Element, Option<Count>),
    /// `bytes` as `const char *`.
    Bytes,
    /// `bytes` that C writes into; the index of the parameter with its size, if any.
    BytesOut(Option<u8>),
    /// `void *`: an address, a buffer, an object with `getPtr()`, or `None`; the index of the parameter with the number
    /// of bytes that C accesses, if any.
    VoidPtr(Option<u8>),
    /// `void *` to rows: the parameters with the pitch in bytes, the bytes of a row that C accesses, and the number of
    /// rows.
    Rows(u8, u8, u8),
    /// `void *` to a value whose type is selected by the parameter with this index.
    Attribute(EnumId, u8),
    /// Option values: the enum of the options, the parameters with the options and their number.
    Options(EnumId, u8, u8),
    /// Kernel arguments.
    KernelParams,
    /// `void **` as an address.
    VoidPtrPtr,
    /// An address or foreign handle (`intptr_t`): an integer, not a float.
    Address,
    /// C's `bool`: the truth of any object.
    Bool,
    /// `str` as UTF-8, nul-terminated.
    Str,
    /// A sequence of `str` or `bytes` as `const char **`, or the address of one; the index of the parameter with
    /// the number of strings.
    StrList(Option<u8>),
    /// Memory that C reads: `None`, an address, or a buffer. The parameter with this index is the exact size of the buffer
    /// in bytes.
    Buffer(Option<u8>),
    /// Memory that C writes: `None`, an address, or a writable buffer of at least this size.
    BufferOut(OutSize),
    /// Text or an image: `None`, an address, `bytes`, or another buffer, which C gets with a nul at the end.
    Text,
    /// Handles or addresses as a C array: `None`, an address, a sequence of integers, or a buffer of 64-bit integers. The
    /// parameter with this index is their number.
    Addresses(Option<u8>),
    /// Memory that C writes: `None`, an address (not checked), or a writable buffer, at least as large as the parameter with
    /// this index.
    Writable(Option<u8>),
    /// A struct by address, or by value: the word is its address.
    BufferStruct(ClassId, StructRule),
    /// A struct of this many bytes by value: its address, which must be readable.
    AddressOf(u32),
    /// Structs by address: an instance, an address or `None`. The parameter with this index is their number.
    BufferStructs(ClassId, u8),
    /// A handle of the library that must not have been destroyed.
    LiveHandle(HandleKind),
    /// The same; the call destroys it.
    DestroyedHandle(HandleKind),
}

/// Number of bytes that C writes into the caller's buffer.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the headers determine which variants occur")]
pub enum OutSize {
    /// The value of the parameter with this index.
    Arg(u8),
    /// What the module's function of this name returns for the first argument.
    Call(&'static str),
    /// A constant.
    Const(u32),
    /// Not known.
    Unknown,
}

/// Arguments accepted for a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructRule {
    /// An instance of the class, an address, or `None` for null.
    Address,
    /// An instance of the class only.
    Exact,
    /// An address only.
    Plain,
}

/// Handles that the engine tracks: the libraries crash on destroyed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HandleKind {
    /// `nvJitLinkHandle`
    NvJitLink,
    /// `nvvmProgram`
    Nvvm,
    /// `nvFatbinHandle`
    NvFatbin,
    /// `nvmlEventSet_t`
    NvmlEventSet,
    /// `nvmlSystemEventSet_t`
    NvmlSystemEventSet,
}

impl HandleKind {
    /// Number of kinds.
    pub const COUNT: usize = 5;
}

/// The minimum length of a list: the value of a parameter, minus a constant.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// Index of the parameter.
    pub param: u8,
    /// Subtracted from its value.
    pub less: u8,
    /// Whether an empty list or `None` is a null pointer regardless of the count.
    pub optional: bool,
}

/// Element of a list.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the headers determine which variants occur")]
pub enum Element {
    /// An integer.
    Int(Int),
    /// A float.
    F32,
    /// A double.
    F64,
    /// An enum member, 4 bytes.
    Enum(EnumId),
    /// A handle, and its C type, for its range.
    Handle(ClassId, Int),
    /// A struct, and its size.
    Struct(ClassId, u32),
    /// `const char *`.
    Bytes,
    /// `void *`.
    VoidPtr,
    /// A handle or address, given as an integer or a handle object.
    Address,
}

impl Element {
    /// Size in bytes in the C array.
    pub const fn size(self) -> usize {
        match self {
            Element::Int(int) => int.size(),
            Element::F32 | Element::Enum(_) => 4,
            Element::F64 | Element::Bytes | Element::VoidPtr | Element::Address => 8,
            Element::Handle(_, kind) => kind.size(),
            Element::Struct(_, size) => size as usize,
        }
    }
}

/// Source of a C argument.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// The converted Python argument.
    Arg(u8),
    /// The address of the converted Python argument.
    ArgAddress(u8),
    /// The storage of a result.
    Result(u8),
    /// The storage of a result, which contains the converted argument before the call.
    InOut(u8, u8),
    /// Zero.
    Null,
    /// A constant: the length of an array whose size is part of the interface.
    Const(u64),
    /// The address of the number of elements ([`Raising::sizing`]).
    Count,
    /// The address of the request with this index ([`Raising::requests`]).
    Request(u8),
    /// The number of structs in the argument with this index, a [`Conv::BufferStruct`].
    Elements(u8),
}

/// A result.
#[derive(Debug)]
pub struct Output {
    /// Documented name.
    pub name: &'static str,
    /// Documented Python type.
    pub doc: &'static str,
    /// How it is converted.
    pub kind: Out,
}

/// Conversion of a C output to a Python object.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the headers determine which variants occur")]
pub enum Out {
    /// An int.
    Int(Int),
    /// A float.
    F32,
    /// A double.
    F64,
    /// An enum member.
    Enum(EnumId),
    /// A new handle object, and its C type.
    Handle(ClassId, Int),
    /// A new struct.
    Struct(ClassId),
    /// `bytes` of this length; truncated at the first nul if the flag is set.
    Bytes(Len, bool),
    /// `bytes` from `const char *`, `None` from null.
    CString,
    /// `bytes` from `const char *`, empty from null.
    CBytes,
    /// `str` from `const char *`, empty from null.
    CText,
    /// A list.
    List(Element, Len),
    /// An address as an int.
    VoidPtr,
    /// A value whose type is selected by the parameter with this index.
    Attribute(EnumId, u8),
    /// An address or foreign handle (`intptr_t`) as an int.
    Address,
    /// A new handle that the engine tracks, as an int.
    NewHandle(HandleKind),
    /// C's `bool`.
    Bool,
    /// A `char` array of this length, as `str` up to the first nul. [`Ret::Text`] ignores the length.
    Str(Len),
    /// An array of integers, as a sequence with the buffer protocol.
    Slice(Slice, Len),
    /// A new struct.
    BufferStruct(ClassId),
    /// A new array of structs.
    BufferStructs(ClassId, Len),
}

impl Out {
    /// Whether the result has storage of its own, whose address C receives.
    pub const fn is_by_address(self) -> bool {
        match self {
            Out::Struct(_)
            | Out::Bytes(..)
            | Out::List(..)
            | Out::Attribute(..)
            | Out::Str(_)
            | Out::Slice(..)
            | Out::BufferStruct(_)
            | Out::BufferStructs(..) => true,
            Out::Int(_)
            | Out::F32
            | Out::F64
            | Out::Enum(_)
            | Out::Handle(..)
            | Out::CString
            | Out::CBytes
            | Out::CText
            | Out::VoidPtr
            | Out::Address
            | Out::NewHandle(_)
            | Out::Bool => false,
        }
    }
}

/// A number of elements.
#[derive(Clone, Copy, Debug)]
pub enum Len {
    /// The value of a Python argument.
    Arg(u8),
    /// A constant.
    Const(u32),
    /// The number that the first call returned ([`Raising::sizing`]).
    Counted,
}
