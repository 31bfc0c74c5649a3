"""Check of words: finds what `docs/contributing/words.md` bans.

`identifier_rules` and `text_rules` are the table of what is banned and what to write instead (a `rules.Rule` each), and
`exceptions` is the list of names that we cannot choose. `python_text` and `markdown_text` split a file into passages,
each with the place that rules apply to; `checking` applies the rules to them; `statistics` counts.
"""
