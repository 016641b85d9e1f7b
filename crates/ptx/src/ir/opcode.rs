//! The opcodes, their spellings and their properties.
//!
//! This table is the only definition of the opcodes. To add an opcode:
//!
//! 1. add a row here, with its class and whether its first operand is a destination;
//! 2. state its operands in `parse/operand_shapes.rs` (an opcode without an entry is parsed, but its operands are not
//!    checked) and, if its class checks modifiers, its own modifiers in `parse/modifiers.rs`;
//! 3. let the CPU device execute it: arithmetic needs a function in `cupyrite-cpu`'s `engine/ops`, everything else an
//!    arm in `engine/compile/lower/mod.rs` and, if no decoded instruction fits, an `InstKind` with its arm in
//!    `engine/run/interpreter.rs`.
//!
//! An opcode whose name has several words (`cp.async`) is also named in `parse/opcode_lookup.rs`.

use std::fmt;

/// The effect of an opcode besides computing a value. The classes follow the sections of the PTX ISA manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpClass {
    /// Arithmetic, logic, comparison, selection, conversion and moves. The result of a lane depends only on that lane's
    /// register operands.
    Arithmetic,
    /// Video instructions: arithmetic on parts of registers.
    Video,
    /// Tests and conversions of addresses.
    Address,
    /// Branches, calls, returns, and instructions that end a thread.
    ControlFlow,
    /// Barriers of a block or cluster.
    Barrier,
    /// Instructions that the lanes of a warp execute together.
    WarpCollective,
    /// Loads, stores and atomics with one address per lane.
    Memory,
    /// Memory fences.
    Fence,
    /// `mbarrier` objects.
    Mbarrier,
    /// Asynchronous copies and reductions.
    AsyncCopy,
    /// Texture and surface instructions.
    Texture,
    /// Dynamic allocation in the stack frame.
    Stack,
    /// Waiting and performance monitoring.
    Monitor,
    /// Cache and scheduling hints, without effect on results.
    Hint,
    /// Matrix instructions.
    Matrix,
    /// Instructions of a cluster or of several GPUs.
    Cluster,
}

impl OpClass {
    /// Whether the parser rejects a modifier that it does not know. The other classes keep it in
    /// [`Mods::other`](super::Mods::other).
    pub const fn checks_modifiers(self) -> bool {
        use OpClass::*;
        match self {
            Arithmetic | Video | Address | ControlFlow | Barrier | WarpCollective | Memory
            | Fence | Stack | Monitor => true,
            Mbarrier | AsyncCopy | Texture | Hint | Matrix | Cluster => false,
        }
    }

    /// Whether the class takes the modifiers of arithmetic (rounding, `.ftz`, `.sat`) and no others.
    pub const fn is_computation(self) -> bool {
        matches!(
            self,
            OpClass::Arithmetic | OpClass::Video | OpClass::Address
        )
    }
}

/// Whether the first operand of an opcode is a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// In every form.
    First,
    /// In no form.
    None,
    /// In some forms: [`Instr::has_destination`](super::Instr::has_destination) decides by the modifiers.
    ByForm,
}

macro_rules! opcodes {
    ($($class:ident, $destination:ident: { $($(#[$doc:meta])* $name:ident = $text:literal),* $(,)? })*) => {
        /// Opcodes: the word before the first modifier, or the words that name an instruction family (`cp.async`,
        /// `bar.warp`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Op { $($($(#[$doc])* $name),*),* }
        impl Op {
            /// Every opcode.
            pub const ALL: &'static [Op] = &[$($(Op::$name),*),*];
            /// The spelling.
            pub const fn name(self) -> &'static str {
                match self { $($(Op::$name => $text),*),* }
            }
            /// What it does.
            pub const fn class(self) -> OpClass {
                match self { $($(Op::$name)|* => OpClass::$class),* }
            }
            /// Whether its first operand is a destination.
            pub const fn destination(self) -> Destination {
                match self { $($(Op::$name)|* => Destination::$destination),* }
            }
        }
    };
}

opcodes! {
    Arithmetic, First: {
        Abs = "abs", Add = "add", Addc = "addc", And = "and", Bfe = "bfe", Bfi = "bfi", Bfind = "bfind", Bmsk = "bmsk",
        Brev = "brev", Clz = "clz", Cnot = "cnot", Copysign = "copysign", Cos = "cos", Cvt = "cvt", CvtPack = "cvt.pack",
        Cvta = "cvta", Div = "div", Dp2a = "dp2a", Dp4a = "dp4a", Ex2 = "ex2", Fma = "fma", Fns = "fns", Lg2 = "lg2",
        Lop3 = "lop3", Mad = "mad", Mad24 = "mad24", Madc = "madc", Max = "max", Min = "min", Mov = "mov", Mul = "mul",
        Mul24 = "mul24", Neg = "neg", Not = "not", Or = "or", Popc = "popc", Prmt = "prmt", Rcp = "rcp", Rem = "rem",
        Rsqrt = "rsqrt", Sad = "sad", Selp = "selp", Set = "set", Setp = "setp", Shf = "shf", Shl = "shl", Shr = "shr",
        Sin = "sin", Slct = "slct", Sqrt = "sqrt", Sub = "sub", Subc = "subc", Szext = "szext", Tanh = "tanh",
        Testp = "testp", Xor = "xor",
    }
    Video, First: {
        Vabsdiff = "vabsdiff", Vabsdiff2 = "vabsdiff2", Vabsdiff4 = "vabsdiff4", Vadd = "vadd", Vadd2 = "vadd2",
        Vadd4 = "vadd4", Vavrg2 = "vavrg2", Vavrg4 = "vavrg4", Vmad = "vmad", Vmax = "vmax", Vmax2 = "vmax2",
        Vmax4 = "vmax4", Vmin = "vmin", Vmin2 = "vmin2", Vmin4 = "vmin4", Vset = "vset", Vset2 = "vset2", Vset4 = "vset4",
        Vshl = "vshl", Vshr = "vshr", Vsub = "vsub", Vsub2 = "vsub2", Vsub4 = "vsub4",
    }
    Address, First: { Getctarank = "getctarank", Isspacep = "isspacep", Mapa = "mapa" }
    ControlFlow, None: {
        Bra = "bra", Brkpt = "brkpt", BrxIdx = "brx.idx", Exit = "exit", Ret = "ret", Trap = "trap",
    }
    ControlFlow, ByForm: { Call = "call" }
    Barrier, ByForm: {
        /// `bar`, `bar.sync`, `bar.arrive`, `bar.red`, and `barrier{.cta}` of the same.
        Bar = "bar", Barrier = "barrier",
    }
    Barrier, None: {
        /// `barrier.cluster.arrive`, `barrier.cluster.wait`.
        BarrierCluster = "barrier.cluster",
    }
    WarpCollective, First: {
        Activemask = "activemask", Elect = "elect", Match = "match", Redux = "redux", Shfl = "shfl", Vote = "vote",
    }
    WarpCollective, None: {
        /// `bar.warp.sync`.
        BarWarp = "bar.warp",
    }
    Memory, First: { Atom = "atom", Ld = "ld", Ldu = "ldu" }
    Memory, None: { Red = "red", St = "st" }
    Fence, None: { Fence = "fence", Membar = "membar" }
    Mbarrier, ByForm: { Mbarrier = "mbarrier" }
    AsyncCopy, None: { CpAsync = "cp.async", CpAsyncBulk = "cp.async.bulk", CpReduceAsync = "cp.reduce.async" }
    Texture, First: { Istypep = "istypep", Suld = "suld", Suq = "suq", Tex = "tex", Tld4 = "tld4", Txq = "txq" }
    Texture, None: { Sured = "sured", Sust = "sust" }
    Stack, First: { Alloca = "alloca", Stacksave = "stacksave" }
    Stack, None: { Stackrestore = "stackrestore" }
    Monitor, None: { Nanosleep = "nanosleep", Pmevent = "pmevent" }
    Hint, First: { Createpolicy = "createpolicy" }
    Hint, None: {
        Applypriority = "applypriority", Discard = "discard", Griddepcontrol = "griddepcontrol", Prefetch = "prefetch",
        Prefetchu = "prefetchu", Setmaxnreg = "setmaxnreg",
    }
    Matrix, First: {
        Ldmatrix = "ldmatrix", Mma = "mma", Movmatrix = "movmatrix", Tcgen05 = "tcgen05", Wgmma = "wgmma", Wmma = "wmma",
    }
    Matrix, None: { Stmatrix = "stmatrix" }
    Cluster, First: { Clusterlaunchcontrol = "clusterlaunchcontrol", Multimem = "multimem", Tensormap = "tensormap" }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
