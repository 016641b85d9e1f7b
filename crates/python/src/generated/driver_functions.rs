// Made by `cargo xtask codegen` from NVIDIA's headers and api/overlay/driver.toml. Do not edit.
//! The functions of `cuda.bindings.driver`.

use std::ffi::c_void;

use cupyrite_sys::driver as c;
use cupyrite_sys::driver::Symbol;
use cupyrite_sys::loader::Library;

#[allow(unused_imports)]
use crate::desc::{Conv, Count, Element, Function, Int, Len, Out, Output, Param, Special, Word};
#[allow(unused_imports)]
use crate::generated::ids::{class, enums};

unsafe fn call_qq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64) -> i32>(f);
        f(*w.add(0), *w.add(1))
    };
    i64::from(status)
}

unsafe fn call_q_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64) -> i32>(f);
        f(*w.add(0))
    };
    i64::from(status)
}

unsafe fn call_qqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u32) -> i32>(f);
        f(*w.add(0), *w.add(1), *w.add(2) as u32)
    };
    i64::from(status)
}

unsafe fn call_wq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u64) -> i32>(f);
        f(*w.add(0) as u32, *w.add(1))
    };
    i64::from(status)
}

unsafe fn call_wqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u64, u64) -> i32>(f);
        f(*w.add(0) as u32, *w.add(1), *w.add(2))
    };
    i64::from(status)
}

unsafe fn call_qqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u64) -> i32>(f);
        f(*w.add(0), *w.add(1), *w.add(2))
    };
    i64::from(status)
}

unsafe fn call_qw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32) -> i32>(f);
        f(*w.add(0), *w.add(1) as u32)
    };
    i64::from(status)
}

unsafe fn call_qqww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u32, u32) -> i32>(
            f,
        );
        f(*w.add(0), *w.add(1), *w.add(2) as u32, *w.add(3) as u32)
    };
    i64::from(status)
}

unsafe fn call_w(f: *const c_void, _w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> i32>(f);
        f()
    };
    i64::from(status)
}

unsafe fn call_w_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32) -> i32>(f);
        f(*w.add(0) as u32)
    };
    i64::from(status)
}

unsafe fn call_qwqqwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u64, u64, u32, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3),
            *w.add(4) as u32,
            *w.add(5),
        )
    };
    i64::from(status)
}

unsafe fn call_qqqqww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u32, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4) as u32,
            *w.add(5) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u32) -> i32>(f);
        f(*w.add(0), *w.add(1) as u32, *w.add(2) as u32)
    };
    i64::from(status)
}

unsafe fn call_wqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u64, u32) -> i32>(f);
        f(*w.add(0) as u32, *w.add(1), *w.add(2) as u32)
    };
    i64::from(status)
}

unsafe fn call_wwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u32, u64) -> i32>(f);
        f(*w.add(0) as u32, *w.add(1) as u32, *w.add(2))
    };
    i64::from(status)
}

unsafe fn call_qqwww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u32, u32, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2) as u32,
            *w.add(3) as u32,
            *w.add(4) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qwww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u32, u32) -> i32>(
            f,
        );
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2) as u32,
            *w.add(3) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_ww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u32) -> i32>(f);
        f(*w.add(0) as u32, *w.add(1) as u32)
    };
    i64::from(status)
}

unsafe fn call_wqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u64, u64, u64) -> i32>(
            f,
        );
        f(*w.add(0) as u32, *w.add(1), *w.add(2), *w.add(3))
    };
    i64::from(status)
}

unsafe fn call_qqqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u64, u32) -> i32>(
            f,
        );
        f(*w.add(0), *w.add(1), *w.add(2), *w.add(3) as u32)
    };
    i64::from(status)
}

unsafe fn call_q_cueglframe_st_q_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, c::CUeglFrame_st, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            std::ptr::with_exposed_provenance::<c::CUeglFrame_st>(*w.add(1) as usize).read(),
            *w.add(2),
        )
    };
    i64::from(status)
}

unsafe fn call_qqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u64, u64) -> i32>(
            f,
        );
        f(*w.add(0), *w.add(1), *w.add(2), *w.add(3))
    };
    i64::from(status)
}

unsafe fn call_qwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u64) -> i32>(f);
        f(*w.add(0), *w.add(1) as u32, *w.add(2))
    };
    i64::from(status)
}

unsafe fn call_qqwqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u32, u64, u64) -> i32,
        >(f);
        f(*w.add(0), *w.add(1), *w.add(2) as u32, *w.add(3), *w.add(4))
    };
    i64::from(status)
}

unsafe fn call_qqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64) -> i32,
        >(f);
        f(*w.add(0), *w.add(1), *w.add(2), *w.add(3), *w.add(4))
    };
    i64::from(status)
}

unsafe fn call_qqqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5),
        )
    };
    i64::from(status)
}

unsafe fn call_qqqww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u32, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3) as u32,
            *w.add(4) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_q_cuipceventhandle_st_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, c::CUipcEventHandle_st) -> i32,
        >(f);
        f(
            *w.add(0),
            std::ptr::with_exposed_provenance::<c::CUipcEventHandle_st>(*w.add(1) as usize).read(),
        )
    };
    i64::from(status)
}

unsafe fn call_q_cuipcmemhandle_st_w_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, c::CUipcMemHandle_st, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            std::ptr::with_exposed_provenance::<c::CUipcMemHandle_st>(*w.add(1) as usize).read(),
            *w.add(2) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qwqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u64, u32) -> i32>(
            f,
        );
        f(*w.add(0), *w.add(1) as u32, *w.add(2), *w.add(3) as u32)
    };
    i64::from(status)
}

unsafe fn call_wwqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u32, u64, u32) -> i32>(
            f,
        );
        f(
            *w.add(0) as u32,
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qwwwwwwwqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u32, u32, u32, u32, u32, u32, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2) as u32,
            *w.add(3) as u32,
            *w.add(4) as u32,
            *w.add(5) as u32,
            *w.add(6) as u32,
            *w.add(7) as u32,
            *w.add(8),
            *w.add(9),
        )
    };
    i64::from(status)
}

unsafe fn call_qwwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u32, u64) -> i32>(
            f,
        );
        f(*w.add(0), *w.add(1) as u32, *w.add(2) as u32, *w.add(3))
    };
    i64::from(status)
}

unsafe fn call_qwwwwwwwqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u32, u32, u32, u32, u32, u32, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2) as u32,
            *w.add(3) as u32,
            *w.add(4) as u32,
            *w.add(5) as u32,
            *w.add(6) as u32,
            *w.add(7) as u32,
            *w.add(8),
            *w.add(9),
            *w.add(10),
        )
    };
    i64::from(status)
}

unsafe fn call_qqqqwqqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u32, u64, u64, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4) as u32,
            *w.add(5),
            *w.add(6),
            *w.add(7) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qwqqqwqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u64, u64, u64, u32, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5) as u32,
            *w.add(6),
            *w.add(7),
        )
    };
    i64::from(status)
}

unsafe fn call_qwqwqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u64, u32, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3) as u32,
            *w.add(4),
            *w.add(5),
        )
    };
    i64::from(status)
}

unsafe fn call_wwqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u32, u32, u64, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0) as u32,
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5),
        )
    };
    i64::from(status)
}

unsafe fn call_wwqqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u32, u32, u64, u64, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0) as u32,
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5),
            *w.add(6),
        )
    };
    i64::from(status)
}

unsafe fn call_wwqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u32, u64, u64) -> i32>(
            f,
        );
        f(*w.add(0) as u32, *w.add(1) as u32, *w.add(2), *w.add(3))
    };
    i64::from(status)
}

unsafe fn call_qqw_cumemlocation_st_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u32, c::CUmemLocation_st) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2) as u32,
            std::ptr::with_exposed_provenance::<c::CUmemLocation_st>(*w.add(3) as usize).read(),
        )
    };
    i64::from(status)
}

unsafe fn call_qqqqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u32) -> i32,
        >(f);
        f(*w.add(0), *w.add(1), *w.add(2), *w.add(3), *w.add(4) as u32)
    };
    i64::from(status)
}

unsafe fn call_qqqqqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5),
            *w.add(6),
            *w.add(7),
        )
    };
    i64::from(status)
}

unsafe fn call_qqwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u32, u64) -> i32>(
            f,
        );
        f(*w.add(0), *w.add(1), *w.add(2) as u32, *w.add(3))
    };
    i64::from(status)
}

unsafe fn call_qqqwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u32, u64) -> i32,
        >(f);
        f(*w.add(0), *w.add(1), *w.add(2), *w.add(3) as u32, *w.add(4))
    };
    i64::from(status)
}

unsafe fn call_qq_cumemlocation_st_wq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, c::CUmemLocation_st, u32, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            std::ptr::with_exposed_provenance::<c::CUmemLocation_st>(*w.add(2) as usize).read(),
            *w.add(3) as u32,
            *w.add(4),
        )
    };
    i64::from(status)
}

unsafe fn call_qhq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u16, u64) -> i32>(f);
        f(*w.add(0), *w.add(1) as u16, *w.add(2))
    };
    i64::from(status)
}

unsafe fn call_qhqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u16, u64, u64) -> i32>(
            f,
        );
        f(*w.add(0), *w.add(1) as u16, *w.add(2), *w.add(3))
    };
    i64::from(status)
}

unsafe fn call_qqhqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u16, u64, u64) -> i32,
        >(f);
        f(*w.add(0), *w.add(1), *w.add(2) as u16, *w.add(3), *w.add(4))
    };
    i64::from(status)
}

unsafe fn call_qqhqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u16, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2) as u16,
            *w.add(3),
            *w.add(4),
            *w.add(5),
        )
    };
    i64::from(status)
}

unsafe fn call_qqwqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u32, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2) as u32,
            *w.add(3),
            *w.add(4),
            *w.add(5),
        )
    };
    i64::from(status)
}

unsafe fn call_qqbqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u8, u64, u64) -> i32,
        >(f);
        f(*w.add(0), *w.add(1), *w.add(2) as u8, *w.add(3), *w.add(4))
    };
    i64::from(status)
}

unsafe fn call_qqbqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u8, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2) as u8,
            *w.add(3),
            *w.add(4),
            *w.add(5),
        )
    };
    i64::from(status)
}

unsafe fn call_qwqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u64, u64) -> i32>(
            f,
        );
        f(*w.add(0), *w.add(1) as u32, *w.add(2), *w.add(3))
    };
    i64::from(status)
}

unsafe fn call_qbq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u8, u64) -> i32>(f);
        f(*w.add(0), *w.add(1) as u8, *w.add(2))
    };
    i64::from(status)
}

unsafe fn call_qbqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f =
            std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u8, u64, u64) -> i32>(f);
        f(*w.add(0), *w.add(1) as u8, *w.add(2), *w.add(3))
    };
    i64::from(status)
}

unsafe fn call_qwqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u64, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5),
        )
    };
    i64::from(status)
}

unsafe fn call_qwqqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u64, u64, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5),
            *w.add(6),
        )
    };
    i64::from(status)
}

unsafe fn call_qqwqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u32, u64, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2) as u32,
            *w.add(3),
            *w.add(4) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qqqqqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qqqqqww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64, u32, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5) as u32,
            *w.add(6) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qwf_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, f32) -> i32>(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            f32::from_bits(*w.add(2) as u32),
        )
    };
    i64::from(status)
}

unsafe fn call_qwqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u64, u64, u64) -> i32,
        >(f);
        f(*w.add(0), *w.add(1) as u32, *w.add(2), *w.add(3), *w.add(4))
    };
    i64::from(status)
}

unsafe fn call_qqqqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5),
            *w.add(6),
        )
    };
    i64::from(status)
}

unsafe fn call_qwwqqqqqwwqwwww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(
                u64,
                u32,
                u32,
                u64,
                u64,
                u64,
                u64,
                u64,
                u32,
                u32,
                u64,
                u32,
                u32,
                u32,
                u32,
            ) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2) as u32,
            *w.add(3),
            *w.add(4),
            *w.add(5),
            *w.add(6),
            *w.add(7),
            *w.add(8) as u32,
            *w.add(9) as u32,
            *w.add(10),
            *w.add(11) as u32,
            *w.add(12) as u32,
            *w.add(13) as u32,
            *w.add(14) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qwwqqqwwwwqwwwww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(
                u64,
                u32,
                u32,
                u64,
                u64,
                u64,
                u32,
                u32,
                u32,
                u32,
                u64,
                u32,
                u32,
                u32,
                u32,
                u32,
            ) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2) as u32,
            *w.add(3),
            *w.add(4),
            *w.add(5),
            *w.add(6) as u32,
            *w.add(7) as u32,
            *w.add(8) as u32,
            *w.add(9) as u32,
            *w.add(10),
            *w.add(11) as u32,
            *w.add(12) as u32,
            *w.add(13) as u32,
            *w.add(14) as u32,
            *w.add(15) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qwwqqqqqwwww_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u32, u64, u64, u64, u64, u64, u32, u32, u32, u32) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2) as u32,
            *w.add(3),
            *w.add(4),
            *w.add(5),
            *w.add(6),
            *w.add(7),
            *w.add(8) as u32,
            *w.add(9) as u32,
            *w.add(10) as u32,
            *w.add(11) as u32,
        )
    };
    i64::from(status)
}

unsafe fn call_qf_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, f32) -> i32>(f);
        f(*w.add(0), f32::from_bits(*w.add(1) as u32))
    };
    i64::from(status)
}

unsafe fn call_qff_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, f32, f32) -> i32>(f);
        f(
            *w.add(0),
            f32::from_bits(*w.add(1) as u32),
            f32::from_bits(*w.add(2) as u32),
        )
    };
    i64::from(status)
}

unsafe fn call_qwwwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    let status = unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u32, u32, u64) -> i32,
        >(f);
        f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2) as u32,
            *w.add(3) as u32,
            *w.add(4),
        )
    };
    i64::from(status)
}

unsafe fn nothing(_f: *const c_void, _w: *const u64) -> i64 {
    0
}

/// All functions, sorted by name.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "cuArray3DCreate",
        library: Library::Driver,
        symbol: Symbol::cuArray3DCreate as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "pAllocateArray",
            doc: "CUDA_ARRAY3D_DESCRIPTOR",
            conv: Conv::Struct(class::CUDA_ARRAY3D_DESCRIPTOR),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pHandle",
            doc: "CUarray",
            kind: Out::Handle(class::CUarray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuArray3DGetDescriptor",
        library: Library::Driver,
        symbol: Symbol::cuArray3DGetDescriptor as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hArray",
            doc: "CUarray",
            conv: Conv::Handle(class::CUarray, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pArrayDescriptor",
            doc: "CUDA_ARRAY3D_DESCRIPTOR",
            kind: Out::Struct(class::CUDA_ARRAY3D_DESCRIPTOR),
        }],
        special: Special::None,
    },
    Function {
        name: "cuArrayCreate",
        library: Library::Driver,
        symbol: Symbol::cuArrayCreate as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "pAllocateArray",
            doc: "CUDA_ARRAY_DESCRIPTOR",
            conv: Conv::Struct(class::CUDA_ARRAY_DESCRIPTOR),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pHandle",
            doc: "CUarray",
            kind: Out::Handle(class::CUarray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuArrayDestroy",
        library: Library::Driver,
        symbol: Symbol::cuArrayDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hArray",
            doc: "CUarray",
            conv: Conv::Handle(class::CUarray, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuArrayGetDescriptor",
        library: Library::Driver,
        symbol: Symbol::cuArrayGetDescriptor as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hArray",
            doc: "CUarray",
            conv: Conv::Handle(class::CUarray, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pArrayDescriptor",
            doc: "CUDA_ARRAY_DESCRIPTOR",
            kind: Out::Struct(class::CUDA_ARRAY_DESCRIPTOR),
        }],
        special: Special::None,
    },
    Function {
        name: "cuArrayGetMemoryRequirements",
        library: Library::Driver,
        symbol: Symbol::cuArrayGetMemoryRequirements as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "array",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "device",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "memoryRequirements",
            doc: "CUDA_ARRAY_MEMORY_REQUIREMENTS",
            kind: Out::Struct(class::CUDA_ARRAY_MEMORY_REQUIREMENTS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuArrayGetPlane",
        library: Library::Driver,
        symbol: Symbol::cuArrayGetPlane as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "planeIdx",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pPlaneArray",
            doc: "CUarray",
            kind: Out::Handle(class::CUarray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuArrayGetSparseProperties",
        library: Library::Driver,
        symbol: Symbol::cuArrayGetSparseProperties as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "array",
            doc: "CUarray",
            conv: Conv::Handle(class::CUarray, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "sparseProperties",
            doc: "CUDA_ARRAY_SPARSE_PROPERTIES",
            kind: Out::Struct(class::CUDA_ARRAY_SPARSE_PROPERTIES),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCheckpointOperationComplete",
        library: Library::Driver,
        symbol: Symbol::cuCheckpointOperationComplete as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "handle",
            doc: "CUcheckpointOperationHandle",
            conv: Conv::Handle(class::CUcheckpointOperationHandle, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCheckpointProcessCheckpoint",
        library: Library::Driver,
        symbol: Symbol::cuCheckpointProcessCheckpoint as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pid",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "args",
                doc: "CUcheckpointCheckpointArgs",
                conv: Conv::Struct(class::CUcheckpointCheckpointArgs),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCheckpointProcessGetRestoreThreadId",
        library: Library::Driver,
        symbol: Symbol::cuCheckpointProcessGetRestoreThreadId as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[Param {
            name: "pid",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "tid",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCheckpointProcessGetState",
        library: Library::Driver,
        symbol: Symbol::cuCheckpointProcessGetState as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[Param {
            name: "pid",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "state",
            doc: "CUprocessState",
            kind: Out::Enum(enums::CUprocessState),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCheckpointProcessLock",
        library: Library::Driver,
        symbol: Symbol::cuCheckpointProcessLock as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pid",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "args",
                doc: "CUcheckpointLockArgs",
                conv: Conv::Struct(class::CUcheckpointLockArgs),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCheckpointProcessRestore",
        library: Library::Driver,
        symbol: Symbol::cuCheckpointProcessRestore as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pid",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "args",
                doc: "CUcheckpointRestoreArgs",
                conv: Conv::Struct(class::CUcheckpointRestoreArgs),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCheckpointProcessUnlock",
        library: Library::Driver,
        symbol: Symbol::cuCheckpointProcessUnlock as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pid",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "args",
                doc: "CUcheckpointUnlockArgs",
                conv: Conv::Struct(class::CUcheckpointUnlockArgs),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCoredumpDeregisterCompleteCallback",
        library: Library::Driver,
        symbol: Symbol::cuCoredumpDeregisterCompleteCallback as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "callback",
            doc: "CUcoredumpCallbackHandle",
            conv: Conv::Handle(class::CUcoredumpCallbackHandle, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCoredumpDeregisterStartCallback",
        library: Library::Driver,
        symbol: Symbol::cuCoredumpDeregisterStartCallback as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "callback",
            doc: "CUcoredumpCallbackHandle",
            conv: Conv::Handle(class::CUcoredumpCallbackHandle, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCoredumpGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuCoredumpGetAttribute as u16,
        thunk: call_wqq_w,
        keep_gil: false,
        params: &[Param {
            name: "attrib",
            doc: "CUcoredumpSettings",
            conv: Conv::Enum(enums::CUcoredumpSettings),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0), Word::Null],
        results: &[Output {
            name: "",
            doc: "Any",
            kind: Out::VoidPtr,
        }],
        special: Special::CoredumpGet,
    },
    Function {
        name: "cuCoredumpGetAttributeGlobal",
        library: Library::Driver,
        symbol: Symbol::cuCoredumpGetAttributeGlobal as u16,
        thunk: call_wqq_w,
        keep_gil: false,
        params: &[Param {
            name: "attrib",
            doc: "CUcoredumpSettings",
            conv: Conv::Enum(enums::CUcoredumpSettings),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0), Word::Null],
        results: &[Output {
            name: "",
            doc: "Any",
            kind: Out::VoidPtr,
        }],
        special: Special::CoredumpGet,
    },
    Function {
        name: "cuCoredumpRegisterCompleteCallback",
        library: Library::Driver,
        symbol: Symbol::cuCoredumpRegisterCompleteCallback as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "callback",
                doc: "CUcoredumpStatusCallback",
                conv: Conv::Handle(class::CUcoredumpStatusCallback, Int::U64),
                default: None,
            },
            Param {
                name: "userData",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "callbackOut",
            doc: "CUcoredumpCallbackHandle",
            kind: Out::Handle(class::CUcoredumpCallbackHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCoredumpRegisterStartCallback",
        library: Library::Driver,
        symbol: Symbol::cuCoredumpRegisterStartCallback as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "callback",
                doc: "CUcoredumpStatusCallback",
                conv: Conv::Handle(class::CUcoredumpStatusCallback, Int::U64),
                default: None,
            },
            Param {
                name: "userData",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "callbackOut",
            doc: "CUcoredumpCallbackHandle",
            kind: Out::Handle(class::CUcoredumpCallbackHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCoredumpSetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuCoredumpSetAttribute as u16,
        thunk: call_wqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "attrib",
                doc: "CUcoredumpSettings",
                conv: Conv::Enum(enums::CUcoredumpSettings),
                default: None,
            },
            Param {
                name: "value",
                doc: "Any",
                conv: Conv::Attribute(enums::CUcoredumpSettings, 0),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Null],
        results: &[],
        special: Special::CoredumpSet,
    },
    Function {
        name: "cuCoredumpSetAttributeGlobal",
        library: Library::Driver,
        symbol: Symbol::cuCoredumpSetAttributeGlobal as u16,
        thunk: call_wqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "attrib",
                doc: "CUcoredumpSettings",
                conv: Conv::Enum(enums::CUcoredumpSettings),
                default: None,
            },
            Param {
                name: "value",
                doc: "Any",
                conv: Conv::Attribute(enums::CUcoredumpSettings, 0),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Null],
        results: &[],
        special: Special::CoredumpSet,
    },
    Function {
        name: "cuCtxAttach",
        library: Library::Driver,
        symbol: Symbol::cuCtxAttach as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "flags",
            doc: "unsigned int",
            conv: Conv::Int(Int::U32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pctx",
            doc: "CUcontext",
            kind: Out::Handle(class::CUcontext, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxCreate",
        library: Library::Driver,
        symbol: Symbol::cuCtxCreate as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "ctxCreateParams",
                doc: "CUctxCreateParams",
                conv: Conv::Struct(class::CUctxCreateParams),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "pctx",
            doc: "CUcontext",
            kind: Out::Handle(class::CUcontext, Int::U64),
        }],
        special: Special::CtxCreate,
    },
    Function {
        name: "cuCtxDestroy",
        library: Library::Driver,
        symbol: Symbol::cuCtxDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "ctx",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxDetach",
        library: Library::Driver,
        symbol: Symbol::cuCtxDetach as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "ctx",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxDisablePeerAccess",
        library: Library::Driver,
        symbol: Symbol::cuCtxDisablePeerAccess as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "peerContext",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxEnablePeerAccess",
        library: Library::Driver,
        symbol: Symbol::cuCtxEnablePeerAccess as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "peerContext",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxFromGreenCtx",
        library: Library::Driver,
        symbol: Symbol::cuCtxFromGreenCtx as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hCtx",
            doc: "CUgreenCtx",
            conv: Conv::Handle(class::CUgreenCtx, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pContext",
            doc: "CUcontext",
            kind: Out::Handle(class::CUcontext, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetApiVersion",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetApiVersion as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "ctx",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "version",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetCacheConfig",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetCacheConfig as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "pconfig",
            doc: "CUfunc_cache",
            kind: Out::Enum(enums::CUfunc_cache),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetCurrent",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetCurrent as u16,
        thunk: call_q_w,
        keep_gil: true,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "pctx",
            doc: "CUcontext",
            kind: Out::Handle(class::CUcontext, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetDevResource",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetDevResource as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hCtx",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUdevResourceType",
                conv: Conv::Enum(enums::CUdevResourceType),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Result(0), Word::Arg(1)],
        results: &[Output {
            name: "resource",
            doc: "CUdevResource",
            kind: Out::Struct(class::CUdevResource),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetDevice",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetDevice as u16,
        thunk: call_q_w,
        keep_gil: true,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "device",
            doc: "CUdevice",
            kind: Out::Handle(class::CUdevice, Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetDevice_v2",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetDevice_v2 as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "ctx",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "device",
            doc: "CUdevice",
            kind: Out::Handle(class::CUdevice, Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetExecAffinity",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetExecAffinity as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "typename",
            doc: "CUexecAffinityType",
            conv: Conv::Enum(enums::CUexecAffinityType),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pExecAffinity",
            doc: "CUexecAffinityParam",
            kind: Out::Struct(class::CUexecAffinityParam),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetFlags",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetFlags as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "flags",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetId",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetId as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "ctx",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "ctxId",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetLimit",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetLimit as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "limit",
            doc: "CUlimit",
            conv: Conv::Enum(enums::CUlimit),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pvalue",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetSharedMemConfig",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetSharedMemConfig as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "pConfig",
            doc: "CUsharedconfig",
            kind: Out::Enum(enums::CUsharedconfig),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxGetStreamPriorityRange",
        library: Library::Driver,
        symbol: Symbol::cuCtxGetStreamPriorityRange as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "leastPriority",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
            Output {
                name: "greatestPriority",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuCtxPopCurrent",
        library: Library::Driver,
        symbol: Symbol::cuCtxPopCurrent as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "pctx",
            doc: "CUcontext",
            kind: Out::Handle(class::CUcontext, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuCtxPushCurrent",
        library: Library::Driver,
        symbol: Symbol::cuCtxPushCurrent as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "ctx",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxRecordEvent",
        library: Library::Driver,
        symbol: Symbol::cuCtxRecordEvent as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hCtx",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "hEvent",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxResetPersistingL2Cache",
        library: Library::Driver,
        symbol: Symbol::cuCtxResetPersistingL2Cache as u16,
        thunk: call_w,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxSetCacheConfig",
        library: Library::Driver,
        symbol: Symbol::cuCtxSetCacheConfig as u16,
        thunk: call_w_w,
        keep_gil: false,
        params: &[Param {
            name: "config",
            doc: "CUfunc_cache",
            conv: Conv::Enum(enums::CUfunc_cache),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxSetCurrent",
        library: Library::Driver,
        symbol: Symbol::cuCtxSetCurrent as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "ctx",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxSetFlags",
        library: Library::Driver,
        symbol: Symbol::cuCtxSetFlags as u16,
        thunk: call_w_w,
        keep_gil: false,
        params: &[Param {
            name: "flags",
            doc: "unsigned int",
            conv: Conv::Int(Int::U32),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxSetLimit",
        library: Library::Driver,
        symbol: Symbol::cuCtxSetLimit as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "limit",
                doc: "CUlimit",
                conv: Conv::Enum(enums::CUlimit),
                default: None,
            },
            Param {
                name: "value",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxSetSharedMemConfig",
        library: Library::Driver,
        symbol: Symbol::cuCtxSetSharedMemConfig as u16,
        thunk: call_w_w,
        keep_gil: false,
        params: &[Param {
            name: "config",
            doc: "CUsharedconfig",
            conv: Conv::Enum(enums::CUsharedconfig),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxSynchronize",
        library: Library::Driver,
        symbol: Symbol::cuCtxSynchronize as u16,
        thunk: call_w,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxSynchronize_v2",
        library: Library::Driver,
        symbol: Symbol::cuCtxSynchronize_v2 as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "ctx",
            doc: "CUcontext",
            conv: Conv::Handle(class::CUcontext, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuCtxWaitEvent",
        library: Library::Driver,
        symbol: Symbol::cuCtxWaitEvent as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hCtx",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "hEvent",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDestroyExternalMemory",
        library: Library::Driver,
        symbol: Symbol::cuDestroyExternalMemory as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "extMem",
            doc: "CUexternalMemory",
            conv: Conv::Handle(class::CUexternalMemory, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDestroyExternalSemaphore",
        library: Library::Driver,
        symbol: Symbol::cuDestroyExternalSemaphore as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "extSem",
            doc: "CUexternalSemaphore",
            conv: Conv::Handle(class::CUexternalSemaphore, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDevResourceGenerateDesc",
        library: Library::Driver,
        symbol: Symbol::cuDevResourceGenerateDesc as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "resources",
                doc: "list[CUdevResource]",
                conv: Conv::List(
                    Element::Struct(class::CUdevResource, 144),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "nbResources",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "phDesc",
            doc: "CUdevResourceDesc",
            kind: Out::Handle(class::CUdevResourceDesc, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDevSmResourceSplit",
        library: Library::Driver,
        symbol: Symbol::cuDevSmResourceSplit as u16,
        thunk: call_qwqqwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "nbGroups",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "input_",
                doc: "CUdevResource",
                conv: Conv::Struct(class::CUdevResource),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "groupParams",
                doc: "list[CU_DEV_SM_RESOURCE_GROUP_PARAMS]",
                conv: Conv::List(
                    Element::Struct(class::CU_DEV_SM_RESOURCE_GROUP_PARAMS, 64),
                    Some(Count {
                        param: 0,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Result(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[
            Output {
                name: "result",
                doc: "list[CUdevResource]",
                kind: Out::List(Element::Struct(class::CUdevResource, 144), Len::Arg(0)),
            },
            Output {
                name: "remainder",
                doc: "CUdevResource",
                kind: Out::Struct(class::CUdevResource),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuDevSmResourceSplitByCount",
        library: Library::Driver,
        symbol: Symbol::cuDevSmResourceSplitByCount as u16,
        thunk: call_qqqqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "nbGroups",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "input_",
                doc: "CUdevResource",
                conv: Conv::Struct(class::CUdevResource),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "minCount",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::InOut(0, 1),
            Word::Arg(1),
            Word::Result(2),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[
            Output {
                name: "result",
                doc: "list[CUdevResource]",
                kind: Out::List(Element::Struct(class::CUdevResource, 144), Len::Arg(0)),
            },
            Output {
                name: "nbGroups",
                doc: "int",
                kind: Out::Int(Int::U32),
            },
            Output {
                name: "remainder",
                doc: "CUdevResource",
                kind: Out::Struct(class::CUdevResource),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuDeviceCanAccessPeer",
        library: Library::Driver,
        symbol: Symbol::cuDeviceCanAccessPeer as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "peerDev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "canAccessPeer",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceComputeCapability",
        library: Library::Driver,
        symbol: Symbol::cuDeviceComputeCapability as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0)],
        results: &[
            Output {
                name: "major",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
            Output {
                name: "minor",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGet",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGet as u16,
        thunk: call_qw_w,
        keep_gil: true,
        params: &[Param {
            name: "ordinal",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "device",
            doc: "CUdevice",
            kind: Out::Handle(class::CUdevice, Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetAttribute as u16,
        thunk: call_qww_w,
        keep_gil: true,
        params: &[
            Param {
                name: "attrib",
                doc: "CUdevice_attribute",
                conv: Conv::Enum(enums::CUdevice_attribute),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pi",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetByPCIBusId",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetByPCIBusId as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "pciBusId",
            doc: "bytes",
            conv: Conv::Bytes,
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "dev",
            doc: "CUdevice",
            kind: Out::Handle(class::CUdevice, Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetCliqueCount",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetCliqueCount as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "count",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetCliqueInfo",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetCliqueInfo as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::InOut(0, 1), Word::Arg(1)],
        results: &[
            Output {
                name: "cliqueInfo",
                doc: "list[CUcliqueInfo]",
                kind: Out::List(Element::Struct(class::CUcliqueInfo, 8), Len::Arg(0)),
            },
            Output {
                name: "count",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetCount",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetCount as u16,
        thunk: call_q_w,
        keep_gil: true,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "count",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetDefaultMemPool",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetDefaultMemPool as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pool_out",
            doc: "CUmemoryPool",
            kind: Out::Handle(class::CUmemoryPool, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetDevResource",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetDevResource as u16,
        thunk: call_wqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "device",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUdevResourceType",
                conv: Conv::Enum(enums::CUdevResourceType),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Result(0), Word::Arg(1)],
        results: &[Output {
            name: "resource",
            doc: "CUdevResource",
            kind: Out::Struct(class::CUdevResource),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetExecAffinitySupport",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetExecAffinitySupport as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "typename",
                doc: "CUexecAffinityType",
                conv: Conv::Enum(enums::CUexecAffinityType),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pi",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetFabricClusterUuid",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetFabricClusterUuid as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "uuid",
            doc: "CUuuid",
            kind: Out::Struct(class::CUuuid),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetGraphMemAttribute",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetGraphMemAttribute as u16,
        thunk: call_wwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "device",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUgraphMem_attribute",
                conv: Conv::Enum(enums::CUgraphMem_attribute),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "value",
            doc: "Any",
            kind: Out::Attribute(enums::CUgraphMem_attribute, 1),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetHostAtomicCapabilities",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetHostAtomicCapabilities as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "operations",
                doc: "list[CUatomicOperation]",
                conv: Conv::List(
                    Element::Enum(enums::CUatomicOperation),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "capabilities",
            doc: "list[unsigned int]",
            kind: Out::List(Element::Int(Int::U32), Len::Arg(1)),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetLuid",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetLuid as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0)],
        results: &[
            Output {
                name: "luid",
                doc: "bytes",
                kind: Out::Bytes(Len::Const(8), false),
            },
            Output {
                name: "deviceNodeMask",
                doc: "int",
                kind: Out::Int(Int::U32),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetMemPool",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetMemPool as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pool",
            doc: "CUmemoryPool",
            kind: Out::Handle(class::CUmemoryPool, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetName",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetName as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "length",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "name",
            doc: "bytes",
            kind: Out::Bytes(Len::Arg(0), false),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetNvSciSyncAttributes",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetNvSciSyncAttributes as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "nvSciSyncAttrList",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetP2PAtomicCapabilities",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetP2PAtomicCapabilities as u16,
        thunk: call_qqwww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "operations",
                doc: "list[CUatomicOperation]",
                conv: Conv::List(
                    Element::Enum(enums::CUatomicOperation),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "dstDevice",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "capabilities",
            doc: "list[unsigned int]",
            kind: Out::List(Element::Int(Int::U32), Len::Arg(1)),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetP2PAttribute",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetP2PAttribute as u16,
        thunk: call_qwww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "attrib",
                doc: "CUdevice_P2PAttribute",
                conv: Conv::Enum(enums::CUdevice_P2PAttribute),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "dstDevice",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "value",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetPCIBusId",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetPCIBusId as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "length",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pciBusId",
            doc: "bytes",
            kind: Out::Bytes(Len::Arg(0), false),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetProperties",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetProperties as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "prop",
            doc: "CUdevprop",
            kind: Out::Struct(class::CUdevprop),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetTexture1DLinearMaxWidth",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetTexture1DLinearMaxWidth as u16,
        thunk: call_qwww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pformat",
                doc: "CUarray_format",
                conv: Conv::Enum(enums::CUarray_format),
                default: None,
            },
            Param {
                name: "numChannels",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "maxWidthInElements",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGetUuid",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGetUuid as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "uuid",
            doc: "CUuuid",
            kind: Out::Struct(class::CUuuid),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceGraphMemTrim",
        library: Library::Driver,
        symbol: Symbol::cuDeviceGraphMemTrim as u16,
        thunk: call_w_w,
        keep_gil: false,
        params: &[Param {
            name: "device",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDevicePrimaryCtxGetState",
        library: Library::Driver,
        symbol: Symbol::cuDevicePrimaryCtxGetState as u16,
        thunk: call_wqq_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "flags",
                doc: "int",
                kind: Out::Int(Int::U32),
            },
            Output {
                name: "active",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuDevicePrimaryCtxRelease",
        library: Library::Driver,
        symbol: Symbol::cuDevicePrimaryCtxRelease as u16,
        thunk: call_w_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDevicePrimaryCtxReset",
        library: Library::Driver,
        symbol: Symbol::cuDevicePrimaryCtxReset as u16,
        thunk: call_w_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDevicePrimaryCtxRetain",
        library: Library::Driver,
        symbol: Symbol::cuDevicePrimaryCtxRetain as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pctx",
            doc: "CUcontext",
            kind: Out::Handle(class::CUcontext, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDevicePrimaryCtxSetFlags",
        library: Library::Driver,
        symbol: Symbol::cuDevicePrimaryCtxSetFlags as u16,
        thunk: call_ww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDeviceRegisterAsyncNotification",
        library: Library::Driver,
        symbol: Symbol::cuDeviceRegisterAsyncNotification as u16,
        thunk: call_wqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "device",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "callbackFunc",
                doc: "CUasyncCallback",
                conv: Conv::Handle(class::CUasyncCallback, Int::U64),
                default: None,
            },
            Param {
                name: "userData",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Result(0)],
        results: &[Output {
            name: "callback",
            doc: "CUasyncCallbackHandle",
            kind: Out::Handle(class::CUasyncCallbackHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceSetGraphMemAttribute",
        library: Library::Driver,
        symbol: Symbol::cuDeviceSetGraphMemAttribute as u16,
        thunk: call_wwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "device",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUgraphMem_attribute",
                conv: Conv::Enum(enums::CUgraphMem_attribute),
                default: None,
            },
            Param {
                name: "value",
                doc: "Any",
                conv: Conv::Attribute(enums::CUgraphMem_attribute, 1),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDeviceSetMemPool",
        library: Library::Driver,
        symbol: Symbol::cuDeviceSetMemPool as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDeviceTotalMem",
        library: Library::Driver,
        symbol: Symbol::cuDeviceTotalMem as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "dev",
            doc: "CUdevice",
            conv: Conv::Handle(class::CUdevice, Int::I32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "numbytes",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuDeviceUnregisterAsyncNotification",
        library: Library::Driver,
        symbol: Symbol::cuDeviceUnregisterAsyncNotification as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "device",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "callback",
                doc: "CUasyncCallbackHandle",
                conv: Conv::Handle(class::CUasyncCallbackHandle, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuDriverGetVersion",
        library: Library::Driver,
        symbol: Symbol::cuDriverGetVersion as u16,
        thunk: call_q_w,
        keep_gil: true,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "driverVersion",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamConsumerAcquireFrame",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamConsumerAcquireFrame as u16,
        thunk: call_qqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "conn",
                doc: "CUeglStreamConnection",
                conv: Conv::HandlePtr(class::CUeglStreamConnection, Int::U64),
                default: None,
            },
            Param {
                name: "pCudaResource",
                doc: "CUgraphicsResource",
                conv: Conv::HandlePtr(class::CUgraphicsResource, Int::U64),
                default: None,
            },
            Param {
                name: "pStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::HandlePtr(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "timeout",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::ArgAddress(0),
            Word::ArgAddress(1),
            Word::ArgAddress(2),
            Word::Arg(3),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamConsumerConnect",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamConsumerConnect as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "stream",
            doc: "EGLStreamKHR",
            conv: Conv::Handle(class::EGLStreamKHR, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "conn",
            doc: "CUeglStreamConnection",
            kind: Out::Handle(class::CUeglStreamConnection, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamConsumerConnectWithFlags",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamConsumerConnectWithFlags as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "stream",
                doc: "EGLStreamKHR",
                conv: Conv::Handle(class::EGLStreamKHR, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "conn",
            doc: "CUeglStreamConnection",
            kind: Out::Handle(class::CUeglStreamConnection, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamConsumerDisconnect",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamConsumerDisconnect as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "conn",
            doc: "CUeglStreamConnection",
            conv: Conv::HandlePtr(class::CUeglStreamConnection, Int::U64),
            default: None,
        }],
        words: &[Word::ArgAddress(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamConsumerReleaseFrame",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamConsumerReleaseFrame as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "conn",
                doc: "CUeglStreamConnection",
                conv: Conv::HandlePtr(class::CUeglStreamConnection, Int::U64),
                default: None,
            },
            Param {
                name: "pCudaResource",
                doc: "CUgraphicsResource",
                conv: Conv::Handle(class::CUgraphicsResource, Int::U64),
                default: None,
            },
            Param {
                name: "pStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::HandlePtr(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::ArgAddress(0), Word::Arg(1), Word::ArgAddress(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamProducerConnect",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamProducerConnect as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "stream",
                doc: "EGLStreamKHR",
                conv: Conv::Handle(class::EGLStreamKHR, Int::U64),
                default: None,
            },
            Param {
                name: "width",
                doc: "EGLint",
                conv: Conv::Handle(class::EGLint, Int::I32),
                default: None,
            },
            Param {
                name: "height",
                doc: "EGLint",
                conv: Conv::Handle(class::EGLint, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "conn",
            doc: "CUeglStreamConnection",
            kind: Out::Handle(class::CUeglStreamConnection, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamProducerDisconnect",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamProducerDisconnect as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "conn",
            doc: "CUeglStreamConnection",
            conv: Conv::HandlePtr(class::CUeglStreamConnection, Int::U64),
            default: None,
        }],
        words: &[Word::ArgAddress(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamProducerPresentFrame",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamProducerPresentFrame as u16,
        thunk: call_q_cueglframe_st_q_w,
        keep_gil: false,
        params: &[
            Param {
                name: "conn",
                doc: "CUeglStreamConnection",
                conv: Conv::HandlePtr(class::CUeglStreamConnection, Int::U64),
                default: None,
            },
            Param {
                name: "eglframe",
                doc: "CUeglFrame",
                conv: Conv::StructValue(class::CUeglFrame),
                default: None,
            },
            Param {
                name: "pStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::HandlePtr(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::ArgAddress(0), Word::Arg(1), Word::ArgAddress(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEGLStreamProducerReturnFrame",
        library: Library::Driver,
        symbol: Symbol::cuEGLStreamProducerReturnFrame as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "conn",
                doc: "CUeglStreamConnection",
                conv: Conv::HandlePtr(class::CUeglStreamConnection, Int::U64),
                default: None,
            },
            Param {
                name: "eglframe",
                doc: "CUeglFrame",
                conv: Conv::Struct(class::CUeglFrame),
                default: None,
            },
            Param {
                name: "pStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::HandlePtr(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::ArgAddress(0), Word::Arg(1), Word::ArgAddress(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEventCreate",
        library: Library::Driver,
        symbol: Symbol::cuEventCreate as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "Flags",
            doc: "unsigned int",
            conv: Conv::Int(Int::U32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "phEvent",
            doc: "CUevent",
            kind: Out::Handle(class::CUevent, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuEventCreateFromEGLSync",
        library: Library::Driver,
        symbol: Symbol::cuEventCreateFromEGLSync as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "eglSync",
                doc: "EGLSyncKHR",
                conv: Conv::Handle(class::EGLSyncKHR, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "phEvent",
            doc: "CUevent",
            kind: Out::Handle(class::CUevent, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuEventDestroy",
        library: Library::Driver,
        symbol: Symbol::cuEventDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hEvent",
            doc: "CUevent or cudaEvent_t",
            conv: Conv::Handle(class::CUevent, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEventElapsedTime",
        library: Library::Driver,
        symbol: Symbol::cuEventElapsedTime as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStart",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
            Param {
                name: "hEnd",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pMilliseconds",
            doc: "float",
            kind: Out::F32,
        }],
        special: Special::None,
    },
    Function {
        name: "cuEventQuery",
        library: Library::Driver,
        symbol: Symbol::cuEventQuery as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hEvent",
            doc: "CUevent or cudaEvent_t",
            conv: Conv::Handle(class::CUevent, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEventRecord",
        library: Library::Driver,
        symbol: Symbol::cuEventRecord as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hEvent",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEventRecordWithFlags",
        library: Library::Driver,
        symbol: Symbol::cuEventRecordWithFlags as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hEvent",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuEventSynchronize",
        library: Library::Driver,
        symbol: Symbol::cuEventSynchronize as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hEvent",
            doc: "CUevent or cudaEvent_t",
            conv: Conv::Handle(class::CUevent, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuExternalMemoryGetMappedBuffer",
        library: Library::Driver,
        symbol: Symbol::cuExternalMemoryGetMappedBuffer as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "extMem",
                doc: "CUexternalMemory",
                conv: Conv::Handle(class::CUexternalMemory, Int::U64),
                default: None,
            },
            Param {
                name: "bufferDesc",
                doc: "CUDA_EXTERNAL_MEMORY_BUFFER_DESC",
                conv: Conv::Struct(class::CUDA_EXTERNAL_MEMORY_BUFFER_DESC),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "devPtr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuExternalMemoryGetMappedMipmappedArray",
        library: Library::Driver,
        symbol: Symbol::cuExternalMemoryGetMappedMipmappedArray as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "extMem",
                doc: "CUexternalMemory",
                conv: Conv::Handle(class::CUexternalMemory, Int::U64),
                default: None,
            },
            Param {
                name: "mipmapDesc",
                doc: "CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC",
                conv: Conv::Struct(class::CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "mipmap",
            doc: "CUmipmappedArray",
            kind: Out::Handle(class::CUmipmappedArray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuFabricCpyBatchAsync",
        library: Library::Driver,
        symbol: Symbol::cuFabricCpyBatchAsync as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "numOps",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "opList",
                doc: "list[CUDA_FABRIC_COPY_BATCH_OP]",
                conv: Conv::List(
                    Element::Struct(class::CUDA_FABRIC_COPY_BATCH_OP, 64),
                    Some(Count {
                        param: 0,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuFlushGPUDirectRDMAWrites",
        library: Library::Driver,
        symbol: Symbol::cuFlushGPUDirectRDMAWrites as u16,
        thunk: call_ww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "target",
                doc: "CUflushGPUDirectRDMAWritesTarget",
                conv: Conv::Enum(enums::CUflushGPUDirectRDMAWritesTarget),
                default: None,
            },
            Param {
                name: "scope",
                doc: "CUflushGPUDirectRDMAWritesScope",
                conv: Conv::Enum(enums::CUflushGPUDirectRDMAWritesScope),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuFuncGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuFuncGetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "attrib",
                doc: "CUfunction_attribute",
                conv: Conv::Enum(enums::CUfunction_attribute),
                default: None,
            },
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pi",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuFuncGetModule",
        library: Library::Driver,
        symbol: Symbol::cuFuncGetModule as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hfunc",
            doc: "CUfunction",
            conv: Conv::Handle(class::CUfunction, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "hmod",
            doc: "CUmodule",
            kind: Out::Handle(class::CUmodule, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuFuncGetName",
        library: Library::Driver,
        symbol: Symbol::cuFuncGetName as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hfunc",
            doc: "CUfunction",
            conv: Conv::Handle(class::CUfunction, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "name",
            doc: "bytes",
            kind: Out::CString,
        }],
        special: Special::None,
    },
    Function {
        name: "cuFuncGetParamCount",
        library: Library::Driver,
        symbol: Symbol::cuFuncGetParamCount as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "func",
            doc: "CUfunction",
            conv: Conv::Handle(class::CUfunction, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "paramCount",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuFuncGetParamInfo",
        library: Library::Driver,
        symbol: Symbol::cuFuncGetParamInfo as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "func",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "paramIndex",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "paramOffset",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
            Output {
                name: "paramSize",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuFuncIsLoaded",
        library: Library::Driver,
        symbol: Symbol::cuFuncIsLoaded as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "function",
            doc: "CUfunction",
            conv: Conv::Handle(class::CUfunction, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "state",
            doc: "CUfunctionLoadingState",
            kind: Out::Enum(enums::CUfunctionLoadingState),
        }],
        special: Special::None,
    },
    Function {
        name: "cuFuncLoad",
        library: Library::Driver,
        symbol: Symbol::cuFuncLoad as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "function",
            doc: "CUfunction",
            conv: Conv::Handle(class::CUfunction, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuFuncSetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuFuncSetAttribute as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "attrib",
                doc: "CUfunction_attribute",
                conv: Conv::Enum(enums::CUfunction_attribute),
                default: None,
            },
            Param {
                name: "value",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuFuncSetBlockShape",
        library: Library::Driver,
        symbol: Symbol::cuFuncSetBlockShape as u16,
        thunk: call_qwww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "x",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "y",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "z",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuFuncSetCacheConfig",
        library: Library::Driver,
        symbol: Symbol::cuFuncSetCacheConfig as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "config",
                doc: "CUfunc_cache",
                conv: Conv::Enum(enums::CUfunc_cache),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuFuncSetSharedMemConfig",
        library: Library::Driver,
        symbol: Symbol::cuFuncSetSharedMemConfig as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "config",
                doc: "CUsharedconfig",
                conv: Conv::Enum(enums::CUsharedconfig),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuFuncSetSharedSize",
        library: Library::Driver,
        symbol: Symbol::cuFuncSetSharedSize as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "numbytes",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGLGetDevices",
        library: Library::Driver,
        symbol: Symbol::cuGLGetDevices as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "cudaDeviceCount",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "deviceList",
                doc: "CUGLDeviceList",
                conv: Conv::Enum(enums::CUGLDeviceList),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0), Word::Arg(1)],
        results: &[
            Output {
                name: "pCudaDeviceCount",
                doc: "int",
                kind: Out::Int(Int::U32),
            },
            Output {
                name: "pCudaDevices",
                doc: "list[CUdevice]",
                kind: Out::List(Element::Handle(class::CUdevice, Int::I32), Len::Arg(0)),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuGetErrorName",
        library: Library::Driver,
        symbol: Symbol::cuGetErrorName as u16,
        thunk: call_wq_w,
        keep_gil: true,
        params: &[Param {
            name: "error",
            doc: "CUresult",
            conv: Conv::Enum(enums::CUresult),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "pStr",
            doc: "bytes",
            kind: Out::CString,
        }],
        special: Special::None,
    },
    Function {
        name: "cuGetErrorString",
        library: Library::Driver,
        symbol: Symbol::cuGetErrorString as u16,
        thunk: call_wq_w,
        keep_gil: true,
        params: &[Param {
            name: "error",
            doc: "CUresult",
            conv: Conv::Enum(enums::CUresult),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "pStr",
            doc: "bytes",
            kind: Out::CString,
        }],
        special: Special::None,
    },
    Function {
        name: "cuGetExportTable",
        library: Library::Driver,
        symbol: Symbol::cuGetExportTable as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "pExportTableId",
            doc: "CUuuid",
            conv: Conv::Struct(class::CUuuid),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "ppExportTable",
            doc: "Any",
            kind: Out::VoidPtr,
        }],
        special: Special::None,
    },
    Function {
        name: "cuGetProcAddress",
        library: Library::Driver,
        symbol: Symbol::cuGetProcAddress as u16,
        thunk: call_qqwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "symbol",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
            Param {
                name: "cudaVersion",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Result(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Result(1),
        ],
        results: &[
            Output {
                name: "pfn",
                doc: "Any",
                kind: Out::VoidPtr,
            },
            Output {
                name: "symbolStatus",
                doc: "CUdriverProcAddressQueryResult",
                kind: Out::Enum(enums::CUdriverProcAddressQueryResult),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddBatchMemOpNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddBatchMemOpNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_BATCH_MEM_OP_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_BATCH_MEM_OP_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddChildGraphNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddChildGraphNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "childGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddDependencies",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddDependencies as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "from_",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 4,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "to",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 4,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "edgeData",
                doc: "list[CUgraphEdgeData]",
                conv: Conv::List(
                    Element::Struct(class::CUgraphEdgeData, 8),
                    Some(Count {
                        param: 4,
                        less: 0,
                        optional: true,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddEmptyNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddEmptyNode as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddEventRecordNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddEventRecordNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "event",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddEventWaitNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddEventWaitNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "event",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddExternalSemaphoresSignalNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddExternalSemaphoresSignalNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_EXT_SEM_SIGNAL_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddExternalSemaphoresWaitNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddExternalSemaphoresWaitNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_EXT_SEM_WAIT_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_EXT_SEM_WAIT_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddHostNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddHostNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_HOST_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_HOST_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddKernelNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddKernelNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_KERNEL_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_KERNEL_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddMemAllocNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddMemAllocNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_MEM_ALLOC_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_MEM_ALLOC_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddMemFreeNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddMemFreeNode as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "dptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddMemcpyNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddMemcpyNode as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "copyParams",
                doc: "CUDA_MEMCPY3D",
                conv: Conv::Struct(class::CUDA_MEMCPY3D),
                default: None,
            },
            Param {
                name: "ctx",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddMemsetNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddMemsetNode as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "memsetParams",
                doc: "CUDA_MEMSET_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_MEMSET_NODE_PARAMS),
                default: None,
            },
            Param {
                name: "ctx",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddNode as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "dependencyData",
                doc: "list[CUgraphEdgeData]",
                conv: Conv::List(
                    Element::Struct(class::CUgraphEdgeData, 8),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: true,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUgraphNodeParams",
                conv: Conv::Struct(class::CUgraphNodeParams),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphAddNode_v3",
        library: Library::Driver,
        symbol: Symbol::cuGraphAddNode_v3 as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "dependencyData",
                doc: "list[CUgraphEdgeData]",
                conv: Conv::List(
                    Element::Struct(class::CUgraphEdgeData, 8),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: true,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUgraphNodeParams",
                conv: Conv::Struct(class::CUgraphNodeParams),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[Output {
            name: "phGraphNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphBatchMemOpNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphBatchMemOpNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "nodeParams_out",
            doc: "CUDA_BATCH_MEM_OP_NODE_PARAMS",
            kind: Out::Struct(class::CUDA_BATCH_MEM_OP_NODE_PARAMS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphBatchMemOpNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphBatchMemOpNodeSetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_BATCH_MEM_OP_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_BATCH_MEM_OP_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphChildGraphNodeGetGraph",
        library: Library::Driver,
        symbol: Symbol::cuGraphChildGraphNodeGetGraph as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "phGraph",
            doc: "CUgraph",
            kind: Out::Handle(class::CUgraph, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphClone",
        library: Library::Driver,
        symbol: Symbol::cuGraphClone as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "originalGraph",
            doc: "CUgraph or cudaGraph_t",
            conv: Conv::Handle(class::CUgraph, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "phGraphClone",
            doc: "CUgraph",
            kind: Out::Handle(class::CUgraph, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphConditionalHandleCreate",
        library: Library::Driver,
        symbol: Symbol::cuGraphConditionalHandleCreate as u16,
        thunk: call_qqqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "ctx",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "defaultLaunchValue",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "pHandle_out",
            doc: "CUgraphConditionalHandle",
            kind: Out::Handle(class::CUgraphConditionalHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphCreate",
        library: Library::Driver,
        symbol: Symbol::cuGraphCreate as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "flags",
            doc: "unsigned int",
            conv: Conv::Int(Int::U32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "phGraph",
            doc: "CUgraph",
            kind: Out::Handle(class::CUgraph, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphDebugDotPrint",
        library: Library::Driver,
        symbol: Symbol::cuGraphDebugDotPrint as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "path",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphDestroy",
        library: Library::Driver,
        symbol: Symbol::cuGraphDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hGraph",
            doc: "CUgraph or cudaGraph_t",
            conv: Conv::Handle(class::CUgraph, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphDestroyNode",
        library: Library::Driver,
        symbol: Symbol::cuGraphDestroyNode as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphEventRecordNodeGetEvent",
        library: Library::Driver,
        symbol: Symbol::cuGraphEventRecordNodeGetEvent as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "event_out",
            doc: "CUevent",
            kind: Out::Handle(class::CUevent, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphEventRecordNodeSetEvent",
        library: Library::Driver,
        symbol: Symbol::cuGraphEventRecordNodeSetEvent as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "event",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphEventWaitNodeGetEvent",
        library: Library::Driver,
        symbol: Symbol::cuGraphEventWaitNodeGetEvent as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "event_out",
            doc: "CUevent",
            kind: Out::Handle(class::CUevent, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphEventWaitNodeSetEvent",
        library: Library::Driver,
        symbol: Symbol::cuGraphEventWaitNodeSetEvent as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "event",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecBatchMemOpNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecBatchMemOpNodeSetParams as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_BATCH_MEM_OP_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_BATCH_MEM_OP_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecChildGraphNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecChildGraphNodeSetParams as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "childGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecDestroy",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hGraphExec",
            doc: "CUgraphExec or cudaGraphExec_t",
            conv: Conv::Handle(class::CUgraphExec, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecEventRecordNodeSetEvent",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecEventRecordNodeSetEvent as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "event",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecEventWaitNodeSetEvent",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecEventWaitNodeSetEvent as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "event",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecExternalSemaphoresSignalNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecExternalSemaphoresSignalNodeSetParams as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_EXT_SEM_SIGNAL_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecExternalSemaphoresWaitNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecExternalSemaphoresWaitNodeSetParams as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_EXT_SEM_WAIT_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_EXT_SEM_WAIT_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecGetFlags",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecGetFlags as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hGraphExec",
            doc: "CUgraphExec or cudaGraphExec_t",
            conv: Conv::Handle(class::CUgraphExec, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "flags",
            doc: "cuuint64_t",
            kind: Out::Handle(class::cuuint64_t, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecGetId",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecGetId as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hGraphExec",
            doc: "CUgraphExec or cudaGraphExec_t",
            conv: Conv::Handle(class::CUgraphExec, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "graphId",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecHostNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecHostNodeSetParams as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_HOST_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_HOST_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecKernelNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecKernelNodeSetParams as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_KERNEL_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_KERNEL_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecMemcpyNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecMemcpyNodeSetParams as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "copyParams",
                doc: "CUDA_MEMCPY3D",
                conv: Conv::Struct(class::CUDA_MEMCPY3D),
                default: None,
            },
            Param {
                name: "ctx",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecMemsetNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecMemsetNodeSetParams as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "memsetParams",
                doc: "CUDA_MEMSET_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_MEMSET_NODE_PARAMS),
                default: None,
            },
            Param {
                name: "ctx",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecNodeSetParams as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUgraphNodeParams",
                conv: Conv::Struct(class::CUgraphNodeParams),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExecUpdate",
        library: Library::Driver,
        symbol: Symbol::cuGraphExecUpdate as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "resultInfo",
            doc: "CUgraphExecUpdateResultInfo",
            kind: Out::Struct(class::CUgraphExecUpdateResultInfo),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphExternalSemaphoresSignalNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExternalSemaphoresSignalNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "params_out",
            doc: "CUDA_EXT_SEM_SIGNAL_NODE_PARAMS",
            kind: Out::Struct(class::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphExternalSemaphoresSignalNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExternalSemaphoresSignalNodeSetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_EXT_SEM_SIGNAL_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphExternalSemaphoresWaitNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExternalSemaphoresWaitNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "params_out",
            doc: "CUDA_EXT_SEM_WAIT_NODE_PARAMS",
            kind: Out::Struct(class::CUDA_EXT_SEM_WAIT_NODE_PARAMS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphExternalSemaphoresWaitNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphExternalSemaphoresWaitNodeSetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_EXT_SEM_WAIT_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_EXT_SEM_WAIT_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphGetEdges",
        library: Library::Driver,
        symbol: Symbol::cuGraphGetEdges as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "numEdges",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: Some(0),
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Result(0),
            Word::Result(1),
            Word::Result(2),
            Word::InOut(1, 3),
        ],
        results: &[
            Output {
                name: "from",
                doc: "list[CUgraphNode]",
                kind: Out::List(Element::Handle(class::CUgraphNode, Int::U64), Len::Arg(1)),
            },
            Output {
                name: "to",
                doc: "list[CUgraphNode]",
                kind: Out::List(Element::Handle(class::CUgraphNode, Int::U64), Len::Arg(1)),
            },
            Output {
                name: "edgeData",
                doc: "list[CUgraphEdgeData]",
                kind: Out::List(Element::Struct(class::CUgraphEdgeData, 8), Len::Arg(1)),
            },
            Output {
                name: "numEdges",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuGraphGetId",
        library: Library::Driver,
        symbol: Symbol::cuGraphGetId as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hGraph",
            doc: "CUgraph or cudaGraph_t",
            conv: Conv::Handle(class::CUgraph, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "graphId",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphGetNodes",
        library: Library::Driver,
        symbol: Symbol::cuGraphGetNodes as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "numNodes",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: Some(0),
            },
        ],
        words: &[Word::Arg(0), Word::Result(0), Word::InOut(1, 1)],
        results: &[
            Output {
                name: "nodes",
                doc: "list[CUgraphNode]",
                kind: Out::List(Element::Handle(class::CUgraphNode, Int::U64), Len::Arg(1)),
            },
            Output {
                name: "numNodes",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuGraphGetRootNodes",
        library: Library::Driver,
        symbol: Symbol::cuGraphGetRootNodes as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "numRootNodes",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: Some(0),
            },
        ],
        words: &[Word::Arg(0), Word::Result(0), Word::InOut(1, 1)],
        results: &[
            Output {
                name: "rootNodes",
                doc: "list[CUgraphNode]",
                kind: Out::List(Element::Handle(class::CUgraphNode, Int::U64), Len::Arg(1)),
            },
            Output {
                name: "numRootNodes",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuGraphHostNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphHostNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "nodeParams",
            doc: "CUDA_HOST_NODE_PARAMS",
            kind: Out::Struct(class::CUDA_HOST_NODE_PARAMS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphHostNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphHostNodeSetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_HOST_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_HOST_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphInstantiate",
        library: Library::Driver,
        symbol: Symbol::cuGraphInstantiate as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "phGraphExec",
            doc: "CUgraphExec",
            kind: Out::Handle(class::CUgraphExec, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphInstantiateWithParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphInstantiateWithParams as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "instantiateParams",
                doc: "CUDA_GRAPH_INSTANTIATE_PARAMS",
                conv: Conv::Struct(class::CUDA_GRAPH_INSTANTIATE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "phGraphExec",
            doc: "CUgraphExec",
            kind: Out::Handle(class::CUgraphExec, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphKernelNodeCopyAttributes",
        library: Library::Driver,
        symbol: Symbol::cuGraphKernelNodeCopyAttributes as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dst",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "src",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphKernelNodeGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuGraphKernelNodeGetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUkernelNodeAttrID",
                conv: Conv::Enum(enums::CUkernelNodeAttrID),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "value_out",
            doc: "CUkernelNodeAttrValue",
            kind: Out::Struct(class::CUkernelNodeAttrValue),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphKernelNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphKernelNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "nodeParams",
            doc: "CUDA_KERNEL_NODE_PARAMS",
            kind: Out::Struct(class::CUDA_KERNEL_NODE_PARAMS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphKernelNodeSetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuGraphKernelNodeSetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUkernelNodeAttrID",
                conv: Conv::Enum(enums::CUkernelNodeAttrID),
                default: None,
            },
            Param {
                name: "value",
                doc: "CUkernelNodeAttrValue",
                conv: Conv::Struct(class::CUkernelNodeAttrValue),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphKernelNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphKernelNodeSetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_KERNEL_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_KERNEL_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphLaunch",
        library: Library::Driver,
        symbol: Symbol::cuGraphLaunch as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphMemAllocNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphMemAllocNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "params_out",
            doc: "CUDA_MEM_ALLOC_NODE_PARAMS",
            kind: Out::Struct(class::CUDA_MEM_ALLOC_NODE_PARAMS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphMemFreeNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphMemFreeNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "dptr_out",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphMemcpyNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphMemcpyNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "nodeParams",
            doc: "CUDA_MEMCPY3D",
            kind: Out::Struct(class::CUDA_MEMCPY3D),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphMemcpyNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphMemcpyNodeSetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_MEMCPY3D",
                conv: Conv::Struct(class::CUDA_MEMCPY3D),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphMemsetNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphMemsetNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "nodeParams",
            doc: "CUDA_MEMSET_NODE_PARAMS",
            kind: Out::Struct(class::CUDA_MEMSET_NODE_PARAMS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphMemsetNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphMemsetNodeSetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUDA_MEMSET_NODE_PARAMS",
                conv: Conv::Struct(class::CUDA_MEMSET_NODE_PARAMS),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeFindInClone",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeFindInClone as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hOriginalNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "hClonedGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "phNode",
            doc: "CUgraphNode",
            kind: Out::Handle(class::CUgraphNode, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeGetContainingGraph",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeGetContainingGraph as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "phGraph",
            doc: "CUgraph",
            kind: Out::Handle(class::CUgraph, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeGetDependencies",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeGetDependencies as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: Some(0),
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Result(0),
            Word::Result(1),
            Word::InOut(1, 2),
        ],
        results: &[
            Output {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                kind: Out::List(Element::Handle(class::CUgraphNode, Int::U64), Len::Arg(1)),
            },
            Output {
                name: "edgeData",
                doc: "list[CUgraphEdgeData]",
                kind: Out::List(Element::Struct(class::CUgraphEdgeData, 8), Len::Arg(1)),
            },
            Output {
                name: "numDependencies",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeGetDependentNodes",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeGetDependentNodes as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "numDependentNodes",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: Some(0),
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Result(0),
            Word::Result(1),
            Word::InOut(1, 2),
        ],
        results: &[
            Output {
                name: "dependentNodes",
                doc: "list[CUgraphNode]",
                kind: Out::List(Element::Handle(class::CUgraphNode, Int::U64), Len::Arg(1)),
            },
            Output {
                name: "edgeData",
                doc: "list[CUgraphEdgeData]",
                kind: Out::List(Element::Struct(class::CUgraphEdgeData, 8), Len::Arg(1)),
            },
            Output {
                name: "numDependentNodes",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeGetEnabled",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeGetEnabled as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "isEnabled",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeGetLocalId",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeGetLocalId as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "nodeId",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeGetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeGetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "nodeParams",
            doc: "CUgraphNodeParams",
            kind: Out::Struct(class::CUgraphNodeParams),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeGetToolsId",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeGetToolsId as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "toolsNodeId",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeGetType",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeGetType as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hNode",
            doc: "CUgraphNode or cudaGraphNode_t",
            conv: Conv::Handle(class::CUgraphNode, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "typename",
            doc: "CUgraphNodeType",
            kind: Out::Enum(enums::CUgraphNodeType),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeSetEnabled",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeSetEnabled as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "isEnabled",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeSetParams",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeSetParams as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUgraphNodeParams",
                conv: Conv::Struct(class::CUgraphNodeParams),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphNodeSetParams_v2",
        library: Library::Driver,
        symbol: Symbol::cuGraphNodeSetParams_v2 as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hNode",
                doc: "CUgraphNode or cudaGraphNode_t",
                conv: Conv::Handle(class::CUgraphNode, Int::U64),
                default: None,
            },
            Param {
                name: "nodeParams",
                doc: "CUgraphNodeParams",
                conv: Conv::Struct(class::CUgraphNodeParams),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphReleaseUserObject",
        library: Library::Driver,
        symbol: Symbol::cuGraphReleaseUserObject as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "graph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "object",
                doc: "CUuserObject",
                conv: Conv::Handle(class::CUuserObject, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphRemoveDependencies",
        library: Library::Driver,
        symbol: Symbol::cuGraphRemoveDependencies as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "from_",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 4,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "to",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 4,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "edgeData",
                doc: "list[CUgraphEdgeData]",
                conv: Conv::List(
                    Element::Struct(class::CUgraphEdgeData, 8),
                    Some(Count {
                        param: 4,
                        less: 0,
                        optional: true,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphRetainUserObject",
        library: Library::Driver,
        symbol: Symbol::cuGraphRetainUserObject as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "graph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "object",
                doc: "CUuserObject",
                conv: Conv::Handle(class::CUuserObject, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphUpload",
        library: Library::Driver,
        symbol: Symbol::cuGraphUpload as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hGraphExec",
                doc: "CUgraphExec or cudaGraphExec_t",
                conv: Conv::Handle(class::CUgraphExec, Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsEGLRegisterImage",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsEGLRegisterImage as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "image",
                doc: "EGLImageKHR",
                conv: Conv::Handle(class::EGLImageKHR, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pCudaResource",
            doc: "CUgraphicsResource",
            kind: Out::Handle(class::CUgraphicsResource, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsGLRegisterBuffer",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsGLRegisterBuffer as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "buffer",
                doc: "GLuint",
                conv: Conv::Handle(class::GLuint, Int::U32),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pCudaResource",
            doc: "CUgraphicsResource",
            kind: Out::Handle(class::CUgraphicsResource, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsGLRegisterImage",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsGLRegisterImage as u16,
        thunk: call_qwww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "image",
                doc: "GLuint",
                conv: Conv::Handle(class::GLuint, Int::U32),
                default: None,
            },
            Param {
                name: "target",
                doc: "GLenum",
                conv: Conv::Handle(class::GLenum, Int::U32),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "pCudaResource",
            doc: "CUgraphicsResource",
            kind: Out::Handle(class::CUgraphicsResource, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsMapResources",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsMapResources as u16,
        thunk: call_wqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "resources",
                doc: "CUgraphicsResource",
                conv: Conv::HandleArray(class::CUgraphicsResource, Int::U64, 0),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::ArgAddress(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsResourceGetMappedEglFrame",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsResourceGetMappedEglFrame as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "resource",
                doc: "CUgraphicsResource",
                conv: Conv::Handle(class::CUgraphicsResource, Int::U64),
                default: None,
            },
            Param {
                name: "index",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "mipLevel",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "eglFrame",
            doc: "CUeglFrame",
            kind: Out::Struct(class::CUeglFrame),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsResourceGetMappedMipmappedArray",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsResourceGetMappedMipmappedArray as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "resource",
            doc: "CUgraphicsResource",
            conv: Conv::Handle(class::CUgraphicsResource, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pMipmappedArray",
            doc: "CUmipmappedArray",
            kind: Out::Handle(class::CUmipmappedArray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsResourceGetMappedPointer",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsResourceGetMappedPointer as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[Param {
            name: "resource",
            doc: "CUgraphicsResource",
            conv: Conv::Handle(class::CUgraphicsResource, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0)],
        results: &[
            Output {
                name: "pDevPtr",
                doc: "CUdeviceptr",
                kind: Out::Handle(class::CUdeviceptr, Int::U64),
            },
            Output {
                name: "pSize",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsResourceSetMapFlags",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsResourceSetMapFlags as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "resource",
                doc: "CUgraphicsResource",
                conv: Conv::Handle(class::CUgraphicsResource, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsSubResourceGetMappedArray",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsSubResourceGetMappedArray as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "resource",
                doc: "CUgraphicsResource",
                conv: Conv::Handle(class::CUgraphicsResource, Int::U64),
                default: None,
            },
            Param {
                name: "arrayIndex",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "mipLevel",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "pArray",
            doc: "CUarray",
            kind: Out::Handle(class::CUarray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsUnmapResources",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsUnmapResources as u16,
        thunk: call_wqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "resources",
                doc: "CUgraphicsResource",
                conv: Conv::HandleArray(class::CUgraphicsResource, Int::U64, 0),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::ArgAddress(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsUnregisterResource",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsUnregisterResource as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "resource",
            doc: "CUgraphicsResource",
            conv: Conv::Handle(class::CUgraphicsResource, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsVDPAURegisterOutputSurface",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsVDPAURegisterOutputSurface as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "vdpSurface",
                doc: "VdpOutputSurface",
                conv: Conv::Handle(class::VdpOutputSurface, Int::U32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pCudaResource",
            doc: "CUgraphicsResource",
            kind: Out::Handle(class::CUgraphicsResource, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGraphicsVDPAURegisterVideoSurface",
        library: Library::Driver,
        symbol: Symbol::cuGraphicsVDPAURegisterVideoSurface as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "vdpSurface",
                doc: "VdpVideoSurface",
                conv: Conv::Handle(class::VdpVideoSurface, Int::U32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pCudaResource",
            doc: "CUgraphicsResource",
            kind: Out::Handle(class::CUgraphicsResource, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGreenCtxCreate",
        library: Library::Driver,
        symbol: Symbol::cuGreenCtxCreate as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "desc",
                doc: "CUdevResourceDesc",
                conv: Conv::Handle(class::CUdevResourceDesc, Int::U64),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "phCtx",
            doc: "CUgreenCtx",
            kind: Out::Handle(class::CUgreenCtx, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGreenCtxDestroy",
        library: Library::Driver,
        symbol: Symbol::cuGreenCtxDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hCtx",
            doc: "CUgreenCtx",
            conv: Conv::Handle(class::CUgreenCtx, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGreenCtxGetDevResource",
        library: Library::Driver,
        symbol: Symbol::cuGreenCtxGetDevResource as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hCtx",
                doc: "CUgreenCtx",
                conv: Conv::Handle(class::CUgreenCtx, Int::U64),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUdevResourceType",
                conv: Conv::Enum(enums::CUdevResourceType),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Result(0), Word::Arg(1)],
        results: &[Output {
            name: "resource",
            doc: "CUdevResource",
            kind: Out::Struct(class::CUdevResource),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGreenCtxGetId",
        library: Library::Driver,
        symbol: Symbol::cuGreenCtxGetId as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "greenCtx",
            doc: "CUgreenCtx",
            conv: Conv::Handle(class::CUgreenCtx, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "greenCtxId",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGreenCtxRecordEvent",
        library: Library::Driver,
        symbol: Symbol::cuGreenCtxRecordEvent as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hCtx",
                doc: "CUgreenCtx",
                conv: Conv::Handle(class::CUgreenCtx, Int::U64),
                default: None,
            },
            Param {
                name: "hEvent",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuGreenCtxStreamCreate",
        library: Library::Driver,
        symbol: Symbol::cuGreenCtxStreamCreate as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "greenCtx",
                doc: "CUgreenCtx",
                conv: Conv::Handle(class::CUgreenCtx, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "priority",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "phStream",
            doc: "CUstream",
            kind: Out::Handle(class::CUstream, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuGreenCtxWaitEvent",
        library: Library::Driver,
        symbol: Symbol::cuGreenCtxWaitEvent as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hCtx",
                doc: "CUgreenCtx",
                conv: Conv::Handle(class::CUgreenCtx, Int::U64),
                default: None,
            },
            Param {
                name: "hEvent",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuImportExternalMemory",
        library: Library::Driver,
        symbol: Symbol::cuImportExternalMemory as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "memHandleDesc",
            doc: "CUDA_EXTERNAL_MEMORY_HANDLE_DESC",
            conv: Conv::Struct(class::CUDA_EXTERNAL_MEMORY_HANDLE_DESC),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "extMem_out",
            doc: "CUexternalMemory",
            kind: Out::Handle(class::CUexternalMemory, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuImportExternalSemaphore",
        library: Library::Driver,
        symbol: Symbol::cuImportExternalSemaphore as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "semHandleDesc",
            doc: "CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC",
            conv: Conv::Struct(class::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "extSem_out",
            doc: "CUexternalSemaphore",
            kind: Out::Handle(class::CUexternalSemaphore, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuInit",
        library: Library::Driver,
        symbol: Symbol::cuInit as u16,
        thunk: call_w_w,
        keep_gil: false,
        params: &[Param {
            name: "Flags",
            doc: "unsigned int",
            conv: Conv::Int(Int::U32),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuIpcCloseMemHandle",
        library: Library::Driver,
        symbol: Symbol::cuIpcCloseMemHandle as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "dptr",
            doc: "CUdeviceptr",
            conv: Conv::Handle(class::CUdeviceptr, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuIpcGetEventHandle",
        library: Library::Driver,
        symbol: Symbol::cuIpcGetEventHandle as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "event",
            doc: "CUevent or cudaEvent_t",
            conv: Conv::Handle(class::CUevent, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pHandle",
            doc: "CUipcEventHandle",
            kind: Out::Struct(class::CUipcEventHandle),
        }],
        special: Special::None,
    },
    Function {
        name: "cuIpcGetMemHandle",
        library: Library::Driver,
        symbol: Symbol::cuIpcGetMemHandle as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "dptr",
            doc: "CUdeviceptr",
            conv: Conv::Handle(class::CUdeviceptr, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pHandle",
            doc: "CUipcMemHandle",
            kind: Out::Struct(class::CUipcMemHandle),
        }],
        special: Special::None,
    },
    Function {
        name: "cuIpcOpenEventHandle",
        library: Library::Driver,
        symbol: Symbol::cuIpcOpenEventHandle as u16,
        thunk: call_q_cuipceventhandle_st_w,
        keep_gil: false,
        params: &[Param {
            name: "handle",
            doc: "CUipcEventHandle",
            conv: Conv::StructValue(class::CUipcEventHandle),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "phEvent",
            doc: "CUevent",
            kind: Out::Handle(class::CUevent, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuIpcOpenMemHandle",
        library: Library::Driver,
        symbol: Symbol::cuIpcOpenMemHandle as u16,
        thunk: call_q_cuipcmemhandle_st_w_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "CUipcMemHandle",
                conv: Conv::StructValue(class::CUipcMemHandle),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pdptr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuKernelGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuKernelGetAttribute as u16,
        thunk: call_qwqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "attrib",
                doc: "CUfunction_attribute",
                conv: Conv::Enum(enums::CUfunction_attribute),
                default: None,
            },
            Param {
                name: "kernel",
                doc: "CUkernel",
                conv: Conv::Handle(class::CUkernel, Int::U64),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "pi",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuKernelGetFunction",
        library: Library::Driver,
        symbol: Symbol::cuKernelGetFunction as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "kernel",
            doc: "CUkernel",
            conv: Conv::Handle(class::CUkernel, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pFunc",
            doc: "CUfunction",
            kind: Out::Handle(class::CUfunction, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuKernelGetLibrary",
        library: Library::Driver,
        symbol: Symbol::cuKernelGetLibrary as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "kernel",
            doc: "CUkernel",
            conv: Conv::Handle(class::CUkernel, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pLib",
            doc: "CUlibrary",
            kind: Out::Handle(class::CUlibrary, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuKernelGetName",
        library: Library::Driver,
        symbol: Symbol::cuKernelGetName as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hfunc",
            doc: "CUkernel",
            conv: Conv::Handle(class::CUkernel, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "name",
            doc: "bytes",
            kind: Out::CString,
        }],
        special: Special::None,
    },
    Function {
        name: "cuKernelGetParamCount",
        library: Library::Driver,
        symbol: Symbol::cuKernelGetParamCount as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "kernel",
            doc: "CUkernel",
            conv: Conv::Handle(class::CUkernel, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "paramCount",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuKernelGetParamInfo",
        library: Library::Driver,
        symbol: Symbol::cuKernelGetParamInfo as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "kernel",
                doc: "CUkernel",
                conv: Conv::Handle(class::CUkernel, Int::U64),
                default: None,
            },
            Param {
                name: "paramIndex",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "paramOffset",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
            Output {
                name: "paramSize",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuKernelSetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuKernelSetAttribute as u16,
        thunk: call_wwqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "attrib",
                doc: "CUfunction_attribute",
                conv: Conv::Enum(enums::CUfunction_attribute),
                default: None,
            },
            Param {
                name: "val",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "kernel",
                doc: "CUkernel",
                conv: Conv::Handle(class::CUkernel, Int::U64),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuKernelSetCacheConfig",
        library: Library::Driver,
        symbol: Symbol::cuKernelSetCacheConfig as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "kernel",
                doc: "CUkernel",
                conv: Conv::Handle(class::CUkernel, Int::U64),
                default: None,
            },
            Param {
                name: "config",
                doc: "CUfunc_cache",
                conv: Conv::Enum(enums::CUfunc_cache),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunch",
        library: Library::Driver,
        symbol: Symbol::cuLaunch as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "f",
            doc: "CUfunction",
            conv: Conv::Handle(class::CUfunction, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunchCooperativeKernel",
        library: Library::Driver,
        symbol: Symbol::cuLaunchCooperativeKernel as u16,
        thunk: call_qwwwwwwwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "f",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "gridDimX",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "gridDimY",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "gridDimZ",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "blockDimX",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "blockDimY",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "blockDimZ",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "sharedMemBytes",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "kernelParams",
                doc: "Any",
                conv: Conv::KernelParams,
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
            Word::Arg(8),
            Word::Arg(9),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunchCooperativeKernelMultiDevice",
        library: Library::Driver,
        symbol: Symbol::cuLaunchCooperativeKernelMultiDevice as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "launchParamsList",
                doc: "list[CUDA_LAUNCH_PARAMS]",
                conv: Conv::List(
                    Element::Struct(class::CUDA_LAUNCH_PARAMS, 56),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDevices",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunchGrid",
        library: Library::Driver,
        symbol: Symbol::cuLaunchGrid as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "f",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "grid_width",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "grid_height",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunchGridAsync",
        library: Library::Driver,
        symbol: Symbol::cuLaunchGridAsync as u16,
        thunk: call_qwwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "f",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "grid_width",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "grid_height",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunchHostFunc",
        library: Library::Driver,
        symbol: Symbol::cuLaunchHostFunc as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "fn",
                doc: "CUhostFn",
                conv: Conv::Handle(class::CUhostFn, Int::U64),
                default: None,
            },
            Param {
                name: "userData",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunchHostFunc_v2",
        library: Library::Driver,
        symbol: Symbol::cuLaunchHostFunc_v2 as u16,
        thunk: call_qqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "fn",
                doc: "CUhostFn",
                conv: Conv::Handle(class::CUhostFn, Int::U64),
                default: None,
            },
            Param {
                name: "userData",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "syncMode",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunchKernel",
        library: Library::Driver,
        symbol: Symbol::cuLaunchKernel as u16,
        thunk: call_qwwwwwwwqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "f",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "gridDimX",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "gridDimY",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "gridDimZ",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "blockDimX",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "blockDimY",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "blockDimZ",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "sharedMemBytes",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "kernelParams",
                doc: "Any",
                conv: Conv::KernelParams,
                default: None,
            },
            Param {
                name: "extra",
                doc: "list[Any]",
                conv: Conv::VoidPtrPtr,
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
            Word::Arg(8),
            Word::Arg(9),
            Word::Arg(10),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLaunchKernelEx",
        library: Library::Driver,
        symbol: Symbol::cuLaunchKernelEx as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "config",
                doc: "CUlaunchConfig",
                conv: Conv::Struct(class::CUlaunchConfig),
                default: None,
            },
            Param {
                name: "f",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "kernelParams",
                doc: "Any",
                conv: Conv::KernelParams,
                default: None,
            },
            Param {
                name: "extra",
                doc: "list[Any]",
                conv: Conv::VoidPtrPtr,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLibraryEnumerateKernels",
        library: Library::Driver,
        symbol: Symbol::cuLibraryEnumerateKernels as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "numKernels",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "lib",
                doc: "CUlibrary",
                conv: Conv::Handle(class::CUlibrary, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "kernels",
            doc: "list[CUkernel]",
            kind: Out::List(Element::Handle(class::CUkernel, Int::U64), Len::Arg(0)),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLibraryGetGlobal",
        library: Library::Driver,
        symbol: Symbol::cuLibraryGetGlobal as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "library",
                doc: "CUlibrary",
                conv: Conv::Handle(class::CUlibrary, Int::U64),
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0), Word::Arg(1)],
        results: &[
            Output {
                name: "dptr",
                doc: "CUdeviceptr",
                kind: Out::Handle(class::CUdeviceptr, Int::U64),
            },
            Output {
                name: "numbytes",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuLibraryGetKernel",
        library: Library::Driver,
        symbol: Symbol::cuLibraryGetKernel as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "library",
                doc: "CUlibrary",
                conv: Conv::Handle(class::CUlibrary, Int::U64),
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pKernel",
            doc: "CUkernel",
            kind: Out::Handle(class::CUkernel, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLibraryGetKernelCount",
        library: Library::Driver,
        symbol: Symbol::cuLibraryGetKernelCount as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "lib",
            doc: "CUlibrary",
            conv: Conv::Handle(class::CUlibrary, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "count",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLibraryGetManaged",
        library: Library::Driver,
        symbol: Symbol::cuLibraryGetManaged as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "library",
                doc: "CUlibrary",
                conv: Conv::Handle(class::CUlibrary, Int::U64),
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0), Word::Arg(1)],
        results: &[
            Output {
                name: "dptr",
                doc: "CUdeviceptr",
                kind: Out::Handle(class::CUdeviceptr, Int::U64),
            },
            Output {
                name: "numbytes",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuLibraryGetModule",
        library: Library::Driver,
        symbol: Symbol::cuLibraryGetModule as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "library",
            doc: "CUlibrary",
            conv: Conv::Handle(class::CUlibrary, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pMod",
            doc: "CUmodule",
            kind: Out::Handle(class::CUmodule, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLibraryGetUnifiedFunction",
        library: Library::Driver,
        symbol: Symbol::cuLibraryGetUnifiedFunction as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "library",
                doc: "CUlibrary",
                conv: Conv::Handle(class::CUlibrary, Int::U64),
                default: None,
            },
            Param {
                name: "symbol",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "fptr",
            doc: "Any",
            kind: Out::VoidPtr,
        }],
        special: Special::None,
    },
    Function {
        name: "cuLibraryLoadData",
        library: Library::Driver,
        symbol: Symbol::cuLibraryLoadData as u16,
        thunk: call_qqqqwqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "code",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "jitOptions",
                doc: "list[CUjit_option]",
                conv: Conv::List(
                    Element::Enum(enums::CUjit_option),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "jitOptionsValues",
                doc: "list[Any]",
                conv: Conv::Options(enums::CUjit_option, 1, 3),
                default: None,
            },
            Param {
                name: "numJitOptions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "libraryOptions",
                doc: "list[CUlibraryOption]",
                conv: Conv::List(
                    Element::Enum(enums::CUlibraryOption),
                    Some(Count {
                        param: 6,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "libraryOptionValues",
                doc: "list[Any]",
                conv: Conv::Options(enums::CUlibraryOption, 4, 6),
                default: None,
            },
            Param {
                name: "numLibraryOptions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
        ],
        results: &[Output {
            name: "library",
            doc: "CUlibrary",
            kind: Out::Handle(class::CUlibrary, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLibraryLoadFromFile",
        library: Library::Driver,
        symbol: Symbol::cuLibraryLoadFromFile as u16,
        thunk: call_qqqqwqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "fileName",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
            Param {
                name: "jitOptions",
                doc: "list[CUjit_option]",
                conv: Conv::List(
                    Element::Enum(enums::CUjit_option),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "jitOptionsValues",
                doc: "list[Any]",
                conv: Conv::Options(enums::CUjit_option, 1, 3),
                default: None,
            },
            Param {
                name: "numJitOptions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "libraryOptions",
                doc: "list[CUlibraryOption]",
                conv: Conv::List(
                    Element::Enum(enums::CUlibraryOption),
                    Some(Count {
                        param: 6,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "libraryOptionValues",
                doc: "list[Any]",
                conv: Conv::Options(enums::CUlibraryOption, 4, 6),
                default: None,
            },
            Param {
                name: "numLibraryOptions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
        ],
        results: &[Output {
            name: "library",
            doc: "CUlibrary",
            kind: Out::Handle(class::CUlibrary, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLibraryUnload",
        library: Library::Driver,
        symbol: Symbol::cuLibraryUnload as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "library",
            doc: "CUlibrary",
            conv: Conv::Handle(class::CUlibrary, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLinkAddData",
        library: Library::Driver,
        symbol: Symbol::cuLinkAddData as u16,
        thunk: call_qwqqqwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "state",
                doc: "CUlinkState",
                conv: Conv::Handle(class::CUlinkState, Int::U64),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUjitInputType",
                conv: Conv::Enum(enums::CUjitInputType),
                default: None,
            },
            Param {
                name: "data",
                doc: "Any",
                conv: Conv::VoidPtr(Some(3)),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
            Param {
                name: "numOptions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "options",
                doc: "list[CUjit_option]",
                conv: Conv::List(
                    Element::Enum(enums::CUjit_option),
                    Some(Count {
                        param: 5,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "optionValues",
                doc: "list[Any]",
                conv: Conv::Options(enums::CUjit_option, 6, 5),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLinkAddFile",
        library: Library::Driver,
        symbol: Symbol::cuLinkAddFile as u16,
        thunk: call_qwqwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "state",
                doc: "CUlinkState",
                conv: Conv::Handle(class::CUlinkState, Int::U64),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUjitInputType",
                conv: Conv::Enum(enums::CUjitInputType),
                default: None,
            },
            Param {
                name: "path",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
            Param {
                name: "numOptions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "options",
                doc: "list[CUjit_option]",
                conv: Conv::List(
                    Element::Enum(enums::CUjit_option),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "optionValues",
                doc: "list[Any]",
                conv: Conv::Options(enums::CUjit_option, 4, 3),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLinkComplete",
        library: Library::Driver,
        symbol: Symbol::cuLinkComplete as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[Param {
            name: "state",
            doc: "CUlinkState",
            conv: Conv::Handle(class::CUlinkState, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "cubinOut",
                doc: "Any",
                kind: Out::VoidPtr,
            },
            Output {
                name: "sizeOut",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuLinkCreate",
        library: Library::Driver,
        symbol: Symbol::cuLinkCreate as u16,
        thunk: call_wqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "numOptions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "options",
                doc: "list[CUjit_option]",
                conv: Conv::List(
                    Element::Enum(enums::CUjit_option),
                    Some(Count {
                        param: 0,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "optionValues",
                doc: "list[Any]",
                conv: Conv::Options(enums::CUjit_option, 1, 0),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Result(0)],
        results: &[Output {
            name: "stateOut",
            doc: "CUlinkState",
            kind: Out::Handle(class::CUlinkState, Int::U64),
        }],
        special: Special::LinkCreate,
    },
    Function {
        name: "cuLinkDestroy",
        library: Library::Driver,
        symbol: Symbol::cuLinkDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "state",
            doc: "CUlinkState",
            conv: Conv::Handle(class::CUlinkState, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::LinkDestroy,
    },
    Function {
        name: "cuLogicalEndpointAddDevice",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointAddDevice as u16,
        thunk: call_ww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "leId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointBindAddr",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointBindAddr as u16,
        thunk: call_wwqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "leId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "offset",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
            Param {
                name: "ptr",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "size",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointBindMem",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointBindMem as u16,
        thunk: call_wwqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "leId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "offset",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
            Param {
                name: "memHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "memOffset",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointCreate",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointCreate as u16,
        thunk: call_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "leId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "prop",
                doc: "CUlogicalEndpointProp",
                conv: Conv::Struct(class::CUlogicalEndpointProp),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointDestroy",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointDestroy as u16,
        thunk: call_w_w,
        keep_gil: false,
        params: &[Param {
            name: "leId",
            doc: "CUlogicalEndpointId",
            conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointExport",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointExport as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "leId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "handleType",
                doc: "CUlogicalEndpointIpcHandleType",
                conv: Conv::Enum(enums::CUlogicalEndpointIpcHandleType),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "handle",
            doc: "Any",
            kind: Out::Attribute(enums::CUlogicalEndpointIpcHandleType, 1),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointGetLimits",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointGetLimits as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[Param {
            name: "prop",
            doc: "CUlogicalEndpointProp",
            conv: Conv::Struct(class::CUlogicalEndpointProp),
            default: None,
        }],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0)],
        results: &[
            Output {
                name: "bindAlignment",
                doc: "cuuint64_t",
                kind: Out::Handle(class::cuuint64_t, Int::U64),
            },
            Output {
                name: "maxSize",
                doc: "cuuint64_t",
                kind: Out::Handle(class::cuuint64_t, Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointIdRelease",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointIdRelease as u16,
        thunk: call_ww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "baseLeId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "count",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointIdReserve",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointIdReserve as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "count",
            doc: "cuuint32_t",
            conv: Conv::Handle(class::cuuint32_t, Int::U32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "baseLeId",
            doc: "CUlogicalEndpointId",
            kind: Out::Handle(class::CUlogicalEndpointId, Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointImport",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointImport as u16,
        thunk: call_wqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "leId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "handle",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "handleType",
                doc: "CUlogicalEndpointIpcHandleType",
                conv: Conv::Enum(enums::CUlogicalEndpointIpcHandleType),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointQuery",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointQuery as u16,
        thunk: call_wwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "leId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "count",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "queryStatus",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLogicalEndpointUnbind",
        library: Library::Driver,
        symbol: Symbol::cuLogicalEndpointUnbind as u16,
        thunk: call_wwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "leId",
                doc: "CUlogicalEndpointId",
                conv: Conv::Handle(class::CUlogicalEndpointId, Int::U32),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "offset",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuLogsCurrent",
        library: Library::Driver,
        symbol: Symbol::cuLogsCurrent as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "flags",
            doc: "unsigned int",
            conv: Conv::Int(Int::U32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "iterator_out",
            doc: "CUlogIterator",
            kind: Out::Handle(class::CUlogIterator, Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLogsDumpToFile",
        library: Library::Driver,
        symbol: Symbol::cuLogsDumpToFile as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "iterator",
                doc: "CUlogIterator",
                conv: Conv::HandlePtr(class::CUlogIterator, Int::U32),
                default: None,
            },
            Param {
                name: "pathToFile",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::InOut(0, 0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "iterator",
            doc: "CUlogIterator",
            kind: Out::Handle(class::CUlogIterator, Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLogsDumpToMemory",
        library: Library::Driver,
        symbol: Symbol::cuLogsDumpToMemory as u16,
        thunk: call_qqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "iterator",
                doc: "CUlogIterator",
                conv: Conv::HandlePtr(class::CUlogIterator, Int::U32),
                default: None,
            },
            Param {
                name: "buffer",
                doc: "bytes",
                conv: Conv::BytesOut(Some(2)),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::InOut(0, 0),
            Word::Arg(1),
            Word::InOut(2, 1),
            Word::Arg(3),
        ],
        results: &[
            Output {
                name: "iterator",
                doc: "CUlogIterator",
                kind: Out::Handle(class::CUlogIterator, Int::U32),
            },
            Output {
                name: "size",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuLogsRegisterCallback",
        library: Library::Driver,
        symbol: Symbol::cuLogsRegisterCallback as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "callbackFunc",
                doc: "CUlogsCallback",
                conv: Conv::Handle(class::CUlogsCallback, Int::U64),
                default: None,
            },
            Param {
                name: "userData",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "callback_out",
            doc: "CUlogsCallbackHandle",
            kind: Out::Handle(class::CUlogsCallbackHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuLogsUnregisterCallback",
        library: Library::Driver,
        symbol: Symbol::cuLogsUnregisterCallback as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "callback",
            doc: "CUlogsCallbackHandle",
            conv: Conv::Handle(class::CUlogsCallbackHandle, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemAddressFree",
        library: Library::Driver,
        symbol: Symbol::cuMemAddressFree as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemAddressReserve",
        library: Library::Driver,
        symbol: Symbol::cuMemAddressReserve as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "alignment",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "addr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "ptr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemAdvise",
        library: Library::Driver,
        symbol: Symbol::cuMemAdvise as u16,
        thunk: call_qqw_cumemlocation_st_w,
        keep_gil: false,
        params: &[
            Param {
                name: "devPtr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "advice",
                doc: "CUmem_advise",
                conv: Conv::Enum(enums::CUmem_advise),
                default: None,
            },
            Param {
                name: "location",
                doc: "CUmemLocation",
                conv: Conv::StructValue(class::CUmemLocation),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemAlloc",
        library: Library::Driver,
        symbol: Symbol::cuMemAlloc as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "bytesize",
            doc: "size_t",
            conv: Conv::Int(Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "dptr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemAllocAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemAllocAsync as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "bytesize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "dptr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemAllocFromPoolAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemAllocFromPoolAsync as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "bytesize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "dptr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemAllocHost",
        library: Library::Driver,
        symbol: Symbol::cuMemAllocHost as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "bytesize",
            doc: "size_t",
            conv: Conv::Int(Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pp",
            doc: "Any",
            kind: Out::VoidPtr,
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemAllocManaged",
        library: Library::Driver,
        symbol: Symbol::cuMemAllocManaged as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "bytesize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "dptr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemAllocPitch",
        library: Library::Driver,
        symbol: Symbol::cuMemAllocPitch as u16,
        thunk: call_qqqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "WidthInBytes",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Height",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "ElementSizeBytes",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Result(1),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
        ],
        results: &[
            Output {
                name: "dptr",
                doc: "CUdeviceptr",
                kind: Out::Handle(class::CUdeviceptr, Int::U64),
            },
            Output {
                name: "pPitch",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuMemBatchDecompressAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemBatchDecompressAsync as u16,
        thunk: call_qqwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "paramsArray",
                doc: "CUmemDecompressParams",
                conv: Conv::StructArray(class::CUmemDecompressParams, 1),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "stream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Result(0),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "errorIndex",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemCreate",
        library: Library::Driver,
        symbol: Symbol::cuMemCreate as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "prop",
                doc: "CUmemAllocationProp",
                conv: Conv::Struct(class::CUmemAllocationProp),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "handle",
            doc: "CUmemGenericAllocationHandle",
            kind: Out::Handle(class::CUmemGenericAllocationHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemDiscardAndPrefetchBatchAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemDiscardAndPrefetchBatchAsync as u16,
        thunk: call_qqqqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dptrs",
                doc: "list[CUdeviceptr]",
                conv: Conv::List(
                    Element::Handle(class::CUdeviceptr, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "sizes",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "prefetchLocs",
                doc: "list[CUmemLocation]",
                conv: Conv::List(
                    Element::Struct(class::CUmemLocation, 8),
                    Some(Count {
                        param: 5,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "prefetchLocIdxs",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::U64),
                    Some(Count {
                        param: 5,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numPrefetchLocs",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemDiscardBatchAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemDiscardBatchAsync as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dptrs",
                doc: "list[CUdeviceptr]",
                conv: Conv::List(
                    Element::Handle(class::CUdeviceptr, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "sizes",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemExportToShareableHandle",
        library: Library::Driver,
        symbol: Symbol::cuMemExportToShareableHandle as u16,
        thunk: call_qqwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "handleType",
                doc: "CUmemAllocationHandleType",
                conv: Conv::Enum(enums::CUmemAllocationHandleType),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "shareableHandle",
            doc: "Any",
            kind: Out::Attribute(enums::CUmemAllocationHandleType, 1),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemFree",
        library: Library::Driver,
        symbol: Symbol::cuMemFree as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "dptr",
            doc: "CUdeviceptr",
            conv: Conv::Handle(class::CUdeviceptr, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemFreeAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemFreeAsync as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemFreeHost",
        library: Library::Driver,
        symbol: Symbol::cuMemFreeHost as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "p",
            doc: "Any",
            conv: Conv::VoidPtr(None),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemGetAccess",
        library: Library::Driver,
        symbol: Symbol::cuMemGetAccess as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "location",
                doc: "CUmemLocation",
                conv: Conv::Struct(class::CUmemLocation),
                default: None,
            },
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "flags",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemGetAddressRange",
        library: Library::Driver,
        symbol: Symbol::cuMemGetAddressRange as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[Param {
            name: "dptr",
            doc: "CUdeviceptr",
            conv: Conv::Handle(class::CUdeviceptr, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0)],
        results: &[
            Output {
                name: "pbase",
                doc: "CUdeviceptr",
                kind: Out::Handle(class::CUdeviceptr, Int::U64),
            },
            Output {
                name: "psize",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuMemGetAllocationGranularity",
        library: Library::Driver,
        symbol: Symbol::cuMemGetAllocationGranularity as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prop",
                doc: "CUmemAllocationProp",
                conv: Conv::Struct(class::CUmemAllocationProp),
                default: None,
            },
            Param {
                name: "option",
                doc: "CUmemAllocationGranularity_flags",
                conv: Conv::Enum(enums::CUmemAllocationGranularity_flags),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "granularity",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemGetAllocationPropertiesFromHandle",
        library: Library::Driver,
        symbol: Symbol::cuMemGetAllocationPropertiesFromHandle as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "handle",
            doc: "CUmemGenericAllocationHandle",
            conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "prop",
            doc: "CUmemAllocationProp",
            kind: Out::Struct(class::CUmemAllocationProp),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemGetDefaultMemPool",
        library: Library::Driver,
        symbol: Symbol::cuMemGetDefaultMemPool as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "location",
                doc: "CUmemLocation",
                conv: Conv::Struct(class::CUmemLocation),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUmemAllocationType",
                conv: Conv::Enum(enums::CUmemAllocationType),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pool_out",
            doc: "CUmemoryPool",
            kind: Out::Handle(class::CUmemoryPool, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemGetHandleForAddressRange",
        library: Library::Driver,
        symbol: Symbol::cuMemGetHandleForAddressRange as u16,
        thunk: call_qqqwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "handleType",
                doc: "CUmemRangeHandleType",
                conv: Conv::Enum(enums::CUmemRangeHandleType),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "handle",
            doc: "Any",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemGetInfo",
        library: Library::Driver,
        symbol: Symbol::cuMemGetInfo as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "free",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
            Output {
                name: "total",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuMemGetLocationInfo",
        library: Library::Driver,
        symbol: Symbol::cuMemGetLocationInfo as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "summaryGranularity",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "samplingGranularity",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "location_out",
                doc: "CUmemLocation",
                conv: Conv::Struct(class::CUmemLocation),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemGetMemPool",
        library: Library::Driver,
        symbol: Symbol::cuMemGetMemPool as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "location",
                doc: "CUmemLocation",
                conv: Conv::Struct(class::CUmemLocation),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUmemAllocationType",
                conv: Conv::Enum(enums::CUmemAllocationType),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pool",
            doc: "CUmemoryPool",
            kind: Out::Handle(class::CUmemoryPool, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemHostAlloc",
        library: Library::Driver,
        symbol: Symbol::cuMemHostAlloc as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "bytesize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pp",
            doc: "Any",
            kind: Out::VoidPtr,
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemHostGetDevicePointer",
        library: Library::Driver,
        symbol: Symbol::cuMemHostGetDevicePointer as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "p",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pdptr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemHostGetFlags",
        library: Library::Driver,
        symbol: Symbol::cuMemHostGetFlags as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "p",
            doc: "Any",
            conv: Conv::VoidPtr(None),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pFlags",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemHostRegister",
        library: Library::Driver,
        symbol: Symbol::cuMemHostRegister as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "p",
                doc: "Any",
                conv: Conv::VoidPtr(Some(1)),
                default: None,
            },
            Param {
                name: "bytesize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemHostUnregister",
        library: Library::Driver,
        symbol: Symbol::cuMemHostUnregister as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "p",
            doc: "Any",
            conv: Conv::VoidPtr(None),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemImportFromShareableHandle",
        library: Library::Driver,
        symbol: Symbol::cuMemImportFromShareableHandle as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "osHandle",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "shHandleType",
                doc: "CUmemAllocationHandleType",
                conv: Conv::Enum(enums::CUmemAllocationHandleType),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "handle",
            doc: "CUmemGenericAllocationHandle",
            kind: Out::Handle(class::CUmemGenericAllocationHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemMap",
        library: Library::Driver,
        symbol: Symbol::cuMemMap as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "offset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "handle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemMapArrayAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemMapArrayAsync as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "mapInfoList",
                doc: "list[CUarrayMapInfo]",
                conv: Conv::List(
                    Element::Struct(class::CUarrayMapInfo, 96),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolCreate",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolCreate as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "poolProps",
            doc: "CUmemPoolProps",
            conv: Conv::Struct(class::CUmemPoolProps),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pool",
            doc: "CUmemoryPool",
            kind: Out::Handle(class::CUmemoryPool, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolDestroy",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "pool",
            doc: "CUmemoryPool or cudaMemPool_t",
            conv: Conv::Handle(class::CUmemoryPool, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolExportPointer",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolExportPointer as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "ptr",
            doc: "CUdeviceptr",
            conv: Conv::Handle(class::CUdeviceptr, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "shareData_out",
            doc: "CUmemPoolPtrExportData",
            kind: Out::Struct(class::CUmemPoolPtrExportData),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolExportToShareableHandle",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolExportToShareableHandle as u16,
        thunk: call_qqwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
            Param {
                name: "handleType",
                doc: "CUmemAllocationHandleType",
                conv: Conv::Enum(enums::CUmemAllocationHandleType),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "handle_out",
            doc: "Any",
            kind: Out::Attribute(enums::CUmemAllocationHandleType, 1),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolGetAccess",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolGetAccess as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "memPool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
            Param {
                name: "location",
                doc: "CUmemLocation",
                conv: Conv::Struct(class::CUmemLocation),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "flags",
            doc: "CUmemAccess_flags",
            kind: Out::Enum(enums::CUmemAccess_flags),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolGetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUmemPool_attribute",
                conv: Conv::Enum(enums::CUmemPool_attribute),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "value",
            doc: "Any",
            kind: Out::Attribute(enums::CUmemPool_attribute, 1),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolImportFromShareableHandle",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolImportFromShareableHandle as u16,
        thunk: call_qqwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "handleType",
                doc: "CUmemAllocationHandleType",
                conv: Conv::Enum(enums::CUmemAllocationHandleType),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "pool_out",
            doc: "CUmemoryPool",
            kind: Out::Handle(class::CUmemoryPool, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolImportPointer",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolImportPointer as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
            Param {
                name: "shareData",
                doc: "CUmemPoolPtrExportData",
                conv: Conv::Struct(class::CUmemPoolPtrExportData),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "ptr_out",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolSetAccess",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolSetAccess as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
            Param {
                name: "map",
                doc: "list[CUmemAccessDesc]",
                conv: Conv::List(
                    Element::Struct(class::CUmemAccessDesc, 12),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolSetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolSetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUmemPool_attribute",
                conv: Conv::Enum(enums::CUmemPool_attribute),
                default: None,
            },
            Param {
                name: "value",
                doc: "Any",
                conv: Conv::Attribute(enums::CUmemPool_attribute, 1),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemPoolTrimTo",
        library: Library::Driver,
        symbol: Symbol::cuMemPoolTrimTo as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
            Param {
                name: "minBytesToKeep",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemPrefetchAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemPrefetchAsync as u16,
        thunk: call_qq_cumemlocation_st_wq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "devPtr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "location",
                doc: "CUmemLocation",
                conv: Conv::StructValue(class::CUmemLocation),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemPrefetchBatchAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemPrefetchBatchAsync as u16,
        thunk: call_qqqqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dptrs",
                doc: "list[CUdeviceptr]",
                conv: Conv::List(
                    Element::Handle(class::CUdeviceptr, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "sizes",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "prefetchLocs",
                doc: "list[CUmemLocation]",
                conv: Conv::List(
                    Element::Struct(class::CUmemLocation, 8),
                    Some(Count {
                        param: 5,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "prefetchLocIdxs",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::U64),
                    Some(Count {
                        param: 5,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numPrefetchLocs",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemRangeGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuMemRangeGetAttribute as u16,
        thunk: call_qqwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dataSize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "attribute",
                doc: "CUmem_range_attribute",
                conv: Conv::Enum(enums::CUmem_range_attribute),
                default: None,
            },
            Param {
                name: "devPtr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "data",
            doc: "Any",
            kind: Out::VoidPtr,
        }],
        special: Special::RangeGetAttribute,
    },
    Function {
        name: "cuMemRangeGetAttributes",
        library: Library::Driver,
        symbol: Symbol::cuMemRangeGetAttributes as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dataSizes",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "attributes",
                doc: "list[CUmem_range_attribute]",
                conv: Conv::List(
                    Element::Enum(enums::CUmem_range_attribute),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numAttributes",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "devPtr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[Output {
            name: "data",
            doc: "list[Any]",
            kind: Out::VoidPtr,
        }],
        special: Special::RangeGetAttributes,
    },
    Function {
        name: "cuMemRelease",
        library: Library::Driver,
        symbol: Symbol::cuMemRelease as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "handle",
            doc: "CUmemGenericAllocationHandle",
            conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemRetainAllocationHandle",
        library: Library::Driver,
        symbol: Symbol::cuMemRetainAllocationHandle as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "addr",
            doc: "Any",
            conv: Conv::VoidPtr(None),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "handle",
            doc: "CUmemGenericAllocationHandle",
            kind: Out::Handle(class::CUmemGenericAllocationHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMemSetAccess",
        library: Library::Driver,
        symbol: Symbol::cuMemSetAccess as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "desc",
                doc: "list[CUmemAccessDesc]",
                conv: Conv::List(
                    Element::Struct(class::CUmemAccessDesc, 12),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemSetMemPool",
        library: Library::Driver,
        symbol: Symbol::cuMemSetMemPool as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "location",
                doc: "CUmemLocation",
                conv: Conv::Struct(class::CUmemLocation),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUmemAllocationType",
                conv: Conv::Enum(enums::CUmemAllocationType),
                default: None,
            },
            Param {
                name: "pool",
                doc: "CUmemoryPool or cudaMemPool_t",
                conv: Conv::Handle(class::CUmemoryPool, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemUnmap",
        library: Library::Driver,
        symbol: Symbol::cuMemUnmap as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dst",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "src",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy2D",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy2D as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "pCopy",
            doc: "CUDA_MEMCPY2D",
            conv: Conv::Struct(class::CUDA_MEMCPY2D),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy2DAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy2DAsync as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pCopy",
                doc: "CUDA_MEMCPY2D",
                conv: Conv::Struct(class::CUDA_MEMCPY2D),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy2DUnaligned",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy2DUnaligned as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "pCopy",
            doc: "CUDA_MEMCPY2D",
            conv: Conv::Struct(class::CUDA_MEMCPY2D),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy3D",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy3D as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "pCopy",
            doc: "CUDA_MEMCPY3D",
            conv: Conv::Struct(class::CUDA_MEMCPY3D),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy3DAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy3DAsync as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pCopy",
                doc: "CUDA_MEMCPY3D",
                conv: Conv::Struct(class::CUDA_MEMCPY3D),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy3DBatchAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy3DBatchAsync as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "numOps",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "opList",
                doc: "list[CUDA_MEMCPY3D_BATCH_OP]",
                conv: Conv::List(
                    Element::Struct(class::CUDA_MEMCPY3D_BATCH_OP, 112),
                    Some(Count {
                        param: 0,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy3DPeer",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy3DPeer as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "pCopy",
            doc: "CUDA_MEMCPY3D_PEER",
            conv: Conv::Struct(class::CUDA_MEMCPY3D_PEER),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy3DPeerAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy3DPeerAsync as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pCopy",
                doc: "CUDA_MEMCPY3D_PEER",
                conv: Conv::Struct(class::CUDA_MEMCPY3D_PEER),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpy3DWithAttributesAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpy3DWithAttributesAsync as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "op",
                doc: "CUDA_MEMCPY3D_BATCH_OP",
                conv: Conv::Struct(class::CUDA_MEMCPY3D_BATCH_OP),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyAsync as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dst",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "src",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyAtoA",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyAtoA as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "dstOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "srcArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "srcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyAtoD",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyAtoD as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "srcArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "srcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyAtoH",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyAtoH as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstHost",
                doc: "Any",
                conv: Conv::VoidPtr(Some(3)),
                default: None,
            },
            Param {
                name: "srcArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "srcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyAtoHAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyAtoHAsync as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstHost",
                doc: "Any",
                conv: Conv::VoidPtr(Some(3)),
                default: None,
            },
            Param {
                name: "srcArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "srcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyBatchAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyBatchAsync as u16,
        thunk: call_qqqqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dsts",
                doc: "list[CUdeviceptr]",
                conv: Conv::List(
                    Element::Handle(class::CUdeviceptr, Int::U64),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "srcs",
                doc: "list[CUdeviceptr]",
                conv: Conv::List(
                    Element::Handle(class::CUdeviceptr, Int::U64),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "sizes",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::U64),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "attrs",
                doc: "list[CUmemcpyAttributes]",
                conv: Conv::List(
                    Element::Struct(class::CUmemcpyAttributes, 24),
                    Some(Count {
                        param: 6,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "attrsIdxs",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::U64),
                    Some(Count {
                        param: 6,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numAttrs",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyDtoA",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyDtoA as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "dstOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyDtoD",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyDtoD as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyDtoDAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyDtoDAsync as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyDtoH",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyDtoH as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstHost",
                doc: "Any",
                conv: Conv::VoidPtr(Some(2)),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyDtoHAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyDtoHAsync as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstHost",
                doc: "Any",
                conv: Conv::VoidPtr(Some(2)),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyHtoA",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyHtoA as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "dstOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "srcHost",
                doc: "Any",
                conv: Conv::VoidPtr(Some(3)),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyHtoAAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyHtoAAsync as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "dstOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "srcHost",
                doc: "Any",
                conv: Conv::VoidPtr(Some(3)),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyHtoD",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyHtoD as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "srcHost",
                doc: "Any",
                conv: Conv::VoidPtr(Some(2)),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyHtoDAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyHtoDAsync as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "srcHost",
                doc: "Any",
                conv: Conv::VoidPtr(Some(2)),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyPeer",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyPeer as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "dstContext",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "srcContext",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyPeerAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyPeerAsync as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "dstContext",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "srcDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "srcContext",
                doc: "CUcontext",
                conv: Conv::Handle(class::CUcontext, Int::U64),
                default: None,
            },
            Param {
                name: "ByteCount",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemcpyWithAttributesAsync",
        library: Library::Driver,
        symbol: Symbol::cuMemcpyWithAttributesAsync as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dst",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "src",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUmemcpyAttributes",
                conv: Conv::Struct(class::CUmemcpyAttributes),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD16",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD16 as u16,
        thunk: call_qhq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "us",
                doc: "unsigned short",
                conv: Conv::Int(Int::U16),
                default: None,
            },
            Param {
                name: "N",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD16Async",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD16Async as u16,
        thunk: call_qhqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "us",
                doc: "unsigned short",
                conv: Conv::Int(Int::U16),
                default: None,
            },
            Param {
                name: "N",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD2D16",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD2D16 as u16,
        thunk: call_qqhqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "dstPitch",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "us",
                doc: "unsigned short",
                conv: Conv::Int(Int::U16),
                default: None,
            },
            Param {
                name: "Width",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Height",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD2D16Async",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD2D16Async as u16,
        thunk: call_qqhqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "dstPitch",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "us",
                doc: "unsigned short",
                conv: Conv::Int(Int::U16),
                default: None,
            },
            Param {
                name: "Width",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Height",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD2D32",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD2D32 as u16,
        thunk: call_qqwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "dstPitch",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "ui",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "Width",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Height",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD2D32Async",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD2D32Async as u16,
        thunk: call_qqwqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "dstPitch",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "ui",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "Width",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Height",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD2D8",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD2D8 as u16,
        thunk: call_qqbqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "dstPitch",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "uc",
                doc: "unsigned char",
                conv: Conv::Int(Int::U8),
                default: None,
            },
            Param {
                name: "Width",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Height",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD2D8Async",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD2D8Async as u16,
        thunk: call_qqbqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "dstPitch",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "uc",
                doc: "unsigned char",
                conv: Conv::Int(Int::U8),
                default: None,
            },
            Param {
                name: "Width",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "Height",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD32",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD32 as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ui",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "N",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD32Async",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD32Async as u16,
        thunk: call_qwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "ui",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "N",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD8",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD8 as u16,
        thunk: call_qbq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "uc",
                doc: "unsigned char",
                conv: Conv::Int(Int::U8),
                default: None,
            },
            Param {
                name: "N",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMemsetD8Async",
        library: Library::Driver,
        symbol: Symbol::cuMemsetD8Async as u16,
        thunk: call_qbqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dstDevice",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "uc",
                doc: "unsigned char",
                conv: Conv::Int(Int::U8),
                default: None,
            },
            Param {
                name: "N",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMipmappedArrayCreate",
        library: Library::Driver,
        symbol: Symbol::cuMipmappedArrayCreate as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pMipmappedArrayDesc",
                doc: "CUDA_ARRAY3D_DESCRIPTOR",
                conv: Conv::Struct(class::CUDA_ARRAY3D_DESCRIPTOR),
                default: None,
            },
            Param {
                name: "numMipmapLevels",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pHandle",
            doc: "CUmipmappedArray",
            kind: Out::Handle(class::CUmipmappedArray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMipmappedArrayDestroy",
        library: Library::Driver,
        symbol: Symbol::cuMipmappedArrayDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hMipmappedArray",
            doc: "CUmipmappedArray",
            conv: Conv::Handle(class::CUmipmappedArray, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMipmappedArrayGetLevel",
        library: Library::Driver,
        symbol: Symbol::cuMipmappedArrayGetLevel as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hMipmappedArray",
                doc: "CUmipmappedArray",
                conv: Conv::Handle(class::CUmipmappedArray, Int::U64),
                default: None,
            },
            Param {
                name: "level",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pLevelArray",
            doc: "CUarray",
            kind: Out::Handle(class::CUarray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMipmappedArrayGetMemoryRequirements",
        library: Library::Driver,
        symbol: Symbol::cuMipmappedArrayGetMemoryRequirements as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "mipmap",
                doc: "CUmipmappedArray",
                conv: Conv::Handle(class::CUmipmappedArray, Int::U64),
                default: None,
            },
            Param {
                name: "device",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "memoryRequirements",
            doc: "CUDA_ARRAY_MEMORY_REQUIREMENTS",
            kind: Out::Struct(class::CUDA_ARRAY_MEMORY_REQUIREMENTS),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMipmappedArrayGetSparseProperties",
        library: Library::Driver,
        symbol: Symbol::cuMipmappedArrayGetSparseProperties as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "mipmap",
            doc: "CUmipmappedArray",
            conv: Conv::Handle(class::CUmipmappedArray, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "sparseProperties",
            doc: "CUDA_ARRAY_SPARSE_PROPERTIES",
            kind: Out::Struct(class::CUDA_ARRAY_SPARSE_PROPERTIES),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleEnumerateFunctions",
        library: Library::Driver,
        symbol: Symbol::cuModuleEnumerateFunctions as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "numFunctions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "mod",
                doc: "CUmodule",
                conv: Conv::Handle(class::CUmodule, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "functions",
            doc: "list[CUfunction]",
            kind: Out::List(Element::Handle(class::CUfunction, Int::U64), Len::Arg(0)),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleGetFunction",
        library: Library::Driver,
        symbol: Symbol::cuModuleGetFunction as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hmod",
                doc: "CUmodule",
                conv: Conv::Handle(class::CUmodule, Int::U64),
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "hfunc",
            doc: "CUfunction",
            kind: Out::Handle(class::CUfunction, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleGetFunctionCount",
        library: Library::Driver,
        symbol: Symbol::cuModuleGetFunctionCount as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "mod",
            doc: "CUmodule",
            conv: Conv::Handle(class::CUmodule, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "count",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleGetGlobal",
        library: Library::Driver,
        symbol: Symbol::cuModuleGetGlobal as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hmod",
                doc: "CUmodule",
                conv: Conv::Handle(class::CUmodule, Int::U64),
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0), Word::Arg(1)],
        results: &[
            Output {
                name: "dptr",
                doc: "CUdeviceptr",
                kind: Out::Handle(class::CUdeviceptr, Int::U64),
            },
            Output {
                name: "numbytes",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuModuleGetLoadingMode",
        library: Library::Driver,
        symbol: Symbol::cuModuleGetLoadingMode as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "mode",
            doc: "CUmoduleLoadingMode",
            kind: Out::Enum(enums::CUmoduleLoadingMode),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleGetSurfRef",
        library: Library::Driver,
        symbol: Symbol::cuModuleGetSurfRef as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hmod",
                doc: "CUmodule",
                conv: Conv::Handle(class::CUmodule, Int::U64),
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pSurfRef",
            doc: "CUsurfref",
            kind: Out::Handle(class::CUsurfref, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleGetTexRef",
        library: Library::Driver,
        symbol: Symbol::cuModuleGetTexRef as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hmod",
                doc: "CUmodule",
                conv: Conv::Handle(class::CUmodule, Int::U64),
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pTexRef",
            doc: "CUtexref",
            kind: Out::Handle(class::CUtexref, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleLoad",
        library: Library::Driver,
        symbol: Symbol::cuModuleLoad as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "fname",
            doc: "bytes",
            conv: Conv::Bytes,
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "module",
            doc: "CUmodule",
            kind: Out::Handle(class::CUmodule, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleLoadData",
        library: Library::Driver,
        symbol: Symbol::cuModuleLoadData as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "image",
            doc: "Any",
            conv: Conv::VoidPtr(None),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "module",
            doc: "CUmodule",
            kind: Out::Handle(class::CUmodule, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleLoadDataEx",
        library: Library::Driver,
        symbol: Symbol::cuModuleLoadDataEx as u16,
        thunk: call_qqwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "image",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "numOptions",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "options",
                doc: "list[CUjit_option]",
                conv: Conv::List(
                    Element::Enum(enums::CUjit_option),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "optionValues",
                doc: "list[Any]",
                conv: Conv::Options(enums::CUjit_option, 2, 1),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "module",
            doc: "CUmodule",
            kind: Out::Handle(class::CUmodule, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleLoadFatBinary",
        library: Library::Driver,
        symbol: Symbol::cuModuleLoadFatBinary as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "fatCubin",
            doc: "Any",
            conv: Conv::VoidPtr(None),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "module",
            doc: "CUmodule",
            kind: Out::Handle(class::CUmodule, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuModuleUnload",
        library: Library::Driver,
        symbol: Symbol::cuModuleUnload as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hmod",
            doc: "CUmodule",
            conv: Conv::Handle(class::CUmodule, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMulticastAddDevice",
        library: Library::Driver,
        symbol: Symbol::cuMulticastAddDevice as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "mcHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMulticastBindAddr",
        library: Library::Driver,
        symbol: Symbol::cuMulticastBindAddr as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "mcHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "mcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "memptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMulticastBindAddr_v2",
        library: Library::Driver,
        symbol: Symbol::cuMulticastBindAddr_v2 as u16,
        thunk: call_qwqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "mcHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "mcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "memptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMulticastBindMem",
        library: Library::Driver,
        symbol: Symbol::cuMulticastBindMem as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "mcHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "mcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "memHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "memOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMulticastBindMem_v2",
        library: Library::Driver,
        symbol: Symbol::cuMulticastBindMem_v2 as u16,
        thunk: call_qwqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "mcHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "mcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "memHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "memOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned long long",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuMulticastCreate",
        library: Library::Driver,
        symbol: Symbol::cuMulticastCreate as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "prop",
            doc: "CUmulticastObjectProp",
            conv: Conv::Struct(class::CUmulticastObjectProp),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "mcHandle",
            doc: "CUmemGenericAllocationHandle",
            kind: Out::Handle(class::CUmemGenericAllocationHandle, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMulticastGetGranularity",
        library: Library::Driver,
        symbol: Symbol::cuMulticastGetGranularity as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prop",
                doc: "CUmulticastObjectProp",
                conv: Conv::Struct(class::CUmulticastObjectProp),
                default: None,
            },
            Param {
                name: "option",
                doc: "CUmulticastGranularity_flags",
                conv: Conv::Enum(enums::CUmulticastGranularity_flags),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "granularity",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuMulticastUnbind",
        library: Library::Driver,
        symbol: Symbol::cuMulticastUnbind as u16,
        thunk: call_qwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "mcHandle",
                doc: "CUmemGenericAllocationHandle",
                conv: Conv::Handle(class::CUmemGenericAllocationHandle, Int::U64),
                default: None,
            },
            Param {
                name: "dev",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "mcOffset",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuOccupancyAvailableDynamicSMemPerBlock",
        library: Library::Driver,
        symbol: Symbol::cuOccupancyAvailableDynamicSMemPerBlock as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "func",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "numBlocks",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "blockSize",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "dynamicSmemSize",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        library: Library::Driver,
        symbol: Symbol::cuOccupancyMaxActiveBlocksPerMultiprocessor as u16,
        thunk: call_qqwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "func",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "blockSize",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "dynamicSMemSize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "numBlocks",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        library: Library::Driver,
        symbol: Symbol::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags as u16,
        thunk: call_qqwqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "func",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "blockSize",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "dynamicSMemSize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "numBlocks",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuOccupancyMaxActiveClusters",
        library: Library::Driver,
        symbol: Symbol::cuOccupancyMaxActiveClusters as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "func",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "config",
                doc: "CUlaunchConfig",
                conv: Conv::Struct(class::CUlaunchConfig),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "numClusters",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuOccupancyMaxPotentialBlockSize",
        library: Library::Driver,
        symbol: Symbol::cuOccupancyMaxPotentialBlockSize as u16,
        thunk: call_qqqqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "func",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "blockSizeToDynamicSMemSize",
                doc: "CUoccupancyB2DSize",
                conv: Conv::Handle(class::CUoccupancyB2DSize, Int::U64),
                default: None,
            },
            Param {
                name: "dynamicSMemSize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "blockSizeLimit",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Result(1),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[
            Output {
                name: "minGridSize",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
            Output {
                name: "blockSize",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuOccupancyMaxPotentialBlockSizeWithFlags",
        library: Library::Driver,
        symbol: Symbol::cuOccupancyMaxPotentialBlockSizeWithFlags as u16,
        thunk: call_qqqqqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "func",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "blockSizeToDynamicSMemSize",
                doc: "CUoccupancyB2DSize",
                conv: Conv::Handle(class::CUoccupancyB2DSize, Int::U64),
                default: None,
            },
            Param {
                name: "dynamicSMemSize",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "blockSizeLimit",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Result(1),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[
            Output {
                name: "minGridSize",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
            Output {
                name: "blockSize",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuOccupancyMaxPotentialClusterSize",
        library: Library::Driver,
        symbol: Symbol::cuOccupancyMaxPotentialClusterSize as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "func",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "config",
                doc: "CUlaunchConfig",
                conv: Conv::Struct(class::CUlaunchConfig),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "clusterSize",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuParamSetSize",
        library: Library::Driver,
        symbol: Symbol::cuParamSetSize as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "numbytes",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuParamSetTexRef",
        library: Library::Driver,
        symbol: Symbol::cuParamSetTexRef as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "texunit",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuParamSetf",
        library: Library::Driver,
        symbol: Symbol::cuParamSetf as u16,
        thunk: call_qwf_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "offset",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "value",
                doc: "float",
                conv: Conv::F32,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuParamSeti",
        library: Library::Driver,
        symbol: Symbol::cuParamSeti as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "offset",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "value",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuParamSetv",
        library: Library::Driver,
        symbol: Symbol::cuParamSetv as u16,
        thunk: call_qwqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hfunc",
                doc: "CUfunction",
                conv: Conv::Handle(class::CUfunction, Int::U64),
                default: None,
            },
            Param {
                name: "offset",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "ptr",
                doc: "Any",
                conv: Conv::VoidPtr(Some(3)),
                default: None,
            },
            Param {
                name: "numbytes",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuPointerGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuPointerGetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "attribute",
                doc: "CUpointer_attribute",
                conv: Conv::Enum(enums::CUpointer_attribute),
                default: None,
            },
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "data",
            doc: "Any",
            kind: Out::Attribute(enums::CUpointer_attribute, 0),
        }],
        special: Special::None,
    },
    Function {
        name: "cuPointerGetAttributes",
        library: Library::Driver,
        symbol: Symbol::cuPointerGetAttributes as u16,
        thunk: call_wqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "numAttributes",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "attributes",
                doc: "list[CUpointer_attribute]",
                conv: Conv::List(
                    Element::Enum(enums::CUpointer_attribute),
                    Some(Count {
                        param: 0,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0), Word::Arg(2)],
        results: &[Output {
            name: "data",
            doc: "list[Any]",
            kind: Out::VoidPtr,
        }],
        special: Special::PointerGetAttributes,
    },
    Function {
        name: "cuPointerSetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuPointerSetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "value",
                doc: "Any",
                conv: Conv::Attribute(enums::CUpointer_attribute, 1),
                default: None,
            },
            Param {
                name: "attribute",
                doc: "CUpointer_attribute",
                conv: Conv::Enum(enums::CUpointer_attribute),
                default: None,
            },
            Param {
                name: "ptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuProfilerStart",
        library: Library::Driver,
        symbol: Symbol::cuProfilerStart as u16,
        thunk: call_w,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuProfilerStop",
        library: Library::Driver,
        symbol: Symbol::cuProfilerStop as u16,
        thunk: call_w,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuSignalExternalSemaphoresAsync",
        library: Library::Driver,
        symbol: Symbol::cuSignalExternalSemaphoresAsync as u16,
        thunk: call_qqwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "extSemArray",
                doc: "list[CUexternalSemaphore]",
                conv: Conv::List(
                    Element::Handle(class::CUexternalSemaphore, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "paramsArray",
                doc: "list[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS]",
                conv: Conv::List(
                    Element::Struct(class::CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, 144),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numExtSems",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "stream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamAddCallback",
        library: Library::Driver,
        symbol: Symbol::cuStreamAddCallback as u16,
        thunk: call_qqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "callback",
                doc: "CUstreamCallback",
                conv: Conv::Handle(class::CUstreamCallback, Int::U64),
                default: None,
            },
            Param {
                name: "userData",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamAttachMemAsync",
        library: Library::Driver,
        symbol: Symbol::cuStreamAttachMemAsync as u16,
        thunk: call_qqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "dptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "length",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamBatchMemOp",
        library: Library::Driver,
        symbol: Symbol::cuStreamBatchMemOp as u16,
        thunk: call_qwqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "stream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "paramArray",
                doc: "list[CUstreamBatchMemOpParams]",
                conv: Conv::List(
                    Element::Struct(class::CUstreamBatchMemOpParams, 48),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamBeginCapture",
        library: Library::Driver,
        symbol: Symbol::cuStreamBeginCapture as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "mode",
                doc: "CUstreamCaptureMode",
                conv: Conv::Enum(enums::CUstreamCaptureMode),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamBeginCaptureToCig",
        library: Library::Driver,
        symbol: Symbol::cuStreamBeginCaptureToCig as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "streamCigCaptureParams",
                doc: "CUstreamCigCaptureParams",
                conv: Conv::Struct(class::CUstreamCigCaptureParams),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamBeginCaptureToGraph",
        library: Library::Driver,
        symbol: Symbol::cuStreamBeginCaptureToGraph as u16,
        thunk: call_qqqqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 4,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "dependencyData",
                doc: "list[CUgraphEdgeData]",
                conv: Conv::List(
                    Element::Struct(class::CUgraphEdgeData, 8),
                    Some(Count {
                        param: 4,
                        less: 0,
                        optional: true,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "mode",
                doc: "CUstreamCaptureMode",
                conv: Conv::Enum(enums::CUstreamCaptureMode),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamBeginRecaptureToGraph",
        library: Library::Driver,
        symbol: Symbol::cuStreamBeginRecaptureToGraph as u16,
        thunk: call_qwqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "mode",
                doc: "CUstreamCaptureMode",
                conv: Conv::Enum(enums::CUstreamCaptureMode),
                default: None,
            },
            Param {
                name: "hGraph",
                doc: "CUgraph or cudaGraph_t",
                conv: Conv::Handle(class::CUgraph, Int::U64),
                default: None,
            },
            Param {
                name: "callbackFunc",
                doc: "CUgraphRecaptureCallback",
                conv: Conv::Handle(class::CUgraphRecaptureCallback, Int::U64),
                default: None,
            },
            Param {
                name: "userData",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamCopyAttributes",
        library: Library::Driver,
        symbol: Symbol::cuStreamCopyAttributes as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dst",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "src",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamCreate",
        library: Library::Driver,
        symbol: Symbol::cuStreamCreate as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[Param {
            name: "Flags",
            doc: "unsigned int",
            conv: Conv::Int(Int::U32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "phStream",
            doc: "CUstream",
            kind: Out::Handle(class::CUstream, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamCreateWithPriority",
        library: Library::Driver,
        symbol: Symbol::cuStreamCreateWithPriority as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "priority",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "phStream",
            doc: "CUstream",
            kind: Out::Handle(class::CUstream, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamDestroy",
        library: Library::Driver,
        symbol: Symbol::cuStreamDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamEndCapture",
        library: Library::Driver,
        symbol: Symbol::cuStreamEndCapture as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "phGraph",
            doc: "CUgraph",
            kind: Out::Handle(class::CUgraph, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamEndCaptureToCig",
        library: Library::Driver,
        symbol: Symbol::cuStreamEndCaptureToCig as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUstreamAttrID",
                conv: Conv::Enum(enums::CUstreamAttrID),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "value_out",
            doc: "CUstreamAttrValue",
            kind: Out::Struct(class::CUstreamAttrValue),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetCaptureInfo",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetCaptureInfo as u16,
        thunk: call_qqqqqqq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[
            Word::Arg(0),
            Word::Result(0),
            Word::Result(1),
            Word::Result(2),
            Word::Result(3),
            Word::Result(4),
            Word::Result(5),
        ],
        results: &[
            Output {
                name: "captureStatus_out",
                doc: "CUstreamCaptureStatus",
                kind: Out::Enum(enums::CUstreamCaptureStatus),
            },
            Output {
                name: "id_out",
                doc: "cuuint64_t",
                kind: Out::Handle(class::cuuint64_t, Int::U64),
            },
            Output {
                name: "graph_out",
                doc: "CUgraph",
                kind: Out::Handle(class::CUgraph, Int::U64),
            },
            Output {
                name: "dependencies_out",
                doc: "list[CUgraphNode]",
                kind: Out::VoidPtr,
            },
            Output {
                name: "edgeData_out",
                doc: "list[CUgraphEdgeData]",
                kind: Out::VoidPtr,
            },
            Output {
                name: "numDependencies_out",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::CaptureInfo,
    },
    Function {
        name: "cuStreamGetCtx",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetCtx as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "pctx",
            doc: "CUcontext",
            kind: Out::Handle(class::CUcontext, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetCtx_v2",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetCtx_v2 as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "pCtx",
                doc: "CUcontext",
                kind: Out::Handle(class::CUcontext, Int::U64),
            },
            Output {
                name: "pGreenCtx",
                doc: "CUgreenCtx",
                kind: Out::Handle(class::CUgreenCtx, Int::U64),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetDevResource",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetDevResource as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "typename",
                doc: "CUdevResourceType",
                conv: Conv::Enum(enums::CUdevResourceType),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Result(0), Word::Arg(1)],
        results: &[Output {
            name: "resource",
            doc: "CUdevResource",
            kind: Out::Struct(class::CUdevResource),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetDevice",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetDevice as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "device",
            doc: "CUdevice",
            kind: Out::Handle(class::CUdevice, Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetFlags",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetFlags as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "flags",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetGreenCtx",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetGreenCtx as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "phCtx",
            doc: "CUgreenCtx",
            kind: Out::Handle(class::CUgreenCtx, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetId",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetId as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "streamId",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamGetPriority",
        library: Library::Driver,
        symbol: Symbol::cuStreamGetPriority as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "priority",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamIsCapturing",
        library: Library::Driver,
        symbol: Symbol::cuStreamIsCapturing as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "captureStatus",
            doc: "CUstreamCaptureStatus",
            kind: Out::Enum(enums::CUstreamCaptureStatus),
        }],
        special: Special::None,
    },
    Function {
        name: "cuStreamQuery",
        library: Library::Driver,
        symbol: Symbol::cuStreamQuery as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamSetAttribute",
        library: Library::Driver,
        symbol: Symbol::cuStreamSetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "attr",
                doc: "CUstreamAttrID",
                conv: Conv::Enum(enums::CUstreamAttrID),
                default: None,
            },
            Param {
                name: "value",
                doc: "CUstreamAttrValue",
                conv: Conv::Struct(class::CUstreamAttrValue),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamSynchronize",
        library: Library::Driver,
        symbol: Symbol::cuStreamSynchronize as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hStream",
            doc: "CUstream or cudaStream_t",
            conv: Conv::Handle(class::CUstream, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamUpdateCaptureDependencies",
        library: Library::Driver,
        symbol: Symbol::cuStreamUpdateCaptureDependencies as u16,
        thunk: call_qqqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "dependencies",
                doc: "list[CUgraphNode]",
                conv: Conv::List(
                    Element::Handle(class::CUgraphNode, Int::U64),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "dependencyData",
                doc: "list[CUgraphEdgeData]",
                conv: Conv::List(
                    Element::Struct(class::CUgraphEdgeData, 8),
                    Some(Count {
                        param: 3,
                        less: 0,
                        optional: true,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numDependencies",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamWaitEvent",
        library: Library::Driver,
        symbol: Symbol::cuStreamWaitEvent as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hStream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "hEvent",
                doc: "CUevent or cudaEvent_t",
                conv: Conv::Handle(class::CUevent, Int::U64),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamWaitValue32",
        library: Library::Driver,
        symbol: Symbol::cuStreamWaitValue32 as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "stream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "addr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "value",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamWaitValue64",
        library: Library::Driver,
        symbol: Symbol::cuStreamWaitValue64 as u16,
        thunk: call_qqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "stream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "addr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "value",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamWriteValue32",
        library: Library::Driver,
        symbol: Symbol::cuStreamWriteValue32 as u16,
        thunk: call_qqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "stream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "addr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "value",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuStreamWriteValue64",
        library: Library::Driver,
        symbol: Symbol::cuStreamWriteValue64 as u16,
        thunk: call_qqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "stream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
            Param {
                name: "addr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "value",
                doc: "cuuint64_t",
                conv: Conv::Handle(class::cuuint64_t, Int::U64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuSurfObjectCreate",
        library: Library::Driver,
        symbol: Symbol::cuSurfObjectCreate as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "pResDesc",
            doc: "CUDA_RESOURCE_DESC",
            conv: Conv::Struct(class::CUDA_RESOURCE_DESC),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pSurfObject",
            doc: "CUsurfObject",
            kind: Out::Handle(class::CUsurfObject, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuSurfObjectDestroy",
        library: Library::Driver,
        symbol: Symbol::cuSurfObjectDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "surfObject",
            doc: "CUsurfObject",
            conv: Conv::Handle(class::CUsurfObject, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuSurfObjectGetResourceDesc",
        library: Library::Driver,
        symbol: Symbol::cuSurfObjectGetResourceDesc as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "surfObject",
            doc: "CUsurfObject",
            conv: Conv::Handle(class::CUsurfObject, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pResDesc",
            doc: "CUDA_RESOURCE_DESC",
            kind: Out::Struct(class::CUDA_RESOURCE_DESC),
        }],
        special: Special::None,
    },
    Function {
        name: "cuSurfRefGetArray",
        library: Library::Driver,
        symbol: Symbol::cuSurfRefGetArray as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hSurfRef",
            doc: "CUsurfref",
            conv: Conv::Handle(class::CUsurfref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "phArray",
            doc: "CUarray",
            kind: Out::Handle(class::CUarray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuSurfRefSetArray",
        library: Library::Driver,
        symbol: Symbol::cuSurfRefSetArray as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hSurfRef",
                doc: "CUsurfref",
                conv: Conv::Handle(class::CUsurfref, Int::U64),
                default: None,
            },
            Param {
                name: "hArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTensorMapEncodeIm2col",
        library: Library::Driver,
        symbol: Symbol::cuTensorMapEncodeIm2col as u16,
        thunk: call_qwwqqqqqwwqwwww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "tensorDataType",
                doc: "CUtensorMapDataType",
                conv: Conv::Enum(enums::CUtensorMapDataType),
                default: None,
            },
            Param {
                name: "tensorRank",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "globalAddress",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "globalDim",
                doc: "list[cuuint64_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint64_t, Int::U64),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "globalStrides",
                doc: "list[cuuint64_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint64_t, Int::U64),
                    Some(Count {
                        param: 1,
                        less: 1,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "pixelBoxLowerCorner",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::I32),
                    Some(Count {
                        param: 1,
                        less: 2,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "pixelBoxUpperCorner",
                doc: "list[int]",
                conv: Conv::List(
                    Element::Int(Int::I32),
                    Some(Count {
                        param: 1,
                        less: 2,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "channelsPerPixel",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "pixelsPerColumn",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "elementStrides",
                doc: "list[cuuint32_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint32_t, Int::U32),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "interleave",
                doc: "CUtensorMapInterleave",
                conv: Conv::Enum(enums::CUtensorMapInterleave),
                default: None,
            },
            Param {
                name: "swizzle",
                doc: "CUtensorMapSwizzle",
                conv: Conv::Enum(enums::CUtensorMapSwizzle),
                default: None,
            },
            Param {
                name: "l2Promotion",
                doc: "CUtensorMapL2promotion",
                conv: Conv::Enum(enums::CUtensorMapL2promotion),
                default: None,
            },
            Param {
                name: "oobFill",
                doc: "CUtensorMapFloatOOBfill",
                conv: Conv::Enum(enums::CUtensorMapFloatOOBfill),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
            Word::Arg(8),
            Word::Arg(9),
            Word::Arg(10),
            Word::Arg(11),
            Word::Arg(12),
            Word::Arg(13),
        ],
        results: &[Output {
            name: "tensorMap",
            doc: "CUtensorMap",
            kind: Out::Struct(class::CUtensorMap),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTensorMapEncodeIm2colWide",
        library: Library::Driver,
        symbol: Symbol::cuTensorMapEncodeIm2colWide as u16,
        thunk: call_qwwqqqwwwwqwwwww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "tensorDataType",
                doc: "CUtensorMapDataType",
                conv: Conv::Enum(enums::CUtensorMapDataType),
                default: None,
            },
            Param {
                name: "tensorRank",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "globalAddress",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "globalDim",
                doc: "list[cuuint64_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint64_t, Int::U64),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "globalStrides",
                doc: "list[cuuint64_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint64_t, Int::U64),
                    Some(Count {
                        param: 1,
                        less: 1,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "pixelBoxLowerCornerWidth",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "pixelBoxUpperCornerWidth",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "channelsPerPixel",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "pixelsPerColumn",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "elementStrides",
                doc: "list[cuuint32_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint32_t, Int::U32),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "interleave",
                doc: "CUtensorMapInterleave",
                conv: Conv::Enum(enums::CUtensorMapInterleave),
                default: None,
            },
            Param {
                name: "mode",
                doc: "CUtensorMapIm2ColWideMode",
                conv: Conv::Enum(enums::CUtensorMapIm2ColWideMode),
                default: None,
            },
            Param {
                name: "swizzle",
                doc: "CUtensorMapSwizzle",
                conv: Conv::Enum(enums::CUtensorMapSwizzle),
                default: None,
            },
            Param {
                name: "l2Promotion",
                doc: "CUtensorMapL2promotion",
                conv: Conv::Enum(enums::CUtensorMapL2promotion),
                default: None,
            },
            Param {
                name: "oobFill",
                doc: "CUtensorMapFloatOOBfill",
                conv: Conv::Enum(enums::CUtensorMapFloatOOBfill),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
            Word::Arg(8),
            Word::Arg(9),
            Word::Arg(10),
            Word::Arg(11),
            Word::Arg(12),
            Word::Arg(13),
            Word::Arg(14),
        ],
        results: &[Output {
            name: "tensorMap",
            doc: "CUtensorMap",
            kind: Out::Struct(class::CUtensorMap),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTensorMapEncodeTiled",
        library: Library::Driver,
        symbol: Symbol::cuTensorMapEncodeTiled as u16,
        thunk: call_qwwqqqqqwwww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "tensorDataType",
                doc: "CUtensorMapDataType",
                conv: Conv::Enum(enums::CUtensorMapDataType),
                default: None,
            },
            Param {
                name: "tensorRank",
                doc: "cuuint32_t",
                conv: Conv::Handle(class::cuuint32_t, Int::U32),
                default: None,
            },
            Param {
                name: "globalAddress",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "globalDim",
                doc: "list[cuuint64_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint64_t, Int::U64),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "globalStrides",
                doc: "list[cuuint64_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint64_t, Int::U64),
                    Some(Count {
                        param: 1,
                        less: 1,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "boxDim",
                doc: "list[cuuint32_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint32_t, Int::U32),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "elementStrides",
                doc: "list[cuuint32_t]",
                conv: Conv::List(
                    Element::Handle(class::cuuint32_t, Int::U32),
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "interleave",
                doc: "CUtensorMapInterleave",
                conv: Conv::Enum(enums::CUtensorMapInterleave),
                default: None,
            },
            Param {
                name: "swizzle",
                doc: "CUtensorMapSwizzle",
                conv: Conv::Enum(enums::CUtensorMapSwizzle),
                default: None,
            },
            Param {
                name: "l2Promotion",
                doc: "CUtensorMapL2promotion",
                conv: Conv::Enum(enums::CUtensorMapL2promotion),
                default: None,
            },
            Param {
                name: "oobFill",
                doc: "CUtensorMapFloatOOBfill",
                conv: Conv::Enum(enums::CUtensorMapFloatOOBfill),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
            Word::Arg(5),
            Word::Arg(6),
            Word::Arg(7),
            Word::Arg(8),
            Word::Arg(9),
            Word::Arg(10),
        ],
        results: &[Output {
            name: "tensorMap",
            doc: "CUtensorMap",
            kind: Out::Struct(class::CUtensorMap),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTensorMapReplaceAddress",
        library: Library::Driver,
        symbol: Symbol::cuTensorMapReplaceAddress as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "tensorMap",
                doc: "CUtensorMap",
                conv: Conv::Struct(class::CUtensorMap),
                default: None,
            },
            Param {
                name: "globalAddress",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTensorMapSetAllocationClass",
        library: Library::Driver,
        symbol: Symbol::cuTensorMapSetAllocationClass as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "tensorMap",
                doc: "CUtensorMap",
                conv: Conv::Struct(class::CUtensorMap),
                default: None,
            },
            Param {
                name: "allocClass",
                doc: "CUtensorMapAllocClass",
                conv: Conv::Enum(enums::CUtensorMapAllocClass),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "outAllocClass",
            doc: "CUtensorMapAllocClass",
            kind: Out::Enum(enums::CUtensorMapAllocClass),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexObjectCreate",
        library: Library::Driver,
        symbol: Symbol::cuTexObjectCreate as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "pResDesc",
                doc: "CUDA_RESOURCE_DESC",
                conv: Conv::Struct(class::CUDA_RESOURCE_DESC),
                default: None,
            },
            Param {
                name: "pTexDesc",
                doc: "CUDA_TEXTURE_DESC",
                conv: Conv::Struct(class::CUDA_TEXTURE_DESC),
                default: None,
            },
            Param {
                name: "pResViewDesc",
                doc: "CUDA_RESOURCE_VIEW_DESC",
                conv: Conv::Struct(class::CUDA_RESOURCE_VIEW_DESC),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "pTexObject",
            doc: "CUtexObject",
            kind: Out::Handle(class::CUtexObject, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexObjectDestroy",
        library: Library::Driver,
        symbol: Symbol::cuTexObjectDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "texObject",
            doc: "CUtexObject",
            conv: Conv::Handle(class::CUtexObject, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexObjectGetResourceDesc",
        library: Library::Driver,
        symbol: Symbol::cuTexObjectGetResourceDesc as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "texObject",
            doc: "CUtexObject",
            conv: Conv::Handle(class::CUtexObject, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pResDesc",
            doc: "CUDA_RESOURCE_DESC",
            kind: Out::Struct(class::CUDA_RESOURCE_DESC),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexObjectGetResourceViewDesc",
        library: Library::Driver,
        symbol: Symbol::cuTexObjectGetResourceViewDesc as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "texObject",
            doc: "CUtexObject",
            conv: Conv::Handle(class::CUtexObject, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pResViewDesc",
            doc: "CUDA_RESOURCE_VIEW_DESC",
            kind: Out::Struct(class::CUDA_RESOURCE_VIEW_DESC),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexObjectGetTextureDesc",
        library: Library::Driver,
        symbol: Symbol::cuTexObjectGetTextureDesc as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "texObject",
            doc: "CUtexObject",
            conv: Conv::Handle(class::CUtexObject, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pTexDesc",
            doc: "CUDA_TEXTURE_DESC",
            kind: Out::Struct(class::CUDA_TEXTURE_DESC),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefCreate",
        library: Library::Driver,
        symbol: Symbol::cuTexRefCreate as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "pTexRef",
            doc: "CUtexref",
            kind: Out::Handle(class::CUtexref, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefDestroy",
        library: Library::Driver,
        symbol: Symbol::cuTexRefDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetAddress",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetAddress as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pdptr",
            doc: "CUdeviceptr",
            kind: Out::Handle(class::CUdeviceptr, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetAddressMode",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetAddressMode as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "dim",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pam",
            doc: "CUaddress_mode",
            kind: Out::Enum(enums::CUaddress_mode),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetArray",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetArray as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "phArray",
            doc: "CUarray",
            kind: Out::Handle(class::CUarray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetBorderColor",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetBorderColor as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "hTexRef",
            doc: "float",
            kind: Out::F32,
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetFilterMode",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetFilterMode as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pfm",
            doc: "CUfilter_mode",
            kind: Out::Enum(enums::CUfilter_mode),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetFlags",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetFlags as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pFlags",
            doc: "int",
            kind: Out::Int(Int::U32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetFormat",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetFormat as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0)],
        results: &[
            Output {
                name: "pFormat",
                doc: "CUarray_format",
                kind: Out::Enum(enums::CUarray_format),
            },
            Output {
                name: "pNumChannels",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetMaxAnisotropy",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetMaxAnisotropy as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pmaxAniso",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetMipmapFilterMode",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetMipmapFilterMode as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pfm",
            doc: "CUfilter_mode",
            kind: Out::Enum(enums::CUfilter_mode),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetMipmapLevelBias",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetMipmapLevelBias as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "pbias",
            doc: "float",
            kind: Out::F32,
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetMipmapLevelClamp",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetMipmapLevelClamp as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Result(1), Word::Arg(0)],
        results: &[
            Output {
                name: "pminMipmapLevelClamp",
                doc: "float",
                kind: Out::F32,
            },
            Output {
                name: "pmaxMipmapLevelClamp",
                doc: "float",
                kind: Out::F32,
            },
        ],
        special: Special::None,
    },
    Function {
        name: "cuTexRefGetMipmappedArray",
        library: Library::Driver,
        symbol: Symbol::cuTexRefGetMipmappedArray as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "hTexRef",
            doc: "CUtexref",
            conv: Conv::Handle(class::CUtexref, Int::U64),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "phMipmappedArray",
            doc: "CUmipmappedArray",
            kind: Out::Handle(class::CUmipmappedArray, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetAddress",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetAddress as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "dptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "numbytes",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[Output {
            name: "ByteOffset",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetAddress2D",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetAddress2D as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "desc",
                doc: "CUDA_ARRAY_DESCRIPTOR",
                conv: Conv::Struct(class::CUDA_ARRAY_DESCRIPTOR),
                default: None,
            },
            Param {
                name: "dptr",
                doc: "CUdeviceptr",
                conv: Conv::Handle(class::CUdeviceptr, Int::U64),
                default: None,
            },
            Param {
                name: "Pitch",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetAddressMode",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetAddressMode as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "dim",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "am",
                doc: "CUaddress_mode",
                conv: Conv::Enum(enums::CUaddress_mode),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetArray",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetArray as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "hArray",
                doc: "CUarray",
                conv: Conv::Handle(class::CUarray, Int::U64),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetBorderColor",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetBorderColor as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "pBorderColor",
                doc: "float",
                conv: Conv::F32,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::ArgAddress(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetFilterMode",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetFilterMode as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "fm",
                doc: "CUfilter_mode",
                conv: Conv::Enum(enums::CUfilter_mode),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetFlags",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetFlags as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetFormat",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetFormat as u16,
        thunk: call_qww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "fmt",
                doc: "CUarray_format",
                conv: Conv::Enum(enums::CUarray_format),
                default: None,
            },
            Param {
                name: "NumPackedComponents",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetMaxAnisotropy",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetMaxAnisotropy as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "maxAniso",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetMipmapFilterMode",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetMipmapFilterMode as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "fm",
                doc: "CUfilter_mode",
                conv: Conv::Enum(enums::CUfilter_mode),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetMipmapLevelBias",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetMipmapLevelBias as u16,
        thunk: call_qf_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "bias",
                doc: "float",
                conv: Conv::F32,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetMipmapLevelClamp",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetMipmapLevelClamp as u16,
        thunk: call_qff_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "minMipmapLevelClamp",
                doc: "float",
                conv: Conv::F32,
                default: None,
            },
            Param {
                name: "maxMipmapLevelClamp",
                doc: "float",
                conv: Conv::F32,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuTexRefSetMipmappedArray",
        library: Library::Driver,
        symbol: Symbol::cuTexRefSetMipmappedArray as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "hTexRef",
                doc: "CUtexref",
                conv: Conv::Handle(class::CUtexref, Int::U64),
                default: None,
            },
            Param {
                name: "hMipmappedArray",
                doc: "CUmipmappedArray",
                conv: Conv::Handle(class::CUmipmappedArray, Int::U64),
                default: None,
            },
            Param {
                name: "Flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuThreadExchangeStreamCaptureMode",
        library: Library::Driver,
        symbol: Symbol::cuThreadExchangeStreamCaptureMode as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "mode",
            doc: "CUstreamCaptureMode",
            conv: Conv::Enum(enums::CUstreamCaptureMode),
            default: None,
        }],
        words: &[Word::InOut(0, 0)],
        results: &[Output {
            name: "mode",
            doc: "CUstreamCaptureMode",
            kind: Out::Enum(enums::CUstreamCaptureMode),
        }],
        special: Special::None,
    },
    Function {
        name: "cuUserObjectCreate",
        library: Library::Driver,
        symbol: Symbol::cuUserObjectCreate as u16,
        thunk: call_qqqww_w,
        keep_gil: false,
        params: &[
            Param {
                name: "ptr",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "destroy",
                doc: "CUhostFn",
                conv: Conv::Handle(class::CUhostFn, Int::U64),
                default: None,
            },
            Param {
                name: "initialRefcount",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "object_out",
            doc: "CUuserObject",
            kind: Out::Handle(class::CUuserObject, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuUserObjectRelease",
        library: Library::Driver,
        symbol: Symbol::cuUserObjectRelease as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "object",
                doc: "CUuserObject",
                conv: Conv::Handle(class::CUuserObject, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuUserObjectRetain",
        library: Library::Driver,
        symbol: Symbol::cuUserObjectRetain as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "object",
                doc: "CUuserObject",
                conv: Conv::Handle(class::CUuserObject, Int::U64),
                default: None,
            },
            Param {
                name: "count",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "cuVDPAUCtxCreate",
        library: Library::Driver,
        symbol: Symbol::cuVDPAUCtxCreate as u16,
        thunk: call_qwwwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "device",
                doc: "CUdevice",
                conv: Conv::Handle(class::CUdevice, Int::I32),
                default: None,
            },
            Param {
                name: "vdpDevice",
                doc: "VdpDevice",
                conv: Conv::Handle(class::VdpDevice, Int::U32),
                default: None,
            },
            Param {
                name: "vdpGetProcAddress",
                doc: "VdpGetProcAddress",
                conv: Conv::Handle(class::VdpGetProcAddress, Int::U64),
                default: None,
            },
        ],
        words: &[
            Word::Result(0),
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "pCtx",
            doc: "CUcontext",
            kind: Out::Handle(class::CUcontext, Int::U64),
        }],
        special: Special::None,
    },
    Function {
        name: "cuVDPAUGetDevice",
        library: Library::Driver,
        symbol: Symbol::cuVDPAUGetDevice as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "vdpDevice",
                doc: "VdpDevice",
                conv: Conv::Handle(class::VdpDevice, Int::U32),
                default: None,
            },
            Param {
                name: "vdpGetProcAddress",
                doc: "VdpGetProcAddress",
                conv: Conv::Handle(class::VdpGetProcAddress, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "pDevice",
            doc: "CUdevice",
            kind: Out::Handle(class::CUdevice, Int::I32),
        }],
        special: Special::None,
    },
    Function {
        name: "cuWaitExternalSemaphoresAsync",
        library: Library::Driver,
        symbol: Symbol::cuWaitExternalSemaphoresAsync as u16,
        thunk: call_qqwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "extSemArray",
                doc: "list[CUexternalSemaphore]",
                conv: Conv::List(
                    Element::Handle(class::CUexternalSemaphore, Int::U64),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "paramsArray",
                doc: "list[CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS]",
                conv: Conv::List(
                    Element::Struct(class::CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, 144),
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "numExtSems",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "stream",
                doc: "CUstream or cudaStream_t",
                conv: Conv::Handle(class::CUstream, Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::None,
    },
    Function {
        name: "sizeof",
        library: Library::Driver,
        symbol: 0,
        thunk: nothing,
        keep_gil: true,
        params: &[Param {
            name: "objType",
            doc: "Any",
            conv: Conv::VoidPtrPtr,
            default: None,
        }],
        words: &[],
        results: &[Output {
            name: "",
            doc: "int",
            kind: Out::VoidPtr,
        }],
        special: Special::Sizeof,
    },
];
