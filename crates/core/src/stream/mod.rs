//! Streams: queues of work, ordered within one stream and independent between streams.

mod call;
pub(crate) mod capture;
mod create;
mod default;
pub(crate) mod event;
mod handle;
pub(crate) mod lending;
mod recorded;
mod resources;
pub(crate) mod usage;
mod wait;

pub use capture::{is_capturing, wait_for_streams};
pub use create::StreamOptions;
pub use event::{Event, EventOptions, IpcEventHandle, UniqueEvent};
pub(crate) use handle::GraphRecorder;
pub use handle::{Stream, UniqueStream};
pub use usage::StreamUsage;
