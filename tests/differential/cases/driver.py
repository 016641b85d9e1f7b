"""The driver: with the recorder every function; on a GPU what is safe to call."""

MODULE = "cuda.bindings.driver"
MODES = ("ok", "fill", "error:1", "error:700", "error:999", "error:12345")

ARGUMENTS = {}
SKIP = ()
