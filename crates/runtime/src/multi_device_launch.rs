//! Cooperative launches on several devices (CUDA 12 runtime API, "Execution Control [DEPRECATED]"; CUDA 13 removed it).

use cupyrite_sys::driver::{CUDA_LAUNCH_PARAMS, CUfunction};
use cupyrite_sys::runtime::cudaLaunchParams;

use crate::checked::{get_array, non_null};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::registration;
use crate::stream::handle;

/// The most launches of one call: as many as devices are possible.
const MOST_LAUNCHES: u32 = 64;

/// Converts one launch of several devices to the driver's.
fn converted<const PER_THREAD: bool>(given: &cudaLaunchParams) -> Res<CUDA_LAUNCH_PARAMS> {
    let function = given.func as u64;
    if function == 0 {
        return Err(Error::INVALID_DEVICE_FUNCTION);
    }
    Ok(CUDA_LAUNCH_PARAMS {
        function: registration::resolve(function)? as CUfunction,
        gridDimX: given.gridDim.x,
        gridDimY: given.gridDim.y,
        gridDimZ: given.gridDim.z,
        blockDimX: given.blockDim.x,
        blockDimY: given.blockDim.y,
        blockDimZ: given.blockDim.z,
        sharedMemBytes: u32::try_from(given.sharedMem).map_err(|_| Error::INVALID_VALUE)?,
        hStream: handle::<PER_THREAD>(given.stream as u64),
        kernelParams: given.args,
    })
}

runtime_entry_points! {
    fn launch_multi_device "cudaLaunchCooperativeKernelMultiDevice" (list: u64, count: u32, flags: u32) {
        context::current()?;
        non_null(list)?;
        if count == 0 || count > MOST_LAUNCHES {
            return Err(Error::INVALID_VALUE);
        }
        let given = get_array::<cudaLaunchParams>(list, count as usize)?;
        let mut launches = given.iter().map(converted::<PER_THREAD>).collect::<Res<Vec<_>>>()?;
        cu!(cuLaunchCooperativeKernelMultiDevice(launches.as_mut_ptr(), count, flags))
    }
}
