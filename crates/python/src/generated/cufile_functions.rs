// Made by `cargo xtask codegen` from NVIDIA's headers and api/overlay/cufile.toml. Do not edit.
//! The functions of `cuda.bindings.cufile`.

use std::ffi::c_void;

use cupyrite_sys::cufile::Symbol;
use cupyrite_sys::loader::CudaLibrary;

#[allow(unused_imports)]
use crate::bindings::descriptor::*;
use crate::generated::ids::class::cufile as class;

unsafe fn call_q_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64) -> i64>(f);
        f(*w.add(0))
    }
}

unsafe fn call_q_v(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64)>(f);
        f(*w.add(0));
        0
    }
}

unsafe fn call_qwqqq_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u64, u64, u64) -> i64,
        >(f);
        f(*w.add(0), *w.add(1) as u32, *w.add(2), *w.add(3), *w.add(4))
    }
}

unsafe fn call_qw_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32) -> i64>(f);
        f(*w.add(0), *w.add(1) as u32)
    }
}

unsafe fn call_qwqw_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u64, u32) -> i64>(
            f,
        );
        f(*w.add(0), *w.add(1) as u32, *w.add(2), *w.add(3) as u32)
    }
}

unsafe fn call_qqw_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u32) -> i64>(f);
        f(*w.add(0), *w.add(1), *w.add(2) as u32)
    }
}

unsafe fn call_q(f: *const c_void, _w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> i64>(f);
        f()
    }
}

unsafe fn call_bq_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u8, u64) -> i64>(f);
        f(*w.add(0) as u8, *w.add(1))
    }
}

unsafe fn call_wq_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u64) -> i64>(f);
        f(*w.add(0) as u32, *w.add(1))
    }
}

unsafe fn call_wqq_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u64, u64) -> i64>(f);
        f(*w.add(0) as u32, *w.add(1), *w.add(2))
    }
}

unsafe fn call_wqw_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u64, u32) -> i64>(f);
        f(*w.add(0) as u32, *w.add(1), *w.add(2) as u32)
    }
}

unsafe fn call_qq_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64) -> i64>(f);
        f(*w.add(0), *w.add(1))
    }
}

unsafe fn call_qqqqq_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64) -> i64,
        >(f);
        f(*w.add(0), *w.add(1), *w.add(2), *w.add(3), *w.add(4))
    }
}

unsafe fn call_qqqqqqq_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64) -> i64,
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
    }
}

unsafe fn call_qqqqw_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u32) -> i64,
        >(f);
        f(*w.add(0), *w.add(1), *w.add(2), *w.add(3), *w.add(4) as u32)
    }
}

unsafe fn call_wb_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32, u8) -> i64>(f);
        f(*w.add(0) as u32, *w.add(1) as u8)
    }
}

unsafe fn call_w_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32) -> i64>(f);
        f(*w.add(0) as u32)
    }
}

unsafe fn nothing(_f: *const c_void, _w: *const u64) -> i64 {
    0
}

/// All functions, sorted by name.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "batch_io_cancel",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileBatchIOCancel as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "batch_idp",
            doc: "intptr_t",
            conv: Conv::Address,
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileBatchIOCancel",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "batch_io_destroy",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileBatchIODestroy as u16,
        thunk: call_q_v,
        keep_gil: false,
        params: &[Param {
            name: "batch_idp",
            doc: "intptr_t",
            conv: Conv::Address,
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileBatchIODestroy",
            ret: Ret::Void,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "batch_io_get_status",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileBatchIOGetStatus as u16,
        thunk: call_qwqqq_q,
        keep_gil: false,
        params: &[
            Param {
                name: "batch_idp",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "min_nr",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "nr",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "iocbp",
                doc: "IOEvents",
                conv: Conv::Pod(class::IOEvents, PodRule::Address),
                default: None,
            },
            Param {
                name: "timeout",
                doc: "intptr_t",
                conv: Conv::Address,
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileBatchIOGetStatus",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "batch_io_set_up",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileBatchIOSetUp as u16,
        thunk: call_qw_q,
        keep_gil: false,
        params: &[Param {
            name: "nr",
            doc: "unsigned int",
            conv: Conv::Int(Int::U32),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "batch_idp",
            doc: "int",
            kind: Out::Address,
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileBatchIOSetUp",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "batch_io_submit",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileBatchIOSubmit as u16,
        thunk: call_qwqw_q,
        keep_gil: false,
        params: &[
            Param {
                name: "batch_idp",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "nr",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "iocbp",
                doc: "IOParams",
                conv: Conv::Pod(class::IOParams, PodRule::Address),
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileBatchIOSubmit",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "buf_deregister",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileBufDeregister as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "buf_ptr_base",
            doc: "intptr_t",
            conv: Conv::Address,
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileBufDeregister",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "buf_register",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileBufRegister as u16,
        thunk: call_qqw_q,
        keep_gil: false,
        params: &[
            Param {
                name: "buf_ptr_base",
                doc: "intptr_t",
                conv: Conv::Address,
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
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileBufRegister",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: true,
            short: false,
        }),
    },
    Function {
        name: "driver_close",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileDriverClose as u16,
        thunk: call_q,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileDriverClose_v2",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "driver_get_properties",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileDriverGetProperties as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "props",
            doc: "intptr_t",
            conv: Conv::Address,
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileDriverGetProperties",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "driver_open",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileDriverOpen as u16,
        thunk: call_q,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileDriverOpen",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: true,
            short: false,
        }),
    },
    Function {
        name: "driver_set_max_cache_size",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileDriverSetMaxCacheSize as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "max_cache_size",
            doc: "size_t",
            conv: Conv::Int(Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileDriverSetMaxCacheSize",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "driver_set_max_direct_io_size",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileDriverSetMaxDirectIOSize as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "max_direct_io_size",
            doc: "size_t",
            conv: Conv::Int(Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileDriverSetMaxDirectIOSize",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "driver_set_max_pinned_mem_size",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileDriverSetMaxPinnedMemSize as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "max_pinned_size",
            doc: "size_t",
            conv: Conv::Int(Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileDriverSetMaxPinnedMemSize",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "driver_set_poll_mode",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileDriverSetPollMode as u16,
        thunk: call_bq_q,
        keep_gil: false,
        params: &[
            Param {
                name: "poll",
                doc: "bool",
                conv: Conv::Bool,
                default: None,
            },
            Param {
                name: "poll_threshold_size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileDriverSetPollMode",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_bar_size_in_kb",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetBARSizeInKB as u16,
        thunk: call_wq_q,
        keep_gil: false,
        params: &[Param {
            name: "gpu_index",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "bar_size",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetBARSizeInKB",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_parameter_bool",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetParameterBool as u16,
        thunk: call_wq_q,
        keep_gil: false,
        params: &[Param {
            name: "param",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "value",
            doc: "bool",
            kind: Out::Bool,
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetParameterBool",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_parameter_min_max_value",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetParameterMinMaxValue as u16,
        thunk: call_wqq_q,
        keep_gil: false,
        params: &[Param {
            name: "param",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "min_value",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
            Output {
                name: "max_value",
                doc: "int",
                kind: Out::Int(Int::U64),
            },
        ],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetParameterMinMaxValue",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_parameter_posix_pool_slab_array",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetParameterPosixPoolSlabArray as u16,
        thunk: call_qqw_q,
        keep_gil: false,
        params: &[
            Param {
                name: "size_values",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "count_values",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "len",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetParameterPosixPoolSlabArray",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_parameter_size_t",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetParameterSizeT as u16,
        thunk: call_wq_q,
        keep_gil: false,
        params: &[Param {
            name: "param",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "value",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetParameterSizeT",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_parameter_string",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetParameterString as u16,
        thunk: call_wqw_q,
        keep_gil: false,
        params: &[
            Param {
                name: "param",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "len",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Result(0), Word::Arg(1)],
        results: &[Output {
            name: "desc_str",
            doc: "str",
            kind: Out::Str(Len::Arg(1)),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetParameterString",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_stats_l1",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetStatsL1 as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "stats",
            doc: "StatsLevel1",
            conv: Conv::Pod(class::StatsLevel1, PodRule::Address),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetStatsL1",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_stats_l2",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetStatsL2 as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "stats",
            doc: "StatsLevel2",
            conv: Conv::Pod(class::StatsLevel2, PodRule::Address),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetStatsL2",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_stats_l3",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetStatsL3 as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "stats",
            doc: "StatsLevel3",
            conv: Conv::Pod(class::StatsLevel3, PodRule::Address),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetStatsL3",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_stats_level",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetStatsLevel as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "level",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetStatsLevel",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_version",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileGetVersion as u16,
        thunk: call_q_q,
        keep_gil: true,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "version",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileGetVersion",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "handle_deregister",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileHandleDeregister as u16,
        thunk: call_q_v,
        keep_gil: false,
        params: &[Param {
            name: "fh",
            doc: "intptr_t",
            conv: Conv::Address,
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileHandleDeregister",
            ret: Ret::Void,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "handle_register",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileHandleRegister as u16,
        thunk: call_qq_q,
        keep_gil: false,
        params: &[Param {
            name: "descr",
            doc: "Descr",
            conv: Conv::Pod(class::Descr, PodRule::Address),
            default: None,
        }],
        words: &[Word::Result(0), Word::Arg(0)],
        results: &[Output {
            name: "fh",
            doc: "int",
            kind: Out::Address,
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileHandleRegister",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: true,
            short: false,
        }),
    },
    Function {
        name: "op_status_error",
        library: CudaLibrary::CuFile,
        symbol: 0,
        thunk: nothing,
        keep_gil: true,
        params: &[Param {
            name: "status",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[],
        results: &[Output {
            name: "",
            doc: "str",
            kind: Out::VoidPtr,
        }],
        special: Special::OpStatusError,
        plain: false,
        raising: Some(&Raising {
            symbol: "",
            ret: Ret::Void,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "read",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileRead as u16,
        thunk: call_qqqqq_q,
        keep_gil: false,
        params: &[
            Param {
                name: "fh",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "buf_ptr_base",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "file_offset",
                doc: "long",
                conv: Conv::Int(Int::I64),
                default: None,
            },
            Param {
                name: "buf_ptr_offset",
                doc: "long",
                conv: Conv::Int(Int::I64),
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
        results: &[Output {
            name: "",
            doc: "int",
            kind: Out::Int(Int::I64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileRead",
            ret: Ret::Size,
            sizing: None,
            requests: &[],
            interruptible: true,
            short: false,
        }),
    },
    Function {
        name: "read_async",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileReadAsync as u16,
        thunk: call_qqqqqqq_q,
        keep_gil: false,
        params: &[
            Param {
                name: "fh",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "buf_ptr_base",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "size_p",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "file_offset_p",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "buf_ptr_offset_p",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "bytes_read_p",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "stream",
                doc: "intptr_t",
                conv: Conv::Address,
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileReadAsync",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: true,
            short: false,
        }),
    },
    Function {
        name: "readv",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileReadv as u16,
        thunk: call_qqqqw_q,
        keep_gil: false,
        params: &[
            Param {
                name: "fh",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "iov",
                doc: "IOVec",
                conv: Conv::Pod(class::IOVec, PodRule::Exact),
                default: None,
            },
            Param {
                name: "file_offset",
                doc: "long",
                conv: Conv::Int(Int::I64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: Some(0),
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Elements(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "",
            doc: "int",
            kind: Out::Int(Int::I64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileReadv",
            ret: Ret::Size,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "set_parameter_bool",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileSetParameterBool as u16,
        thunk: call_wb_q,
        keep_gil: false,
        params: &[
            Param {
                name: "param",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "value",
                doc: "bool",
                conv: Conv::Bool,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileSetParameterBool",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "set_parameter_posix_pool_slab_array",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileSetParameterPosixPoolSlabArray as u16,
        thunk: call_qqw_q,
        keep_gil: false,
        params: &[
            Param {
                name: "size_values",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "count_values",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "len",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileSetParameterPosixPoolSlabArray",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "set_parameter_size_t",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileSetParameterSizeT as u16,
        thunk: call_wq_q,
        keep_gil: false,
        params: &[
            Param {
                name: "param",
                doc: "int",
                conv: Conv::Int(Int::I32),
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileSetParameterSizeT",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "set_parameter_string",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileSetParameterString as u16,
        thunk: call_wq_q,
        keep_gil: false,
        params: &[
            Param {
                name: "param",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "desc_str",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileSetParameterString",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "set_stats_level",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileSetStatsLevel as u16,
        thunk: call_w_q,
        keep_gil: false,
        params: &[Param {
            name: "level",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileSetStatsLevel",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "stats_reset",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileStatsReset as u16,
        thunk: call_q,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileStatsReset",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "stats_start",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileStatsStart as u16,
        thunk: call_q,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileStatsStart",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "stats_stop",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileStatsStop as u16,
        thunk: call_q,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileStatsStop",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "stream_deregister",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileStreamDeregister as u16,
        thunk: call_q_q,
        keep_gil: false,
        params: &[Param {
            name: "stream",
            doc: "intptr_t",
            conv: Conv::Address,
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileStreamDeregister",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "stream_register",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileStreamRegister as u16,
        thunk: call_qw_q,
        keep_gil: false,
        params: &[
            Param {
                name: "stream",
                doc: "intptr_t",
                conv: Conv::Address,
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileStreamRegister",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "use_count",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileUseCount as u16,
        thunk: call_q,
        keep_gil: false,
        params: &[],
        words: &[],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileUseCount",
            ret: Ret::Void,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "write",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileWrite as u16,
        thunk: call_qqqqq_q,
        keep_gil: false,
        params: &[
            Param {
                name: "fh",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "buf_ptr_base",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "file_offset",
                doc: "long",
                conv: Conv::Int(Int::I64),
                default: None,
            },
            Param {
                name: "buf_ptr_offset",
                doc: "long",
                conv: Conv::Int(Int::I64),
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
        results: &[Output {
            name: "",
            doc: "int",
            kind: Out::Int(Int::I64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileWrite",
            ret: Ret::Size,
            sizing: None,
            requests: &[],
            interruptible: true,
            short: false,
        }),
    },
    Function {
        name: "write_async",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileWriteAsync as u16,
        thunk: call_qqqqqqq_q,
        keep_gil: false,
        params: &[
            Param {
                name: "fh",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "buf_ptr_base",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "size_p",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "file_offset_p",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "buf_ptr_offset_p",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "bytes_written_p",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "stream",
                doc: "intptr_t",
                conv: Conv::Address,
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileWriteAsync",
            ret: Ret::CuFile,
            sizing: None,
            requests: &[],
            interruptible: true,
            short: false,
        }),
    },
    Function {
        name: "writev",
        library: CudaLibrary::CuFile,
        symbol: Symbol::cuFileWritev as u16,
        thunk: call_qqqqw_q,
        keep_gil: false,
        params: &[
            Param {
                name: "fh",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "iov",
                doc: "IOVec",
                conv: Conv::Pod(class::IOVec, PodRule::Exact),
                default: None,
            },
            Param {
                name: "file_offset",
                doc: "long",
                conv: Conv::Int(Int::I64),
                default: None,
            },
            Param {
                name: "flags",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: Some(0),
            },
        ],
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Elements(1),
            Word::Arg(2),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "",
            doc: "int",
            kind: Out::Int(Int::I64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cuFileWritev",
            ret: Ret::Size,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
];
