"""Bytes in, judgements out: no sockets, no clock, no files."""
