"""Ids of attempts and credits: UUIDs of version 7, so that their order is that of their making.

Source: RFC 9562, section 5.7: 48 bits of Unix milliseconds, then version, variant and chance.
"""

import re
import uuid
from typing import Final

_UUID7: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def uuid7(at_us: int, chance: bytes) -> str:
    """Make an id from microseconds since 1970 and ten random bytes."""
    value = (at_us // 1_000 % (1 << 48)) << 80 | int.from_bytes(chance[:10])
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def is_uuid7(text: object) -> bool:
    """Whether a value is an id as `uuid7` makes it: canonical, lower case."""
    return isinstance(text, str) and _UUID7.fullmatch(text) is not None
