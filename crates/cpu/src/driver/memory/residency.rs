//! Where the pages of a range are (CUDA driver API, `cuMemGetLocationInfo`).
//!
//! Managed memory is where the last prefetch moved it. Other pages that exist are the host's, and pages that nothing has
//! touched are nowhere.

use cupyrite_engine::memory::RegionKind;
use cupyrite_sys::driver::{CUmemLocation, CUmemLocationType};

use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::managed;
use crate::driver::memory::space::space;

const PAGE: u64 = 4096;
const NONE: CUmemLocationType = CUmemLocationType(0);
const HOST: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST;

/// Whether the page that contains the address has memory; `None` if nothing is mapped there.
fn is_present(address: u64) -> Option<bool> {
    let mut state = 0u8;
    let page = address & !(PAGE - 1);
    // SAFETY: queries the state of one page; the call accesses no memory there.
    let known = unsafe { libc::mincore(page as *mut _, PAGE as usize, &mut state) } == 0;
    known.then_some(state & 1 != 0)
}

/// Type and id of the location of an address.
fn locate(address: u64) -> Res<(CUmemLocationType, i32)> {
    if let Some((kind, id)) = managed::prefetched(address) {
        return Ok((CUmemLocationType(kind), id));
    }
    match is_present(address) {
        Some(true) => Ok((HOST, 0)),
        Some(false) => Ok((NONE, 0)),
        None => refuse(Code::INVALID_VALUE, || {
            format!("{address:#x} in the range is not mapped")
        }),
    }
}

/// The most frequent location of the samples; of equally frequent ones, the first.
fn summarize(start: u64, end: u64, step: u64) -> Res<(CUmemLocationType, i32)> {
    let mut counts: Vec<((CUmemLocationType, i32), u64)> = Vec::new();
    let mut at = start;
    while at < end {
        let found = locate(at)?;
        match counts.iter_mut().find(|(known, _)| *known == found) {
            Some((_, count)) => *count += 1,
            None => counts.push((found, 1)),
        }
        at = at.saturating_add(step);
    }
    let most = counts.iter().map(|(_, count)| *count).max();
    let winner = counts.iter().find(|(_, count)| Some(*count) == most);
    winner.map(|(found, _)| *found).ok_or(Code::INVALID_VALUE)
}

driver_entry_points! {
    fn location_info "cuMemGetLocationInfo" (address: u64, size: u64, summary: u64, sampling: u64, out: u64) {
        non_null(out)?;
        context::current()?;
        let end = address.checked_add(size).filter(|_| address > 0);
        let Some(end) = end.filter(|_| summary > 0 && summary <= size && sampling <= summary) else {
            return refuse(Code::INVALID_VALUE, || {
                format!(
                    "ptr={address:#x}, size={size}, summaryGranularity={summary}, samplingGranularity={sampling}: expected 0 < \
                     summaryGranularity <= size and samplingGranularity <= summaryGranularity"
                )
            });
        };
        // The range is managed memory, or memory that CUDA does not know.
        let known = space().find(address).or_else(|| space().find(end - 1));
        if known.is_some_and(|r| r.kind != RegionKind::Managed || !r.contains(address, size)) {
            return refuse(Code::INVALID_VALUE, || {
                format!("ptr={address:#x}, size={size}: must be managed memory or unregistered memory of the host")
            });
        }
        // More samples of a page change nothing.
        let step = sampling.max(PAGE);
        let mut start = address;
        let mut to = out;
        while start < end {
            let part_end = start.saturating_add(summary).min(end);
            let (kind, id) = summarize(start, part_end, step)?;
            let mut location = CUmemLocation { r#type: kind, ..CUmemLocation::default() };
            location.anon0.id = id;
            put(to, location)?;
            start = part_end;
            to = to.checked_add(size_of::<CUmemLocation>() as u64).ok_or(Code::INVALID_VALUE)?;
        }
        Ok(())
    }
}
