from taskcheck import need, passes, untouched

untouched("pages.test.js")
passes("node", "--test")
shown = passes("node", "-e", "const p = require('./pages.js'); console.log(p.pageCount(0, 3), p.pageCount(9, 3), p.page([1, 2, 3], 2, 2).join())")
need(shown.split() == ["0", "3", "3"], "0 and 9 entries on pages of 3, and page 2 of 1,2,3, give " + shown)
