//! Every entry point with invalid arguments returns a status and never crashes.

use super::*;

/// Entry points that do not return a status, or that destroy state of the other tests.
const EXCLUDED: &[&str] = &[
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaCreateChannelDesc",
    "cudaDeviceReset",
    "cudaThreadExit",
];

/// Entry points that return something else, or nothing.
const WITHOUT_STATUS: &[&str] = &[
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaUnregisterFatBinary",
    "__cudaRegisterFunction",
    "__cudaRegisterVar",
    "__cudaRegisterManagedVar",
    "__cudaInitModule",
];

#[test]
fn no_argument_crashes_an_entry_point() {
    pass_garbage(call);
}

#[test]
fn no_argument_crashes_an_entry_point_of_cuda_12() {
    pass_garbage(call_cuda12);
}

fn pass_garbage(call: impl Fn(&str, &[u64]) -> u32) {
    // Large enough for everything written through the only valid pointer.
    let mut room = vec![0u64; 1 << 17];
    let room = room.as_mut_ptr() as u64;
    let words = [0, 1, 0x1234, 1 << 47, u64::MAX, u64::MAX - 7];
    let mut names: Vec<_> = crate::implemented()
        .filter(|name| !EXCLUDED.contains(name))
        .collect();
    names.sort_unstable();
    ok!("cudaFree", 0);
    for name in names {
        for first in words.into_iter().chain([room]) {
            // Capturing the per-thread stream would prohibit work in the default stream to the other tests.
            if first == 0 && name.starts_with("cudaStreamBeginCapture") {
                continue;
            }
            for rest in words {
                let mut args = [rest; 12];
                args[0] = first;
                let status = call(name, &args);
                if WITHOUT_STATUS.contains(&name) {
                    continue;
                }
                let known = Error(status).name().is_some();
                assert!(
                    known,
                    "{name}({first:#x}, {rest:#x}, ...) returned {status}"
                );
                assert_ne!(
                    status,
                    Error::UNKNOWN.0,
                    "{name}({first:#x}, {rest:#x}, ...) panicked"
                );
            }
        }
    }
    // The thread may have any device flags now, but remains usable.
    ok!("cudaDeviceSynchronize");
}
