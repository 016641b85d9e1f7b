//! The table of all entry points, by exported name.
//!
//! It depends on all folders of the driver, so that a folder's types do not depend on its entry points.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::io::Write;
use std::sync::{Once, OnceLock};

use super::entry::caller_memory::get;
use super::entry::errors::Code;
use super::entry::logs::{self, refuse};
use super::entry::{self, EntryPoint, proc_address};

/// The tables of the files that define entry points.
static FILES: &[&[EntryPoint]] = &[
    super::entry::errors::ENTRIES,
    super::entry::init::ENTRIES,
    super::entry::logs::ENTRIES,
    super::entry::proc_address::ENTRIES,
    super::checkpoint::ENTRIES,
    super::device::ENTRIES,
    super::device::notifications::ENTRIES,
    super::device::peers::ENTRIES,
    super::context::entries::ENTRIES,
    super::coredump::ENTRIES,
    super::coredump::PROCESS_ENTRIES,
    super::context::green::entries::ENTRIES,
    super::context::green::resource::ENTRIES,
    super::memory::allocation::ENTRIES,
    super::memory::copy::ENTRIES,
    super::memory::copy_batch::ENTRIES,
    super::memory::copy_nd::ENTRIES,
    super::memory::decompress::ENTRIES,
    super::memory::ipc::ENTRIES,
    super::memory::managed::ENTRIES,
    super::memory::memset::ENTRIES,
    super::memory::multicast::ENTRIES,
    super::memory::pointer::ENTRIES,
    super::memory::range_handle::ENTRIES,
    super::memory::residency::ENTRIES,
    super::memory::pool::entries::ENTRIES,
    super::memory::virtual_memory::ENTRIES,
    super::array::ENTRIES,
    super::array::reference_entries::ENTRIES,
    super::array::sparse::ENTRIES,
    super::array::texture::ENTRIES,
    super::tensor_map::ENTRIES,
    super::graphics::ENTRIES,
    super::external::memory::ENTRIES,
    super::external::semaphore_entries::ENTRIES,
    super::stream::entries::ENTRIES,
    super::stream::event_entries::ENTRIES,
    super::stream::stream_memory::ENTRIES,
    super::module::ENTRIES,
    super::module::function::ENTRIES,
    super::module::launch_devices::ENTRIES,
    super::module::launch_kernel::ENTRIES,
    super::module::legacy_launch::ENTRIES,
    super::module::library::ENTRIES,
    super::module::link::ENTRIES,
    super::module::occupancy::ENTRIES,
    super::graph::build::ENTRIES,
    super::graph::capture::ENTRIES,
    super::graph::conditional::ENTRIES,
    super::graph::dot::ENTRIES,
    super::graph::edges::ENTRIES,
    super::graph::exec::ENTRIES,
    super::graph::memory::ENTRIES,
    super::graph::objects::ENTRIES,
    super::graph::params::ENTRIES,
    super::graph::semaphores::ENTRIES,
    super::graph::update::ENTRIES,
];

/// Serves every unimplemented entry point. It reads no argument, so one function serves all signatures.
extern "C" fn not_supported() -> u32 {
    entry::guard(
        "an entry point that the CPU device does not implement",
        || Err(Code::NOT_SUPPORTED),
    )
}

/// Identifier of the table that `libcudart` (tried: 11.8 to 13.5) requires: without it, each of its calls fails. Shared
/// and static copies ask for it at their first call.
///
/// NVRTC and nvJitLink (tried: 12.9 and 13.5) ask for `da9151d3-3ae6-cc41-a5c0-4f26d533e328` and continue without it.
const LIBCUDART_TABLE: [u8; 16] = 0x6bd5_fb6c_5bf4_e74a_8987_d939_12fd_9df9_u128.to_be_bytes();

/// `cuGetExportTable`. NVIDIA's own libraries ask for tables of undocumented functions by their identifiers.
///
/// Programs that call `libcudart` see a status without its reason. Therefore the reason also goes to standard error, once
/// in each process.
extern "C" fn get_export_table(_table: u64, id: u64) -> u32 {
    const NEEDS_GPU: &str = "NVIDIA's CUDA runtime (libcudart) cannot run on the CPU device: it needs private function tables of \
                             NVIDIA's driver. A program of nvcc must be rebuilt by CUDA 13 with -cudart shared and started by cupyrite \
                             run, which has a libcudart of its own. Packages that contain NVIDIA's, such as CuPy, PyTorch, JAX, Warp, \
                             RMM and cuda.compute, need a GPU: run them with CUPYRITE_DEVICE=gpu on a machine with NVIDIA's driver (cupyrite explain \
                             clients). cuda.core, cuda.bindings with its runtime module, and numba-cuda run on the CPU device";
    static SHOWN: Once = Once::new();
    entry::guard_bare("cuGetExportTable", || {
        if get::<[u8; 16]>(id) != Ok(LIBCUDART_TABLE) {
            return refuse(Code::NOT_SUPPORTED, || {
                "the CPU device has no private function tables".to_owned()
            });
        }
        SHOWN.call_once(|| {
            if !logs::reach_standard_error() {
                // Unlike `eprintln`, does not panic where standard error is closed.
                let _ = writeln!(std::io::stderr(), "cupyrite: {NEEDS_GPU}");
            }
        });
        refuse(Code::NOT_SUPPORTED, || NEEDS_GPU.to_owned())
    })
}

fn table() -> &'static HashMap<&'static str, &'static EntryPoint> {
    static TABLE: OnceLock<HashMap<&'static str, &'static EntryPoint>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let entries = FILES.iter().copied().flatten();
        entries.map(|e| (e.name, e)).collect()
    })
}

/// The address of the driver entry point of that exported name (`cuMemAlloc_v2`, `cuMemcpyHtoD_v2_ptds`); null if CUDA
/// has no such entry point. Unimplemented entry points return `CUDA_ERROR_NOT_SUPPORTED`.
pub fn get_proc(name: &CStr) -> *const c_void {
    let Ok(name) = name.to_str() else {
        return std::ptr::null();
    };
    if let Some(entry) = table().get(name) {
        return entry.address;
    }
    if name == "cuGetExportTable" {
        return get_export_table as extern "C" fn(u64, u64) -> u32 as *const c_void;
    }
    if proc_address::is_known(name) {
        return not_supported as extern "C" fn() -> u32 as *const c_void;
    }
    std::ptr::null()
}

/// Names of the implemented entry points, in no particular order.
pub fn implemented() -> impl Iterator<Item = &'static str> {
    table().keys().copied()
}
