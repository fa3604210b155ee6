import json

from taskcheck import need, text

try:
    have = json.loads(text("config.json"))
except ValueError as problem:
    need(False, "config.json is no JSON: %s" % problem)
want = {"name": "gate", "ports": [80, 443], "owner": 'ops "night" team', "limits": {"rate": 0.5, "burst": 20}, "debug": False, "tags": ["a", "b"]}
need(have == want and list(have) == list(want), "config.json holds %s" % have)
