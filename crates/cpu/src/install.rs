//! Registration of the CPU device with the loader, and its connection to a program that loaded it as a library.

use cupyrite_sys::loader::cpu_library::{self, Interrupt, Program};
use cupyrite_sys::loader::{CpuDevice, CpuDeviceSource, register_cpu_device};

use crate::{driver, nvml, toolchain};

/// The functions of this CPU device.
pub const DEVICE: CpuDevice = CpuDevice {
    driver: driver::get_proc,
    nvml: nvml::get_proc,
    interpose: toolchain::interpose,
};

/// Registers this device as the CPU device of the program that it is linked into.
pub fn install() {
    register_cpu_device(CpuDeviceSource::Linked(DEVICE));
}

/// Connects a program that loaded this device as a library. The first one stays connected.
pub fn connect(program: &'static Program) {
    cpu_library::set_program(program);
    driver::set_interrupt_hook(|| match cpu_library::program() {
        Some(program) => Interrupt::from_number((program.interrupt)()),
        None => Interrupt::Continue,
    });
    driver::set_host_function_gate(|| {
        cpu_library::program().is_none_or(|program| (program.may_call_back)())
    });
}
