//! Managed memory: advice, prefetch, discard, and range attributes.

use cupyrite_sys::driver::{CUmem_advise, CUmem_range_attribute, CUmemLocation};
use cupyrite_sys::runtime::cudaMemLocation;

use crate::checked::{Plain, get, get_array, non_null};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Res;
use crate::stream::handle;

/// The structure has the driver's layout and values.
pub(crate) fn location(of: cudaMemLocation) -> CUmemLocation {
    same_layout(of)
}

/// Reinterprets a value as the driver's structure of the same layout.
pub(crate) fn same_layout<From: Copy, To: Plain>(value: From) -> To {
    const { assert!(size_of::<From>() == size_of::<To>()) };
    // SAFETY: both have the same size, and any bytes are a valid `To`.
    unsafe { std::mem::transmute_copy(&value) }
}

/// Reads the arrays that every batch of ranges starts with: addresses and sizes, copied because the driver's parameters
/// are mutable.
fn ranges(pointers: u64, sizes: u64, count: usize) -> Res<(Vec<u64>, Vec<usize>)> {
    Ok((get_array(pointers, count)?, get_array(sizes, count)?))
}

/// Reads the arrays of a batch's destinations.
fn targets(locations: u64, indices: u64, count: usize) -> Res<(Vec<CUmemLocation>, Vec<usize>)> {
    Ok((get_array(locations, count)?, get_array(indices, count)?))
}

runtime_entry_points! {
    fn mem_advise "cudaMemAdvise" (address: u64, count: usize, advice: u32, place: cudaMemLocation) {
        context::current()?;
        cu!(cuMemAdvise(address, count, CUmem_advise(advice as _), location(place)))
    }
    fn mem_prefetch "cudaMemPrefetchAsync" | "cudaMemPrefetchAsync_ptsz"
        (address: u64, count: usize, place: cudaMemLocation, flags: u32, stream: u64) {
        context::current()?;
        cu!(cuMemPrefetchAsync(address, count, location(place), flags, handle::<PER_THREAD>(stream)))
    }
    fn mem_prefetch_batch "cudaMemPrefetchBatchAsync" | "cudaMemPrefetchBatchAsync_ptsz"
        (pointers: u64, sizes: u64, count: usize, locations: u64, indices: u64, n: usize, flags: u64, stream: u64) {
        context::current()?;
        let (mut p, mut s) = ranges(pointers, sizes, count)?;
        let (mut l, mut i) = targets(locations, indices, n)?;
        let stream = handle::<PER_THREAD>(stream);
        cu!(cuMemPrefetchBatchAsync(
            p.as_mut_ptr(), s.as_mut_ptr(), count, l.as_mut_ptr(), i.as_mut_ptr(), n, flags, stream
        ))
    }
    fn mem_discard_batch "cudaMemDiscardBatchAsync" | "cudaMemDiscardBatchAsync_ptsz"
        (pointers: u64, sizes: u64, count: usize, flags: u64, stream: u64) {
        context::current()?;
        let (mut p, mut s) = ranges(pointers, sizes, count)?;
        cu!(cuMemDiscardBatchAsync(p.as_mut_ptr(), s.as_mut_ptr(), count, flags, handle::<PER_THREAD>(stream)))
    }
    fn mem_discard_and_prefetch_batch
        "cudaMemDiscardAndPrefetchBatchAsync" | "cudaMemDiscardAndPrefetchBatchAsync_ptsz"
        (pointers: u64, sizes: u64, count: usize, locations: u64, indices: u64, n: usize, flags: u64, stream: u64) {
        context::current()?;
        let (mut p, mut s) = ranges(pointers, sizes, count)?;
        let (mut l, mut i) = targets(locations, indices, n)?;
        let stream = handle::<PER_THREAD>(stream);
        cu!(cuMemDiscardAndPrefetchBatchAsync(
            p.as_mut_ptr(), s.as_mut_ptr(), count, l.as_mut_ptr(), i.as_mut_ptr(), n, flags, stream
        ))
    }
    fn mem_range_get_attribute "cudaMemRangeGetAttribute"
        (data: u64, size: usize, attribute: u32, address: u64, count: usize) {
        non_null(data)?;
        context::current()?;
        let attribute = CUmem_range_attribute(attribute as _);
        cu!(cuMemRangeGetAttribute(data as *mut _, size, attribute, address, count))
    }
    fn mem_range_get_attributes "cudaMemRangeGetAttributes"
        (data: u64, sizes: u64, attributes: u64, n: usize, address: u64, count: usize) {
        context::current()?;
        // The driver validates the three lists; reading one here stops invalid pointers early.
        get::<u64>(data)?;
        cu!(cuMemRangeGetAttributes(
            data as *mut _, sizes as *mut _, attributes as *mut _, n, address, count
        ))
    }
    fn mem_get_location_info "cudaMemGetLocationInfo"
        (address: u64, size: usize, summary: usize, sampling: usize, out: u64) {
        non_null(out)?;
        context::current()?;
        cu!(cuMemGetLocationInfo(address, size, summary, sampling, out as *mut _))
    }
}
