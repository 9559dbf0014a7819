"""Asks an endpoint and judges what it answers.

case.py             a case: one request worth sending, as data
answered.py         the cases that must be answered
refused.py          the cases that must be refused
cases.py            all of them, in their order
forecast.py         what each calls for, which rules it feeds, and what it can cost
long_stream.py      what to ask again where a long stream was too short to tell
plan.py             what a run asks, of whom, and what it may take
limits.py           what an exchange and a run may take
target.py           the registered URL, and whose certificates are trusted
connection.py       one connection, every read stamped
framing.py          HTTP/1.1: the request to bytes, the answer's bytes to its parts
timed_exchange.py   one question and all that comes of it, in time
masking.py          takes the key out of what comes back
run.py              the cases in order, some of them at once, judged one by one
events.py           what a run tells those who listen
recording_file.py   a listener that writes the recording
"""
