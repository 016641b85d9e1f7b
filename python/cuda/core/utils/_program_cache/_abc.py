"""What every cache of compiled programs has."""

from abc import ABC, abstractmethod

__all__ = ["ProgramCacheResource"]


class ProgramCacheResource(ABC):
    """Something that keeps compiled code: bytes under keys.

    Give one to :meth:`cuda.core.Program.compile` as ``cache=``, which makes the keys, looks the code up, and keeps it
    where it had to be made. Or use it as a mapping with keys of :func:`make_program_cache_key`.

    Keys are bytes or str; a str is the same key as its bytes in UTF-8. Values are given as
    :class:`~cuda.core.ObjectCode`, or as anything that has the buffer protocol, and come back as bytes.

    There is no ``in``: between asking whether a key is there and reading it, another process may remove it. Use
    :meth:`get`.
    """

    @abstractmethod
    def __getitem__(self, key):
        """The bytes under a key.

        Parameters
        ----------
        key : bytes or str

        Returns
        -------
        bytes

        Raises
        ------
        KeyError
            If there are none.
        """

    @abstractmethod
    def __setitem__(self, key, value):
        """Keeps bytes under a key, instead of what was there.

        Parameters
        ----------
        key : bytes or str
        value : ObjectCode or bytes-like
            Of an :class:`~cuda.core.ObjectCode` its code; if that is a file, what is in it now.
        """

    @abstractmethod
    def __delitem__(self, key):
        """Forgets a key.

        Parameters
        ----------
        key : bytes or str

        Raises
        ------
        KeyError
            If it is not there.
        """

    @abstractmethod
    def __len__(self):
        """The number of entries."""

    @abstractmethod
    def clear(self):
        """Forgets everything."""

    def get(self, key, default=None):
        """The bytes under a key, or `default` if there are none.

        Parameters
        ----------
        key : bytes or str
        default : bytes, optional

        Returns
        -------
        bytes or None
        """
        try:
            return self[key]
        except KeyError:
            return default

    def update(self, items, /):
        """Keeps several entries, one after the other; if one fails, those before it stay.

        Parameters
        ----------
        items : mapping, or iterable of pairs
            Keys and values.
        """
        if hasattr(items, "items"):
            items = items.items()
        for key, value in items:
            self[key] = value

    def close(self):
        """Lets go of what the cache holds; there is nothing to let go of here."""

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self.close()
