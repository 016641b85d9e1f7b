//! Surface objects: the driver's, with the runtime's descriptors.

use cupyrite_sys::driver::CUDA_RESOURCE_DESC;
use cupyrite_sys::runtime::cudaResourceDesc;

use crate::checked::{get, non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Res;
use crate::texture::{resource_from_driver, resource_to_driver};

/// Creates a surface object.
pub(crate) fn create(out: u64, resource: &cudaResourceDesc) -> Res {
    let resource = resource_to_driver(resource)?;
    let mut object = 0;
    cu!(cuSurfObjectCreate(&mut object, &resource))?;
    put(out, object).inspect_err(|_| {
        let _ = cu!(cuSurfObjectDestroy(object));
    })
}

/// The resource descriptor of a surface object.
pub(crate) fn resource_of(object: u64) -> Res<cudaResourceDesc> {
    context::current()?;
    let mut resource = CUDA_RESOURCE_DESC::default();
    cu!(cuSurfObjectGetResourceDesc(&mut resource, object))?;
    resource_from_driver(&resource)
}

runtime_entry_points! {
    fn surface_create "cudaCreateSurfaceObject" (out: u64, resource: u64) {
        non_null(out)?;
        non_null(resource)?;
        context::current()?;
        create(out, &get(resource)?)
    }
    fn surface_destroy "cudaDestroySurfaceObject" (object: u64) {
        context::current()?;
        cu!(cuSurfObjectDestroy(object))
    }
    fn surface_resource "cudaGetSurfaceObjectResourceDesc" (out: u64, object: u64) {
        non_null(out)?;
        put(out, resource_of(object)?)
    }
}
