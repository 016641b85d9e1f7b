//! Device attributes: what the device says about itself, consistent with what the rest of the driver does.
//!
//! The figures are those of the compute capability it presents (CUDA C++ Programming Guide, "Compute Capabilities").

use crate::driver::device::Device;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;

/// The PCI domain of CPU devices.
pub(crate) const PCI_DOMAIN: i32 = 0xC0DE;

pub(crate) const MAX_THREADS_PER_BLOCK: u32 = 1024;
pub(crate) const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
pub(crate) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
pub(crate) const WARP: u32 = 32;
pub(crate) const REGISTERS_PER_SM: u32 = 65536;
/// Shared memory a block may use without asking.
pub(crate) const SHARED_PER_BLOCK: u32 = 48 << 10;
/// Shared memory of each block that the system keeps.
pub(crate) const RESERVED_SHARED: u32 = 1 << 10;
pub(crate) const MAX_REGISTERS_PER_THREAD: u32 = 255;

/// What depends on the compute capability.
pub(crate) struct Multiprocessor {
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
    /// Bytes of shared memory.
    pub(crate) shared: u32,
    /// Most bytes of it that one block may have.
    pub(crate) shared_optin: u32,
}

/// The multiprocessor of that compute capability.
pub(crate) fn multiprocessor(capability: (i32, i32)) -> Multiprocessor {
    let (threads, blocks, shared_kib) = match capability {
        (5, 2) => (2048, 32, 96),
        (6, 1) => (2048, 32, 96),
        (5 | 6, _) => (2048, 32, 64),
        (7, 5) => (1024, 16, 64),
        (7, _) => (2048, 32, 96),
        (8, 0) => (2048, 32, 164),
        (8, 7) => (1536, 16, 164),
        (8, 9) => (1536, 24, 100),
        (8, _) => (1536, 16, 100),
        (9..=11, _) => (2048, 32, 228),
        _ => (1536, 24, 100),
    };
    let shared = shared_kib << 10;
    let shared_optin = match capability.0 {
        5 | 6 => SHARED_PER_BLOCK,
        7 => shared,
        _ => shared - RESERVED_SHARED,
    };
    Multiprocessor {
        threads,
        blocks,
        shared,
        shared_optin,
    }
}

impl Device {
    pub(crate) fn multiprocessor(&self) -> Multiprocessor {
        multiprocessor(self.capability)
    }
}

/// The value of a `CUdevice_attribute`.
///
/// # Errors
/// `INVALID_VALUE` for a number that is none.
pub(crate) fn get(device: &Device, attribute: i32) -> Res<i32> {
    let sm = device.multiprocessor();
    Ok(match attribute {
        1 => MAX_THREADS_PER_BLOCK as i32,
        2..=4 => MAX_BLOCK[(attribute - 2) as usize] as i32,
        5..=7 => MAX_GRID[(attribute - 5) as usize] as i32,
        8 => SHARED_PER_BLOCK as i32,
        9 => 64 << 10,
        10 => WARP as i32,
        11 => i32::MAX,
        12 | 82 => REGISTERS_PER_SM as i32,
        13 => clock_rate_khz(),
        14 => 512,
        // One multiprocessor a hardware thread: a block runs on one of them.
        16 => device.threads,
        // Kernels have no time limit; the device is not integrated (its memory is apart, as on a GPU).
        17 | 18 => 0,
        19 => 1,
        20 => 0,
        // Sizes of textures and surfaces, as of compute capability 8.9.
        21 => 131_072,
        22 => 131_072,
        23 => 65_536,
        24..=26 => 16_384,
        27 | 28 => 32_768,
        29 => 2048,
        30 => 512,
        31 => 1,
        32 => 0,
        33 => device.ordinal + 1,
        34 => 0,
        35 => 0,
        36 => 1_600_000,
        37 => 64,
        38 => l2_bytes(),
        39 => sm.threads as i32,
        40 => 2,
        15 | 41 => 1,
        42 => 32_768,
        43 => 2048,
        44 => 0,
        45 | 46 => 32_768,
        47 | 48 => 8192,
        49 => 32_768,
        50 => PCI_DOMAIN,
        51 => 32,
        52 | 53 => 32_768,
        54 => 2046,
        55 => 32_768,
        56 => 131_072,
        57 => 65_536,
        58..=60 => 16_384,
        61 => 32_768,
        62 => 2048,
        63 | 64 => 32_768,
        65 => 2048,
        66 | 67 => 32_768,
        68 => 2046,
        69 => 268_435_456,
        70 => 131_072,
        71 => 65_000,
        72 => 2_097_120,
        73 | 74 => 32_768,
        75 => device.capability.0,
        76 => device.capability.1,
        77 => 32_768,
        78..=80 => 1,
        81 => sm.shared as i32,
        83 => 1,
        84 => 0,
        85 => device.ordinal,
        // The host's atomics and the kernels' are the same instructions.
        86 => 1,
        87 => 2,
        // Pageable memory is out of reach on purpose: a kernel may touch only what CUDA knows of.
        88 => 0,
        89 | 90 => 1,
        91 => 1,
        92..=94 => 0,
        95 => 1,
        96 => 0,
        97 => sm.shared_optin as i32,
        98 => 0,
        99 => 1,
        100 => 0,
        101 => 1,
        // Virtual memory management; shared with other processes as a file descriptor, and as nothing else.
        102 | 103 => 1,
        104 | 105 => 0,
        106 => sm.blocks as i32,
        107..=110 => 0,
        111 => RESERVED_SHARED as i32,
        112 => 0,
        113 => 1,
        114 => 0,
        115 => 1,
        // GPU Direct, clusters, deferred arrays.
        116..=118 | 120 | 121 => 0,
        // Pools are shared as file descriptors.
        119 => crate::driver::memory::ipc::DESCRIPTOR as i32,
        // Stream memory operations.
        122 | 123 => 1,
        // DMA buffers.
        124 => 0,
        // Events between processes.
        125 => 1,
        126 => 1,
        127 | 128 => 0,
        129 => 1,
        // NUMA: no node of its own (-1), and the first one of the host is as near as any.
        130 => 0,
        131 => -1,
        132 | 133 => 0,
        134 => 0,
        135..=138 => 0,
        140 | 143 => 0,
        // Mapped memory and pools on nodes of the host.
        141 | 142 => 1,
        // Pools of host memory.
        144 => 1,
        // Mapped memory of the host.
        145 => 1,
        146..=148 => 0,
        149 => 1,
        150..=156 => 0,
        157 => device.threads,
        139 | 158..=161 => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

fn clock_rate_khz() -> i32 {
    static RATE: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    *RATE.get_or_init(|| {
        std::fs::read_to_string("/proc/cpuinfo")
            .ok()
            .and_then(|t| {
                let line = t.lines().find(|l| l.starts_with("cpu MHz"))?;
                line.split(':').nth(1)?.trim().parse::<f64>().ok()
            })
            .map_or(2_000_000, |mhz| (mhz * 1000.0) as i32)
    })
}

fn l2_bytes() -> i32 {
    static SIZE: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    *SIZE.get_or_init(|| {
        // The last level of the host's caches is what comes closest.
        ["index3", "index2"]
            .iter()
            .find_map(|level| {
                let text = std::fs::read_to_string(format!(
                    "/sys/devices/system/cpu/cpu0/cache/{level}/size"
                ))
                .ok()?;
                text.trim()
                    .strip_suffix('K')?
                    .parse::<i32>()
                    .ok()?
                    .checked_mul(1024)
            })
            .unwrap_or(4 << 20)
    })
}
