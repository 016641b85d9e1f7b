//! The libraries whose headers are read, as data.

/// A library to read.
pub struct Source {
    /// `driver`
    pub name: &'static str,
    /// Headers to include, in order.
    pub includes: &'static [&'static str],
    /// Files whose declarations are kept.
    pub wanted: &'static [&'static str],
    /// The declarations that `__CUDA_API_VERSION_INTERNAL` enables.
    pub internal: Internal,
    /// Prefix of exported functions.
    pub prefix: &'static str,
    /// Macros to define, besides those for older ABI versions.
    pub defines: &'static [&'static str],
    /// CUDA majors that have the headers.
    pub majors: &'static [u32],
    /// Libraries whose types the headers use; they precede it in [`SOURCES`].
    pub uses: &'static [&'static str],
    /// Whether a second Python module, whose functions raise, shows the library too.
    pub second: bool,
    /// NVIDIA's documentation.
    pub doc_url: &'static str,
}

/// Declarations that programs do not see by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Internal {
    /// Nothing.
    Nothing,
    /// The variants for the per-thread default stream.
    PerThread,
    /// Those, and older ABI versions, each with a typedef that names its CUDA version.
    Versions,
}

/// The libraries, in the same order as the IR.
pub const SOURCES: &[Source] = &[
    Source {
        name: "driver",
        includes: &[
            "cuda.h",
            "vdpau/vdpau.h",
            "cudaEGL.h",
            "cudaGL.h",
            "cudaVDPAU.h",
            "cudaProfiler.h",
            "cudaTypedefs.h",
            "cudaEGLTypedefs.h",
            "cudaGLTypedefs.h",
            "cudaVDPAUTypedefs.h",
            "cudaProfilerTypedefs.h",
        ],
        wanted: &[
            "cuda.h",
            "cudaEGL.h",
            "cudaGL.h",
            "cudaVDPAU.h",
            "cudaProfiler.h",
            "egl.h",
            "eglext.h",
            "gl.h",
            "vdpau.h",
        ],
        internal: Internal::Versions,
        prefix: "cu",
        defines: &[],
        majors: &[13, 12],
        uses: &[],
        second: true,
        doc_url: "https://docs.nvidia.com/cuda/cuda-driver-api/",
    },
    Source {
        name: "runtime",
        includes: &[
            "cuda_runtime_api.h",
            "library_types.h",
            "vdpau/vdpau.h",
            "cuda_egl_interop.h",
            "cuda_gl_interop.h",
            "cuda_vdpau_interop.h",
            "cuda_profiler_api.h",
        ],
        wanted: &[
            "cuda_runtime_api.h",
            "driver_types.h",
            "library_types.h",
            "vector_types.h",
            "surface_types.h",
            "texture_types.h",
            "device_types.h",
            "cuda_egl_interop.h",
            "cuda_gl_interop.h",
            "cuda_vdpau_interop.h",
            "cuda_profiler_api.h",
            "egl.h",
            "eglext.h",
            "gl.h",
            "vdpau.h",
        ],
        internal: Internal::PerThread,
        prefix: "cuda",
        defines: &[],
        majors: &[13, 12],
        uses: &["driver"],
        second: true,
        doc_url: "https://docs.nvidia.com/cuda/cuda-runtime-api/",
    },
    Source {
        name: "nvrtc",
        includes: &["nvrtc.h"],
        wanted: &["nvrtc.h"],
        internal: Internal::Nothing,
        prefix: "nvrtc",
        defines: &[],
        majors: &[13, 12],
        uses: &[],
        second: true,
        doc_url: "https://docs.nvidia.com/cuda/nvrtc/",
    },
    Source {
        name: "nvjitlink",
        includes: &["nvJitLink.h"],
        wanted: &["nvJitLink.h"],
        internal: Internal::Nothing,
        prefix: "nvJitLink",
        // Declares functions instead of inline wrappers of `__nvJitLinkCreate_13_5` and the like.
        defines: &["NVJITLINK_NO_INLINE"],
        majors: &[13, 12],
        uses: &[],
        second: false,
        doc_url: "https://docs.nvidia.com/cuda/nvjitlink/",
    },
    Source {
        name: "nvvm",
        includes: &["nvvm.h"],
        wanted: &["nvvm.h"],
        internal: Internal::Nothing,
        prefix: "nvvm",
        defines: &[],
        majors: &[13, 12],
        uses: &[],
        second: false,
        doc_url: "https://docs.nvidia.com/cuda/libnvvm-api/",
    },
    Source {
        name: "nvfatbin",
        includes: &["nvFatbin.h"],
        wanted: &["nvFatbin.h"],
        internal: Internal::Nothing,
        prefix: "nvFatbin",
        defines: &[],
        majors: &[13, 12],
        uses: &[],
        second: false,
        doc_url: "https://docs.nvidia.com/cuda/nvfatbin/",
    },
    Source {
        name: "nvml",
        includes: &["nvml.h"],
        wanted: &["nvml.h"],
        internal: Internal::Nothing,
        prefix: "nvml",
        // Declares functions by their exported names, older versions included.
        defines: &["NVML_NO_UNVERSIONED_FUNC_DEFS"],
        majors: &[13, 12],
        uses: &[],
        second: false,
        doc_url: "https://docs.nvidia.com/deploy/nvml-api/",
    },
    Source {
        name: "cufile",
        includes: &["cufile.h"],
        wanted: &["cufile.h"],
        internal: Internal::Nothing,
        prefix: "cuFile",
        defines: &[],
        majors: &[13, 12],
        uses: &["driver"],
        second: false,
        doc_url: "https://docs.nvidia.com/gpudirect-storage/api-reference-guide/",
    },
    Source {
        name: "cudla",
        includes: &["cudla.h"],
        wanted: &["cudla.h"],
        internal: Internal::Nothing,
        prefix: "cudla",
        defines: &[],
        majors: &[13],
        uses: &[],
        second: false,
        doc_url: "https://docs.nvidia.com/cuda/cudla-api/",
    },
];

/// The macros that enable the internal declarations of the driver's and the runtime's headers.
pub const OLDER_VERSIONS: &[&str] = &[
    "__CUDA_API_VERSION_INTERNAL",
    "__CUDA_API_VERSION_INTERNAL_ODR",
];

impl Source {
    /// Every macro needed to read all declarations of the library.
    pub fn all_defines(&self) -> &'static [&'static str] {
        if self.internal != Internal::Nothing {
            OLDER_VERSIONS
        } else {
            self.defines
        }
    }
}
