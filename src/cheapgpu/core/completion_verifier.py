"""Verifies a plain answer in one call, for programs that pass it on.

The same judgement as `verify` gives of the same body: tests hold the two equal.
"""

from cheapgpu.core.messages import decode_completion


def verify_completion(body: bytes, *, model: str, limit: int) -> list[str]:
    """Return the MUST rules that the body of a plain answer breaks; empty if it is complete.

    `model` is the supplier model id that was sent, `limit` the `max_completion_tokens`.
    Source: profile, "JSON completion" and "Usage and abnormal termination".
    """
    completion = decode_completion(body)
    if completion is None:
        return ["whole/schema"]
    broken = []
    if completion.model != model:
        broken.append("whole/model-echoed")
    if not completion.usage.adds_up:
        broken.append("whole/usage-adds-up")
    if completion.usage.completion_tokens > limit:
        broken.append("whole/usage-within-limit")
    return broken
