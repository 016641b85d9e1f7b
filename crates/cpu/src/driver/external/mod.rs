//! Memory and semaphores of other APIs (CUDA driver API, "External Resource Interoperability").
//!
//! On a machine without a GPU's driver, memory of another API is a shared memory object, and a semaphore is an eventfd or a
//! counter in a shared memory object. Belongs here: imports, mappings, signals, waits. Does not belong here: graph nodes
//! (`graph::semaphores`), and OpenGL, whose memory has no descriptor (`graphics`).

use cupyrite_engine::memory::object;
use cupyrite_sys::driver::{CUexternalMemoryHandleType, CUexternalSemaphoreHandleType};

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::{because, refuse};

pub(crate) mod memory;
pub(crate) mod semaphore;
pub(crate) mod semaphore_entries;
pub(crate) mod waits;

/// Destroys the objects of a destroyed context.
pub(crate) fn remove_context(context: u64) {
    memory::remove_context(context);
    semaphore::remove_context(context);
}

/// The status for a descriptor that cannot be imported, which an H100 (driver 580) also returns. `kind` is the type of the
/// handle; its newer types distinguish negative numbers.
fn refuse_descriptor(kind: u32, descriptor: i32, reason: &dyn std::fmt::Display) -> Code {
    const NEWER: u32 = CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD.0;
    const _: () = assert!(
        NEWER
            == CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD.0
    );
    let code = if kind == NEWER && descriptor < 0 {
        Code::INVALID_VALUE
    } else {
        Code::UNKNOWN
    };
    because(code, || format!("handle.fd={descriptor}: {reason}"))
}

/// Refuses a null handle; an H100 (driver 580) returns another status for it than for other invalid arguments.
fn check_handle(handle: u64, what: &str) -> Res {
    if handle == 0 {
        return refuse(Code::INVALID_VALUE, || format!("the {what} handle is null"));
    }
    Ok(())
}

/// Refuses flags other than those and reserved words that are set.
fn check_flags(flags: u32, allowed: u32, reserved: &[u32]) -> Res {
    if flags & !allowed != 0 {
        return refuse(Code::INVALID_VALUE, || {
            format!("flags={flags:#x}: allowed are {allowed:#x}")
        });
    }
    if reserved.iter().any(|&word| word != 0) {
        return refuse(Code::INVALID_VALUE, || {
            "reserved: must be zero; clear the structure first".into()
        });
    }
    Ok(())
}

/// Ends the program's ownership of a descriptor after a successful import. The import has a descriptor of its own, so that
/// a program that closes the number again closes nothing of the device.
fn take_over(descriptor: i32) {
    object::close(descriptor);
}
