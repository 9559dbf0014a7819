"""A request on its way: where it goes, and who is told what comes back."""

import ssl
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from cheapgpu.wire.faults import report_fault

if TYPE_CHECKING:
    import asyncio

    from cheapgpu.wire.client_connection import ClientConnection

#: Why no head came: no connection · no TLS · closed before a head · a head over its limits · a head
#: that is none.
Problem = Literal["connect", "tls", "closed", "head", "malformed"]


class Origin(Struct, frozen=True):
    """Where requests go; `address` is dialled in place of the host's own, if given."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    address: str | None = None


class Receiver(Protocol):
    """Who is told what comes back; after `ended` or `failed`, which come once, nothing more.

    Nothing is called before `Pool.send` has returned, nor after `Sending.cancel`.
    """

    def head_received(self, status: int, fields: dict[bytes, bytes]) -> None:
        """Take the head: status and fields, by lower-case name."""

    def body_received(self, data: bytes) -> None:
        """Take what one read brought of the body, without its framing."""

    def ended(self, ending: Literal["whole", "cut"]) -> None:
        """Take the end: as its framing announced, or by the connection's if it has none."""

    def failed(self, problem: Problem, detail: str) -> None:
        """Take note that no head came; `detail` holds nothing of what was sent or received."""


class Sending:
    """One request that was handed over."""

    __slots__ = ("_connection", "_dialling", "_paused", "receiver", "reused", "sent")

    def __init__(self, receiver: Receiver) -> None:
        #: None once it is told nothing more.
        self.receiver: Receiver | None = receiver
        #: Whether a kept connection took it, and whether any took it.
        self.reused = self.sent = False
        self._connection: ClientConnection | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._paused = False

    def cancel(self) -> None:
        """Close its connection at once; its receiver is told nothing more."""
        self.receiver = None
        dialling, self._dialling = self._dialling, None
        if dialling is not None:
            dialling.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def pause(self) -> None:
        """Read no more of the answer, until it is resumed."""
        self._paused = True
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Read on."""
        self._paused = False
        if self._connection is not None:
            self._connection.resume()

    def dial(self, dialling: "asyncio.Task[None]") -> None:
        """Take the task that opens a connection for it."""
        self._dialling = dialling

    def attach(self, connection: "ClientConnection") -> None:
        """Take the connection that carries it."""
        self._connection = connection
        self._dialling = None
        self.sent = True
        if self._paused:
            connection.pause()

    def fail(self, problem: Problem, detail: str) -> None:
        """Let the connection go, and tell the receiver that no head came."""
        receiver = self._detach()
        if receiver is not None:
            try:
                receiver.failed(problem, detail)
            except Exception as error:  # noqa: BLE001 -- nothing is left that it could harm
                report_fault(f"{type(receiver).__name__}.failed", error)

    def end(self, ending: Literal["whole", "cut"]) -> None:
        """Let the connection go, and tell the receiver how the answer ended."""
        receiver = self._detach()
        if receiver is not None:
            try:
                receiver.ended(ending)
            except Exception as error:  # noqa: BLE001 -- nothing is left that it could harm
                report_fault(f"{type(receiver).__name__}.ended", error)

    def _detach(self) -> Receiver | None:
        """The receiver, for what it is told last."""
        self._connection = self._dialling = None
        receiver, self.receiver = self.receiver, None
        return receiver
