"""Bytes on sockets: HTTP/1.1 for both sides, with no knowledge of the rules of the profile."""
