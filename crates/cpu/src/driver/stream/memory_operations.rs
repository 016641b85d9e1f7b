//! Operations of a stream on memory: wait for a value, write one, barrier (CUDA driver API, "Stream Memory Operations").
//! The entry points are in `stream_memory`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use cupyrite_sys::driver::{
    CUstreamBatchMemOpParams, CUstreamBatchMemOpType as OpType,
    CUstreamMemoryBarrier_flags as BarrierType, CUstreamWaitValue_flags as Flags,
};

use crate::driver::context::Context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null};
use crate::driver::entry::errors::Code;
use crate::driver::memory::space::space;

/// The comparison of a value in memory with the operand (`CUstreamWaitValue_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitCondition {
    /// The signed difference is not negative.
    NotBefore,
    Equal,
    /// The values have a common set bit.
    And,
    /// Some bit is clear in both values.
    Nor,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryOperation {
    Wait {
        address: u64,
        value: u64,
        test: WaitCondition,
        wide: bool,
    },
    Write {
        address: u64,
        value: u64,
        wide: bool,
    },
    Barrier,
}

/// Maximum number of operations in a batch.
const MAX_OPERATIONS: u32 = 256;

impl WaitCondition {
    fn of(flags: u32) -> Res<WaitCondition> {
        /// Requires `CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES`, which this device lacks.
        const FLUSH: u32 = Flags::CU_STREAM_WAIT_VALUE_FLUSH.0;
        match Flags(flags) {
            Flags::CU_STREAM_WAIT_VALUE_GEQ => Ok(WaitCondition::NotBefore),
            Flags::CU_STREAM_WAIT_VALUE_EQ => Ok(WaitCondition::Equal),
            Flags::CU_STREAM_WAIT_VALUE_AND => Ok(WaitCondition::And),
            Flags::CU_STREAM_WAIT_VALUE_NOR => Ok(WaitCondition::Nor),
            _ if flags & FLUSH != 0 && flags & !FLUSH <= Flags::CU_STREAM_WAIT_VALUE_NOR.0 => {
                Err(Code::NOT_SUPPORTED)
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn holds(self, now: u64, value: u64, wide: bool) -> bool {
        match self {
            WaitCondition::NotBefore if wide => (now as i64).wrapping_sub(value as i64) >= 0,
            WaitCondition::NotBefore => (now as i32).wrapping_sub(value as i32) >= 0,
            WaitCondition::Equal => now == value,
            WaitCondition::And => now & value != 0,
            WaitCondition::Nor if wide => !(now | value) != 0,
            WaitCondition::Nor => !(now as u32 | value as u32) != 0,
        }
    }
}

/// Refuses an address that a stream cannot wait for or write to.
fn check(address: u64, wide: bool, write: bool) -> Res {
    let bytes = if wide { 8 } else { 4 };
    let fits = |r: cupyrite_engine::memory::Region| !(write && r.read_only);
    if !address.is_multiple_of(bytes) || !space().find_range(address, bytes).is_some_and(fits) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

impl MemoryOperation {
    fn wait(address: u64, value: u64, flags: u32, wide: bool) -> Res<MemoryOperation> {
        let test = WaitCondition::of(flags)?;
        check(address, wide, false)?;
        let value = if wide { value } else { value & 0xFFFF_FFFF };
        Ok(MemoryOperation::Wait {
            address,
            value,
            test,
            wide,
        })
    }

    fn write(address: u64, value: u64, flags: u32, wide: bool) -> Res<MemoryOperation> {
        /// No effect: a write always follows the work before it.
        const NO_BARRIER: u32 = 1;
        if flags & !NO_BARRIER != 0 {
            return Err(Code::INVALID_VALUE);
        }
        check(address, wide, true)?;
        Ok(MemoryOperation::Write {
            address,
            value,
            wide,
        })
    }

    fn parse(given: &CUstreamBatchMemOpParams) -> Res<MemoryOperation> {
        // SAFETY: an integer, with which every member begins.
        match unsafe { given.operation } {
            OpType::CU_STREAM_MEM_OP_WAIT_VALUE_32 => {
                // SAFETY: a struct of integers, for which any bits are valid.
                let (given, value) = unsafe { (given.waitValue, given.waitValue.anon0.value) };
                Self::wait(given.address, value.into(), given.flags, false)
            }
            OpType::CU_STREAM_MEM_OP_WRITE_VALUE_32 => {
                // SAFETY: a struct of integers, for which any bits are valid.
                let (given, value) = unsafe { (given.writeValue, given.writeValue.anon0.value) };
                Self::write(given.address, value.into(), given.flags, false)
            }
            OpType::CU_STREAM_MEM_OP_WAIT_VALUE_64 => {
                // SAFETY: a struct of integers, for which any bits are valid.
                let (given, value) = unsafe { (given.waitValue, given.waitValue.anon0.value64) };
                Self::wait(given.address, value, given.flags, true)
            }
            OpType::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
                // SAFETY: a struct of integers, for which any bits are valid.
                let (given, value) = unsafe { (given.writeValue, given.writeValue.anon0.value64) };
                Self::write(given.address, value, given.flags, true)
            }
            OpType::CU_STREAM_MEM_OP_BARRIER => {
                // SAFETY: a struct of integers, for which any bits are valid.
                match BarrierType(unsafe { given.memoryBarrier.flags }) {
                    BarrierType::CU_STREAM_MEMORY_BARRIER_TYPE_SYS
                    | BarrierType::CU_STREAM_MEMORY_BARRIER_TYPE_GPU => {
                        Ok(MemoryOperation::Barrier)
                    }
                    _ => Err(Code::INVALID_VALUE),
                }
            }
            // Remote-write flushes and atomic reductions, which the device's attributes exclude.
            OpType::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES
            | OpType::CU_STREAM_MEM_OP_ATOMIC_REDUCTION => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Executes the operation. A wait returns when its condition holds or the context has failed.
    ///
    /// # Errors
    /// `ILLEGAL_ADDRESS` if the memory has been freed.
    pub(crate) fn run(&self, context: &Arc<Context>) -> Res {
        match *self {
            MemoryOperation::Wait {
                address,
                value,
                test,
                wide,
            } => {
                let start = Instant::now();
                loop {
                    if test.holds(load(address, wide)?, value, wide) || context.has_failed() {
                        return Ok(());
                    }
                    if start.elapsed() < Duration::from_micros(50) {
                        std::hint::spin_loop();
                    } else {
                        std::thread::sleep(Duration::from_micros(50));
                    }
                }
            }
            MemoryOperation::Write {
                address,
                value,
                wide,
            } => store(address, value, wide),
            MemoryOperation::Barrier => {
                fence(Ordering::SeqCst);
                Ok(())
            }
        }
    }
}

/// Reads a value that other threads may be writing.
fn load(address: u64, wide: bool) -> Res<u64> {
    let _pin = space().pin();
    check(address, wide, false).map_err(|_| Code::ILLEGAL_ADDRESS)?;
    // SAFETY: the address is aligned and lies in a live region that the pin keeps mapped.
    Ok(unsafe {
        if wide {
            AtomicU64::from_ptr(address as *mut u64).load(Ordering::Acquire)
        } else {
            AtomicU32::from_ptr(address as *mut u32)
                .load(Ordering::Acquire)
                .into()
        }
    })
}

fn store(address: u64, value: u64, wide: bool) -> Res {
    let _pin = space().pin();
    check(address, wide, true).map_err(|_| Code::ILLEGAL_ADDRESS)?;
    // SAFETY: the address is aligned and lies in a live, writable region that the pin keeps mapped.
    unsafe {
        if wide {
            AtomicU64::from_ptr(address as *mut u64).store(value, Ordering::Release);
        } else {
            AtomicU32::from_ptr(address as *mut u32).store(value as u32, Ordering::Release);
        }
    }
    Ok(())
}

/// Operations executed in order.
#[derive(Clone)]
pub(crate) struct Batch {
    /// The caller's description.
    raw: Box<[CUstreamBatchMemOpParams]>,
    pub(crate) operations: Box<[MemoryOperation]>,
}

impl Batch {
    /// Reads the operations of a batch.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an invalid operation or too many of them, `NOT_SUPPORTED` for operations that the device's
    /// attributes exclude.
    pub(crate) fn read(array: u64, count: u32, flags: u32) -> Res<Batch> {
        if count > MAX_OPERATIONS || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if count == 0 {
            return Self::of(Vec::new());
        }
        non_null(array)?;
        Self::of(get_array::<CUstreamBatchMemOpParams>(
            array,
            count as usize,
        )?)
    }

    fn of(raw: Vec<CUstreamBatchMemOpParams>) -> Res<Batch> {
        let operations = raw.iter().map(MemoryOperation::parse);
        Ok(Batch {
            operations: operations.collect::<Res<_>>()?,
            raw: raw.into(),
        })
    }

    /// A batch of one wait.
    pub(crate) fn wait(kind: OpType, address: u64, value: u64, flags: u32) -> Res<Batch> {
        let mut only = CUstreamBatchMemOpParams::default();
        only.waitValue.operation = kind;
        only.waitValue.address = address;
        only.waitValue.anon0.value64 = value;
        only.waitValue.flags = flags;
        Self::of(vec![only])
    }

    /// A batch of one write.
    pub(crate) fn write(kind: OpType, address: u64, value: u64, flags: u32) -> Res<Batch> {
        let mut only = CUstreamBatchMemOpParams::default();
        only.writeValue.operation = kind;
        only.writeValue.address = address;
        only.writeValue.anon0.value64 = value;
        only.writeValue.flags = flags;
        Self::of(vec![only])
    }

    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }

    /// Address of the caller's description, valid as long as `self` lives.
    pub(crate) fn address(&self) -> u64 {
        self.raw.as_ptr() as u64
    }

    /// Executes the operations in order.
    ///
    /// # Errors
    /// `ILLEGAL_ADDRESS` if memory has been freed.
    pub(crate) fn run(&self, context: &Arc<Context>) -> Res {
        self.operations.iter().try_for_each(|o| o.run(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_conditions_compare_as_documented() {
        use WaitCondition::{And, Equal, Nor, NotBefore};
        for (test, now, value, narrow, wide) in [
            (NotBefore, 5, 5, true, true),
            (NotBefore, 4, 5, false, false),
            // Counters that have wrapped around.
            (NotBefore, 1, 0xFFFF_FFFF, true, false),
            (NotBefore, 1, u64::MAX, true, true),
            (NotBefore, 0x8000_0000, 0, false, true),
            (Equal, 7, 7, true, true),
            (Equal, 7, 8, false, false),
            (And, 6, 4, true, true),
            (And, 6, 1, false, false),
            (Nor, 0xFFFF_FFFF, 0, false, true),
            (Nor, 0xFFFF_FFFE, 0, true, true),
            (Nor, u64::MAX - 1, 1, false, false),
        ] {
            assert_eq!(test.holds(now, value, false), narrow, "{test:?} {now:#x}");
            assert_eq!(test.holds(now, value, true), wide, "{test:?} {now:#x}");
        }
        assert_eq!(WaitCondition::of(4), Err(Code::INVALID_VALUE));
        assert_eq!(WaitCondition::of(1 << 30), Err(Code::NOT_SUPPORTED));
    }
}
