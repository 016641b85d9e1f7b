"""cuDLA: only with the recorder, because the library exists for NVIDIA's systems on a chip alone."""

MODULE = "cuda.bindings.cudla"
MODES = ("ok", "fill", "error:1", "error:7", "error:999")

ARGUMENTS = {
    ("module_load_from_memory", "p_module"): b"abc",
    ("module_load_from_memory", "module_size"): 3,
    ("submit_task", "ptr_to_tasks"): lambda m: m.Task(),
    ("create_device", "flags"): 0,
}
