"""What a test needs of its surroundings: see rig in ../rig_test.go.

Start at test_chat.py for answers of chat completions, at test_faults.py for
errors, at test_talk.py for conversations, and at test_responses.py and
test_messages.py for the other APIs.
"""

import json
import os
import pathlib
import urllib.parse
import urllib.request
import uuid

from anthropic import Anthropic
from openai import OpenAI


def _need(name):
    value = os.environ.get(name)
    if not value:
        raise RuntimeError(f"{name} is not set: run go test in the folder above, which starts what is needed")
    return value


URL = _need("METIER_URL")
CONTROL = _need("METIER_CONTROL")

# The key is the caller's own: nobody here checks it, and the upstream must get it.
KEY = "caller-key-of-the-python-tests"


def connect(**options):
    return OpenAI(**{"base_url": f"{URL}/v1", "api_key": KEY, "max_retries": 0, **options})


def connect_anthropic(**options):
    return Anthropic(**{"base_url": URL, "api_key": KEY, "max_retries": 0, **options})


def tagged():
    """An id for a request, by which its turn is found in the server's log."""
    name = f"python-{uuid.uuid4()}"
    return name, {"X-Request-Id": name}


def _ask(path, **query):
    with urllib.request.urlopen(f"{CONTROL}/{path}?{urllib.parse.urlencode(query)}") as res:
        return json.load(res)


def turn(request):
    """The server's log line about a request's turn."""
    return _ask("turn", request=request)


def requests(model):
    """What the upstream was asked for a model."""
    return _ask("requests", model=model)


def gone(model):
    """Return when the upstream has seen the connection of such a request go."""
    _ask("gone", model=model)


def talk(model, says):
    """The requests for a model in which a message says something: see talk in
    ../talk_test.go."""
    return _ask("talk", model=model, says=says)


# What the upstream should have been sent over a conversation, by model.
_TALKS = json.loads((pathlib.Path(__file__).parent.parent / "testdata" / "talks.json").read_text("utf-8"))


def want_talk(case, model, opening, rewritten=None):
    """What the upstream was sent over the whole conversation: the steps and no
    other, nothing that it had read already a second time, and at the end the
    model's own bytes and the result of each call. Arguments that a client writes
    anew in a round of its own are given by call."""
    got, want = talk(model, opening), _TALKS[model]
    calls = [{**c, "arguments": (rewritten or {}).get(c["id"], c["arguments"])} for c in want["calls"]]
    case.assertEqual([r["step"] for r in got], want["steps"])
    case.assertEqual([r["lost"] for r in got], [0] * len(got), "no byte is sent differently than before")
    case.assertEqual(got[-1]["calls"], calls)
    case.assertEqual(got[-1]["results"], [c["id"] for c in calls])
    case.assertEqual(got[-1]["answers"], want["answers"])


def user(content):
    return {"role": "user", "content": content}


# The stream helper takes strict tools only.
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "number"}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}


SKIES = {"Bergen": "rain, 7 degrees", "Oslo": "clear, 3 degrees", "Tromsø": "snow, 4 degrees"}


def weather(call):
    """The caller's tool."""
    return SKIES[json.loads(call.function.arguments)["city"]]


def complete(client, streamed, **body):
    """Ask in one of both ways, the second with the client's own helper."""
    if not streamed:
        return client.chat.completions.create(**body)
    with client.chat.completions.stream(**body) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()
