// Made by `cargo xtask codegen` from NVIDIA's headers and api/overlay/cudla.toml. Do not edit.
//! The functions of `cuda.bindings.cudla`.

use std::ffi::c_void;

use cupyrite_sys::cudla::Symbol;
use cupyrite_sys::loader::CudaLibrary;

#[allow(unused_imports)]
use crate::bindings::descriptor::*;
use crate::generated::ids::class::cudla as class;

unsafe fn call_qqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u32) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1), *w.add(2) as u32))
    }
}

unsafe fn call_q_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64) -> i32>(f);
        i64::from(f(*w.add(0)))
    }
}

unsafe fn call_qwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u64) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1) as u32, *w.add(2)))
    }
}

unsafe fn call_qqqqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u32) -> i32,
        >(f);
        i64::from(f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4) as u32,
        ))
    }
}

unsafe fn call_qq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1)))
    }
}

unsafe fn call_qw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1) as u32))
    }
}

unsafe fn call_qqwqw_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u32, u64, u32) -> i32,
        >(f);
        i64::from(f(
            *w.add(0),
            *w.add(1),
            *w.add(2) as u32,
            *w.add(3),
            *w.add(4) as u32,
        ))
    }
}

unsafe fn nothing(_f: *const c_void, _w: *const u64) -> i64 {
    0
}

/// All functions, sorted by name.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "check_status",
        library: CudaLibrary::Cudla,
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
        results: &[],
        special: Special::CheckStatus(false),
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
        name: "create_device",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaCreateDevice as u16,
        thunk: call_qqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "device",
                doc: "unsigned long",
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
        words: &[Word::Arg(0), Word::Result(0), Word::Arg(1)],
        results: &[Output {
            name: "dev_handle",
            doc: "int",
            kind: Out::Address,
        }],
        special: Special::CudlaCreateDevice,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaCreateDevice",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "destroy_device",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaDestroyDevice as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "dev_handle",
            doc: "intptr_t",
            conv: Conv::Address,
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaDestroyDevice",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "device_get_attribute",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaDeviceGetAttribute as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev_handle",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "attrib",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "p_attribute",
            doc: "DevAttribute",
            kind: Out::Pod(class::DevAttribute),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaDeviceGetAttribute",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "device_get_count",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaDeviceGetCount as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "p_num_devices",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaDeviceGetCount",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "get_last_error",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaGetLastError as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "dev_handle",
            doc: "intptr_t",
            conv: Conv::Address,
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[Output {
            name: "",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaGetLastError",
            ret: Ret::Value(Int::I32),
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_version",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaGetVersion as u16,
        thunk: call_q_w,
        keep_gil: true,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "version",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaGetVersion",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "mem_register",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaMemRegister as u16,
        thunk: call_qqqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev_handle",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "ptr",
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
            Word::Result(0),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "dev_ptr",
            doc: "int",
            kind: Out::Address,
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaMemRegister",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "mem_unregister",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaMemUnregister as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev_handle",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "dev_ptr",
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
            symbol: "cudlaMemUnregister",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "module_get_attributes",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaModuleGetAttributes as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "h_module",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "attr_type",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Null],
        results: &[Output {
            name: "",
            doc: "int",
            kind: Out::VoidPtr,
        }],
        special: Special::CudlaModuleAttributes,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaModuleGetAttributes",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "module_load_from_memory",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaModuleLoadFromMemory as u16,
        thunk: call_qqqqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev_handle",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "p_module",
                doc: "bytes",
                conv: Conv::Buffer(Some(2)),
                default: None,
            },
            Param {
                name: "module_size",
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
            Word::Result(0),
            Word::Arg(3),
        ],
        results: &[Output {
            name: "h_module",
            doc: "int",
            kind: Out::Address,
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaModuleLoadFromMemory",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "module_unload",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaModuleUnload as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "h_module",
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
            symbol: "cudlaModuleUnload",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "set_task_timeout_in_ms",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaSetTaskTimeoutInMs as u16,
        thunk: call_qw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev_handle",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "timeout",
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
            symbol: "cudlaSetTaskTimeoutInMs",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "submit_task",
        library: CudaLibrary::Cudla,
        symbol: Symbol::cudlaSubmitTask as u16,
        thunk: call_qqwqw_w,
        keep_gil: false,
        params: &[
            Param {
                name: "dev_handle",
                doc: "intptr_t",
                conv: Conv::Address,
                default: None,
            },
            Param {
                name: "ptr_to_tasks",
                doc: "object",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "num_tasks",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
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
        words: &[
            Word::Arg(0),
            Word::Arg(1),
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[],
        special: Special::CudlaSubmitTask,
        plain: false,
        raising: Some(&Raising {
            symbol: "cudlaSubmitTask",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
];
