"""The registered URL, taken apart."""

from pathlib import Path

import pytest

from cheapgpu.wire.target import TargetError, parse_target, trusted
from tests.check.servers import CERTIFICATE


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("https://gpu.example/v1/chat", "gpu.example", 443, "/v1/chat", "gpu.example"),
        ("http://gpu.example", "gpu.example", 80, "/", "gpu.example"),
        ("http://gpu.example:8000/v1?a=b&c", "gpu.example", 8000, "/v1?a=b&c", "gpu.example:8000"),
        ("https://[::1]:8443/v1", "::1", 8443, "/v1", "[::1]:8443"),
        ("http://[2001:db8::7]/v1", "2001:db8::7", 80, "/v1", "[2001:db8::7]"),
        ("https://gpu.example:443/%C3%A9", "gpu.example", 443, "/%C3%A9", "gpu.example"),
    ],
)
def test_url_is_used_as_it_stands(
    url: str, host: str, port: int, path: str, authority: str
) -> None:
    """Host, port, path and query are those of the URL; the Host field leaves out a usual port."""
    target = parse_target(url)
    assert (target.url, target.host, target.port, target.path) == (url, host, port, path)
    assert target.authority == authority
    assert target.secure == url.startswith("https")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://gpu.example/v1", "scheme is 'ftp'"),
        ("gpu.example/v1", "no scheme"),
        ("https:///v1", "names no host"),
        ("http://gpu.example:0/", "port 0"),
        ("http://gpu.example:70000/", "Port out of range"),
        ("http://[::1/", "Invalid IPv6"),
        ("http://gpu.example/v1#top", "fragment"),
        ("http://gpu.example/v1#", "fragment"),
        ("http://gpu.example/v 1", "space"),
        ("http://gpu.example/v1\n", "control character"),
        ("http://gpü.example/v1", "outside ASCII"),
        ("", "no scheme"),
    ],
)
def test_url_that_cannot_be_asked_is_refused(url: str, problem: str) -> None:
    """A URL that no request can be sent to is refused with what is wrong in it."""
    with pytest.raises(TargetError, match="URL: ") as raised:
        parse_target(url)
    assert problem in str(raised.value)


@pytest.mark.parametrize("url", ["http://ann:hush@gpu.example/", "http://hush@gpu.example/"])
def test_credentials_in_the_url_are_refused_and_not_repeated(url: str) -> None:
    """A user or password in a URL is refused, and the message does not show it."""
    with pytest.raises(TargetError, match="user or a password") as raised:
        parse_target(url)
    assert "hush" not in str(raised.value)


def test_file_of_certificates_must_be_one(tmp_path: Path) -> None:
    """A file for --ca that is missing, or holds no certificate, is refused by its name."""
    with pytest.raises(TargetError, match=r"no\.pem: No such file"):
        trusted(tmp_path / "no.pem")
    (tmp_path / "text.pem").write_text("not a certificate")
    with pytest.raises(TargetError, match=r"text\.pem holds no certificate"):
        trusted(tmp_path / "text.pem")


def test_names_are_always_checked() -> None:
    """Certificates are verified and names checked, with the system's authorities or others."""
    for context in (trusted(), trusted(CERTIFICATE)):
        assert context.check_hostname
        assert context.verify_mode.name == "CERT_REQUIRED"
