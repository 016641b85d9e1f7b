//! Checkpoints of processes: `cuCheckpointProcess*`.
//!
//! Belongs here: the states of a process and the steps between them; `control` carries requests to other processes. Does
//! not belong here: saving memory (`cupyrite_engine::memory`) and blocking calls (`entry::api_lock`).

use std::time::{Duration, Instant};

use cupyrite_engine::memory::{AddressSpace, MemoryError, SavedMemory, files};
use cupyrite_sys::driver::{
    CUcheckpointCheckpointArgs, CUcheckpointLockArgs, CUcheckpointRestoreArgs,
    CUcheckpointUnlockArgs,
};
use parking_lot::Mutex;

use self::control::{Operation, Request};
use crate::driver::context::entries::{fail_all, finish_all_work};
use crate::driver::device;
use crate::driver::entry::api_lock::{self, CHECKPOINTED, FAILED, LOCKED, RUNNING};
use crate::driver::entry::caller_memory::{Plain, get, get_array, non_null, put};
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::because;
use crate::driver::entry::{Res, driver_entry_points};

pub(crate) mod control;

/// The saved memory while the process is checkpointed. Locked during each step.
static SAVED: Mutex<Option<SavedMemory>> = Mutex::new(None);

/// The state that a step begins in.
fn require(wanted: u32) -> Res {
    match api_lock::state() {
        state if state == wanted => Ok(()),
        state => Err(because(Code::ILLEGAL_STATE, || {
            let name = |state| match state {
                RUNNING => "running",
                LOCKED => "locked",
                CHECKPOINTED => "checkpointed",
                _ => "failed",
            };
            format!(
                "the process is {}; it must be {}",
                name(state),
                name(wanted)
            )
        })),
    }
}

/// Performs a request on this process.
fn perform(request: &Request) -> Res<u32> {
    match request.operation {
        Operation::State => return Ok(api_lock::state()),
        Operation::RestoreThread => return Ok(control::thread_id()),
        _ => {}
    }
    // Waits for a step in progress.
    let mut saved = SAVED.lock();
    match request.operation {
        Operation::Lock => {
            require(RUNNING)?;
            let timeout = u64::from(request.timeout_ms);
            let deadline = (timeout > 0).then(|| Instant::now() + Duration::from_millis(timeout));
            if !api_lock::lock(deadline) {
                return Err(because(Code::NOT_READY, || {
                    format!("calls of the driver did not end within {timeout} ms")
                }));
            }
        }
        Operation::Checkpoint => {
            require(LOCKED)?;
            finish_all_work();
            *saved = Some(save()?);
            api_lock::set_state(CHECKPOINTED);
        }
        Operation::Restore => {
            require(CHECKPOINTED)?;
            let moves = device::check_moves(&request.mapping)?;
            let memory = saved.take().ok_or(Code::UNKNOWN)?;
            if AddressSpace::global().restore(&memory).is_err() {
                fail_all(Code::OPERATING_SYSTEM);
                api_lock::set_state(FAILED);
                return Err(because(Code::OPERATING_SYSTEM, || {
                    "the file of the checkpoint could not be read".to_owned()
                }));
            }
            device::perform_moves(&moves);
            api_lock::set_state(LOCKED);
        }
        Operation::Unlock => {
            require(LOCKED)?;
            api_lock::set_state(RUNNING);
        }
        Operation::State | Operation::RestoreThread => {}
    }
    Ok(0)
}

fn save() -> Res<SavedMemory> {
    let file = files::temporary().map_err(|error| {
        because(Code::OPERATING_SYSTEM, || {
            format!(
                "no file could be created in {}: {error}",
                std::env::temp_dir().display()
            )
        })
    })?;
    AddressSpace::global()
        .save(file)
        .map_err(|error| match error {
            MemoryError::InvalidRequest => because(Code::NOT_SUPPORTED, || {
                "device memory is shared with other processes".to_owned()
            }),
            MemoryError::Busy => Code::NOT_READY,
            _ => because(Code::OPERATING_SYSTEM, || {
                format!(
                    "the device memory could not be written to {}",
                    std::env::temp_dir().display()
                )
            }),
        })
}

/// Performs a request on the process of that id: this one, or another of this user.
fn request(pid: i32, request: &Request) -> Res<u32> {
    match u32::try_from(pid) {
        Ok(pid) if pid == std::process::id() => perform(request),
        Ok(pid) if pid > 0 => control::ask(pid, request),
        // As an H200's driver (580): no process has such an id.
        _ => Err(because(Code::OPERATING_SYSTEM, || {
            format!("pid is {pid}; the id of a process is positive")
        })),
    }
}

/// Reads an argument structure; zeros if the address is null.
fn arguments<T: Plain + Default>(address: u64) -> Res<T> {
    match address {
        0 => Ok(T::default()),
        address => get(address),
    }
}

/// The pairs of devices, each `CUcheckpointGpuPair` as 32 bytes.
fn mapping(args: &CUcheckpointRestoreArgs) -> Res<Vec<[u8; 32]>> {
    let count = args.gpuPairsCount.min(control::PAIRS + 1);
    get_array(args.gpuPairs.addr() as u64, count as usize)
}

// These entry points run while the process is locked.
driver_entry_points! { @with crate::driver::entry::guard_unlocked;
    fn process_get_state "cuCheckpointProcessGetState" (pid: i32, out: u64) {
        non_null(out)?;
        put(out, request(pid, &Request::new(Operation::State))?)
    }
    fn process_get_restore_thread "cuCheckpointProcessGetRestoreThreadId" (pid: i32, out: u64) {
        non_null(out)?;
        put(out, request(pid, &Request::new(Operation::RestoreThread))?)
    }
    fn process_lock "cuCheckpointProcessLock" (pid: i32, args: u64) {
        let timeout_ms = arguments::<CUcheckpointLockArgs>(args)?.timeoutMs;
        request(pid, &Request { timeout_ms, ..Request::new(Operation::Lock) }).map(|_| ())
    }
    fn process_checkpoint "cuCheckpointProcessCheckpoint" (pid: i32, args: u64) {
        let args = arguments::<CUcheckpointCheckpointArgs>(args)?;
        if !args.customStorageInfo_out.is_null() {
            // Storage that the caller provides.
            return Err(Code::NOT_SUPPORTED);
        }
        request(pid, &Request::new(Operation::Checkpoint)).map(|_| ())
    }
    fn process_restore "cuCheckpointProcessRestore" (pid: i32, args: u64) {
        let args = arguments::<CUcheckpointRestoreArgs>(args)?;
        if !args.customStorageInfo_out.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        let mapping = mapping(&args)?;
        if mapping.len() > control::PAIRS as usize {
            return Err(because(Code::INVALID_VALUE, || {
                format!("{} pairs of devices; there are at most {}", args.gpuPairsCount, control::PAIRS)
            }));
        }
        request(pid, &Request { mapping, ..Request::new(Operation::Restore) }).map(|_| ())
    }
    fn process_unlock "cuCheckpointProcessUnlock" (pid: i32, args: u64) {
        arguments::<CUcheckpointUnlockArgs>(args)?;
        request(pid, &Request::new(Operation::Unlock)).map(|_| ())
    }
}
