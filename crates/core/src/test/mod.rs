//! Devices for tests of CUDA programs, so that `cargo test` works with any number of threads, on a GPU and on the CPU
//! device.
//!
//! ```
//! use cupyrite::{LaunchConfig, Library, test};
//! # const PTX: &str = "\
//! # .version 7.8
//! # .target sm_75
//! # .address_size 64
//! # .visible .entry store(.param .u64 p, .param .u32 v)
//! # {
//! #     .reg .b32 %r<2>;
//! #     .reg .b64 %rd<3>;
//! #     ld.param.u64 %rd1, [p];
//! #     ld.param.u32 %r1, [v];
//! #     cvta.to.global.u64 %rd2, %rd1;
//! #     st.global.u32 [%rd2], %r1;
//! #     ret;
//! # }
//! # ";
//!
//! // #[test]
//! fn kernel_stores() -> cupyrite::Result<()> {
//!     let device = test::device();
//!     let kernel = Library::load(PTX.as_bytes())?.kernel("store")?;
//!     let stream = device.create_stream()?;
//!     let out = device.buffer_zeroed::<u32>(1)?;
//!     // SAFETY: the kernel writes one element of `out`.
//!     unsafe { kernel.launch(&stream, &LaunchConfig::linear(1, 1), &(&out, 7u32))? };
//!     stream.synchronize()?;
//!     assert_eq!(out.to_vec()?, [7]);
//!     Ok(())
//! }
//!
//! // #[test]
//! fn devices_access_each_other() {
//!     let Some([first, second]) = test::require().devices() else { return };
//!     assert!(first.can_access_peer(*second).unwrap());
//! }
//! # if cfg!(feature = "cpu-device") {
//! #     kernel_stores().unwrap();
//! #     devices_access_each_other();
//! # }
//! ```
//!
//! `CUPYRITE_DEVICE` selects GPU or CPU device, as in every program.
//!
//! # One test per device
//!
//! The threads of a test binary share the primary context of a device. A kernel that accesses an invalid address makes
//! that context unusable for all of them, and the driver does not name the thread that launched it. So a device
//! belongs to one test at a time: [`device`] waits, first come, first served, until one is free. With several
//! devices, as many tests run at once; `CUPYRITE_CPU_DEVICES=4` makes four CPU devices. Tests that use
//! [`Device::new`](crate::Device::new) instead are not counted: do not mix both in one test binary.
//!
//! cargo-nextest runs each test in a process of its own, with contexts of its own. Tests that run at the same time then
//! begin with different devices (`NEXTEST_TEST_GLOBAL_SLOT`).
//!
//! # The end of a test
//!
//! When a [`TestDevice`] is dropped, it waits for the work of its primary context. An error that is found then fails the
//! test, and the context is reset: the next test has a working device. [`TestDevice::expect_fault`] is for kernels that
//! fail on purpose. Device memory that is still allocated is reported, on a GPU only if it came from a memory pool; see
//! [`TestDevice::deny_leaks`]. Open the device before everything that uses it: Rust drops local variables in reverse
//! order.
//!
//! # Tests that cannot run here
//!
//! The test harness of Rust has no skipped tests. [`Requirements::device`] and [`Requirements::devices`] return `None`
//! where a requirement is not met, and print the reason to standard error, past the harness, which captures what passing
//! tests print; cargo-nextest shows it with `--success-output immediate`. The test returns, and passes.

mod device;
mod harness;
mod requirements;
mod reservations;

pub use device::TestDevice;
pub use requirements::{Requirements, require};

/// A device for the calling test, which is its own until the value is dropped. Waits until one is free.
///
/// # Panics
///
/// If there is no device: no driver is installed and the CPU device is not linked, `CUPYRITE_DEVICE=gpu` without a GPU,
/// or a GPU that a fault has left unusable. If the calling thread has a [`TestDevice`] already:
/// [`Requirements::devices`] returns several at once.
pub fn device() -> TestDevice {
    match require().find::<1>() {
        Ok([device]) => device,
        Err(reason) => panic!("no CUDA device for the test: {reason}"),
    }
}
