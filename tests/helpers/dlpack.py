"""Hand-written DLPack exports in ctypes, valid and invalid ones."""

import ctypes


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("number", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class ExchangeApi(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("export", ctypes.c_void_p),
        ("import_", ctypes.c_void_p),
        ("describe", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class Exporter:
    """An array with DLPack's methods and freely chosen fields. `deleted` counts calls of its deleter."""

    def __init__(
        self,
        array,
        *,
        code=2,
        bits=32,
        lanes=1,
        shape=(3, 4),
        strides=None,
        ndim=None,
        device=(1, 0),
        says=None,
        offset=0,
        version=None,
        flags=0,
        name=None,
        data=None,
        without=(),
    ):
        self.array, self.deleted, self.calls = array, 0, []
        self.says = device if says is None else says
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * max(len(strides), 1))(*strides)
        self._deleter = DELETER(self._delete)
        address = None if "deleter" in without else ctypes.cast(self._deleter, ctypes.c_void_p)
        tensor = Tensor(
            array.ctypes.data if data is None else data,
            device[0],
            device[1],
            len(shape) if ndim is None else ndim,
            code,
            bits,
            lanes,
            None if "shape" in without else self._shape,
            self._strides,
            offset,
        )
        if version is None:
            self.managed = Managed(tensor, None, address)
        else:
            self.managed = ManagedVersioned(version[0], version[1], None, address, flags, tensor)
        self.name = name or (b"dltensor" if version is None else b"dltensor_versioned")

    def _delete(self, pointer):
        assert pointer == ctypes.addressof(self.managed)
        self.deleted += 1

    def __dlpack_device__(self):
        return self.says

    def __dlpack__(self, **arguments):
        self.calls.append(arguments)
        return new_capsule(ctypes.addressof(self.managed), self.name, None)
