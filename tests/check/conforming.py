"""An endpoint that conforms, as a handler: the right one of `cheapgpu.simulate`."""

import asyncio
from dataclasses import dataclass, replace
from itertools import cycle, islice

from cheapgpu.core.request import ChatRequest, decode_request
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.endpoint import Endpoint as Simulated
from cheapgpu.simulate.gallery.fault import Fault
from cheapgpu.simulate.model import Speech
from cheapgpu.simulate.server import Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the endpoint knows, and how fast it is."""

    model: str = "scripted"
    key: str = "scripted-key-0123456789"
    #: One word is one token; they are said over and over, up to the limit of the request.
    words: tuple[str, ...] = ("Rain", " falls", " on", " the", " café", ".")
    #: Seconds between two words.
    pause: float = 0.0
    #: The largest max_completion_tokens that is admitted.
    ceiling: int = 4096


class Endpoint:
    """Answers connections as a script says; an instance is a handler for asyncio's servers."""

    def __init__(self, script: Script) -> None:
        endpoint = Simulated(
            key=script.key,
            model=script.model,
            pace=script.pause,
            ceiling=script.ceiling,
            path=None,
            faults=(Fault(name="words", sentence="Never stops.", breaks=(), speech=self._say),),
        )
        self._script = script
        self._simulation = Simulation(endpoint, self._hear)
        #: The requests that were answered with 200.
        self.answered: list[ChatRequest] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        await self._simulation.handle(reader, writer)

    def _say(self, speech: Speech, asked: Asked) -> Speech:
        pieces = tuple(islice(cycle(self._script.words), asked.limit))
        return replace(speech, pieces=pieces, completion_tokens=len(pieces), finish_reason="length")

    def _hear(self, asked: Asked) -> None:
        request = decode_request(asked.body)
        if asked.rule is None and isinstance(request, ChatRequest):
            self.answered.append(request)
