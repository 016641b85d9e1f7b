//! Pointer attributes.

use std::ffi::c_void;

use cupyrite_sys::driver::{CUmemorytype, CUpointer_attribute};
use cupyrite_sys::runtime::{cudaMemoryType, cudaPointerAttributes};

use crate::checked::{non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};

/// `cudaInvalidDeviceId`: the device of memory without a device.
const NO_DEVICE: i32 = -2;

/// The attributes of an address; any address is accepted.
pub(crate) fn attributes(address: u64) -> Res<cudaPointerAttributes> {
    context::ready()?;
    let mut memory = CUmemorytype(0);
    let (mut device_address, mut host_address) = (0u64, 0u64);
    let (mut managed, mut ordinal) = (0u32, NO_DEVICE);
    let mut which = [
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let mut values: [*mut c_void; 5] = [
        (&raw mut memory).cast(),
        (&raw mut device_address).cast(),
        (&raw mut host_address).cast(),
        (&raw mut managed).cast(),
        (&raw mut ordinal).cast(),
    ];
    // This query accepts any address; attributes that do not apply stay zero.
    let mut ask = || {
        cu!(cuPointerGetAttributes(
            which.len() as u32,
            which.as_mut_ptr(),
            values.as_mut_ptr(),
            address
        ))
    };
    match ask() {
        // A driver may require a context for the query; the null pointer needs none.
        Err(Error::DEVICE_UNINITIALIZED) if address != 0 => {
            context::current()?;
            ask()?;
        }
        Err(_) if address == 0 => (),
        outcome => outcome?,
    }
    let kind = match memory {
        _ if managed != 0 => cudaMemoryType::cudaMemoryTypeManaged,
        CUmemorytype::CU_MEMORYTYPE_HOST => cudaMemoryType::cudaMemoryTypeHost,
        CUmemorytype::CU_MEMORYTYPE_DEVICE => cudaMemoryType::cudaMemoryTypeDevice,
        _ => cudaMemoryType::cudaMemoryTypeUnregistered,
    };
    let registered = kind != cudaMemoryType::cudaMemoryTypeUnregistered;
    Ok(cudaPointerAttributes {
        r#type: kind,
        device: if registered { ordinal } else { NO_DEVICE },
        devicePointer: device_address as *mut c_void,
        hostPointer: if registered {
            host_address as *mut c_void
        } else {
            address as *mut c_void
        },
        ..cudaPointerAttributes::default()
    })
}

runtime_entry_points! {
    fn pointer_get_attributes "cudaPointerGetAttributes" (out: u64, address: u64) {
        non_null(out)?;
        put(out, attributes(address)?)
    }
}
