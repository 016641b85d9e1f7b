//! The calls of kernels that change the grid's streams: launches, streams, events, copies and fills.

use std::sync::Arc;

use cupyrite_engine::{
    DeviceRuntime, FaultKind, KernelMemory, RuntimeCall, RuntimeFault, RuntimeFunction,
};
use cupyrite_sys::runtime::cudaError_t;

use super::child::{Child, PendingLaunch, Work};
use super::copies::{self, Copy, Fill};
use super::grid::{Grid, GridState, ParameterBuffer};
use super::streams::StreamKey;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, fresh_id, handle_of};
use crate::driver::entry::logs::{self, Level, because};
use crate::driver::memory::space::space;
use crate::driver::module::function::Function;
use crate::driver::module::launch::{Launch, LaunchConfig};

/// A `cudaError_t` that a call returns.
pub(super) type Status = Result<(), u32>;

const fn error(e: cudaError_t) -> u32 {
    e.0
}
const INVALID_VALUE: u32 = error(cudaError_t::cudaErrorInvalidValue);
const INVALID_HANDLE: u32 = error(cudaError_t::cudaErrorInvalidResourceHandle);
const INVALID_CONFIGURATION: u32 = error(cudaError_t::cudaErrorInvalidConfiguration);
const OUT_OF_MEMORY: u32 = error(cudaError_t::cudaErrorMemoryAllocation);
const TOO_MANY: u32 = error(cudaError_t::cudaErrorLaunchPendingCountExceeded);

/// Stream handles with a meaning of their own.
const NULL: u64 = 0;
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;
const TAIL: u64 = 3;
const FIRE_AND_FORGET: u64 = 4;

/// Flags of streams and events: `cudaStreamNonBlocking`, `cudaEventBlockingSync`, `cudaEventDisableTiming`. Events of kernels
/// must have the last one.
const NON_BLOCKING: u64 = 1;
const BLOCKING_SYNC: u64 = 1;
const DISABLE_TIMING: u64 = 2;

/// Most bytes of a parameter buffer that is allocated before its kernel is known.
const MAX_PARAMETERS: u64 = 64 << 20;

/// The stream of a launch.
#[derive(Clone, Copy)]
enum Target {
    Stream(StreamKey),
    Fire,
    Tail,
}

impl DeviceRuntime for Grid {
    fn call(
        &self,
        call: &RuntimeCall<'_>,
        memory: &mut dyn KernelMemory,
    ) -> Result<u64, RuntimeFault> {
        use RuntimeFunction as F;
        let thread = (call.block, call.thread);
        let arg = |n: usize| call.args.get(n).copied().unwrap_or(0);
        let dims = |n: usize| [arg(n) as u32, arg(n + 1) as u32, arg(n + 2) as u32];
        match call.function {
            F::GetLastError => {
                let last = self.state.lock().errors.remove(&thread);
                return Ok(last.unwrap_or(0).into());
            }
            F::PeekAtLastError => {
                let last = self.state.lock().errors.get(&thread).copied();
                return Ok(last.unwrap_or(0).into());
            }
            F::GetErrorName | F::GetErrorString => {
                return Ok(super::queries::error_text(
                    arg(0) as u32,
                    call.function == F::GetErrorName,
                ));
            }
            F::GetParameterBufferV2 => {
                let config = LaunchConfig {
                    grid: dims(1),
                    block: dims(4),
                    dynamic_shared: arg(7) as u32,
                    cooperative: false,
                    cluster: None,
                };
                let prepared = self.prepare(arg(0), config)?;
                return Ok(self.or_null(thread, prepared));
            }
            F::GetParameterBuffer => {
                return Ok(self.or_null(thread, self.buffer(arg(0), arg(1))));
            }
            _ => {}
        }
        let status = match call.function {
            F::LaunchDeviceV2 => self.launch_v2(call, arg(0), arg(1))?,
            F::LaunchDevice => {
                let config = LaunchConfig {
                    grid: dims(2),
                    block: dims(5),
                    dynamic_shared: arg(8) as u32,
                    cooperative: false,
                    cluster: None,
                };
                self.launch_v1(call, arg(0), arg(1), config, arg(9))?
            }
            // The statuses of flags and handles are those of an H100.
            F::StreamCreateWithFlags if arg(1) & !NON_BLOCKING != 0 => Err(INVALID_VALUE),
            F::StreamCreateWithFlags => {
                let handle = handle_of(HandleKind::DeviceStream, fresh_id());
                memory.write(arg(0), &handle.to_le_bytes())?;
                self.state.lock().streams.create_stream(handle);
                Ok(())
            }
            F::StreamDestroy => {
                let destroyed = self.state.lock().streams.destroy_stream(arg(0));
                destroyed.then_some(()).ok_or(INVALID_VALUE)
            }
            F::EventCreateWithFlags if arg(1) & !BLOCKING_SYNC != DISABLE_TIMING => {
                Err(INVALID_VALUE)
            }
            F::EventCreateWithFlags => {
                let handle = handle_of(HandleKind::DeviceEvent, fresh_id());
                memory.write(arg(0), &handle.to_le_bytes())?;
                self.state.lock().streams.create_event(handle);
                Ok(())
            }
            F::EventDestroy => {
                let destroyed = self.state.lock().streams.destroy_event(arg(0));
                destroyed.then_some(()).ok_or(INVALID_VALUE)
            }
            F::EventRecord => self.record(call, arg(0), arg(1)),
            F::EventRecordWithFlags if arg(2) != 0 => Err(INVALID_VALUE),
            F::EventRecordWithFlags => self.record(call, arg(0), arg(1)),
            F::StreamWaitEvent => self.wait(call, arg(0), arg(1)),
            F::Malloc if arg(0) == 0 => Err(INVALID_VALUE),
            F::Malloc => {
                let at = memory.allocate(arg(1));
                memory.write(arg(0), &at.to_le_bytes())?;
                match at {
                    0 if arg(1) != 0 => Err(OUT_OF_MEMORY),
                    _ => Ok(()),
                }
            }
            F::Free => memory.free(arg(0)).then_some(()).ok_or(INVALID_VALUE),
            F::MemcpyAsync => {
                let copy = Copy::linear(arg(0), arg(1), arg(2));
                self.copy(call, copies::check_kind(arg(3)).and(copy), arg(4))
            }
            F::Memcpy2DAsync => {
                let copy = Copy::pitched((arg(0), arg(1)), (arg(2), arg(3)), [arg(4), arg(5)]);
                self.copy(call, copies::check_kind(arg(6)).and(copy), arg(7))
            }
            F::Memcpy3DAsync => {
                let copy = copies::read_3d(arg(0), memory)?;
                self.copy(call, copy, arg(1))
            }
            F::MemsetAsync => {
                let fill = Fill::new(arg(0), arg(1) as u8, [arg(2), 1, 1], [arg(2), 1]);
                self.fill(call, fill, arg(3))
            }
            F::Memset2DAsync => {
                let extent = [arg(3), arg(4), 1];
                let fill = Fill::new(arg(0), arg(2) as u8, extent, [arg(1), 1]);
                self.fill(call, fill, arg(5))
            }
            F::Memset3DAsync => {
                let (extent, pitches) = ([arg(5), arg(6), arg(7)], [arg(1), arg(3)]);
                let fill = Fill::new(arg(0), arg(4) as u8, extent, pitches);
                self.fill(call, fill, arg(8))
            }
            _ => self.query(call, memory)?,
        };
        Ok(match status {
            Ok(()) => 0,
            Err(code) => {
                self.failed_call(thread, code);
                code.into()
            }
        })
    }

    fn make_progress(&self) -> bool {
        self.run_children()
    }
}

impl Grid {
    /// An address, or zero and the thread's last error.
    fn or_null(&self, thread: (u64, u32), address: Result<u64, u32>) -> u64 {
        address.unwrap_or_else(|code| {
            self.failed_call(thread, code);
            0
        })
    }

    /// Sets the last error of a thread, and logs the reason of the first such error of the grid.
    fn failed_call(&self, thread: (u64, u32), code: u32) {
        let why = logs::reason(Code(code));
        let is_new = {
            let mut state = self.state.lock();
            state.errors.insert(thread, code);
            state.logged.insert(code)
        };
        if let Some(why) = why.filter(|_| is_new) {
            let name = &self.function.kernel.name;
            logs::message(Level::Error, &format!("kernel '{name}': {why}"));
        }
    }

    /// The stream that a handle names.
    fn stream(
        &self,
        state: &GridState,
        call: &RuntimeCall<'_>,
        handle: u64,
    ) -> Result<Target, u32> {
        Ok(match handle {
            NULL if call.per_thread_stream => {
                Target::Stream(StreamKey::Thread(call.block, call.thread))
            }
            NULL | LEGACY => Target::Stream(StreamKey::Null(call.block)),
            PER_THREAD => Target::Stream(StreamKey::Thread(call.block, call.thread)),
            TAIL => Target::Tail,
            FIRE_AND_FORGET => Target::Fire,
            _ if state.streams.is_stream(handle) => Target::Stream(StreamKey::Created(handle)),
            _ => {
                return Err(refuse(INVALID_VALUE, || {
                    format!(
                        "{handle:#x} is not a stream of the grid; a kernel can launch into streams that its own grid created \
                         with cudaStreamCreateWithFlags"
                    )
                }));
            }
        })
    }

    /// Adds a child to a stream.
    fn submit(&self, call: &RuntimeCall<'_>, child: Child, stream: u64) -> Status {
        let mut state = self.state.lock();
        match self.stream(&state, call, stream)? {
            Target::Stream(stream) => state.streams.launch(stream, child),
            Target::Fire => {
                let stream = state.streams.fired();
                state.streams.launch(stream, child);
            }
            Target::Tail => state.tails.push_back(child),
        }
        Ok(())
    }

    /// Reserves a pending launch. While the limit is reached, runs children of the grid.
    fn pending(&self) -> Result<PendingLaunch, u32> {
        loop {
            if let Some(pending) = PendingLaunch::take(&self.context) {
                return Ok(pending);
            }
            if !self.run_child() {
                break;
            }
        }
        Err(refuse(TOO_MANY, || {
            format!(
                "{} launches are pending, which is the limit; raise cudaLimitDevRuntimePendingLaunchCount",
                self.context.pending_launch_limit()
            )
        }))
    }

    /// `cudaGetParameterBufferV2`: validates a launch and allocates memory for its parameters.
    ///
    /// As on an H100, an address that is not that of a kernel is an invalid configuration if there is memory, else a fault.
    fn prepare(&self, kernel: u64, config: LaunchConfig) -> Result<Result<u64, u32>, RuntimeFault> {
        let Some(function) = self.function.launched_by(kernel) else {
            let why = format!("launch of {kernel:#x}, which is not the address of a kernel");
            if space().find(kernel).is_some() {
                return Ok(Err(refuse(INVALID_CONFIGURATION, || why)));
            }
            return Err(RuntimeFault::Other(FaultKind::IllegalAddress, why));
        };
        Ok(self.reserve(function, config))
    }

    /// Validates a launch and allocates memory for its parameters.
    fn reserve(&self, function: Arc<Function>, config: LaunchConfig) -> Result<u64, u32> {
        Launch::check_of_device(&function, &config).map_err(|code| match code {
            Code::INVALID_VALUE => {
                let why = logs::reason(code);
                refuse(INVALID_CONFIGURATION, || {
                    why.unwrap_or_else(|| "the configuration of a launch is invalid".into())
                })
            }
            code => code.0,
        })?;
        let pending = self.pending()?;
        let bytes = function.kernel.param_bytes.into();
        let mut buffer = ParameterBuffer::new(bytes, 256).map_err(|code| code.0)?;
        let address = buffer.address;
        buffer.launch = Some((function, config, pending));
        self.state.lock().buffers.insert(address, buffer);
        Ok(address)
    }

    /// `cudaGetParameterBuffer`: allocates memory for parameters.
    fn buffer(&self, align: u64, bytes: u64) -> Result<u64, u32> {
        if !align.is_power_of_two() || align > 4096 || bytes > MAX_PARAMETERS {
            return Err(refuse(INVALID_VALUE, || {
                format!(
                    "cudaGetParameterBuffer: {bytes} bytes with an alignment of {align}; at most {MAX_PARAMETERS} bytes, and \
                     a power of two up to 4096, are allowed"
                )
            }));
        }
        let buffer = ParameterBuffer::new(bytes, align.max(16)).map_err(|code| code.0)?;
        let address = buffer.address;
        self.state.lock().buffers.insert(address, buffer);
        Ok(address)
    }

    /// `cudaLaunchDeviceV2`. As on an H100, an address that is not that of a buffer is a fault.
    fn launch_v2(
        &self,
        call: &RuntimeCall<'_>,
        address: u64,
        stream: u64,
    ) -> Result<Status, RuntimeFault> {
        let buffer = self.state.lock().buffers.remove(&address);
        let launch = buffer.and_then(|mut b| b.launch.take().map(|launch| (launch, b)));
        let Some(((function, config, pending), buffer)) = launch else {
            let why = format!(
                "cudaLaunchDeviceV2: {address:#x} is not a buffer of cudaGetParameterBufferV2, or was launched already"
            );
            return Err(RuntimeFault::Other(FaultKind::IllegalAddress, why));
        };
        let parameters = buffer.contents(function.kernel.param_bytes);
        let launch = match Launch::of_device(function, config, parameters) {
            Ok(launch) => launch,
            Err(code) => return Ok(Err(code.0)),
        };
        let child = Child::new(Work::Kernel(Box::new(launch)), pending);
        Ok(self.submit(call, child, stream))
    }

    /// `cudaLaunchDevice`. The buffer may be null if the kernel has no parameters.
    fn launch_v1(
        &self,
        call: &RuntimeCall<'_>,
        kernel: u64,
        parameters: u64,
        config: LaunchConfig,
        stream: u64,
    ) -> Result<Status, RuntimeFault> {
        let address = match self.prepare(kernel, config)? {
            Ok(address) => address,
            Err(code) => return Ok(Err(code)),
        };
        {
            let mut state = self.state.lock();
            let given = state.buffers.remove(&parameters);
            let own = state.buffers.get(&address);
            match (&given, own) {
                (Some(given), Some(own)) => own.copy_from(given),
                _ if parameters == 0 && own.is_some_and(|b| b.bytes <= 1) => {}
                _ => {
                    let why = format!(
                        "cudaLaunchDevice: {parameters:#x} is not a buffer of cudaGetParameterBuffer, or was launched already"
                    );
                    return Err(RuntimeFault::Other(FaultKind::IllegalAddress, why));
                }
            }
        }
        self.launch_v2(call, address, stream)
    }

    /// The stream of an event operation.
    fn event_stream(
        &self,
        state: &GridState,
        call: &RuntimeCall<'_>,
        stream: u64,
    ) -> Result<StreamKey, u32> {
        match self.stream(state, call, stream)? {
            Target::Stream(stream) => Ok(stream),
            Target::Fire | Target::Tail => Err(INVALID_VALUE),
        }
    }

    fn record(&self, call: &RuntimeCall<'_>, event: u64, stream: u64) -> Status {
        let mut state = self.state.lock();
        let stream = self.event_stream(&state, call, stream)?;
        let recorded = state.streams.record(event, stream);
        recorded.then_some(()).ok_or(INVALID_HANDLE)
    }

    fn wait(&self, call: &RuntimeCall<'_>, stream: u64, event: u64) -> Status {
        let mut state = self.state.lock();
        let stream = self.event_stream(&state, call, stream)?;
        let waits = state.streams.wait(stream, event);
        waits.then_some(()).ok_or(INVALID_HANDLE)
    }

    fn copy(&self, call: &RuntimeCall<'_>, copy: Result<Copy, u32>, stream: u64) -> Status {
        let child = Child::new(Work::Copy(copy?), self.pending()?);
        self.submit(call, child, stream)
    }

    fn fill(&self, call: &RuntimeCall<'_>, fill: Result<Fill, u32>, stream: u64) -> Status {
        let child = Child::new(Work::Fill(fill?), self.pending()?);
        self.submit(call, child, stream)
    }
}

/// Records why a call is refused, for [`Grid::failed_call`].
pub(super) fn refuse(error: u32, why: impl FnOnce() -> String) -> u32 {
    because(Code(error), why).0
}
