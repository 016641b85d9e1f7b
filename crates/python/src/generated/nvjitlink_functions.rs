// Made by `cargo xtask codegen` from NVIDIA's headers and api/overlay/nvjitlink.toml. Do not edit.
//! The functions of `cuda.bindings.nvjitlink`.

use std::ffi::c_void;

use cupyrite_sys::loader::CudaLibrary;
use cupyrite_sys::nvjitlink::Symbol;

#[allow(unused_imports)]
use crate::bindings::descriptor::*;

unsafe fn call_qwqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u32, u64, u64, u64) -> i32,
        >(f);
        i64::from(f(
            *w.add(0),
            *w.add(1) as u32,
            *w.add(2),
            *w.add(3),
            *w.add(4),
        ))
    }
}

unsafe fn call_qwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u64) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1) as u32, *w.add(2)))
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

/// All functions, sorted by name.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "add_data",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkAddData as u16,
        thunk: call_qwqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvJitLink),
                default: None,
            },
            Param {
                name: "input_type",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "data",
                doc: "bytes",
                conv: Conv::Buffer(Some(3)),
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
            symbol: "nvJitLinkAddData",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "add_file",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkAddFile as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvJitLink),
                default: None,
            },
            Param {
                name: "input_type",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "file_name",
                doc: "str",
                conv: Conv::Str,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkAddFile",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "complete",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkComplete as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::NvJitLink),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkComplete",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "create",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkCreate as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "num_options",
                doc: "unsigned int",
                conv: Conv::Int(Int::U32),
                default: None,
            },
            Param {
                name: "options",
                doc: "object",
                conv: Conv::StrList(Some(0)),
                default: None,
            },
        ],
        words: &[Word::Result(0), Word::Arg(0), Word::Arg(1)],
        results: &[Output {
            name: "handle",
            doc: "int",
            kind: Out::Made(HandleKind::NvJitLink),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkCreate",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "destroy",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkDestroy as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Ended(HandleKind::NvJitLink),
            default: None,
        }],
        words: &[Word::ArgAddress(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkDestroy",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_error_log",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetErrorLog as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvJitLink),
                default: None,
            },
            Param {
                name: "log",
                doc: "bytes",
                conv: Conv::BufferOut(OutSize::Call("get_error_log_size")),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkGetErrorLog",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_error_log_size",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetErrorLogSize as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::NvJitLink),
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
            symbol: "nvJitLinkGetErrorLogSize",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "get_info_log",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetInfoLog as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvJitLink),
                default: None,
            },
            Param {
                name: "log",
                doc: "bytes",
                conv: Conv::BufferOut(OutSize::Call("get_info_log_size")),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkGetInfoLog",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_info_log_size",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetInfoLogSize as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::NvJitLink),
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
            symbol: "nvJitLinkGetInfoLogSize",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "get_linked_cubin",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetLinkedCubin as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvJitLink),
                default: None,
            },
            Param {
                name: "cubin",
                doc: "bytes",
                conv: Conv::BufferOut(OutSize::Call("get_linked_cubin_size")),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkGetLinkedCubin",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_linked_cubin_size",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetLinkedCubinSize as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::NvJitLink),
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
            symbol: "nvJitLinkGetLinkedCubinSize",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "get_linked_ltoir",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetLinkedLTOIR as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvJitLink),
                default: None,
            },
            Param {
                name: "ltoir",
                doc: "bytes",
                conv: Conv::BufferOut(OutSize::Call("get_linked_ltoir_size")),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkGetLinkedLTOIR",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_linked_ltoir_size",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetLinkedLTOIRSize as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::NvJitLink),
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
            symbol: "nvJitLinkGetLinkedLTOIRSize",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "get_linked_ptx",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetLinkedPtx as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "handle",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::NvJitLink),
                default: None,
            },
            Param {
                name: "ptx",
                doc: "bytes",
                conv: Conv::BufferOut(OutSize::Call("get_linked_ptx_size")),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvJitLinkGetLinkedPtx",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_linked_ptx_size",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkGetLinkedPtxSize as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[Param {
            name: "handle",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::NvJitLink),
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
            symbol: "nvJitLinkGetLinkedPtxSize",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "version",
        library: CudaLibrary::NvJitLink,
        symbol: Symbol::nvJitLinkVersion as u16,
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
            symbol: "nvJitLinkVersion",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
];
