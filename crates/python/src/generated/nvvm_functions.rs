// Made by `cargo xtask codegen` from NVIDIA's headers and api/overlay/nvvm.toml. Do not edit.
//! The functions of `cuda.bindings.nvvm`.

use std::ffi::c_void;

use cupyrite_sys::loader::CudaLibrary;
use cupyrite_sys::nvvm::Symbol;

#[allow(unused_imports)]
use crate::bindings::descriptor::*;

unsafe fn call_qqqq_w(f: *const c_void, w: *const u64) -> i64 {
    // SAFETY: the caller gives a function of this C signature and a word for each parameter.
    unsafe {
        let f = std::mem::transmute::<*const c_void, unsafe extern "C" fn(u64, u64, u64, u64) -> i32>(
            f,
        );
        i64::from(f(*w.add(0), *w.add(1), *w.add(2), *w.add(3)))
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
        name: "add_module_to_program",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmAddModuleToProgram as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::Nvvm),
                default: None,
            },
            Param {
                name: "buffer",
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
                name: "name",
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
            symbol: "nvvmAddModuleToProgram",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "compile_program",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmCompileProgram as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::Nvvm),
                default: None,
            },
            Param {
                name: "num_options",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "options",
                doc: "object",
                conv: Conv::StrList(Some(1)),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmCompileProgram",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "create_program",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmCreateProgram as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[],
        words: &[Word::Result(0)],
        results: &[Output {
            name: "prog",
            doc: "int",
            kind: Out::Made(HandleKind::Nvvm),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmCreateProgram",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "destroy_program",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmDestroyProgram as u16,
        thunk: call_q_w,
        keep_gil: false,
        params: &[Param {
            name: "prog",
            doc: "intptr_t",
            conv: Conv::Ended(HandleKind::Nvvm),
            default: None,
        }],
        words: &[Word::ArgAddress(0)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmDestroyProgram",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_compiled_result",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmGetCompiledResult as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::Nvvm),
                default: None,
            },
            Param {
                name: "buffer",
                doc: "bytes",
                conv: Conv::BufferOut(OutSize::Call("get_compiled_result_size")),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmGetCompiledResult",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_compiled_result_size",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmGetCompiledResultSize as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[Param {
            name: "prog",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::Nvvm),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "buffer_size_ret",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmGetCompiledResultSize",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "get_error_string",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmGetErrorString as u16,
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
            symbol: "nvvmGetErrorString",
            ret: Ret::Text,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_program_log",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmGetProgramLog as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::Nvvm),
                default: None,
            },
            Param {
                name: "buffer",
                doc: "bytes",
                conv: Conv::BufferOut(OutSize::Call("get_program_log_size")),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmGetProgramLog",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "get_program_log_size",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmGetProgramLogSize as u16,
        thunk: call_qq_w,
        keep_gil: true,
        params: &[Param {
            name: "prog",
            doc: "intptr_t",
            conv: Conv::Live(HandleKind::Nvvm),
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "buffer_size_ret",
            doc: "int",
            kind: Out::Int(Int::U64),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmGetProgramLogSize",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "ir_version",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmIRVersion as u16,
        thunk: call_qqqq_w,
        keep_gil: true,
        params: &[],
        words: &[
            Word::Result(0),
            Word::Result(1),
            Word::Result(2),
            Word::Result(3),
        ],
        results: &[
            Output {
                name: "major_ir",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
            Output {
                name: "minor_ir",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
            Output {
                name: "major_dbg",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
            Output {
                name: "minor_dbg",
                doc: "int",
                kind: Out::Int(Int::I32),
            },
        ],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmIRVersion",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
    Function {
        name: "lazy_add_module_to_program",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmLazyAddModuleToProgram as u16,
        thunk: call_qqqq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::Nvvm),
                default: None,
            },
            Param {
                name: "buffer",
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
                name: "name",
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
            symbol: "nvvmLazyAddModuleToProgram",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "llvm_version",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmLLVMVersion as u16,
        thunk: call_qq_w,
        keep_gil: false,
        params: &[Param {
            name: "arch",
            doc: "str",
            conv: Conv::Str,
            default: None,
        }],
        words: &[Word::Arg(0), Word::Result(0)],
        results: &[Output {
            name: "major",
            doc: "int",
            kind: Out::Int(Int::I32),
        }],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmLLVMVersion",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "verify_program",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmVerifyProgram as u16,
        thunk: call_qwq_w,
        keep_gil: false,
        params: &[
            Param {
                name: "prog",
                doc: "intptr_t",
                conv: Conv::Live(HandleKind::Nvvm),
                default: None,
            },
            Param {
                name: "num_options",
                doc: "int",
                conv: Conv::Int(Int::I32),
                default: None,
            },
            Param {
                name: "options",
                doc: "object",
                conv: Conv::StrList(Some(1)),
                default: None,
            },
        ],
        words: &[Word::Arg(0), Word::Arg(1), Word::Arg(2)],
        results: &[],
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmVerifyProgram",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: false,
        }),
    },
    Function {
        name: "version",
        library: CudaLibrary::Nvvm,
        symbol: Symbol::nvvmVersion as u16,
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
        special: Special::Raising,
        plain: false,
        raising: Some(&Raising {
            symbol: "nvvmVersion",
            ret: Ret::Status,
            sizing: None,
            requests: &[],
            interruptible: false,
            short: true,
        }),
    },
];
