"""Takes a key out of what an endpoint sends back, before anyone sees it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cheapgpu.check.events import Step
from cheapgpu.core.exchange import Closed, Head, Read
from cheapgpu.core.recording import MASKED, escapes, spellings, starred

#: A shorter key is found in innocent text: masking it would change what is judged.
_SECRET_LENGTH: Final = 8
#: The longest escape of one character, in bytes.
_ESCAPED: Final = 6


def secrets_of(*values: str | None) -> list[str]:
    """What must be masked in answers where these values are sent, each once, the longest first."""
    long = {value for value in values if value is not None and len(value) >= _SECRET_LENGTH}
    return sorted(long, key=lambda value: (-len(value), value))


class Mask:
    """Passes the steps of one exchange on to `tell`, with every occurrence of `secret` masked.

    In a body as many stars as the secret has bytes take its place, so that offsets stay; it is
    found with JSON's escapes too. The end of a read that may begin the secret waits for the next
    read, so it is found however it was cut.
    That moves no event in time: a key has no line break, so what waits ends no event.
    """

    def __init__(self, secret: str, tell: Callable[[Step], None]) -> None:
        self._text = secret
        self._secret = [character.encode() for character in secret]
        self._pattern = spellings(secret)
        self._tell = tell
        self._waiting: Read | None = None

    def __call__(self, step: Step) -> None:
        """Take the next step."""
        match step:
            case Read():
                self._read(step)
                return
            case Head():
                fields = tuple((n, v.replace(self._text, MASKED)) for n, v in step.headers)
                step = replace(step, headers=fields)
            case Closed() if self._waiting is not None:
                self._tell(self._waiting)
            case _:
                pass
        self._tell(step)

    def _read(self, read: Read) -> None:
        waiting = self._waiting
        if waiting is not None:
            read = Read(t=read.t, at=waiting.at, data=waiting.data + read.data)
        data = starred(self._pattern, read.data)
        longest = min(_ESCAPED * len(self._secret) - 1, len(data))
        starts = range(len(data) - longest, len(data))
        size = next((n for n in starts if self._begins(data[n:])), len(data))
        held = len(data) - size
        if size:
            self._tell(Read(t=read.t, at=read.at, data=data[:size]))
        self._waiting = Read(t=read.t, at=read.at + size, data=data[size:]) if held else None

    def _begins(self, data: bytes, character: int = 0) -> bool:
        """Whether bytes may be the beginning of the secret, from one of its characters on."""
        if not data:
            return True
        if character == len(self._secret):
            return False
        itself = self._secret[character]
        return any(
            spelling.startswith(data)
            or (data.startswith(spelling) and self._begins(data[len(spelling) :], character + 1))
            for spelling in (itself, *escapes(itself))
        )
