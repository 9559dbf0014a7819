"""What a program that answers over HTTP/1.1 sees: its limits, the calls, and what it must do."""

from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct

from cheapgpu.core.limits import HEAD_BYTES, HEAD_FIELDS, HEAD_SECONDS, REQUEST_BYTES
from cheapgpu.wire.message import Lines, RequestHead, Response, response_bytes, response_head

if TYPE_CHECKING:
    from cheapgpu.wire.server_connection import ServerConnection

_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"


class ServerLimits(Struct, frozen=True):
    """What one client may send, and how long it may take; bytes and seconds."""

    head_bytes: int = HEAD_BYTES
    head_fields: int = HEAD_FIELDS
    body_bytes: int = REQUEST_BYTES
    head_seconds: float = HEAD_SECONDS
    body_seconds: float = 30.0
    #: How long a connection without a request is kept.
    idle_seconds: float = 75.0
    #: How long a client may take nothing of what is written to it.
    stall_seconds: float = 60.0
    #: Connections at once.
    connections: int = 10_000


class CallClient(Protocol):
    """Who is told what the client of a call does."""

    def gone(self) -> None:
        """The client has left, or was cut, before the answer's end; told once."""

    def pause(self) -> None:
        """The client reads too slowly: write no more for now."""

    def resume(self) -> None:
        """The client has caught up."""


class Service(Protocol):
    """Who answers."""

    def admit(self, head: RequestHead) -> Response | None:
        """Refuse a request by its head, before its body is read, or return None."""

    def serve(self, call: "Call") -> None:
        """Answer a whole request, now or later, by its `respond`, or `start` … `end` or `abort`."""

    def refuse(self, status: int, reason: str) -> Response:
        """The answer to a message that cannot be served, for a reason of HTTP's."""


class Call:
    """One request that is being answered, and the way to answer it.

    Once the client has left, or the answer is over, whatever is called here is without effect.
    """

    __slots__ = ("_connection", "_head", "_state", "body", "client", "head", "received")

    def __init__(
        self, connection: "ServerConnection", head: RequestHead, body: bytes, received: float
    ) -> None:
        self.head = head
        self.body = body
        #: The loop's time when the head was whole, in seconds.
        self.received = received
        #: Who is told what the client does.
        self.client: CallClient | None = None
        self._connection: ServerConnection | None = connection
        # The head of an answer in pieces, until it leaves with the first of them.
        self._head = b""
        # How the pieces are framed; "bodiless" answers HEAD.
        self._state: Literal["waiting", "chunked", "close", "bodiless", "over"] = "waiting"

    @property
    def paused(self) -> bool:
        """Whether the client reads too slowly."""
        return self._connection is not None and self._connection.paused

    @property
    def peer(self) -> str:
        """The client's address; "" once it has left."""
        return self._connection.peer if self._connection is not None else ""

    @property
    def is_started(self) -> bool:
        """Whether an answer was begun, or is over."""
        return self._state != "waiting"

    def forget_request(self) -> None:
        """Let go of the request's fields and body, for an answer that may take long."""
        self.body = b""
        self.head.fields = {}

    def respond(self, response: Response) -> None:
        """Answer whole."""
        if self._state != "waiting":
            self._refuse_second()
            return
        connection = self._over()
        if connection is not None:
            body, keep = self.head.method != "HEAD", connection.is_kept
            connection.write(response_bytes(response, body=body, keep=keep))
            connection.answered()

    def start(self, status: int, lines: Lines) -> None:
        """Begin an answer in pieces; its head leaves with the first of them."""
        connection = self._connection
        if self._state != "waiting" or connection is None:
            self._refuse_second()
            return
        framing = b""
        if self.head.method == "HEAD":
            self._state = "bodiless"
        elif connection.is_chunkable:
            self._state = "chunked"
            framing = _CHUNKED
        else:
            self._state = "close"
        self._head = response_head(status, lines, framing=framing, keep=connection.is_kept)

    def write(self, data: bytes) -> None:
        """Write a piece, in this turn of the loop."""
        connection = self._connection
        if connection is None or not data:
            return
        if self._state == "chunked":
            connection.write(b"%b%x\r\n%b\r\n" % (self._head, len(data), data))
        elif self._state == "close":
            connection.write(self._head + data)
        elif self._state == "bodiless":
            return
        else:
            raise RuntimeError("an answer in pieces begins with start()")
        self._head = b""

    def end(self, *, close: bool = False) -> None:
        """End an answer in pieces, and with `close` the connection; one not begun is cut."""
        if self._state == "waiting":
            self.abort()
            return
        last = _LAST_CHUNK if self._state == "chunked" else b""
        connection = self._over()
        if connection is None:
            return
        if close:
            connection.keep = False
        rest = self._head + last
        if rest:
            connection.write(rest)
        connection.answered()

    def abort(self) -> None:
        """Cut the connection, so that its client sees that the answer is not whole."""
        # Where the end of the connection is the end of the body, only a reset can say so.
        reset = self._state == "close"
        connection = self._over()
        if connection is not None:
            connection.cut(reset=reset)

    def leave(self) -> None:
        """The client has left: tell who answers, unless the answer is over."""
        client = self.client
        if self._over() is not None and client is not None:
            client.gone()

    def _over(self) -> "ServerConnection | None":
        """The connection, which is let go of; None if it is already."""
        connection, self._connection = self._connection, None
        self._state = "over"
        self.client = None
        return connection

    def _refuse_second(self) -> None:
        """A second answer to one call is a fault of its service, unless the first is over."""
        if self._connection is not None:
            raise RuntimeError("an answer was begun already")
