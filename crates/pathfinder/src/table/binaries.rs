//! Command-line tools.

use super::{Binary, Origin, Packages};

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
