//! Copies with attributes, and batched copies.

use cupyrite_sys::driver::{CUDA_MEMCPY3D_BATCH_OP, CUmemcpyAttributes};
use cupyrite_sys::runtime::{cudaMemcpy3DBatchOp, cudaMemcpyAttributes};

use crate::checked::{get, get_array};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::stream::handle;

// The structures have the driver's layout and values.
const _: () = assert!(size_of::<cudaMemcpyAttributes>() == size_of::<CUmemcpyAttributes>());
const _: () = assert!(size_of::<cudaMemcpy3DBatchOp>() == size_of::<CUDA_MEMCPY3D_BATCH_OP>());
runtime_entry_points! {
    fn memcpy_batch "cudaMemcpyBatchAsync" | "cudaMemcpyBatchAsync_ptsz"
        (to: u64, from: u64, sizes: u64, count: usize, attributes: u64, indices: u64, n: usize, stream: u64) {
        context::current()?;
        // Copies of the lists: the driver's parameters are mutable, the runtime's are const.
        let mut to = get_array::<u64>(to, count)?;
        let mut from = get_array::<u64>(from, count)?;
        let mut sizes = get_array::<usize>(sizes, count)?;
        let mut attributes = get_array::<CUmemcpyAttributes>(attributes, n)?;
        let mut indices = get_array::<usize>(indices, n)?;
        cu!(cuMemcpyBatchAsync(
            to.as_mut_ptr(), from.as_mut_ptr(), sizes.as_mut_ptr(), count,
            attributes.as_mut_ptr(), indices.as_mut_ptr(), n, handle::<PER_THREAD>(stream)
        ))
    }
    fn memcpy_3d_batch "cudaMemcpy3DBatchAsync" | "cudaMemcpy3DBatchAsync_ptsz"
        (count: usize, operations: u64, flags: u64, stream: u64) {
        context::current()?;
        let mut operations = get_array::<CUDA_MEMCPY3D_BATCH_OP>(operations, count)?;
        cu!(cuMemcpy3DBatchAsync(count, operations.as_mut_ptr(), flags, handle::<PER_THREAD>(stream)))
    }
    fn memcpy_with_attributes "cudaMemcpyWithAttributesAsync" | "cudaMemcpyWithAttributesAsync_ptsz"
        (to: u64, from: u64, size: usize, attributes: u64, stream: u64) {
        context::current()?;
        let mut attributes = get::<CUmemcpyAttributes>(attributes)?;
        cu!(cuMemcpyWithAttributesAsync(to, from, size, &mut attributes, handle::<PER_THREAD>(stream)))
    }
    fn memcpy_3d_with_attributes "cudaMemcpy3DWithAttributesAsync" | "cudaMemcpy3DWithAttributesAsync_ptsz"
        (operation: u64, flags: u64, stream: u64) {
        context::current()?;
        let mut operation = get::<CUDA_MEMCPY3D_BATCH_OP>(operation)?;
        cu!(cuMemcpy3DWithAttributesAsync(&mut operation, flags, handle::<PER_THREAD>(stream)))
    }
}
