"""The bindings that raise: `driver`, `nvrtc` and `runtime` with names in snake_case, results as values and exceptions."""
