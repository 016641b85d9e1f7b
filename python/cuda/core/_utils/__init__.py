"""What the modules of `cuda.core` share."""
