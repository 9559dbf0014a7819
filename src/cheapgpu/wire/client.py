"""The client side of HTTP/1.1: kept connections, one request at a time on each, none sent twice.

Callbacks only: what one read of the socket brings is parsed, joined and handed on in one call; only
to open a connection takes a task.
"""

import asyncio
import select
from collections import deque
from contextlib import suppress
from typing import Final

from cheapgpu.wire.client_connection import ClientConnection
from cheapgpu.wire.dialling import DialError, dial
from cheapgpu.wire.sending import Origin, Problem, Receiver, Sending
from cheapgpu.wire.sweeper import Sweeper

__all__ = ["Origin", "Pool", "Problem", "Receiver", "Sending"]

#: Why nothing is sent any more.
_CLOSED: Final = "this program is closing its connections"
#: Seconds for which a connection that was used is good without a look.
_AT_ONCE_SECONDS: Final = 0.1
_READABLE: Final = select.POLLIN | select.POLLHUP | select.POLLERR


class Pool:
    """Kept connections by origin; a request takes the last one that is idle, or a new one.

    Nothing is ever sent again: a kept connection that dies before its answer is a failure. So they
    are kept for less time than servers do (usually five seconds), and looked at before they are
    used: an end that has reached this machine is seen. Times are seconds.
    """

    def __init__(
        self, *, idle_seconds: float = 3.0, connect_seconds: float = 5.0, idle_most: int = 256
    ) -> None:
        self._idle_seconds = idle_seconds
        self._connect_seconds = connect_seconds
        #: Idle connections to one origin, at most.
        self._idle_most = idle_most
        self._idle: dict[Origin, deque[ClientConnection]] = {}
        #: Every connection that has not ended.
        self.open: set[ClientConnection] = set()
        self._dialling: dict[asyncio.Task[None], Sending] = {}
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        self._closed = False
        # Set once nothing is open, while closing.
        self._empty = asyncio.Event()
        self._sweeper = Sweeper(min(1.0, idle_seconds))
        self._sweeper.add(self)
        self._sweeper.start()

    def send(
        self, origin: Origin, message: bytes, receiver: Receiver, *, reusable: bool = True
    ) -> Sending:
        """Send a request at once on a kept connection, or as soon as a new one is open.

        One that is not `reusable` gets a connection of its own, which is closed after it.
        """
        sending = Sending(receiver)
        connection = self._take(origin) if reusable else None
        if connection is not None:
            sending.reused = True
            connection.carry(message, sending, keep=True)
            return sending
        task = self._loop.create_task(self._dial(origin, message, sending, keep=reusable))
        self._dialling[task] = sending
        task.add_done_callback(self._dialling.pop)
        sending.dial(task)
        return sending

    async def close(self) -> None:
        """Cut every connection; who waits for an answer is told."""
        self._closed = True
        self._sweeper.stop()
        dialling = dict(self._dialling)
        for task, sending in dialling.items():
            task.cancel()
            sending.fail("closed", _CLOSED)
        for connection in tuple(self.open):
            connection.give_up(_CLOSED)
        await asyncio.gather(*dialling, return_exceptions=True)
        if self.open:
            await self._empty.wait()

    def sweep(self, now: float) -> None:
        """Close what has been idle for too long."""
        for origin, kept in tuple(self._idle.items()):
            while kept and now - kept[0].idle_since >= self._idle_seconds:
                kept.popleft().abort()
            if not kept:
                del self._idle[origin]

    # What a connection does.

    def made(self, connection: ClientConnection) -> None:
        """Take note of a new connection."""
        self.open.add(connection)

    def keep(self, connection: ClientConnection) -> bool:
        """Take back a connection whose answer has ended, or not."""
        kept = self._idle.get(connection.origin)
        if kept is None:
            kept = self._idle[connection.origin] = deque()
        if self._closed or len(kept) >= self._idle_most:
            return False
        connection.idle_since = self._loop.time()
        kept.append(connection)
        return True

    def forget(self, connection: ClientConnection) -> None:
        """Let go of a connection that has ended."""
        self.open.discard(connection)
        if self._closed and not self.open:
            self._empty.set()
        kept = self._idle.get(connection.origin)
        if kept is not None:
            with suppress(ValueError):
                kept.remove(connection)

    # How a request finds its connection.

    def _take(self, origin: Origin) -> ClientConnection | None:
        """The connection that was used last, if it is fit for another request."""
        kept = self._idle.get(origin)
        while kept:
            connection = kept.pop()
            idle = self._loop.time() - connection.idle_since
            fit = idle < self._idle_seconds and connection.is_open
            # One that was used just now is not looked at: no server gives up so soon.
            if fit and (idle < _AT_ONCE_SECONDS or not self._has_news(connection)):
                return connection
            connection.abort()
        return None

    def _has_news(self, connection: ClientConnection) -> bool:
        """Whether bytes or an end have come that the loop has not read yet."""
        descriptor = connection.descriptor
        if descriptor < 0:
            return True
        self._poll.register(descriptor, _READABLE)
        try:
            return bool(self._poll.poll(0))
        finally:
            self._poll.unregister(descriptor)

    async def _dial(self, origin: Origin, message: bytes, sending: Sending, *, keep: bool) -> None:
        if self._closed:
            sending.fail("closed", _CLOSED)
            return
        try:
            connection = await dial(
                origin, lambda: ClientConnection(self, origin), self._connect_seconds
            )
        except DialError as error:
            sending.fail(error.problem, error.detail)
            return
        if sending.receiver is None:  # it was cancelled meanwhile
            connection.abort()
        elif connection.is_open:
            connection.carry(message, sending, keep=keep)
        else:
            sending.fail("closed", "the connection was closed as soon as it was open")
