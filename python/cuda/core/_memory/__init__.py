"""Buffers and the memory resources that make them."""
