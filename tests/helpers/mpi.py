"""How tests start the ranks of MPI programs."""

import os
import shutil
import sys

#: Open MPI refuses root, and more ranks than cores; other libraries ignore these variables.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
#: Variables of a rank that has no device.
NO_DEVICE = ("CUPYRITE_LIB_CUDA=/no/libcuda.so.1", "CUPYRITE_DEVICE=gpu")


def find_program(name):
    """Path of a program of the MPI library: that of a wheel, which is beside Python, else one on PATH; None without any."""
    return shutil.which(name, path=os.path.dirname(sys.executable)) or shutil.which(name)
