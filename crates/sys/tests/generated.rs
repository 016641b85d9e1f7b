//! Spot checks of the generated declarations, for errors that a compiler does not detect.

use std::collections::HashSet;
use std::mem::size_of;

use cupyrite_sys::driver::{self, CUresult, Symbol};
use cupyrite_sys::loader::{CudaLibrary, PerThreadVariant};
use cupyrite_sys::{cudla, cufile, nvml, nvrtc, runtime};

fn row(symbol: Symbol) -> (&'static str, &'static str, i32, PerThreadVariant) {
    let row = &driver::SYMBOLS[symbol as usize];
    (
        row.name.to_str().unwrap(),
        row.export.to_str().unwrap(),
        row.version,
        row.per_thread,
    )
}

#[test]
fn descriptors_have_name_symbol_version_and_variant() {
    assert_eq!(
        row(Symbol::cuMemAlloc),
        ("cuMemAlloc", "cuMemAlloc_v2", 3020, PerThreadVariant::None)
    );
    assert_eq!(
        row(Symbol::cuMemcpyHtoD),
        (
            "cuMemcpyHtoD",
            "cuMemcpyHtoD_v2",
            3020,
            PerThreadVariant::Ptds
        )
    );
    assert_eq!(
        row(Symbol::cuLaunchKernel),
        (
            "cuLaunchKernel",
            "cuLaunchKernel",
            4000,
            PerThreadVariant::Ptsz
        )
    );
    assert_eq!(
        row(Symbol::cuCtxCreate),
        (
            "cuCtxCreate",
            "cuCtxCreate_v4",
            12050,
            PerThreadVariant::None
        )
    );
    assert_eq!(
        row(Symbol::cuCtxCreate_cuda12),
        (
            "cuCtxCreate",
            "cuCtxCreate_v2",
            3020,
            PerThreadVariant::None
        )
    );
    assert_eq!(
        row(Symbol::cuGraphInstantiate),
        (
            "cuGraphInstantiateWithFlags",
            "cuGraphInstantiateWithFlags",
            11040,
            PerThreadVariant::None
        )
    );
}

#[test]
fn every_symbol_is_an_entry_point_and_every_variant_exists() {
    let symbols: HashSet<&std::ffi::CStr> = driver::ENTRY_POINTS.iter().map(|e| e.symbol).collect();
    for row in &driver::SYMBOLS {
        assert!(symbols.contains(row.export), "{:?}", row.export);
        if row.per_thread != PerThreadVariant::None {
            let name = format!(
                "{}{}\0",
                row.export.to_str().unwrap(),
                row.per_thread.suffix()
            );
            let name = std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).unwrap();
            assert!(symbols.contains(name), "{name:?}");
        }
    }
}

#[test]
fn entry_points_are_sorted_and_unique() {
    let keys: Vec<_> = driver::ENTRY_POINTS
        .iter()
        .map(|e| (e.base, e.per_thread.suffix(), e.version, e.symbol))
        .collect();
    assert!(keys.windows(2).all(|w| w[0] < w[1]));
    let has = |base, symbol, version| {
        let mut all = driver::ENTRY_POINTS.iter();
        all.any(|e| e.base == base && e.symbol == symbol && e.version == version)
    };
    assert!(has(c"cuMemAlloc", c"cuMemAlloc", 2000));
    assert!(has(c"cuMemAlloc", c"cuMemAlloc_v2", 3020));
    assert!(has(
        c"cuGraphInstantiate",
        c"cuGraphInstantiateWithFlags",
        12000
    ));
}

#[test]
fn enums_are_transparent_integers() {
    assert_eq!(CUresult::CUDA_SUCCESS.0, 0);
    assert_eq!(
        format!("{:?}", CUresult::CUDA_ERROR_INVALID_PTX),
        "CUDA_ERROR_INVALID_PTX"
    );
    assert_eq!(CUresult(123_456).name(), None);
    assert_eq!(format!("{:?}", CUresult(123_456)), "CUresult(123456)");
    assert_eq!(
        driver::CUCoredumpGenerationFlags::CU_COREDUMP_LOG_ONLY.0 as i64,
        i64::from(i32::MIN)
    );
}

#[test]
fn layouts_of_difficult_structs() {
    assert_eq!(size_of::<driver::CUlaunchAttributeValue>(), 64);
    assert_eq!(size_of::<driver::CUtensorMap>(), 128);
    assert_eq!(align_of::<driver::CUtensorMap>(), 128);
    assert_eq!(align_of::<driver::CUtensorMap_cuda12>(), 64);
    assert_eq!(size_of::<driver::CUgraphNodeParams>(), 256);
    assert_eq!(size_of::<Option<driver::PFN_cuInit>>(), size_of::<usize>());
    assert_eq!(size_of::<runtime::cudaLaunchAttributeValue>(), 64);
    assert_eq!(size_of::<runtime::cudaGraphNodeParams>(), 256);
    assert_eq!(align_of::<runtime::float4>(), 16);
    let zero = driver::CUDA_MEMCPY2D::default();
    assert!(zero.srcHost.is_null() && zero.Height == 0);
}

#[test]
fn constant_handles() {
    assert_eq!(driver::CU_STREAM_PER_THREAD.addr(), 2);
    assert_eq!(driver::CU_DEVICE_INVALID, -2);
    assert_eq!(nvrtc::nvrtcResult::NVRTC_SUCCESS.0, 0);
    assert_eq!(runtime::cudaStreamPerThread, driver::CU_STREAM_PER_THREAD);
    assert_eq!(runtime::cudaCpuDeviceId, -1);
}

#[test]
fn every_library_has_a_symbol_table() {
    for library in CudaLibrary::ALL {
        let table = cupyrite_sys::table(library);
        assert_eq!(table.library(), library);
        assert!(table.symbols().len() > 10, "{library:?}");
        let distinct: HashSet<_> = table.symbols().iter().map(|r| r.export).collect();
        let shared = table.symbols().len() - distinct.len();
        // The driver, runtime and NVML headers of CUDA 12 and 13 declare some symbols with different structs.
        assert!(
            shared == 0
                || matches!(
                    library,
                    CudaLibrary::Driver | CudaLibrary::Runtime | CudaLibrary::Nvml
                ),
            "{library:?}"
        );
    }
}

#[test]
fn names_replaced_or_hidden_by_headers() {
    // A macro after the declaration redirects callers to the second version.
    let close = &cufile::SYMBOLS[cufile::Symbol::cuFileDriverClose as usize];
    assert_eq!(close.export, c"cuFileDriverClose_v2");
    // Libraries do not export inline functions, and nvJitLink's internal names are not declared.
    let all = CudaLibrary::ALL.map(cupyrite_sys::table);
    for row in all.iter().flat_map(|t| t.symbols()) {
        let name = row.export.to_str().unwrap();
        assert!(
            !name.starts_with("__") && name != "cufileop_status_error",
            "{name}"
        );
    }
    // NVML's versions are separate functions, by their exported names.
    for name in [c"nvmlInit_v2", c"nvmlInit", c"nvmlDeviceGetMemoryInfo_v2"] {
        assert!(nvml::SYMBOLS.iter().any(|r| r.export == name), "{name:?}");
    }
}

#[test]
fn types_of_the_other_libraries() {
    // NVML's version words contain these sizes.
    assert_eq!(size_of::<nvml::nvmlMemory_v2_t>(), 40);
    assert_eq!(size_of::<nvml::nvmlPciInfo_t>(), 68);
    assert_eq!(nvml::nvmlReturn_t::NVML_ERROR_UNINITIALIZED.0, 1);
    // Unsigned enums and macros keep their sign.
    assert_eq!(
        nvml::nvmlClockLimitId_t::NVML_CLOCK_LIMIT_ID_RANGE_START.0,
        0xffff_ff00
    );
    assert_eq!(nvml::NVML_RUSD_POLL_ALL, u64::MAX);
    // A status of two words is returned in a register; the second word is the driver's enum.
    assert_eq!(size_of::<cufile::CUfileError_t>(), 8);
    let status = cufile::CUfileError_t {
        err: cufile::CUfileOpError::CU_FILE_CUDA_DRIVER_ERROR,
        cu_err: CUresult::CUDA_ERROR_INVALID_VALUE,
    };
    assert_eq!((status.err.0, status.cu_err.0), (5011, 1));
    assert_eq!(cufile::CU_FILE_P2P_FLAG_DMABUF.0, 4);
    assert_eq!(cudla::cudlaStatus::cudlaSuccess.0, 0);
    // Unions within unions, and pointers to C strings.
    assert_eq!(size_of::<cudla::cudlaModuleAttribute>(), 8);
}
