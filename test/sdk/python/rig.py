"""What a test needs of its surroundings: see rig in ../rig_test.go.

Start at test_chat.py for answers, at test_faults.py for errors and at
test_talk.py for conversations.
"""

import json
import os
import urllib.parse
import urllib.request
import uuid

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


def talk(model, says):
    """The requests for a model in which a message says something: see talk in
    ../talk_test.go."""
    return _ask("talk", model=model, says=says)


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


def weather(call):
    """The caller's tool."""
    city = json.loads(call.function.arguments)["city"]
    return {"Bergen": "rain, 7 degrees", "Oslo": "clear, 3 degrees", "Tromsø": "snow, 4 degrees"}[city]


def complete(client, streamed, **body):
    """Ask in one of both ways, the second with the client's own helper."""
    if not streamed:
        return client.chat.completions.create(**body)
    with client.chat.completions.stream(**body) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()
