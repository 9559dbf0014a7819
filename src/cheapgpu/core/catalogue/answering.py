"""`error/` and `whole/`: the body of a refusal, and the plain answer."""

from typing import Final

from cheapgpu.core.catalogue.rule import Level, Rule
from cheapgpu.core.examples import (
    USAGE,
    WHOLE,
    WHOLE_REQUEST,
    at_once,
    completion,
    error,
    request,
    response,
)

_ERROR_BODY: Final = b'{"error":{"message":"not in the profile","type":"invalid_request_error"}}'


def _error(  # noqa: PLR0913 -- the fields of a rule
    name: str,
    sentence: str,
    why: str,
    bad: bytes,
    *,
    level: Level = "MUST",
    citation: str = "profile § Usage and abnormal termination ¶2",
    judge: str = "refusals.judge_error_body",
) -> Rule:
    return Rule(
        id=f"error/{name}",
        level=level,
        sentence=sentence,
        why=why,
        citation=citation,
        judge=judge,
        request=request(temperature=0),
        good=at_once(error()),
        bad=at_once(bad),
    )


ERROR: Final = (
    _error(
        "status",
        "The status fits the request that was sent; a fault of the request is never 5xx.",
        "A client that sees 5xx tries again; one that sees 400 looks at its request.",
        error(500),
        citation="profile § Request ¶4",
        judge="refusals.judge_admission",
    ),
    _error(
        "json",
        "A refusal whose body is declared JSON is JSON.",
        "A client that cannot read why it was refused cannot mend its request.",
        response(_ERROR_BODY[:-1], status=400),
    ),
    _error(
        "schema",
        "A refusal that is JSON matches the error schema.",
        "Clients read error.message, error.type and a code that is text; others get nothing.",
        response(_ERROR_BODY.replace(b'_error"', b'_error","code":400'), status=400),
    ),
    _error(
        "content-type",
        "The body of a refusal is application/json.",
        "An error page of a proxy tells a program nothing.",
        response(b"Bad Request", "text/plain", status=400),
        level="SHOULD",
    ),
)

_ANSWER: Final = "profile § JSON completion ¶1"


def _whole(  # noqa: PLR0913 -- the fields of a rule
    name: str, sentence: str, why: str, judge: str, bad: bytes, *, citation: str = _ANSWER
) -> Rule:
    return Rule(
        id=f"whole/{name}",
        sentence=sentence,
        why=why,
        citation=citation,
        judge=judge,
        request=WHOLE_REQUEST,
        good=at_once(WHOLE),
        bad=at_once(bad),
    )


_BODY: Final = completion()
_USAGE: Final = "profile § Usage and abnormal termination ¶1"

WHOLE_RULES: Final = (
    _whole(
        "status",
        "A plain answer has status 200.",
        "Other statuses of success mean something else to a client.",
        "answers.judge_head",
        response(_BODY, status=201),
    ),
    _whole(
        "content-type",
        "Its media type is application/json.",
        "Clients choose their parser by it.",
        "answers.judge_head",
        response(_BODY, "text/plain"),
    ),
    _whole(
        "content-encoding",
        "It has no content coding that was not asked for.",
        "A client that did not ask for gzip cannot read it.",
        "answers.judge_head",
        response(_BODY).replace(b"content-length", b"content-encoding: gzip\r\ncontent-length"),
        citation="RFC 9110 § 12.5.3 · our reading",
    ),
    _whole(
        "body-complete",
        "The body ends as its framing says.",
        "Half an answer is not an answer, even if the half is valid JSON.",
        "answers.judge_whole",
        response(_BODY)[:-20],
        citation="profile § Usage and abnormal termination ¶2 · RFC 9112 § 8",
    ),
    _whole(
        "json",
        "The body is one strict JSON object.",
        "Two readers must not see two answers, or two usages, in the same bytes.",
        "answers.judge_whole",
        response(_BODY[:-1] + b',"created":1767225600}'),
        citation="profile § JSON completion ¶1 · RFC 8259",
    ),
    _whole(
        "schema",
        "The body matches the completion schema.",
        "One choice of text, why it ended, and what it cost: less cannot be billed.",
        "answers.judge_whole",
        response(completion(usage=...)),
    ),
    _whole(
        "model-echoed",
        "The model is the supplier model id that was sent.",
        "Another name means another model, or at least that nobody can tell.",
        "answers.judge_whole",
        response(completion(model="another-model")),
    ),
    _whole(
        "usage-adds-up",
        "total_tokens is prompt_tokens plus completion_tokens.",
        "Where the sum is wrong, at least one of the three numbers is.",
        "answers.judge_whole",
        response(completion(usage=USAGE | {"total_tokens": 99})),
        citation=_USAGE,
    ),
    _whole(
        "usage-within-limit",
        "completion_tokens is at most the max_completion_tokens that was sent.",
        "The limit bounds what was admitted; a count beyond it cannot be charged.",
        "answers.judge_whole",
        response(
            completion(usage={"prompt_tokens": 12, "completion_tokens": 65, "total_tokens": 77})
        ),
        citation="profile § Request ¶3 · our reading",
    ),
)
