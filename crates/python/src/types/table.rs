//! The shape of the generated tables: what a class, an attribute, an enum is, as plain data.

use std::ffi::CStr;

use cupyrite_sys::loader;

use crate::generated::{
    cudla_types, cufile_types, driver_types, nvfatbin_types, nvjitlink_types, nvml_types,
    nvrtc_types, nvvm_types, runtime_types,
};

/// Index of a Python class over all libraries (`crate::generated::ids::class`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct ClassId(pub u16);

/// Index of a Python enum over all libraries (`crate::generated::ids::enums`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct EnumId(pub u16);

/// A C arithmetic type, by what matters for a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, dead_code)] // which of them occur is up to the headers
pub enum Prim {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Prim {
    /// Size in bytes.
    pub const fn size(self) -> usize {
        match self {
            Prim::I8 | Prim::U8 => 1,
            Prim::I16 | Prim::U16 => 2,
            Prim::I32 | Prim::U32 | Prim::F32 => 4,
            Prim::I64 | Prim::U64 | Prim::F64 => 8,
        }
    }

    /// Smallest and largest value of an integer type (meaningless for the floats).
    pub const fn range(self) -> (i128, i128) {
        match self {
            Prim::I8 => (i8::MIN as i128, i8::MAX as i128),
            Prim::U8 => (0, u8::MAX as i128),
            Prim::I16 => (i16::MIN as i128, i16::MAX as i128),
            Prim::U16 => (0, u16::MAX as i128),
            Prim::I32 => (i32::MIN as i128, i32::MAX as i128),
            Prim::U32 => (0, u32::MAX as i128),
            Prim::I64 => (i64::MIN as i128, i64::MAX as i128),
            Prim::U64 | Prim::F32 | Prim::F64 => (0, u64::MAX as i128),
        }
    }

    /// Whether negative values exist.
    pub const fn signed(self) -> bool {
        matches!(self, Prim::I8 | Prim::I16 | Prim::I32 | Prim::I64)
    }

    /// For error messages.
    pub const fn words(self) -> &'static str {
        match self {
            Prim::I8 => "an 8-bit signed integer",
            Prim::U8 => "an 8-bit unsigned integer",
            Prim::I16 => "a 16-bit signed integer",
            Prim::U16 => "a 16-bit unsigned integer",
            Prim::I32 => "a 32-bit signed integer",
            Prim::U32 => "a 32-bit unsigned integer",
            Prim::I64 => "a 64-bit signed integer",
            Prim::U64 => "a 64-bit unsigned integer",
            Prim::F32 => "a float",
            Prim::F64 => "a double",
        }
    }
}

/// One element of an array or list attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // which of them occur is up to the headers
pub enum Elem {
    /// An integer.
    Int(Prim),
    /// A float.
    Float(Prim),
    /// An enum member, 4 bytes.
    Enum(EnumId),
    /// A handle or integer class.
    Handle(ClassId),
    /// A struct or union.
    Struct(ClassId),
    /// A plain address.
    Address,
}

/// Offset and size of the member that counts the elements of a list attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    /// Offset in bytes within the struct.
    pub offset: u32,
    /// 1 to 8 bytes; 0: the struct has no such member, a non-null pointer means one element.
    pub size: u8,
}

/// How an attribute's bytes become a Python value and back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // which of them occur is up to the headers
pub enum FieldKind {
    /// An integer.
    Int(Prim),
    /// A float.
    Float(Prim),
    /// An enum member, 4 bytes.
    Enum(EnumId),
    /// A handle, integer or callback class: read as a live view.
    Handle(ClassId),
    /// A nested struct or union: read as a live view.
    View(ClassId),
    /// A `char` array, read and written as `bytes` of this length.
    Bytes(u32),
    /// The same, shown in `repr` as hexadecimal digits (`CUuuid`).
    HexBytes(u32),
    /// Text in a `char` array of this length: read as `bytes` up to the first nul, written with nuls after it.
    Chars(u32),
    /// An array inside the struct, of this length.
    Array(Elem, u32),
    /// A pointer to elements the object owns.
    List(Elem, Count),
    /// The same, and a `bytes`-like value is taken for the raw memory of the elements.
    RawList(Elem, Count),
    /// A list whose assignment sets the count too.
    CountedList(Elem, Count),
    /// One of two lists that share a count; assigned together through a method.
    PairedList(Elem, Count),
    /// A pointer to one handle or number, read as that (zero for a null pointer).
    Pointee(ClassId),
    /// `void *`: an int; takes ints, None, buffers and objects with an address.
    Address,
    /// The same, written in decimal by `repr`.
    PlainAddress,
    /// `void **kernelParams`: packed as `cuLaunchKernel` does.
    KernelParams,
    /// `const char *` given as bytes.
    CString,

    // What only classes of `Kind::Pod` have. In classes with `ARRAY` every attribute has a value an element: a plain
    // value for one element, a NumPy array for any other number.
    /// `unsigned long`: a 64-bit attribute whose NumPy layout is that of Windows, the lower 32 bits.
    Long(Prim),
    /// A pointer-sized integer that takes ints only (an address, a handle of another library).
    Intptr,
    /// `const char *` given as `str`, which the object copies and keeps.
    Text,
    /// `char[len]` read and written as `str`, NUL-terminated.
    Str(u32),
    /// An array of numbers of this length inside the struct, read as a NumPy array.
    Fixed(Prim, u32),
    /// The same, of which the first `count` elements are in use; assigning sets the count.
    Counted(Prim, u32, Count),
    /// A nested struct, read as a live view.
    Pod(ClassId),
    /// An array of structs inside the struct, read as a live view of the class. With a count: its first elements are in
    /// use, and assigning sets the count.
    Pods(ClassId, u32, Option<Count>),
    /// A nested struct of an `ARRAY` class, read as a NumPy record array; with a length other than 0 an array of them.
    Records(ClassId, u32),
    /// A pointer to numbers, which the object owns once they are assigned; assigning sets the count.
    PointerInts(Prim, Count),
    /// A pointer to structs, read as the class; assigning keeps the given object and sets the count.
    PointerPods(ClassId, Count),
    /// A pointer to 64-bit words, read as `array`; assigning sets the count.
    PointerWords(Count),
    /// A member that is no attribute and only shows in the NumPy layout (counts, `reserved`): a number, or an array of
    /// them where the length is not 0.
    Hidden(Prim, u32),
}

/// An attribute.
#[derive(Debug)]
pub struct Field {
    /// Python name.
    pub name: &'static CStr,
    /// Offset within the struct.
    pub offset: u32,
    /// Conversion.
    pub kind: FieldKind,
    /// Whether it can be assigned.
    pub settable: bool,
    /// Documented type.
    pub doc: &'static str,
}

/// What a class stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An opaque pointer.
    Pointer,
    /// A function pointer.
    Callback,
    /// An integer typedef.
    Integer(Prim),
    /// A struct or union.
    Record,
    /// A class without content (`cudaBindingsDriverGlobal`).
    Marker,
    /// A struct or union of the modules whose functions raise: `ptr`, `from_data`, `from_buffer`, `from_ptr`, a buffer;
    /// with `ARRAY` also a length and elements.
    Pod,
}

/// `__eq__` and `__hash__` by value.
pub const EQ_HASH: u16 = 1;
/// `__index__`.
pub const INDEX: u16 = 2;
/// `__cuda_stream__`.
pub const CUDA_STREAM: u16 = 4;
/// Cannot be made without `_ptr`.
pub const NEEDS_POINTER: u16 = 8;
/// `sizeof` knows the class.
pub const SIZEOF: u16 = 16;
/// `set_dsts_srcs`.
pub const SET_DSTS_SRCS: u16 = 32;
/// A `Kind::Pod` that stands for any number of structs: `X(size=1)`.
pub const ARRAY: u16 = 64;
/// Not listed by `dir()` and `__all__` (`_py_anon_pod0`).
pub const PRIVATE: u16 = 128;

/// A class.
#[derive(Debug)]
pub struct Class {
    /// Python name.
    pub name: &'static CStr,
    /// Class it derives from.
    pub base: Option<ClassId>,
    /// What it stands for.
    pub kind: Kind,
    /// Size of the C type in bytes.
    pub size: u32,
    /// Alignment of the C type in bytes.
    pub align: u32,
    /// `EQ_HASH`, `INDEX`, ...
    pub flags: u16,
    /// How C spells the type.
    pub c_name: &'static str,
    /// Offsets of 32-bit words that are 1, not 0, in a fresh object: the sizes of a `dim3`.
    pub ones: &'static [u32],
    /// Attributes in C order; empty for derived classes, which inherit them.
    pub fields: &'static [Field],
}

impl Class {
    /// The name as a `str`.
    pub fn name(&self) -> &'static str {
        text(self.name)
    }
}

/// An enum.
#[derive(Debug)]
pub struct Enum {
    /// Python name.
    pub name: &'static str,
    /// Whether values below 0 stand for 64-bit numbers from 2^63 up.
    pub unsigned: bool,
    /// Names and values in C order; a value that appears again makes an alias.
    pub members: &'static [(&'static str, i64)],
}

/// The base of a library's enums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // which of them occur is up to the libraries
pub enum EnumBase {
    /// `FastEnum`, ours.
    Fast,
    /// `enum.IntEnum` of the standard library.
    Int,
}

/// Where the text of a library's exception comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // which of them occur is up to the libraries
pub enum ErrorText {
    /// Name and number of the status: `ERROR_INVALID_INPUT (3)`.
    Name,
    /// The library's own words for it.
    Library,
    /// cuFile's: two error codes, one of which may be the driver's.
    CuFile,
}

/// An exception class.
#[derive(Debug)]
pub struct Exception {
    /// Python name.
    pub name: &'static str,
    /// Index of the class it derives from; none: `Exception`.
    pub base: Option<u16>,
}

/// How statuses become exceptions.
#[derive(Debug)]
pub struct Errors {
    /// The exceptions, bases before derived ones; the first is that of statuses without one of their own.
    pub exceptions: &'static [Exception],
    /// Indexes by name, sorted.
    pub index: &'static [(&'static str, u16)],
    /// The enum of the statuses.
    pub status: EnumId,
    /// Where the text comes from.
    pub text: ErrorText,
    /// Whether making an exception of an unknown status is a `ValueError`.
    pub unknown_is_value_error: bool,
    /// Statuses with an exception of their own, sorted, and its index.
    pub by_status: &'static [(i64, u16)],
}

/// The types of one library.
#[derive(Debug)]
pub struct Library {
    /// `cuda.bindings.driver`
    pub module: &'static str,
    /// The C library whose functions the module has.
    pub loader: loader::CudaLibrary,
    /// Where NVIDIA documents it.
    pub url: &'static str,
    /// What its enums derive from.
    pub enum_base: EnumBase,
    /// Its exceptions; none where functions return the status.
    pub errors: Option<&'static Errors>,
    /// Id of the first class.
    pub first_class: u16,
    /// Id of the first enum.
    pub first_enum: u16,
    /// Classes, bases before derived ones.
    pub classes: &'static [Class],
    /// Names and ids of the classes, sorted by name.
    pub class_index: &'static [(&'static str, u16)],
    /// Enums, sorted by name.
    pub enums: &'static [Enum],
    /// Module constants, sorted by name.
    pub constants: &'static [(&'static str, i64)],
    /// Further names of objects of this module, or (with dots) of another, sorted by name.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Names of the NumPy layouts and the classes they belong to, sorted by name.
    pub dtypes: &'static [(&'static str, u16)],
}

/// Every library, in the order of their ids.
pub static LIBRARIES: &[&Library] = &[
    &driver_types::LIBRARY,
    &runtime_types::LIBRARY,
    &nvrtc_types::LIBRARY,
    &nvjitlink_types::LIBRARY,
    &nvvm_types::LIBRARY,
    &nvfatbin_types::LIBRARY,
    &nvml_types::LIBRARY,
    &cufile_types::LIBRARY,
    &cudla_types::LIBRARY,
];

/// The library a class belongs to, and the class.
#[inline]
pub fn class(id: ClassId) -> (&'static Library, &'static Class) {
    let mut found = LIBRARIES[0];
    for lib in &LIBRARIES[1..] {
        if id.0 < lib.first_class {
            break;
        }
        found = lib;
    }
    (found, &found.classes[(id.0 - found.first_class) as usize])
}

/// The library an enum belongs to, and the enum.
#[inline]
pub fn enumeration(id: EnumId) -> (&'static Library, &'static Enum) {
    let mut found = LIBRARIES[0];
    for lib in &LIBRARIES[1..] {
        if id.0 < lib.first_enum {
            break;
        }
        found = lib;
    }
    (found, &found.enums[(id.0 - found.first_enum) as usize])
}

/// The class at the root of `id`'s line of bases: classes with the same root share a C type.
pub fn root(id: ClassId) -> ClassId {
    let mut id = id;
    while let Some(base) = class(id).1.base {
        id = base;
    }
    id
}

/// The attributes of a class, its own or inherited.
pub fn fields(id: ClassId) -> &'static [Field] {
    class(root(id)).1.fields
}

/// A generated name as `str` (they are ASCII).
pub fn text(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or("?")
}

/// The class of a library's module with this name.
pub fn class_named(library: loader::CudaLibrary, name: &str) -> Option<ClassId> {
    let library = LIBRARIES.iter().find(|lib| lib.loader == library)?;
    let at = library
        .class_index
        .binary_search_by_key(&name, |row| row.0)
        .ok()?;
    Some(ClassId(library.class_index[at].1))
}
