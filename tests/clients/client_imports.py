"""Clients of which the checks ask no more than that they import: those that are installed."""

from checks import check, finish, need


def imports(name, *attributes):
    module = need(name)
    for attribute in attributes:
        assert hasattr(module, attribute), f"{name}.{attribute}"


@check
def cuquantum():
    imports("cuquantum", "__version__")


@check
def nvshmem4py():
    imports("nvshmem.core")


@check
def kvikio():
    imports("kvikio", "CuFile")


@check
def cuda_tile():
    imports("cuda.tile", "kernel")


@check
def cutlass_DSL():
    imports("cutlass.cute", "kernel")


@check
def flashinfer():
    imports("flashinfer", "__version__")


@check
def sglang():
    imports("sglang")


@check
def names_that_these_clients_ask_for():
    import importlib.metadata

    import cuda.core
    from cuda.core import MemoryResource
    from cuda.core import system as cuda_system
    from cuda.core._dlpack import DLDeviceType
    from cuda.core._utils.cuda_utils import handle_return

    assert cuda.core.__version__.split(".") and callable(handle_return) and DLDeviceType.kDLCUDA
    assert cuda_system.get_num_devices() >= 1
    for name in ("cuda-bindings", "cuda-core", "cuda-pathfinder"):
        assert importlib.metadata.version(name)

    class Resource(MemoryResource):
        """A memory resource of a client."""

    assert issubclass(Resource, MemoryResource)


@check
def reserved_fields_of_descriptors_of_other_processes():
    from cuda.bindings import driver, runtime

    for module, name in (
        (driver, "CUipcMemHandle"),
        (driver, "CUipcEventHandle"),
        (driver, "CUmemPoolPtrExportData"),
        (runtime, "cudaIpcMemHandle_t"),
        (runtime, "cudaIpcEventHandle_t"),
        (runtime, "cudaMemPoolPtrExportData"),
    ):
        handle = getattr(module, name)()
        content = bytes(range(64))
        handle.reserved = content
        assert bytes(handle.reserved) == content, name


if __name__ == "__main__":
    finish()
