import csv
import io

from taskcheck import need, text, untouched

untouched("people.csv")
rows = list(csv.reader(io.StringIO(text("clean.csv"))))
want = [
    ["name", "mail", "joined"],
    ["Ada Long", "ada@example.test", "2024-02-01"],
    ["Bo", "bo@example.test", "2023-11-30"],
    ["Cruz, Di", "di@example.test", "2025-12-24"],
    ["Eli", "eli@example.test", "2022-10-09"],
]
need(rows == want, "clean.csv holds %s" % rows)
