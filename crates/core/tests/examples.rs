//! Runs the examples with small sizes; each checks its result against the host.
//!
//! They need NVRTC. Without it they print a message and pass.

use cupyrite::sys::driver::CUresult;
use cupyrite::{Error, Result};

#[path = "../examples/devices.rs"]
mod devices;
#[path = "../examples/graph.rs"]
mod graph;
#[path = "../examples/heat.rs"]
mod heat;
#[path = "../examples/histogram.rs"]
mod histogram;
#[path = "../examples/matmul.rs"]
mod matmul;
#[path = "../examples/reduction.rs"]
mod reduction;
#[path = "../examples/staging.rs"]
mod staging;
#[path = "../examples/templates.rs"]
mod templates;
#[path = "../examples/two_processes.rs"]
mod two_processes;

/// The example's result, or `None` where NVRTC is not installed.
fn needs_compiler<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Load(e)) => {
            eprintln!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn devices_are_described() {
    let text = devices::run().unwrap();
    for device in cupyrite::system::Device::all().unwrap() {
        assert!(text.contains(device.uuid()), "{text}");
    }
    assert!(text.contains(" MiB used"), "{text}");
}

#[test]
fn reduction_sums() {
    for n in [1, 1000, 100_003] {
        if let Some((device, host)) = needs_compiler(reduction::run(n)) {
            assert_eq!(device, host, "{n} elements");
        }
    }
}

#[test]
fn matmul_multiplies() {
    for (m, n, k) in [(1, 1, 1), (16, 16, 16), (70, 33, 50)] {
        if let Some(wrong) = needs_compiler(matmul::run(m, n, k)) {
            assert_eq!(wrong, 0, "{m} x {k} by {k} x {n}");
        }
    }
}

#[test]
fn graph_repeats() {
    if let Some(difference) = needs_compiler(graph::run(1000, 10)) {
        assert_eq!(difference, 0.0);
    }
}

#[test]
fn heat_spreads() {
    if let Some(difference) = needs_compiler(heat::run(65, 40, 20)) {
        assert!(difference <= 1e-2, "differs by {difference}");
    }
}

#[test]
fn histogram_counts() {
    for n in [1, 100_000] {
        if let Some((device, host)) = needs_compiler(histogram::run(&histogram::sample(n))) {
            assert_eq!(device, host);
        }
    }
}

#[test]
fn staging_overlaps() {
    if let Some(wrong) = needs_compiler(staging::run(1000)) {
        assert_eq!(wrong, 0);
    }
    assert!(staging::transpose(30, 20).is_ok_and(|right| right));
}

#[test]
fn templates_are_compiled_once() {
    if let Some((wrong, compiled)) = needs_compiler(templates::run(1000)) {
        assert_eq!((wrong, compiled), (0, 4));
    }
}

#[test]
fn two_processes_share_memory() {
    // The second process runs this same test.
    if let Ok(told) = std::env::var(two_processes::TOLD) {
        return two_processes::second(&told).unwrap();
    }
    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "two_processes_share_memory", "--nocapture"]);
    match two_processes::first(1000, other) {
        Err(Error::Driver {
            status: CUresult::CUDA_ERROR_NOT_SUPPORTED,
            ..
        }) => eprintln!("skipped: the device's pools cannot be shared"),
        result => {
            if let Some(wrong) = needs_compiler(result) {
                assert_eq!(wrong, 0);
            }
        }
    }
}
