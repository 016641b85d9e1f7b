"""The C library's locale of one thread."""

__all__ = ["c_locale_guard"]

# `LC_ALL_MASK` of <locale.h>: all categories of the C library, from LC_CTYPE (0) to LC_IDENTIFICATION (12), without
# LC_ALL itself (6).
_ALL = 0x1FBF


class c_locale_guard:
    """Within the ``with`` statement the calling thread has the locale ``C``; other threads keep theirs.

    Libraries that write or read numbers as text go wrong where the locale has a decimal comma. Where the C library has no
    locales of threads, nothing happens.
    """

    def __init__(self):
        self._made = None
        self._former = None

    def __enter__(self):
        import ctypes

        libc = ctypes.CDLL(None)
        try:
            newlocale, uselocale = libc.newlocale, libc.uselocale
        except AttributeError:
            return self
        newlocale.restype = uselocale.restype = ctypes.c_void_p
        newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        uselocale.argtypes = (ctypes.c_void_p,)
        self._made = newlocale(_ALL, b"C", None)
        if self._made:
            self._former = uselocale(self._made)
        return self

    def __exit__(self, exc_type, exc, traceback):
        if self._made:
            import ctypes

            libc = ctypes.CDLL(None)
            libc.uselocale.restype = ctypes.c_void_p
            libc.uselocale.argtypes = libc.freelocale.argtypes = (ctypes.c_void_p,)
            libc.freelocale.restype = None
            libc.uselocale(self._former)
            libc.freelocale(self._made)
            self._made = self._former = None
        return False
