//! What a test needs.

use std::ops::RangeInclusive;
use std::sync::{Once, OnceLock};

use cupyrite_sys::loader::Backend;

use super::device::TestDevice;
use super::harness::{print_uncaptured, test_name};
use super::reservations::Reservations;
use crate::context::{ComputeCapability, Device};
use crate::error::nvrtc;

/// The values that `CUPYRITE_CPU_DEVICES` and `CUPYRITE_CPU_COMPUTE_CAPABILITY` accept (docs/cpu-device.md).
const MOST_CPU_DEVICES: usize = 16;
const CPU_CAPABILITIES: RangeInclusive<ComputeCapability> = ComputeCapability { major: 5, minor: 0 }
    ..=ComputeCapability {
        major: 12,
        minor: 9,
    };

/// Begins the requirements of a test: `test::require().gpu().capability(9, 0).device()`.
pub fn require() -> Requirements {
    Requirements::default()
}

/// What a test needs. [`Requirements::device`] or [`Requirements::devices`] ends it.
///
/// ```
/// use cupyrite::test;
///
/// // #[test]
/// fn needs_a_gpu() {
///     let Some(device) = test::require().gpu().capability(9, 0).device() else { return };
///     // ...
/// # let _ = device;
/// }
/// # if cfg!(feature = "cpu-device") { needs_a_gpu() }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "`device()` or `devices()` ends the requirements"]
pub struct Requirements {
    backend: Option<Required>,
    capability: Option<ComputeCapability>,
    nvrtc: bool,
}

#[derive(Clone, Copy, Debug)]
enum Required {
    Gpu,
    Cpu,
    /// No device meets both.
    GpuAndCpu,
}

impl Requirements {
    /// An NVIDIA GPU, not the CPU device.
    pub fn gpu(mut self) -> Requirements {
        self.backend = Some(match self.backend {
            None | Some(Required::Gpu) => Required::Gpu,
            _ => Required::GpuAndCpu,
        });
        self
    }

    /// The CPU device, not a GPU.
    pub fn cpu_device(mut self) -> Requirements {
        self.backend = Some(match self.backend {
            None | Some(Required::Cpu) => Required::Cpu,
            _ => Required::GpuAndCpu,
        });
        self
    }

    /// A compute capability of at least `major.minor`.
    pub fn capability(mut self, major: u32, minor: u32) -> Requirements {
        let wanted = ComputeCapability { major, minor };
        self.capability = self.capability.max(Some(wanted));
        self
    }

    /// NVRTC, which compiles CUDA C++ at run time ([`Program`](crate::Program)).
    pub fn nvrtc(mut self) -> Requirements {
        self.nvrtc = true;
        self
    }

    /// A device for the calling test, as [`device`](super::device()) returns it; `None` if it does not meet the
    /// requirements, after printing the reason.
    ///
    /// # Panics
    ///
    /// As [`device`](super::device()).
    pub fn device(self) -> Option<TestDevice> {
        self.devices().map(|[device]| device)
    }

    /// `N` devices for the calling test; `None` if there are fewer that meet the requirements, after printing the
    /// reason. The first one is current on the calling thread.
    ///
    /// ```
    /// # use cupyrite::test;
    /// // #[test]
    /// fn needs_two_devices() {
    ///     let Some([first, second]) = test::require().devices() else { return };
    ///     assert_ne!(first.ordinal(), second.ordinal());
    /// }
    /// # if cfg!(feature = "cpu-device") { needs_two_devices() }
    /// ```
    ///
    /// # Panics
    ///
    /// As [`device`](super::device()).
    pub fn devices<const N: usize>(self) -> Option<[TestDevice; N]> {
        const { assert!(N > 0, "a test needs at least one device") };
        match self.check(N) {
            Ok(None) => match self.find() {
                Ok(found) => Some(found),
                Err(reason) => panic!("no CUDA device for the test: {reason}"),
            },
            Ok(Some(unmet)) => {
                print_uncaptured(&format!("skipped {}: {unmet}", test_name()));
                None
            }
            Err(reason) => panic!("no CUDA device for the test: {reason}"),
        }
    }

    /// The first requirement that this process does not meet, with the reason.
    ///
    /// # Errors
    ///
    /// There is no device at all.
    fn check(self, count: usize) -> Result<Option<String>, String> {
        let all = Device::all().map_err(|error| error.to_string())?;
        if all.is_empty() {
            return Err("the driver has no device".to_owned());
        }
        let is_cpu = is_cpu()?;
        let unmet = match self.backend {
            Some(Required::Gpu) if is_cpu => {
                "needs an NVIDIA GPU; this process uses the CPU device"
            }
            Some(Required::Cpu) if !is_cpu => "needs the CPU device; this process uses a GPU",
            Some(Required::GpuAndCpu) => {
                "needs both a GPU and the CPU device; a process uses one of them"
            }
            _ => "",
        };
        if !unmet.is_empty() {
            return Ok(Some(unmet.to_owned()));
        }
        if self.nvrtc
            && let Err(error) = nvrtc_version()
        {
            // The list of the searched folders, once.
            static SHOWN: Once = Once::new();
            let mut text = "needs NVRTC, which was not found".to_owned();
            SHOWN.call_once(|| text = format!("needs NVRTC: {error}"));
            return Ok(Some(text));
        }
        let able = self.candidates(&all)?.len();
        if let Some(needed) = self.capability
            && able == 0
        {
            let has = all[0]
                .compute_capability()
                .map_err(|error| error.to_string())?;
            let can_be_set = is_cpu && CPU_CAPABILITIES.contains(&needed);
            let hint = match can_be_set {
                true => format!(
                    "; CUPYRITE_CPU_COMPUTE_CAPABILITY={needed} sets that of the CPU device"
                ),
                false => String::new(),
            };
            let text = format!("needs compute capability {needed}; this device has {has}{hint}");
            return Ok(Some(text));
        }
        if able < count {
            let hint = match is_cpu && count <= MOST_CPU_DEVICES {
                true => format!("; CUPYRITE_CPU_DEVICES={count} makes more of the CPU device"),
                false => String::new(),
            };
            let from = match self.capability {
                Some(needed) => format!(" from compute capability {needed} on"),
                None => String::new(),
            };
            let text = format!("needs {count} CUDA devices{from}; this process has {able}{hint}");
            return Ok(Some(text));
        }
        Ok(None)
    }

    /// Waits for `N` devices. The requirements are met, apart from faults.
    pub(super) fn find<const N: usize>(self) -> Result<[TestDevice; N], String> {
        let all = Device::all().map_err(|error| error.to_string())?;
        let candidates = self.candidates(&all)?;
        let reservations = reservations(all.len());
        let reserved = reservations.reserve(N, &candidates)?;
        // Each reservation ends with its value, also if another device fails here.
        let begun: Vec<TestDevice> = reserved
            .iter()
            .map(|&ordinal| TestDevice::new(all[ordinal], reservations))
            .collect();
        for device in &begun {
            device.begin()?;
        }
        if let Some(first) = begun.first() {
            first.enter().map_err(|error| error.to_string())?;
        }
        let made: Result<[TestDevice; N], _> = begun.try_into();
        Ok(made.unwrap_or_else(|_| unreachable!("`reserve` returns as many as were asked for")))
    }

    /// The ordinals of the devices with the compute capability, in the order in which this process takes them.
    fn candidates(self, all: &[Device]) -> Result<Vec<usize>, String> {
        let mut able = Vec::new();
        for device in all {
            let has = device
                .compute_capability()
                .map_err(|error| error.to_string())?;
            if self.capability.is_none_or(|needed| has >= needed) {
                able.push(device.ordinal());
            }
        }
        let first = first(std::env::var("NEXTEST_TEST_GLOBAL_SLOT").ok(), able.len());
        able.rotate_left(first);
        Ok(able)
    }
}

/// The index of the first device of this process. cargo-nextest numbers the processes that run at the same time.
fn first(slot: Option<String>, count: usize) -> usize {
    let slot = slot.and_then(|text| text.parse::<usize>().ok());
    slot.unwrap_or(0).checked_rem(count).unwrap_or(0)
}

fn is_cpu() -> Result<bool, String> {
    let backend = crate::backend().map_err(|error| error.to_string())?;
    Ok(backend == Backend::Cpu)
}

fn nvrtc_version() -> crate::Result<()> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are valid for writes.
    unsafe { nvrtc!(nvrtcVersion(&mut major, &mut minor)) }
}

fn reservations(devices: usize) -> &'static Reservations {
    static RESERVATIONS: OnceLock<Reservations> = OnceLock::new();
    RESERVATIONS.get_or_init(|| Reservations::new(devices))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_nextest_begin_with_different_devices() {
        let of = |slot: &str, count| first(Some(slot.to_owned()), count);
        assert_eq!([of("0", 2), of("1", 2), of("2", 2)], [0, 1, 0]);
        assert_eq!(
            [of("none", 2), of("", 2), of("5", 0), first(None, 3)],
            [0; 4]
        );
    }
}
