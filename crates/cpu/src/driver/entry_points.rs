//! The table of all entry points, by exported name.
//!
//! It depends on all folders of the driver, so that a folder's types do not depend on its entry points.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use super::entry::errors::Code;
use super::entry::logs::refuse;
use super::entry::{self, EntryPoint, proc_address};

/// The tables of the files that define entry points.
static FILES: &[&[EntryPoint]] = &[
    super::entry::errors::ENTRIES,
    super::entry::init::ENTRIES,
    super::entry::logs::ENTRIES,
    super::entry::proc_address::ENTRIES,
    super::checkpoint::ENTRIES,
    super::device::ENTRIES,
    super::device::peers::ENTRIES,
    super::context::entries::ENTRIES,
    super::context::green::entries::ENTRIES,
    super::context::green::resource::ENTRIES,
    super::memory::allocation::ENTRIES,
    super::memory::copy::ENTRIES,
    super::memory::copy_batch::ENTRIES,
    super::memory::copy_nd::ENTRIES,
    super::memory::ipc::ENTRIES,
    super::memory::managed::ENTRIES,
    super::memory::memset::ENTRIES,
    super::memory::pointer::ENTRIES,
    super::memory::pool::entries::ENTRIES,
    super::memory::virtual_memory::ENTRIES,
    super::array::ENTRIES,
    super::array::texture::ENTRIES,
    super::tensor_map::ENTRIES,
    super::graphics::ENTRIES,
    super::stream::entries::ENTRIES,
    super::stream::event_entries::ENTRIES,
    super::stream::stream_memory::ENTRIES,
    super::module::ENTRIES,
    super::module::function::ENTRIES,
    super::module::launch_kernel::ENTRIES,
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
    super::graph::update::ENTRIES,
];

/// Serves every unimplemented entry point. It reads no argument, so one function serves all signatures.
extern "C" fn not_supported() -> u32 {
    entry::guard(
        "an entry point that the CPU device does not implement",
        || Err(Code::NOT_SUPPORTED),
    )
}

/// `cuGetExportTable`. NVIDIA's own libraries ask for tables of undocumented functions by their identifiers.
extern "C" fn get_export_table() -> u32 {
    entry::guard_bare("cuGetExportTable", || {
        refuse(Code::NOT_SUPPORTED, || {
            "the CPU device has no private function tables; NVIDIA's CUDA runtime (libcudart) and programs that contain it, \
             such as CuPy, Warp, RMM and cuda.compute, need a GPU (cupyrite explain clients). cuda.bindings.runtime works without it"
                .to_owned()
        })
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
        return get_export_table as extern "C" fn() -> u32 as *const c_void;
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
