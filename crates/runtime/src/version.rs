//! Versions of the runtime and the driver.

use crate::checked::{non_null, put};
use crate::entry::{cu, runtime_entry_points};

/// The version of the runtime API this crate implements, as 1000 × major + 10 × minor.
pub(crate) const VERSION: i32 = 13050;

runtime_entry_points! {
    fn runtime_get_version "cudaRuntimeGetVersion" (out: u64) {
        non_null(out)?;
        put(out, VERSION)
    }
    fn driver_get_version "cudaDriverGetVersion" (out: u64) {
        non_null(out)?;
        let mut version = 0;
        // Without a driver the version is 0; that is not an error.
        if cu!(cuDriverGetVersion(&mut version)).is_err() {
            version = 0;
        }
        put(out, version)
    }
}
