//! Errors: the call that failed, why, and what is allowed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite_pathfinder::FindError;
use cupyrite_sys::driver::CUresult;
use cupyrite_sys::loader::LoadError;
use cupyrite_sys::nvjitlink::nvJitLinkResult;
use cupyrite_sys::nvml::nvmlReturn_t;
use cupyrite_sys::nvrtc::nvrtcResult;
use cupyrite_sys::nvvm::nvvmResult;

/// The result of every fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why other calls worked on the same thread, and what to do.
const NO_CONTEXT: &str = "the default streams belong to the context that is current on the calling thread, and none is: call \
                          device.set_current() first, once in each thread, or use a stream of device.create_stream(). \
                          Compiling, loading and the methods of a device need no current context";

/// An error of the driver, a compiler, a linker or the loader, or an invalid argument.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// A driver call failed.
    Driver {
        /// The C function.
        call: &'static str,
        /// Its status.
        status: CUresult,
        /// The driver's message about this failure, such as the JIT log of a module; may be empty.
        log: String,
    },
    /// An NVRTC call failed.
    Nvrtc {
        /// The C function.
        call: &'static str,
        /// Its status.
        status: nvrtcResult,
        /// The compiler's log; empty if the call produces none.
        log: String,
    },
    /// An nvJitLink call failed.
    NvJitLink {
        /// The C function.
        call: &'static str,
        /// Its status.
        status: nvJitLinkResult,
        /// The linker's error log; empty if the call produces none.
        log: String,
    },
    /// A libNVVM call failed.
    Nvvm {
        /// The C function.
        call: &'static str,
        /// Its status.
        status: nvvmResult,
        /// The compiler's log; empty if the call produces none.
        log: String,
    },
    /// An NVML call failed.
    Nvml {
        /// The C function.
        call: &'static str,
        /// Its status.
        status: nvmlReturn_t,
    },
    /// A library or one of its functions is missing.
    Load(LoadError),
    /// A file of the CUDA toolkit is missing.
    Find(Box<FindError>),
    /// The library that would have to do it does not support the request.
    Unsupported {
        /// The function of this crate.
        function: &'static str,
        /// The request.
        problem: String,
    },
    /// An invalid argument.
    InvalidArgument {
        /// The function of this crate.
        function: &'static str,
        /// The parameter.
        parameter: String,
        /// The value given, and what is allowed.
        problem: String,
    },
}

/// The statuses for which [`Error::leaves_context_unusable`] holds.
#[doc(hidden)] // For the Python package.
pub const UNUSABLE_CONTEXT: [CUresult; 15] = [
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUresult::CUDA_ERROR_CONTAINED,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_ASSERT,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUresult::CUDA_ERROR_INVALID_PC,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK,
    CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED,
    CUresult::CUDA_ERROR_EXTERNAL_DEVICE,
];

impl Error {
    /// The driver's status, for [`Error::Driver`].
    pub fn status(&self) -> Option<CUresult> {
        match self {
            Error::Driver { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the status is that of a failed kernel or device, which every later call in the context returns as well.
    ///
    /// Source: `CUresult` of the CUDA driver API: these errors leave the process in an inconsistent state, in which further
    /// CUDA work returns the same error.
    pub fn leaves_context_unusable(&self) -> bool {
        self.status()
            .is_some_and(|status| UNUSABLE_CONTEXT.contains(&status))
    }

    /// Appends to the log.
    pub(crate) fn with_log(mut self, more: &str) -> Error {
        if let Error::Driver { log, .. }
        | Error::Nvrtc { log, .. }
        | Error::Nvvm { log, .. }
        | Error::NvJitLink { log, .. } = &mut self
            && !more.is_empty()
        {
            if !log.is_empty() && !log.ends_with('\n') {
                log.push('\n');
            }
            log.push_str(more);
        }
        self
    }

    /// The error of a failed driver call, with the driver's log entries about it.
    #[cold]
    pub(crate) fn driver(call: &'static str, status: CUresult) -> Self {
        // The suffix is this project's name for the CUDA 12 signature of the same function.
        let call = call.strip_suffix("_cuda12").unwrap_or(call);
        // The driver's own message does not mention the fork.
        let log = match status {
            CUresult::CUDA_ERROR_NOT_INITIALIZED if crate::fork::is_forked_child() => {
                "this process was forked from one that had used CUDA, which CUDA does not support; start processes with spawn or \
                 forkserver"
                    .to_owned()
            }
            _ => crate::status::driver_log(call, status),
        };
        let log = match status {
            // A driver's log says less.
            CUresult::CUDA_ERROR_INVALID_CONTEXT if crate::status::lacks_context() => {
                NO_CONTEXT.to_owned()
            }
            _ => log,
        };
        Error::Driver { call, status, log }
    }

    pub(crate) fn argument(
        function: &'static str,
        parameter: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Error::InvalidArgument {
            function,
            parameter: parameter.into(),
            problem: problem.into(),
        }
    }
}

/// The text of `Display`, which is what a program prints whose `main` returns an error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Driver { call, status, log } => {
                write!(f, "{}: {} ({call})", status_name(*status), meaning(*status))?;
                if !log.is_empty() {
                    write!(f, "\n{}", log.trim_end())?;
                }
                Ok(())
            }
            Error::Nvrtc { call, status, log } => {
                write!(f, "{} ({call})", nvrtc_status_name(*status))?;
                if !log.is_empty() {
                    write!(f, "\n{}", log.trim_end())?;
                }
                Ok(())
            }
            Error::NvJitLink { call, status, log } => {
                write!(f, "{call} failed: {status:?}")?;
                if !log.is_empty() {
                    write!(f, "\n{}", log.trim_end())?;
                }
                Ok(())
            }
            Error::Nvvm { call, status, log } => {
                write!(f, "{call} failed: {status:?}")?;
                if !log.is_empty() {
                    write!(f, "\n{}", log.trim_end())?;
                }
                Ok(())
            }
            Error::Nvml { call, status } => write!(f, "{call}: {}", nvml_text(*status)),
            Error::Load(e) => e.fmt(f),
            Error::Find(e) => e.fmt(f),
            Error::Unsupported { function, problem } => write!(f, "{function}: {problem}"),
            Error::InvalidArgument {
                function,
                parameter,
                problem,
            } => {
                write!(f, "{function}: argument `{parameter}`: {problem}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<LoadError> for Error {
    fn from(e: LoadError) -> Self {
        Error::Load(e)
    }
}

/// `CUDA_ERROR_...`, or the number if neither the table nor the driver knows it.
fn status_name(status: CUresult) -> String {
    let mut text: *const std::ffi::c_char = std::ptr::null();
    // SAFETY: `text` is valid for writes; the function does not keep it.
    let found = unsafe { cupyrite_sys::driver::cuGetErrorName(status, &mut text) };
    match found {
        Ok(CUresult::CUDA_SUCCESS) if !text.is_null() => {
            // SAFETY: on success the driver gives a NUL-terminated string that lives as long as the process.
            unsafe { std::ffi::CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        }
        _ => format!("{status:?}"),
    }
}

/// The meaning of a status: from this crate's table, else from the driver.
fn meaning(status: CUresult) -> String {
    let code = i32::try_from(status.0).unwrap_or(-1);
    if let Some(text) = crate::status::explain_status(code) {
        return text.to_owned();
    }
    let mut text: *const std::ffi::c_char = std::ptr::null();
    // SAFETY: `text` is valid for writes; the function does not keep it.
    let found = unsafe { cupyrite_sys::driver::cuGetErrorString(status, &mut text) };
    match found {
        Ok(CUresult::CUDA_SUCCESS) if !text.is_null() => {
            // SAFETY: on success the driver gives a NUL-terminated string that lives as long as the process.
            unsafe { std::ffi::CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        }
        _ => "a status that this driver does not know".to_owned(),
    }
}

fn nvrtc_status_name(status: nvrtcResult) -> String {
    // SAFETY: takes any integer, gives a static string.
    match unsafe { cupyrite_sys::nvrtc::nvrtcGetErrorString(status) } {
        Ok(text) if !text.is_null() => {
            // SAFETY: NVRTC returns a NUL-terminated string of static lifetime.
            unsafe { std::ffi::CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        }
        _ => format!("nvrtcResult({})", status.0),
    }
}

/// NVML's description of a status, and its name.
fn nvml_text(status: nvmlReturn_t) -> String {
    // SAFETY: takes any integer, gives a static string.
    match unsafe { cupyrite_sys::nvml::nvmlErrorString(status) } {
        Ok(text) if !text.is_null() => {
            // SAFETY: NVML returns a NUL-terminated string of static lifetime.
            let text = unsafe { std::ffi::CStr::from_ptr(text) };
            format!("{} ({status:?})", text.to_string_lossy())
        }
        _ => format!("{status:?}"),
    }
}

/// Calls a driver function and converts its status to a `Result`. Makes no call in a fork of a process that had used
/// the driver.
macro_rules! driver {
    // A call that destroys a handle that this crate owns: see `crate::destroyed`.
    (owned $name:ident($($arg:expr),* $(,)?)) => {
        $crate::error::driver!(@ $crate::destroyed, $name($($arg),*))
    };
    ($name:ident($($arg:expr),* $(,)?)) => {
        $crate::error::driver!(@ cupyrite_sys::driver, $name($($arg),*))
    };
    (@ $module:path, $name:ident($($arg:expr),* $(,)?)) => {{
        use $module as functions;
        if $crate::fork::is_driver_ready() || $crate::fork::prepare_driver() {
            match functions::$name($($arg),*) {
                Ok(cupyrite_sys::driver::CUresult::CUDA_SUCCESS) => Ok(()),
                Ok(status) => {
                    $crate::hint::cold_path();
                    Err($crate::Error::driver(stringify!($name), status))
                }
                Err(e) => {
                    $crate::hint::cold_path();
                    Err($crate::Error::from(e.clone()))
                }
            }
        } else {
            let status = cupyrite_sys::driver::CUresult::CUDA_ERROR_NOT_INITIALIZED;
            Err($crate::Error::driver(stringify!($name), status))
        }
    }};
}
pub(crate) use driver;

/// Calls an NVRTC function and converts its status to a `Result`.
macro_rules! nvrtc {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        $crate::preparation::prepare_loader();
        match cupyrite_sys::nvrtc::$name($($arg),*) {
            Ok(cupyrite_sys::nvrtc::nvrtcResult::NVRTC_SUCCESS) => Ok(()),
            Ok(status) => Err($crate::Error::Nvrtc { call: stringify!($name), status, log: String::new() }),
            Err(e) => Err($crate::Error::from(e.clone())),
        }
    }};
}
pub(crate) use nvrtc;

/// Calls a libNVVM function and converts its status to a `Result`.
macro_rules! nvvm {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        $crate::preparation::prepare_loader();
        match cupyrite_sys::nvvm::$name($($arg),*) {
            Ok(cupyrite_sys::nvvm::nvvmResult::NVVM_SUCCESS) => Ok(()),
            Ok(status) => Err($crate::Error::Nvvm { call: stringify!($name), status, log: String::new() }),
            Err(e) => Err($crate::Error::from(e.clone())),
        }
    }};
}
pub(crate) use nvvm;

/// Calls an nvJitLink function and converts its status to a `Result`.
macro_rules! nvjitlink {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        $crate::preparation::prepare_loader();
        match cupyrite_sys::nvjitlink::$name($($arg),*) {
            Ok(cupyrite_sys::nvjitlink::nvJitLinkResult::NVJITLINK_SUCCESS) => Ok(()),
            Ok(status) => Err($crate::Error::NvJitLink { call: stringify!($name), status, log: String::new() }),
            Err(e) => Err($crate::Error::from(e.clone())),
        }
    }};
}
pub(crate) use nvjitlink;

/// Logs an error of a destructor, which cannot return it.
///
/// A driver that is shutting down has released everything itself; that error is ignored. In an unusable context every
/// destructor fails with the same status: the first is a warning, those that follow are for debugging.
#[inline(always)]
pub(crate) fn report(result: Result<()>) {
    if let Err(error) = result {
        report_error(&error);
    }
}

#[cold]
#[inline(never)]
fn report_error(error: &Error) {
    if !matches!(
        error,
        Error::Driver {
            status: CUresult::CUDA_ERROR_DEINITIALIZED,
            ..
        }
    ) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let is_known = error.leaves_context_unusable() && WARNED.swap(true, Ordering::Relaxed);
        let level = if is_known {
            log::Level::Debug
        } else {
            log::Level::Warn
        };
        log::log!(level, "while releasing a CUDA object: {error}");
    }
}
