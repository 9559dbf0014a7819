"""Where an endpoint is: its registered URL, taken apart, and what makes its certificate trusted."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cheapgpu.core.errors import CheapGPUError

_DEFAULT_PORTS = {"http": 80, "https": 443}


class TargetError(CheapGPUError):
    """A URL, or a file of certificates, cannot be used; the message says what to give instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A registered `inference_url`; requests go to it as it stands."""

    url: str
    #: The name or address, without brackets.
    host: str
    port: int
    #: What the request line names: path and query.
    path: str
    #: Whether the connection is secured by TLS.
    secure: bool

    @property
    def address(self) -> str:
        """Host and port, as messages name them."""
        return f"{self._bracketed}:{self.port}"

    @property
    def authority(self) -> str:
        """The value of the Host field (RFC 9110 section 7.2): the usual port is left out."""
        usual = self.port == _DEFAULT_PORTS["https" if self.secure else "http"]
        return self._bracketed if usual else self.address

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_target(url: str) -> Target:
    """Take a full `inference_url` apart (profile, "Request": the registered path is authoritative).

    Raises TargetError if it is no http or https URL of a host, or holds what is never sent: a user,
    a password or a fragment. A message repeats neither.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise TargetError(
            "URL: has a space, a control character or a letter outside ASCII; "
            "write such characters as %XX in the path, and the host as punycode (xn--…)"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise TargetError(f"URL: {error}; give it like https://host:port/path") from None
    if parts.scheme not in _DEFAULT_PORTS:
        found = f"its scheme is {parts.scheme!r}" if "://" in url else "it has no scheme"
        raise TargetError(f"URL: {found}; give the full inference_url, with https:// or http://")
    if parts.username is not None or parts.password is not None:
        raise TargetError("URL: holds a user or a password; leave it out, and give --key-env")
    if not host:
        raise TargetError("URL: names no host; give it like https://host:port/path")
    if port == 0:
        raise TargetError("URL: port 0 cannot be connected to; give 1 to 65535")
    if "#" in url:
        raise TargetError("URL: has a fragment, which is never sent; leave out # and what follows")
    return Target(
        url=url,
        host=host,
        port=port or _DEFAULT_PORTS[parts.scheme],
        path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        secure=parts.scheme == "https",
    )


def trusted(ca: Path | None = None) -> ssl.SSLContext:
    """The TLS settings: certificates verified and names checked, always.

    `ca` is a PEM file of the authorities to trust instead of the system's. Raises TargetError if it
    cannot be read as one.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except ssl.SSLError:
        raise TargetError(f"--ca: {ca} holds no certificate; give a PEM file") from None
    except OSError as error:
        raise TargetError(f"--ca: {ca}: {error.strerror}") from None
    context.set_alpn_protocols(["http/1.1"])
    return context
