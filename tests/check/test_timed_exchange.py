"""One exchange with real servers on loopback, right and wrong, and the clock that runs."""

import asyncio
import contextlib
import re
import socket
import ssl
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from cheapgpu.check.connection import ConnectError
from cheapgpu.check.events import Sent, Step
from cheapgpu.check.limits import Limits
from cheapgpu.check.timed_exchange import Question, exchange
from cheapgpu.core import examples
from cheapgpu.core.exchange import Closed, Head, Read, Request
from cheapgpu.wire.target import parse_target, trusted
from tests.check.servers import (
    CERTIFICATE,
    HANG,
    LAST_CHUNK,
    RESET,
    STREAM_HEAD,
    Handler,
    answering,
    chunked,
    read_request,
    served,
    silent,
    unused_port,
)

#: Limits that a test can wait for.
QUICK = Limits(
    connect_seconds=0.3,
    first_byte_seconds=0.2,
    head_seconds=0.2,
    silence_seconds=0.2,
    grace_seconds=0.1,
)
RAIN = examples.RAIN
DONE = examples.DONE


@dataclass
class Told:
    """What was told of one exchange."""

    error: ConnectError | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def closed(self) -> Closed:
        """How it ended; nothing may come after that."""
        last = self.steps[-1]
        assert isinstance(last, Closed)
        assert sum(isinstance(step, Closed) for step in self.steps) == 1
        return last

    @property
    def head(self) -> Head | None:
        """The head, if one came."""
        return next((step for step in self.steps if isinstance(step, Head)), None)

    @property
    def reads(self) -> list[Read]:
        """The reads of the body."""
        return [step for step in self.steps if isinstance(step, Read)]

    @property
    def body(self) -> bytes:
        """The body."""
        return b"".join(read.data for read in self.reads)

    @property
    def ended(self) -> tuple[str, str]:
        """How it ended, and what is said of it."""
        return self.closed.how, self.closed.detail


def question(url: str, *, body: bytes = b"{}", seconds: float = 30.0, **more: Any) -> Question:
    """A request with a masked credential."""
    shown, sent = (
        (
            ("host", parse_target(url).authority),
            ("authorization", credential),
            ("content-length", str(len(body))),
        )
        for credential in ("Bearer ***", "Bearer the-real-key")
    )
    request = Request(method="POST", url=url, headers=shown, body=body)
    return Question(request=request, headers=sent, seconds=seconds, **more)


def ask(
    url: str,
    limits: Limits = QUICK,
    *,
    seconds: float = 30.0,
    body: bytes = b"{}",
    context: ssl.SSLContext | None = None,
    **more: Any,
) -> Told:
    """Ask once."""
    told = Told()

    async def once() -> None:
        asked = question(url, body=body, seconds=seconds, **more)
        told.error = await exchange(parse_target(url), asked, context, limits, told.steps.append)

    asyncio.run(once())
    return told


def ask_of(handler: Handler, limits: Limits = QUICK, *, seconds: float = 30.0, **more: Any) -> Told:
    """Ask a server that does as `handler` does."""
    with served(handler) as url:
        return ask(f"{url}/v1", limits, seconds=seconds, **more)


def stream(*steps: bytes | float | str) -> Handler:
    """A handler that streams, each of these bytes as a chunk."""
    framed = (chunked(step) if isinstance(step, bytes) else step for step in steps)
    return answering(STREAM_HEAD, *framed)


# --- what is told of an answer --------------------------------------------------------------------


def test_steps_come_in_order_with_rising_times() -> None:
    """Sent, head, reads and the end are told in that order, each not before the last."""
    last = answering(STREAM_HEAD, 0.05, chunked(RAIN), 0.05, chunked(DONE), LAST_CHUNK)
    told = ask_of(last)
    kinds = [type(step).__name__ for step in told.steps]
    assert kinds[:2] == ["Sent", "Head"]
    assert set(kinds[2:-1]) == {"Read"}
    times = [step.t for step in told.steps]
    assert times == sorted(times)
    assert told.ended == ("chunked-end", "")
    assert told.body == RAIN + DONE


def test_real_credential_goes_out_and_nothing_else_is_added() -> None:
    """The request on the wire is the one that was told, with the key in place of its mask."""
    seen: list[bytes] = []
    with served(answering(b"HTTP/1.1 204 No Content\r\n\r\n", seen=seen)) as url:
        told = ask(f"{url}/v1?a=b")
    port = url.rpartition(":")[2].encode()
    assert seen == [
        b"POST /v1?a=b HTTP/1.1\r\nhost: 127.0.0.1:" + port + b"\r\n"
        b"authorization: Bearer the-real-key\r\ncontent-length: 2\r\n\r\n{}"
    ]
    assert told.closed.how == "length"


def test_each_read_has_the_time_at_which_it_came() -> None:
    """Pieces that are sent apart are reads apart, and their times are as far apart."""
    told = ask_of(stream(RAIN, 0.1, RAIN, 0.1, DONE), QUICK)
    assert [read.data for read in told.reads] == [RAIN, RAIN, DONE]
    assert [read.at for read in told.reads] == [0, len(RAIN), 2 * len(RAIN)]
    first, second, third = (read.t for read in told.reads)
    assert second - first > 0.05
    assert third - second > 0.05


def test_answer_byte_by_byte_is_the_same_answer() -> None:
    """An answer that is sent byte by byte has the same body and the same end."""
    answer = STREAM_HEAD + chunked(RAIN, DONE) + LAST_CHUNK

    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await read_request(reader)
        for n in range(len(answer)):
            writer.write(answer[n : n + 1])
            await writer.drain()
            await asyncio.sleep(0)

    told = ask_of(slowly, Limits())
    assert told.body == RAIN + DONE
    assert told.closed.how == "chunked-end"


def test_large_request_is_sent_whole() -> None:
    """A request larger than the network takes at once is sent before the answer is waited for."""
    seen: list[bytes] = []
    body = b"x" * (4 << 20)
    with served(answering(0.05, b"HTTP/1.1 204 No Content\r\n\r\n", seen=seen)) as url:
        told = ask(f"{url}/v1", Limits(), body=body)
    assert seen[0].endswith(body)
    assert isinstance(told.steps[0], Sent)


def test_answer_to_a_request_that_is_not_read_is_taken() -> None:
    """An endpoint may answer before it has read all; then nothing is said of when it was sent."""

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.2)

    with served(early) as url:
        told = ask(f"{url}/v1", Limits(), body=b"x" * (16 << 20))
    assert [type(step).__name__ for step in told.steps] == ["Head", "Closed"]


def test_request_that_leaves_after_the_head_came_has_no_time() -> None:
    """Where the head came first, when the request had left would only confuse: it is not told."""

    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.1)
        await reader.readexactly(16 << 20)
        await asyncio.sleep(0.1)
        writer.write(b"x")
        await writer.drain()

    with served(hasty) as url:
        told = ask(f"{url}/v1", Limits(), body=b"x" * (16 << 20))
    assert [type(step).__name__ for step in told.steps] == ["Head", "Read", "Closed"]


def test_redirect_is_an_answer() -> None:
    """A redirect is recorded and not followed."""
    seen: list[bytes] = []
    with served(answering(b"HTTP/1.1 204 No Content\r\n\r\n", seen=seen)) as other:
        redirect = b"HTTP/1.1 307 Go\r\nlocation: %b/\r\ncontent-length: 0\r\n\r\n"
        told = ask_of(answering(redirect % other.encode()))
    assert told.head is not None
    assert told.head.status == 307
    assert seen == []


def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy that the environment names comes between."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    told = ask_of(answering(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert told.error is None
    assert told.closed.how == "length"


# --- how answers end ------------------------------------------------------------------------------


def test_stream_left_open_is_closed_after_the_grace() -> None:
    """A stream that stays open after [DONE] is closed by us, once nothing can follow."""
    told = ask_of(stream(RAIN, DONE, HANG))
    assert told.ended == ("closed-after-done", "")
    assert 0.1 <= told.closed.t - told.reads[-1].t < 1


def test_comments_do_not_prolong_the_grace() -> None:
    """Comments after [DONE] are read, but the grace ends when it ends."""
    told = ask_of(stream(RAIN, DONE, *(b": still here\n\n", 0.03) * 40))
    assert told.ended == ("closed-after-done", "")
    assert b"still here" in told.body
    assert told.closed.t < 1


def test_what_follows_done_is_recorded() -> None:
    """An event within the grace after [DONE] is part of the evidence."""
    told = ask_of(stream(DONE, 0.03, RAIN, HANG))
    assert told.body == DONE + RAIN


def test_done_is_the_data_of_an_event_and_not_a_text() -> None:
    """[DONE] within a text, or without its blank line, ends no stream."""
    for body in (examples.chunk({"content": "[DONE]"}), b"data: [DONE]\n"):
        told = ask_of(stream(body, HANG))
        assert told.ended == ("timeout", "0.2 s without progress")


def test_stream_of_another_type_is_done_too() -> None:
    """A stream that is declared as something else is still closed after its [DONE]."""
    head = STREAM_HEAD.replace(b"text/event-stream", b"text/plain")
    assert ask_of(answering(head + chunked(RAIN, DONE), HANG)).closed.how == "closed-after-done"


def test_cut_within_chunks_is_an_early_end() -> None:
    """A connection that ends between two chunks ended before its answer did."""
    told = ask_of(stream(RAIN))
    assert told.ended == ("eof", "the connection ended before the answer did")
    assert told.body == RAIN


def test_cut_before_the_announced_length_is_an_early_end() -> None:
    """A body shorter than announced is kept as far as it came."""
    told = ask_of(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"))
    assert told.ended == ("eof", "the connection ended before the answer did")
    assert told.body == b"abc"


def test_reset_within_a_stream_is_told() -> None:
    """A connection that breaks is recorded as broken, with what came before."""
    told = ask_of(stream(RAIN, 0.05, RESET))
    assert told.ended == ("reset", "connection reset by the endpoint")
    assert told.body == RAIN


def test_connection_closed_without_an_answer_is_told() -> None:
    """An endpoint that takes the request and hangs up has not answered."""
    told = ask_of(answering())
    assert told.head is None
    assert told.ended == ("eof", "the connection ended without an answer")


def test_broken_chunk_ends_the_exchange() -> None:
    """A chunk of no size is the end, by fault of the endpoint."""
    told = ask_of(answering(STREAM_HEAD + chunked(RAIN) + b"oops\r\n", HANG))
    assert told.ended == ("reset", "broken HTTP: a chunk whose size is no number")
    assert told.body == RAIN


# --- what never ends ------------------------------------------------------------------------------


def test_server_that_says_nothing_is_left() -> None:
    """An endpoint that accepts and says nothing gets the time to a first byte."""
    told = ask_of(silent)
    assert told.ended == ("timeout", "no answer within 0.2 s")
    assert told.closed.t < 1


def test_head_that_does_not_end_is_left() -> None:
    """A head that comes in drips has a time of its own."""
    told = ask_of(answering(b"HTTP/1.1 200 OK\r\n", *(b"x: 1\r\n", 0.03) * 40))
    assert told.head is None
    assert told.ended == ("timeout", "a head not complete within 0.2 s")
    assert told.closed.t < 1


def test_informational_heads_do_not_prolong_the_wait() -> None:
    """Heads of status 1xx are no answer: the time to a first byte runs on."""
    told = ask_of(answering(*(b"HTTP/1.1 102 Processing\r\n\r\n", 0.03) * 40))
    assert told.ended == ("timeout", "no answer within 0.2 s")


@pytest.mark.parametrize(
    "head", [STREAM_HEAD, b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"]
)
def test_silence_after_the_head_is_left(head: bytes) -> None:
    """An endpoint that sends its head and then nothing is cut."""
    told = ask_of(answering(head, HANG))
    assert told.head is not None
    assert told.ended == ("timeout", "0.2 s without progress")


def test_stream_of_comments_is_silent() -> None:
    """Comments keep a dead generation looking alive; they are no progress (scenario Q033)."""
    told = ask_of(stream(RAIN, *(b": keepalive\n\n", 0.05) * 40))
    assert told.ended == ("timeout", "0.2 s without progress")
    assert told.closed.t < 1
    assert b"keepalive" in told.body


def test_events_are_progress() -> None:
    """A stream whose events come slowly, but within the silence, is read to its end."""
    told = ask_of(stream(*(RAIN, 0.1) * 4, DONE, HANG))
    assert told.closed.how == "closed-after-done"


def test_bytes_of_a_plain_answer_are_progress() -> None:
    """A plain answer that comes slowly, but comes, is read to its end."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n"
    told = ask_of(answering(head, *(b"1", 0.1) * 4))
    assert told.ended == ("length", "")


def test_end_of_the_run_cuts_an_answer() -> None:
    """When the time of the run is over the exchange ends by it, whatever else it may take."""
    for handler in (silent, answering(STREAM_HEAD, HANG), stream(*(RAIN, 0.02) * 100)):
        told = ask_of(handler, Limits(), seconds=0.3)
        assert told.ended == ("deadline", "the time of the run was over")
        assert told.closed.t < 1


def test_endless_answer_is_cut_and_takes_bounded_memory() -> None:
    """Of 200 MB as many as the limit allows are kept, and no more than those are held."""
    megabyte = b"x" * (1 << 20)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n"
    limits = Limits(answer_bytes=8 << 20)
    with served(answering(head, *[megabyte] * 200)) as url:
        tracemalloc.start()
        told = ask(f"{url}/v1", limits)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert told.ended == ("cancelled", "an answer over 8 MiB")
    assert len(told.body) == 8 << 20
    assert peak < 32 << 20


def test_endless_event_is_cut() -> None:
    """An event that does not end is not read further than one may be long."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    told = ask_of(answering(head, *[b"data: " + b"x" * 65_536] * 40), Limits())
    assert told.ended == ("cancelled", "an event too long to be read")
    assert len(told.body) < 3 << 20


def test_answer_of_exactly_the_limit_is_whole() -> None:
    """The limit is the last length that is allowed."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd"
    assert ask_of(answering(answer), Limits(answer_bytes=4)).ended == ("length", "")
    told = ask_of(answering(answer), Limits(answer_bytes=3))
    assert told.ended == ("cancelled", "an answer over 3 bytes")
    assert told.body == b"abc"
    head, last = answer[:-1], answer[-1:]
    told = ask_of(answering(head, 0.05, last), Limits(answer_bytes=3))
    assert [read.data for read in told.reads] == [b"abc"]


# --- connections that do not come about -----------------------------------------------------------


def test_refused_connection_is_told() -> None:
    """A port on which nothing listens is said to refuse."""
    told = ask(f"http://127.0.0.1:{unused_port()}/v1")
    assert told.ended == ("reset", "connection refused")
    assert told.error is not None
    assert "check that the endpoint runs" in told.error.remedy


def test_address_that_takes_no_connection_is_told() -> None:
    """What else the system says of an address is passed on."""
    told = ask("http://255.255.255.255/v1")
    assert told.closed.how == "reset"
    assert told.closed.detail in ("network is unreachable", "permission denied")


def test_name_without_address_is_told() -> None:
    """A name that does not resolve is named (RFC 6761 keeps .invalid unresolved)."""
    told = ask("http://nonexistent.invalid/v1", Limits())
    assert told.ended == ("reset", "the name nonexistent.invalid cannot be resolved")


def test_name_with_no_address_at_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that finds nothing, and calls that no error, has not resolved the name."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [])
    assert ask("http://gpu.example/v1").closed.detail == "the name gpu.example cannot be resolved"


def test_name_too_long_is_told() -> None:
    """A host that is no name does not resolve either."""
    told = ask(f"http://{'a' * 70}.invalid/v1")
    assert told.closed.how == "reset"
    assert told.closed.detail.endswith("cannot be resolved")


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue refuses on other systems")
def test_connection_that_nobody_accepts_is_left() -> None:
    """Where the network swallows the connection, the time to connect ends it."""
    with socket.socket() as listener, contextlib.ExitStack() as queued:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):  # fill the queue, so that the next one is not taken in
            one = queued.enter_context(socket.socket())
            one.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                one.connect(listener.getsockname())
        told = ask(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    assert told.ended == ("timeout", "no connection within 0.3 s")


def test_second_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a name has two addresses and the first refuses, the second is asked."""
    with served(answering(b"HTTP/1.1 204 No Content\r\n\r\n")) as url:
        port = int(url.rpartition(":")[2])
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2", unused_port())),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert ask(f"http://gpu.example:{port}/v1").closed.how == "length"


def test_hanging_resolver_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that hangs is left when the time to connect is over, and not waited for."""
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(20) and [])
    began = time.monotonic()
    told = ask("http://gpu.example/v1")
    release.set()
    assert told.ended == ("timeout", "no connection within 0.3 s")
    assert time.monotonic() - began < 5


def test_end_of_the_run_cuts_the_wait_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the run has less time than a connection may take, the exchange ends by the run's."""
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(20) and [])
    told = ask("http://gpu.example/v1", seconds=0.1)
    release.set()
    assert told.ended == ("deadline", "the time of the run was over")


def test_ipv6_address_is_asked() -> None:
    """A URL with an IPv6 address works."""
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with served(answering(b"HTTP/1.1 204 No Content\r\n\r\n"), host="::1") as url:
        assert ask(f"{url}/v1").closed.how == "length"


# --- TLS ------------------------------------------------------------------------------------------

GRACEFUL = Limits(connect_seconds=5, first_byte_seconds=5, grace_seconds=0.1)


def test_unknown_authority_is_not_trusted() -> None:
    """A certificate that nobody vouches for ends the exchange before anything is sent."""
    seen: list[bytes] = []
    with served(answering(b"HTTP/1.1 204 No Content\r\n\r\n", seen=seen), secure=True) as url:
        told = ask(f"{url}/v1", GRACEFUL, context=trusted())
    assert told.closed.how == "reset"
    assert re.match("the certificate is not accepted: self.signed", told.closed.detail)
    assert told.error is not None
    assert "--ca FILE" in told.error.remedy
    assert seen == []


def test_given_authority_is_trusted() -> None:
    """With the authority given, names and addresses of its certificate are asked over TLS."""
    handler = answering(STREAM_HEAD, chunked(RAIN, DONE), LAST_CHUNK)
    with served(handler, secure=True) as url:
        told = ask(f"{url}/v1", GRACEFUL, context=trusted(CERTIFICATE))
    assert told.ended == ("chunked-end", "")
    assert told.body == RAIN + DONE


def test_name_that_the_certificate_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate for another name is not accepted, whoever vouches for it."""
    with served(answering(), secure=True) as url:
        port = int(url.rpartition(":")[2])
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        context = trusted(CERTIFICATE)
        told = ask(f"https://gpu.example:{port}/v1", GRACEFUL, context=context)
    assert "gpu.example" in told.closed.detail
    assert told.closed.detail.startswith("the certificate is not accepted: Hostname mismatch")


def test_end_of_an_unframed_body_over_tls() -> None:
    """A body that ends with its connection does so over TLS, too."""
    with served(answering(b"HTTP/1.1 200 OK\r\n\r\nabc"), secure=True) as url:
        told = ask(f"{url}/v1", GRACEFUL, context=trusted(CERTIFICATE))
    assert told.ended == ("eof", "")
    assert told.body == b"abc"


def test_stream_left_open_over_tls_is_closed() -> None:
    """Closing an open stream over TLS does not wait for the endpoint's farewell."""
    with served(answering(STREAM_HEAD, chunked(DONE), HANG), secure=True) as url:
        began = time.monotonic()
        told = ask(f"{url}/v1", GRACEFUL, context=trusted(CERTIFICATE))
    assert told.closed.how == "closed-after-done"
    assert time.monotonic() - began < 5


def test_plain_http_where_tls_was_asked_for() -> None:
    """A server of plain HTTP that answers a TLS greeting is recognised."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.1)

    with served(plain) as url:
        told = ask(f"{url.replace('http', 'https')}/v1", GRACEFUL, context=trusted())
    assert told.closed.detail.startswith("TLS failed: ")
    assert told.error is not None
    assert "http://" in told.error.remedy


def test_silent_server_where_tls_was_asked_for() -> None:
    """A server that never finishes the handshake is left, and the message says what was missing."""
    with served(silent) as url:
        told = ask(f"{url.replace('http', 'https')}/v1", context=trusted())
    assert told.ended == ("timeout", "no TLS handshake within 0.3 s")


def test_connection_closed_in_the_handshake_is_told() -> None:
    """A server that hangs up at the TLS greeting has closed the connection."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    with served(hang_up) as url:
        told = ask(f"{url.replace('http', 'https')}/v1", GRACEFUL, context=trusted())
    assert told.closed.how == "reset"
    assert told.error is not None
    assert "scheme" in told.error.remedy or "http://" in told.error.remedy


def test_tls_where_plain_http_was_asked_for() -> None:
    """A TLS server that answers plain HTTP with an alert is recognised."""
    with served(answering(), secure=True) as url:
        told = ask(f"{url.replace('https', 'http')}/v1", GRACEFUL)
    assert told.head is None
    assert told.closed.how in ("reset", "eof")


# --- cancellation ---------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def cancelled(url: str, told: Told, after: float) -> AsyncIterator[None]:
    """An exchange that is cancelled after some seconds."""
    task = asyncio.create_task(
        exchange(parse_target(url), question(url), None, Limits(), told.steps.append)
    )
    await asyncio.sleep(after)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    yield


@pytest.mark.parametrize("handler", [silent, stream(RAIN, HANG)])
def test_cancelled_exchange_is_closed(handler: Handler) -> None:
    """An exchange that is cancelled tells how it ended, and its connection is gone."""

    async def once(url: str, told: Told) -> None:
        async with cancelled(f"{url}/v1", told, 0.1):
            assert asyncio.all_tasks() == {asyncio.current_task()}

    told = Told()
    with served(handler) as url:
        asyncio.run(once(url, told))
    assert told.ended == ("cancelled", "interrupted")


def test_exchange_cancelled_while_it_connects_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is no connection yet, and the resolver is not waited for."""
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(20) and [])

    async def once(told: Told) -> None:
        async with cancelled("http://gpu.example/v1", told, 0.05):
            release.set()
            await asyncio.sleep(0.05)  # the resolver's late answer goes to nobody

    told = Told()
    asyncio.run(once(told))
    assert told.steps == [told.closed]
    assert told.ended == ("cancelled", "interrupted")


# --- a machine that is busy -----------------------------------------------------------------------


def test_exchange_says_how_long_nothing_was_read() -> None:
    """Where the event loop stood still, the end of the exchange tells for how long."""

    async def once() -> None:
        asking = asyncio.ensure_future(
            exchange(parse_target(url), question(url), None, QUICK, told.steps.append)
        )
        await asyncio.sleep(0.02)
        time.sleep(0.1)  # noqa: ASYNC251 -- it is to stand still
        await asking

    told = Told()
    with served(answering(STREAM_HEAD, 0.05, chunked(RAIN, DONE), LAST_CHUNK)) as base:
        url = f"{base}/v1"
        asyncio.run(once())
    assert told.closed.lag is not None
    assert told.closed.lag >= 0.1
    assert told.ended == ("chunked-end", "")


# --- answers that are left, or read slowly --------------------------------------------------------


@pytest.mark.parametrize("leave_after", [0, 1, 3])
def test_answer_is_left_after_some_events(leave_after: int) -> None:
    """We go as soon as so many events have come; with 0 at the first bytes."""
    steps: list[bytes | float | str] = [RAIN, 0.03]
    told = ask_of(stream(*steps * 20, HANG), leave_after=leave_after)
    assert told.ended == ("left", "")
    assert max(leave_after, 1) <= told.body.count(RAIN) < 20


def test_answer_that_ended_before_is_not_left() -> None:
    """A stream of fewer events than we wait for ends by itself; so does one that is done."""
    whole = answering(STREAM_HEAD, chunked(RAIN, DONE), LAST_CHUNK)
    assert ask_of(whole, leave_after=5).ended == ("chunked-end", "")
    assert ask_of(stream(RAIN + DONE, HANG), leave_after=1).ended == ("closed-after-done", "")


def test_refusal_is_read_to_its_end() -> None:
    """Only an answer of 200 is left: a refusal is what was called for."""
    refusal = answering(b"HTTP/1.1 400 No\r\ncontent-length: 10\r\n\r\n", b"12345", 0.05, b"67890")
    told = ask_of(refusal, leave_after=0)
    assert told.ended == ("length", "")
    assert told.body == b"1234567890"


def test_plain_answer_is_left_at_its_first_bytes() -> None:
    """A plain answer has no events: with 0 it is left when it begins."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n"
    told = ask_of(answering(head, b"12345", HANG), leave_after=0)
    assert told.ended == ("left", "")
    assert told.body == b"12345"


def test_slow_reader_loses_nothing() -> None:
    """Between reads a slow reader rests; all that was sent arrives, later."""
    sent = [examples.chunk({"content": "drop " * 2000}) for _ in range(20)]
    quick = ask_of(answering(STREAM_HEAD, chunked(*sent, DONE), LAST_CHUNK))
    slow = ask_of(answering(STREAM_HEAD, chunked(*sent, DONE), LAST_CHUNK), slow=True)
    assert slow.body == quick.body == b"".join(sent) + DONE
    assert slow.closed.how == "chunked-end"
    assert slow.closed.t > 0.5


def test_slow_reader_ends_with_the_run() -> None:
    """The time of a run is over for a slow reader, too."""
    steps: list[bytes | float | str] = [RAIN, 0.01]
    told = ask_of(stream(*steps * 500), slow=True, seconds=0.3)
    assert told.closed.how == "deadline"
    assert told.closed.t < 5
