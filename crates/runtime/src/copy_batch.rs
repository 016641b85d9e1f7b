//! Copies with attributes, and batched copies.

use cupyrite_sys::driver::{CUDA_MEMCPY3D_BATCH_OP, CUmemcpyAttributes};
use cupyrite_sys::runtime::{cudaMemcpy3DBatchOp, cudaMemcpyAttributes};

use crate::checked::{get, get_array};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Res;
use crate::stream::handle;

// The structures have the driver's layout and values.
const _: () = assert!(size_of::<cudaMemcpyAttributes>() == size_of::<CUmemcpyAttributes>());
const _: () = assert!(size_of::<cudaMemcpy3DBatchOp>() == size_of::<CUDA_MEMCPY3D_BATCH_OP>());

/// Copies of the lists of a batch: the driver's parameters are mutable, the runtime's are const.
pub(crate) struct Batch {
    pub(crate) to: Vec<u64>,
    pub(crate) from: Vec<u64>,
    pub(crate) sizes: Vec<usize>,
    pub(crate) attributes: Vec<CUmemcpyAttributes>,
    pub(crate) indices: Vec<usize>,
}

impl Batch {
    /// Reads the lists of a batch of `count` copies, with `n` attributes.
    pub(crate) fn read(
        to: u64,
        from: u64,
        sizes: u64,
        count: usize,
        attributes: u64,
        indices: u64,
        n: usize,
    ) -> Res<Batch> {
        Ok(Batch {
            to: get_array(to, count)?,
            from: get_array(from, count)?,
            sizes: get_array(sizes, count)?,
            attributes: get_array(attributes, n)?,
            indices: get_array(indices, n)?,
        })
    }
}

runtime_entry_points! {
    fn memcpy_batch "cudaMemcpyBatchAsync" | "cudaMemcpyBatchAsync_ptsz"
        (to: u64, from: u64, sizes: u64, count: usize, attributes: u64, indices: u64, n: usize, stream: u64) {
        context::current()?;
        let mut batch = Batch::read(to, from, sizes, count, attributes, indices, n)?;
        cu!(cuMemcpyBatchAsync(
            batch.to.as_mut_ptr(), batch.from.as_mut_ptr(), batch.sizes.as_mut_ptr(), count,
            batch.attributes.as_mut_ptr(), batch.indices.as_mut_ptr(), n, handle::<PER_THREAD>(stream)
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
