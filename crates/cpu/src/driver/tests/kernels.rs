//! Kernels through the driver.
