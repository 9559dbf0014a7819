"""Takes a key out of what an endpoint sends back, before anyone sees it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cheapgpu.check.events import Step
from cheapgpu.core.exchange import Closed, Head, Read
from cheapgpu.core.recording import MASKED

#: A shorter key is found in innocent text: masking it would change what is judged.
_SECRET_LENGTH: Final = 8


def secrets_of(key: str | None) -> list[str]:
    """What must be masked in answers where `key` is sent."""
    return [key] if key is not None and len(key) >= _SECRET_LENGTH else []


class Mask:
    """Passes the steps of one exchange on to `tell`, with every occurrence of `secret` masked.

    In a body as many stars as the secret has bytes take its place, so that offsets stay. The end of
    a read that may begin the secret waits for the next read, so it is found however it was cut.
    That moves no event in time: a key has no line break, so what waits ends no event.
    """

    def __init__(self, secret: str, tell: Callable[[Step], None]) -> None:
        self._text = secret
        self._secret = secret.encode()
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
        waiting, secret = self._waiting, self._secret
        if waiting is not None:
            read = Read(t=read.t, at=waiting.at, data=waiting.data + read.data)
        data = read.data.replace(secret, b"*" * len(secret))
        longest = min(len(secret) - 1, len(data))
        held = next((n for n in range(longest, 0, -1) if data.endswith(secret[:n])), 0)
        size = len(data) - held
        if size:
            self._tell(Read(t=read.t, at=read.at, data=data[:size]))
        self._waiting = Read(t=read.t, at=read.at + size, data=data[size:]) if held else None
