//! Attributes of kernel nodes.

use cupyrite_sys::driver::{
    CUDA_KERNEL_NODE_PARAMS, CUgraphNode, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue,
};

use crate::error::{Result, driver};
use crate::module::LaunchConfig;

/// Sets the attributes of a launch configuration; also those that it lacks if the node may have them (`reset`).
///
/// # Safety
///
/// `node` is a live kernel node.
pub(crate) unsafe fn set_attributes(
    node: CUgraphNode,
    config: &LaunchConfig,
    reset: bool,
) -> Result<()> {
    if !reset && config.cluster.is_none() && !config.cooperative {
        return Ok(());
    }
    if reset && !config.cooperative {
        // SAFETY: the node is live. A driver that does not know the attribute has nothing to reset.
        unsafe {
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            if attribute_of(node, id).is_ok_and(|value| value.cooperative != 0) {
                let value = CUlaunchAttributeValue { cooperative: 0 };
                driver!(cuGraphKernelNodeSetAttribute(node, id, &raw const value))?;
            }
        }
    }
    config.with_raw(std::ptr::null_mut(), |raw| {
        for index in 0..raw.numAttrs as usize {
            // SAFETY: the configuration has `numAttrs` attributes; the node is live.
            unsafe {
                let attribute: &CUlaunchAttribute = &*raw.attrs.add(index);
                driver!(cuGraphKernelNodeSetAttribute(
                    node,
                    attribute.id,
                    &raw const attribute.value
                ))?;
            }
        }
        Ok(())
    })
}

/// Replaces the parameters of a kernel node by `raw`, and its attributes by those of `config`.
///
/// # Safety
///
/// `node` is a live kernel node, and the arguments in `raw` are valid.
pub(crate) unsafe fn replace(
    node: CUgraphNode,
    raw: &CUDA_KERNEL_NODE_PARAMS,
    config: &LaunchConfig,
) -> Result<()> {
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    // SAFETY: the node is live, the attribute is that of a cluster, and the caller upholds the rest.
    unsafe {
        // The former clusters need not divide the new grid. A driver that does not know the attribute has none to remove.
        let former = attribute_of(node, id).ok();
        let former = former.filter(|value| value.clusterDim.x != 0);
        if former.is_some() {
            let none = CUlaunchAttributeValue::default();
            driver!(cuGraphKernelNodeSetAttribute(node, id, &raw const none))?;
        }
        let replaced = driver!(cuGraphKernelNodeSetParams(node, std::ptr::from_ref(raw)));
        if let (Err(_), Some(former)) = (&replaced, former) {
            driver!(cuGraphKernelNodeSetAttribute(node, id, &raw const former))?;
        }
        replaced?;
        set_attributes(node, config, true)
    }
}

/// # Safety
///
/// `node` is a live kernel node.
pub(crate) unsafe fn attribute_of(
    node: CUgraphNode,
    id: CUlaunchAttributeID,
) -> Result<CUlaunchAttributeValue> {
    let mut value = CUlaunchAttributeValue::default();
    // SAFETY: the caller's contract; `value` is valid for writes.
    unsafe { driver!(cuGraphKernelNodeGetAttribute(node, id, &mut value))? };
    Ok(value)
}
