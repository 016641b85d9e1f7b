//! Checkpoints of processes: device memory is saved, released, and restored.
//!
//! A process is locked (its calls of the driver wait), checkpointed (its device memory moves to the host and is released),
//! restored and unlocked: the calling process, or another one of the same user.
//!
//! ```no_run
//! use cupyrite::checkpoint::Process;
//!
//! # fn main() -> cupyrite::Result<()> {
//! let process = Process::new(4242);
//! process.lock(None)?;
//! process.checkpoint()?;
//! // The device's memory is free for other programs.
//! process.restore(&[])?;
//! process.unlock()?;
//! # Ok(()) }
//! ```

use std::time::Duration;

use cupyrite_sys::driver::{
    CUcheckpointGpuPair_st, CUcheckpointLockArgs_st, CUcheckpointRestoreArgs_st, CUprocessState,
    CUuuid,
};

use crate::error::{Error, Result, driver};

/// The state of a process.
///
/// Source: `CUprocessState` of the CUDA driver API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProcessState {
    /// Its calls of the driver run.
    Running,
    /// Its calls of the driver wait.
    Locked,
    /// Its device memory is saved and released.
    Checkpointed,
    /// A restoration failed.
    Failed,
}

/// A process whose device memory can be saved and restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pid: u32,
}

/// The device of one UUID at the time of the checkpoint is restored onto another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceMapping {
    /// UUID of the device that was checkpointed.
    pub old: [u8; 16],
    /// UUID of the device to restore onto.
    pub new: [u8; 16],
}

fn uuid(bytes: [u8; 16]) -> CUuuid {
    CUuuid {
        bytes: bytes.map(|byte| byte as std::ffi::c_char),
    }
}

impl Process {
    /// The process of that id: another one of this user, or this one. Nothing is called yet.
    pub fn new(pid: u32) -> Process {
        Process { pid }
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    fn number(&self, function: &'static str) -> Result<i32> {
        // SAFETY: takes a plain integer.
        unsafe { driver!(cuInit(0))? };
        crate::fork::mark_driver_used();
        i32::try_from(self.pid).map_err(|_| {
            let problem = format!("{} is not a process id: they end at {}", self.pid, i32::MAX);
            Error::argument(function, "pid", problem)
        })
    }

    /// The state of the process.
    ///
    /// Source: `cuCheckpointProcessGetState`.
    ///
    /// # Errors
    ///
    /// The driver's, if there is no such process or it does not use CUDA; [`Error::Unsupported`] for a state that this
    /// crate does not know.
    pub fn state(&self) -> Result<ProcessState> {
        let pid = self.number("Process::state")?;
        let mut state = CUprocessState::CU_PROCESS_STATE_RUNNING;
        // SAFETY: `state` is valid for writes.
        unsafe { driver!(cuCheckpointProcessGetState(pid, &mut state))? };
        match state {
            CUprocessState::CU_PROCESS_STATE_RUNNING => Ok(ProcessState::Running),
            CUprocessState::CU_PROCESS_STATE_LOCKED => Ok(ProcessState::Locked),
            CUprocessState::CU_PROCESS_STATE_CHECKPOINTED => Ok(ProcessState::Checkpointed),
            CUprocessState::CU_PROCESS_STATE_FAILED => Ok(ProcessState::Failed),
            other => Err(Error::Unsupported {
                function: "Process::state",
                problem: format!("the driver reports {other:?}"),
            }),
        }
    }

    /// Id of the thread in the process from which it is restored.
    ///
    /// Source: `cuCheckpointProcessGetRestoreThreadId`.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn restore_thread_id(&self) -> Result<u32> {
        let pid = self.number("Process::restore_thread_id")?;
        let mut id = 0;
        // SAFETY: `id` is valid for writes.
        unsafe { driver!(cuCheckpointProcessGetRestoreThreadId(pid, &mut id))? };
        Ok(u32::try_from(id).unwrap_or(0))
    }

    /// Locks a running process: its calls of the driver wait until it is unlocked. Waits for its calls in progress, at
    /// most `timeout` (whole milliseconds; `None` waits without a limit).
    ///
    /// Source: `cuCheckpointProcessLock`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_READY` after the timeout, the process is running then; `CUDA_ERROR_ILLEGAL_STATE` if it was not
    /// running; [`Error::InvalidArgument`] for a timeout below a millisecond or above 49 days.
    pub fn lock(&self, timeout: Option<Duration>) -> Result<()> {
        const FUNCTION: &str = "Process::lock";
        let milliseconds = match timeout {
            None => 0,
            Some(timeout) => u32::try_from(timeout.as_millis())
                .ok()
                .filter(|&milliseconds| milliseconds > 0)
                .ok_or_else(|| {
                    let problem = format!("{timeout:?}; expected 1 ms to {} ms", u32::MAX);
                    Error::argument(FUNCTION, "timeout", problem)
                })?,
        };
        let mut arguments = CUcheckpointLockArgs_st {
            timeoutMs: milliseconds,
            reserved0: 0,
            reserved1: [0; 7],
        };
        let pid = self.number(FUNCTION)?;
        // SAFETY: the arguments live during the call, which does not keep them.
        unsafe { driver!(cuCheckpointProcessLock(pid, &mut arguments)) }
    }

    /// Saves the device memory of a locked process and releases it.
    ///
    /// Source: `cuCheckpointProcessCheckpoint`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` if the process is not locked; `CUDA_ERROR_NOT_SUPPORTED` for memory that cannot be
    /// saved, such as memory shared with other processes.
    pub fn checkpoint(&self) -> Result<()> {
        let pid = self.number("Process::checkpoint")?;
        // SAFETY: null stands for no arguments.
        unsafe { driver!(cuCheckpointProcessCheckpoint(pid, std::ptr::null_mut())) }
    }

    /// Restores a checkpointed process, which is locked afterwards. `mapping` is empty, or names every device of the
    /// machine.
    ///
    /// Source: `cuCheckpointProcessRestore`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` if the process is not checkpointed; `CUDA_ERROR_INVALID_VALUE` for an unknown UUID.
    pub fn restore(&self, mapping: &[DeviceMapping]) -> Result<()> {
        let mut pairs: Vec<CUcheckpointGpuPair_st> = mapping
            .iter()
            .map(|pair| CUcheckpointGpuPair_st {
                oldUuid: uuid(pair.old),
                newUuid: uuid(pair.new),
            })
            .collect();
        let pid = self.number("Process::restore")?;
        let mut arguments = CUcheckpointRestoreArgs_st {
            gpuPairs: pairs.as_mut_ptr(),
            gpuPairsCount: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
            padding0: 0,
            customStorageInfo_out: std::ptr::null_mut(),
            reserved: [0; 40],
        };
        let arguments = match pairs.is_empty() {
            true => std::ptr::null_mut(),
            false => &raw mut arguments,
        };
        // SAFETY: the arguments and the pairs live during the call, which does not keep them; null stands for none.
        unsafe { driver!(cuCheckpointProcessRestore(pid, arguments)) }
    }

    /// Unlocks a locked process: its calls of the driver continue.
    ///
    /// Source: `cuCheckpointProcessUnlock`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` if the process is not locked.
    pub fn unlock(&self) -> Result<()> {
        let pid = self.number("Process::unlock")?;
        // SAFETY: null stands for no arguments.
        unsafe { driver!(cuCheckpointProcessUnlock(pid, std::ptr::null_mut())) }
    }
}
