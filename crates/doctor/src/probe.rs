//! The probe: loads and runs what is needed to tell whether kernels can be compiled and run.
//!
//! It reports each step before starting it and the findings after it, so that the reader knows where it stopped even
//! if it never returns.

use std::time::Instant;

use cupyrite::{Device, Error, Kernel, LaunchConfig, ObjectCode, Program};
use cupyrite_sys::driver::CUresult;
use cupyrite_sys::loader::{self, CudaLibrary, LoadErrorKind};
use cupyrite_sys::nvrtc::nvrtcResult;
use serde::{Deserialize, Serialize};

use super::report::{Backend, DeviceInfo, Step, Version};

/// The findings so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub(crate) backend: Option<Backend>,
    pub(crate) reason: Option<String>,
    pub(crate) driver_path: Option<String>,
    pub(crate) driver_found_via: Option<String>,
    pub(crate) driver_version: Option<Version>,
    pub(crate) devices: Vec<DeviceInfo>,
    pub(crate) nvrtc_path: Option<String>,
    pub(crate) nvrtc_found_via: Option<String>,
    pub(crate) nvrtc_version: Option<Version>,
    pub(crate) steps: Vec<Step>,
    /// A kernel ran with the correct result.
    pub(crate) ran: bool,
    /// Failures; the driver and NVRTC are tried independently.
    pub(crate) failures: Vec<Failure>,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) step: Stage,
    pub(crate) kind: FailureKind,
    /// The error message.
    pub(crate) message: String,
    /// The driver's status, if it gave one.
    pub(crate) status: Option<u32>,
    /// The advice of the search for the library.
    pub(crate) advice: Vec<String>,
    /// The rejected file.
    pub(crate) file: Option<String>,
}

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FailureKind {
    /// A library is missing.
    NotFound,
    /// A library exists but does not load.
    Broken,
    /// An environment variable has an invalid value.
    Setting,
    /// The CPU device is chosen, and its library is missing, damaged or of another build.
    NoCpuDevice,
    /// A function is missing from a library.
    Symbol,
    /// A driver call returned an error status.
    Driver,
    /// An NVRTC call returned an error status.
    Nvrtc,
    /// The kernel ran with a wrong result.
    Wrong,
    /// Anything else.
    Other,
}

/// The steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    Choose,
    Init,
    Devices,
    LoadNvrtc,
    Compile,
    Context,
    Load,
    Launch,
    Ptx,
}

impl Stage {
    /// A description.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Stage::Choose => "choose the device",
            Stage::Init => "initialise the driver",
            Stage::Devices => "look at the devices",
            Stage::LoadNvrtc => "load NVRTC",
            Stage::Compile => "compile a kernel",
            Stage::Context => "open the device",
            Stage::Load => "load the kernel",
            Stage::Launch => "launch the kernel and read its result",
            Stage::Ptx => "load a kernel as PTX",
        }
    }
}

/// A message of the running probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// A step starts.
    Begin(Stage),
    /// The findings after a step.
    Known(Box<Probe>),
}

/// The kernel: each thread writes a value that depends on its index.
const SOURCE: &str = r#"
extern "C" __global__ void cupyrite_doctor(unsigned *out, unsigned seed, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (i + seed) * 2654435761u;
}
"#;
const NAME: &str = "cupyrite_doctor";
const THREADS: u32 = 64;
const ELEMENTS: u32 = 3 * THREADS - 7;

struct Runner<'a> {
    known: Probe,
    tell: &'a mut dyn FnMut(Message),
}

impl Runner<'_> {
    fn step<T>(&mut self, stage: Stage, work: impl FnOnce() -> Result<T, Error>) -> Option<T> {
        (self.tell)(Message::Begin(stage));
        let start = Instant::now();
        let result = work();
        self.known.steps.push(Step {
            name: stage.words().to_owned(),
            milliseconds: start.elapsed().as_secs_f64() * 1e3,
        });
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.known.failures.push(failure(stage, &error));
                self.tell_known();
                None
            }
        }
    }

    fn tell_known(&mut self) {
        (self.tell)(Message::Known(Box::new(self.known.clone())));
    }

    fn driver(&mut self) -> Option<Device> {
        let backend = self.step(Stage::Choose, cupyrite::backend)?;
        self.known.backend = Some(match backend {
            loader::Backend::Gpu => Backend::Gpu,
            loader::Backend::Cpu => Backend::Cpu,
        });
        self.known.reason = loader::backend_reason().ok();
        self.known.driver_path = path_of(CudaLibrary::Driver);
        self.known.driver_found_via = loader::library_found_via(CudaLibrary::Driver);
        // The driver reports its version without initialisation.
        let mut version = 0;
        // SAFETY: `version` is valid for one integer.
        let told = unsafe { cupyrite_sys::driver::cuDriverGetVersion(&mut version) };
        if let Ok(CUresult::CUDA_SUCCESS) = told {
            self.known.driver_version = u32::try_from(version).ok().map(Version::from_number);
        }
        self.tell_known();
        let count = self.step(Stage::Init, Device::count)?;
        if count == 0 {
            let status = CUresult::CUDA_ERROR_NO_DEVICE;
            self.known.failures.push(Failure {
                step: Stage::Devices,
                kind: FailureKind::Driver,
                message: "the driver is initialised, and has no device".to_owned(),
                status: Some(status.0),
                advice: Vec::new(),
                file: None,
            });
            return None;
        }
        let infos = self.step(Stage::Devices, || {
            (0..count).map(describe).collect::<Result<Vec<_>, _>>()
        })?;
        self.known.devices = infos;
        self.tell_known();
        self.step(Stage::Context, || Device::new(0))
    }

    fn nvrtc(&mut self) -> Option<()> {
        let version = self.step(Stage::LoadNvrtc, nvrtc_version);
        self.known.nvrtc_path = path_of(CudaLibrary::Nvrtc);
        self.known.nvrtc_found_via = loader::library_found_via(CudaLibrary::Nvrtc);
        let (major, minor) = version?;
        self.known.nvrtc_version = match (u32::try_from(major), u32::try_from(minor)) {
            (Ok(major), Ok(minor)) => Some(Version { major, minor }),
            _ => None,
        };
        self.tell_known();
        Some(())
    }

    fn kernel(&mut self, device: &Device) -> Option<()> {
        let program = Program::new(SOURCE).named("doctor.cu");
        let code = self.step(Stage::Compile, || program.compile_for(device))?;
        let kernel = self.step(Stage::Load, || load(device, &code))?;
        let right = self.step(Stage::Launch, || {
            let stream = device.create_stream()?;
            let out = device.buffer_zeroed::<u32>(ELEMENTS as usize)?;
            let seed = std::process::id();
            let shape = LaunchConfig::for_elements(ELEMENTS as usize, THREADS);
            // SAFETY: the kernel writes `ELEMENTS` numbers, as many as `out` has; `out` outlives the synchronization.
            unsafe { kernel.launch(&stream, &shape, &(&out, seed, ELEMENTS))? };
            stream.synchronize()?;
            let expected = (0..ELEMENTS).map(|i| i.wrapping_add(seed).wrapping_mul(2_654_435_761));
            Ok(out.to_vec()?.into_iter().eq(expected))
        })?;
        if !right {
            self.known.failures.push(Failure {
                step: Stage::Launch,
                kind: FailureKind::Wrong,
                message: "the kernel ran, and its result is wrong".to_owned(),
                status: None,
                advice: Vec::new(),
                file: None,
            });
            return None;
        }
        self.known.ran = true;
        self.tell_known();
        // Machine code loads with any minor version of the driver; PTX does not.
        self.step(Stage::Ptx, || {
            let cc = device.compute_capability()?;
            let code = program.compile(&format!("compute_{}{}", cc.major, cc.minor))?;
            load(device, &code).map(drop)
        })
    }
}

/// Loads the kernel on the device now: the driver would otherwise defer that to the launch.
fn load(device: &Device, code: &ObjectCode) -> Result<Kernel, Error> {
    let kernel = code.kernel(NAME)?;
    device
        .context()?
        .with_current(|| kernel.function_for_current_context())?;
    Ok(kernel)
}

/// Loads the driver and NVRTC, and runs a kernel. Calls `tell` before each step.
pub(crate) fn run(tell: &mut dyn FnMut(Message)) -> Probe {
    let mut runner = Runner {
        known: Probe::default(),
        tell,
    };
    let device = runner.driver();
    let nvrtc = runner.nvrtc();
    if let (Some(device), Some(())) = (device, nvrtc) {
        let _ = runner.kernel(&device);
    }
    runner.tell_known();
    runner.known
}

fn path_of(library: CudaLibrary) -> Option<String> {
    loader::library_path(library).map(|path| path.to_string_lossy().into_owned())
}

/// NVRTC's version.
fn nvrtc_version() -> Result<(i32, i32), Error> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: `major` and `minor` are valid for one integer each.
    match unsafe { cupyrite_sys::nvrtc::nvrtcVersion(&mut major, &mut minor) } {
        Ok(nvrtcResult::NVRTC_SUCCESS) => Ok((major, minor)),
        Ok(status) => Err(Error::Nvrtc {
            call: "nvrtcVersion",
            status,
            log: String::new(),
        }),
        Err(error) => Err(Error::from(error.clone())),
    }
}

/// A device's properties, without creating a context.
fn describe(ordinal: usize) -> Result<DeviceInfo, Error> {
    let device = Device::new(ordinal)?;
    let capability = device.compute_capability()?;
    Ok(DeviceInfo {
        ordinal,
        name: device.name()?,
        compute_capability: Version {
            major: capability.major,
            minor: capability.minor,
        },
        memory: device.total_memory()? as u64,
    })
}

fn failure(step: Stage, error: &Error) -> Failure {
    let mut failure = Failure {
        step,
        kind: FailureKind::Other,
        message: error.to_string(),
        status: None,
        advice: Vec::new(),
        file: None,
    };
    match error {
        Error::Load(error) => {
            failure.kind = match error.kind {
                LoadErrorKind::LibraryNotFound => FailureKind::NotFound,
                LoadErrorKind::LibraryFailed => FailureKind::Broken,
                LoadErrorKind::SymbolNotFound => FailureKind::Symbol,
                LoadErrorKind::NoCpuDevice => FailureKind::NoCpuDevice,
                _ => FailureKind::Setting,
            };
            if let Some(search) = &error.search {
                if search.kind == cupyrite_pathfinder::LoadErrorKind::InvalidSetting {
                    failure.kind = FailureKind::Setting;
                }
                failure.advice = search.advice();
                let file = search.file.as_deref();
                failure.file = file.map(|file| file.to_string_lossy().into_owned());
            }
        }
        Error::Driver { status, .. } => {
            failure.kind = FailureKind::Driver;
            failure.status = Some(status.0);
        }
        Error::Nvrtc { .. } => failure.kind = FailureKind::Nvrtc,
        _ => {}
    }
    failure
}
