//! Arrays and mipmapped arrays: the driver's, with the runtime's descriptors.

use cupyrite_sys::driver::{
    CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES, CUDA_ARRAY3D_DESCRIPTOR, CUarray,
    CUarray_format, CUmipmappedArray,
};
use cupyrite_sys::runtime::{cudaChannelFormatDesc, cudaExtent};

use crate::channel;
use crate::checked::{get, non_null, put, put_optional};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Res;

/// The driver's descriptor of an array.
pub(crate) fn describe(array: u64) -> Res<CUDA_ARRAY3D_DESCRIPTOR> {
    let mut descriptor = CUDA_ARRAY3D_DESCRIPTOR::default();
    cu!(cuArray3DGetDescriptor(&mut descriptor, array as CUarray))?;
    Ok(descriptor)
}

/// The driver's descriptor for an array to be created.
fn descriptor(desc: u64, extent: cudaExtent, flags: u32) -> Res<CUDA_ARRAY3D_DESCRIPTOR> {
    let (format, channels) = channel::to_driver(&get::<cudaChannelFormatDesc>(desc)?)?;
    Ok(CUDA_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format: format,
        NumChannels: channels,
        Flags: flags,
    })
}

fn create(out: u64, desc: u64, extent: cudaExtent, flags: u32) -> Res {
    non_null(out)?;
    context::current()?;
    let descriptor = descriptor(desc, extent, flags)?;
    let mut array: CUarray = std::ptr::null_mut();
    cu!(cuArray3DCreate(&mut array, &descriptor))?;
    put(out, array as u64).inspect_err(|_| {
        let _ = cu!(cuArrayDestroy(array));
    })
}

runtime_entry_points! {
    fn malloc_array "cudaMallocArray" (out: u64, desc: u64, width: usize, height: usize, flags: u32) {
        create(out, desc, cudaExtent { width, height, depth: 0 }, flags)
    }
    fn malloc_3d_array "cudaMalloc3DArray" (out: u64, desc: u64, extent: cudaExtent, flags: u32) {
        create(out, desc, extent, flags)
    }
    fn malloc_mipmapped "cudaMallocMipmappedArray"
        (out: u64, desc: u64, extent: cudaExtent, levels: u32, flags: u32) {
        non_null(out)?;
        context::current()?;
        let descriptor = descriptor(desc, extent, flags)?;
        let mut mipmapped: CUmipmappedArray = std::ptr::null_mut();
        cu!(cuMipmappedArrayCreate(&mut mipmapped, &descriptor, levels))?;
        put(out, mipmapped as u64).inspect_err(|_| {
            let _ = cu!(cuMipmappedArrayDestroy(mipmapped));
        })
    }
    fn free_array "cudaFreeArray" (array: u64) {
        context::current()?;
        if array == 0 {
            return Ok(());
        }
        cu!(cuArrayDestroy(array as CUarray))
    }
    fn free_mipmapped "cudaFreeMipmappedArray" (mipmapped: u64) {
        context::current()?;
        if mipmapped == 0 {
            return Ok(());
        }
        cu!(cuMipmappedArrayDestroy(mipmapped as CUmipmappedArray))
    }
    fn mipmapped_level "cudaGetMipmappedArrayLevel" (out: u64, mipmapped: u64, level: u32) {
        non_null(out)?;
        context::current()?;
        let mut array: CUarray = std::ptr::null_mut();
        cu!(cuMipmappedArrayGetLevel(&mut array, mipmapped as CUmipmappedArray, level))?;
        put(out, array as u64)
    }
    fn array_info "cudaArrayGetInfo" (desc: u64, extent: u64, flags: u64, array: u64) {
        context::current()?;
        let descriptor = describe(array)?;
        if desc != 0 {
            put(desc, channel::from_driver(descriptor.Format, descriptor.NumChannels)?)?;
        }
        let size = cudaExtent { width: descriptor.Width, height: descriptor.Height, depth: descriptor.Depth };
        put_optional(extent, size)?;
        put_optional(flags, descriptor.Flags)
    }
    fn array_plane "cudaArrayGetPlane" (out: u64, array: u64, plane: u32) {
        non_null(out)?;
        context::current()?;
        let mut found: CUarray = std::ptr::null_mut();
        cu!(cuArrayGetPlane(&mut found, array as CUarray, plane))?;
        put(out, found as u64)
    }
    fn array_sparse "cudaArrayGetSparseProperties" (out: u64, array: u64) {
        non_null(out)?;
        context::current()?;
        // This structure and the next three have the driver's layout.
        let mut properties = CUDA_ARRAY_SPARSE_PROPERTIES::default();
        cu!(cuArrayGetSparseProperties(&mut properties, array as CUarray))?;
        put(out, properties)
    }
    fn mipmapped_sparse "cudaMipmappedArrayGetSparseProperties" (out: u64, mipmapped: u64) {
        non_null(out)?;
        context::current()?;
        let mut properties = CUDA_ARRAY_SPARSE_PROPERTIES::default();
        cu!(cuMipmappedArrayGetSparseProperties(&mut properties, mipmapped as CUmipmappedArray))?;
        put(out, properties)
    }
    fn array_requirements "cudaArrayGetMemoryRequirements" (out: u64, array: u64, device: i32) {
        non_null(out)?;
        context::current()?;
        let device = context::device(device)?;
        let mut requirements = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
        cu!(cuArrayGetMemoryRequirements(&mut requirements, array as CUarray, device))?;
        put(out, requirements)
    }
    fn mipmapped_requirements "cudaMipmappedArrayGetMemoryRequirements" (out: u64, mipmapped: u64, device: i32) {
        non_null(out)?;
        context::current()?;
        let device = context::device(device)?;
        let mut requirements = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
        cu!(cuMipmappedArrayGetMemoryRequirements(&mut requirements, mipmapped as CUmipmappedArray, device))?;
        put(out, requirements)
    }
    fn linear_max_width "cudaDeviceGetTexture1DLinearMaxWidth" (out: u64, desc: u64, device: i32) {
        non_null(out)?;
        let (format, channels): (CUarray_format, u32) = channel::to_driver(&get(desc)?)?;
        let device = context::device(device)?;
        let mut width = 0usize;
        cu!(cuDeviceGetTexture1DLinearMaxWidth(&mut width, format, channels, device))?;
        put(out, width)
    }
}
