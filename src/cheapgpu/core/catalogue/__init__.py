"""The rules in the profile's order, each under its citation, with the bytes that explain it."""
