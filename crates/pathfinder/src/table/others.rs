//! Command-line tools, archives for linking, and libraries in LLVM bitcode.

use super::{Archive, Binary, Packages};

const NONE: Packages = Packages {
    pip: "",
    pip_cuda12: "",
    conda: "",
};

/// Every tool this crate knows.
pub const BINARIES: &[Binary] = &[
    Binary {
        name: "nvcc",
        wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "ptxas",
        wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "nvdisasm",
        wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "cuobjdump",
        wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "nvprune",
        wheel_dirs: &["nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "fatbinary",
        wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "bin2c",
        wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "nvlink",
        wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "cuda-gdb",
        wheel_dirs: &["nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "cuda-gdbserver",
        wheel_dirs: &["nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "compute-sanitizer",
        wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "nvprof",
        wheel_dirs: &["nvidia/cuda_nvcc/bin"],
        packages: NONE,
    },
    Binary {
        name: "nsys",
        wheel_dirs: &["nvidia/nsight_systems/bin"],
        packages: NONE,
    },
    Binary {
        name: "nsight-sys",
        wheel_dirs: &["nvidia/nsight_systems/bin"],
        packages: NONE,
    },
    Binary {
        name: "ncu",
        wheel_dirs: &["nvidia/nsight_compute/bin"],
        packages: NONE,
    },
    Binary {
        name: "nsight-compute",
        wheel_dirs: &["nvidia/nsight_compute/bin"],
        packages: NONE,
    },
];

/// Every archive for linking this crate knows.
pub const STATIC_LIBRARIES: &[Archive] = &[Archive {
    name: "cudadevrt",
    linux_file: "libcudadevrt.a",
    windows_file: "cudadevrt.lib",
    linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"],
    windows_wheel_dirs: &["nvidia/cu13/lib/x64", "nvidia/cuda_runtime/lib/x64"],
    conda_dirs: &["lib"],
    linux_root_dirs: &["lib64", "lib"],
    windows_root_dirs: &["lib/x64"],
    packages: NONE,
}];

/// Every bitcode library this crate knows.
pub const BITCODE_LIBRARIES: &[Archive] = &[
    Archive {
        name: "device",
        linux_file: "libdevice.10.bc",
        windows_file: "libdevice.10.bc",
        linux_wheel_dirs: &[
            "nvidia/cu13/nvvm/libdevice",
            "nvidia/cuda_nvcc/nvvm/libdevice",
        ],
        windows_wheel_dirs: &[
            "nvidia/cu13/nvvm/libdevice",
            "nvidia/cuda_nvcc/nvvm/libdevice",
        ],
        conda_dirs: &["nvvm/libdevice"],
        linux_root_dirs: &["nvvm/libdevice"],
        windows_root_dirs: &["nvvm/libdevice"],
        packages: NONE,
    },
    Archive {
        name: "nccl_device",
        linux_file: "libnccl_device.bc",
        windows_file: "",
        linux_wheel_dirs: &["nvidia/nccl/lib"],
        windows_wheel_dirs: &[],
        conda_dirs: &["lib"],
        linux_root_dirs: &["lib"],
        windows_root_dirs: &[],
        packages: NONE,
    },
    Archive {
        name: "nvshmem_device",
        linux_file: "libnvshmem_device.bc",
        windows_file: "",
        linux_wheel_dirs: &["nvidia/nvshmem/lib"],
        windows_wheel_dirs: &[],
        conda_dirs: &["lib"],
        linux_root_dirs: &["lib"],
        windows_root_dirs: &[],
        packages: NONE,
    },
];
