"""Stands before a model server and makes its answers conform, honestly."""
