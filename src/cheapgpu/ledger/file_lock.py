"""One writer per file: a lock of the operating system on a file beside the database.

The kernel drops it with the process that holds it, however that ends; the file itself stays, and
means nothing.
"""

import contextlib
import fcntl
import os
from pathlib import Path

from cheapgpu.ledger.errors import InUseError


class FileLock:
    """Held from when it is made until `release`; raises InUseError where someone else holds it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise InUseError(
                f"{path.with_suffix('')} is in use by process {holder or 'unknown'}: "
                "a ledger has one writer; stop that process, or ask it"
            ) from None
        except OSError:
            os.close(self._descriptor)
            raise
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next one have the file."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
