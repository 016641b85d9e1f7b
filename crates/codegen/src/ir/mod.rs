//! The intermediate representation: the headers, joined with the overlay.
//!
//! The C half ([`Function`], [`Record`], [`Enum`], [`Typedef`], [`Constant`], [`EntryPoint`]) describes the headers.
//! The Python half ([`PyFunction`], [`PyClass`], [`PyEnum`], [`PyConstant`]) is derived from it by
//! `api/overlay/*.toml` and is what the Python back ends read. Everything is in deterministic order: functions,
//! enums, classes and constants by name, parameters, fields and members as declared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod about;
mod python;
mod raising;
mod spelling;

pub use about::*;
pub use python::*;
pub use raising::*;
pub use spelling::*;

/// The input of the back ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Api {
    /// One entry per C library, in the same order as `sources::SOURCES`.
    pub libraries: Vec<LibraryApi>,
    /// Further Python modules over some of these libraries. Each entry has the library's C half and a Python half of its own.
    pub second: Vec<LibraryApi>,
}

impl Api {
    /// The libraries with a Python module, then the further modules.
    pub fn in_python(&self) -> impl Iterator<Item = &LibraryApi> {
        let first = self.libraries.iter().filter(|l| l.in_python());
        first.chain(&self.second)
    }

    /// The library called `name` (`driver`, `nvrtc`).
    pub fn library(&self, name: &str) -> Option<&LibraryApi> {
        self.libraries.iter().find(|l| l.name == name)
    }
}

/// One C library and the Python module that exposes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LibraryApi {
    /// Short name: `driver`, `nvrtc`. Also the module name in `cupyrite_sys` and in `cuda.bindings`. `driver_v2` for a
    /// second Python module over the driver.
    pub name: String,
    /// For a second Python module over a library: the library, whose C half this one has too.
    pub shares: Option<String>,
    /// Status enum every function returns, e.g. `CUresult`.
    pub status_enum: String,
    /// The success member of `status_enum`, e.g. `CUDA_SUCCESS` (always value 0).
    pub success: String,
    /// Web address of NVIDIA's documentation of the library, without the function's page.
    pub doc_url: String,
    /// `CUDA_VERSION` of the headers read, newest first, e.g. `[13050, 12090]`.
    pub versions: Vec<u32>,
    /// Current functions of the newest headers, then functions that only older headers declare
    /// ([`Function::majors`]).
    pub functions: Vec<Function>,
    /// Every symbol the library exports (older ABI versions and per-thread variants included).
    pub entry_points: Vec<EntryPoint>,
    /// Complete structs and unions, anonymous ones included (before the record that contains them).
    pub records: Vec<Record>,
    /// Tags without a definition, the targets of handles: `CUctx_st`.
    pub opaques: Vec<String>,
    /// Enums.
    pub enums: Vec<Enum>,
    /// Typedefs, in declaration order.
    pub typedefs: Vec<Typedef>,
    /// Macros with a constant value.
    pub constants: Vec<Constant>,
    /// Types of other libraries in the declarations, by name.
    pub uses: Vec<Foreign>,
    /// The result and the parameters of each exported symbol, as the newest header that declares it spells them.
    pub prototypes: BTreeMap<String, Vec<Spelled>>,
    /// The names of types.
    pub type_names: BTreeMap<String, TypeName>,
    /// The Cython module, from the overlay.
    pub cython: Cython,
    /// Units of numbers, from the overlay, by suffix of a C name, or by function or struct, dot and name.
    pub units: BTreeMap<String, String>,
    /// What NVIDIA's manual documents of each function: section and statuses, by name in C.
    pub manual: BTreeMap<String, ManualEntry>,
    /// Titles of the manual's sections, by group.
    pub sections: BTreeMap<String, String>,
    /// Descriptions of functions, from `api/descriptions`, by name in C (in Python, if there is no C function).
    pub about: BTreeMap<String, About>,
    /// The Python module.
    pub python: PyModule,
}

impl LibraryApi {
    /// The record called `name`.
    pub fn record(&self, name: &str) -> Option<&Record> {
        self.records.iter().find(|r| r.name == name)
    }

    /// The enum called `name`.
    pub fn enumeration(&self, name: &str) -> Option<&Enum> {
        self.enums.iter().find(|e| e.name == name)
    }

    /// The typedef called `name`.
    pub fn typedef(&self, name: &str) -> Option<&Typedef> {
        self.typedefs.iter().find(|t| t.name == name)
    }

    /// The function called `name` (C programs' name, not the exported symbol).
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// The type of another library called `name`, if this one uses it.
    pub fn foreign(&self, name: &str) -> Option<&Foreign> {
        self.uses.iter().find(|f| f.name == name)
    }

    /// The name of the C library: the module in `cupyrite_sys`.
    pub fn c_library(&self) -> &str {
        self.shares.as_deref().unwrap_or(&self.name)
    }

    /// Whether the library has a Python module.
    pub fn in_python(&self) -> bool {
        !self.python.classes.is_empty()
            || !self.python.enums.is_empty()
            || self.functions.iter().any(|f| f.python.is_some())
    }

    /// The unit of a parameter or member: that of `owner.name`, else that of the longest matching suffix. A suffix
    /// that begins with a capital or an underscore matches a word at the end of the name; any other matches whole
    /// names.
    pub fn unit(&self, owner: &str, name: &str) -> Option<String> {
        if let Some(unit) = self.units.get(&format!("{owner}.{name}")) {
            return Some(unit.clone()).filter(|u| !u.is_empty());
        }
        let whole_word = |end: &str| {
            let before = name[..name.len() - end.len()].chars().next_back();
            let own_word = end.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
            before.is_none_or(|c| own_word && !c.is_ascii_uppercase())
        };
        self.units
            .iter()
            .filter(|(end, _)| name.ends_with(end.as_str()) && whole_word(end))
            .max_by_key(|(end, _)| end.len())
            .map(|(_, unit)| unit.clone())
    }

    /// The version word of a struct (typedef, alias or record name): NVML's functions read it from the first member
    /// `version` to identify the caller's layout. It is the size in bytes, and from bit 24 the version in the type's
    /// name (`nvmlMemory_v2_t`, or an alias's target). `None` for structs without such a member or name.
    pub fn version_word(&self, name: &str) -> Option<u32> {
        let mut name = name;
        let mut version = version_in(name);
        while let Some(t) = self.typedef(name) {
            let Type::Named { name: next } = &t.ty else {
                return None;
            };
            name = next;
            version = version.or_else(|| version_in(name));
        }
        let record = self.record(name)?;
        let first = record.fields.first()?;
        let is_word = matches!(
            self.resolve(&first.ty),
            Type::Builtin {
                builtin: Builtin::UInt
            }
        );
        if !is_word || first.name != "version" {
            return None;
        }
        // `typedef struct nvmlX_st {..} nvmlX_v1_t`: the record has the tag's name.
        let version = version.or_else(|| {
            let named = Type::Named {
                name: record.name.clone(),
            };
            let mut aliases = self.typedefs.iter().filter(|t| t.ty == named);
            aliases.find_map(|t| version_in(&t.name))
        })?;
        Some(record.size as u32 | version << 24)
    }

    /// `ty` with typedefs resolved (not inside pointers or arrays); enums of other libraries become their integer.
    pub fn resolve<'a>(&'a self, ty: &'a Type) -> &'a Type {
        let mut ty = ty;
        while let Type::Named { name } = ty {
            match (self.typedef(name), self.foreign(name)) {
                (Some(t), _) => ty = &t.ty,
                (None, Some(f)) => return &f.ty,
                (None, None) => break,
            }
        }
        ty
    }
}

/// The 2 of `nvmlMemory_v2_t` and `nvmlMemory_v2_st`.
fn version_in(name: &str) -> Option<u32> {
    let stem = name
        .strip_suffix("_t")
        .or_else(|| name.strip_suffix("_st"))?;
    stem.rsplit_once("_v")?.1.parse().ok()
}

/// A type that another library declares.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Foreign {
    /// Name: `CUstream`.
    pub name: String,
    /// The library that declares it: `driver`.
    pub library: String,
    /// Its C type without typedefs: a pointer (to the other library's type) or an integer.
    pub ty: Type,
    /// Whether it is an enum there; `ty` is then its integer.
    pub is_enum: bool,
}

/// A C type. `Named` refers to a typedef, record, enum or opaque tag of the same library by its C name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Type {
    /// `void`
    Void,
    /// A built-in arithmetic type.
    Builtin {
        /// Which one.
        builtin: Builtin,
    },
    /// A typedef, record, enum or opaque tag, by name (no `struct`/`enum` keyword).
    Named {
        /// The C name.
        name: String,
    },
    /// A pointer.
    Pointer {
        /// Target type.
        to: Box<Type>,
        /// Whether the target is `const`.
        is_const: bool,
    },
    /// An array member, or an array parameter before decay.
    Array {
        /// Element type.
        of: Box<Type>,
        /// Number of elements.
        len: usize,
    },
    /// A function type (behind a pointer: a callback).
    Function {
        /// Return type.
        ret: Box<Type>,
        /// Parameter types.
        params: Vec<Type>,
    },
}

/// C's arithmetic types, sizes as on 64-bit Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Builtin {
    /// `char` (signed on x86-64)
    Char,
    /// `signed char`, `int8_t`
    SChar,
    /// `unsigned char`, `uint8_t`
    UChar,
    /// `short`
    Short,
    /// `unsigned short`
    UShort,
    /// `int`
    Int,
    /// `unsigned int`
    UInt,
    /// `long`
    Long,
    /// `unsigned long`
    ULong,
    /// `long long`
    LongLong,
    /// `unsigned long long`
    ULongLong,
    /// `size_t` (kept apart from `unsigned long`)
    SizeT,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `_Bool`
    Bool,
}

impl Builtin {
    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            Builtin::Char | Builtin::SChar | Builtin::UChar | Builtin::Bool => 1,
            Builtin::Short | Builtin::UShort => 2,
            Builtin::Int | Builtin::UInt | Builtin::Float => 4,
            _ => 8,
        }
    }

    /// Whether values can be negative (true for the floats).
    pub fn is_signed(self) -> bool {
        use Builtin::*;
        matches!(
            self,
            Char | SChar | Short | Int | Long | LongLong | Float | Double
        )
    }

    /// Whether this is `float` or `double`.
    pub fn is_float(self) -> bool {
        matches!(self, Builtin::Float | Builtin::Double)
    }

    /// C spelling.
    pub fn c_name(self) -> &'static str {
        match self {
            Builtin::Char => "char",
            Builtin::SChar => "signed char",
            Builtin::UChar => "unsigned char",
            Builtin::Short => "short",
            Builtin::UShort => "unsigned short",
            Builtin::Int => "int",
            Builtin::UInt => "unsigned int",
            Builtin::Long => "long",
            Builtin::ULong => "unsigned long",
            Builtin::LongLong => "long long",
            Builtin::ULongLong => "unsigned long long",
            Builtin::SizeT => "size_t",
            Builtin::Float => "float",
            Builtin::Double => "double",
            Builtin::Bool => "_Bool",
        }
    }
}

/// A current C function (the ABI version that C programs compiled against the newest headers call).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Function {
    /// Name as C programs write it, e.g. `cuMemAlloc`. Names ending in `_cuda12` are the same function as CUDA 12
    /// headers declare it, where its ABI differs.
    pub name: String,
    /// Name to ask `cuGetProcAddress` for, e.g. `cuMemAlloc`.
    pub base: String,
    /// Exported symbol, e.g. `cuMemAlloc_v2`.
    pub symbol: String,
    /// CUDA version of this ABI from the `PFN_*_vNNNNN` typedefs, e.g. 3020; 0 for libraries without them (NVRTC).
    pub abi_version: u32,
    /// Exported symbol of the per-thread-default-stream variant, e.g. `cuMemcpyHtoD_v2_ptds`.
    pub per_thread_symbol: Option<String>,
    /// CUDA version of the per-thread variant, e.g. 7000; 0 without one.
    pub per_thread_abi_version: u32,
    /// Header that declares it.
    pub header: String,
    /// CUDA majors whose headers declare exactly this function, e.g. `[12, 13]`.
    pub majors: Vec<u32>,
    /// Return type.
    pub ret: Type,
    /// Parameters in C order.
    pub params: Vec<Param>,
    /// The Python function; `None` if Python does not expose it.
    pub python: Option<PyFunction>,
}

/// A C parameter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Param {
    /// Name in the header.
    pub name: String,
    /// Type as declared (arrays already decayed to pointers).
    pub ty: Type,
    /// Source of the value in a Python call, and its use afterwards.
    pub role: Role,
}

/// The role of a C parameter in a Python call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "role")]
pub enum Role {
    /// Input: converted from Python argument `arg` (index into [`PyFunction::args`]).
    In {
        /// Argument index.
        arg: usize,
    },
    /// Output: points at storage that becomes result `result` (index into [`PyFunction::results`]).
    Out {
        /// Result index.
        result: usize,
    },
    /// Points at storage filled from the argument and read back into the result.
    InOut {
        /// Argument index.
        arg: usize,
        /// Result index.
        result: usize,
    },
    /// Not visible in Python: a null pointer or zero is passed.
    Null,
    /// A constant: the capacity of a result of fixed size.
    Const {
        /// The value.
        value: u64,
    },
    /// The address of the number of elements ([`PyFunction::sizing`]).
    Count,
    /// The number of structs in an argument ([`ArgKind::BufferStruct`]).
    Elements {
        /// Argument index.
        arg: usize,
    },
    /// The address of a struct ([`PyFunction::requests`]).
    Request {
        /// Index there.
        request: usize,
    },
    /// Python does not expose the function.
    Unknown,
}

/// An exported symbol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPoint {
    /// Exported name: `cuMemAlloc`, `cuMemAlloc_v2`, `cuMemcpyHtoD_v2_ptds`.
    pub symbol: String,
    /// Name to ask `cuGetProcAddress` for: `cuMemAlloc`, `cuMemcpyHtoD`.
    pub base: String,
    /// CUDA version of the ABI; 0 if the headers do not declare it.
    pub abi_version: u32,
    /// Per-thread-default-stream variant or not.
    pub stream: StreamMode,
    /// CUDA majors whose headers declare it.
    pub majors: Vec<u32>,
    /// Return type.
    pub ret: Type,
    /// Parameter names and types.
    pub params: Vec<(String, Type)>,
}

/// What the null stream means to an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// The legacy stream, or no stream involved.
    Legacy,
    /// `_ptds`: a synchronous call on the per-thread default stream.
    Ptds,
    /// `_ptsz`: null means the per-thread default stream.
    Ptsz,
}

/// A complete struct or union.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Rust and IR name: the C tag, the typedef's name for `typedef struct {..} X`, or a generated one for anonymous
    /// members (parent, underscore, member: `CUlaunchAttributeValue_union_clusterDim`). Ends in `_cuda12` where CUDA
    /// 12's layout differs.
    pub name: String,
    /// C spelling of the type (`struct CUuuid_st`, `CUtensorMap`); `None` for anonymous members.
    pub c_name: Option<String>,
    /// Struct or union.
    pub union: bool,
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
    /// Fields in declaration order.
    pub fields: Vec<Field>,
    /// For anonymous members: the containing record and the member's name (empty for a nameless member).
    pub parent: Option<(String, String)>,
    /// A tagged record that the header defines inside another one.
    pub nested: bool,
    /// Header that declares it.
    pub header: String,
    /// CUDA majors whose headers have this layout.
    pub majors: Vec<u32>,
}

/// A member of a struct or union.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Name; `anon0`, `anon1`, ... for nameless struct or union members.
    pub name: String,
    /// Whether the header gives no name (C reaches the inner members directly).
    pub anonymous: bool,
    /// Type.
    pub ty: Type,
    /// Offset in bytes (of the storage unit, for bit-fields).
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Bit offset from the start of the record and width, for bit-fields.
    pub bits: Option<(usize, usize)>,
}

/// A C enum.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Enum {
    /// The name: that of a typedef if there is one (`CUresult`), else the tag.
    pub name: String,
    /// The C tag, if any (`cudaError_enum`).
    pub tag: Option<String>,
    /// `Int` or `UInt`.
    pub underlying: Builtin,
    /// Members in declaration order, union of all headers read; values of the newest headers.
    pub members: Vec<EnumMember>,
    /// CUDA majors whose headers have the enum.
    pub majors: Vec<u32>,
}

/// An enumerator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnumMember {
    /// Name.
    pub name: String,
    /// Value.
    pub value: i64,
    /// CUDA majors whose headers have it.
    pub majors: Vec<u32>,
    /// Value in CUDA 12's headers, if it differs.
    pub value_cuda12: Option<i64>,
}

/// `typedef ty name;`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Typedef {
    /// New name.
    pub name: String,
    /// Aliased type.
    pub ty: Type,
    /// CUDA majors whose headers have it.
    pub majors: Vec<u32>,
}

/// A macro with a constant value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Constant {
    /// Name.
    pub name: String,
    /// Value, its low 64 bits.
    pub value: i64,
    /// Whether the bits are unsigned: set above `i64::MAX` only.
    pub unsigned: bool,
    /// Type it is cast to (`CUstream` in `((CUstream)0x1)`), if any.
    pub cast: Option<String>,
    /// CUDA majors whose headers have it.
    pub majors: Vec<u32>,
}
