//! The driver's capture of a stream: its mode, its state and its end.

use cupyrite_sys::driver::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus,
};

use crate::error::{Error, Result, driver};
use crate::stream::{Stream, is_capturing};

const UNJOINED_HINT: &str = "a builder that split() returned was not joined: call join() first";

/// Which unsafe calls a capture forbids meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMode {
    /// Those of all threads.
    Global,
    /// Those of the thread that began the capture.
    ThreadLocal,
    /// None.
    Relaxed,
}

impl CaptureMode {
    pub(super) fn raw(self) -> CUstreamCaptureMode {
        match self {
            CaptureMode::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            CaptureMode::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            CaptureMode::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

/// The capture of a stream.
pub(super) struct CaptureState {
    status: CUstreamCaptureStatus,
    /// The driver's number of an active capture.
    pub(super) id: u64,
    pub(super) graph: CUgraph,
    /// What the next node depends on.
    pub(super) after: Vec<CUgraphNode>,
}

impl CaptureState {
    /// Whether the capture with a number has ended. The driver reports no number of an invalidated capture.
    pub(super) fn is_other(&self, id: u64) -> bool {
        match self.status {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE => self.id != id,
            status => status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        }
    }

    /// Refuses an invalidated capture.
    pub(super) fn check_valid(&self) -> Result<()> {
        if self.status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE {
            return Ok(());
        }
        Err(Error::Driver {
            call: "cuStreamGetCaptureInfo",
            status: CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            log: "a call that the capture forbids has invalidated it".to_owned(),
        })
    }
}

/// The capture of a stream. Without `whole`, graph and dependencies are not asked for.
pub(super) fn capture_state(stream: &Stream, whole: bool) -> Result<CaptureState> {
    let mut status = CUstreamCaptureStatus(0);
    let mut graph: CUgraph = std::ptr::null_mut();
    let mut nodes: *const CUgraphNode = std::ptr::null();
    let mut data: *const CUgraphEdgeData = std::ptr::null();
    let (mut id, mut count) = (0, 0);
    stream.check_live()?;
    // SAFETY: the stream is live; all results are valid for writes or null.
    let asked = unsafe {
        if whole {
            driver!(cuStreamGetCaptureInfo(
                stream.handle(),
                &mut status,
                &mut id,
                &mut graph,
                &mut nodes,
                &mut data,
                &mut count
            ))
        } else {
            driver!(cuStreamGetCaptureInfo(
                stream.handle(),
                &mut status,
                &mut id,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut()
            ))
        }
    };
    match asked {
        // Before CUDA 12.3.
        // SAFETY: the stream is live; all results are valid for writes.
        Err(Error::Load(_)) => unsafe {
            driver!(cuStreamGetCaptureInfo_cuda12(
                stream.handle(),
                &mut status,
                &mut id,
                &mut graph,
                &mut nodes,
                &mut count
            ))?;
        },
        other => other?,
    }
    let after = if count == 0 {
        Vec::new()
    } else {
        // SAFETY: the driver's list of `count` nodes, valid until the next call on the stream.
        unsafe { std::slice::from_raw_parts(nodes, count) }.to_vec()
    };
    Ok(CaptureState {
        status,
        id,
        graph,
        after,
    })
}

/// What the driver reports for other branches.
pub(super) fn unjoined_branch() -> Error {
    Error::Driver {
        call: "cuStreamEndCapture",
        status: CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        log: UNJOINED_HINT.to_owned(),
    }
}

pub(super) fn check_idle(stream: &Stream) -> Result<()> {
    stream.check_live()?;
    if is_capturing(stream)? {
        return Err(Error::argument(
            "GraphBuilder::begin",
            "stream",
            "is being captured already; end that capture first",
        ));
    }
    Ok(())
}

pub(super) fn end_capture(stream: &Stream) -> Result<()> {
    let mut graph: CUgraph = std::ptr::null_mut();
    let place = &raw mut graph;
    // SAFETY: the stream is live, `place` is valid for writes.
    let ended = stream.call(|| unsafe { driver!(cuStreamEndCapture(stream.handle(), place)) });
    ended.map_err(|error| {
        let hint = match error.status() {
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED) => UNJOINED_HINT,
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) => {
                "a call that the capture forbids has invalidated it; the graph is lost"
            }
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) => {
                "the thread that began the capture has to end it, unless the mode is relaxed"
            }
            _ => "",
        };
        error.with_log(hint)
    })
}
