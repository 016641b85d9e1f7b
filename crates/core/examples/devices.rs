//! What NVML says about each device: memory, load, clocks, temperature, processes.
//!
//! ```text
//! cargo run --example devices
//! CUPYRITE_DEVICE=cpu cargo run --example devices
//! ```

use cupyrite::sys::nvml::nvmlReturn_t;
use cupyrite::system::{self, AffinityScope, ClockId, ClockType};
use cupyrite::{Error, Result};

/// A figure, or `-` where the device does not have it.
fn figure<T: ToString>(value: Result<T>) -> Result<String> {
    match value {
        Ok(value) => Ok(value.to_string()),
        Err(Error::Nvml {
            status: nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED,
            ..
        }) => Ok("-".to_owned()),
        Err(error) => Err(error),
    }
}

/// A description of all devices, several lines each.
pub fn run() -> Result<String> {
    let mut text = format!("driver {}\n", system::driver_version()?);
    for device in system::Device::all()? {
        let (memory, mib) = (device.memory_info()?, 1 << 20);
        let lines = [
            format!("{} ({})", device.name()?, device.uuid()),
            format!(
                "  PCI          {}",
                figure(device.pci_info().map(|pci| pci.bus_id))?
            ),
            format!(
                "  memory       {} of {} MiB used",
                memory.used / mib,
                memory.total / mib
            ),
            format!(
                "  load         {} %",
                figure(device.utilization().map(|load| load.gpu))?
            ),
            format!(
                "  clock        {} MHz",
                figure(device.clock(ClockType::Sm).mhz(ClockId::Current))?
            ),
            format!("  temperature  {} °C", figure(device.temperature())?),
            format!(
                "  near CPUs    {}",
                figure(
                    device
                        .cpu_affinity(AffinityScope::Node)
                        .map(|cpus| cpus.len())
                )?
            ),
        ];
        text.push_str(&lines.join("\n"));
        text.push('\n');
        for process in device.compute_processes()? {
            let name = system::process_name(process.pid).unwrap_or_else(|_| "?".to_owned());
            let used = process
                .used_memory
                .map_or("?".to_owned(), |bytes| (bytes / mib).to_string());
            text.push_str(&format!("  process {} {name}: {used} MiB\n", process.pid));
        }
    }
    Ok(text)
}

#[allow(dead_code)] // A test includes this file.
fn main() -> Result<()> {
    print!("{}", run()?);
    Ok(())
}
