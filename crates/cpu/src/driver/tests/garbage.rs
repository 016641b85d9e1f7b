//! Invalid arguments: no call may crash.

use super::super::implemented;
use super::kernels::{PTX, function, module};
use super::libraries::library;
use super::{Session, call, ok};

/// Pseudo-random numbers (xorshift64*).
struct Numbers(u64);
impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// Memory followed by unmapped addresses, so that a copy of any length is harmless.
fn playground() -> u64 {
    let len = 1 << 20;
    // SAFETY: a new mapping, of which the first half is made accessible.
    unsafe {
        let p = libc::mmap(
            std::ptr::null_mut(),
            2 * len,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(p, libc::MAP_FAILED);
        assert_eq!(
            libc::mprotect(p, len, libc::PROT_READ | libc::PROT_WRITE),
            0
        );
        p as u64
    }
}

/// Live and destroyed handles of every type in a context, and device memory.
fn handles(s: &Session) -> Vec<u64> {
    let (stream, event, memory) = (s.stream(0), s.event(), s.alloc(4096));
    let (destroyed_stream, destroyed_event, freed_memory) = (s.stream(1), s.event(), s.alloc(64));
    ok!("cuStreamDestroy_v2", destroyed_stream);
    ok!("cuEventDestroy_v2", destroyed_event);
    ok!("cuMemFree_v2", freed_memory);
    let mut pool = 0u64;
    ok!("cuDeviceGetDefaultMemPool", &mut pool, 0);
    let (module, unloaded_module) = (module(PTX), module(PTX));
    let (store, count, unloaded_function) = (
        function(module, "store"),
        function(module, "count"),
        function(unloaded_module, "count"),
    );
    ok!("cuModuleUnload", unloaded_module);
    let library = library(PTX);
    let mut kernel = 0u64;
    ok!("cuLibraryGetKernel", &mut kernel, library, c"saxpy");
    vec![
        s.0,
        stream,
        event,
        memory,
        memory + 4090,
        s.pinned(64),
        destroyed_stream,
        destroyed_event,
        freed_memory,
        pool,
        module,
        store,
        count,
        unloaded_module,
        unloaded_function,
        library,
        kernel,
        NAME.as_ptr() as u64,
    ]
}

/// A name that may be valid.
static NAME: &std::ffi::CStr = c"count";

/// Makes captures begin in relaxed mode: any other mode would prohibit allocations to concurrent tests and to the rest
/// of this one.
fn relax(name: &str, args: &mut [u64; 12]) {
    const RELAXED: u64 = 2;
    if name.starts_with("cuStreamBeginCapture") {
        for arg in args.iter_mut().filter(|a| (**a as u32) < 2) {
            *arg = RELAXED;
        }
    }
}

#[test]
fn random_arguments_never_crash() {
    let mut names: Vec<&str> = implemented().collect();
    names.sort_unstable();
    let ground = playground();
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut session = Session::new();
    let mut live = handles(&session);
    // Contexts with flags for core dumps may be created: CU_COREDUMP_SKIP_ABORT and CU_COREDUMP_LOG_ONLY.
    let (mut flags, mut size) = (0x8000_0010u32, 4u64);
    ok!("cuCoredumpSetAttributeGlobal", 7, &mut flags, &mut size);
    for round in 0..60 {
        // A previous call may have popped it.
        call("cuCtxSetCurrent", &[session.0]);
        for &name in &names {
            // These would destroy state of other tests.
            if name.starts_with("cuDevicePrimaryCtx") {
                continue;
            }
            // Would write a file named like a kernel if the other arguments are valid.
            if name == "cuLogsDumpToFile" {
                continue;
            }
            // Would write files and abort the process when a kernel fails.
            if name.starts_with("cuCoredumpSetAttribute") {
                continue;
            }
            // With a valid stream and address, this waits for a value that is never written.
            if name.starts_with("cuStreamWaitValue")
                || name.starts_with("cuStreamBatchMemOp")
                || name.starts_with("cuWaitExternal")
            {
                continue;
            }
            let mut args: [u64; 12] = std::array::from_fn(|_| match numbers.next() % 16 {
                0 | 1 => 0,
                2 => 1,
                3 => 2,
                4 => 5,
                5 => 0xdead_beef,
                6 => u64::MAX,
                7 => numbers.next(),
                8 => numbers.next() % 256,
                9..=11 => ground + numbers.next() % 512,
                _ => live[(numbers.next() % live.len() as u64) as usize],
            });
            relax(name, &mut args);
            call(name, &args);
        }
        // Recreates everything after objects may have been destroyed.
        if round % 4 == 3 {
            drop(session);
            session = Session::new();
            live = handles(&session);
        }
    }
    ok!("cuCtxSynchronize");
}

#[test]
fn nulls_small_numbers_and_wild_addresses() {
    let _s = Session::new();
    for name in implemented().filter(|n| !n.starts_with("cuDevicePrimaryCtx")) {
        for value in [
            0u64,
            1,
            2,
            5,
            4096,
            0xdead_beef,
            0x7fff_ffff_f000,
            1 << 63,
            u64::MAX,
        ] {
            let mut args = [value; 12];
            relax(name, &mut args);
            call(name, &args);
        }
    }
    // The context may have been popped or destroyed, but the driver remains usable.
    let s = Session::new();
    let d = s.alloc(16);
    ok!("cuMemFree_v2", d);
}
