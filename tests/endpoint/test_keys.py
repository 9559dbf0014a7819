"""Keys come from variables and files, several at once, and are kept as hashes."""

import hashlib
from pathlib import Path

import pytest

from cheapgpu.endpoint.keys import Keyring, KeyringError, keys_of_environment, keys_of_file

KEY = "a-key-of-a-buyer"
OTHER = "another-key-of-a-buyer"


def digest(key: str) -> str:
    """A key's hash as a file of keys has it."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


@pytest.mark.parametrize(
    ("authorization", "name"),
    [
        (f"Bearer {KEY}", "alice"),
        (f"bearer {KEY}", "alice"),
        (f"Bearer   {OTHER} ", "bob"),
        (f"Bearer {KEY}x", None),
        (f"Basic {KEY}", None),
        (f"Bearer{KEY}", None),
        (f"Bearer {KEY}, Bearer {KEY}", None),
        (KEY, None),
        ("Bearer", None),
        ("", None),
        (None, None),
    ],
)
def test_a_bearer_key_names_its_buyer(authorization: str | None, name: str | None) -> None:
    """RFC 6750: the scheme in any case, the very key; everything else has no name."""
    ring = Keyring(
        [
            ("alice", hashlib.sha256(KEY.encode()).digest()),
            ("bob", hashlib.sha256(OTHER.encode()).digest()),
        ]
    )
    assert ring.name_of(authorization.encode() if authorization is not None else None) == name


def test_a_variable_can_hold_several_keys() -> None:
    """Rotation: the old and the new key are valid at once."""
    ring = Keyring(keys_of_environment("KEYS", {"KEYS": f"{KEY}, {digest(OTHER)}\n"}))
    assert ring.name_of(f"Bearer {KEY}".encode()) == "keys-1"
    assert ring.name_of(f"Bearer {OTHER}".encode()) == "keys-2"
    assert len(ring) == 2


def test_a_file_can_hold_names_hashes_and_comments(tmp_path: Path) -> None:
    """One key a line, as itself or as its hash, with a name or without."""
    file = tmp_path / "keys"
    file.write_text(f"# the keys\nalice {KEY}  # first\n\n{digest(OTHER)}\n")
    ring = Keyring(keys_of_file(file))
    assert ring.name_of(f"Bearer {KEY}".encode()) == "alice"
    assert ring.name_of(f"Bearer {OTHER}".encode()) == "line-4"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no key"),
        ("# none\n", "holds no key"),
        ("short\n", "line 1: a key has 8 to 512"),
        ("a b c\n", "line 1: wanted NAME KEY"),
        ("na/me " + KEY, "line 1: wanted NAME KEY"),
        ("x sha256:12", "64 hexadecimal digits"),
        ("k" * 513, "8 to 512"),
        (f"{KEY}\n" * 10_001, "more than 10000"),
        (f"{KEY}\n" * 80_000, "more than 1048576 bytes"),
    ],
)
def test_a_wrong_file_of_keys_is_refused_without_quoting_it(
    tmp_path: Path, text: str, says: str
) -> None:
    """The message names the line and the remedy, and never repeats what stands there."""
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(KeyringError, match=says) as caught:
        keys_of_file(file)
    assert KEY not in str(caught.value)
    assert "kkk" not in str(caught.value)


def test_missing_and_unreadable_keys_are_refused(tmp_path: Path) -> None:
    """No variable, an empty one, no file, and bytes that are no text."""
    with pytest.raises(KeyringError, match="is not set"):
        keys_of_environment("KEYS", {})
    with pytest.raises(KeyringError, match="is empty"):
        keys_of_environment("KEYS", {"KEYS": " \n"})
    with pytest.raises(KeyringError, match="key 1 of the variable"):
        keys_of_environment("KEYS", {"KEYS": "short"})
    with pytest.raises(KeyringError, match="No such file"):
        keys_of_file(tmp_path / "none")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(KeyringError, match="not UTF-8"):
        keys_of_file(binary)
