//! Command-line tools, static libraries, and LLVM bitcode libraries.

use super::{Binary, LinkableFile, Origin, Packages};

const TOOL: Binary = Binary {
    name: "",
    origin: Origin::Toolkit,
    wheel_dirs: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"],
    further_wheel_dirs: &[],
    nsight_dirs: &[],
    packages: Packages::NONE,
};

/// Every known tool.
pub const BINARIES: &[Binary] = &[
    Binary {
        name: "nvcc",
        packages: Packages::new("nvidia-cuda-nvcc", "", "cuda-nvcc"),
        ..TOOL
    },
    Binary {
        name: "ptxas",
        packages: Packages::new("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12", "cuda-nvcc"),
        ..TOOL
    },
    Binary {
        name: "nvdisasm",
        packages: Packages::new("nvidia-cuda-nvdisasm", "", "cuda-nvdisasm"),
        ..TOOL
    },
    Binary {
        name: "cuobjdump",
        packages: Packages::new("nvidia-cuda-cuobjdump", "", "cuda-cuobjdump"),
        ..TOOL
    },
    Binary {
        name: "nvprune",
        wheel_dirs: &["nvidia/cuda_nvcc/bin"],
        packages: Packages::new("", "", "cuda-nvprune"),
        ..TOOL
    },
    Binary {
        name: "fatbinary",
        packages: Packages::new("nvidia-cuda-nvcc", "", "cuda-nvcc"),
        ..TOOL
    },
    Binary {
        name: "bin2c",
        packages: Packages::new("nvidia-cuda-nvcc", "", "cuda-nvcc"),
        ..TOOL
    },
    Binary {
        name: "nvlink",
        packages: Packages::new("nvidia-cuda-nvcc", "", "cuda-nvcc"),
        ..TOOL
    },
    Binary {
        name: "cuda-gdb",
        wheel_dirs: &["nvidia/cuda_nvcc/bin"],
        packages: Packages::new("", "", "cuda-gdb"),
        ..TOOL
    },
    Binary {
        name: "cuda-gdbserver",
        wheel_dirs: &["nvidia/cuda_nvcc/bin"],
        packages: Packages::new("", "", "cuda-gdb"),
        ..TOOL
    },
    Binary {
        name: "compute-sanitizer",
        further_wheel_dirs: &["nvidia/cuda_sanitizer_api/bin"],
        packages: Packages::new(
            "nvidia-cuda-sanitizer-api",
            "nvidia-cuda-sanitizer-api-cu12",
            "cuda-sanitizer-api",
        ),
        ..TOOL
    },
    Binary {
        name: "nvprof",
        wheel_dirs: &["nvidia/cuda_nvcc/bin"],
        packages: Packages::new("", "", "cuda-nvprof"),
        ..TOOL
    },
    Binary {
        name: "nsys",
        origin: Origin::Product,
        wheel_dirs: &["nvidia/nsight_systems/bin"],
        nsight_dirs: &["target-windows-x64", "target-windows-armv8"],
        packages: Packages::new("", "", "nsight-systems-cli"),
        ..TOOL
    },
    Binary {
        name: "nsight-sys",
        origin: Origin::Product,
        wheel_dirs: &["nvidia/nsight_systems/bin"],
        nsight_dirs: &["host-windows-x64"],
        packages: Packages::new("", "", "nsight-systems"),
        ..TOOL
    },
    Binary {
        name: "ncu",
        origin: Origin::Product,
        wheel_dirs: &["nvidia/nsight_compute/bin"],
        nsight_dirs: &["", "target/windows-desktop-*-x64"],
        packages: Packages::new("", "", "nsight-compute"),
        ..TOOL
    },
    Binary {
        name: "nsight-compute",
        origin: Origin::Product,
        wheel_dirs: &["nvidia/nsight_compute/bin"],
        nsight_dirs: &["", "host/windows-desktop-*-x64"],
        packages: Packages::new("", "", "nsight-compute"),
        ..TOOL
    },
];

/// Every known static library.
pub const STATIC_LIBRARIES: &[LinkableFile] = &[LinkableFile {
    name: "cudadevrt",
    origin: Origin::Toolkit,
    linux_file: "libcudadevrt.a",
    windows_file: "cudadevrt.lib",
    linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"],
    windows_wheel_dirs: &[
        "nvidia/cu13/lib/x64",
        "nvidia/cu13/lib/arm64",
        "nvidia/cuda_runtime/lib/x64",
    ],
    conda_dirs: &["lib"],
    linux_root_dirs: &["lib64", "lib"],
    windows_root_dirs: &["lib/x64", "lib/arm64"],
    packages: Packages::new(
        "nvidia-cuda-runtime",
        "nvidia-cuda-runtime-cu12",
        "cuda-cudart-dev",
    ),
}];

/// Every known bitcode library.
pub const BITCODE_LIBRARIES: &[LinkableFile] = &[
    LinkableFile {
        name: "device",
        origin: Origin::Toolkit,
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
        packages: Packages::new("nvidia-nvvm", "nvidia-cuda-nvcc-cu12", "cuda-nvcc-impl"),
    },
    LinkableFile {
        name: "nccl_device",
        origin: Origin::Product,
        linux_file: "libnccl_device.bc",
        windows_file: "",
        linux_wheel_dirs: &["nvidia/nccl/lib"],
        windows_wheel_dirs: &[],
        conda_dirs: &["lib"],
        linux_root_dirs: &["lib"],
        windows_root_dirs: &[],
        packages: Packages::new("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nccl"),
    },
    LinkableFile {
        name: "nvshmem_device",
        origin: Origin::Product,
        linux_file: "libnvshmem_device.bc",
        windows_file: "",
        linux_wheel_dirs: &["nvidia/nvshmem/lib"],
        windows_wheel_dirs: &[],
        conda_dirs: &["lib"],
        linux_root_dirs: &["lib"],
        windows_root_dirs: &[],
        packages: Packages::new(
            "nvidia-nvshmem-cu13",
            "nvidia-nvshmem-cu12",
            "libnvshmem-dev",
        ),
    },
];
