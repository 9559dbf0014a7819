"""Shows what was judged: on a terminal, as a page, for CI servers. Nothing here judges.

    run.py          what was judged: the input of every report
    style.py        how text looks: width, colour, letters that are safe to print
    excerpt.py      the bytes at fault, with carets below them
    sightings.py    findings of one rule, those that are alike taken together
    known.py        failures that are known, and what their list may hold
    reasons.py      why a verdict stayed open, or does not decide the exit code
    block.py        one rule that is not as it should be
    terminal.py     the report on a terminal
    rule_page.py    the list of rules, and one rule explained
    gist.py         one rule in a line, for formats that quote it
    document.py     the same as JSON, by report.schema.json
    junit.py        … as JUnit XML, sarif.py as SARIF, markdown.py as Markdown, badge.py as a badge
    html.py         … as a page to read, made of what is in page/
    comparison.py   two runs compared

A report is text; who asked for it writes it where it belongs.
"""
