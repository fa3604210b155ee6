"""The Messages API: answers, skills, the caller's tools, conversations, counting,
models and errors."""

import json
import unittest
import urllib.request

import anthropic
from rig import KEY, SKIES, URL, WEATHER, connect_anthropic, gone, requests, tagged, turn, user, want_talk

TOOL = {
    "name": "get_weather",
    "description": WEATHER["function"]["description"],
    "input_schema": WEATHER["function"]["parameters"],
}


def ask(client, streamed, **body):
    """Ask in one of both ways, the second with the client's own helper."""
    body = {"max_tokens": 512, **body}
    if not streamed:
        return client.messages.create(**body)
    with client.messages.stream(**body) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


def text(message):
    return "".join(b.text for b in message.content if b.type == "text")


def uses(message):
    return [b for b in message.content if b.type == "tool_use"]


def results(message):
    return user([{"type": "tool_result", "tool_use_id": b.id, "content": SKIES[b.input["city"]]} for b in uses(message)])


class Conversation:
    """A client that holds its own history."""

    def __init__(self, model, streamed):
        self.client, self.model, self.streamed, self.messages = connect_anthropic(), model, streamed, []

    def say(self, message):
        self.messages.append(message)
        got = ask(self.client, self.streamed, model=self.model, messages=self.messages, tools=[TOOL])
        self.messages.append({"role": "assistant", "content": got.content})
        return got


class Messages(unittest.TestCase):
    def both_ways(self, converse):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                converse(f"First question of {tagged()[0]}", streamed)

    def test_a_skill_stays_read(self):
        def converse(opening, streamed):
            c = Conversation("remembered", streamed)
            first = c.say(user(opening))
            self.assertEqual(text(first), "Let me look. \n\n**Act now** comes first – always ✓\n\n")
            self.assertEqual(first.stop_reason, "end_turn")
            second = c.say(user("Second question"))
            self.assertEqual(second.stop_reason, "tool_use")
            self.assertEqual([(b.name, b.input) for b in uses(second)], [("get_weather", {"city": "Tromsø", "days": 2})])
            self.assertEqual(text(c.say(results(second))), "One more page: It snows in Tromsø. ")
            self.assertEqual(text(c.say(user("Third question"))), "The next train is the Heron.")
            # The call in which the host had no part goes back as this client writes it.
            want_talk(self, "remembered", opening, {"call_weather": '{"city":"Tromsø","days":2.0}'})

        self.both_ways(converse)

    def test_a_round_that_is_shared_with_the_host(self):
        def converse(opening, streamed):
            c = Conversation("shared-round", streamed)
            first = c.say(user(opening))
            self.assertEqual([b.id for b in uses(first)], ["call_bergen", "call_tromso"], "the host's call does not show")
            self.assertEqual(text(c.say(results(first))), "Rain in Bergen, snow in Tromsø.")
            self.assertEqual(text(c.say(user("Second question"))), "The same again.")
            want_talk(self, "shared-round", opening)

        self.both_ways(converse)

    def test_skills(self):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                name, headers = tagged()
                body = {"skills": ["release-notes"], "skills_discovery": False}
                got = ask(
                    connect_anthropic(), streamed, model="selected", messages=[user("What comes last?")], extra_body=body, extra_headers=headers
                )
                self.assertEqual(text(got), "What goes away comes last.")
                self.assertEqual((turn(name)["selected"], turn(name)["advertised"]), ("release-notes", 0))

                name, headers = tagged()
                headers["X-Metier-Skills"] = "release-notes"
                got = ask(connect_anthropic(), streamed, model="skill-read", messages=[user("Notes, please.")], extra_headers=headers)
                self.assertEqual(text(got), "The notes begin with what changed for the reader.")
                self.assertEqual((got.usage.input_tokens, got.usage.output_tokens), (600, 36))
                self.assertEqual(turn(name)["selected"], "release-notes")

    def test_tokens_and_models(self):
        client = connect_anthropic()
        few = client.messages.count_tokens(model="hello", messages=[user("Hello?")]).input_tokens
        more = client.messages.count_tokens(model="hello", messages=[user("Hello? " * 200)]).input_tokens
        self.assertGreater(more, few + 100)
        self.assertIn("hello", [m.id for m in client.models.list()])
        self.assertEqual(client.models.retrieve("hello").id, "hello")
        with self.assertRaises(anthropic.NotFoundError):
            client.models.retrieve("no-such-model")

    def test_errors(self):
        for model, kind, says in (
            ("rate-limited", anthropic.RateLimitError, "0 of 60 requests are left"),
            ("unauthorized", anthropic.AuthenticationError, "opens nothing here"),
            ("overflow", anthropic.BadRequestError, "window holds 4096"),
            ("server-error", anthropic.InternalServerError, "502"),
            ("no-such-model", anthropic.NotFoundError, "no-such-model"),
            ("cut", anthropic.InternalServerError, ""),
        ):
            with self.subTest(model=model):
                with self.assertRaises(kind) as caught:
                    ask(connect_anthropic(), False, model=model, messages=[user("Hello?")])
                self.assertIn(says, caught.exception.message)
        name, headers = tagged()
        with self.assertRaises(anthropic.BadRequestError) as caught:
            ask(
                connect_anthropic(), False, model="hello", messages=[user("Hello?")], extra_body={"skills": ["no-such-skill"]},
                extra_headers=headers,
            )
        self.assertIn("no-such-skill", caught.exception.message)
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        self.assertEqual(caught.exception.body["request_id"], name)

    def test_broken_streams(self):
        for model in ("error-in-stream", "cut"):
            with self.subTest(model=model), self.assertRaises(anthropic.APIError):
                ask(connect_anthropic(), True, model=model, messages=[user("Hello?")])

    def test_the_version_before(self):
        """A program that speaks the older version, with the header that its key has
        always come in."""
        name, headers = tagged()
        body = {"model": "hello", "max_tokens": 64, "temperature": 0.5, "messages": [user(f"Hello from {name}?")]}
        req = urllib.request.Request(
            f"{URL}/v1/messages",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": KEY, **headers},
        )
        with urllib.request.urlopen(req) as res:
            got = json.load(res)
        self.assertEqual((got["type"], got["stop_reason"]), ("message", "end_turn"))
        self.assertEqual(got["content"], [{"type": "text", "text": "Good morning, and welcome."}])
        asked = next(r for r in requests("hello") if name in json.dumps(r["body"]))
        self.assertEqual(asked["header"]["Authorization"], [f"Bearer {KEY}"])
        self.assertEqual(asked["body"]["temperature"], 0.5)

    def test_a_stream_that_the_client_leaves(self):
        name, headers = tagged()
        stream = connect_anthropic().messages.create(
            model="hang", max_tokens=64, messages=[user("Hello?")], stream=True, extra_headers=headers
        )
        for event in stream:
            if event.type == "content_block_delta":
                stream.close()
                break
        gone("hang")
        self.assertEqual(turn(name)["outcome"], "cancelled")


if __name__ == "__main__":
    unittest.main()
