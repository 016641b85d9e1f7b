//! The process's address space, and the driver's errors for it.

use std::sync::Arc;

use cupyrite_engine::memory::{AddressSpace, MemoryError};

use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::because;

/// The address space of the process.
pub(crate) fn space() -> &'static Arc<AddressSpace> {
    AddressSpace::global()
}

impl From<MemoryError> for Code {
    fn from(e: MemoryError) -> Self {
        match e {
            MemoryError::OutOfMemory => Code::OUT_OF_MEMORY,
            MemoryError::Overlap => Code::HOST_MEMORY_ALREADY_REGISTERED,
            MemoryError::System => Code::OPERATING_SYSTEM,
            MemoryError::Busy => Code::MAP_FAILED,
            MemoryError::InvalidRequest | MemoryError::NotAllocated | MemoryError::NotMapped => {
                Code::INVALID_VALUE
            }
        }
    }
}

/// Records the size and the free memory of a failed allocation; returns `code`.
pub(crate) fn out_of_memory(code: Code, size: u64) -> Code {
    because(code, || {
        let (free, all) = (space().available(), space().capacity());
        format!("an allocation of {size} bytes failed: {free} of the device's {all} bytes are free")
    })
}
