"""Shows what was judged: on a terminal, as JSON. Nothing here judges.

    run.py          what was judged: the input of every report
    style.py        how text looks: width, colour, letters that are safe to print
    excerpt.py      the bytes at fault, with carets below them
    sightings.py    findings of one rule, those that are alike taken together
    reasons.py      why a verdict stayed open
    block.py        one rule that is not as it should be
    terminal.py     the report on a terminal
    rule_page.py    the list of rules, and one rule explained
    document.py     the same as JSON

A report is text; who asked for it writes it where it belongs.
"""
