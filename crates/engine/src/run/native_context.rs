//! The state that machine code of the compiler accesses, at fixed offsets from one register.

/// The most lanes that machine code processes at a time: a *chunk* of a warp.
pub const CHUNK: usize = 16;
/// Addresses that a block of code can keep checked at a time.
pub const GROUPS: usize = 32;
/// Roots of addresses whose comparison a block of code can keep at a time.
pub const ROOTS: usize = 16;
/// Roots of addresses that a block of code can save at a time.
pub const SAVED_ROOTS: usize = 4;
/// Distances between the addresses of neighbouring lanes for which there are tables.
pub const STRIDES: [u32; 5] = [1, 2, 4, 8, 16];

/// How the addresses of the lanes of a chunk lie to each other.
pub mod pattern {
    /// Each follows the one before, and the access is allowed.
    pub const CONSECUTIVE: u32 = 0;
    /// All are equal, and the access is allowed.
    pub const EQUAL: u32 = 1;
    /// Anything else.
    pub const OTHER: u32 = 2;
}

/// Executes the instruction at a position for the lanes of a mask of the chunk; 1 if it faults, otherwise 0.
pub type ExecuteFn = unsafe extern "sysv64" fn(*mut NativeContext, pc: u32, mask: u32) -> u32;

/// Lanes of a warp that machine code runs together, and what it has done with them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Chunk {
    /// Slots of 32-bit elements of the chunk, by location.
    pub regs32: *mut u8,
    /// Slots of 64-bit elements of the chunk, by location.
    pub regs64: *mut u8,
    /// Predicates of the chunk, by location.
    pub preds: *mut u8,
    /// Thread indices of the chunk; those of the next axis follow after 128 bytes.
    pub indices: *const u32,
    /// Word 0 of the local memory of the chunk's lanes; that of the next word follows after 128 bytes. Null if no code uses it.
    pub local: *mut u8,
    /// The [`Warp`](super::warp::Warp).
    pub warp: *mut (),
    /// The first lane.
    pub first_lane: u32,
    /// The lanes that run.
    pub lanes: u32,
    /// Where they are afterwards.
    pub pc: u32,
    /// The lanes that are there; the others wait at blocks.
    pub there: u32,
    /// Bytes from this chunk to its *peer*, the other chunk of the warp, if both are whole; otherwise zero.
    pub peer: i64,
    /// Where its code begins or goes on while the peer does not run; zero if it does not.
    pub resume: u64,
    /// The position of the warp collective at which it waits for the peer; `u32::MAX` if it does not.
    pub waits: u32,
    /// Backward branches that it may take when it goes on.
    pub left: i32,
}

/// What machine code reads and writes besides the register file and memory.
#[repr(C, align(64))]
pub struct NativeContext {
    /// For each of [`STRIDES`], the distance of each lane from the first, in 32 bits.
    pub steps32: [[u32; CHUNK]; STRIDES.len()],
    /// The same in 64 bits.
    pub steps64: [[u64; CHUNK]; STRIDES.len()],
    /// For each element of four, where it is in two registers of vectors of four 32-bit elements.
    pub of_four: [[u32; CHUNK]; 4],
    /// For each element of two, where it is in two registers of vectors of two 64-bit elements.
    pub of_two: [[u64; CHUNK / 2]; 2],
    /// Vectors of roots of addresses whose slots have been written.
    pub saved_roots: [[u64; CHUNK]; SAVED_ROOTS],
    /// For each lane, where its 32-bit element begins in its group of 16 bytes, in each byte.
    pub byte_bases: [[u8; 4]; CHUNK],
    /// Addresses of the lanes of an atomic.
    pub atomic_addresses: [u64; CHUNK],
    /// Its sources, in 32 or 64 bits each.
    pub atomic_values: [u64; CHUNK],
    /// Its second sources.
    pub atomic_values2: [u64; CHUNK],
    /// Its results.
    pub atomic_results: [u64; CHUNK],
    /// With AVX2: the mask registers, with ones in each lane that is set.
    pub masks: [[u32; CHUNK / 2]; 8],
    /// With AVX2: the constants in every lane.
    pub vectors: [[u64; 4]; constant::COUNT],
    /// With AVX2: ones.
    pub ones: [u64; 4],
    /// With AVX2: where the low bytes of the elements are in each half of a register.
    pub low_bytes: [[u8; 16]; 2],
    /// With AVX2: where the low 16 bits of the elements are in each half of a register.
    pub low_words: [[u8; 16]; 2],
    /// With AVX2: the elements of an access that is made lane by lane.
    pub lane_values: [u64; 8],
    /// With AVX2: its indices.
    pub lane_indices: [u64; 4],
    /// With AVX2: the mask of each byte, with ones in a byte for each bit that is set.
    pub expanded: [[u8; 8]; 256],
    /// Constants by [`constant`].
    pub constants: [u64; constant::COUNT],
    /// The lanes that wait at each of the waiting blocks of the function.
    pub waiting: [u16; 64],
    /// For each checked address, the address of the first lane in host memory.
    pub hosts: [u64; GROUPS],
    /// For each checked address, its [`pattern`].
    pub patterns: [u32; GROUPS],
    /// For each compared root, its first lane.
    pub root_firsts: [u64; ROOTS],
    /// For each compared root, its [`pattern`], whether accesses are allowed or not.
    pub root_patterns: [u32; ROOTS],
    /// Shared memory of the block.
    pub shared: *mut u8,
    /// Bytes of shared memory.
    pub shared_bytes: u64,
    /// Whether other blocks can access it.
    pub shared_by_cluster: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u64,
    /// The entries of the region cache.
    pub cache: *const u8,
    /// Where code goes on at each of the waiting blocks.
    pub blocks: *const u64,
    /// Executes one instruction.
    pub execute: Option<ExecuteFn>,
    /// Which blocks lanes wait at.
    pub pending: u64,
    /// The chunk that runs.
    pub chunk: *mut Chunk,
    /// The end of the chunks to run.
    pub end: *mut Chunk,
    /// Where the code begins for whole chunks.
    pub entry: u64,
    /// Where the code begins for others.
    pub masked_entry: u64,
    /// The difference of the positions and lanes of the chunks that have run: zero if all lanes are at position
    /// [`Self::meeting`].
    pub differences: u32,
    /// The position of the first chunk.
    pub meeting: u32,
    /// Whether the code returns after a chunk that is not at a `ret`, because the next one uses the same register file.
    pub exclusive: u32,
    /// Backward branches that each chunk may take.
    pub fuel: i32,
    /// Those that the chunk that runs may still take.
    pub left: i32,
    /// The least that a chunk has left.
    pub least: i32,
    /// The code returns at a block from this position on.
    pub stop: u32,
    /// The last chunk of which lanes wait.
    pub exited: *mut Chunk,
    /// Not zero if the code returns when both chunks of the warp have run.
    pub returns: u64,
    /// Elements that a chunk has contributed to a warp collective, until its peer goes on.
    pub exchange: [u32; CHUNK],
    /// The same of a predicate.
    pub exchanged_predicate: u32,
    /// `MXCSR` of the thread while an atomic changes it.
    pub saved_mxcsr: u32,
    /// The mask registers during a call.
    pub saved_masks: [u32; 8],
    /// The [`Context`](super::context::Context) of the call.
    pub cx: *mut (),
}

/// Indices of [`NativeContext::constants`]. 32-bit constants are in the low half.
pub mod constant {
    /// The canonical NaN.
    pub const NAN32: usize = 0;
    /// The exponent of single precision.
    pub const EXPONENT32: usize = 1;
    /// The sign of single precision.
    pub const SIGN32: usize = 2;
    /// All bits but the sign.
    pub const MAGNITUDE32: usize = 3;
    /// 1.0 in single precision.
    pub const ONE32: usize = 4;
    /// 2^31 in single precision.
    pub const LARGE32: usize = 5;
    /// The largest 32-bit integer.
    pub const MOST32: usize = 6;
    /// The sign of double precision.
    pub const SIGN64: usize = 7;
    /// All bits but the sign.
    pub const MAGNITUDE64: usize = 8;
    /// 1.0 in double precision.
    pub const ONE64: usize = 9;
    /// Ones in 32 bits.
    pub const ONES32: usize = 10;
    /// The low 16 bits.
    pub const LOW16: usize = 11;
    /// Number of constants.
    pub const COUNT: usize = 12;
    /// The constants of 64 bits.
    pub const LONG: [usize; 3] = [SIGN64, MAGNITUDE64, ONE64];
}

impl Default for NativeContext {
    fn default() -> Self {
        let mut constants = [0; constant::COUNT];
        constants[constant::NAN32] = 0x7fff_ffff;
        constants[constant::EXPONENT32] = 0x7f80_0000;
        constants[constant::SIGN32] = 1 << 31;
        constants[constant::MAGNITUDE32] = 0x7fff_ffff;
        constants[constant::ONE32] = u64::from(1f32.to_bits());
        constants[constant::LARGE32] = u64::from(2_147_483_648f32.to_bits());
        constants[constant::MOST32] = 0x7fff_ffff;
        constants[constant::SIGN64] = 1 << 63;
        constants[constant::MAGNITUDE64] = (1 << 63) - 1;
        constants[constant::ONE64] = 1f64.to_bits();
        constants[constant::ONES32] = 0xffff_ffff;
        constants[constant::LOW16] = 0xffff;
        Self {
            steps32: STRIDES.map(|s| std::array::from_fn(|l| s * l as u32)),
            steps64: STRIDES.map(|s| std::array::from_fn(|l| u64::from(s) * l as u64)),
            of_four: std::array::from_fn(|j| std::array::from_fn(|l| (j + 4 * l) as u32 % 32)),
            of_two: std::array::from_fn(|j| std::array::from_fn(|l| (j + 2 * l) as u64)),
            byte_bases: std::array::from_fn(|l| [4 * (l % 4) as u8; 4]),
            atomic_addresses: [0; CHUNK],
            atomic_values: [0; CHUNK],
            atomic_values2: [0; CHUNK],
            atomic_results: [0; CHUNK],
            masks: [[0; CHUNK / 2]; 8],
            vectors: std::array::from_fn(|n| match constant::LONG.contains(&n) {
                true => [constants[n]; 4],
                false => [constants[n] << 32 | constants[n]; 4],
            }),
            ones: [u64::MAX; 4],
            low_bytes: [std::array::from_fn(|n| if n < 4 { 4 * n as u8 } else { 0x80 }); 2],
            low_words: [std::array::from_fn(|n| match n {
                0..8 => (4 * (n / 2) + n % 2) as u8,
                _ => 0x80,
            }); 2],
            lane_values: [0; 8],
            lane_indices: [0; 4],
            expanded: std::array::from_fn(|byte| {
                std::array::from_fn(|bit| if byte >> bit & 1 != 0 { 0xff } else { 0 })
            }),
            constants,
            waiting: [0; 64],
            hosts: [0; GROUPS],
            patterns: [0; GROUPS],
            root_firsts: [0; ROOTS],
            root_patterns: [0; ROOTS],
            saved_roots: [[0; CHUNK]; SAVED_ROOTS],
            shared: std::ptr::null_mut(),
            shared_bytes: 0,
            shared_by_cluster: 0,
            local_bytes: 0,
            cache: std::ptr::null(),
            blocks: std::ptr::null(),
            execute: None,
            pending: 0,
            chunk: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            entry: 0,
            masked_entry: 0,
            differences: 0,
            meeting: 0,
            exclusive: 0,
            fuel: 0,
            left: 0,
            least: 0,
            stop: u32::MAX,
            exited: std::ptr::null_mut(),
            returns: 0,
            exchange: [0; CHUNK],
            exchanged_predicate: 0,
            saved_mxcsr: 0,
            saved_masks: [0; 8],
            cx: std::ptr::null_mut(),
        }
    }
}
