"""Endpoints that are wrong on purpose, one per rule, and one that is right.

model.py      the scripted model: deterministic text, honest counts
asked.py      a request, read leniently, with the rule that it should be refused by
answer.py     what is answered, as data, and its bytes on the wire
endpoint.py   the right endpoint; each stage of it can be changed by a fault
gallery/      the faults, as data
faults.py     every fault by its name
server.py     plays answers over HTTP/1.1, in their time
"""
