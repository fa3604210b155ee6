from taskcheck import need, text, untouched

untouched("years.txt")
need("inkroman" in text("years.py"), "years.py does not use inkroman")
need(text("roman.txt").split() == ["MCMLXXXIV", "MMXXIV", "MDCLXVI", "IV"], "roman.txt holds " + text("roman.txt"))
