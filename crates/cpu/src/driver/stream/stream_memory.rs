//! The entry points of stream memory operations: a stream waits for a value in memory or writes one.

use cupyrite_sys::driver::CUstreamBatchMemOpType as OpType;

use crate::driver::entry::Res;
use crate::driver::entry::driver_entry_points;
use crate::driver::graph;
use crate::driver::stream::OpPlacement;
use crate::driver::stream::capture_state;
use crate::driver::stream::memory_operations::{Batch, MemoryOperation};
use crate::driver::stream::resolve;

fn enter(stream: u64, per_thread: bool, batch: Batch) -> Res {
    let stream = resolve::resolve_for_capture(stream, per_thread)?;
    let capturing = capture_state::is_capturing(&stream)?;
    if batch.operations.is_empty() {
        return Ok(());
    }
    if capturing {
        let node = graph::MemOps::new(batch, stream.context.clone());
        return graph::capture::record(&stream, graph::Payload::MemOps(node));
    }
    let mut operations = batch.operations.iter();
    // The caller's thread never waits: it may be the one that writes the value.
    let place = if operations.any(|o| matches!(o, MemoryOperation::Wait { .. })) {
        OpPlacement::Worker
    } else {
        OpPlacement::CallerIfIdle
    };
    stream.enqueue(&[], place, move |context| batch.run(context));
    Ok(())
}

const WAIT_32: OpType = OpType::CU_STREAM_MEM_OP_WAIT_VALUE_32;
const WRITE_32: OpType = OpType::CU_STREAM_MEM_OP_WRITE_VALUE_32;
const WAIT_64: OpType = OpType::CU_STREAM_MEM_OP_WAIT_VALUE_64;
const WRITE_64: OpType = OpType::CU_STREAM_MEM_OP_WRITE_VALUE_64;

driver_entry_points! {
    fn wait_32 "cuStreamWaitValue32_v2" | "cuStreamWaitValue32_v2_ptsz"
        (stream: u64, address: u64, value: u32, flags: u32) {
        enter(stream, PER_THREAD, Batch::wait(WAIT_32, address, value.into(), flags)?)
    }
    fn wait_64 "cuStreamWaitValue64_v2" | "cuStreamWaitValue64_v2_ptsz"
        (stream: u64, address: u64, value: u64, flags: u32) {
        enter(stream, PER_THREAD, Batch::wait(WAIT_64, address, value, flags)?)
    }
    fn write_32 "cuStreamWriteValue32_v2" | "cuStreamWriteValue32_v2_ptsz"
        (stream: u64, address: u64, value: u32, flags: u32) {
        enter(stream, PER_THREAD, Batch::write(WRITE_32, address, value.into(), flags)?)
    }
    fn write_64 "cuStreamWriteValue64_v2" | "cuStreamWriteValue64_v2_ptsz"
        (stream: u64, address: u64, value: u64, flags: u32) {
        enter(stream, PER_THREAD, Batch::write(WRITE_64, address, value, flags)?)
    }
    fn batch "cuStreamBatchMemOp_v2" | "cuStreamBatchMemOp_v2_ptsz"
        (stream: u64, count: u32, array: u64, flags: u32) {
        enter(stream, PER_THREAD, Batch::read(array, count, flags)?)
    }
}
