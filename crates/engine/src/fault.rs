//! Faults of kernels.

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside every allocation, or a store to read-only memory.
    IllegalAddress,
    /// An access that is not aligned to its size.
    MisalignedAddress,
    /// A failed `assert`.
    Assert,
    /// An instruction that the engine does not implement, or an operand that it does not allow.
    IllegalInstruction,
    /// A call through a pointer that is not the address of a function.
    InvalidPc,
    /// An operation on an address in a state space that it does not support.
    InvalidAddressSpace,
    /// An access to shared memory of a block that the cluster does not have, or whose threads have exited.
    ClusterBlockNotPresent,
    /// `trap`, or a deadlock.
    Trap,
    /// A stack overflow.
    StackOverflow,
    /// The launch was cancelled.
    Cancelled,
    /// A block that exceeds the limits of the kernel or the device.
    LaunchOutOfResources,
}

/// Failure of a launch.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// Report of several lines; empty for [`FaultKind::Cancelled`].
    pub report: String,
    /// The instruction and the thread; `None` for a fault without a thread.
    pub place: Option<Box<FaultPlace>>,
}

/// Where a kernel failed.
#[derive(Clone, Debug)]
pub struct FaultPlace {
    /// The thread.
    pub at: Coordinates,
    /// Function of the instruction: the kernel or one that it calls.
    pub function: String,
    /// Opcode of the instruction with its modifiers.
    pub opcode: String,
    /// Line of the PTX.
    pub line: u32,
    /// `file:line` of the source, if known.
    pub source: Option<String>,
    /// Address of a refused memory access.
    pub address: Option<u64>,
}

impl Fault {
    /// A fault without a thread.
    pub fn plain(kind: FaultKind, report: String) -> Self {
        Self {
            kind,
            report,
            place: None,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.report.trim_end())
    }
}

impl std::error::Error for Fault {}

/// A fault that an instruction raises in one lane.
#[derive(Debug)]
pub struct LaneFault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// Lane.
    pub lane: u32,
    /// Description.
    pub detail: FaultDetail,
}

/// Description of a fault.
#[derive(Debug)]
pub enum FaultDetail {
    /// A refused memory access.
    Access {
        /// Address that the kernel used.
        address: u64,
        /// Bytes.
        bytes: u32,
        /// Whether it is a store.
        write: bool,
        /// `global`, `shared`, `local`.
        space: &'static str,
        /// Size of shared or local memory.
        limit: Option<u64>,
    },
    /// A sentence.
    Text(String),
}

/// Coordinates of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Coordinates {
    /// Block index.
    pub block: [u32; 3],
    /// Thread index in the block.
    pub thread: [u32; 3],
}
