"""What a person may want to do otherwise next time, by what a check was answered."""

from urllib.parse import urljoin, urlsplit

from cheapgpu.check.answered import STREAM_LONG
from cheapgpu.core.exchange import Head
from cheapgpu.core.recording import Recording


def remarks(recording: Recording, *, keyed: bool) -> list[str]:
    """Return a line for each likely slip; `keyed` says whether a key was given."""
    answered = [(one, one.head) for one in recording.exchanges if one.head is not None]
    heads = [head for _, head in answered]
    valid = [head for one, head in answered if one.credential == "valid"]
    lines: list[str] = []
    if _all(heads, range(300, 400)):
        lines.append(f"every answer is a redirect, and none is followed{_location(recording)}")
    elif _all(heads, (404, 405)):
        lines.append(f"every answer is {_codes(heads)}; is URL the full inference_url?")
    elif _all(valid, (401, 403)):
        remedy = "is the key right (--key-env)?" if keyed else "give the key with --key-env"
        with_key = "with the key" if keyed else "without a key"
        lines.append(f"every question {with_key} got {_codes(valid)}; {remedy}")
    refused = [
        one.case
        for one, head in answered
        if one.case.startswith(f"{STREAM_LONG.name}-") and head.status in (400, 422)
    ]
    if refused:
        remedy = "if the endpoint admits fewer tokens, give its output ceiling with --ceiling"
        lines.append(f"{refused[0]} was refused; {remedy}")
    return [f"cheapgpu check: {line}" for line in lines]


def _all(heads: list[Head], statuses: range | tuple[int, ...]) -> bool:
    return bool(heads) and all(head.status in statuses for head in heads)


def _codes(heads: list[Head]) -> str:
    return " or ".join(str(status) for status in sorted({head.status for head in heads}))


def _location(recording: Recording) -> str:
    """Where the first redirect leads: no more of its URL than names an endpoint."""
    for one in recording.exchanges:
        location = one.head.header("location") if one.head is not None else None
        if not location:
            continue
        try:
            parts = urlsplit(urljoin(recording.target, location))
            host, port = parts.hostname, parts.port
        except ValueError:
            continue
        if not host or parts.scheme not in ("http", "https"):
            continue
        name = f"[{host}]" if ":" in host else host
        place = f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path}"
        return f"; if it is meant to be asked, give URL as {place}"
    return ""
