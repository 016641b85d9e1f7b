//! A module and what it declares: variables, functions, registers, labels, and the indices that refer to them.

use super::instruction::Instr;
use super::types::{Space, Type};

/// A position in the PTX text. Lines and columns count from one; zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pos {
    /// Line of the PTX text.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// A position in the source that the PTX was compiled from (`.loc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLoc {
    /// `.file` number, the first element of an entry of [`Module::files`].
    pub file: u32,
    /// Line in that file.
    pub line: u32,
    /// Column in that file.
    pub column: u32,
}

/// A parsed PTX module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// `.version major.minor`.
    pub version: (u32, u32),
    /// Words of `.target`, the architecture (`sm_89`) first, then options such as `debug` or `texmode_unified`.
    pub target: Vec<String>,
    /// `.address_size`. The parser accepts 32 and 64, the CPU device only 64.
    pub address_size: u32,
    /// `.file` directives: number and path.
    pub files: Vec<(u32, String)>,
    /// Module-scope variables.
    pub globals: Vec<Variable>,
    /// Functions and kernels, including declarations. A definition replaces its declaration.
    pub functions: Vec<Function>,
    /// `.callprototype` declarations of all bodies.
    pub prototypes: Vec<Prototype>,
    /// `.alias` directives: the alias, which has no body, and the aliased function.
    pub aliases: Vec<(FuncId, FuncId)>,
}

/// Index into [`Module::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FuncId(pub u32);
/// Index into [`Module::prototypes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProtoId(pub u32);
/// Index into [`Body::regs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegId(pub u32);
/// Index into [`Body::labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LabelId(pub u32);

/// A variable or parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarId {
    /// Index into [`Module::globals`].
    Module(u32),
    /// Index into [`Body::vars`]: a variable declared in a body, or a `.param` of a call.
    Local(u32),
    /// Index into the enclosing function's [`Function::params`].
    Param(u32),
    /// Index into the enclosing function's [`Function::returns`].
    Return(u32),
}

impl Module {
    /// The function with this name.
    pub fn function_by_name(&self, name: &str) -> Option<FuncId> {
        self.functions
            .iter()
            .position(|f| f.name == name)
            .map(|i| FuncId(i as u32))
    }
    /// The module-scope variable with this name.
    pub fn global_by_name(&self, name: &str) -> Option<u32> {
        self.globals
            .iter()
            .position(|v| v.name == name)
            .map(|i| i as u32)
    }
    /// Path of a `.file` number.
    pub fn file(&self, number: u32) -> Option<&str> {
        self.files
            .iter()
            .find(|(n, _)| *n == number)
            .map(|(_, p)| p.as_str())
    }
    /// Number of the architecture in `.target`: 89 for `sm_89`, 90 for `sm_90a`; zero without a number.
    pub fn arch(&self) -> u32 {
        let digits = self
            .target
            .first()
            .map_or("", |t| t.trim_start_matches("sm_"));
        digits
            .trim_end_matches(|c: char| c.is_ascii_alphabetic())
            .parse()
            .unwrap_or(0)
    }
}

/// Linking directives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Linkage {
    #[default]
    None,
    Extern,
    Visible,
    Weak,
    Common,
}

/// A variable or a parameter.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name as written. Variables of nested scopes may share a name; indices tell them apart.
    pub name: String,
    /// State space.
    pub space: Space,
    /// Alignment in bytes: as declared, otherwise that of the scalar or vector type.
    pub align: u32,
    /// Element type.
    pub ty: Type,
    /// Vector width of an element: 1, 2, 4 or 8.
    pub vector: u32,
    /// Array dimensions, outermost first; empty for a scalar. The first dimension of an unsized array
    /// (`.extern .shared .b8 s[]`) is `None`.
    pub dims: Vec<Option<u64>>,
    /// Linking directive.
    pub linkage: Linkage,
    /// Initial contents in memory order. The part of the variable that they do not cover is zero.
    pub init: Vec<InitElem>,
    /// Properties that initialize a `.texref`, `.samplerref` or `.surfref` variable: names and values as written.
    pub properties: Vec<(String, String)>,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// `.ptr` annotation of a kernel parameter: the state space of the pointee (`None` is generic) and its alignment.
    pub ptr: Option<(Option<Space>, u32)>,
    /// Position of the declaration.
    pub pos: Pos,
}

impl Variable {
    /// Number of elements; zero for an unsized array.
    pub fn count(&self) -> u64 {
        self.dims
            .iter()
            .fold(1u64, |n, d| n.saturating_mul(d.unwrap_or(0)))
    }
    /// Size in bytes; zero for an unsized array.
    pub fn size(&self) -> u64 {
        self.count()
            .saturating_mul(u64::from(self.ty.bytes()) * u64::from(self.vector))
    }
    /// Whether the variable is an array without a length.
    pub fn is_unsized(&self) -> bool {
        self.dims.first().is_some_and(Option::is_none)
    }
}

/// An element of an initializer, converted to the variable's element type.
#[derive(Clone, Debug, PartialEq)]
pub enum InitElem {
    /// Value, in the low bits.
    Bits(u64),
    /// The address of a variable plus an offset; `generic` if written as `generic(name)`. `byte` is the byte that a
    /// `mask(address)` initializer selects (`0xFF00(name)` is byte 1); `None` is the whole address.
    #[allow(missing_docs)]
    Var {
        var: VarId,
        offset: i64,
        generic: bool,
        byte: Option<u8>,
    },
    /// The address of a function, or one byte of it.
    #[allow(missing_docs)]
    Func { func: FuncId, byte: Option<u8> },
    /// So many zero elements, where inner braces are shorter than their dimension.
    Zeros(u64),
}

/// A function or a kernel.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name as written (mangled for C++).
    pub name: String,
    /// `.entry` rather than `.func`.
    pub is_entry: bool,
    /// Linking directive.
    pub linkage: Linkage,
    /// `.noreturn`.
    pub noreturn: bool,
    /// Parameters in order, in `.param` space. A `.func` of PTX ISA 1.x may have parameters in `.reg` space: they are
    /// the first registers of [`Body::regs`], returns before parameters.
    pub params: Vec<Variable>,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable>,
    /// Performance-tuning directives.
    pub directives: Directives,
    /// `None` for a declaration.
    pub body: Option<Body>,
    /// Position of the declaration.
    pub pos: Pos,
}

/// Performance-tuning directives of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// `.maxntid`.
    pub max_ntid: Option<[u32; 3]>,
    /// `.reqntid`.
    pub req_ntid: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub min_ncta_per_sm: Option<u32>,
    /// `.maxnreg`.
    pub max_nreg: Option<u32>,
    /// `.reqnctapercluster`.
    pub req_ncta_per_cluster: Option<[u32; 3]>,
    /// `.maxclusterrank`.
    pub max_cluster_rank: Option<u32>,
    /// `.explicitcluster`.
    pub explicit_cluster: bool,
    /// Every other directive or `.pragma` string, as written.
    pub pragmas: Vec<String>,
}

/// A `.callprototype`.
#[derive(Clone, Debug)]
pub struct Prototype {
    /// Label.
    pub name: String,
    /// Return parameters.
    pub returns: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// `.noreturn`.
    pub noreturn: bool,
}

/// Body of a function, with nested scopes flattened.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Registers of all scopes.
    pub regs: Vec<Register>,
    /// Variables of all scopes.
    pub vars: Vec<Variable>,
    /// Instructions in order.
    pub instrs: Vec<Instr>,
    /// Labels.
    pub labels: Vec<Label>,
    /// `.branchtargets` lists by label name, for `brx.idx`.
    pub branch_targets: Vec<(String, Vec<LabelId>)>,
    /// `.calltargets` lists by label name.
    pub call_targets: Vec<(String, Vec<FuncId>)>,
}

/// A register.
#[derive(Clone, Debug)]
pub struct Register {
    /// Name as written, `%` included.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// Vector width (`.reg .v4 .f32`); 1 for a scalar.
    pub vector: u32,
}

/// A label.
#[derive(Clone, Debug)]
pub struct Label {
    /// Name as written.
    pub name: String,
    /// Index of the instruction that follows it; the number of instructions for a label at the end.
    pub at: u32,
}
