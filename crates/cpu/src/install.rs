//! Registration of the CPU device with the loader.

use crate::{driver, nvml, toolchain};

/// Registers this driver and its NVML with `cupyrite_sys`, which calls them when the CPU device is selected.
pub fn install() {
    cupyrite_sys::loader::register_cpu_driver(driver::get_proc);
    cupyrite_sys::loader::register_cpu_nvml(nvml::get_proc);
    cupyrite_sys::loader::register_interposer(toolchain::interpose);
}
