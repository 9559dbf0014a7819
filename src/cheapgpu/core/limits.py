"""The limits of every program, in one table; reaching one is never a pass and never a fault.

They are ours, not the profile's: without them a hostile peer could make a reader keep anything.
"""

from typing import Final

#: One server-sent event, in bytes, from its first line through its blank line.
EVENT_BYTES: Final = 1 << 20
#: Events in one stream.
STREAM_EVENTS: Final = 1_000_000
#: Lines of one stream that belong to no event, such as comments.
STREAM_LINES: Final = 2_000_000
#: The body of an answer, in bytes.
ANSWER_BYTES: Final = 64 << 20
#: The body of a request, in bytes.
REQUEST_BYTES: Final = 1 << 20
#: Nesting of arrays and objects in one JSON text.
JSON_DEPTH: Final = 128
#: The head of a message: bytes, and header fields.
HEAD_BYTES: Final = 32 << 10
HEAD_FIELDS: Final = 100
#: Seconds until a head must have been received.
HEAD_SECONDS: Final = 10.0
#: Seconds until the checker must see the first byte of an answer.
FIRST_BYTE_SECONDS: Final = 30.0
#: Seconds of silence inside an answer; comments do not count as progress.
SILENCE_SECONDS: Final = 120.0
#: Seconds for which a stream is read on after `[DONE]`, so that nothing can follow it.
GRACE_SECONDS: Final = 1.0
#: Different findings of one rule in one exchange that are kept; equal ones are counted.
FINDINGS_KEPT: Final = 20
