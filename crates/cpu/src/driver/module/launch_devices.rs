//! `cuLaunchCooperativeKernelMultiDevice`: one cooperative launch on each of several devices (CUDA driver API, "Execution
//! Control"). Blocks of different devices cannot wait for each other: CUDA 13 has no functions for that.

use std::sync::Arc;

use cupyrite_sys::driver::{self as sys, CUDA_LAUNCH_PARAMS};

use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::module::launch::{Given, Launch, LaunchConfig};
use crate::driver::stream::capture_state;
use crate::driver::stream::resolve::{self, PER_THREAD_HANDLE};
use crate::driver::stream::{OpPlacement, Stream};

fn config(of: &CUDA_LAUNCH_PARAMS) -> LaunchConfig {
    LaunchConfig {
        grid: [of.gridDimX, of.gridDimY, of.gridDimZ],
        block: [of.blockDimX, of.blockDimY, of.blockDimZ],
        dynamic_shared: of.sharedMemBytes,
        cooperative: true,
        cluster: None,
    }
}

/// The stream of a launch, which is not a default stream.
fn stream(of: &CUDA_LAUNCH_PARAMS) -> Res<Arc<Stream>> {
    let handle = of.hStream.addr() as u64;
    if handle <= PER_THREAD_HANDLE {
        return refuse(Code::INVALID_HANDLE, || {
            "hStream is a default stream; each launch needs a stream of its own".to_owned()
        });
    }
    resolve::resolve(handle, false)
}

fn launch_all(list: u64, count: u32, flags: u32) -> Res {
    const NO_PRE_SYNC: u32 = sys::CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC;
    const NO_POST_SYNC: u32 = sys::CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
    non_null(list)?;
    let devices = device::all()?.len();
    if count == 0 || count as usize > devices {
        return refuse(Code::INVALID_VALUE, || {
            format!("numDevices is {count}; the process has {devices}")
        });
    }
    if flags & !(NO_PRE_SYNC | NO_POST_SYNC) != 0 {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "the flags are {flags:#x}; valid flags are CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_*"
            )
        });
    }
    capture_state::reject_if_capturing()?;
    let given = get_array::<CUDA_LAUNCH_PARAMS>(list, count as usize)?;
    let mut launches = Vec::new();
    for of in &given {
        if of.function.is_null() {
            return refuse(Code::INVALID_HANDLE, || "a function is null".to_owned());
        }
        let stream = stream(of)?;
        let launch = Launch::prepare(
            of.function.addr() as u64,
            &stream.context,
            config(of),
            Given::Caller(of.kernelParams.addr() as u64, 0),
        )?;
        launches.push((stream, launch));
    }
    for (n, (stream, launch)) in launches.iter().enumerate() {
        if launch.config != launches[0].1.config
            || launch.function.kernel.name != launches[0].1.function.kernel.name
        {
            return refuse(Code::INVALID_VALUE, || {
                "all devices must launch the same kernel with the same dimensions and shared memory"
                    .to_owned()
            });
        }
        let device = stream.context.device;
        if launches[..n]
            .iter()
            .any(|(s, _)| s.context.device == device)
        {
            return refuse(Code::INVALID_VALUE, || {
                format!("device {device} has two launches; each device has one")
            });
        }
    }
    let before: Vec<_> = if flags & NO_PRE_SYNC == 0 {
        launches.iter().filter_map(|(s, _)| s.tail()).collect()
    } else {
        Vec::new()
    };
    let mut streams = Vec::new();
    let mut running = Vec::new();
    for (stream, launch) in launches {
        running.push(stream.enqueue(&before, OpPlacement::Worker, move |_| launch.run()));
        streams.push(stream);
    }
    if flags & NO_POST_SYNC == 0 && streams.len() > 1 {
        for stream in &streams {
            stream.mark(&running);
        }
    }
    Ok(())
}

driver_entry_points! {
    fn launch_devices "cuLaunchCooperativeKernelMultiDevice" (list: u64, count: u32, flags: u32) {
        launch_all(list, count, flags)
    }
}
