//! The launch functions before CUDA 4, which take block shape and parameters from the function instead of the call (CUDA driver
//! API, "Execution Control [DEPRECATED]").

use std::sync::Arc;

use crate::driver::array::references::TEXTURE_REFERENCES;
use crate::driver::device::attributes::{MAX_BLOCK, MAX_THREADS_PER_BLOCK};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::module::function::{FUNCTIONS, Function};
use crate::driver::module::launch::{Given, LaunchConfig};
use crate::driver::module::launch_kernel::launch;
use crate::driver::stream::capture_state;

/// Size of the buffer of parameters: the most that a kernel can have.
const CAPACITY: usize = 32764;

/// What the launch functions before CUDA 4 have set for a function.
pub(crate) struct LaunchSettings {
    block: [u32; 3],
    shared: u32,
    /// Bytes of parameters that a launch passes.
    size: usize,
    /// The parameters, allocated by the first call that sets one.
    parameters: Vec<u8>,
}

impl LaunchSettings {
    pub(crate) fn new() -> LaunchSettings {
        LaunchSettings {
            block: [1; 3],
            shared: 0,
            size: 0,
            parameters: Vec::new(),
        }
    }
}

/// The function of a handle. As in NVIDIA's driver, kernels of libraries do not stand for functions here.
fn function(handle: u64) -> Res<Arc<Function>> {
    let function = FUNCTIONS.get(handle)?;
    function.context.check()?;
    Ok(function)
}

/// Writes a parameter.
fn set_parameter(handle: u64, offset: i32, bytes: &[u8]) -> Res {
    let f = function(handle)?;
    let range = usize::try_from(offset)
        .ok()
        .and_then(|from| Some(from..from.checked_add(bytes.len())?))
        .filter(|range| range.end <= CAPACITY);
    let Some(range) = range else {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "{} bytes at offset {offset}: parameters have at most {CAPACITY} bytes",
                bytes.len()
            )
        });
    };
    let mut settings = f.launch_settings.lock();
    if settings.parameters.len() < range.end {
        settings.parameters.resize(range.end, 0);
    }
    settings.parameters[range].copy_from_slice(bytes);
    Ok(())
}

fn positive(what: &str, values: &[i32]) -> Res<Vec<u32>> {
    let valid: Option<Vec<u32>> = values
        .iter()
        .map(|&v| u32::try_from(v).ok().filter(|&v| v > 0))
        .collect();
    match valid {
        Some(valid) => Ok(valid),
        None => refuse(Code::INVALID_VALUE, || {
            format!("the {what} is {values:?}; the dimensions must be positive")
        }),
    }
}

/// Launches a grid with what is set for the function.
fn launch_grid(handle: u64, width: i32, height: i32, stream: u64) -> Res {
    let f = function(handle)?;
    capture_state::reject_if_capturing()?;
    let grid = positive("grid", &[width, height])?;
    let (config, parameters) = from_settings(&f, [grid[0], grid[1], 1])?;
    launch(
        handle,
        config,
        stream,
        false,
        Given::Bytes(&parameters),
        &[],
    )
    .map(|_| ())
}

fn from_settings(f: &Function, grid: [u32; 3]) -> Res<(LaunchConfig, Vec<u8>)> {
    let settings = f.launch_settings.lock();
    let needed = f.kernel.param_bytes as usize;
    if settings.size > needed {
        return refuse(Code::LAUNCH_OUT_OF_RESOURCES, || {
            format!(
                "launch of '{}': cuParamSetSize has set {} bytes of parameters; the kernel has {needed}",
                f.kernel.name, settings.size
            )
        });
    }
    // As in NVIDIA's driver, parameters that are not passed are zero.
    let mut parameters = settings.parameters.clone();
    parameters.resize(settings.size, 0);
    parameters.resize(needed, 0);
    let config = LaunchConfig {
        grid,
        block: settings.block,
        dynamic_shared: settings.shared,
        cooperative: false,
        cluster: None,
    };
    Ok((config, parameters))
}

driver_entry_points! {
    fn func_set_block_shape "cuFuncSetBlockShape" (handle: u64, x: i32, y: i32, z: i32) {
        let f = function(handle)?;
        let block = positive("block", &[x, y, z])?;
        let threads = block.iter().map(|&n| u64::from(n)).product::<u64>();
        if threads > MAX_THREADS_PER_BLOCK.into() || block.iter().zip(MAX_BLOCK).any(|(&n, most)| n > most) {
            return refuse(Code::INVALID_VALUE, || {
                format!("the block is {block:?}; the device allows at most {MAX_BLOCK:?}, and {MAX_THREADS_PER_BLOCK} threads")
            });
        }
        f.launch_settings.lock().block = [block[0], block[1], block[2]];
        Ok(())
    }
    fn func_set_shared_size "cuFuncSetSharedSize" (handle: u64, bytes: u32) {
        let f = function(handle)?;
        let most = f.max_dynamic_shared();
        if i64::from(bytes) > i64::from(most) {
            return refuse(Code::INVALID_VALUE, || {
                format!("{bytes} bytes of dynamic shared memory; at most {most} are allowed")
            });
        }
        f.launch_settings.lock().shared = bytes;
        Ok(())
    }
    fn param_set_size "cuParamSetSize" (handle: u64, bytes: u32) {
        let f = function(handle)?;
        if bytes as usize > CAPACITY {
            return refuse(Code::INVALID_VALUE, || format!("{bytes} bytes of parameters; at most {CAPACITY} are possible"));
        }
        f.launch_settings.lock().size = bytes as usize;
        Ok(())
    }
    fn param_set_i "cuParamSeti" (handle: u64, offset: i32, value: u32) {
        set_parameter(handle, offset, &value.to_le_bytes())
    }
    fn param_set_f "cuParamSetf" (handle: u64, offset: i32, value: f32) {
        set_parameter(handle, offset, &value.to_le_bytes())
    }
    fn param_set_v "cuParamSetv" (handle: u64, offset: i32, from: u64, bytes: u32) {
        function(handle)?;
        non_null(from)?;
        if bytes as usize > CAPACITY {
            return refuse(Code::INVALID_VALUE, || format!("{bytes} bytes; parameters have at most {CAPACITY}"));
        }
        set_parameter(handle, offset, &get_array::<u8>(from, bytes as usize)?)
    }
    fn param_set_texref "cuParamSetTexRef" (handle: u64, _unit: i32, reference: u64) {
        let f = function(handle)?;
        TEXTURE_REFERENCES.get(reference)?;
        // The references of a module are available to all of its functions.
        if f.references.has_texture(reference) {
            Ok(())
        } else {
            refuse(Code::INVALID_VALUE, || "the texture reference belongs to another module".to_owned())
        }
    }
    fn launch_one "cuLaunch" (handle: u64) {
        launch_grid(handle, 1, 1, 0)
    }
    fn launch_grid_sync "cuLaunchGrid" (handle: u64, width: i32, height: i32) {
        launch_grid(handle, width, height, 0)
    }
    fn launch_grid_async "cuLaunchGridAsync" (handle: u64, width: i32, height: i32, stream: u64) {
        launch_grid(handle, width, height, stream)
    }
}
