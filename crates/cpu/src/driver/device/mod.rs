//! Devices: enumeration, names, properties.
//!
//! `CUPYRITE_CPU_DEVICES` (1 to 16, default 1) sets the number of devices; they share the processor and its memory.
//! A device runs on the hardware of the same index until a checkpoint is restored onto other hardware: contexts keep their
//! ordinals, and UUIDs and PCI addresses belong to the hardware.
//! `CUPYRITE_CPU_COMPUTE_CAPABILITY` (`major.minor`, default 8.9) sets the compute capability they present.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use cupyrite_engine::memory::AddressSpace;
use cupyrite_engine::settings::InvalidSetting;
use cupyrite_sys::driver as sys;

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_name, non_null, put, put_bytes, put_text};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::because;
use crate::settings;

pub(crate) mod attributes;
pub(crate) mod notifications;
pub(crate) mod peers;

/// A device.
pub(crate) struct Device {
    pub(crate) ordinal: i32,
    pub(crate) name: String,
    /// Presented compute capability.
    pub(crate) capability: (i32, i32),
    /// Number of multiprocessors: the threads that run blocks.
    pub(crate) threads: i32,
}

fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |key: &str| {
        info.lines()
            .find_map(|l| {
                l.strip_prefix(key)?
                    .trim_start()
                    .strip_prefix(':')
                    .map(|v| v.trim().to_owned())
            })
            .filter(|v| !v.is_empty())
    };
    field("model name")
        .or_else(|| field("Model"))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn create() -> Result<Vec<Device>, InvalidSetting> {
    settings::check_names()?;
    let (count, capability) = (settings::devices()?, settings::compute_capability()?);
    // Checked here, so that an invalid value is an error and not a device with other properties.
    let threads = cupyrite_engine::settings::threads()?;
    cupyrite_engine::settings::memory()?;
    cupyrite_engine::settings::tier()?;
    cupyrite_engine::settings::instructions()?;
    cupyrite_engine::dump::requested()?;
    let model = cpu_model();
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = threads.unwrap_or_else(cores).min(1024) as i32;
    let device = |ordinal| Device {
        ordinal,
        name: format!("CPU: {model}"),
        capability,
        threads,
    };
    Ok((0..count).map(device).collect())
}

/// The devices, created on the first call; the invalid setting if there are none.
pub(crate) fn created() -> Result<&'static [Device], &'static InvalidSetting> {
    static DEVICES: OnceLock<Result<Vec<Device>, InvalidSetting>> = OnceLock::new();
    let devices =
        DEVICES.get_or_init(|| create().inspect_err(|invalid| eprintln!("cupyrite: {invalid}")));
    devices.as_deref()
}

/// All devices.
///
/// # Errors
/// `INVALID_VALUE` if one of the CPU device's environment variables is invalid.
pub(crate) fn all() -> Res<&'static [Device]> {
    created().map_err(|invalid| because(Code::INVALID_VALUE, || invalid.to_string()))
}

/// The device of that ordinal. A `CUdevice` is the ordinal.
pub(crate) fn by_ordinal(ordinal: i32) -> Res<&'static Device> {
    usize::try_from(ordinal)
        .ok()
        .and_then(|i| all().ok()?.get(i))
        .ok_or(Code::INVALID_DEVICE)
}

/// The hardware of each device, as the difference to its ordinal modulo 256.
static MOVED: [AtomicU8; settings::MAX_DEVICES as usize] =
    [const { AtomicU8::new(0) }; settings::MAX_DEVICES as usize];

/// A version 8 UUID that starts with the project's name and ends with the index of the hardware.
fn uuid_of(hardware: u8) -> [u8; 16] {
    let mut uuid = *b"cupyrite\x80\x00\x00\x00\x00\x00\x00\x00";
    uuid[6] = (uuid[6] & 0x0F) | 0x80;
    uuid[15] = hardware;
    uuid
}

impl Device {
    /// The index of the hardware that the device runs on.
    pub(crate) fn hardware(&self) -> u8 {
        let moved = MOVED[self.ordinal as usize].load(Ordering::Relaxed);
        (self.ordinal as u8).wrapping_add(moved)
    }

    fn uuid(&self) -> [u8; 16] {
        uuid_of(self.hardware())
    }

    /// The bus of the device; the others of its PCI address are the same for all devices.
    pub(crate) fn pci_bus(&self) -> i32 {
        i32::from(self.hardware()) + 1
    }

    /// `domain:bus:device.function`, in a domain that no real machine uses.
    fn pci_bus_id(&self) -> String {
        format!("{:04X}:{:02X}:00.0", attributes::PCI_DOMAIN, self.pci_bus())
    }
}

/// The device that runs on the hardware of that index.
pub(crate) fn on_hardware(hardware: u8) -> Option<&'static Device> {
    all().ok()?.iter().find(|d| d.hardware() == hardware)
}

/// The moves of devices (ordinals) to hardware that (old, new) pairs of UUIDs describe. The pairs must contain every device
/// once as old and once as new (`cuCheckpointProcessRestore`: "it must contain every checkpointed GPU"). Without pairs there
/// are no moves.
///
/// # Errors
/// `INVALID_VALUE`.
pub(crate) fn check_moves(pairs: &[[u8; 32]]) -> Res<Vec<(usize, u8)>> {
    let devices = all()?;
    let refuse = |why: String| Err(because(Code::INVALID_VALUE, || why));
    let text = |uuid: &[u8]| uuid.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut moves: Vec<(usize, u8)> = Vec::new();
    for pair in pairs {
        let (old, new) = pair.split_at(16);
        let position = |uuid: &[u8]| devices.iter().position(|d| d.uuid()[..] == *uuid);
        let (Some(from), Some(to)) = (position(old), position(new)) else {
            let unknown = if position(old).is_none() { old } else { new };
            return refuse(format!("no device has the UUID {}", text(unknown)));
        };
        if moves.iter().any(|&(known, _)| known == from) {
            return refuse(format!("{} is in two pairs as the old device", text(old)));
        }
        let to = devices[to].hardware();
        if moves.iter().any(|&(_, known)| known == to) {
            return refuse(format!("{} is in two pairs as the new device", text(new)));
        }
        moves.push((from, to));
    }
    if !pairs.is_empty()
        && let Some(missing) = (0..devices.len()).find(|i| moves.iter().all(|(from, _)| from != i))
    {
        return refuse(format!(
            "no pair has the device {} as the old one; the pairs must contain every device of the process",
            text(&devices[missing].uuid())
        ));
    }
    Ok(moves)
}

/// Performs what [`check_moves`] returned.
pub(crate) fn perform_moves(moves: &[(usize, u8)]) {
    for &(ordinal, hardware) in moves {
        MOVED[ordinal].store(hardware.wrapping_sub(ordinal as u8), Ordering::Relaxed);
    }
}

/// Properties of a device that NVML reports.
pub(crate) struct DeviceFacts {
    /// The index of the hardware, which NVML enumerates.
    pub(crate) index: u8,
    /// The driver's device that runs on it.
    pub(crate) ordinal: i32,
    pub(crate) name: String,
    pub(crate) capability: (i32, i32),
    pub(crate) multiprocessors: u32,
    pub(crate) uuid: [u8; 16],
    pub(crate) pci_domain: u32,
    pub(crate) pci_bus: u32,
}

/// [`DeviceFacts`] of all devices, in hardware order; `None` if [`all`] fails.
pub(crate) fn facts() -> Option<Vec<DeviceFacts>> {
    let facts = |d: &Device| DeviceFacts {
        index: d.hardware(),
        ordinal: d.ordinal,
        name: d.name.clone(),
        capability: d.capability,
        multiprocessors: d.threads as u32,
        uuid: d.uuid(),
        pci_domain: attributes::PCI_DOMAIN as u32,
        pci_bus: d.pci_bus() as u32,
    };
    let mut found: Vec<DeviceFacts> = all().ok()?.iter().map(facts).collect();
    found.sort_by_key(|facts| facts.index);
    Some(found)
}

fn uuid(out: u64, device: i32) -> Res {
    non_null(out)?;
    put_bytes(out, &by_ordinal(device)?.uuid())
}

driver_entry_points! {
    fn device_get "cuDeviceGet" (out: u64, ordinal: i32) {
        non_null(out)?;
        put(out, by_ordinal(ordinal)?.ordinal)
    }
    fn device_get_count "cuDeviceGetCount" (out: u64) {
        put(out, all()?.len() as i32)
    }
    fn device_get_name "cuDeviceGetName" (out: u64, len: i32, device: i32) {
        let device = by_ordinal(device)?;
        put_text(out, u64::try_from(len).map_err(|_| Code::INVALID_VALUE)?, device.name.as_bytes())
    }
    fn device_get_uuid "cuDeviceGetUuid" (out: u64, device: i32) {
        uuid(out, device)
    }
    fn device_get_uuid_v2 "cuDeviceGetUuid_v2" (out: u64, device: i32) {
        uuid(out, device)
    }
    fn device_get_luid "cuDeviceGetLuid" (luid: u64, mask: u64, device: i32) {
        // LUIDs exist on Windows only.
        non_null(luid)?;
        non_null(mask)?;
        by_ordinal(device)?;
        Err(Code::NOT_SUPPORTED)
    }
    fn device_total_mem "cuDeviceTotalMem_v2" (out: u64, device: i32) {
        non_null(out)?;
        by_ordinal(device)?;
        put(out, AddressSpace::global().capacity())
    }
    fn device_get_attribute "cuDeviceGetAttribute" (out: u64, attribute: u32, device: i32) {
        non_null(out)?;
        put(out, attributes::get(by_ordinal(device)?, sys::CUdevice_attribute(attribute))?)
    }
    fn device_compute_capability "cuDeviceComputeCapability" (major: u64, minor: u64, device: i32) {
        non_null(major)?;
        non_null(minor)?;
        let capability = by_ordinal(device)?.capability;
        put(major, capability.0)?;
        put(minor, capability.1)
    }
    fn device_get_properties "cuDeviceGetProperties" (out: u64, device: i32) {
        non_null(out)?;
        let device = by_ordinal(device)?;
        // The fields of `CUdevprop`, in declaration order.
        const FIELDS: [sys::CUdevice_attribute; 14] = [
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
        ];
        let mut fields = [0i32; FIELDS.len()];
        for (field, attribute) in fields.iter_mut().zip(FIELDS) {
            *field = attributes::get(device, attribute)?;
        }
        put(out, fields)
    }
    fn device_get_pci_bus_id "cuDeviceGetPCIBusId" (out: u64, len: i32, device: i32) {
        let id = by_ordinal(device)?.pci_bus_id();
        if i64::from(len) <= id.len() as i64 {
            return Err(Code::INVALID_VALUE);
        }
        put_text(out, len as u64, id.as_bytes())
    }
    fn device_get_by_pci_bus_id "cuDeviceGetByPCIBusId" (out: u64, id: u64) {
        non_null(out)?;
        let wanted = get_name(id)?;
        // `domain:bus:device`, with or without the function; the domain may be omitted if it is zero.
        let hexadecimal = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
        if !wanted.contains(':') || !wanted.split([':', '.']).all(hexadecimal) {
            return Err(Code::INVALID_VALUE);
        }
        let wanted = wanted.split('.').next().unwrap_or_default().to_ascii_uppercase();
        let device = all()?
            .iter()
            .find(|d| d.pci_bus_id().split('.').next() == Some(wanted.as_str()))
            .ok_or(Code::INVALID_DEVICE)?;
        put(out, device.ordinal)
    }
    fn device_can_access_peer "cuDeviceCanAccessPeer" (out: u64, device: i32, peer: i32) {
        non_null(out)?;
        let (a, b) = (by_ordinal(device)?, by_ordinal(peer)?);
        put(out, i32::from(a.ordinal != b.ordinal))
    }
    fn device_get_p2p_attribute "cuDeviceGetP2PAttribute" (out: u64, attribute: u32, from: i32, to: i32) {
        non_null(out)?;
        let (from, to) = (by_ordinal(from)?, by_ordinal(to)?);
        if from.ordinal == to.ordinal {
            return Err(Code::INVALID_DEVICE);
        }
        use sys::CUdevice_P2PAttribute as Attribute;
        let value = match Attribute(attribute) {
            Attribute::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK | Attribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED => 0,
            Attribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED | Attribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED => 1,
            Attribute::CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED => 0,
            _ => return Err(Code::INVALID_VALUE),
        };
        put(out, value)
    }
    fn device_exec_affinity_support "cuDeviceGetExecAffinitySupport" (out: u64, kind: u32, device: i32) {
        non_null(out)?;
        by_ordinal(device)?;
        if kind > 0 { Err(Code::INVALID_VALUE) } else { put(out, 0i32) }
    }
    fn device_texture_1d_linear "cuDeviceGetTexture1DLinearMaxWidth"
        (out: u64, _format: u32, channels: u32, device: i32) {
        non_null(out)?;
        by_ordinal(device)?;
        if !matches!(channels, 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        put(out, 1u64 << 28)
    }
}
