import json

from taskcheck import need, text, untouched

untouched("logs/app-1.log", "logs/app-2.log", "logs/old/app-0.log")
have = json.loads(text("findings.json"))
need(have == {"FATAL": 0, "ERROR": 2, "WARN": 2, "INFO": 5, "slowest": "b1"}, "findings.json holds %s" % have)
