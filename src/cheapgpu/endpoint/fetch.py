"""One small question to an engine, whole answer at once: for its model list, not for inference."""

import asyncio
from typing import Literal

from cheapgpu.wire.client import Origin, Pool, Problem
from cheapgpu.wire.message import Lines, request_bytes

#: Bytes of an answer; model lists of a router can be long.
_ANSWER_BYTES = 4 << 20


class FetchError(Exception):
    """No answer came; the message says why."""


class Answer:
    """Collects one answer; `whole` is done once it has come, or failed."""

    __slots__ = ("_pieces", "_size", "fields", "status", "whole")

    def __init__(self) -> None:
        self.status = 0
        self.fields: dict[bytes, bytes] = {}
        self.whole: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pieces: list[bytes] = []
        self._size = 0

    def head_received(self, status: int, fields: dict[bytes, bytes]) -> None:
        """Keep the head."""
        self.status, self.fields = status, fields

    def body_received(self, data: bytes) -> None:
        """Keep a piece of the body."""
        self._size += len(data)
        if self._size > _ANSWER_BYTES:
            self._give_up(f"its answer has more than {_ANSWER_BYTES} bytes")
        else:
            self._pieces.append(data)

    def ended(self, ending: Literal["whole", "cut"]) -> None:
        """Give the body to who waits for it."""
        if ending == "cut":
            self._give_up("its answer broke off")
        elif not self.whole.done():
            self.whole.set_result(b"".join(self._pieces))

    def failed(self, problem: Problem, detail: str) -> None:
        """Tell who waits that no answer came."""
        self._give_up(detail or problem)

    def _give_up(self, why: str) -> None:
        if not self.whole.done():
            self.whole.set_exception(FetchError(why))


async def fetch(
    pool: Pool, origin: Origin, target: str, lines: Lines, *, seconds: float
) -> tuple[int, dict[bytes, bytes], bytes]:
    """GET `target`: status, header fields, body. Raises FetchError if none come in time."""
    answer = Answer()
    sending = pool.send(origin, request_bytes("GET", target, lines), answer)
    try:
        async with asyncio.timeout(seconds):
            body = await answer.whole
    except TimeoutError:
        raise FetchError(f"it did not answer within {seconds:g} s") from None
    finally:
        if not answer.whole.done() or answer.whole.cancelled() or answer.whole.exception():
            sending.cancel()
    return answer.status, answer.fields, body
