import xml.etree.ElementTree as tree

from taskcheck import data, need, passes, untouched

untouched("sales.csv")
need(b"csv" in data("chart.py"), "chart.py does not read the sales")
try:
    root = tree.fromstring(data("chart.svg"))
except tree.ParseError as problem:
    need(False, "chart.svg is no XML: %s" % problem)
bars = [e for e in root.iter() if e.tag.endswith("rect") and e.get("class") == "bar"]
need(len(bars) == 3, "chart.svg has %d bars, not one for each of 3 months" % len(bars))
heights = [float(bar.get("height")) for bar in bars]
for height, share in zip(heights, (2 / 3, 1 / 3, 1)):
    need(abs(height / max(heights) - share) < 0.01, "the heights %s are not in proportion to 200, 100 and 300" % heights)
labels = [e.text.strip() for e in root.iter() if e.tag.endswith("text") and e.text]
need(len(labels) >= 3, "months are not written below the bars")
