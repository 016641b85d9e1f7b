//! Nodes with parameters: kernels, copies, fills, host functions, memory. Converts the runtime's structures to the
//! driver's and back.

use std::ffi::c_void;
use std::mem::offset_of;

use cupyrite_sys::driver::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v3, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS_v2,
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUfunction, CUgraph,
    CUgraphConditionalHandle, CUgraphEdgeData, CUgraphExec, CUgraphNode, CUgraphNodeParams,
    CUkernel, CUkernelNodeAttrValue, CUlaunchAttributeID, CUmemorytype,
};
use cupyrite_sys::runtime::{
    cudaExtent, cudaGraphNodeParams, cudaGraphNodeType as NodeType, cudaKernelFunctionType,
    cudaKernelNodeParams, cudaKernelNodeParamsV2, cudaMemcpy3DParms, cudaMemcpyKind,
    cudaMemcpyNodeParams, cudaPitchedPtr, cudaPos,
};

use crate::checked::{get, non_null, put, put_with};
use crate::copy::CopyDirection;
use crate::copy_nd::{element_bytes, translate};
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::graph::{added, array};
use crate::{context, execution_context, kernel, registration, symbol};

/// The current context, for nodes that name one.
fn current_context() -> Res<CUcontext> {
    context::current()?;
    let mut context: CUcontext = std::ptr::null_mut();
    cu!(cuCtxGetCurrent(&mut context))?;
    Ok(context)
}

/// Converts a kernel node's parameters to the driver's. A `cudaKernel_t` is kept, so that queries return it unchanged;
/// they return the host stub of a kernel that was found by one.
fn kernel_params(at: u64) -> Res<CUDA_KERNEL_NODE_PARAMS> {
    non_null(at)?;
    let p = get::<cudaKernelNodeParams>(at)?;
    context::current()?;
    let func = registration::resolve(p.func as u64)?;
    kernel::function(func)?;
    let mut function: CUfunction = std::ptr::null_mut();
    let is_kernel = cu!(cuKernelGetFunction(&mut function, func as CUkernel)).is_ok();
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: if is_kernel {
            std::ptr::null_mut()
        } else {
            func as CUfunction
        },
        gridDimX: p.gridDim.x,
        gridDimY: p.gridDim.y,
        gridDimZ: p.gridDim.z,
        blockDimX: p.blockDim.x,
        blockDimY: p.blockDim.y,
        blockDimZ: p.blockDim.z,
        sharedMemBytes: p.sharedMemBytes,
        kernelParams: p.kernelParams,
        extra: p.extra,
        kern: if is_kernel {
            func as CUkernel
        } else {
            std::ptr::null_mut()
        },
        ctx: std::ptr::null_mut(),
    })
}

/// Converts a kernel node's parameters from the driver's.
fn put_kernel(at: u64, p: &CUDA_KERNEL_NODE_PARAMS) -> Res {
    let mut told = cudaKernelNodeParams {
        func: if p.kern.is_null() {
            p.func.cast()
        } else {
            registration::stub_of_kernel(p.kern as u64) as *mut c_void
        },
        ..cudaKernelNodeParams::default()
    };
    (told.gridDim.x, told.gridDim.y, told.gridDim.z) = (p.gridDimX, p.gridDimY, p.gridDimZ);
    (told.blockDim.x, told.blockDim.y, told.blockDim.z) = (p.blockDimX, p.blockDimY, p.blockDimZ);
    told.sharedMemBytes = p.sharedMemBytes;
    (told.kernelParams, told.extra) = (p.kernelParams, p.extra);
    put(at, told)
}

/// Converts a copy node's parameters to the driver's. Empty copies are refused.
fn copy_params(at: u64) -> Res<CUDA_MEMCPY3D> {
    non_null(at)?;
    let p = get::<cudaMemcpy3DParms>(at)?;
    context::current()?;
    translate(&p)?.ok_or(Error::INVALID_VALUE)
}

/// The driver's parameters of a copy of `count` bytes.
fn linear_params(to: u64, from: u64, count: usize, kind: u32) -> Res<CUDA_MEMCPY3D> {
    let kind = CopyDirection::new(kind)?;
    context::current()?;
    let (source, target) = (kind.source(), kind.target());
    let host = CUmemorytype::CU_MEMORYTYPE_HOST;
    let mut copy = CUDA_MEMCPY3D {
        srcMemoryType: source,
        dstMemoryType: target,
        WidthInBytes: count,
        Height: 1,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    };
    if source == host {
        copy.srcHost = from as *const c_void;
    } else {
        copy.srcDevice = from;
    }
    if target == host {
        copy.dstHost = to as *mut c_void;
    } else {
        copy.dstDevice = to;
    }
    Ok(copy)
}

/// Converts a copy node's parameters from the driver's.
fn runtime_copy(c: &CUDA_MEMCPY3D) -> Res<cudaMemcpy3DParms> {
    use CUmemorytype as M;
    let is_array = |m: M| m == M::CU_MEMORYTYPE_ARRAY;
    let mut element = 1;
    if is_array(c.srcMemoryType) {
        element = element_bytes(c.srcArray)?;
    } else if is_array(c.dstMemoryType) {
        element = element_bytes(c.dstArray)?;
    }
    let side = |memory: M, host: u64, device: u64, pitch: usize, rows: usize| {
        let address = match memory {
            M::CU_MEMORYTYPE_HOST => host,
            M::CU_MEMORYTYPE_ARRAY => 0,
            _ => device,
        };
        cudaPitchedPtr {
            ptr: address as *mut c_void,
            pitch,
            xsize: pitch,
            ysize: rows,
        }
    };
    let position = |memory: M, x: usize, y: usize, z: usize| cudaPos {
        x: if is_array(memory) { x / element } else { x },
        y,
        z,
    };
    let on_host = |m: M| m == M::CU_MEMORYTYPE_HOST;
    let unified = |m: M| m == M::CU_MEMORYTYPE_UNIFIED;
    let kind = match (c.srcMemoryType, c.dstMemoryType) {
        (a, b) if unified(a) || unified(b) => cudaMemcpyKind::cudaMemcpyDefault,
        (a, b) if on_host(a) && on_host(b) => cudaMemcpyKind::cudaMemcpyHostToHost,
        (a, _) if on_host(a) => cudaMemcpyKind::cudaMemcpyHostToDevice,
        (_, b) if on_host(b) => cudaMemcpyKind::cudaMemcpyDeviceToHost,
        _ => cudaMemcpyKind::cudaMemcpyDeviceToDevice,
    };
    Ok(cudaMemcpy3DParms {
        srcArray: c.srcArray.cast(),
        srcPos: position(c.srcMemoryType, c.srcXInBytes, c.srcY, c.srcZ),
        srcPtr: side(
            c.srcMemoryType,
            c.srcHost as u64,
            c.srcDevice,
            c.srcPitch,
            c.srcHeight,
        ),
        dstArray: c.dstArray.cast(),
        dstPos: position(c.dstMemoryType, c.dstXInBytes, c.dstY, c.dstZ),
        dstPtr: side(
            c.dstMemoryType,
            c.dstHost as u64,
            c.dstDevice,
            c.dstPitch,
            c.dstHeight,
        ),
        extent: cudaExtent {
            width: c.WidthInBytes / element,
            height: c.Height,
            depth: c.Depth,
        },
        kind,
    })
}

/// Byte offset of the type's parameters in [`CUgraphNodeParams`] and [`cudaGraphNodeParams`].
const MEMBER: u64 = offset_of!(CUgraphNodeParams, anon0) as u64;
const _: () = assert!(MEMBER == offset_of!(cudaGraphNodeParams, anon0) as u64);

/// Byte offset of the copy in [`cudaGraphNodeParams`].
const COPY: u64 = MEMBER + offset_of!(cudaMemcpyNodeParams, copyParams) as u64;

/// Converts [`cudaGraphNodeParams`] to the driver's structure. Only kernels and copies have a different layout.
fn generic(at: u64) -> Res<CUgraphNodeParams> {
    non_null(at)?;
    let mut params = get::<CUgraphNodeParams>(at)?;
    context::current()?;
    match NodeType(params.r#type.0) {
        NodeType::cudaGraphNodeTypeKernel => {
            let given = get::<cudaKernelNodeParamsV2>(at + MEMBER)?;
            let kernel = kernel_params(at + MEMBER)?;
            params.anon0.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
                func: kernel.func,
                gridDimX: kernel.gridDimX,
                gridDimY: kernel.gridDimY,
                gridDimZ: kernel.gridDimZ,
                blockDimX: kernel.blockDimX,
                blockDimY: kernel.blockDimY,
                blockDimZ: kernel.blockDimZ,
                sharedMemBytes: kernel.sharedMemBytes,
                kernelParams: kernel.kernelParams,
                extra: kernel.extra,
                kern: kernel.kern,
                ctx: given.ctx.cast(),
            };
        }
        NodeType::cudaGraphNodeTypeMemcpy => {
            params.anon0.memcpy.copyParams = copy_params(at + COPY)?;
            // SAFETY: any bits are a handle.
            if unsafe { params.anon0.memcpy.copyCtx }.is_null() {
                params.anon0.memcpy.copyCtx = current_context()?;
            }
        }
        // SAFETY: any bits are a handle.
        NodeType::cudaGraphNodeTypeMemset if unsafe { params.anon0.memset.ctx }.is_null() => {
            params.anon0.memset.ctx = current_context()?;
        }
        NodeType::cudaGraphNodeTypeConditional => {
            // SAFETY: any bits are a handle.
            let handle = unsafe { params.anon0.conditional.ctx };
            params.anon0.conditional.ctx = context_of(handle as u64)?;
        }
        // Both kinds have the context at the same place.
        NodeType::cudaGraphNodeTypeExtSemaphoreSignal
        | NodeType::cudaGraphNodeTypeExtSemaphoreWait => {
            // SAFETY: any bits are a handle.
            let handle = unsafe { params.anon0.extSemSignal.anon0.ctx };
            params.anon0.extSemSignal.anon0.ctx = context_of(handle as u64)?;
        }
        _ => {}
    }
    Ok(params)
}

/// Converts node parameters from the driver's.
fn put_generic(at: u64, p: &CUgraphNodeParams) -> Res {
    match NodeType(p.r#type.0) {
        NodeType::cudaGraphNodeTypeKernel => {
            // SAFETY: the type selects this member, which the driver has written.
            let kernel = unsafe { p.anon0.kernel };
            put(at, *p)?;
            put_with(at + MEMBER, |told: &mut cudaKernelNodeParamsV2| {
                (told.anon0.func, told.functionType) = if kernel.kern.is_null() {
                    let function = cudaKernelFunctionType::cudaKernelFunctionTypeFunction;
                    (kernel.func.cast(), function)
                } else {
                    let function = cudaKernelFunctionType::cudaKernelFunctionTypeKernel;
                    (kernel.kern.cast(), function)
                };
                (told.gridDim.x, told.blockDim.x) = (kernel.gridDimX, kernel.blockDimX);
                (told.gridDim.y, told.blockDim.y) = (kernel.gridDimY, kernel.blockDimY);
                (told.gridDim.z, told.blockDim.z) = (kernel.gridDimZ, kernel.blockDimZ);
                told.sharedMemBytes = kernel.sharedMemBytes;
                (told.kernelParams, told.extra) = (kernel.kernelParams, kernel.extra);
                told.ctx = kernel.ctx.cast();
            })
        }
        NodeType::cudaGraphNodeTypeMemcpy => {
            // SAFETY: the type selects this member, which the driver has written.
            let told = runtime_copy(&unsafe { p.anon0.memcpy.copyParams })?;
            put(at, *p)?;
            put(at + COPY, told)
        }
        _ => put(at, *p),
    }
}

/// `cudaGraphAddNode`: the node, and the driver's further output (the address of an allocation, or the bodies of a
/// conditional node).
pub(crate) fn add_generic(
    out: u64,
    graph: u64,
    before: u64,
    data: u64,
    count: usize,
    params: u64,
) -> Res {
    let mut wanted = generic(params)?;
    added(out, |node| {
        let data = array::<CUgraphEdgeData>(data);
        cu!(cuGraphAddNode(
            node,
            graph as CUgraph,
            array(before),
            data,
            count,
            &mut wanted
        ))
    })?;
    match NodeType(wanted.r#type.0) {
        NodeType::cudaGraphNodeTypeMemAlloc => {
            let place = offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr) as u64;
            // SAFETY: an address, for which any bits are valid.
            put(params + MEMBER + place, unsafe { wanted.anon0.alloc.dptr })
        }
        NodeType::cudaGraphNodeTypeConditional => {
            let place = offset_of!(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out) as u64;
            // SAFETY: a pointer, for which any bits are valid.
            let bodies = unsafe { wanted.anon0.conditional.phGraph_out };
            put(params + MEMBER + place, bodies)
        }
        _ => Ok(()),
    }
}

/// The driver's context of an execution context, which is the current one if the handle is null.
fn context_of(handle: u64) -> Res<CUcontext> {
    match handle {
        0 => current_context(),
        _ => execution_context::driver_context(handle),
    }
}

/// Creates a condition handle; a null context is the current one.
fn condition(out: u64, graph: u64, context: u64, default: u32, flags: u32) -> Res {
    non_null(out)?;
    let context = context_of(context)?;
    let mut handle: CUgraphConditionalHandle = 0;
    cu!(cuGraphConditionalHandleCreate(
        &mut handle,
        graph as CUgraph,
        context,
        default,
        flags
    ))?;
    put(out, handle)
}

fn set_of(at: u64) -> Res<CUDA_MEMSET_NODE_PARAMS> {
    non_null(at)?;
    get::<CUDA_MEMSET_NODE_PARAMS>(at)
}

fn host_of(at: u64) -> Res<CUDA_HOST_NODE_PARAMS> {
    non_null(at)?;
    get::<CUDA_HOST_NODE_PARAMS>(at)
}

/// The driver's parameters of a copy to a variable of the program.
fn to_symbol(symbol: u64, from: u64, count: usize, offset: usize, kind: u32) -> Res<CUDA_MEMCPY3D> {
    symbol::to_device(kind)?;
    linear_params(symbol::range(symbol, offset, count)?, from, count, kind)
}

/// The driver's parameters of a copy from a variable of the program.
fn from_symbol(to: u64, symbol: u64, count: usize, offset: usize, kind: u32) -> Res<CUDA_MEMCPY3D> {
    symbol::from_device(kind)?;
    linear_params(to, symbol::range(symbol, offset, count)?, count, kind)
}

fn add_copy(out: u64, graph: u64, before: u64, count: usize, copy: CUDA_MEMCPY3D) -> Res {
    let ctx = current_context()?;
    added(out, |node| {
        cu!(cuGraphAddMemcpyNode(
            node,
            graph as CUgraph,
            array(before),
            count,
            &copy,
            ctx
        ))
    })
}

fn exec_copy(exec: u64, node: u64, copy: CUDA_MEMCPY3D) -> Res {
    let ctx = current_context()?;
    cu!(cuGraphExecMemcpyNodeSetParams(
        exec as CUgraphExec,
        node as CUgraphNode,
        &copy,
        ctx
    ))
}

runtime_entry_points! {
    fn add_kernel "cudaGraphAddKernelNode" (out: u64, graph: u64, before: u64, count: usize, params: u64) {
        let params = kernel_params(params)?;
        added(out, |node| cu!(cuGraphAddKernelNode(node, graph as CUgraph, array(before), count, &params)))
    }
    fn kernel_get "cudaGraphKernelNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        let mut params = CUDA_KERNEL_NODE_PARAMS::default();
        cu!(cuGraphKernelNodeGetParams(node as CUgraphNode, &mut params))?;
        put_kernel(out, &params)
    }
    fn kernel_set "cudaGraphKernelNodeSetParams" (node: u64, params: u64) {
        let params = kernel_params(params)?;
        cu!(cuGraphKernelNodeSetParams(node as CUgraphNode, &params))
    }
    fn exec_kernel "cudaGraphExecKernelNodeSetParams" (exec: u64, node: u64, params: u64) {
        let params = kernel_params(params)?;
        cu!(cuGraphExecKernelNodeSetParams(exec as CUgraphExec, node as CUgraphNode, &params))
    }
    fn kernel_get_attribute "cudaGraphKernelNodeGetAttribute" (node: u64, id: u32, out: u64) {
        non_null(out)?;
        let mut value = CUkernelNodeAttrValue::default();
        cu!(cuGraphKernelNodeGetAttribute(node as CUgraphNode, CUlaunchAttributeID(id as _), &mut value))?;
        put(out, value)
    }
    fn kernel_set_attribute "cudaGraphKernelNodeSetAttribute" (node: u64, id: u32, value: u64) {
        non_null(value)?;
        let value = get::<CUkernelNodeAttrValue>(value)?;
        cu!(cuGraphKernelNodeSetAttribute(node as CUgraphNode, CUlaunchAttributeID(id as _), &value))
    }
    fn kernel_copy_attributes "cudaGraphKernelNodeCopyAttributes" (to: u64, from: u64) {
        cu!(cuGraphKernelNodeCopyAttributes(to as CUgraphNode, from as CUgraphNode))
    }
    fn add_memcpy "cudaGraphAddMemcpyNode" (out: u64, graph: u64, before: u64, count: usize, params: u64) {
        add_copy(out, graph, before, count, copy_params(params)?)
    }
    fn add_memcpy_1d "cudaGraphAddMemcpyNode1D"
        (out: u64, graph: u64, before: u64, count: usize, to: u64, from: u64, bytes: usize, kind: u32) {
        add_copy(out, graph, before, count, linear_params(to, from, bytes, kind)?)
    }
    fn memcpy_get "cudaGraphMemcpyNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        let mut copy = CUDA_MEMCPY3D::default();
        cu!(cuGraphMemcpyNodeGetParams(node as CUgraphNode, &mut copy))?;
        put(out, runtime_copy(&copy)?)
    }
    fn memcpy_set "cudaGraphMemcpyNodeSetParams" (node: u64, params: u64) {
        let copy = copy_params(params)?;
        cu!(cuGraphMemcpyNodeSetParams(node as CUgraphNode, &copy))
    }
    fn memcpy_set_1d "cudaGraphMemcpyNodeSetParams1D" (node: u64, to: u64, from: u64, bytes: usize, kind: u32) {
        let copy = linear_params(to, from, bytes, kind)?;
        cu!(cuGraphMemcpyNodeSetParams(node as CUgraphNode, &copy))
    }
    fn exec_memcpy "cudaGraphExecMemcpyNodeSetParams" (exec: u64, node: u64, params: u64) {
        exec_copy(exec, node, copy_params(params)?)
    }
    fn exec_memcpy_1d "cudaGraphExecMemcpyNodeSetParams1D"
        (exec: u64, node: u64, to: u64, from: u64, bytes: usize, kind: u32) {
        exec_copy(exec, node, linear_params(to, from, bytes, kind)?)
    }
    fn add_memcpy_to_symbol "cudaGraphAddMemcpyNodeToSymbol"
        (out: u64, graph: u64, before: u64, count: usize, symbol: u64, from: u64, bytes: usize, offset: usize, kind: u32) {
        add_copy(out, graph, before, count, to_symbol(symbol, from, bytes, offset, kind)?)
    }
    fn add_memcpy_from_symbol "cudaGraphAddMemcpyNodeFromSymbol"
        (out: u64, graph: u64, before: u64, count: usize, to: u64, symbol: u64, bytes: usize, offset: usize, kind: u32) {
        add_copy(out, graph, before, count, from_symbol(to, symbol, bytes, offset, kind)?)
    }
    fn memcpy_set_to_symbol "cudaGraphMemcpyNodeSetParamsToSymbol"
        (node: u64, symbol: u64, from: u64, bytes: usize, offset: usize, kind: u32) {
        let copy = to_symbol(symbol, from, bytes, offset, kind)?;
        cu!(cuGraphMemcpyNodeSetParams(node as CUgraphNode, &copy))
    }
    fn memcpy_set_from_symbol "cudaGraphMemcpyNodeSetParamsFromSymbol"
        (node: u64, to: u64, symbol: u64, bytes: usize, offset: usize, kind: u32) {
        let copy = from_symbol(to, symbol, bytes, offset, kind)?;
        cu!(cuGraphMemcpyNodeSetParams(node as CUgraphNode, &copy))
    }
    fn exec_memcpy_to_symbol "cudaGraphExecMemcpyNodeSetParamsToSymbol"
        (exec: u64, node: u64, symbol: u64, from: u64, bytes: usize, offset: usize, kind: u32) {
        exec_copy(exec, node, to_symbol(symbol, from, bytes, offset, kind)?)
    }
    fn exec_memcpy_from_symbol "cudaGraphExecMemcpyNodeSetParamsFromSymbol"
        (exec: u64, node: u64, to: u64, symbol: u64, bytes: usize, offset: usize, kind: u32) {
        exec_copy(exec, node, from_symbol(to, symbol, bytes, offset, kind)?)
    }
    fn add_memset "cudaGraphAddMemsetNode" (out: u64, graph: u64, before: u64, count: usize, params: u64) {
        let (params, ctx) = (set_of(params)?, current_context()?);
        added(out, |node| cu!(cuGraphAddMemsetNode(node, graph as CUgraph, array(before), count, &params, ctx)))
    }
    fn memset_get "cudaGraphMemsetNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        let mut params = CUDA_MEMSET_NODE_PARAMS::default();
        cu!(cuGraphMemsetNodeGetParams(node as CUgraphNode, &mut params))?;
        put(out, params)
    }
    fn memset_set "cudaGraphMemsetNodeSetParams" (node: u64, params: u64) {
        let params = set_of(params)?;
        cu!(cuGraphMemsetNodeSetParams(node as CUgraphNode, &params))
    }
    fn exec_memset "cudaGraphExecMemsetNodeSetParams" (exec: u64, node: u64, params: u64) {
        let (params, ctx) = (set_of(params)?, current_context()?);
        cu!(cuGraphExecMemsetNodeSetParams(exec as CUgraphExec, node as CUgraphNode, &params, ctx))
    }
    fn add_host "cudaGraphAddHostNode" (out: u64, graph: u64, before: u64, count: usize, params: u64) {
        let params = host_of(params)?;
        added(out, |node| cu!(cuGraphAddHostNode(node, graph as CUgraph, array(before), count, &params)))
    }
    fn host_get "cudaGraphHostNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        let mut params = CUDA_HOST_NODE_PARAMS::default();
        cu!(cuGraphHostNodeGetParams(node as CUgraphNode, &mut params))?;
        put(out, params)
    }
    fn host_set "cudaGraphHostNodeSetParams" (node: u64, params: u64) {
        let params = host_of(params)?;
        cu!(cuGraphHostNodeSetParams(node as CUgraphNode, &params))
    }
    fn exec_host "cudaGraphExecHostNodeSetParams" (exec: u64, node: u64, params: u64) {
        let params = host_of(params)?;
        cu!(cuGraphExecHostNodeSetParams(exec as CUgraphExec, node as CUgraphNode, &params))
    }
    fn add_mem_alloc "cudaGraphAddMemAllocNode" (out: u64, graph: u64, before: u64, count: usize, params: u64) {
        non_null(params)?;
        let mut wanted = get::<CUDA_MEM_ALLOC_NODE_PARAMS>(params)?;
        added(out, |node| cu!(cuGraphAddMemAllocNode(node, graph as CUgraph, array(before), count, &mut wanted)))?;
        put(params, wanted)
    }
    fn mem_alloc_get "cudaGraphMemAllocNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        cu!(cuGraphMemAllocNodeGetParams(node as CUgraphNode, &mut params))?;
        put(out, params)
    }
    fn add_mem_free "cudaGraphAddMemFreeNode" (out: u64, graph: u64, before: u64, count: usize, address: u64) {
        added(out, |node| cu!(cuGraphAddMemFreeNode(node, graph as CUgraph, array(before), count, address)))
    }
    fn mem_free_get "cudaGraphMemFreeNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        let mut address = 0;
        cu!(cuGraphMemFreeNodeGetParams(node as CUgraphNode, &mut address))?;
        put(out, address)
    }
    fn add_node "cudaGraphAddNode" (out: u64, graph: u64, before: u64, data: u64, count: usize, params: u64) {
        add_generic(out, graph, before, data, count, params)
    }
    fn add_node_v2 "cudaGraphAddNode_v2" (out: u64, graph: u64, before: u64, data: u64, count: usize, params: u64) {
        add_generic(out, graph, before, data, count, params)
    }
    fn conditional_handle "cudaGraphConditionalHandleCreate" (out: u64, graph: u64, default: u32, flags: u32) {
        condition(out, graph, 0, default, flags)
    }
    fn conditional_handle_v2 "cudaGraphConditionalHandleCreate_v2"
        (out: u64, graph: u64, context: u64, default: u32, flags: u32) {
        condition(out, graph, context, default, flags)
    }
    fn node_get_params "cudaGraphNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        let mut params = CUgraphNodeParams::default();
        cu!(cuGraphNodeGetParams(node as CUgraphNode, &mut params))?;
        put_generic(out, &params)
    }
    fn node_set_params "cudaGraphNodeSetParams" (node: u64, params: u64) {
        let mut params = generic(params)?;
        cu!(cuGraphNodeSetParams(node as CUgraphNode, &mut params))
    }
    fn exec_node_set_params "cudaGraphExecNodeSetParams" (exec: u64, node: u64, params: u64) {
        let mut params = generic(params)?;
        cu!(cuGraphExecNodeSetParams(exec as CUgraphExec, node as CUgraphNode, &mut params))
    }
}
