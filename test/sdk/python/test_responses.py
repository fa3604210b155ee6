"""The Responses API: answers, the server's memory of them, skills, the caller's
tools, conversations and errors."""

import itertools
import json
import unittest

import openai
from rig import SKIES, WEATHER, connect, gone, tagged, turn, user, want_talk

TOOL = {"type": "function", **WEATHER["function"]}


def ask(client, streamed, **body):
    """Ask in one of both ways, the second with the client's own helper."""
    if not streamed:
        return client.responses.create(**body)
    with client.responses.stream(**body) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def calls(response):
    return [o for o in response.output if o.type == "function_call"]


def results(response):
    return [
        {"type": "function_call_output", "call_id": c.call_id, "output": SKIES[json.loads(c.arguments)["city"]]} for c in calls(response)
    ]


class Conversation:
    """A conversation that the server remembers, or that the client sends anew."""

    def __init__(self, model, streamed, kept):
        self.client, self.model, self.streamed, self.kept = connect(), model, streamed, kept
        self.last, self.input = None, []

    def say(self, *items):
        if self.kept:
            more = {"previous_response_id": self.last.id} if self.last else {}
            self.last = ask(self.client, self.streamed, model=self.model, tools=[TOOL], input=list(items), **more)
            return self.last
        self.input += items
        got = ask(self.client, self.streamed, model=self.model, tools=[TOOL], input=self.input, store=False)
        self.input += [o.model_dump(exclude={"parsed_arguments"}) for o in got.output]
        return got


class Responses(unittest.TestCase):
    def every_way(self, converse):
        for streamed, kept in itertools.product([False, True], repeat=2):
            with self.subTest(streamed=streamed, kept=kept):
                converse(f"First question of {tagged()[0]}", streamed, kept)

    def test_a_skill_stays_read(self):
        def converse(opening, streamed, kept):
            c = Conversation("remembered", streamed, kept)
            self.assertEqual(c.say(user(opening)).output_text, "Let me look. \n\n**Act now** comes first – always ✓\n\n")
            second = c.say(user("Second question"))
            self.assertEqual([o.call_id for o in calls(second)], ["call_weather"])
            self.assertEqual(c.say(*results(second)).output_text, "One more page: It snows in Tromsø. ")
            self.assertEqual(c.say(user("Third question")).output_text, "The next train is the Heron.")
            want_talk(self, "remembered", opening)

        self.every_way(converse)

    def test_a_round_that_is_shared_with_the_host(self):
        def converse(opening, streamed, kept):
            c = Conversation("shared-round", streamed, kept)
            first = c.say(user(opening))
            self.assertEqual([o.call_id for o in calls(first)], ["call_bergen", "call_tromso"], "the host's call does not show")
            self.assertEqual(c.say(*results(first)).output_text, "Rain in Bergen, snow in Tromsø.")
            self.assertEqual(c.say(user("Second question")).output_text, "The same again.")
            want_talk(self, "shared-round", opening)

        self.every_way(converse)

    def test_skills(self):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                name, headers = tagged()
                body = {"skills": ["release-notes"], "skills_discovery": False}
                got = ask(connect(), streamed, model="selected", input="What comes last?", extra_body=body, extra_headers=headers)
                self.assertEqual(got.output_text, "What goes away comes last.")
                self.assertEqual((turn(name)["selected"], turn(name)["advertised"]), ("release-notes", 0))

                name, headers = tagged()
                headers["X-Metier-Skills"] = "release-notes"
                got = ask(connect(), streamed, model="skill-read", input="Notes, please.", extra_headers=headers)
                self.assertEqual(got.output_text, "The notes begin with what changed for the reader.")
                self.assertEqual((got.usage.input_tokens, got.usage.output_tokens, got.usage.total_tokens), (600, 36, 636))
                self.assertEqual(turn(name)["selected"], "release-notes")

    def test_a_response_is_kept_listed_and_deleted(self):
        client = connect()
        made = client.responses.create(model="hello", input="Hello?")
        self.assertEqual(client.responses.retrieve(made.id).output_text, "Good morning, and welcome.")
        items = list(client.responses.input_items.list(made.id))
        self.assertEqual([(i.role, i.content[0].text) for i in items], [("user", "Hello?")])
        client.responses.delete(made.id)
        with self.assertRaises(openai.NotFoundError):
            client.responses.retrieve(made.id)

    def test_errors(self):
        for model, kind, says in (
            ("rate-limited", openai.RateLimitError, "0 of 60 requests are left"),
            ("unauthorized", openai.AuthenticationError, "opens nothing here"),
            ("overflow", openai.BadRequestError, "window holds 4096"),
            ("server-error", openai.InternalServerError, "502"),
            ("no-such-model", openai.NotFoundError, "no-such-model"),
            ("cut", openai.InternalServerError, ""),
        ):
            with self.subTest(model=model):
                with self.assertRaises(kind) as caught:
                    connect().responses.create(model=model, input="Hello?")
                self.assertIn(says, caught.exception.message)
        with self.assertRaises(openai.BadRequestError) as caught:
            connect().responses.create(model="hello", input="Hello?", extra_body={"skills": ["no-such-skill"]})
        self.assertEqual((caught.exception.code, caught.exception.param), ("skill_not_found", "skills"))

    def test_a_stream_that_breaks_off_ends_as_failed(self):
        for model in ("error-in-stream", "cut"):
            with self.subTest(model=model):
                events = list(connect().responses.create(model=model, input="Hello?", stream=True))
                self.assertEqual(events[-1].type, "response.failed")
                self.assertNotIn("response.completed", [e.type for e in events], "it must not look finished")

    def test_a_stream_that_the_client_leaves(self):
        name, headers = tagged()
        stream = connect().responses.create(model="hang", input="Hello?", stream=True, extra_headers=headers)
        for event in stream:
            if event.type == "response.output_text.delta":
                stream.close()
                break
        gone("hang")
        self.assertEqual(turn(name)["outcome"], "cancelled")


if __name__ == "__main__":
    unittest.main()
