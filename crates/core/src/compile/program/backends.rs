//! The libraries that compile, and what they report besides code.

/// The library that compiles a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompilerBackend {
    /// NVRTC.
    Nvrtc,
    /// libNVVM.
    Nvvm,
    /// nvJitLink.
    NvJitLink,
    /// The CUDA driver.
    Driver,
}

/// The outcome of a request for a precompiled header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PchStatus {
    /// It was written.
    Created,
    /// None was created: there is a matching one, or the source is not suitable.
    NotAttempted,
    /// It could not be written.
    Failed,
}

impl PchStatus {
    pub(super) const ALL: [PchStatus; 3] = [
        PchStatus::Created,
        PchStatus::NotAttempted,
        PchStatus::Failed,
    ];
}
