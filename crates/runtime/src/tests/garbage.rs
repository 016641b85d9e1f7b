//! Every entry point with arguments that mean nothing: a status, never a crash.

use super::*;

/// Returns something other than a status, or ends what the other tests work on.
const LEFT_OUT: &[&str] = &[
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaCreateChannelDesc",
    "cudaDeviceReset",
];

#[test]
fn no_argument_crashes_an_entry_point() {
    // Large enough for whatever is written through the one pointer that is valid.
    let mut room = vec![0u64; 1 << 17];
    let room = room.as_mut_ptr() as u64;
    let words = [0, 1, 0x1234, 1 << 47, u64::MAX, u64::MAX - 7];
    let mut names: Vec<_> = crate::implemented()
        .filter(|name| !LEFT_OUT.contains(name))
        .collect();
    names.sort_unstable();
    ok!("cudaFree", 0);
    for name in names {
        for first in words.into_iter().chain([room]) {
            // The thread's own stream can be captured. That would forbid work in the default stream to the other tests.
            if first == 0 && name.starts_with("cudaStreamBeginCapture") {
                continue;
            }
            for rest in words {
                let mut args = [rest; 12];
                args[0] = first;
                let status = call(name, &args);
                let known = Error(status).name().is_some();
                assert!(known, "{name}({first:#x}, {rest:#x}, ...) answers {status}");
                assert_ne!(
                    status,
                    Error::UNKNOWN.0,
                    "{name}({first:#x}, {rest:#x}, ...) panics"
                );
            }
        }
    }
    // The thread may have any device flags now, but it works.
    ok!("cudaDeviceSynchronize");
}
