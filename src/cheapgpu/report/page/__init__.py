"""The parts of the HTML report: what each section shows, and the templates that write it.

    safe_text.py      text of a stranger made visible, and cut where it is too long
    allowance.py      how much of everything fits into one page, and what is chosen
    stream_items.py   events, comments and discarded bytes of a stream, in their order
    timeline.py       a stream drawn to scale
    event_table.py    a stream as a table
    byte_view.py      a body as bytes
    fault_excerpt.py  the bytes at fault, and what stands around them
    answer.py         one exchange as a section
    example_diff.py   the good and the bad example of a rule, side by side
    rule_section.py   one rule that is not as it should be
    matrix.py         rules by cases, or by endpoints
    summary.py        what a run proves, what holds, and what was not looked at
    *.html.j2, page.css   the page

`cheapgpu.report.html` puts them together.
"""
