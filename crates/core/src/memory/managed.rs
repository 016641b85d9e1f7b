//! Managed memory: advice, prefetching, discarding.
//!
//! Source: CUDA Driver API, "Unified Addressing"; CUDA C++ Programming Guide, "Unified Memory".

use std::ffi::{c_int, c_void};

use cupyrite_sys::driver::{
    CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemLocationType, CUresult,
};

use crate::context::Device;
use crate::error::{Error, Result, driver};
use crate::memory::copy::if_supported;
use crate::memory::location::MemoryLocation;
use crate::stream::Stream;

/// A hint about the use of managed memory (`CUmem_advise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// Whether it is mostly read, so that each reader may have a copy.
    ReadMostly(bool),
    /// The preferred location; `None` for no preference.
    PreferredLocation(Option<MemoryLocation>),
    /// Whether a device or the host will access it and keeps it mapped.
    AccessedBy(MemoryLocation, bool),
}

/// A range of memory: address and size in bytes.
pub type MemoryRange = (CUdeviceptr, usize);

/// Runs a call that needs any current context: the current one, else one of the first device.
fn with_any_context<T>(body: impl Fn() -> Result<T>) -> Result<T> {
    match body() {
        Err(Error::Driver {
            status: CUresult::CUDA_ERROR_INVALID_CONTEXT | CUresult::CUDA_ERROR_NOT_INITIALIZED,
            ..
        }) => {
            let _entered = Device::current()?.enter()?;
            body()
        }
        done => done,
    }
}

/// Advises the driver about a range of managed memory. Advice applies to whole pages.
///
/// # Errors
///
/// The driver's error: `CUDA_ERROR_INVALID_VALUE` for memory that is not managed. [`Error::Unsupported`] for a NUMA
/// node on a driver before CUDA 12.2. Source: `cuMemAdvise`.
pub fn advise(range: MemoryRange, advice: Advice) -> Result<()> {
    type A = CUmem_advise;
    let (what, location) = match advice {
        Advice::ReadMostly(true) => (A::CU_MEM_ADVISE_SET_READ_MOSTLY, None),
        Advice::ReadMostly(false) => (A::CU_MEM_ADVISE_UNSET_READ_MOSTLY, None),
        Advice::PreferredLocation(Some(place)) => {
            (A::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, Some(place))
        }
        Advice::PreferredLocation(None) => (A::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, None),
        Advice::AccessedBy(place, true) => (A::CU_MEM_ADVISE_SET_ACCESSED_BY, Some(place)),
        Advice::AccessedBy(place, false) => (A::CU_MEM_ADVISE_UNSET_ACCESSED_BY, Some(place)),
    };
    // Advice without a location needs a valid one nevertheless.
    let location = location.unwrap_or(MemoryLocation::Host);
    with_any_context(|| {
        // SAFETY: advice changes no contents; the driver rejects ranges that are not managed memory.
        let done = unsafe { driver!(cuMemAdvise(range.0, range.1, what, location.to_raw())) };
        if_supported(done).unwrap_or_else(|| {
            let device = location
                .as_device()
                .ok_or_else(|| numa_unsupported("advise"))?;
            // SAFETY: advice changes no contents; the driver rejects ranges that are not managed memory.
            unsafe { driver!(cuMemAdvise_cuda12(range.0, range.1, what, device)) }
        })
    })
}

fn numa_unsupported(function: &'static str) -> Error {
    Error::Unsupported {
        function,
        problem: "this driver is older than CUDA 12.2 and knows no NUMA nodes of the host"
            .to_owned(),
    }
}

/// An integer attribute of a range.
fn range_attribute(range: MemoryRange, attribute: CUmem_range_attribute) -> Result<c_int> {
    with_any_context(|| {
        let mut value: c_int = 0;
        let place = (&raw mut value).cast::<c_void>();
        // SAFETY: `place` has the four bytes that are passed as its size.
        unsafe {
            driver!(cuMemRangeGetAttribute(
                place,
                size_of::<c_int>(),
                attribute,
                range.0,
                range.1
            ))?;
        }
        Ok(value)
    })
}

/// Whether the whole range is advised as read-mostly.
///
/// # Errors
///
/// The driver's error: `CUDA_ERROR_INVALID_VALUE` for memory that is not managed. Source: `cuMemRangeGetAttribute`.
pub fn is_read_mostly(range: MemoryRange) -> Result<bool> {
    let attribute = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
    Ok(range_attribute(range, attribute)? != 0)
}

/// A location attribute: type and id, or the device only before CUDA 12.2.
fn range_location(
    range: MemoryRange,
    kind: CUmem_range_attribute,
    id: CUmem_range_attribute,
    device: CUmem_range_attribute,
) -> Result<Option<MemoryLocation>> {
    const CPU: c_int = -1;
    match range_attribute(range, kind) {
        Ok(kind) => {
            let kind = CUmemLocationType(kind.cast_unsigned());
            Ok(MemoryLocation::from_raw(kind, range_attribute(range, id)?))
        }
        Err(_) => Ok(match range_attribute(range, device)? {
            CPU => Some(MemoryLocation::Host),
            ordinal => usize::try_from(ordinal).ok().map(MemoryLocation::Device),
        }),
    }
}

/// The preferred location of the whole range.
///
/// # Errors
///
/// Same as [`is_read_mostly`].
pub fn preferred_location(range: MemoryRange) -> Result<Option<MemoryLocation>> {
    type A = CUmem_range_attribute;
    range_location(
        range,
        A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
        A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID,
        A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
    )
}

/// The location to which the whole range was last prefetched.
///
/// # Errors
///
/// Same as [`is_read_mostly`].
pub fn last_prefetch_location(range: MemoryRange) -> Result<Option<MemoryLocation>> {
    type A = CUmem_range_attribute;
    range_location(
        range,
        A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE,
        A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID,
        A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
    )
}

/// The locations advised to access the whole range: devices in order, then the host.
///
/// # Errors
///
/// Same as [`is_read_mostly`].
pub fn accessed_by(range: MemoryRange) -> Result<Vec<MemoryLocation>> {
    const CPU: c_int = -1;
    const NOBODY: c_int = -2;
    // Room for every device and the host.
    let mut found = vec![NOBODY; Device::count()? + 1];
    let (place, bytes) = (found.as_mut_ptr(), size_of_val(found.as_slice()));
    with_any_context(|| {
        let attribute = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
        // SAFETY: `place` has `bytes` bytes.
        unsafe {
            driver!(cuMemRangeGetAttribute(
                place.cast::<c_void>(),
                bytes,
                attribute,
                range.0,
                range.1
            ))
        }
    })?;
    let mut devices: Vec<usize> = found
        .iter()
        .filter_map(|&id| usize::try_from(id).ok())
        .collect();
    devices.sort_unstable();
    let mut all: Vec<MemoryLocation> = devices.into_iter().map(MemoryLocation::Device).collect();
    if found.contains(&CPU) {
        all.push(MemoryLocation::Host);
    }
    Ok(all)
}

/// Ranges and their locations, in the layout of the batched calls.
struct Batch {
    addresses: Vec<CUdeviceptr>,
    sizes: Vec<usize>,
    places: Vec<CUmemLocation>,
    indices: Vec<usize>,
}

impl Batch {
    /// Collects the non-empty ranges: the driver rejects empty ones.
    fn of(ranges: &[MemoryRange], places: &[MemoryLocation]) -> Batch {
        let mut batch = Batch {
            addresses: Vec::with_capacity(ranges.len()),
            sizes: Vec::with_capacity(ranges.len()),
            places: Vec::new(),
            indices: Vec::new(),
        };
        let mut last = None;
        for (i, &(address, size)) in ranges.iter().enumerate() {
            if size == 0 {
                continue;
            }
            if let Some(&place) = places.get(i).or(places.first())
                && last != Some(place)
            {
                batch.places.push(place.to_raw());
                batch.indices.push(batch.addresses.len());
                last = Some(place);
            }
            batch.addresses.push(address);
            batch.sizes.push(size);
        }
        batch
    }
}

/// Checks that there is one location for each range, or one for all.
fn check_locations(function: &'static str, ranges: usize, places: &[MemoryLocation]) -> Result<()> {
    if places.len() == 1 || places.len() == ranges {
        return Ok(());
    }
    let problem = format!(
        "has {} places for {ranges} ranges; expected one, or as many",
        places.len()
    );
    Err(Error::argument(function, "places", problem))
}

fn prefetch_one(range: MemoryRange, place: MemoryLocation, stream: &Stream) -> Result<()> {
    let (address, bytes) = range;
    // SAFETY: prefetching changes no contents; the driver rejects ranges that are not managed memory; the handle is
    // live.
    let done = unsafe {
        driver!(cuMemPrefetchAsync(
            address,
            bytes,
            place.to_raw(),
            0,
            stream.handle()
        ))
    };
    if_supported(done).unwrap_or_else(|| {
        let device = place
            .as_device()
            .ok_or_else(|| numa_unsupported("prefetch_async"))?;
        // SAFETY: prefetching changes no contents; the driver rejects ranges that are not managed memory; the handle
        // is live.
        unsafe {
            driver!(cuMemPrefetchAsync_cuda12(
                address,
                bytes,
                device,
                stream.handle()
            ))
        }
    })
}

/// Prefetches ranges of managed memory in stream order on `stream`, to one location each or one for all.
///
/// # Errors
///
/// [`Error::InvalidArgument`] if the numbers of ranges and locations do not match; otherwise the driver's error:
/// `CUDA_ERROR_INVALID_VALUE` for memory that is not managed. Source: `cuMemPrefetchAsync`, `cuMemPrefetchBatchAsync`.
pub fn prefetch_async(
    ranges: &[MemoryRange],
    places: &[MemoryLocation],
    stream: &Stream,
) -> Result<()> {
    check_locations("prefetch_async", ranges.len(), places)?;
    let batch = Batch::of(ranges, places);
    stream.queue(|| {
        // The batched call rejects default streams; the single one accepts them.
        if batch.addresses.len() > 1 && !stream.is_default() {
            // SAFETY: the arrays have the lengths passed and are only read; otherwise as `prefetch_one`.
            let done = unsafe {
                driver!(cuMemPrefetchBatchAsync(
                    batch.addresses.as_ptr().cast_mut(),
                    batch.sizes.as_ptr().cast_mut(),
                    batch.addresses.len(),
                    batch.places.as_ptr().cast_mut(),
                    batch.indices.as_ptr().cast_mut(),
                    batch.places.len(),
                    0,
                    stream.handle()
                ))
            };
            if let Some(done) = if_supported(done) {
                return done;
            }
        }
        for (i, &range) in ranges.iter().enumerate().filter(|(_, range)| range.1 != 0) {
            prefetch_one(range, *places.get(i).unwrap_or(&places[0]), stream)?;
        }
        Ok(())
    })
}

/// The error of a driver without discard.
fn cannot_discard(function: &'static str) -> Error {
    Error::Unsupported {
        function,
        problem: "this driver is older than CUDA 13 and discards no memory".to_owned(),
    }
}

/// Discards the contents of ranges of managed memory, in stream order on `stream`: they are undefined until written
/// again, and need not migrate.
///
/// # Errors
///
/// The driver's error: `CUDA_ERROR_INVALID_VALUE` for memory that is not managed and for the legacy default stream;
/// [`Error::Unsupported`] before CUDA 13. Source: `cuMemDiscardBatchAsync`.
///
/// # Safety
///
/// Nothing reads the ranges before they are written again.
pub unsafe fn discard_async(ranges: &[MemoryRange], stream: &Stream) -> Result<()> {
    let batch = Batch::of(ranges, &[]);
    if batch.addresses.is_empty() {
        return Ok(());
    }
    stream.queue(|| {
        // SAFETY: the arrays have the lengths passed and are only read; for the contents, the caller's contract.
        let done = unsafe {
            driver!(cuMemDiscardBatchAsync(
                batch.addresses.as_ptr().cast_mut(),
                batch.sizes.as_ptr().cast_mut(),
                batch.addresses.len(),
                0,
                stream.handle()
            ))
        };
        if_supported(done).unwrap_or_else(|| Err(cannot_discard("discard_async")))
    })
}

/// [`discard_async`] and [`prefetch_async`] in one: memory that is about to be written arrives at its location without
/// a copy of its former contents.
///
/// # Errors
///
/// As both. Source: `cuMemDiscardAndPrefetchBatchAsync`.
///
/// # Safety
///
/// Same as [`discard_async`].
pub unsafe fn discard_and_prefetch_async(
    ranges: &[MemoryRange],
    places: &[MemoryLocation],
    stream: &Stream,
) -> Result<()> {
    check_locations("discard_and_prefetch_async", ranges.len(), places)?;
    let batch = Batch::of(ranges, places);
    if batch.addresses.is_empty() {
        return Ok(());
    }
    stream.queue(|| {
        // SAFETY: as in `discard_async`.
        let done = unsafe {
            driver!(cuMemDiscardAndPrefetchBatchAsync(
                batch.addresses.as_ptr().cast_mut(),
                batch.sizes.as_ptr().cast_mut(),
                batch.addresses.len(),
                batch.places.as_ptr().cast_mut(),
                batch.indices.as_ptr().cast_mut(),
                batch.places.len(),
                0,
                stream.handle()
            ))
        };
        if_supported(done).unwrap_or_else(|| Err(cannot_discard("discard_and_prefetch_async")))
    })
}
