//! Libraries in several contexts, and the attributes of their kernels.

use super::super::Code;
use super::kernels::{PTX, launch};
use super::{Session, cu, ok};

/// A library of this PTX.
pub(super) fn library(ptx: &str) -> u64 {
    let text = std::ffi::CString::new(ptx).unwrap();
    let (mut lib, none) = (0u64, 0u64);
    let text = text.as_c_str();
    ok!(
        "cuLibraryLoadData",
        &mut lib,
        text,
        none,
        none,
        0,
        none,
        none,
        0
    );
    lib
}

#[test]
fn managed_variables_of_a_library_are_shared_by_all_contexts() {
    const PTX: &std::ffi::CStr = c".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .global .align 4 .u32 own = 1;\n\
        .visible .global .align 4 .attribute(.managed) .u32 total = 5;\n\
        .visible .entry add() {\n.reg .b32 %r<3>;\n\
        ld.global.u32 %r1, [own]; ld.global.u32 %r2, [total]; add.u32 %r2, %r2, %r1; st.global.u32 [total], %r2;\n\
        st.global.u32 [own], %r2; ret; }\n";
    let _s = Session::new();
    let (mut lib, mut kernel, mut total, mut size) = (0u64, 0u64, 0u64, 0u64);
    ok!(
        "cuLibraryLoadData",
        &mut lib,
        PTX,
        0u64,
        0u64,
        0,
        0u64,
        0u64,
        0
    );
    ok!("cuLibraryGetKernel", &mut kernel, lib, c"add");
    ok!("cuLibraryGetManaged", &mut total, &mut size, lib, c"total");
    assert_eq!(size, 4);
    assert_eq!(launch(kernel, 1, 1, 0, &[]), 0);
    // The kernels of several contexts run at the same time, and the addition is not atomic.
    ok!("cuCtxSynchronize");
    for _ in 0..2 {
        let _other = Session::new();
        let mut again = 0u64;
        ok!("cuLibraryGetManaged", &mut again, 0u64, lib, c"total");
        assert_eq!(again, total);
        ok!("cuLibraryGetGlobal", &mut again, 0u64, lib, c"total");
        assert_eq!(again, total);
        // The variable that is not managed has its initial value.
        assert_eq!(launch(kernel, 1, 1, 0, &[]), 0);
        ok!("cuCtxSynchronize");
    }
    let mut value = 0u32;
    ok!("cuMemcpyDtoH_v2", &mut value, total, 4);
    assert_eq!(value, 8);
    ok!("cuLibraryUnload", lib);
}

#[test]
fn attributes_of_a_function_override_those_of_its_kernel() {
    let _s = Session::new();
    let lib = library(PTX);
    let (mut kernel, mut f) = (0u64, 0u64);
    ok!("cuLibraryGetKernel", &mut kernel, lib, c"count");
    ok!("cuKernelGetFunction", &mut f, kernel);
    // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES and CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT.
    let get = |f: u64| {
        let (mut of_kernel, mut of_function) = ([0i32; 2], [0i32; 2]);
        for (i, id) in [8u32, 9].into_iter().enumerate() {
            ok!("cuKernelGetAttribute", &mut of_kernel[i], id, kernel, 0);
            ok!("cuFuncGetAttribute", &mut of_function[i], id, f);
        }
        (of_kernel, of_function)
    };
    // Launches with dynamic shared memory of this size.
    let launch_with = |f: u64, bytes: u32| {
        let null = 0u64;
        cu!(
            "cuLaunchKernel",
            f,
            1,
            1,
            1,
            1,
            1,
            1,
            bytes,
            null,
            null,
            null
        )
    };
    let initial = get(f).0;
    ok!("cuFuncSetAttribute", f, 8, 70_000);
    assert_eq!(get(f), (initial, [70_000, -1]));
    ok!("cuKernelSetAttribute", 8, 60_000, kernel, 0);
    ok!("cuKernelSetAttribute", 9, 30, kernel, 0);
    assert_eq!(get(f), ([60_000, 30], [70_000, 30]));
    assert_eq!(launch_with(f, 65_000), 0);
    assert_eq!(launch_with(kernel, 65_000), 0);
    // A default value that is set overrides the kernel's, too.
    ok!("cuFuncSetAttribute", f, 8, initial[0]);
    assert_eq!(get(f), ([60_000, 30], [initial[0], 30]));
    assert_eq!(launch_with(f, 55_000), Code::INVALID_VALUE.0);
    // The function of another context has the values of the kernel.
    let _other = Session::new();
    let mut g = 0u64;
    ok!("cuKernelGetFunction", &mut g, kernel);
    assert_eq!(get(g), ([60_000, 30], [60_000, 30]));
    assert_eq!(launch_with(g, 55_000), 0);
    ok!("cuCtxSynchronize");
    ok!("cuLibraryUnload", lib);
}
