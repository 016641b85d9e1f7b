//! What a search gives back.

use std::fmt;
use std::path::PathBuf;

use crate::dl::Handle;
use crate::error::Looked;
use crate::table::Library;

/// The step of the search that found something. `Display` gives the words `cuda.pathfinder` uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FoundVia {
    /// In the process already, and not loaded by this crate.
    AlreadyLoaded,
    /// Named by `CUPYRITE_LIB_<NAME>`.
    Override,
    /// An installed wheel.
    SitePackages,
    /// The conda environment.
    Conda,
    /// The system's loader; for tools, `PATH`.
    System,
    /// Below a variable of the product's own, such as `CUDNN_PATH`.
    Variable(&'static str),
    /// Below `CUDA_PATH` or `CUDA_HOME`.
    CudaPath,
    /// Below Windows' `ProgramFiles`.
    ProgramFiles,
    /// The toolkit that the system's CUDA runtime belongs to.
    Canary,
    /// A well-known folder of toolkits or of the driver.
    WellKnown,
    /// A folder of the system in which headers are installed.
    SystemFolder,
}

impl fmt::Display for FoundVia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FoundVia::AlreadyLoaded => "was-already-loaded-from-elsewhere",
            FoundVia::Override => "override",
            FoundVia::SitePackages => "site-packages",
            FoundVia::Conda => "conda",
            FoundVia::System => "system-search",
            FoundVia::Variable(name) => name,
            FoundVia::CudaPath => "CUDA_PATH",
            FoundVia::ProgramFiles => "ProgramFiles",
            FoundVia::Canary | FoundVia::WellKnown => "system-ctk-root",
            FoundVia::SystemFolder => "supported_install_dir",
        })
    }
}

/// A library in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The row it belongs to.
    pub library: &'static Library,
    /// For symbols; never closed.
    pub handle: Handle,
    /// The file, as the loader names it.
    pub path: PathBuf,
    /// The step that found it. What this crate has loaded before keeps the step of that time, so that a
    /// repeated call answers as the first one did.
    pub found_via: FoundVia,
}

/// A library that would be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The row it belongs to.
    pub library: &'static Library,
    /// The file.
    pub path: PathBuf,
    /// The step that found it.
    pub found_via: FoundVia,
    /// The CUDA major it is built for, where its name, folder or dependencies tell.
    pub major: Option<u32>,
    /// Its version, such as `13.0.88`, where that can be read off the file's, the package's or the toolkit's
    /// own words.
    pub version: Option<String>,
    /// Every place that was looked at before, in order.
    pub looked: Vec<Looked>,
}

/// A folder of headers, a tool or an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name in its table.
    pub name: &'static str,
    /// The folder or the file.
    pub path: PathBuf,
    /// The step that found it.
    pub found_via: FoundVia,
}
