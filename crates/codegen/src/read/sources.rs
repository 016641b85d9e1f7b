//! The libraries whose headers are read, as data.

/// A library to read.
pub struct Source {
    /// `driver`
    pub name: &'static str,
    /// What to include, in order.
    pub includes: &'static [&'static str],
    /// Files whose declarations count.
    pub wanted: &'static [&'static str],
    /// What the headers come with behind `__CUDA_API_VERSION_INTERNAL`.
    pub internal: Internal,
    /// Prefix of exported functions.
    pub prefix: &'static str,
    /// Macros to define before the headers are read, beyond those for older ABI versions.
    pub defines: &'static [&'static str],
    /// CUDA majors that have the headers.
    pub majors: &'static [u32],
    /// Libraries whose types the headers use; they come earlier in [`SOURCES`].
    pub uses: &'static [&'static str],
    /// NVIDIA's documentation.
    pub doc_url: &'static str,
}

/// What headers declare beyond what programs see by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Internal {
    /// Nothing.
    Nothing,
    /// The forms of functions for the per-thread default stream.
    PerThread,
    /// Those, and older ABI versions, each with a typedef that tells its CUDA version.
    Versions,
}

/// The libraries, in the order of the IR.
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
        doc_url: "https://docs.nvidia.com/cuda/nvrtc/",
    },
    Source {
        name: "nvjitlink",
        includes: &["nvJitLink.h"],
        wanted: &["nvJitLink.h"],
        internal: Internal::Nothing,
        prefix: "nvJitLink",
        // Functions instead of inline ones that call `__nvJitLinkCreate_13_5` and the like.
        defines: &["NVJITLINK_NO_INLINE"],
        majors: &[13, 12],
        uses: &[],
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
        doc_url: "https://docs.nvidia.com/cuda/nvfatbin/",
    },
    Source {
        name: "nvml",
        includes: &["nvml.h"],
        wanted: &["nvml.h"],
        internal: Internal::Nothing,
        prefix: "nvml",
        // Functions by the names that the library exports, older versions included.
        defines: &["NVML_NO_UNVERSIONED_FUNC_DEFS"],
        majors: &[13, 12],
        uses: &[],
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
        doc_url: "https://docs.nvidia.com/cuda/cudla-api/",
    },
];

/// What makes the driver's and the runtime's headers declare their internal forms too.
pub const OLDER_VERSIONS: &[&str] = &[
    "__CUDA_API_VERSION_INTERNAL",
    "__CUDA_API_VERSION_INTERNAL_ODR",
];

impl Source {
    /// Every macro that reading all of the library's declarations takes.
    pub fn all_defines(&self) -> &'static [&'static str] {
        if self.internal != Internal::Nothing {
            OLDER_VERSIONS
        } else {
            self.defines
        }
    }
}
