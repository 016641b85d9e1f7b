//! Schema of the generated tables: plain data that describes classes, attributes, enums and exceptions.

use std::ffi::CStr;

use crate::generated::{
    cudla_types, cufile_types, driver_types, driver_v2_types, nvfatbin_types, nvjitlink_types,
    nvml_types, nvrtc_types, nvrtc_v2_types, nvvm_types, runtime_types, runtime_v2_types,
};

pub use crate::types::module::Module;

/// Index of a Python class over all libraries (`class` in `crate::generated::*_types`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct ClassId(pub u16);

/// Index of a Python enum over all libraries (`enums` in `crate::generated::*_types`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct EnumId(pub u16);

/// A C arithmetic type, identified by size and signedness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, dead_code)] // the headers determine which variants occur
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

    /// Whether the type has negative values.
    pub const fn signed(self) -> bool {
        matches!(self, Prim::I8 | Prim::I16 | Prim::I32 | Prim::I64)
    }

    /// Format character in the buffer protocol: that of 64-bit Linux; on other platforms, one of the same size.
    pub const fn letter(self) -> char {
        match self {
            Prim::I8 => 'b',
            Prim::U8 => 'B',
            Prim::I16 => 'h',
            Prim::U16 => 'H',
            Prim::I32 => 'i',
            Prim::U32 => 'I',
            Prim::I64 if cfg!(windows) => 'q',
            Prim::I64 => 'l',
            Prim::U64 if cfg!(windows) => 'Q',
            Prim::U64 => 'L',
            Prim::F32 => 'f',
            Prim::F64 => 'd',
        }
    }

    /// Description for error messages.
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

/// Element type of an array of integers, with its buffer format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// `int`, format `i`.
    I32,
    /// `unsigned int`, format `I`.
    U32,
    /// `unsigned long long`, format `Q`.
    U64,
    /// `unsigned long`, format `L`.
    Ulong,
    /// An address or foreign handle, format `q`.
    Address,
}

impl Slice {
    /// Size in bytes.
    pub const fn size(self) -> usize {
        match self {
            Slice::I32 | Slice::U32 => 4,
            Slice::U64 | Slice::Ulong | Slice::Address => 8,
        }
    }
}

/// One element of an array or list attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // the headers determine which variants occur
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
    /// 1 to 8 bytes. 0 if the struct has no such member; then a non-null pointer means one element.
    pub size: u8,
}

/// Conversion between an attribute's bytes and its Python value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // the headers determine which variants occur
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
    /// As `Bytes`; `repr` shows hexadecimal digits (`CUuuid`).
    HexBytes(u32),
    /// Text in a `char` array of this length: read as `bytes` up to the first NUL, padded with NULs when written.
    Chars(u32),
    /// An array of this length inside the struct.
    Array(Elem, u32),
    /// A pointer to elements that the object owns.
    List(Elem, Count),
    /// As `List`; also accepts a bytes-like value as the raw memory of the elements.
    RawList(Elem, Count),
    /// As `List`; assignment also sets the count.
    CountedList(Elem, Count),
    /// One of two lists that share a count; a method assigns both together.
    PairedList(Elem, Count),
    /// A pointer to one handle or number, read as its target (zero for a null pointer).
    Pointee(ClassId),
    /// `void *`: read as an int; accepts ints, None, buffers and objects with an address.
    Address,
    /// As `Address`; `repr` shows it in decimal.
    PlainAddress,
    /// `void **kernelParams`: packed as `cuLaunchKernel` does.
    KernelParams,
    /// `const char *`, assigned as `bytes`.
    CString,

    // The kinds below occur only in classes of `Kind::BufferStruct`. In classes with `ARRAY` every attribute has one value per
    // element: a plain value for one element, otherwise a NumPy array.
    /// `unsigned long`: a 64-bit attribute. Its NumPy dtype is that of Windows, the lower 32 bits.
    Long(Prim),
    /// A pointer-sized integer that accepts only ints (an address, a handle of another library).
    Intptr,
    /// `const char *`, assigned as `str`; the object owns a copy.
    Text,
    /// NUL-terminated `char[len]`, read and written as `str`.
    Str(u32),
    /// A number array of this length inside the struct, read as a NumPy array.
    Fixed(Prim, u32),
    /// As `Fixed`; only the first `count` elements are in use, and assignment sets the count.
    Counted(Prim, u32, Count),
    /// A nested struct, read as a live view.
    BufferStruct(ClassId),
    /// An array of structs inside the struct, read as a live view of the class. With a count, only the first `count`
    /// elements are in use, and assignment sets the count.
    BufferStructs(ClassId, u32, Option<Count>),
    /// A nested struct of an `ARRAY` class, or an array of them if the length is not 0; read as a NumPy record array.
    Records(ClassId, u32),
    /// A pointer to numbers. Assignment makes the object their owner and sets the count.
    PointerInts(Prim, Count),
    /// A pointer to structs, read as the class. Assignment keeps the given object alive and sets the count.
    PointerStructs(ClassId, Count),
    /// A pointer to 64-bit words, read as `array`; assignment sets the count.
    PointerWords(Count),
    /// A struct in the NumPy dtype without an attribute.
    HiddenStruct(ClassId),
    /// A member of the NumPy dtype without an attribute (counts, `reserved`): a number, or an array of numbers if the
    /// length is not 0.
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

/// Kind of C type that a class wraps.
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
    /// A class without data (`cudaBindingsDriverGlobal`).
    Marker,
    /// A struct or union of the modules whose functions raise. It has `ptr`, `from_data`, `from_buffer`, `from_ptr` and
    /// the buffer protocol, and with `ARRAY` a length and elements.
    BufferStruct,
}

/// `__eq__` and `__hash__` by value.
pub const EQ_HASH: u16 = 1;
/// `__index__`.
pub const INDEX: u16 = 2;
/// `__cuda_stream__`.
pub const CUDA_STREAM: u16 = 4;
/// Constructor requires `_ptr`.
pub const NEEDS_POINTER: u16 = 8;
/// `sizeof` accepts the class.
pub const SIZEOF: u16 = 16;
/// `set_dsts_srcs`.
pub const SET_DSTS_SRCS: u16 = 32;
/// A `Kind::BufferStruct` with any number of structs: `X(size=1)`.
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
    /// Kind of C type.
    pub kind: Kind,
    /// Size of the C type in bytes.
    pub size: u32,
    /// Alignment of the C type in bytes.
    pub align: u32,
    /// `EQ_HASH`, `INDEX`, ...
    pub flags: u16,
    /// Name of the type in C.
    pub c_name: &'static str,
    /// Offsets of 32-bit words that a new object initialises to 1 instead of 0: the sizes of a `dim3`.
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
    /// Whether negative values represent 64-bit numbers from 2^63 up.
    pub unsigned: bool,
    /// Names and values in C order. A repeated value makes an alias.
    pub members: &'static [(&'static str, i64)],
}

/// The base of a library's enums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // the libraries determine which variants occur
pub enum EnumBase {
    /// Cupyrite's `FastEnum`.
    Fast,
    /// `enum.IntEnum` of the standard library.
    Int,
}

/// Source of the text of a library's exceptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // the libraries determine which variants occur
pub enum ErrorText {
    /// Name and number of the status: `ERROR_INVALID_INPUT (3)`.
    Name,
    /// The library's own description.
    Library,
    /// Name and number of the status, and the library's own description: `ERROR_INVALID_VALUE (1): invalid argument`. The
    /// exceptions also have the attributes `name` and `function`.
    Explained,
    /// cuFile: two error codes, of which one may be a driver status.
    CuFile,
}

/// An exception class.
#[derive(Debug)]
pub struct Exception {
    /// Python name.
    pub name: &'static str,
    /// Index of the base class; None for `Exception`.
    pub base: Option<u16>,
}

/// Mapping from statuses to exceptions.
#[derive(Debug)]
pub struct Errors {
    /// The exceptions, bases before derived ones. The first is the default for statuses not in `by_status`.
    pub exceptions: &'static [Exception],
    /// Names and indexes of the exceptions, sorted by name.
    pub index: &'static [(&'static str, u16)],
    /// The status enum.
    pub status: EnumId,
    /// Source of the text.
    pub text: ErrorText,
    /// Whether constructing an exception with an unknown status raises `ValueError`.
    pub unknown_is_value_error: bool,
    /// Statuses with a dedicated exception and its index, sorted by status.
    pub by_status: &'static [(i64, u16)],
}

/// The types of one Python module.
#[derive(Debug)]
pub struct ModuleTypes {
    /// The module.
    pub module: Module,
    /// URL of NVIDIA's documentation.
    pub url: &'static str,
    /// Base class of its enums.
    pub enum_base: EnumBase,
    /// Its exceptions; None if its functions return the status.
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
    /// Additional names for objects of this module, or (with dots) of another; sorted by name.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Names of the NumPy dtypes and ids of their classes, sorted by name.
    pub dtypes: &'static [(&'static str, u16)],
}

/// Number of classes of all modules.
pub const CLASS_COUNT: usize = nvrtc_v2_types::class::END as usize;
/// Number of enums of all modules.
pub const ENUM_COUNT: usize = nvrtc_v2_types::enums::END as usize;

/// Every module, sorted by id.
pub static MODULES: &[&ModuleTypes] = &[
    &driver_types::MODULE,
    &runtime_types::MODULE,
    &nvrtc_types::MODULE,
    &nvjitlink_types::MODULE,
    &nvvm_types::MODULE,
    &nvfatbin_types::MODULE,
    &nvml_types::MODULE,
    &cufile_types::MODULE,
    &cudla_types::MODULE,
    &driver_v2_types::MODULE,
    &runtime_v2_types::MODULE,
    &nvrtc_v2_types::MODULE,
];

/// A class and its module.
#[inline]
pub fn class(id: ClassId) -> (&'static ModuleTypes, &'static Class) {
    let mut found = MODULES[0];
    for lib in &MODULES[1..] {
        if id.0 < lib.first_class {
            break;
        }
        found = lib;
    }
    (found, &found.classes[(id.0 - found.first_class) as usize])
}

/// An enum and its module.
#[inline]
pub fn enumeration(id: EnumId) -> (&'static ModuleTypes, &'static Enum) {
    let mut found = MODULES[0];
    for lib in &MODULES[1..] {
        if id.0 < lib.first_enum {
            break;
        }
        found = lib;
    }
    (found, &found.enums[(id.0 - found.first_enum) as usize])
}

/// The last base of class `id`, or the class itself. Classes with the same root share a C type.
pub fn root(id: ClassId) -> ClassId {
    let mut id = id;
    while let Some(base) = class(id).1.base {
        id = base;
    }
    id
}

/// The attributes of a class, including inherited ones.
pub fn fields(id: ClassId) -> &'static [Field] {
    class(root(id)).1.fields
}

/// Whether class `id` is a struct or union.
pub fn is_record(id: ClassId) -> bool {
    class(id).1.kind == Kind::Record
}

/// The C integer type of the values of a handle, integer or callback class.
#[inline]
pub fn value_type(id: ClassId) -> Prim {
    match class(id).1.kind {
        Kind::Integer(p) => p,
        _ => Prim::U64,
    }
}

/// Size in bytes of a member of a `Kind::BufferStruct` struct.
pub fn width(kind: FieldKind) -> usize {
    let class_size = |id: ClassId| class(id).1.size as usize;
    match kind {
        FieldKind::Int(p) | FieldKind::Long(p) | FieldKind::Float(p) => p.size(),
        FieldKind::Hidden(p, n) | FieldKind::Fixed(p, n) | FieldKind::Counted(p, n, _) => {
            p.size() * n.max(1) as usize
        }
        FieldKind::Str(n) | FieldKind::Bytes(n) => n as usize,
        FieldKind::BufferStruct(id) | FieldKind::HiddenStruct(id) => class_size(id),
        FieldKind::BufferStructs(id, n, _) | FieldKind::Records(id, n) => {
            class_size(id) * n.max(1) as usize
        }
        _ => 8,
    }
}

/// A generated name as `str`. Generated names are ASCII.
pub fn text(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or("?")
}

/// The class with this name in a module.
pub fn class_named(module: Module, name: &str) -> Option<ClassId> {
    let library = MODULES.iter().find(|types| types.module == module)?;
    let at = library
        .class_index
        .binary_search_by_key(&name, |row| row.0)
        .ok()?;
    Some(ClassId(library.class_index[at].1))
}
