//! The clock of events and device utilisation.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the first call.
pub(crate) fn now() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
