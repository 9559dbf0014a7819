"""Hypothesis: how long a property is looked for a counterexample."""

from hypothesis import settings

# No deadline: a slow machine is no fault of the code. Otherwise Hypothesis's own defaults, which
# are repeatable where CI is set.
settings.register_profile("short", deadline=None)
settings.register_profile("long", deadline=None, max_examples=5_000)
settings.load_profile("short")
