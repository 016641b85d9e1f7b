//! The typed form of a PTX module, with every name resolved.
//!
//! The parser produces it, the CPU device decodes it. Names follow the PTX ISA manual (9.x); a comment names
//! the chapter where the manual's rule is not obvious. Everything is plain data: indices instead of references,
//! so that a module can be shared between threads and walked in any order.

mod mnemonic;
mod opcode;

pub use opcode::Op;

/// A position in the PTX text: both count from one; zero means "not known".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pos {
    /// Line of the PTX text.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// A position in the source the PTX was made from (`.loc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLoc {
    /// Index into [`Module::files`] (the `.file` number, not a position in the vector).
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
    /// `.target` words, the architecture first (`sm_89`, then `debug`, `texmode_unified`, ...).
    pub target: Vec<String>,
    /// `.address_size`: 64 (32 is rejected by the CPU device, not by the parser).
    pub address_size: u32,
    /// `.file` directives: number and path.
    pub files: Vec<(u32, String)>,
    /// Module-scope variables.
    pub globals: Vec<Variable>,
    /// Functions and entries, declarations included; a definition replaces its declaration.
    pub functions: Vec<Function>,
    /// `.callprototype` declarations of all bodies.
    pub prototypes: Vec<Prototype>,
    /// `.alias` directives: the alias, which has no body of its own, and the function it stands for.
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

/// A variable, wherever it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarId {
    /// Index into [`Module::globals`].
    Module(u32),
    /// Index into [`Body::vars`]: `.local`, `.shared`, `.const`, `.global` or a call's `.param`, declared in a body.
    Local(u32),
    /// Index into the enclosing function's [`Function::params`].
    Param(u32),
    /// Index into the enclosing function's [`Function::returns`].
    Return(u32),
}

/// State spaces (PTX ISA, "State Spaces").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Space {
    Reg,
    Const,
    Global,
    Local,
    /// `.param`, `.param::entry` and `.param::func`.
    Param,
    /// `.shared` and `.shared::cta`.
    Shared,
    /// `.shared::cluster`.
    SharedCluster,
    Tex,
}

/// Fundamental types (PTX ISA, "Fundamental Types" and "Alternate Floating-Point Data Formats").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    U16x2,
    S16x2,
    F16,
    F16x2,
    BF16,
    BF16x2,
    TF32,
    F32,
    F32x2,
    F64,
    E4M3,
    E5M2,
    E4M3x2,
    E5M2x2,
    /// Any further sub-byte or packed format, by its width in bits; instructions using it carry its name in [`Mods::other`].
    Packed(u16),
    TexRef,
    SamplerRef,
    SurfRef,
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
    /// The function that a call of `func` runs: the target of its alias if it has one, else itself.
    pub fn definition_of(&self, func: FuncId) -> FuncId {
        self.aliases
            .iter()
            .find(|(a, _)| *a == func)
            .map_or(func, |(_, f)| *f)
    }
    /// The path of a `.file` number.
    pub fn file(&self, number: u32) -> Option<&str> {
        self.files
            .iter()
            .find(|(n, _)| *n == number)
            .map(|(_, p)| p.as_str())
    }
    /// The architecture's number from `.target`: 89 for `sm_89`, 90 for `sm_90a`.
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

impl Type {
    /// Width in bits; a predicate counts as 1, an opaque reference as 64.
    pub const fn bits(self) -> u32 {
        use Type::*;
        match self {
            Pred => 1,
            B8 | U8 | S8 | E4M3 | E5M2 => 8,
            B16 | U16 | S16 | F16 | BF16 | E4M3x2 | E5M2x2 => 16,
            B32 | U32 | S32 | F32 | TF32 | F16x2 | BF16x2 | U16x2 | S16x2 => 32,
            B64 | U64 | S64 | F64 | F32x2 | TexRef | SamplerRef | SurfRef => 64,
            B128 => 128,
            Packed(n) => n as u32,
        }
    }
    /// Size in bytes in memory; a predicate has none (0).
    pub const fn bytes(self) -> u32 {
        if let Type::Pred = self {
            0
        } else {
            self.bits().div_ceil(8)
        }
    }
    /// `.s8` to `.s64` and `.s16x2`.
    pub const fn is_signed(self) -> bool {
        matches!(
            self,
            Type::S8 | Type::S16 | Type::S32 | Type::S64 | Type::S16x2
        )
    }
    /// Any floating-point format, packed ones included.
    pub const fn is_float(self) -> bool {
        use Type::*;
        matches!(
            self,
            F16 | F16x2 | BF16 | BF16x2 | TF32 | F32 | F32x2 | F64 | E4M3 | E5M2 | E4M3x2 | E5M2x2
        )
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
    /// Name as written; unique names of nested scopes are resolved by index, not by name.
    pub name: String,
    /// Where it lives.
    pub space: Space,
    /// Alignment in bytes: as declared, else that of the (vector) type.
    pub align: u32,
    /// Element type.
    pub ty: Type,
    /// Vector width of an element: 1, 2, 4 or 8.
    pub vector: u32,
    /// Array dimensions, outermost first; empty for a scalar; a first dimension of `None` is an unsized array
    /// (`.extern .shared .b8 s[]`) that no initialiser completes.
    pub dims: Vec<Option<u64>>,
    /// Linking directive.
    pub linkage: Linkage,
    /// Initial contents, flattened in memory order; shorter than the variable means zeros after it.
    pub init: Vec<InitElem>,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// A kernel parameter's `.ptr` annotation: the space it points to (`None` = generic) and the alignment.
    pub ptr: Option<(Option<Space>, u32)>,
    /// Where it is declared.
    pub pos: Pos,
}

impl Variable {
    /// Number of elements; an unsized array counts none.
    pub fn count(&self) -> u64 {
        self.dims
            .iter()
            .fold(1u64, |n, d| n.saturating_mul(d.unwrap_or(0)))
    }
    /// Size in bytes; an unsized array has none.
    pub fn size(&self) -> u64 {
        self.count()
            .saturating_mul(u64::from(self.ty.bytes()) * u64::from(self.vector))
    }
    /// Whether it is declared without a length.
    pub fn is_unsized(&self) -> bool {
        self.dims.first().is_some_and(Option::is_none)
    }
}

/// One element of an initialiser, already converted to the variable's element type.
#[derive(Clone, Debug, PartialEq)]
pub enum InitElem {
    /// Bits of the element, in the low bits.
    Bits(u64),
    /// The address of a variable plus an offset; `generic` if written as `generic(name)`. `byte` selects one byte
    /// of it for `mask(address)` initialisers (`0xFF00(name)` is byte 1), `None` the whole.
    #[allow(missing_docs)]
    Var {
        var: VarId,
        offset: i64,
        generic: bool,
        byte: Option<u8>,
    },
    /// The address of a function.
    #[allow(missing_docs)]
    Func { func: FuncId, byte: Option<u8> },
    /// A run of zero elements (inner braces shorter than their dimension).
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
    /// Parameters in order; `.param` space, or `.reg` for `.func`s of old producers: those are the first registers of
    /// [`Body::regs`], returns before parameters.
    pub params: Vec<Variable>,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable>,
    /// Performance-tuning directives.
    pub directives: Directives,
    /// `None` for a declaration.
    pub body: Option<Body>,
    /// Where it is declared.
    pub pos: Pos,
}

/// Performance-tuning directives of a kernel; zero or empty means absent.
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
    /// Its label.
    pub name: String,
    /// Return parameters.
    pub returns: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// `.noreturn`.
    pub noreturn: bool,
}

/// A function's contents, nested scopes flattened.
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
    /// Its type.
    pub ty: Type,
    /// Vector width (`.reg .v4 .f32`), mostly 1.
    pub vector: u32,
}

/// A label.
#[derive(Clone, Debug)]
pub struct Label {
    /// Name as written.
    pub name: String,
    /// Index of the instruction it stands before; may equal the number of instructions.
    pub at: u32,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Instr {
    /// `@p` or `@!p`: the predicate register and whether it is negated.
    pub guard: Option<(RegId, bool)>,
    /// Base opcode.
    pub op: Op,
    /// Modifiers.
    pub mods: Mods,
    /// Types in the order written: `cvt.rn.f32.s32` has `[F32, S32]`, `setp.lt.u32` has `[U32]`, `set.lt.u32.f32` two.
    pub types: Vec<Type>,
    /// Operands in the order written, destination first. A `call` always has three or four, written or not:
    /// [`Operand::Args`] (returns), the target, [`Operand::Args`] (arguments), and for an indirect call the prototype or
    /// target list. `ld d, var[1]` is made `ld d, [var+4]`. Where the operand's type is known, a floating-point literal has
    /// its width ([`Operand::F32`] or [`Operand::F64`]), and an integer literal for a predicate is 0 or 1.
    pub operands: Vec<Operand>,
    /// Where it stands in the PTX text.
    pub pos: Pos,
    /// The latest `.loc` before it.
    pub loc: Option<SourceLoc>,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// One component (0..=3) of a vector register.
    RegComponent(RegId, u8),
    /// Bytes or half-words of a register in a video instruction: `%r.b0`, `%r.h1`, `%r.b3210`.
    RegSelect(RegId, Selector),
    /// `-%r`: a negated source of a video instruction.
    Neg(Box<Operand>),
    /// `!%p`: a negated predicate source.
    NotReg(RegId),
    /// `%p|%q` (setp) or `%r|%p` (shfl, match, elect): two destinations; a sink `_` is [`Operand::Sink`].
    Pair(Box<Operand>, Box<Operand>),
    /// A special register such as `%tid.x`.
    Special(Special),
    /// An integer literal, two's complement in 64 bits.
    Int(i64),
    /// A `0f3F800000` literal, as bits.
    F32(u32),
    /// A `0d...` or decimal floating literal, as bits.
    F64(u64),
    /// A variable's address as a value (`mov.u64 %rd1, var;`), plus an offset.
    Var(VarId, i64),
    /// A function's address as a value, or a direct call's target.
    Func(FuncId),
    /// `[base+offset]`.
    Addr(Base, i64),
    /// `{%f1, %f2, _, 0}`.
    Vector(Vec<Operand>),
    /// A branch target.
    Label(LabelId),
    /// A call's arguments or returns: `(param0, param1)`, by variable (or register, from old producers).
    Args(Vec<Operand>),
    /// The prototype of an indirect call.
    Proto(ProtoId),
    /// `_`.
    Sink,
    /// The label of a `.branchtargets` (in `brx.idx`, index into [`Body::branch_targets`]) or of a `.calltargets` list
    /// (in `call`, index into [`Body::call_targets`]).
    Targets(u32),
    /// `[tex, {coords}]` of texture and surface instructions: everything inside the brackets.
    TexAddr(Vec<Operand>),
}

/// Parts of a 32-bit register that a video instruction reads or writes, the lowest part first. In SIMD video
/// instructions numbers from 4 (bytes) or 2 (half-words) on select from the second source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// `.b0` to `.b3`.
    Byte(u8),
    /// `.h0`, `.h1`.
    Half(u8),
    /// `.b3210` is `[0, 1, 2, 3]`; a mask such as `.b20` names the destination's bytes: `[0, 2]`, the rest 255.
    Bytes([u8; 4]),
    /// `.h10` is `[0, 1]`.
    Halves([u8; 2]),
}

/// What an address operand counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A register.
    Reg(RegId),
    /// A variable.
    Var(VarId),
    /// Nothing: an absolute address.
    None,
}

/// Special registers (PTX ISA, "Special Registers"). Three-dimensional ones carry the axis: 0 = x, 1 = y, 2 = z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NWarpId,
    SmId,
    NSmId,
    GridId,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    ClusterId(u8),
    NClusterId(u8),
    ClusterCtaId(u8),
    ClusterNCtaId(u8),
    ClusterCtaRank,
    ClusterNCtaRank,
    IsExplicitCluster,
    DynamicSmemSize,
    TotalSmemSize,
    AggrSmemSize,
    /// `%reserved_smem_offset_0`, `_1`, `_begin` (2), `_end` (3), `_cap` (4).
    ReservedSmemOffset(u8),
    CurrentGraphExec,
    EnvReg(u8),
    Pm(u8),
    Pm64(u8),
}

/// Modifiers of an instruction. Each field is what was written, or its "not written" value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mods {
    /// Floating-point or integer rounding.
    pub rounding: Option<Rounding>,
    /// `.ftz`.
    pub ftz: bool,
    /// `.sat` (and `.satfinite` in `satfinite`).
    pub sat: bool,
    /// `.satfinite`.
    pub satfinite: bool,
    /// `.relu`.
    pub relu: bool,
    /// `.approx`.
    pub approx: bool,
    /// `.full` (div).
    pub full: bool,
    /// `.NaN` (min, max).
    pub nan: bool,
    /// `.xorsign`, with `.abs`.
    pub xorsign: bool,
    /// `.abs` as a modifier (min.xorsign.abs).
    pub abs: bool,
    /// `.noftz` (atom, red on half types).
    pub noftz: bool,
    /// `.lo`, `.hi`, `.wide` of integer multiplication (and `.lo`/`.hi` of dp2a in `mul` too).
    pub mul: Option<MulHalf>,
    /// `.cc`: writes the carry flag.
    pub cc: bool,
    /// `.shiftamt` (bfind).
    pub shiftamt: bool,
    /// `.wrap` / `.clamp` of shf; `.clamp`/`.wrap`/`.zero`/`.trap` of others.
    pub clamp: Option<ClampMode>,
    /// `shf.l` / `shf.r`.
    pub shift_left: Option<bool>,
    /// Comparison of setp, set, slct.
    pub cmp: Option<Cmp>,
    /// Combination of setp/set with a predicate (`.and`, `.or`, `.xor`), and of `lop3.or d|p`.
    pub bool_op: Option<BoolOp>,
    /// State space; `None` is generic.
    pub space: Option<Space>,
    /// Second state space (cp.async: destination then source; cvta with `.to`: see `to`).
    pub space2: Option<Space>,
    /// `cvta.to`, `isspacep`: `.to` was written.
    pub to: bool,
    /// Vector width of ld/st/mov: 1 (not written), 2, 4 or 8.
    pub vector: u32,
    /// `.volatile`.
    pub volatile: bool,
    /// `.weak`, `.relaxed`, `.acquire`, `.release`, `.acq_rel`, `.sc`, `.mmio` in `other`.
    pub semantics: Option<Semantics>,
    /// `.cta`, `.cluster`, `.gpu`, `.sys`; `membar.gl` is `.gpu`.
    pub scope: Option<Scope>,
    /// `.nc`.
    pub nc: bool,
    /// Operation of atom, red, redux, multimem, cp.reduce.async and of `bar.red`/`barrier.red`; the second operation of
    /// a video instruction.
    pub atom: Option<AtomOp>,
    /// Mode of shfl.
    pub shfl: Option<ShflMode>,
    /// Mode of vote.
    pub vote: Option<VoteMode>,
    /// `.sync`.
    pub sync: bool,
    /// `.aligned`.
    pub aligned: bool,
    /// `.uni` (bra, call, ret).
    pub uni: bool,
    /// `testp` operation.
    pub testp: Option<TestpOp>,
    /// `prmt` mode.
    pub prmt: Option<PrmtMode>,
    /// Everything else, in the order written and without the dot: cache operators (`ca`, `cg`, `L2::128B`),
    /// matrix shapes and layouts (`m16n8k16`, `row`, `col`), `geom` (tex: `1d`, `2d`, `a1d`, `cube`, ...), `all`/`any` (match),
    /// `arrive`, `mbarrier` words, `global`-like words that are no state space here.
    pub other: Vec<String>,
}

impl Mods {
    /// Whether `word` was written among the other modifiers.
    pub fn has(&self, word: &str) -> bool {
        self.other.iter().any(|w| w == word)
    }
}

/// Rounding modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Rounding {
    Rn,
    Rna,
    Rz,
    Rm,
    Rp,
    Rni,
    Rzi,
    Rmi,
    Rpi,
    Rs,
}
/// Halves of an integer product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MulHalf {
    Lo,
    Hi,
    Wide,
}
/// Out-of-range behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ClampMode {
    Clamp,
    Wrap,
    Zero,
    Trap,
}
/// Comparisons; the `*u` ones are true for unordered operands; `Lo`.. are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Lo,
    Ls,
    Hi,
    Hs,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}
/// Boolean combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BoolOp {
    And,
    Or,
    Xor,
}
/// Memory-order semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Semantics {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}
/// Memory-order scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}
/// Atomic and reduction operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AtomOp {
    And,
    Or,
    Xor,
    Cas,
    Exch,
    Add,
    Inc,
    Dec,
    Min,
    Max,
    Popc,
}
/// Shuffle modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}
/// Vote modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}
/// `testp` properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TestpOp {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}
/// `prmt` modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum PrmtMode {
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}
