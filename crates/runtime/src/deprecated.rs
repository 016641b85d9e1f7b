//! Functions of CUDA 12 that CUDA 13 removed (CUDA runtime API, "Thread Management [DEPRECATED]" and "Execution Control
//! [DEPRECATED]").

use cupyrite_sys::driver::{CUDA_LAUNCH_PARAMS, CUfunction};
use cupyrite_sys::runtime::cudaLaunchParams;

use crate::checked::{get_array, non_null};
use crate::context;
use crate::device;
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
    fn thread_exit "cudaThreadExit" () {
        context::reset(context::current_device()?)
    }
    fn thread_synchronize "cudaThreadSynchronize" () {
        context::current()?;
        cu!(cuCtxSynchronize())
    }
    fn thread_get_limit "cudaThreadGetLimit" (out: u64, which: u32) {
        device::put_limit(out, which)
    }
    fn thread_set_limit "cudaThreadSetLimit" (which: u32, value: usize) {
        device::set_limit_to(which, value)
    }
    fn thread_get_cache_config "cudaThreadGetCacheConfig" (out: u64) {
        device::put_cache_config(out)
    }
    fn thread_set_cache_config "cudaThreadSetCacheConfig" (config: u32) {
        device::set_cache_config_to(config)
    }
    // Devices have had numbers of 64 bits since compute capability 1.3: the number stays as it is.
    fn set_double_for_device "cudaSetDoubleForDevice" (number: u64) {
        non_null(number)
    }
    fn set_double_for_host "cudaSetDoubleForHost" (number: u64) {
        non_null(number)
    }
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
