//! Hooks: functions that need code of their own beside the descriptor tables.
//!
//! [`hook`] is the table of all hooks. A new one needs a variant of [`Special`], a row of [`hook`], and the choice of the
//! variant in the generator (docs/codegen.md, "The overlay"). `cuCtxCreate` also binds its arguments in its own way
//! (`call::general::bind`). [`tagged_values`] is shared with the general route.

pub mod cudla;
pub mod cufile;
pub mod driver;
pub mod driver_v2;
pub mod nvml;
pub mod nvrtc;
pub mod nvrtc_v2;
pub mod runtime;
pub mod tagged_values;

use crate::bindings::call::frame::Arguments;
use crate::bindings::descriptor::Special;
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::raising::{interruptible, sizing};
use crate::cpython;
use crate::cpython::{Obj, Owned, R};
use crate::types;

/// Makes a call with bound arguments, in place of [`crate::bindings::call::general::call`].
pub type Hook = fn(Arguments<'_>) -> R<Owned>;

/// The hook of functions of this kind.
#[inline]
pub fn hook(special: Special) -> Option<Hook> {
    let hook: Hook = match special {
        Special::None => return None,
        Special::Sizeof => sizeof,
        Special::CtxCreate => driver::ctx_create,
        Special::CoredumpGet => driver::coredump_get,
        Special::CoredumpSet => driver::coredump_set,
        Special::PointerGetAttributes => driver::pointer_get_attributes,
        Special::RangeGetAttribute => driver::range_get_attribute,
        Special::RangeGetAttributes => driver::range_get_attributes,
        Special::CaptureInfo => driver::capture_info,
        Special::BlockSizeFunction => driver::block_size_function,
        Special::LinkCreate => driver::link_create,
        Special::LinkDestroy => driver::link_destroy,
        Special::NvrtcGet => nvrtc::get_output,
        Special::NvrtcArchs => nvrtc::supported_archs,
        Special::ErrorText => nvrtc::error_text,
        Special::DeviceProperties => runtime::device_properties,
        Special::CreateChannelDesc => runtime::create_channel_desc,
        Special::MakeExtent => runtime::make_extent,
        Special::MakePitchedPtr => runtime::make_pitched_ptr,
        Special::MakePos => runtime::make_pos,
        Special::LocalRuntimeVersion => runtime::local_runtime_version,
        Special::Interruptible => interruptible::call,
        Special::CheckStatus(true) => nvml::check_status_and_return,
        Special::CheckStatus(false) => nvml::check_status,
        Special::CheckStatusSize => nvml::check_status_size,
        Special::ListInStruct => sizing::lists_in_struct,
        Special::FieldValues => nvml::field_values,
        Special::HandleByUuid => nvml::handle_by_uuid,
        Special::Instances => nvml::instances,
        Special::ContextData => nvml::context_data,
        Special::ReadWritePrm => nvml::read_write_prm,
        Special::PrmCounters => nvml::prm_counters,
        Special::SetHostname => nvml::set_hostname,
        Special::PerformanceStates => nvml::performance_states,
        Special::AttestationReport => nvml::attestation_report,
        Special::SystemEventSetWait => nvml::system_event_set_wait,
        Special::OpStatusError => cufile::op_status_error,
        Special::CudlaCreateDevice => cudla::create_device,
        Special::CudlaModuleAttributes => cudla::module_attributes,
        Special::CudlaSubmitTask => cudla::submit_task,
        Special::CaptureArrays => driver_v2::capture_arrays,
        Special::HandlesOf => driver_v2::handles_of,
        Special::LinkBytes => driver_v2::link_bytes,
        Special::AtomicCapabilities => driver_v2::atomic_capabilities,
        Special::GlDevices => driver_v2::gl_devices,
        Special::SciSyncAttributes => driver_v2::sci_sync_attributes,
        Special::MemcpyBatch => driver_v2::memcpy_batch,
        Special::NvrtcCreate => nvrtc_v2::create,
        Special::NvrtcCompile => nvrtc_v2::compile,
        Special::NvrtcBytes => nvrtc_v2::bytes,
    };
    Some(hook)
}

/// The argument for parameter `index`, which has no default.
pub fn required<'a>(arguments: Arguments<'a>, index: usize) -> R<Obj<'a>> {
    arguments.get(index).ok_or_else(|| {
        let message = format!(
            "{}() missing required argument: '{}'",
            arguments.f.name, arguments.f.params[index].name
        );
        errors::raise(ExceptionKind::Type, &message)
    })
}

/// `sizeof(objType)` of the tuple libraries.
fn sizeof(arguments: Arguments<'_>) -> R<Owned> {
    cpython::from_u64(types::sizeof(required(arguments, 0)?)?)
}
