"""Batched prefetches and discards of managed memory."""

from cupyrite._native.core import discard_batch, discard_prefetch_batch, prefetch_batch

__all__ = ["discard_batch", "discard_prefetch_batch", "prefetch_batch"]
