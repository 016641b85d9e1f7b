//! Managed memory: advice, prefetch, discard, and attachment to streams (CUDA driver API, "Unified Addressing"; CUDA
//! C++ Programming Guide, "Unified Memory").
//!
//! Memory never migrates, because all of it is host memory. Advice and prefetches are recorded per page, because
//! `cuMemRangeGetAttribute` reports them.

use std::collections::BTreeMap;

use cupyrite_engine::memory::{Region, RegionKind};
use cupyrite_sys::driver::{self as sys, CUmemLocation};
use parking_lot::Mutex;

use crate::driver::context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null, put_bytes};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::memory::pool;
use crate::driver::memory::space::space;
use crate::driver::stream::Stream;
use crate::driver::stream::resolve;

/// `CU_MEM_LOCATION_TYPE_*`.
const DEVICE: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE.0;
const HOST: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST.0;
const HOST_NUMA: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA.0;
const HOST_NUMA_CURRENT: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT.0;
/// `CU_DEVICE_CPU` and `CU_DEVICE_INVALID`.
const CPU: i32 = -1;
const INVALID: i32 = -2;

/// A `CUmemLocation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Location {
    kind: u32,
    id: i32,
}

impl Location {
    const NONE: Location = Location {
        kind: 0,
        id: INVALID,
    };

    /// Validates the location; `nowhere` is the error for a device or node that does not exist.
    fn check(self, nowhere: Code) -> Res<Location> {
        match self.kind {
            DEVICE => device::by_ordinal(self.id)
                .map(|_| self)
                .map_err(|_| nowhere),
            HOST => Ok(Location { kind: HOST, id: 0 }),
            HOST_NUMA => pool::node(self.id.cast_unsigned(), nowhere).map(|_| self),
            HOST_NUMA_CURRENT => Ok(Location {
                kind: HOST_NUMA,
                id: 0,
            }),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn of(given: &CUmemLocation) -> Location {
        Location {
            kind: given.r#type.0,
            id: pool::location_id(given),
        }
    }

    /// A `CUmemLocation` passed by value, in a register: the type in its lower half.
    fn of_word(word: u64) -> Location {
        Location {
            kind: word as u32,
            id: (word >> 32) as i32,
        }
    }

    /// The location argument of the older entry points: a device ordinal or [`CPU`].
    fn of_device(ordinal: i32) -> Location {
        if ordinal == CPU {
            Location { kind: HOST, id: 0 }
        } else {
            Location {
                kind: DEVICE,
                id: ordinal,
            }
        }
    }

    /// The location as a device ordinal, [`CPU`] or [`INVALID`].
    fn as_device(self) -> i32 {
        match self.kind {
            DEVICE => self.id,
            0 => INVALID,
            _ => CPU,
        }
    }
}

/// Advice and prefetch location of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Advice {
    read_mostly: bool,
    preferred: Location,
    /// A bit for each device, and [`HOST_BIT`].
    accessed_by: u64,
    prefetched: Location,
}

const HOST_BIT: u64 = 1 << 63;
const NO_ADVICE: Advice = Advice {
    read_mostly: false,
    preferred: Location::NONE,
    accessed_by: 0,
    prefetched: Location::NONE,
};

/// Recorded advice: start to (end, advice). Ranges do not overlap; memory outside them has none.
struct Ranges(BTreeMap<u64, (u64, Advice)>);

static ADVICE: Mutex<Ranges> = Mutex::new(Ranges(BTreeMap::new()));

impl Ranges {
    /// Splits the range that contains `at`.
    fn split(&mut self, at: u64) {
        if let Some((_, range)) = self.0.range_mut(..at).next_back()
            && range.0 > at
        {
            let rest = *range;
            range.0 = at;
            self.0.insert(at, rest);
        }
    }

    /// Changes the advice of `[start, end)`.
    fn change(&mut self, start: u64, end: u64, change: impl Fn(&mut Advice)) {
        self.split(start);
        self.split(end);
        let mut at = start;
        let mut new = Vec::new();
        for (&from, range) in self.0.range_mut(start..end) {
            if at < from {
                new.push((at, from));
            }
            change(&mut range.1);
            at = range.0;
        }
        if at < end {
            new.push((at, end));
        }
        for (from, to) in new {
            let mut advice = NO_ADVICE;
            change(&mut advice);
            self.0.insert(from, (to, advice));
        }
    }

    /// Removes the advice of `[start, end)`.
    fn remove(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        let removed: Vec<u64> = self.0.range(start..end).map(|(&at, _)| at).collect();
        for at in removed {
            self.0.remove(&at);
        }
    }

    /// The advice of all parts of `[start, end)`.
    fn within(&self, start: u64, end: u64) -> Vec<Advice> {
        let mut found = Vec::new();
        let mut at = start;
        let below = self.0.range(..start).next_back();
        let below = below.filter(|(_, r)| r.0 > start);
        for (&from, &(to, advice)) in below.into_iter().chain(self.0.range(start..end)) {
            if at < from {
                found.push(NO_ADVICE);
            }
            found.push(advice);
            at = to;
        }
        if at < end {
            found.push(NO_ADVICE);
        }
        found
    }
}

/// Type and id of the location to which the page of an address was last prefetched.
pub(crate) fn prefetched(address: u64) -> Option<(u32, i32)> {
    let advice = ADVICE.lock();
    let (_, (end, advice)) = advice.0.range(..=address).next_back()?;
    let location = advice.prefetched;
    (*end > address && location.kind != 0).then_some((location.kind, location.id))
}

/// Removes the advice of freed memory.
pub(crate) fn remove_region(region: &Region) {
    if region.kind == RegionKind::Managed {
        ADVICE.lock().remove(region.base, region.end());
    }
}

/// Checks the range of `cuStreamAttachMemAsync`: managed memory, and a whole allocation if a length is given.
pub(crate) fn check_attachable(address: u64, length: u64) -> Res {
    let region = space().find(address).ok_or(Code::INVALID_VALUE)?;
    if region.kind != RegionKind::Managed || (length != 0 && length != region.size) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// The pages of a managed range. Advice applies to whole pages, limited by the allocation.
fn pages(address: u64, size: u64) -> Res<(u64, u64)> {
    const PAGE: u64 = 4096;
    let region = space()
        .find_range(address, size)
        .filter(|r| size > 0 && matches!(r.kind, RegionKind::Managed | RegionKind::Global))
        .ok_or(Code::INVALID_VALUE)?;
    let start = (address & !(PAGE - 1)).max(region.base);
    let end = (address + size).next_multiple_of(PAGE).min(region.end());
    Ok((start, end))
}

fn advise(address: u64, size: u64, advice: u32, location: Location) -> Res {
    const SET_READ_MOSTLY: u32 = sys::CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY.0;
    const UNSET_READ_MOSTLY: u32 = sys::CUmem_advise::CU_MEM_ADVISE_UNSET_READ_MOSTLY.0;
    const SET_PREFERRED: u32 = sys::CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION.0;
    const UNSET_PREFERRED: u32 = sys::CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION.0;
    const SET_ACCESSED_BY: u32 = sys::CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY.0;
    const UNSET_ACCESSED_BY: u32 = sys::CUmem_advise::CU_MEM_ADVISE_UNSET_ACCESSED_BY.0;
    context::current()?;
    // Only some kinds of advice use the location; all require a valid location type.
    let location = match advice {
        // NVIDIA's driver returns this error for an unknown device here, and a different one when it prefetches.
        SET_PREFERRED | SET_ACCESSED_BY | UNSET_ACCESSED_BY => {
            location.check(Code::INVALID_VALUE)?
        }
        SET_READ_MOSTLY | UNSET_READ_MOSTLY | UNSET_PREFERRED
            if (DEVICE..=HOST_NUMA_CURRENT).contains(&location.kind) =>
        {
            location
        }
        _ => return Err(Code::INVALID_VALUE),
    };
    let bit = match location.kind {
        DEVICE => 1 << (location.id & 31),
        _ => HOST_BIT,
    };
    if advice >= SET_ACCESSED_BY && location.kind == HOST_NUMA {
        return Err(Code::INVALID_VALUE);
    }
    let (start, end) = pages(address, size)?;
    ADVICE.lock().change(start, end, |page| match advice {
        SET_READ_MOSTLY => page.read_mostly = true,
        UNSET_READ_MOSTLY => page.read_mostly = false,
        SET_PREFERRED => page.preferred = location,
        UNSET_PREFERRED => page.preferred = Location::NONE,
        SET_ACCESSED_BY => page.accessed_by |= bit,
        _ => page.accessed_by &= !bit,
    });
    Ok(())
}

fn prefetch(address: u64, size: u64, location: Location, stream: u64, per_thread: bool) -> Res {
    let stream = resolve::resolve(stream, per_thread)?;
    non_null(address)?;
    let location = location.check(Code::INVALID_DEVICE)?;
    let (start, end) = pages(address, size)?;
    ADVICE
        .lock()
        .change(start, end, |page| page.prefetched = location);
    stream.mark(&[]);
    Ok(())
}

/// The value on which all parts of a range agree, or `none`.
fn common<T: PartialEq + Copy>(parts: &[Advice], value: impl Fn(&Advice) -> T, none: T) -> T {
    let first = parts.first().map_or(none, &value);
    if parts.iter().all(|advice| value(advice) == first) {
        first
    } else {
        none
    }
}

/// The value of a `CUmem_range_attribute`, as `size` bytes.
fn attribute(id: u32, size: u64, parts: &[Advice]) -> Res<Vec<u8>> {
    use sys::CUmem_range_attribute as Attribute;
    let preferred = common(parts, |s| s.preferred, Location::NONE);
    let prefetched = common(parts, |s| s.prefetched, Location::NONE);
    let value = match Attribute(id) {
        Attribute::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY => {
            i32::from(parts.iter().all(|s| s.read_mostly))
        }
        Attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION => preferred.as_device(),
        Attribute::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY => {
            const MAX_SIZE: u64 = 1 << 16;
            if size == 0 || !size.is_multiple_of(4) || size > MAX_SIZE {
                return Err(Code::INVALID_VALUE);
            }
            let all = parts.iter().fold(u64::MAX, |all, s| all & s.accessed_by);
            let mut ids: Vec<i32> = (0..31).filter(|d| all >> d & 1 != 0).collect();
            if all & HOST_BIT != 0 {
                ids.push(CPU);
            }
            ids.resize(size as usize / 4, INVALID);
            return Ok(ids.iter().flat_map(|id| id.to_ne_bytes()).collect());
        }
        Attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION => prefetched.as_device(),
        Attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE => preferred.kind as i32,
        Attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID => preferred.id,
        Attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE => prefetched.kind as i32,
        // As on an H200.
        Attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID if prefetched.kind == HOST => {
            CPU
        }
        Attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID => prefetched.id,
        _ => return Err(Code::INVALID_VALUE),
    };
    if size != 4 {
        return Err(Code::INVALID_VALUE);
    }
    Ok(value.to_ne_bytes().to_vec())
}

fn advice_of(address: u64, size: u64) -> Res<Vec<Advice>> {
    context::current()?;
    let (start, end) = pages(address, size)?;
    Ok(ADVICE.lock().within(start, end))
}

/// The stream of a call on several ranges; the legacy default stream is not allowed.
pub(crate) fn batch_stream(handle: u64, per_thread: bool) -> Res<std::sync::Arc<Stream>> {
    const LEGACY_HANDLE: u64 = 1;
    if handle == LEGACY_HANDLE || (handle == 0 && !per_thread) {
        return Err(Code::INVALID_VALUE);
    }
    resolve::resolve(handle, per_thread)
}

/// Reads arrays of addresses and sizes.
fn ranges(addresses: u64, sizes: u64, count: u64) -> Res<Vec<(u64, u64)>> {
    non_null(addresses)?;
    non_null(sizes)?;
    let count = usize::try_from(count).map_err(|_| Code::INVALID_VALUE)?;
    if count == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let addresses = get_array::<u64>(addresses, count)?;
    let sizes = get_array::<u64>(sizes, count)?;
    Ok(addresses.into_iter().zip(sizes).collect())
}

/// The index of the entry that applies to each of `count` operations. Entry `i` applies from operation `indices[i]` on;
/// the indices start at zero and increase.
pub(crate) fn entry_indices(indices: u64, entries: u64, count: usize) -> Res<Vec<usize>> {
    non_null(indices)?;
    let entries = usize::try_from(entries).map_err(|_| Code::INVALID_VALUE)?;
    if entries == 0 || entries > count {
        return Err(Code::INVALID_VALUE);
    }
    let indices = get_array::<u64>(indices, entries)?;
    if indices[0] != 0
        || !indices.is_sorted_by(|a, b| a < b)
        || indices.iter().any(|&i| i >= count as u64)
    {
        return Err(Code::INVALID_VALUE);
    }
    let mut entry_indices = vec![0; count];
    for (entry, &from) in indices.iter().enumerate() {
        entry_indices[from as usize..].fill(entry);
    }
    Ok(entry_indices)
}

/// Discards or prefetches several ranges, or both.
#[allow(clippy::too_many_arguments)]
fn batch(
    addresses: u64,
    sizes: u64,
    count: u64,
    places: Option<[u64; 3]>,
    flags: u64,
    stream: u64,
    per_thread: bool,
) -> Res {
    let stream = batch_stream(stream, per_thread)?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let ranges = ranges(addresses, sizes, count)?;
    let mut todo = Vec::with_capacity(ranges.len());
    let places = match places {
        Some([locations, indices, entries]) => {
            non_null(locations)?;
            let entry_indices = entry_indices(indices, entries, ranges.len())?;
            let locations = get_array::<CUmemLocation>(locations, entries as usize)?;
            let mut checked = Vec::new();
            for location in &locations {
                checked.push(Location::of(location).check(Code::INVALID_DEVICE)?);
            }
            Some(
                entry_indices
                    .into_iter()
                    .map(|i| checked[i])
                    .collect::<Vec<_>>(),
            )
        }
        None => None,
    };
    for (i, &(address, size)) in ranges.iter().enumerate() {
        todo.push((pages(address, size)?, places.as_ref().map(|p| p[i])));
    }
    let mut advice = ADVICE.lock();
    for ((start, end), location) in todo {
        if let Some(location) = location {
            advice.change(start, end, |page| page.prefetched = location);
        }
    }
    drop(advice);
    // The contents of a discarded range are undefined, so they may stay as they are.
    stream.mark(&[]);
    Ok(())
}

driver_entry_points! {
    fn mem_prefetch "cuMemPrefetchAsync" | "cuMemPrefetchAsync_ptsz"
        (address: u64, size: u64, device: i32, stream: u64) {
        prefetch(address, size, Location::of_device(device), stream, PER_THREAD)
    }
    fn mem_prefetch_v2 "cuMemPrefetchAsync_v2" | "cuMemPrefetchAsync_v2_ptsz"
        (address: u64, size: u64, location: u64, flags: u32, stream: u64) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        prefetch(address, size, Location::of_word(location), stream, PER_THREAD)
    }
    fn mem_advise "cuMemAdvise" (address: u64, size: u64, advice: u32, device: i32) {
        advise(address, size, advice, Location::of_device(device))
    }
    fn mem_advise_v2 "cuMemAdvise_v2" (address: u64, size: u64, advice: u32, location: u64) {
        advise(address, size, advice, Location::of_word(location))
    }
    fn mem_range_attribute "cuMemRangeGetAttribute" (data: u64, size: u64, id: u32, address: u64, count: u64) {
        non_null(data)?;
        let value = attribute(id, size, &advice_of(address, count)?)?;
        put_bytes(data, &value)
    }
    fn mem_range_attributes "cuMemRangeGetAttributes"
        (data: u64, sizes: u64, ids: u64, number: u64, address: u64, count: u64) {
        non_null(data)?;
        non_null(sizes)?;
        non_null(ids)?;
        let number = usize::try_from(number).ok().filter(|&n| n > 0).ok_or(Code::INVALID_VALUE)?;
        let parts = advice_of(address, count)?;
        let outs = get_array::<u64>(data, number)?;
        let sizes = get_array::<u64>(sizes, number)?;
        for ((out, size), id) in outs.into_iter().zip(sizes).zip(get_array::<u32>(ids, number)?) {
            non_null(out)?;
            put_bytes(out, &attribute(id, size, &parts)?)?;
        }
        Ok(())
    }
    fn mem_prefetch_batch "cuMemPrefetchBatchAsync" | "cuMemPrefetchBatchAsync_ptsz"
        (addresses: u64, sizes: u64, count: u64, places: u64, indices: u64, entries: u64, flags: u64, stream: u64) {
        batch(addresses, sizes, count, Some([places, indices, entries]), flags, stream, PER_THREAD)
    }
    fn mem_discard_batch "cuMemDiscardBatchAsync" | "cuMemDiscardBatchAsync_ptsz"
        (addresses: u64, sizes: u64, count: u64, flags: u64, stream: u64) {
        batch(addresses, sizes, count, None, flags, stream, PER_THREAD)
    }
    fn mem_discard_prefetch_batch "cuMemDiscardAndPrefetchBatchAsync" | "cuMemDiscardAndPrefetchBatchAsync_ptsz"
        (addresses: u64, sizes: u64, count: u64, places: u64, indices: u64, entries: u64, flags: u64, stream: u64) {
        batch(addresses, sizes, count, Some([places, indices, entries]), flags, stream, PER_THREAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_range_keep_their_own_advice() {
        let mut r = Ranges(BTreeMap::new());
        r.change(100, 200, |s| s.read_mostly = true);
        r.change(150, 300, |s| s.accessed_by |= 2);
        r.change(50, 120, |s| s.accessed_by |= 1);
        let flags = |from, to| {
            r.within(from, to)
                .iter()
                .map(|s| (s.read_mostly, s.accessed_by))
                .collect::<Vec<_>>()
        };
        assert_eq!(flags(0, 50), [(false, 0)]);
        assert_eq!(flags(0, 100), [(false, 0), (false, 1)]);
        assert_eq!(
            flags(110, 210),
            [(true, 1), (true, 0), (true, 2), (false, 2)]
        );
        assert_eq!(flags(299, 400), [(false, 2), (false, 0)]);
        r.remove(100, 250);
        assert_eq!(r.within(0, 1000).len(), 5);
        assert_eq!(r.within(100, 250), [NO_ADVICE]);
        r.remove(0, 1000);
        assert!(r.0.is_empty());
    }
}
