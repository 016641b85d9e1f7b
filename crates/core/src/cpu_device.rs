//! The CPU device as a driver: its registration with the loader.

/// Registers the CPU device with the loader, if it is linked and no other one is registered. Cheap after the first call.
#[inline]
pub(crate) fn register() {
    #[cfg(feature = "cpu-device")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(cupyrite_cpu::install);
    }
}
