//! What happens before the first call of any CUDA library.

/// Prepares the loader: observes the calls that destroy handles, and registers the CPU device if it is linked and no other one is
/// registered. Cheap after the first call.
#[inline]
pub(crate) fn prepare_loader() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        crate::destroyed::install();
        #[cfg(feature = "cpu-device")]
        cupyrite_cpu::install();
    });
}
