"""The bearer keys that buyers present: kept as hashes, several valid at once.

A file of keys has one on each line: `NAME KEY`, or `NAME sha256:HEX` (the hash of the key), or the
key or hash alone; `#` begins a comment. It is read again on SIGHUP, so that keys rotate while the
endpoint runs.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from cheapgpu.core.errors import CheapGPUError

_HASH: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")
_KEY: Final = re.compile(r"[!-~]{8,512}")
_NAME: Final = re.compile(r"[\w.@-]{1,64}", re.ASCII)
#: Bytes of a file of keys, and keys.
_FILE_BYTES: Final = 1 << 20
_MOST: Final = 10_000
_BEARER: Final = b"bearer "


class KeyringError(CheapGPUError):
    """Keys cannot be used; the message says which and what to give, and never repeats one."""


class Keyring:
    """The keys that are valid now."""

    __slots__ = ("_names",)

    def __init__(self, keys: Iterable[tuple[str, bytes]]) -> None:
        """Hold keys as pairs of a name and the SHA-256 of the key."""
        self._names: dict[bytes, str] = {digest: name for name, digest in keys}

    def __len__(self) -> int:
        return len(self._names)

    def name_of(self, authorization: bytes | None) -> str | None:
        """The name of the key in an Authorization field, or None if it has no valid one.

        RFC 6750 section 2.1; the scheme's case does not matter (RFC 9110 section 11.1). The key is
        looked up by its hash, which tells nothing of other keys by the time that it takes.
        """
        if authorization is None or authorization[:7].lower() != _BEARER:
            return None
        key = authorization[7:].strip(b" ")
        return self._names.get(hashlib.sha256(key).digest())


def keys_of_environment(variable: str, environment: Mapping[str, str]) -> list[tuple[str, bytes]]:
    """The keys in an environment variable, separated by spaces, commas or line ends.

    Raises KeyringError if there is none, or one that cannot be meant.
    """
    text = environment.get(variable)
    if not text or not text.strip():
        state = "is empty" if text is not None else "is not set"
        raise KeyringError(f"the environment variable for the keys {state}; put a key into it")
    found = re.split(r"[\s,]+", text.strip())
    return [
        (f"{variable.lower()}-{number}", _digest(key, f"key {number} of the variable"))
        for number, key in enumerate(found, 1)
    ]


def keys_of_file(path: Path) -> list[tuple[str, bytes]]:
    """The keys in a file; raises KeyringError that names the line at fault."""
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise KeyringError(f"{path}: {error.strerror}; give a file of keys") from None
    except UnicodeDecodeError:
        raise KeyringError(f"{path}: is not UTF-8; give a file of keys") from None
    if len(data) > _FILE_BYTES:
        raise KeyringError(f"{path}: has more than {_FILE_BYTES} bytes; that is no file of keys")
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{path} line {number}"
        if len(words) > 2 or (len(words) == 2 and not _NAME.fullmatch(words[0])):
            raise KeyringError(f"{where}: wanted NAME KEY, NAME sha256:HEX, or one of them alone")
        name = words[0] if len(words) == 2 else f"line-{number}"
        keys.append((name, _digest(words[-1], where)))
    if not keys:
        raise KeyringError(f"{path}: holds no key; write one on a line")
    if len(keys) > _MOST:
        raise KeyringError(f"{path}: holds more than {_MOST} keys")
    return keys


def _digest(key: str, where: str) -> bytes:
    match = _HASH.fullmatch(key)
    if match:
        return bytes.fromhex(match[1])
    if key.startswith("sha256:"):
        raise KeyringError(f"{where}: sha256: is followed by 64 hexadecimal digits")
    if not _KEY.fullmatch(key):
        raise KeyringError(
            f"{where}: a key has 8 to 512 printable ASCII characters without spaces; "
            "make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return hashlib.sha256(key.encode()).digest()
