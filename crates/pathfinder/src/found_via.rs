//! The search step that found an item.

use std::fmt;

/// The search step that found an item. `Display` uses the words of `cuda.pathfinder`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FoundVia {
    /// It was loaded before, and not by this crate.
    AlreadyLoaded,
    /// `CUPYRITE_LIB_<NAME>`.
    Override,
    /// An installed wheel.
    SitePackages,
    /// The conda environment.
    Conda,
    /// The system loader.
    System,
    /// Below a product's own variable, such as `CUDNN_PATH`.
    Variable(&'static str),
    /// Below `CUDA_PATH` or `CUDA_HOME`.
    CudaPath,
    /// Below Windows' `ProgramFiles`.
    ProgramFiles,
    /// The toolkit of the system's CUDA runtime.
    Canary,
    /// A usual installation folder of toolkits or of the driver.
    WellKnown,
    /// A system folder of headers.
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
