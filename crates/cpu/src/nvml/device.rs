//! Device handles and identification.

use cupyrite_engine::memory::checked;
use cupyrite_sys::nvml::{nvmlPciInfo_st, nvmlPciInfoExt_v1_t, nvmlReturn_t, nvmlUUID_v1_t};

use super::{Res, bad, get, get_text, nvml_entry_points, put, put_text};
use crate::driver::{self, DeviceFacts};

/// The high bits of every handle; no mapped address has them.
const TAG: u64 = 0x00C0_4E56_0000_0000;

const INVALID: nvmlReturn_t = nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT;

/// All devices. There is at least one, because `nvmlInit` fails otherwise.
pub(super) fn all() -> Res<Vec<DeviceFacts>> {
    driver::device_facts().ok_or(nvmlReturn_t::NVML_ERROR_DRIVER_NOT_LOADED)
}

/// The device of that handle.
pub(super) fn by_handle(handle: u64) -> Res<DeviceFacts> {
    let index = handle.checked_sub(TAG + 1).ok_or(INVALID)?;
    let index = usize::try_from(index).map_err(|_| INVALID)?;
    all()?.into_iter().nth(index).ok_or(INVALID)
}

pub(super) fn handle_of(device: &DeviceFacts) -> u64 {
    TAG + 1 + u64::from(device.index)
}

/// Writes the handle of the first device that matches `wanted`.
fn put_handle(out: u64, wanted: impl Fn(&DeviceFacts) -> bool) -> Res {
    if out == 0 {
        return Err(INVALID);
    }
    let device = all()?.into_iter().find(wanted);
    put(
        out,
        handle_of(&device.ok_or(nvmlReturn_t::NVML_ERROR_NOT_FOUND)?),
    )
}

fn by_index(index: u32, out: u64) -> Res {
    match put_handle(out, |d| u32::from(d.index) == index) {
        Err(nvmlReturn_t::NVML_ERROR_NOT_FOUND) => Err(INVALID),
        other => other,
    }
}

/// `GPU-` and the digit groups of a UUID.
fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::from("GPU-");
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// `(domain, bus, device)` of `domain:bus:device.function`; domain and function are optional.
fn parse_pci(text: &str) -> Option<(u32, u32, u32)> {
    let text = match text.split_once('.') {
        None => text,
        // A GPU has one function known to NVML.
        Some((text, "0")) => text,
        Some(_) => return None,
    };
    let hex = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
        digits.then(|| u32::from_str_radix(part, 16).ok()).flatten()
    };
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [bus, device] => Some((0, hex(bus)?, hex(device)?)),
        [domain, bus, device] => Some((hex(domain)?, hex(bus)?, hex(device)?)),
        _ => None,
    }
}

fn by_pci(text: u64, out: u64) -> Res {
    let wanted = parse_pci(&get_text(text)?).ok_or(INVALID)?;
    put_handle(out, |d| (d.pci_domain, d.pci_bus, 0) == wanted)
}

fn by_uuid(text: u64, out: u64) -> Res {
    let wanted = get_text(text)?;
    put_handle(out, |d| has_uuid(d, wanted.as_bytes()))
}

/// Whether a text is the device's UUID. The prefix `GPU-` may be missing, as on an H200 (driver 580).
fn has_uuid(device: &DeviceFacts, text: &[u8]) -> bool {
    let uuid = uuid_text(&device.uuid);
    let uuid = uuid.as_bytes();
    text == uuid || uuid.strip_prefix(b"GPU-") == Some(text)
}

/// `NVML_UUID_TYPE_ASCII`, `NVML_UUID_TYPE_BINARY`.
const UUID_ASCII: u32 = 1;
const UUID_BINARY: u32 = 2;

fn by_uuid_struct(address: u64, out: u64) -> Res {
    let mut bytes = [0u8; size_of::<nvmlUUID_v1_t>()];
    checked::read_bytes(address, &mut bytes).map_err(bad)?;
    let word =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if word(0) != bytes.len() as u32 | 1 << 24 {
        return Err(nvmlReturn_t::NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    let value = &bytes[8..];
    match word(4) {
        UUID_BINARY => put_handle(out, |d| d.uuid[..] == value[..16]),
        UUID_ASCII => {
            let length = value.iter().position(|&b| b == 0).unwrap_or(value.len());
            put_handle(out, |d| has_uuid(d, &value[..length]))
        }
        _ => Err(INVALID),
    }
}

/// The characters of a text, padded with NULs.
fn padded<const N: usize>(text: &str) -> [std::ffi::c_char; N] {
    let mut out = [0; N];
    // Leaves room for the terminating NUL.
    for (to, from) in out[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from as std::ffi::c_char;
    }
    out
}

/// The architecture of a compute capability: `NVML_DEVICE_ARCH_*`.
fn architecture((major, minor): (i32, i32)) -> u32 {
    use cupyrite_sys::nvml;
    match (major, minor) {
        (3, _) => nvml::NVML_DEVICE_ARCH_KEPLER,
        (5, _) => nvml::NVML_DEVICE_ARCH_MAXWELL,
        (6, _) => nvml::NVML_DEVICE_ARCH_PASCAL,
        (7, 5..) => nvml::NVML_DEVICE_ARCH_TURING,
        (7, _) => nvml::NVML_DEVICE_ARCH_VOLTA,
        (8, 9) => nvml::NVML_DEVICE_ARCH_ADA,
        (8, _) => nvml::NVML_DEVICE_ARCH_AMPERE,
        (9, _) => nvml::NVML_DEVICE_ARCH_HOPPER,
        (10..=12, _) => nvml::NVML_DEVICE_ARCH_BLACKWELL,
        _ => nvml::NVML_DEVICE_ARCH_UNKNOWN,
    }
}

nvml_entry_points! {
    fn count "nvmlDeviceGetCount" (out: u64) { put(out, all()?.len() as u32) }
    fn count_v2 "nvmlDeviceGetCount_v2" (out: u64) { put(out, all()?.len() as u32) }
    fn handle_by_index "nvmlDeviceGetHandleByIndex" (index: u32, out: u64) { by_index(index, out) }
    fn handle_by_index_v2 "nvmlDeviceGetHandleByIndex_v2" (index: u32, out: u64) { by_index(index, out) }
    fn handle_by_uuid "nvmlDeviceGetHandleByUUID" (text: u64, out: u64) { by_uuid(text, out) }
    fn handle_by_uuidv "nvmlDeviceGetHandleByUUIDV" (uuid: u64, out: u64) { by_uuid_struct(uuid, out) }
    fn handle_by_pci "nvmlDeviceGetHandleByPciBusId" (text: u64, out: u64) { by_pci(text, out) }
    fn handle_by_pci_v2 "nvmlDeviceGetHandleByPciBusId_v2" (text: u64, out: u64) { by_pci(text, out) }
    fn index "nvmlDeviceGetIndex" (device: u64, out: u64) { put(out, u32::from(by_handle(device)?.index)) }
    fn minor_number "nvmlDeviceGetMinorNumber" (device: u64, out: u64) {
        put(out, u32::from(by_handle(device)?.index))
    }
    fn name "nvmlDeviceGetName" (device: u64, out: u64, length: u32) {
        put_text(out, length, &by_handle(device)?.name)
    }
    fn uuid "nvmlDeviceGetUUID" (device: u64, out: u64, length: u32) {
        put_text(out, length, &uuid_text(&by_handle(device)?.uuid))
    }
    fn brand "nvmlDeviceGetBrand" (device: u64, out: u64) {
        by_handle(device)?;
        put(out, cupyrite_sys::nvml::nvmlBrandType_t::NVML_BRAND_UNKNOWN)
    }
    fn arch "nvmlDeviceGetArchitecture" (device: u64, out: u64) {
        put(out, architecture(by_handle(device)?.capability))
    }
    fn capability "nvmlDeviceGetCudaComputeCapability" (device: u64, major: u64, minor: u64) {
        let capability = by_handle(device)?.capability;
        put(major, capability.0)?;
        put(minor, capability.1)
    }
    fn pci_info_v3 "nvmlDeviceGetPciInfo_v3" (device: u64, out: u64) {
        let device = by_handle(device)?;
        let (domain, bus) = (device.pci_domain, device.pci_bus);
        put(out, nvmlPciInfo_st {
            busIdLegacy: padded(&format!("{domain:04X}:{bus:02X}:00.0")),
            domain,
            bus,
            device: 0,
            // There is no card, so vendor and device ids are zero.
            pciDeviceId: 0,
            pciSubSystemId: 0,
            busId: padded(&format!("{domain:08X}:{bus:02X}:00.0")),
        })
    }
    fn pci_info_ext "nvmlDeviceGetPciInfoExt" (device: u64, out: u64) {
        let device = by_handle(device)?;
        let version = size_of::<nvmlPciInfoExt_v1_t>() as u32 | 1 << 24;
        if get(out)? != version {
            return Err(nvmlReturn_t::NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        }
        let (domain, bus) = (device.pci_domain, device.pci_bus);
        put(out, nvmlPciInfoExt_v1_t {
            version,
            domain,
            bus,
            device: 0,
            pciDeviceId: 0,
            pciSubSystemId: 0,
            baseClass: 0,
            subClass: 0,
            busId: padded(&format!("{domain:08X}:{bus:02X}:00.0")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_addresses_parse_as_printed_by_lspci() {
        assert_eq!(parse_pci("0000C0DE:01:00.0"), Some((0xC0DE, 1, 0)));
        assert_eq!(parse_pci("c0de:0a:00"), Some((0xC0DE, 10, 0)));
        assert_eq!(parse_pci("01:00.0"), Some((0, 1, 0)));
        for wrong in [
            "",
            "01",
            "01:00.1",
            "x:01:00.0",
            "1:2:3:4",
            ":01:00.0",
            "+1:01:00.0",
            "100000000:01:00.0",
        ] {
            assert_eq!(parse_pci(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn architectures() {
        use cupyrite_sys::nvml;
        assert_eq!(architecture((8, 9)), nvml::NVML_DEVICE_ARCH_ADA);
        assert_eq!(architecture((8, 6)), nvml::NVML_DEVICE_ARCH_AMPERE);
        assert_eq!(architecture((7, 5)), nvml::NVML_DEVICE_ARCH_TURING);
        assert_eq!(architecture((12, 1)), nvml::NVML_DEVICE_ARCH_BLACKWELL);
        assert_eq!(architecture((42, 0)), nvml::NVML_DEVICE_ARCH_UNKNOWN);
    }
}
