"""What all connections of a listener share: who answers, within which limits, and how many."""

import asyncio
from typing import TYPE_CHECKING

from cheapgpu.wire.server import ServerLimits, Service

if TYPE_CHECKING:
    from cheapgpu.wire.server_connection import ServerConnection


class Connections:
    """What all connections of a listener share."""

    def __init__(self, service: Service, limits: ServerLimits) -> None:
        self.service = service
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.open: set[ServerConnection] = set()
        #: Requests whose head was whole and whose answer is not over.
        self.calls = 0
        self.draining = False
        #: While draining: set once there are no calls. When closing: set once nothing is open.
        self.quiet = asyncio.Event()
        self.empty = asyncio.Event()

    def call_over(self) -> None:
        """Take note that a request was answered, or given up."""
        self.calls -= 1
        if self.draining and not self.calls:
            self.quiet.set()

    def closed(self, connection: "ServerConnection") -> None:
        """Take note of a connection's end."""
        self.open.discard(connection)
        if not self.open:
            self.empty.set()
