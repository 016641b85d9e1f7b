// Made by `cargo xtask codegen` from NVIDIA's headers and api/overlay/nvrtc.toml. Do not edit.
//! The functions of `cuda.bindings.nvrtc`.

use std::ffi::c_void;

use cupyrite_sys::loader::CudaLibrary;
use cupyrite_sys::nvrtc::Symbol;

#[allow(unused_imports)]
use crate::bindings::descriptor::*;
use crate::generated::ids::class::nvrtc as class;
use crate::generated::ids::enums::nvrtc as enums;

unsafe fn call_qq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1)))
    }
}

unsafe fn call_qwq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u32, u64) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1) as u32, *w.add(2)))
    }
}

unsafe fn call_qqqwqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<
            *const c_void,
            unsafe extern "C" fn(u64, u64, u64, u32, u64, u64) -> i32,
        >(f);
        i64::from(f(
            *w.add(0),
            *w.add(1),
            *w.add(2),
            *w.add(3) as u32,
            *w.add(4),
            *w.add(5),
        ))
    }
}

unsafe fn call_q_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64) -> i32>(f);
        i64::from(f(*w.add(0)))
    }
}

unsafe fn call_w_q(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u32) -> i64>(f);
        f(*w.add(0) as u32)
    }
}

unsafe fn call_qqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u64) -> i32>(f);
        i64::from(f(*w.add(0), *w.add(1), *w.add(2)))
    }
}

unsafe fn nothing(_f: *const c_void, _w: *const u64) -> i64 {
    0
}

/// All functions, sorted by name.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "nvrtcAddNameExpression",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcAddNameExpression as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "name_expression",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::None,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcCompileProgram",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcCompileProgram as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "numOptions",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "options",
                doc: "list[bytes]",
                conv: Conv::List(
                    Element::Bytes,
                    Some(Count {
                        param: 1,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcCreateProgram",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcCreateProgram as u16,
        thunk: call_qqqwqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "src",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
            Param {
                name: "name",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
            Param {
                name: "numHeaders",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "headers",
                doc: "list[bytes]",
                conv: Conv::List(
                    Element::Bytes,
                    Some(Count {
                        param: 2,
                        less: 0,
                        optional: false,
                    }),
                ),
                default: None,
            },
            Param {
                name: "includeNames",
                doc: "list[bytes]",
                conv: Conv::List(
                    Element::Bytes,
                    Some(Count {
                        param: 2,
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
            Word::Arg(2),
            Word::Arg(3),
            Word::Arg(4),
        ],
        results: &[Output {
            name: "prog",
            doc: "nvrtcProgram",
            kind: Out::Handle(class::nvrtcProgram, Int::U64),
        }],
        special: Special::None,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcDestroyProgram",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcDestroyProgram as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::HandlePtr(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::ArgAddress(0)],
        results: &[],
        special: Special::None,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetBundledHeadersInfo",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetBundledHeadersInfo as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0), Word::Result(1)],
        results: &[
            Output {
                name: "info",
                doc: "nvrtcBundledHeadersInfo",
                kind: Out::Struct(class::nvrtcBundledHeadersInfo),
            },
            Output {
                name: "errorLog",
                doc: "bytes",
                kind: Out::CString,
            },
        ],
        special: Special::None,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetCUBIN",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetCUBIN as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "cubin",
                doc: "bytes",
                conv: Conv::BytesOut(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::NvrtcGet,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetCUBINSize",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetCUBINSize as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::Handle(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "cubinSizeRet",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetErrorString",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetErrorString as u16,
        thunk: call_w_q,
        keep_gil: true,
        params: &[Param {
            name: "result",
            doc: "nvrtcResult",
            conv: Conv::Enum(enums::nvrtcResult),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[Output {
            name: "",
            doc: "bytes",
            kind: Out::CString,
        }],
        special: Special::ErrorText,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetLTOIR",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetLTOIR as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "LTOIR",
                doc: "bytes",
                conv: Conv::BytesOut(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::NvrtcGet,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetLTOIRSize",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetLTOIRSize as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::Handle(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "LTOIRSizeRet",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetLoweredName",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetLoweredName as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "name_expression",
                doc: "bytes",
                conv: Conv::Bytes,
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "lowered_name",
            doc: "bytes",
            kind: Out::CString,
        }],
        special: Special::None,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetNumSupportedArchs",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetNumSupportedArchs as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "numArchs",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetOptiXIR",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetOptiXIR as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "optixir",
                doc: "bytes",
                conv: Conv::BytesOut(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::NvrtcGet,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetOptiXIRSize",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetOptiXIRSize as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::Handle(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "optixirSizeRet",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetPCHCreateStatus",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetPCHCreateStatus as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::Handle(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetPCHHeapSize",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetPCHHeapSize as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "ret",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetPCHHeapSizeRequired",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetPCHHeapSizeRequired as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::Handle(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "size",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetPTX",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetPTX as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "ptx",
                doc: "bytes",
                conv: Conv::BytesOut(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::NvrtcGet,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetPTXSize",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetPTXSize as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::Handle(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "ptxSizeRet",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetProgramLog",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetProgramLog as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "log",
                doc: "bytes",
                conv: Conv::BytesOut(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::NvrtcGet,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetProgramLogSize",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetProgramLogSize as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::Handle(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "logSizeRet",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcGetSupportedArchs",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetSupportedArchs as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "supportedArchs",
            doc: "list[int]",
            kind: Out::VoidPtr,
        }],
        special: Special::NvrtcArchs,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetTileIR",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetTileIR as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "TileIR",
                doc: "bytes",
                conv: Conv::BytesOut(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::NvrtcGet,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcGetTileIRSize",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcGetTileIRSize as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "nvrtcProgram",
            conv: Conv::Handle(class::nvrtcProgram, Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "TileIRSizeRet",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcInstallBundledHeaders",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcInstallBundledHeaders as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "installPath",
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
        words: &[Word::Arg(0), Word::Arg(1), Word::Result(0)],
        results: &[Output {
            name: "errorLog",
            doc: "bytes",
            kind: Out::CString,
        }],
        special: Special::None,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcRemoveBundledHeaders",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcRemoveBundledHeaders as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "installPath",
            doc: "bytes",
            conv: Conv::Bytes,
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "errorLog",
            doc: "bytes",
            kind: Out::CString,
        }],
        special: Special::None,
        plain: false,
        raising: None,
    },
    Function {
        name: "nvrtcSetFlowCallback",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcSetFlowCallback as u16,
        thunk: call_qqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "nvrtcProgram",
                conv: Conv::Handle(class::nvrtcProgram, Int::U64),
                default: None,
            },
            Param {
                name: "callback",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
            Param {
                name: "payload",
                doc: "Any",
                conv: Conv::VoidPtr(None),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcSetPCHHeapSize",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcSetPCHHeapSize as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "size",
            doc: "size_t",
            conv: Conv::Int(Int::U64),
            default: None,
        }],
        words: &[Word::Arg(0)],
        results: &[],
        special: Special::None,
        plain: true,
        raising: None,
    },
    Function {
        name: "nvrtcVersion",
        library: CudaLibrary::Nvrtc,
        symbol: Symbol::nvrtcVersion as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[],
        words: &[Word::Result(0), Word::Result(1)],
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
        plain: true,
        raising: None,
    },
    Function {
        name: "sizeof",
        library: CudaLibrary::Nvrtc,
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
        plain: false,
        raising: None,
    },
];
