//! One stub of machine code per function: a jump through a slot, which first leads to [`resolve`].
//!
//! A jump leaves registers and stack unchanged, so it fits functions of every signature. On the first call it leads to the
//! second half of the stub, which passes the stub's index to [`resolve`] with all registers of arguments saved, and jumps to
//! the answer. [`resolve`] stores the address in the slot; after that, a call costs one jump.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod machine {
    use std::ffi::c_void;
    use std::sync::Once;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use pyo3::prelude::*;

    use crate::generated::cython::COUNT;

    /// Bytes from one stub to the next, and from a stub to its second half.
    #[cfg(target_arch = "x86_64")]
    const STUB: (usize, usize) = (16, 6);
    #[cfg(target_arch = "aarch64")]
    const STUB: (usize, usize) = (24, 16);

    #[cfg(target_arch = "x86_64")]
    std::arch::global_asm!(
        ".pushsection .text.cupyrite_cython, \"ax\", @progbits",
        ".balign 16",
        ".hidden cupyrite_cython_stubs",
        ".globl cupyrite_cython_stubs",
        "cupyrite_cython_stubs:",
        ".set cupyrite_cython_index, 0",
        ".rept {count}",
        ".balign 16",
        "jmp *cupyrite_cython_slots + 8 * cupyrite_cython_index(%rip)",
        "pushq $cupyrite_cython_index",
        "jmp cupyrite_cython_first_call",
        ".set cupyrite_cython_index, cupyrite_cython_index + 1",
        ".endr",
        // On the stack: the index, the return address, the caller's arguments. `rax` has the number of vector registers
        // with arguments of a variadic call, and `rdi` the address of a struct to return.
        ".type cupyrite_cython_first_call, @function",
        "cupyrite_cython_first_call:",
        ".cfi_startproc",
        ".cfi_def_cfa_offset 16",
        "pushq %rbp",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset %rbp, -24",
        "movq %rsp, %rbp",
        ".cfi_def_cfa_register %rbp",
        "pushq %rax",
        "pushq %rdi",
        "pushq %rsi",
        "pushq %rdx",
        "pushq %rcx",
        "pushq %r8",
        "pushq %r9",
        "subq $128, %rsp",
        "movups %xmm0, (%rsp)",
        "movups %xmm1, 16(%rsp)",
        "movups %xmm2, 32(%rsp)",
        "movups %xmm3, 48(%rsp)",
        "movups %xmm4, 64(%rsp)",
        "movups %xmm5, 80(%rsp)",
        "movups %xmm6, 96(%rsp)",
        "movups %xmm7, 112(%rsp)",
        "movq 8(%rbp), %rdi",
        "callq *cupyrite_cython_resolver(%rip)",
        "movq %rax, %r11",
        "movups (%rsp), %xmm0",
        "movups 16(%rsp), %xmm1",
        "movups 32(%rsp), %xmm2",
        "movups 48(%rsp), %xmm3",
        "movups 64(%rsp), %xmm4",
        "movups 80(%rsp), %xmm5",
        "movups 96(%rsp), %xmm6",
        "movups 112(%rsp), %xmm7",
        "addq $128, %rsp",
        "popq %r9",
        "popq %r8",
        "popq %rcx",
        "popq %rdx",
        "popq %rsi",
        "popq %rdi",
        "popq %rax",
        "popq %rbp",
        ".cfi_def_cfa %rsp, 16",
        "addq $8, %rsp",
        ".cfi_def_cfa_offset 8",
        "jmp *%r11",
        ".cfi_endproc",
        ".size cupyrite_cython_first_call, . - cupyrite_cython_first_call",
        ".popsection",
        count = const COUNT,
        options(att_syntax)
    );

    #[cfg(target_arch = "aarch64")]
    std::arch::global_asm!(
        ".pushsection .text.cupyrite_cython, \"ax\", @progbits",
        ".balign 16",
        ".hidden cupyrite_cython_stubs",
        ".globl cupyrite_cython_stubs",
        "cupyrite_cython_stubs:",
        ".set cupyrite_cython_index, 0",
        ".rept {count}",
        "adrp x16, cupyrite_cython_slots + 8 * cupyrite_cython_index",
        "add x16, x16, #:lo12:cupyrite_cython_slots + 8 * cupyrite_cython_index",
        "ldar x16, [x16]",
        "br x16",
        "mov w17, #cupyrite_cython_index",
        "b cupyrite_cython_first_call",
        ".set cupyrite_cython_index, cupyrite_cython_index + 1",
        ".endr",
        // `x8` has the address of a struct to return.
        ".type cupyrite_cython_first_call, @function",
        "cupyrite_cython_first_call:",
        ".cfi_startproc",
        "stp x29, x30, [sp, #-224]!",
        ".cfi_def_cfa_offset 224",
        ".cfi_offset x29, -224",
        ".cfi_offset x30, -216",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "mov w0, w17",
        "adrp x16, cupyrite_cython_resolver",
        "ldr x16, [x16, #:lo12:cupyrite_cython_resolver]",
        "blr x16",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x29, x30, [sp], #224",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "br x16",
        ".cfi_endproc",
        ".size cupyrite_cython_first_call, . - cupyrite_cython_first_call",
        ".popsection",
        count = const COUNT,
    );

    // The slots and the resolver are written before the first stub is handed out.
    std::arch::global_asm!(
        ".pushsection .bss.cupyrite_cython, \"aw\", @nobits",
        ".balign 16",
        ".hidden cupyrite_cython_slots",
        ".globl cupyrite_cython_slots",
        "cupyrite_cython_slots:",
        ".zero 8 * {count}",
        ".hidden cupyrite_cython_resolver",
        ".globl cupyrite_cython_resolver",
        "cupyrite_cython_resolver:",
        ".zero 8",
        ".popsection",
        count = const COUNT,
    );

    unsafe extern "C" {
        static cupyrite_cython_stubs: [u8; COUNT * STUB.0];
        static cupyrite_cython_slots: [AtomicPtr<c_void>; COUNT];
        static cupyrite_cython_resolver: AtomicPtr<c_void>;
    }

    /// Called by a stub whose slot is unresolved; returns the function to jump to.
    extern "C" fn resolve(index: u32) -> *const c_void {
        // SAFETY: the thread's own variable.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: the thread's own variable.
        let before = unsafe { *errno };
        let (address, resolved) = super::super::resolve(index as usize);
        if resolved {
            // SAFETY: an atomic static of the assembly above. `index` comes from a stub. Release: on aarch64, stubs load
            // the slot with acquire semantics; on x86-64 every load has them.
            unsafe {
                cupyrite_cython_slots[index as usize].store(address.cast_mut(), Ordering::Release)
            };
        }
        // SAFETY: the thread's own variable.
        unsafe { *errno = before };
        address
    }

    /// The address of a stub.
    pub fn address(index: usize) -> PyResult<*const c_void> {
        static READY: Once = Once::new();
        // SAFETY: the addresses of statics, within their bounds.
        let stub = |index: usize| unsafe {
            let stubs = (&raw const cupyrite_cython_stubs).cast::<u8>();
            stubs.add(index * STUB.0)
        };
        READY.call_once(|| {
            // SAFETY: atomic statics of the assembly above; no stub runs before its address is handed out.
            unsafe {
                let resolver = resolve as *const c_void;
                cupyrite_cython_resolver.store(resolver.cast_mut(), Ordering::Release);
                for (index, slot) in cupyrite_cython_slots.iter().enumerate() {
                    let second_half = stub(index).add(STUB.1).cast_mut().cast();
                    slot.store(second_half, Ordering::Release);
                }
            }
        });
        Ok(stub(index).cast())
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod machine {
    use std::ffi::c_void;

    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;

    /// The address of a stub.
    pub fn address(_index: usize) -> PyResult<*const c_void> {
        let message = "the Cython modules of cuda.bindings need Linux on x86-64 or 64-bit Arm";
        Err(PyImportError::new_err(message))
    }
}

pub use machine::address;
