//! The Python half of the representation: what the Python back ends read.

use serde::{Deserialize, Serialize};

use super::{Builtin, OutSize, PyErrors, PyException, Request, Ret, Sizing, StructRule, Style};

/// A function as Python sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PyFunction {
    /// Name: the C name, or in snake_case where the module's style is [`Style::Raises`].
    pub name: String,
    /// Arguments in order, as the Python signature has them.
    pub args: Vec<PyArg>,
    /// The results after the status, in order.
    pub results: Vec<PyResult>,
    /// Whether the call releases the GIL.
    pub gil: Gil,
    /// The function's hook, as a path in `crates/python/src/bindings/custom`: `driver::ctx_create`.
    pub hook: Option<String>,
    /// What C returns.
    pub ret: Ret,
    /// Set if a first call queries the number of elements.
    pub sizing: Option<Sizing>,
    /// Request structs, and structs with a version word.
    pub requests: Vec<Request>,
    /// Whether the call may block for long and is interruptible with Ctrl-C.
    pub interruptible: bool,
}

/// GIL policy of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gil {
    /// Released around the C call (the default).
    Release,
    /// Kept: a read that takes no lock and never calls back.
    Keep,
}

/// A Python argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PyArg {
    /// Python name (`from_`, `typename`, ...).
    pub name: String,
    /// How the value is converted.
    pub kind: ArgKind,
    /// Annotation for stubs, e.g. `Optional[CUDA_MEMCPY2D]`.
    pub annotation: Option<String>,
    /// Documented type, e.g. `CUstream or cudaStream_t`, `unsigned int`.
    pub doc_type: Option<String>,
    /// Source text of the default, e.g. `0`.
    pub default: Option<String>,
}

/// How a Python argument becomes a C value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ArgKind {
    /// An integer passed by value (range-checked against the C type).
    Int {
        /// C type.
        builtin: Builtin,
    },
    /// A float passed by value.
    Float {
        /// `float` or `double`.
        builtin: Builtin,
    },
    /// An enum member passed by value.
    Enum {
        /// Enum name.
        name: String,
    },
    /// A handle class (pointer handle or integer typedef class: `CUstream`, `CUdeviceptr`, `CUdevice`, `cuuint64_t`):
    /// an instance, an int, or None (zero). Size in bytes as passed to C.
    Handle {
        /// Class name as in the C prototype.
        class: String,
        /// 4 or 8.
        size: usize,
        /// For pointer parameters that point at one handle (`CUgraphicsResource *resources`): pass its address.
        by_pointer: bool,
    },
    /// A callback class (`CUhostFn`): an instance, an int address, or None.
    Callback {
        /// Class name.
        class: String,
    },
    /// A struct or union class.
    Struct {
        /// Class name as in the C prototype (an alias such as `CUDA_MEMCPY2D` included).
        class: String,
        /// Size in bytes.
        size: usize,
        /// True: passed as a pointer, None allowed as null. False: passed by value, None refused.
        by_pointer: bool,
    },
    /// A sequence converted to a C array.
    List {
        /// Element.
        of: Element,
        /// Index of the argument that holds the number of elements, where there is one (it must not exceed the
        /// sequence's length).
        count: Option<usize>,
        /// Whether None is accepted (null).
        nullable: bool,
    },
    /// `bytes` passed as `const char *` (None where accepted is null).
    CString,
    /// A `bytes` object the C library writes into (`nvrtcGetPTX`), or a raw `char *` buffer given by address.
    BytesOut,
    /// `void *` in: an int address, a buffer, an object with `getPtr()`, None.
    VoidPtr,
    /// `void *` whose pointee depends on an attribute argument (`cuMemPoolSetAttribute`).
    Attribute {
        /// Enum that selects the kind: `CUmemPool_attribute`, ...
        selector: String,
        /// Index of the selecting argument.
        by: usize,
    },
    /// `void **` option values selected one by one by a list of options (`cuModuleLoadDataEx`).
    OptionValues {
        /// Enum of the options: `CUjit_option`, `CUlibraryOption`.
        selector: String,
        /// Index of the argument with the list of options.
        by: usize,
        /// Index of the argument with their number.
        count: usize,
    },
    /// Kernel parameters: (values, types), address, objects with `getPtr()`, ...
    KernelParams,
    /// `void **` given as an address (`extra`).
    VoidPtrPtr,
    /// An address or a handle as a plain int (`intptr_t`).
    Address,
    /// A handle as a plain int, where C takes the address of it.
    HandleByPointer,
    /// C's `bool`.
    Bool,
    /// `str`, UTF-8, as `const char *`.
    Str,
    /// A sequence of `str` or `bytes`, or the address of a `char *[]`.
    StrList {
        /// Index of the argument with the number of strings.
        count: Option<usize>,
    },
    /// Memory that C reads: None, an address, or a buffer of exactly as many bytes as an argument specifies.
    Buffer {
        /// Index of that argument.
        size: Option<usize>,
    },
    /// Memory that C writes: None, an address, or a writable buffer.
    BufferOut {
        /// Room needed.
        size: OutSize,
    },
    /// Text or an image as `bytes`, another buffer, an address or None; nul-terminated for C.
    Text,
    /// A C array of handles or addresses: a sequence of ints, a buffer, an address or None.
    Addresses {
        /// Index of the argument with their number.
        count: Option<usize>,
    },
    /// Memory that C reads: an address, a buffer of at least as many bytes as an argument specifies, or None.
    Memory {
        /// Index of that argument.
        size: Option<usize>,
    },
    /// The same for memory that C writes.
    Writable {
        /// Index of that argument.
        size: Option<usize>,
    },
    /// A struct by address, or by value if the prototype says so.
    BufferStruct {
        /// Class.
        class: String,
        /// The accepted values.
        rule: StructRule,
    },
    /// A struct by value, given by its address.
    AddressOf {
        /// Size in bytes.
        size: usize,
    },
    /// Structs by address: an instance with at least as many structs as an argument specifies, an address or None.
    BufferStructs {
        /// Class.
        class: String,
        /// Index of that argument.
        count: usize,
    },
    /// A live handle, as an int, created by the module's functions.
    LiveHandle {
        /// C typedef: `nvvmProgram`.
        handle: String,
        /// Whether the call destroys it.
        destroys: bool,
    },
}

/// Element of a list argument or list result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Element {
    /// Integers.
    Int {
        /// C type.
        builtin: Builtin,
    },
    /// Floats.
    Float {
        /// C type.
        builtin: Builtin,
    },
    /// Enum members.
    Enum {
        /// Enum name.
        name: String,
    },
    /// Handles or integer classes.
    Handle {
        /// Class name.
        class: String,
        /// Size in bytes.
        size: usize,
    },
    /// Structs, stored contiguously.
    Struct {
        /// Class name.
        class: String,
        /// Size in bytes.
        size: usize,
    },
    /// `bytes` objects as `const char *`.
    CString,
    /// Plain addresses (`void *`).
    VoidPtr,
}

/// A result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PyResult {
    /// Documented name (often the C parameter's).
    pub name: String,
    /// How it is converted.
    pub kind: ResultKind,
    /// Type as it shows in Python: `int`, `bytes`, `CUstream`, `list[CUgraphNode]`, `Any`.
    pub type_name: String,
    /// Documented type where it differs from `type_name`, e.g. `unsigned int`.
    pub doc_type: Option<String>,
}

/// How a C output becomes a Python value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ResultKind {
    /// An int.
    Int {
        /// C type.
        builtin: Builtin,
    },
    /// A float.
    Float {
        /// C type.
        builtin: Builtin,
    },
    /// An enum member (the plain int where no member has the value).
    Enum {
        /// Enum name.
        name: String,
    },
    /// A new handle object.
    Handle {
        /// Class name.
        class: String,
        /// Size in bytes.
        size: usize,
    },
    /// A new struct object that owns its bytes.
    Struct {
        /// Class name.
        class: String,
        /// Size in bytes.
        size: usize,
    },
    /// A `char` buffer of a length known before the call, returned as `bytes` (exactly `len`, or up to the first NUL:
    /// `until_nul`).
    Bytes {
        /// Length of the buffer.
        len: Len,
        /// Truncated at the first NUL.
        until_nul: bool,
    },
    /// `const char **`: bytes up to the NUL, None for a null pointer.
    CString,
    /// The same as `str`.
    CText,
    /// A list.
    List {
        /// Element.
        of: Element,
        /// Number of elements.
        len: Len,
    },
    /// `void **`: the address as an int.
    VoidPtr,
    /// `void *` whose content depends on an attribute argument (`cuPointerGetAttribute`, `cuMemPoolGetAttribute`,
    /// `cuMemRangeGetAttribute`, `cuCoredumpGetAttribute`, export handles by handle type).
    Attribute {
        /// Enum that selects the kind.
        selector: String,
        /// Index of the selecting argument.
        by: usize,
    },
    /// Several attribute-dependent values at once (`cuPointerGetAttributes`, `cuMemRangeGetAttributes`).
    Attributes {
        /// Enum that selects the kinds.
        selector: String,
        /// Index of the list argument that selects.
        by: usize,
        /// Index of the list argument with the sizes, where there is one.
        sizes: Option<usize>,
        /// Index of the argument with their number.
        count: usize,
    },
    /// An address or a handle as a plain int (`intptr_t`).
    Address,
    /// A handle as a plain int, whose lifetime the module tracks ([`ArgKind::LiveHandle`]).
    NewHandle {
        /// C typedef: `nvvmProgram`.
        handle: String,
    },
    /// C's `bool`.
    Bool,
    /// Text up to the NUL, in a `char` buffer of this length, or what C returns ([`Ret::Text`]; the length is 0).
    Str {
        /// Length of the buffer.
        len: Len,
    },
    /// An array of integers, handles included (`Address` set), as an object with the buffer protocol.
    Slice {
        /// C type.
        builtin: Builtin,
        /// Whether the elements are addresses or handles.
        address: bool,
        /// Number of elements.
        len: Len,
    },
    /// A new struct.
    BufferStruct {
        /// Class.
        class: String,
    },
    /// A new array of structs.
    BufferStructs {
        /// Class.
        class: String,
        /// Number of elements.
        len: Len,
    },
    /// Returned by a hand-written implementation (`hook`); only the type name is known.
    ByHand,
}

/// A length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "len")]
pub enum Len {
    /// Value of an argument.
    Arg {
        /// Argument index.
        arg: usize,
    },
    /// Value of a result (an in-out count read back after the call bounds the list; the storage has the argument's size).
    Result {
        /// Result index.
        result: usize,
    },
    /// Known.
    Const {
        /// Elements.
        value: usize,
    },
    /// The result of another function, called first (`nvrtcGetNumSupportedArchs` for `nvrtcGetSupportedArchs`).
    Call {
        /// Index of that function in `LibraryApi::functions`.
        index: usize,
    },
    /// The count that the first call returns ([`Sizing`]).
    Counted,
}

/// The Python module of a library.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PyModule {
    /// `cuda.bindings.driver`
    pub name: String,
    /// How its functions return results.
    pub style: Style,
    /// The exceptions, for [`Style::Raises`].
    pub errors: Option<PyErrors>,
    /// Exception classes, bases first.
    pub exceptions: Vec<PyException>,
    /// Aliases: name and target (`cuda.bindings.driver.CUresult`: of another module).
    pub aliases: Vec<(String, String)>,
    /// Names of the NumPy types of classes, and the classes', by name.
    pub dtypes: Vec<(String, String)>,
    /// Functions without a C function; the others are `LibraryApi::functions` with `python` set.
    pub functions: Vec<PyFunction>,
    /// Classes, ordered so that bases precede derived classes and member classes their parents.
    pub classes: Vec<PyClass>,
    /// Enum classes by name.
    pub enums: Vec<PyEnum>,
    /// Module constants by name.
    pub constants: Vec<PyConstant>,
}

impl PyModule {
    /// The class called `name`.
    pub fn class(&self, name: &str) -> Option<&PyClass> {
        self.classes.iter().find(|c| c.name == name)
    }
}

/// A Python class for a C type.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PyClass {
    /// Class name.
    pub name: String,
    /// Base class for aliases (`CUDA_MEMCPY2D` derives from `CUDA_MEMCPY2D_v2` derives from `CUDA_MEMCPY2D_st`), with its
    /// library if it is another one (`driver.CUstream`).
    pub base: Option<String>,
    /// The wrapped C type.
    pub kind: ClassKind,
    /// `sizeof` of the C type.
    pub size: usize,
    /// Whether the constructor needs no arguments; false for views of anonymous members, which need `_ptr`.
    pub no_args: bool,
    /// Attributes by name (records only; inherited by aliases, not repeated).
    pub attrs: Vec<PyAttr>,
    /// Dunders the class has, from the overlay: `__eq__`, `__hash__`, `__int__`, `__index__`, `__repr__`, `__cuda_stream__`.
    pub dunders: Vec<String>,
    /// Methods beyond `getPtr`.
    pub methods: Vec<String>,
    /// Offsets of the 32-bit words that default to 1.
    pub ones: Vec<usize>,
}

/// The C type that a class wraps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ClassKind {
    /// A struct or union: `record` names the IR record.
    Record {
        /// Record name.
        record: String,
    },
    /// A pointer handle (`CUcontext`), or a `void *` typedef (`EGLStreamKHR`).
    Handle,
    /// An integer typedef (`CUdeviceptr`, `CUdevice`, `cuuint64_t`).
    Integer {
        /// C type.
        builtin: Builtin,
    },
    /// A callback pointer (`CUhostFn`).
    Callback,
    /// A struct or union with a NumPy type, of a module whose style is [`Style::Raises`].
    BufferStruct {
        /// Record name.
        record: String,
        /// Whether an object is an array of structs, like a NumPy record array.
        array: bool,
    },
    /// Something else (the base or a utility class); `what` describes it.
    Other {
        /// Free text.
        what: String,
    },
}

/// An attribute of a struct class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PyAttr {
    /// Name.
    pub name: String,
    /// Offset in bytes within the class's C type (members of nameless inner structs included).
    pub offset: usize,
    /// How the bytes are read and written.
    pub kind: AttrKind,
    /// Whether it can be assigned.
    pub settable: bool,
    /// Documented type, e.g. `unsigned int`, `CUdeviceptr`, `Any`.
    pub doc_type: String,
}

/// How an attribute is read and written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum AttrKind {
    /// An integer.
    Int {
        /// C type.
        builtin: Builtin,
    },
    /// A float.
    Float {
        /// C type.
        builtin: Builtin,
    },
    /// An enum member (4 bytes). Reading a value that is not a member raises `ValueError`.
    Enum {
        /// Enum name.
        name: String,
    },
    /// A handle or integer class of `size` bytes.
    Handle {
        /// Class name.
        class: String,
        /// 4 or 8.
        size: usize,
    },
    /// A callback class, 8 bytes.
    Callback {
        /// Class name.
        class: String,
    },
    /// A nested struct or union, read as a live view.
    View {
        /// Class name.
        class: String,
        /// Size in bytes.
        size: usize,
    },
    /// A `char` array read and written as `bytes` of exactly `len`.
    Bytes {
        /// Length.
        len: usize,
    },
    /// Text in a `char` array: `bytes` up to the first NUL.
    Chars {
        /// Length.
        len: usize,
    },
    /// An array member read and written as a list of exactly `len`.
    Array {
        /// Element.
        of: Element,
        /// Length.
        len: usize,
    },
    /// A pointer member read and written as a list; another member holds the count.
    List {
        /// Element.
        of: Element,
        /// Name of the member with the number of elements; `None` if the class sets no count.
        count: Option<String>,
        /// Offset and size in bytes of that member.
        count_at: Option<(usize, usize)>,
    },
    /// A pointer to one struct, read and written as that struct's class or list per the overlay's note.
    PointerTo {
        /// Class name.
        class: String,
        /// Size in bytes of the pointee.
        size: usize,
    },
    /// A `void *` member: reads as int; takes ints, buffers, objects with `getPtr()`, None.
    VoidPtr,
    /// A `void **` member for kernel parameters: (values, types), an address, a buffer, an object with `getPtr()`.
    KernelParams,
    /// A `const char *` member given as bytes (kept alive by the object).
    CString,
    /// A `long` whose NumPy type is the 32-bit one of Windows.
    Long {
        /// C type.
        builtin: Builtin,
    },
    /// A pointer or handle as a plain int.
    Address,
    /// A `const char *` member as `str` (kept alive by the object).
    Text,
    /// A `char` array as `str`.
    Str {
        /// Length of the array.
        len: usize,
    },
    /// An array of numbers.
    Fixed {
        /// C type.
        builtin: Builtin,
        /// Length.
        len: usize,
    },
    /// An array of numbers; a hidden member holds the number of valid elements.
    Counted {
        /// C type.
        builtin: Builtin,
        /// Length of the array.
        max: usize,
        /// Offset and size in bytes of the hidden member.
        count_at: (usize, usize),
    },
    /// A struct within the struct.
    BufferStruct {
        /// Class.
        class: String,
    },
    /// An array of structs within the struct.
    BufferStructs {
        /// Class.
        class: String,
        /// Length of the array.
        max: usize,
        /// Offset and size in bytes of the hidden member with the number of valid elements, if any.
        count_at: Option<(usize, usize)>,
    },
    /// A pointer to numbers, and the offset and size of the hidden member with their count.
    PointerInts {
        /// C type.
        builtin: Builtin,
        /// Offset and size in bytes.
        count_at: (usize, usize),
    },
    /// A pointer to structs, and the offset and size of the hidden member with their count.
    PointerStructs {
        /// Class.
        class: String,
        /// Offset and size in bytes.
        count_at: (usize, usize),
    },
    /// A pointer to 64-bit words, and the offset and size of the hidden member with their count.
    PointerSlice {
        /// Offset and size in bytes.
        count_at: (usize, usize),
    },
    /// Structs exposed as NumPy records: one (0), or an array.
    Nested {
        /// Class.
        class: String,
        /// Length of the array; 0 for one struct.
        len: usize,
    },
    /// A struct that only the NumPy type exposes.
    HiddenStruct {
        /// Class.
        class: String,
    },
    /// Numbers that only the NumPy type exposes; an array if the length is not 0.
    Hidden {
        /// C type.
        builtin: Builtin,
        /// Length of the array; 0 for one number.
        len: usize,
    },
}

/// An enum class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PyEnum {
    /// Name.
    pub name: String,
    /// Base: `FastEnum` or `IntFlag`/`IntEnum`.
    pub base: String,
    /// Members in order of definition.
    pub members: Vec<(String, i64)>,
    /// Aliases of members: alias and member name.
    pub aliases: Vec<(String, String)>,
    /// The C enum; `None` if it consists of macros.
    pub c_type: Option<String>,
    /// Whether negative values represent 64-bit numbers from 2^63 up.
    pub unsigned: bool,
}

/// A module constant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PyConstant {
    /// Name.
    pub name: String,
    /// Value.
    pub value: i64,
}
