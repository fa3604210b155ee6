from taskcheck import need, text, untouched

untouched("menu.json")
need("padlines" in text("format.mjs"), "format.mjs does not use padlines")
want = ["Soup................4.20", "Apple pie...........3.80"]
need(text("menu.txt").splitlines() == want, "menu.txt holds " + text("menu.txt"))
