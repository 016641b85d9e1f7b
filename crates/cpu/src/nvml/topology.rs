//! Topology and affinity. All devices are the same processors: every CPU and NUMA node is close to each of them, and they
//! are as close to each other as chips on one board.

use cupyrite_sys::nvml::{
    nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t, nvmlGpuTopologyLevel_t, nvmlReturn_t,
};

use super::device::{all, by_handle, handle_of};
use super::{Res, get, nvml_entry_points, put};

const INVALID: nvmlReturn_t = nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT;

/// `NVML_AFFINITY_SCOPE_NODE`, `NVML_AFFINITY_SCOPE_SOCKET`.
const SCOPES: u32 = 2;

/// The numbers of a list of Linux: `0-3,8`.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// The numbers in a file of `/sys/devices/system`.
fn system_list(file: &str) -> Option<Vec<usize>> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/{file}")).ok()?;
    parse_list(&text).filter(|numbers| !numbers.is_empty())
}

fn cpus() -> Vec<usize> {
    system_list("cpu/online").unwrap_or_else(|| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        (0..count).collect()
    })
}

fn memory_nodes() -> Vec<usize> {
    system_list("node/has_memory").unwrap_or_else(|| vec![0])
}

/// Writes a set of numbers as `words` masks of 64 bits.
fn put_set(out: u64, words: u32, numbers: &[usize]) -> Res {
    if out == 0 || words == 0 {
        return Err(INVALID);
    }
    for word in 0..words as usize {
        let mask = numbers
            .iter()
            .filter(|&&number| number / 64 == word)
            .fold(0u64, |mask, number| mask | 1 << (number % 64));
        put(out + 8 * word as u64, mask)?;
    }
    Ok(())
}

/// Binds the calling thread to all CPUs.
fn bind_to_all(device: u64) -> Res {
    by_handle(device)?;
    bind(&cpus())
}

#[cfg(target_os = "linux")]
fn bind(cpus: &[usize]) -> Res {
    // SAFETY: all zeros is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the set is an initialised value of that size; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(nvmlReturn_t::NVML_ERROR_OPERATING_SYSTEM),
    }
}

#[cfg(not(target_os = "linux"))]
fn bind(_cpus: &[usize]) -> Res {
    Err(nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED)
}

/// Writes handles: their number to `count`, and as many as `count` had room for to `out`.
fn put_handles(count: u64, out: u64, handles: &[u64]) -> Res {
    let room = get(count)? as usize;
    put(count, handles.len() as u32)?;
    if out != 0 {
        for (at, handle) in handles.iter().take(room).enumerate() {
            put(out + 8 * at as u64, *handle)?;
        }
    }
    Ok(())
}

/// As on H200s (driver 580), a device is its own peer where there are others, and the index "unknown" queries nothing.
fn p2p_status(index: u32, alone: bool) -> nvmlGpuP2PStatus_t {
    use nvmlGpuP2PCapsIndex_t as Index;
    match Index(index) {
        Index::NVML_P2P_CAPS_INDEX_READ
        | Index::NVML_P2P_CAPS_INDEX_WRITE
        | Index::NVML_P2P_CAPS_INDEX_ATOMICS
            if !alone =>
        {
            nvmlGpuP2PStatus_t::NVML_P2P_STATUS_OK
        }
        // There is neither a link nor a bus between devices.
        Index::NVML_P2P_CAPS_INDEX_READ
        | Index::NVML_P2P_CAPS_INDEX_WRITE
        | Index::NVML_P2P_CAPS_INDEX_ATOMICS
        | Index::NVML_P2P_CAPS_INDEX_NVLINK
        | Index::NVML_P2P_CAPS_INDEX_PCI => nvmlGpuP2PStatus_t::NVML_P2P_STATUS_NOT_SUPPORTED,
        // Also for `NVML_P2P_CAPS_INDEX_UNKNOWN` and larger values, as an H200's driver (580).
        _ => nvmlGpuP2PStatus_t::NVML_P2P_STATUS_OK,
    }
}

nvml_entry_points! {
    fn cpu_affinity "nvmlDeviceGetCpuAffinity" (device: u64, words: u32, out: u64) {
        by_handle(device)?;
        put_set(out, words, &cpus())
    }
    fn cpu_affinity_in_scope "nvmlDeviceGetCpuAffinityWithinScope" (device: u64, words: u32, out: u64, scope: u32) {
        by_handle(device)?;
        if scope >= SCOPES {
            return Err(INVALID);
        }
        put_set(out, words, &cpus())
    }
    fn memory_affinity "nvmlDeviceGetMemoryAffinity" (device: u64, words: u32, out: u64, scope: u32) {
        by_handle(device)?;
        if scope >= SCOPES {
            return Err(INVALID);
        }
        put_set(out, words, &memory_nodes())
    }
    fn set_cpu_affinity "nvmlDeviceSetCpuAffinity" (device: u64) { bind_to_all(device) }
    fn clear_cpu_affinity "nvmlDeviceClearCpuAffinity" (device: u64) { bind_to_all(device) }
    fn gpus_of_a_cpu "nvmlSystemGetTopologyGpuSet" (cpu: u32, count: u64, out: u64) {
        if !cpus().contains(&(cpu as usize)) {
            return Err(INVALID);
        }
        let handles: Vec<u64> = all()?.iter().map(handle_of).collect();
        put_handles(count, out, &handles)
    }
    fn nearest_gpus "nvmlDeviceGetTopologyNearestGpus" (device: u64, level: u32, count: u64, out: u64) {
        let device = by_handle(device)?;
        // All others are on the same board, the nearest level; each level includes those below it.
        if level > nvmlGpuTopologyLevel_t::NVML_TOPOLOGY_SYSTEM.0 || !level.is_multiple_of(10) {
            return Err(INVALID);
        }
        let others = all()?;
        let handles: Vec<u64> = others
            .iter()
            .filter(|other| other.index != device.index)
            .map(handle_of)
            .collect();
        put_handles(count, out, &handles)
    }
    fn common_ancestor "nvmlDeviceGetTopologyCommonAncestor" (device1: u64, device2: u64, out: u64) {
        if by_handle(device1)?.index == by_handle(device2)?.index && all()?.len() > 1 {
            return Err(nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED);
        }
        put(out, nvmlGpuTopologyLevel_t::NVML_TOPOLOGY_INTERNAL)
    }
    fn status_between "nvmlDeviceGetP2PStatus" (device1: u64, device2: u64, index: u32, out: u64) {
        by_handle(device1)?;
        by_handle(device2)?;
        put(out, p2p_status(index, all()?.len() == 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_linux_are_parsed() {
        assert_eq!(parse_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list("5"), Some(vec![5]));
        assert_eq!(parse_list("\n"), Some(vec![]));
        assert_eq!(parse_list("x"), None);
        assert_eq!(parse_list("0-99999999"), None);
    }

    #[test]
    fn sets_are_masks_of_64_bits() {
        let mut words = [7u64; 3];
        let at = words.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(put_set(at, 2, &[0, 63, 64, 200]), Ok(()));
        assert_eq!(words, [1 | 1 << 63, 1, 7]);
        assert_eq!(put_set(at, 0, &[0]), Err(INVALID));
        assert_eq!(put_set(0, 1, &[0]), Err(INVALID));
    }
}
