//! Peers: which context may use the memory of which other one, and what that means for its kernels.
//!
//! Copies need no permission, as with the real driver: it moves data between any two devices itself.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::Res;
use super::context::Context;
use super::errors::Code;
use super::queue::lock;
use crate::memory::Viewer;

/// Pairs (context, peer): kernels of the first may use what the second has allocated.
static PEERS: Mutex<Option<HashSet<(u64, u64)>>> = Mutex::new(None);

/// Lets kernels of `mine` use the memory of `peer`.
///
/// # Errors
/// `PEER_ACCESS_ALREADY_ENABLED`.
pub(super) fn enable(mine: u64, peer: u64) -> Res {
    let new = lock(&PEERS).get_or_insert_default().insert((mine, peer));
    if new {
        Ok(())
    } else {
        Err(Code::PEER_ACCESS_ALREADY_ENABLED)
    }
}

/// The reverse of [`enable`].
///
/// # Errors
/// `PEER_ACCESS_NOT_ENABLED`.
pub(super) fn disable(mine: u64, peer: u64) -> Res {
    let known = lock(&PEERS).get_or_insert_default().remove(&(mine, peer));
    if known {
        Ok(())
    } else {
        Err(Code::PEER_ACCESS_NOT_ENABLED)
    }
}

/// Forgets what a context that ends was allowed, and allowed others.
pub(super) fn forget_context(context: u64) {
    lock(&PEERS)
        .get_or_insert_default()
        .retain(|&(mine, peer)| mine != context && peer != context);
}

/// Who a kernel of that context is to memory.
pub(super) fn viewer(context: &Context) -> Viewer {
    let mut guard = lock(&PEERS);
    let peers: Arc<[u64]> = guard
        .get_or_insert_default()
        .iter()
        .filter(|pair| pair.0 == context.id)
        .map(|pair| pair.1)
        .collect();
    Viewer {
        device: context.device,
        peers,
    }
}
