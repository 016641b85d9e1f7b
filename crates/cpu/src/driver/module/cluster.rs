//! The clusters of a launch: their dimensions, from the launch or the kernel, and their limits (CUDA C++ Programming Guide,
//! "Thread Block Clusters").

use cupyrite_sys::driver::CUfunction_attribute as Attribute;

use crate::driver::device::Device;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::module::function::{Function, REQUIRED_CLUSTER};
use crate::driver::module::launch::shape;

/// Blocks of a cluster that every device with clusters supports.
const PORTABLE: u32 = 8;
/// Blocks of a cluster of a kernel with `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
const NON_PORTABLE: u32 = 16;

impl Device {
    /// Whether kernels can run in clusters of several blocks.
    pub(crate) fn has_clusters(&self) -> bool {
        self.capability.0 >= 9
    }
}

/// Blocks of a cluster; `u64::MAX` if there are more.
fn blocks_of(dims: [u32; 3]) -> u64 {
    dims.iter()
        .fold(1, |n: u64, &d| n.saturating_mul(u64::from(d)))
}

/// The cluster dimensions of a launch that names those in `requested`, which must agree with those that the function requires,
/// by its code or its attributes.
fn chosen(f: &Function, requested: Option<[u32; 3]>) -> Res<Option<[u32; 3]>> {
    let name = &f.kernel.name;
    let required = REQUIRED_CLUSTER.map(|axis| u32::try_from(f.setting(axis)).unwrap_or(0));
    let Some(dims) = requested else {
        return match required {
            [0, 0, 0] => Ok(None),
            _ if required.contains(&0) => refuse(Code::INVALID_CLUSTER_SIZE, || {
                format!(
                    "launch of '{name}': its attributes require clusters of {} blocks; \
                     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, _HEIGHT and _DEPTH must all be zero or all be positive",
                    shape(required)
                )
            }),
            _ => Ok(Some(required)),
        };
    };
    // As an H100, this compares with the dimensions that are set.
    let differs = |a: usize| required[a] != 0 && required[a] != dims[a];
    if (0..3).any(differs) {
        return refuse(Code::INVALID_CLUSTER_SIZE, || {
            format!(
                "launch of '{name}': the cluster has {} blocks; the kernel requires clusters of {} blocks",
                shape(dims),
                shape(required)
            )
        });
    }
    Ok(Some(dims))
}

/// The most blocks that a cluster of the function may have.
fn most_blocks(f: &Function) -> u32 {
    let most = most_of_device(f);
    f.kernel.cluster.max_rank.map_or(most, |n| n.min(most))
}

/// The same, whatever the code of the kernel allows.
pub(crate) fn most_of_device(f: &Function) -> u32 {
    match f.setting(Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
        0 => PORTABLE,
        _ => NON_PORTABLE,
    }
}

/// Checks the dimensions of a cluster.
///
/// # Errors
/// `INVALID_CLUSTER_SIZE` if the function or its device does not allow them.
fn check(f: &Function, dims: [u32; 3]) -> Res {
    let blocks = blocks_of(dims);
    let name = &f.kernel.name;
    if !f.device()?.has_clusters() {
        if blocks == 1 {
            return Ok(());
        }
        return refuse(Code::INVALID_CLUSTER_SIZE, || {
            format!(
                "launch of '{name}': the cluster has {} blocks; this device supports only clusters of one block (larger clusters \
                 require compute capability 9.0)",
                shape(dims)
            )
        });
    }
    let most = most_blocks(f);
    if blocks == 0 || blocks > u64::from(most) {
        return refuse(Code::INVALID_CLUSTER_SIZE, || {
            let whose = match f.kernel.cluster.max_rank {
                Some(n) if n == most => "of the kernel (.maxclusterrank)",
                _ if most < NON_PORTABLE => {
                    "without CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED"
                }
                _ => "of the device",
            };
            format!(
                "launch of '{name}': the cluster has {} = {blocks} blocks; the limit {whose} is {most}",
                shape(dims)
            )
        });
    }
    Ok(())
}

/// The dimensions of the clusters of a launch that names those in `requested`; `None` for a launch without clusters.
///
/// # Errors
/// `INVALID_CLUSTER_SIZE` if the function, its device or the grid does not allow them.
pub(crate) fn resolve(
    f: &Function,
    grid: [u32; 3],
    requested: Option<[u32; 3]>,
) -> Res<Option<[u32; 3]>> {
    let Some(dims) = chosen(f, requested)? else {
        return Ok(None);
    };
    check(f, dims)?;
    if (0..3).any(|a| !grid[a].is_multiple_of(dims[a])) {
        return refuse(Code::INVALID_CLUSTER_SIZE, || {
            format!(
                "launch of '{}': the grid is {}; its dimensions must be multiples of those of the cluster, {}",
                f.kernel.name,
                shape(grid),
                shape(dims)
            )
        });
    }
    Ok(Some(dims))
}

/// Checks that a kernel which was compiled for launches with clusters is launched with some. As on an H100, kernel nodes of
/// graphs need none.
///
/// # Errors
/// `INVALID_CLUSTER_SIZE` if `cluster` is `None` for such a kernel.
pub(crate) fn check_explicit(f: &Function, cluster: Option<[u32; 3]>) -> Res {
    if cluster.is_some() || !f.kernel.cluster.explicit {
        return Ok(());
    }
    refuse(Code::INVALID_CLUSTER_SIZE, || {
        format!(
            "launch of '{}': the kernel was compiled for launches with clusters (.explicitcluster); set \
             CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION",
            f.kernel.name
        )
    })
}
