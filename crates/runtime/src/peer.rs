//! Multiple devices: peer access, copies between devices, link attributes.

use cupyrite_sys::driver::{CUcontext, CUdevice_P2PAttribute};

use crate::checked::{non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::stream::handle;

/// The primary context of a device, created if necessary.
pub(crate) fn context_of(ordinal: i32) -> Res<CUcontext> {
    let device = context::device(ordinal)?;
    Ok(context::primary(device)? as CUcontext)
}

runtime_entry_points! {
    fn can_access "cudaDeviceCanAccessPeer" (out: u64, ordinal: i32, peer: i32) {
        non_null(out)?;
        let (device, peer) = (context::device(ordinal)?, context::device(peer)?);
        let mut can = 0;
        cu!(cuDeviceCanAccessPeer(&mut can, device, peer))?;
        put(out, can)
    }
    fn enable "cudaDeviceEnablePeerAccess" (peer: i32, flags: u32) {
        context::current()?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let (mine, other) = (context::device(context::current_device()?)?, context::device(peer)?);
        let mut can = 0;
        cu!(cuDeviceCanAccessPeer(&mut can, mine, other))?;
        if can == 0 {
            return Err(Error::PEER_ACCESS_UNSUPPORTED);
        }
        cu!(cuCtxEnablePeerAccess(context_of(peer)?, flags))
    }
    fn disable "cudaDeviceDisablePeerAccess" (peer: i32) {
        context::current()?;
        cu!(cuCtxDisablePeerAccess(context_of(peer)?))
    }
    fn memcpy_peer "cudaMemcpyPeer" (to: u64, to_device: i32, from: u64, from_device: i32, count: usize) {
        context::current()?;
        if count == 0 {
            return Ok(());
        }
        let (target, source) = (context_of(to_device)?, context_of(from_device)?);
        cu!(cuMemcpyPeer(to, target, from, source, count))
    }
    fn memcpy_peer_async "cudaMemcpyPeerAsync"
        (to: u64, to_device: i32, from: u64, from_device: i32, count: usize, stream: u64) {
        context::current()?;
        if count == 0 {
            return Ok(());
        }
        let (target, source) = (context_of(to_device)?, context_of(from_device)?);
        cu!(cuMemcpyPeerAsync(to, target, from, source, count, handle::<PER_THREAD>(stream)))
    }
    fn p2p_attribute "cudaDeviceGetP2PAttribute" (out: u64, attribute: u32, from: i32, to: i32) {
        non_null(out)?;
        let (from, to) = (context::device(from)?, context::device(to)?);
        let mut value = 0;
        cu!(cuDeviceGetP2PAttribute(&mut value, CUdevice_P2PAttribute(attribute as _), from, to))?;
        put(out, value)
    }
    fn p2p_atomics "cudaDeviceGetP2PAtomicCapabilities" (out: u64, operations: u64, count: u32, from: i32, to: i32) {
        non_null(out)?;
        non_null(operations)?;
        let (from, to) = (context::device(from)?, context::device(to)?);
        cu!(cuDeviceGetP2PAtomicCapabilities(out as *mut u32, operations as *const _, count, from, to))
    }
    fn host_atomics "cudaDeviceGetHostAtomicCapabilities" (out: u64, operations: u64, count: u32, ordinal: i32) {
        non_null(out)?;
        non_null(operations)?;
        let device = context::device(ordinal)?;
        cu!(cuDeviceGetHostAtomicCapabilities(out as *mut u32, operations as *const _, count, device))
    }
}
