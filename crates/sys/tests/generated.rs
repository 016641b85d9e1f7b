//! The generated declarations: spot checks of what the generator could get wrong without a compiler noticing.

use std::collections::HashSet;
use std::mem::size_of;

use cupyrite_sys::driver::{self, CUresult, Symbol};
use cupyrite_sys::loader::PerThread;
use cupyrite_sys::nvrtc;

fn row(symbol: Symbol) -> (&'static str, &'static str, i32, PerThread) {
    let row = &driver::ROWS[symbol as usize];
    (
        row.name.to_str().unwrap(),
        row.export.to_str().unwrap(),
        row.version,
        row.per_thread,
    )
}

#[test]
fn rows_say_name_symbol_version_and_stream_variant() {
    assert_eq!(
        row(Symbol::cuMemAlloc),
        ("cuMemAlloc", "cuMemAlloc_v2", 3020, PerThread::None)
    );
    assert_eq!(
        row(Symbol::cuMemcpyHtoD),
        ("cuMemcpyHtoD", "cuMemcpyHtoD_v2", 3020, PerThread::Ptds)
    );
    assert_eq!(
        row(Symbol::cuLaunchKernel),
        ("cuLaunchKernel", "cuLaunchKernel", 4000, PerThread::Ptsz)
    );
    assert_eq!(
        row(Symbol::cuCtxCreate),
        ("cuCtxCreate", "cuCtxCreate_v4", 12050, PerThread::None)
    );
    assert_eq!(
        row(Symbol::cuCtxCreate_cuda12),
        ("cuCtxCreate", "cuCtxCreate_v2", 3020, PerThread::None)
    );
    assert_eq!(
        row(Symbol::cuGraphInstantiate),
        (
            "cuGraphInstantiateWithFlags",
            "cuGraphInstantiateWithFlags",
            11040,
            PerThread::None
        )
    );
}

#[test]
fn every_row_is_an_entry_point_and_every_stream_variant_exists() {
    let symbols: HashSet<&std::ffi::CStr> = driver::ENTRY_POINTS.iter().map(|e| e.symbol).collect();
    for row in &driver::ROWS {
        assert!(symbols.contains(row.export), "{:?}", row.export);
        if row.per_thread != PerThread::None {
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
fn enums_are_integers_with_names() {
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
fn the_known_traps_of_layout() {
    assert_eq!(size_of::<driver::CUlaunchAttributeValue>(), 64);
    assert_eq!(size_of::<driver::CUtensorMap>(), 128);
    assert_eq!(align_of::<driver::CUtensorMap>(), 128);
    assert_eq!(align_of::<driver::CUtensorMap_cuda12>(), 64);
    assert_eq!(size_of::<driver::CUgraphNodeParams>(), 256);
    assert_eq!(size_of::<Option<driver::PFN_cuInit>>(), size_of::<usize>());
    let zero = driver::CUDA_MEMCPY2D::default();
    assert!(zero.srcHost.is_null() && zero.Height == 0);
}

#[test]
fn handles_of_constants() {
    assert_eq!(driver::CU_STREAM_PER_THREAD.addr(), 2);
    assert_eq!(driver::CU_DEVICE_INVALID, -2);
    assert_eq!(nvrtc::nvrtcResult::NVRTC_SUCCESS.0, 0);
}
