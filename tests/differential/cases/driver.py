"""The driver: with the recorder every function; on a GPU what is safe to call."""

from cases import driver_graphs as graphs
from cases import driver_real as real

MODULE = "cuda.bindings.driver"
MODES = ("ok", "fill", "error:1", "error:700", "error:999", "error:12345")

ARGUMENTS = {}
SKIP = ()
SCRIPTS = (
    real.before_init, real.devices, real.errors, real.contexts, real.green_contexts, real.memory, real.pools, real.virtual_memory, real.streams, real.modules,
    real.libraries, real.others, graphs.graphs, graphs.capture, graphs.arrays, graphs.node_parameters,
)  # fmt: skip
