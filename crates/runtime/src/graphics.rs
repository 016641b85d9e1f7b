//! Graphics resources: the driver's. Registration and mapping flags have the driver's values.

use cupyrite_sys::driver::{CUGLDeviceList, CUarray, CUdevice, CUdeviceptr, CUgraphicsResource};

use crate::checked::{get_array, non_null, put, put_optional};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::stream::handle;

/// Registers with the driver and stores the handle.
fn register(out: u64, call: impl FnOnce(&mut CUgraphicsResource) -> Res) -> Res {
    non_null(out)?;
    context::current()?;
    let mut resource: CUgraphicsResource = std::ptr::null_mut();
    call(&mut resource)?;
    put(out, resource as u64).inspect_err(|_| {
        let _ = cu!(cuGraphicsUnregisterResource(resource));
    })
}

/// The handles of a list.
fn listed(count: i32, list: u64) -> Res<Vec<CUgraphicsResource>> {
    let count = usize::try_from(count).map_err(|_| Error::INVALID_VALUE)?;
    let handles = get_array::<u64>(list, count)?;
    Ok(handles
        .into_iter()
        .map(|h| h as CUgraphicsResource)
        .collect())
}

runtime_entry_points! {
    fn register_buffer "cudaGraphicsGLRegisterBuffer" (out: u64, buffer: u32, flags: u32) {
        register(out, |resource| cu!(cuGraphicsGLRegisterBuffer(resource, buffer, flags)))
    }
    fn register_image "cudaGraphicsGLRegisterImage" (out: u64, image: u32, target: u32, flags: u32) {
        register(out, |resource| cu!(cuGraphicsGLRegisterImage(resource, image, target, flags)))
    }
    fn unregister "cudaGraphicsUnregisterResource" (resource: u64) {
        context::current()?;
        cu!(cuGraphicsUnregisterResource(resource as CUgraphicsResource))
    }
    fn set_map_flags "cudaGraphicsResourceSetMapFlags" (resource: u64, flags: u32) {
        context::current()?;
        cu!(cuGraphicsResourceSetMapFlags(resource as CUgraphicsResource, flags))
    }
    fn map "cudaGraphicsMapResources" (count: i32, list: u64, stream: u64) {
        context::current()?;
        let mut resources = listed(count, list)?;
        let count = resources.len() as u32;
        cu!(cuGraphicsMapResources(count, resources.as_mut_ptr(), handle::<PER_THREAD>(stream)))
    }
    fn unmap "cudaGraphicsUnmapResources" (count: i32, list: u64, stream: u64) {
        context::current()?;
        let mut resources = listed(count, list)?;
        let count = resources.len() as u32;
        cu!(cuGraphicsUnmapResources(count, resources.as_mut_ptr(), handle::<PER_THREAD>(stream)))
    }
    fn mapped_pointer "cudaGraphicsResourceGetMappedPointer" (out: u64, size: u64, resource: u64) {
        context::current()?;
        let mut address: CUdeviceptr = 0;
        let mut bytes = 0;
        cu!(cuGraphicsResourceGetMappedPointer(&mut address, &mut bytes, resource as CUgraphicsResource))?;
        put_optional(out, address)?;
        put_optional(size, bytes)
    }
    fn mapped_array "cudaGraphicsSubResourceGetMappedArray" (out: u64, resource: u64, index: u32, level: u32) {
        non_null(out)?;
        context::current()?;
        let mut array: CUarray = std::ptr::null_mut();
        cu!(cuGraphicsSubResourceGetMappedArray(&mut array, resource as CUgraphicsResource, index, level))?;
        put(out, array as u64)
    }
    fn gl_devices "cudaGLGetDevices" (count: u64, devices: u64, room: u32, list: u32) {
        let mut ordinals = vec![CUdevice::default(); room.min(1024) as usize];
        let mut all = 0;
        let list = CUGLDeviceList(list);
        cu!(cuGLGetDevices(&mut all, ordinals.as_mut_ptr(), ordinals.len() as u32, list))?;
        if devices != 0 {
            for (at, ordinal) in ordinals.iter().take(all as usize).enumerate() {
                put(devices + 4 * at as u64, *ordinal)?;
            }
        }
        put_optional(count, all)
    }
}
