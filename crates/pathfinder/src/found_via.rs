//! The step of a search that found something.

use std::fmt;

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
