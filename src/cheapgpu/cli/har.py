"""Reads HTTP archives (HAR 1.2) as browsers and proxies save them.

An archive holds bodies whole and decoded, with no time of any read and no word on how they ended.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Struct, field

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.core.exchange import Closed, Exchange, Head, Headers, Read, Request


class HarError(CheapGPUError):
    """An archive that cannot be judged, or that does not keep what was answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The exchanges of an archive, and where and when the first of them was made."""

    exchanges: tuple[Exchange, ...]
    target: str
    started: str | None


class _Field(Struct):
    name: str
    value: str = ""


class _Posted(Struct, rename="camel"):
    text: str = ""
    mime_type: str = ""


class _Content(Struct):
    size: float = 0
    text: str | None = None
    encoding: str = ""


class _Request(Struct, rename="camel"):
    method: str
    url: str
    headers: list[_Field] = field(default_factory=list)
    post_data: _Posted | None = None


class _Response(Struct):
    status: int
    headers: list[_Field] = field(default_factory=list)
    content: _Content = field(default_factory=_Content)


class _Entry(Struct, rename="camel"):
    request: _Request
    response: _Response
    time: float | None = None
    started_date_time: str | None = None


class _Log(Struct):
    entries: list[_Entry]


class _Har(Struct):
    log: _Log


_decode: Final = msgspec.json.Decoder(_Har).decode


def read_har(data: bytes) -> Archive:
    """Return the exchanges of an archive: one for each entry whose request is a POST.

    Raises HarError for what is no archive, has no such entry, or kept none of an answer's body.
    """
    try:
        entries = _decode(data.removeprefix(b"\xef\xbb\xbf")).log.entries
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HarError(f"not a HAR: {error}") from None
    numbered = [(n, entry) for n, entry in enumerate(entries, 1) if entry.request.method == "POST"]
    if not numbered:
        raise HarError("the HAR has no entry of a POST request; chat requests are POST")
    # What stands behind `?` may be a key.
    urls = list(dict.fromkeys(entry.request.url.partition("?")[0] for _, entry in numbered))
    others = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
    return Archive(
        exchanges=tuple(_exchange(number, entry) for number, entry in numbered),
        target=urls[0] + others,
        started=numbered[0][1].started_date_time,
    )


def _exchange(number: int, entry: _Entry) -> Exchange:
    case = f"entry-{number}"
    sent = entry.request
    posted = sent.post_data or _Posted()
    request = Request(
        method=sent.method,
        url=sent.url,
        headers=_request_headers(sent.headers, posted),
        body=posted.text.encode(errors="surrogatepass"),
    )
    seconds = max(entry.time or 0.0, 0.0) / 1000
    if entry.response.status == 0:  # browsers write this where no answer came
        closed = Closed(t=seconds, how="reset", detail="the HAR has no answer")
        return Exchange(case=case, request=request, closed=closed)
    body = _body(number, entry.response.content)
    return Exchange(
        case=case,
        request=request,
        head=Head(
            t=0.0, status=entry.response.status, headers=_answer_headers(entry, sent.headers)
        ),
        reads=(Read(t=0.0, at=0, data=body),) if body else (),
        closed=Closed(t=seconds, how="unstated"),
        timed=False,
    )


def _body(number: int, content: _Content) -> bytes:
    text = content.text
    if text is None:
        if content.size > 0:
            raise HarError(f"entry {number}: the body was not kept; save the HAR with content")
        return b""
    if content.encoding == "base64":
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise HarError(f"entry {number}: content.text is not base64") from None
    return text.encode(errors="surrogatepass")


def _request_headers(headers: list[_Field], posted: _Posted) -> Headers:
    """What is judged of the request's head: how it declares its body. Credentials stay behind."""
    declared = _value(headers, "content-type") or posted.mime_type
    return (("content-type", declared),) if declared else ()


def _answer_headers(entry: _Entry, asked: list[_Field]) -> Headers:
    """The answer's header fields, without a coding that was asked for: it is undone here."""
    accepted = _value(asked, "accept-encoding").lower()
    headers = [(one.name.lower(), one.value) for one in entry.response.headers]
    return tuple(
        (name, value)
        for name, value in headers
        if name != "content-encoding" or value.strip().lower() not in accepted
    )


def _value(headers: list[_Field], name: str) -> str:
    return next((one.value for one in headers if one.name.lower() == name), "")
