// Made by `cargo xtask codegen` from NVIDIA's headers and api/overlay/nvfatbin.toml. Do not edit.
//! The functions of `cuda.bindings.nvfatbin`.

use std::ffi::c_void;

use cupyrite_sys::loader::CudaLibrary;
use cupyrite_sys::nvfatbin::Symbol;

#[allow(unused_imports)]
use crate::bindings::descriptor::*;

unsafe fn call_qqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64) -> i32,
        >(f);
        i64::from(f(*w.add(0), *w.add(1), *w.add(2), *w.add(3), *w.add(4)))
    }
}

unsafe fn call_qqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u64, u64) -> i32>(
            f,
        );
        i64::from(f(*w.add(0), *w.add(1), *w.add(2), *w.add(3)))
    }
}

unsafe fn call_qqqqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> i32,
        >(f);
        i64::from(f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3),
            *w.add(4),
            *w.add(5),
        ))
    }
}

unsafe fn call_qqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u64) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1), *w.add(2)))
    }
}

unsafe fn call_q_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64) -> i32>(f);
        i64::from(f(*w.add(0)))
    }
}

unsafe fn call_qq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1)))
    }
}

unsafe fn call_w_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32) -> i64>(f);
        f(*w.add(0) as u32)
    }
}

/// All functions, sorted by name.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "add_cubin",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinAddCubin as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvFatbin),
                default: None,
            },
            Param {
                name: "code",
                doc: "bytes",
                conv: Conv::Buffer(Some(2)),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "arch",
                doc: "str",
                conv: Conv::Str,
                default: None,
            },
            Param {
                name: "identifier",
                doc: "str",
                conv: Conv::Str,
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
            symbol: "nvFatbinAddCubin",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "add_index",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinAddIndex as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvFatbin),
                default: None,
            },
            Param {
                name: "code",
                doc: "bytes",
                conv: Conv::Buffer(Some(2)),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "identifier",
                doc: "str",
                conv: Conv::Str,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2), Word::Arg(3)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinAddIndex",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "add_ltoir",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinAddLTOIR as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvFatbin),
                default: None,
            },
            Param {
                name: "code",
                doc: "bytes",
                conv: Conv::Buffer(Some(2)),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "arch",
                doc: "str",
                conv: Conv::Str,
                default: None,
            },
            Param {
                name: "identifier",
                doc: "str",
                conv: Conv::Str,
                default: None,
            },
            Param {
                name: "options_cmd_line",
                doc: "str",
                conv: Conv::Str,
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinAddLTOIR",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "add_ptx",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinAddPTX as u16,
        thunk: call_qqqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvFatbin),
                default: None,
            },
            Param {
                name: "code",
                doc: "bytes",
                conv: Conv::Buffer(Some(2)),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "arch",
                doc: "str",
                conv: Conv::Str,
                default: None,
            },
            Param {
                name: "identifier",
                doc: "str",
                conv: Conv::Str,
                default: None,
            },
            Param {
                name: "options_cmd_line",
                doc: "str",
                conv: Conv::Str,
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinAddPTX",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "add_reloc",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinAddReloc as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvFatbin),
                default: None,
            },
            Param {
                name: "code",
                doc: "bytes",
                conv: Conv::Buffer(Some(2)),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinAddReloc",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "add_tile_ir",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinAddTileIR as u16,
        thunk: call_qqqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvFatbin),
                default: None,
            },
            Param {
                name: "code",
                doc: "bytes",
                conv: Conv::Buffer(Some(2)),
                default: None,
            },
            Param {
                name: "size",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
            Param {
                name: "identifier",
                doc: "str",
                conv: Conv::Str,
                default: None,
            },
            Param {
                name: "options_cmd_line",
                doc: "str",
                conv: Conv::Str,
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
            symbol: "nvFatbinAddTileIR",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "create",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinCreate as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "options",
                doc: "object",
                conv: Conv::StrList(Some(1)),
                default: None,
            },
            Param {
                name: "options_count",
                doc: "size_t",
                conv: Conv::Int(Int::U64),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "handle_indirect",
            doc: "int",
            kind: Out::Made(HandleKind::NvFatbin),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinCreate",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "destroy",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Ended(HandleKind::NvFatbin),
            default: None,
        }],
        words: &[Word::ArgAddress(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinDestroy",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinGet as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvFatbin),
                default: None,
            },
            Param {
                name: "buffer",
                doc: "bytes",
                conv: Conv::BufferOut(OutSize::Call("size")),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinGet",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_error_string",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinGetErrorString as u16,
        thunk: call_w_q,
        keep_gil: true,
        params: &[Param {
            name: "result",
            doc: "int",
            conv: Conv::Int(Int::I32),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[Output {
            name: "",
            doc: "str",
            kind: Out::Str(Len::Const(0)),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinGetErrorString",
            ret: Ret::Text,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "size",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinSize as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::NvFatbin),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "size",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinSize",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "version",
        library: CudaLibrary::NvFatbin,
        symbol: Symbol::nvFatbinVersion as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[],
        words: &[Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "major",
                doc: "int",
                kind: Out::Int(Int::U32),
            },
            Output {
                name: "minor",
                doc: "int",
                kind: Out::Int(Int::U32),
            },
        ],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvFatbinVersion",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
];
