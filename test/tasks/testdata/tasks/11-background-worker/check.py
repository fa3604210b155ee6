import json

from taskcheck import need, text

need(text("sum.txt").strip() == "15", "sum.txt holds " + text("sum.txt"))
need(json.loads(text("outbox/sum.json")) == {"sum": 15}, "the worker's own answer is not the sum")
need("max(job" not in text("worker.py"), "worker.py still takes the largest number")
