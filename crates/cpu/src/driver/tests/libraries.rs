//! Libraries in several contexts.

use super::kernels::launch;
use super::{Session, ok};

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
