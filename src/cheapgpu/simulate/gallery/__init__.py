"""The faults, as data: one per rule, and those of time, of transport and from public reports."""
