//! The entry points of memory fills with 8-, 16- and 32-bit values, in one and two dimensions.

use crate::driver::entry::Res;
use crate::driver::entry::driver_entry_points;
use crate::driver::graph;
use crate::driver::memory::fill::Fill;
use crate::driver::memory::queued;
use crate::driver::memory::rights;
use crate::driver::stream::OpPlacement;
use crate::driver::stream::capture_state;
use crate::driver::stream::resolve;

/// Up to this size in bytes, a fill runs immediately if the stream is idle.
const SMALL: u64 = 256 << 10;

fn set(fill: Fill, stream: u64, per_thread: bool) -> Res {
    let stream = resolve::resolve_for_capture(stream, per_thread)?;
    if capture_state::is_capturing(&stream)? {
        if fill.is_empty() {
            return Ok(());
        }
        let node = graph::Memset::captured(fill, stream.context.clone())?;
        return graph::capture::record(&stream, graph::Payload::Memset(node));
    }
    let span = fill.check(queued::covers)?;
    if span == 0 {
        return Ok(());
    }
    rights::check_fill(&stream.context, fill.to, span)?;
    let place = if span <= SMALL {
        OpPlacement::CallerIfIdle
    } else {
        OpPlacement::Worker
    };
    stream.enqueue(&[], place, move |_| fill.run());
    Ok(())
}

/// A fill by a call without a stream argument.
fn set_now(fill: Fill, per_thread: bool) -> Res {
    // Fails while the stream is capturing: a call without a stream cannot become part of a graph.
    resolve::resolve(0, per_thread)?;
    set(fill, 0, per_thread)
}

/// A single row of elements.
fn row(to: u64, value: u32, unit: u64, count: u64) -> Fill {
    Fill {
        to,
        pitch: 0,
        value,
        unit,
        width: count,
        height: 1,
    }
}

driver_entry_points! {
    fn set_d8 "cuMemsetD8_v2" | "cuMemsetD8_v2_ptds" (to: u64, value: u8, count: u64) {
        set_now(row(to, value.into(), 1, count), PER_THREAD)
    }
    fn set_d16 "cuMemsetD16_v2" | "cuMemsetD16_v2_ptds" (to: u64, value: u16, count: u64) {
        set_now(row(to, value.into(), 2, count), PER_THREAD)
    }
    fn set_d32 "cuMemsetD32_v2" | "cuMemsetD32_v2_ptds" (to: u64, value: u32, count: u64) {
        set_now(row(to, value, 4, count), PER_THREAD)
    }
    fn set_d8_async "cuMemsetD8Async" | "cuMemsetD8Async_ptsz" (to: u64, value: u8, count: u64, stream: u64) {
        set(row(to, value.into(), 1, count), stream, PER_THREAD)
    }
    fn set_d16_async "cuMemsetD16Async" | "cuMemsetD16Async_ptsz" (to: u64, value: u16, count: u64, stream: u64) {
        set(row(to, value.into(), 2, count), stream, PER_THREAD)
    }
    fn set_d32_async "cuMemsetD32Async" | "cuMemsetD32Async_ptsz" (to: u64, value: u32, count: u64, stream: u64) {
        set(row(to, value, 4, count), stream, PER_THREAD)
    }
    fn set_2d_d8 "cuMemsetD2D8_v2" | "cuMemsetD2D8_v2_ptds" (to: u64, pitch: u64, value: u8, width: u64, height: u64) {
        set_now(Fill { to, pitch, value: value.into(), unit: 1, width, height }, PER_THREAD)
    }
    fn set_2d_d16 "cuMemsetD2D16_v2" | "cuMemsetD2D16_v2_ptds"
        (to: u64, pitch: u64, value: u16, width: u64, height: u64) {
        set_now(Fill { to, pitch, value: value.into(), unit: 2, width, height }, PER_THREAD)
    }
    fn set_2d_d32 "cuMemsetD2D32_v2" | "cuMemsetD2D32_v2_ptds"
        (to: u64, pitch: u64, value: u32, width: u64, height: u64) {
        set_now(Fill { to, pitch, value, unit: 4, width, height }, PER_THREAD)
    }
    fn set_2d_d8_async "cuMemsetD2D8Async" | "cuMemsetD2D8Async_ptsz"
        (to: u64, pitch: u64, value: u8, width: u64, height: u64, stream: u64) {
        set(Fill { to, pitch, value: value.into(), unit: 1, width, height }, stream, PER_THREAD)
    }
    fn set_2d_d16_async "cuMemsetD2D16Async" | "cuMemsetD2D16Async_ptsz"
        (to: u64, pitch: u64, value: u16, width: u64, height: u64, stream: u64) {
        set(Fill { to, pitch, value: value.into(), unit: 2, width, height }, stream, PER_THREAD)
    }
    fn set_2d_d32_async "cuMemsetD2D32Async" | "cuMemsetD2D32Async_ptsz"
        (to: u64, pitch: u64, value: u32, width: u64, height: u64, stream: u64) {
        set(Fill { to, pitch, value, unit: 4, width, height }, stream, PER_THREAD)
    }
}
