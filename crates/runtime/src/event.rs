//! Events.

use cupyrite_sys::driver::CUevent;

use crate::checked::{non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::stream::handle;

/// Validates an event handle. The null handle is refused before a context is created for it.
fn event(handle: u64) -> Res<CUevent> {
    if handle == 0 {
        return Err(Error::INVALID_RESOURCE_HANDLE);
    }
    context::current()?;
    Ok(handle as CUevent)
}

fn create(out: u64, flags: u32) -> Res {
    non_null(out)?;
    context::current()?;
    let mut event: CUevent = std::ptr::null_mut();
    cu!(cuEventCreate(&mut event, flags))?;
    put(out, event as u64).inspect_err(|_| {
        let _ = cu!(cuEventDestroy(event));
    })
}

/// `cudaEventElapsedTime` with the query of the driver's first or second version.
pub(crate) fn elapsed(
    out: u64,
    start: u64,
    end: u64,
    query: impl FnOnce(&mut f32, CUevent, CUevent) -> Res,
) -> Res {
    non_null(out)?;
    let (start, end) = (event(start)?, event(end)?);
    let mut milliseconds = 0f32;
    query(&mut milliseconds, start, end)?;
    put(out, milliseconds)
}

runtime_entry_points! {
    fn event_create "cudaEventCreate" (out: u64) {
        create(out, 0)
    }
    fn event_create_with_flags "cudaEventCreateWithFlags" (out: u64, flags: u32) {
        create(out, flags)
    }
    fn event_destroy "cudaEventDestroy" (event: u64) {
        cu!(cuEventDestroy(self::event(event)?))
    }
    fn event_record "cudaEventRecord" | "cudaEventRecord_ptsz" (event: u64, stream: u64) {
        context::current()?;
        cu!(cuEventRecord(event as CUevent, handle::<PER_THREAD>(stream)))
    }
    fn event_record_with_flags "cudaEventRecordWithFlags" | "cudaEventRecordWithFlags_ptsz"
        (event: u64, stream: u64, flags: u32) {
        context::current()?;
        cu!(cuEventRecordWithFlags(event as CUevent, handle::<PER_THREAD>(stream), flags))
    }
    fn event_query "cudaEventQuery" (event: u64) {
        cu!(cuEventQuery(self::event(event)?))
    }
    fn event_synchronize "cudaEventSynchronize" (event: u64) {
        cu!(cuEventSynchronize(self::event(event)?))
    }
    fn event_elapsed_time "cudaEventElapsedTime" (out: u64, start: u64, end: u64) {
        elapsed(out, start, end, |milliseconds, start, end| {
            match cu!(cuEventElapsedTime(milliseconds, start, end)) {
                // Drivers before CUDA 12.8 have only the first version, which differs in its errors.
                Err(Error::CALL_REQUIRES_NEWER_DRIVER) => cu!(cuEventElapsedTime_cuda12(milliseconds, start, end)),
                outcome => outcome,
            }
        })
    }
}
