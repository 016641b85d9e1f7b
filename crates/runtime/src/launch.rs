//! Kernel launches.

use std::ffi::c_void;

use cupyrite_sys::driver::{CUdevice_attribute, CUfunction, CUlaunchConfig};
use cupyrite_sys::runtime::{cudaLaunchConfig_t, dim3};

use crate::checked::get;
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::registration;
use crate::stream::handle;

/// Converts a launch configuration to the driver's.
pub(crate) fn config<const PER_THREAD: bool>(of: cudaLaunchConfig_t) -> Res<CUlaunchConfig> {
    Ok(CUlaunchConfig {
        gridDimX: of.gridDim.x,
        gridDimY: of.gridDim.y,
        gridDimZ: of.gridDim.z,
        blockDimX: of.blockDim.x,
        blockDimY: of.blockDim.y,
        blockDimZ: of.blockDim.z,
        sharedMemBytes: u32::try_from(of.dynamicSmemBytes).map_err(|_| Error::INVALID_VALUE)?,
        hStream: handle::<PER_THREAD>(of.stream as u64),
        // Attributes have the driver's values and layout.
        attrs: of.attrs.cast(),
        numAttrs: of.numAttrs,
    })
}

/// Whether the current device supports these grid and block dimensions.
fn fits(grid: dim3, block: dim3) -> Res<bool> {
    let device = context::current_device()?;
    let limit = |attribute: CUdevice_attribute| -> Res<u64> {
        let mut value = 0;
        cu!(cuDeviceGetAttribute(&mut value, attribute, device))?;
        Ok(value as u64)
    };
    use CUdevice_attribute as A;
    let limits = [
        (grid.x, A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
        (grid.y, A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
        (grid.z, A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        (block.x, A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
        (block.y, A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
        (block.z, A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
    ];
    for (size, attribute) in limits {
        if size == 0 || u64::from(size) > limit(attribute)? {
            return Ok(false);
        }
    }
    let threads = [block.x, block.y, block.z]
        .map(u64::from)
        .iter()
        .product::<u64>();
    Ok(threads <= limit(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?)
}

/// Replaces the driver's error with the runtime's code for an invalid configuration, if it applies.
fn explain(outcome: Res, grid: dim3, block: dim3) -> Res {
    match outcome {
        Err(Error::INVALID_VALUE) if !fits(grid, block)? => Err(Error::INVALID_CONFIGURATION),
        outcome => outcome,
    }
}

fn launch(func: u64, config: &CUlaunchConfig, arguments: u64) -> Res {
    let grid = dim3 {
        x: config.gridDimX,
        y: config.gridDimY,
        z: config.gridDimZ,
    };
    let block = dim3 {
        x: config.blockDimX,
        y: config.blockDimY,
        z: config.blockDimZ,
    };
    context::current()?;
    if func == 0 {
        return Err(Error::INVALID_DEVICE_FUNCTION);
    }
    // The driver accepts a kernel in place of a function.
    let func = registration::resolve(func)?;
    let (f, arguments) = (func as CUfunction, arguments as *mut *mut c_void);
    let outcome = cu!(cuLaunchKernelEx(config, f, arguments, std::ptr::null_mut()));
    explain(outcome, grid, block)
}

/// A launch without attributes.
pub(crate) fn plain<const PER_THREAD: bool>(
    func: u64,
    grid: dim3,
    block: dim3,
    arguments: u64,
    shared: usize,
    stream: u64,
) -> Res {
    let wanted = cudaLaunchConfig_t {
        gridDim: grid,
        blockDim: block,
        dynamicSmemBytes: shared,
        stream: stream as *mut _,
        ..cudaLaunchConfig_t::default()
    };
    launch(func, &config::<PER_THREAD>(wanted)?, arguments)
}

runtime_entry_points! {
    fn launch_kernel "cudaLaunchKernel" | "cudaLaunchKernel_ptsz"
        (func: u64, grid: dim3, block: dim3, arguments: u64, shared: usize, stream: u64) {
        plain::<PER_THREAD>(func, grid, block, arguments, shared, stream)
    }
    fn launch_kernel_ex "cudaLaunchKernelExC" | "cudaLaunchKernelExC_ptsz" (of: u64, func: u64, arguments: u64) {
        let config = config::<PER_THREAD>(get::<cudaLaunchConfig_t>(of)?)?;
        launch(func, &config, arguments)
    }
    fn launch_cooperative "cudaLaunchCooperativeKernel" | "cudaLaunchCooperativeKernel_ptsz"
        (func: u64, grid: dim3, block: dim3, arguments: u64, shared: usize, stream: u64) {
        context::current()?;
        if func == 0 {
            return Err(Error::INVALID_DEVICE_FUNCTION);
        }
        let func = registration::resolve(func)?;
        let shared = u32::try_from(shared).map_err(|_| Error::INVALID_VALUE)?;
        let outcome = cu!(cuLaunchCooperativeKernel(
            func as CUfunction, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
            handle::<PER_THREAD>(stream), arguments as *mut *mut c_void
        ));
        explain(outcome, grid, block)
    }
}
