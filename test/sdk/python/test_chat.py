"""Answers: buffered and streamed, skills, the caller's own tools, usage."""

import unittest

from rig import KEY, WEATHER, complete, connect, requests, tagged, turn, user, weather


class Answers(unittest.TestCase):
    def setUp(self):
        self.client = connect()

    def test_buffered(self):
        name, headers = tagged()
        got = self.client.chat.completions.create(model="hello", messages=[user("Hello?")], extra_headers=headers)
        self.assertEqual((got.object, got.model, len(got.choices)), ("chat.completion", "hello", 1))
        self.assertRegex(got.id, "^chatcmpl-")
        choice = got.choices[0]
        self.assertEqual((choice.message.role, choice.message.content), ("assistant", "Good morning, and welcome."))
        self.assertEqual(choice.finish_reason, "stop")
        self.assertEqual((got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens), (12, 6, 18))
        self.assertEqual(got._request_id, name, "the request id that was sent comes back")
        self.assertEqual(requests("hello")[0]["header"]["Authorization"], [f"Bearer {KEY}"])

    def test_streamed(self):
        chunks = list(self.client.chat.completions.create(model="hello", messages=[user("Hello?")], stream=True))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks), "Good morning, and welcome.")
        self.assertEqual(len({(c.id, c.created, c.model, c.object) for c in chunks}), 1, "the chunks are of one completion")
        self.assertEqual([c.choices[0].delta.role for c in chunks if c.choices[0].delta.role], ["assistant"])
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason], ["stop"])
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")
        self.assertFalse([c for c in chunks if c.usage], "usage comes only when it is asked for")

    def test_characters_in_pieces(self):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                got = complete(self.client, streamed, model="split-utf8", messages=[user("Greet us.")])
                self.assertEqual(got.choices[0].message.content, "Grüße, 世界 und 🦉.")

    def test_discovery(self):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                name, headers = tagged()
                got = complete(
                    self.client, streamed, model="skill-read", messages=[user("How do we write release notes?")], extra_headers=headers
                )
                self.assertEqual(got.choices[0].message.content, "The notes begin with what changed for the reader.")
                self.assertFalse(got.choices[0].message.tool_calls, "the host's calls don't show")
                logged = turn(name)
                self.assertEqual((logged["outcome"], logged["rounds"], logged["reads"]), ("answered", 2, "release-notes/SKILL.md"))

    def test_skills_by_extra_body(self):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                got = complete(
                    self.client,
                    streamed,
                    model="selected",
                    messages=[user("What comes last?")],
                    extra_body={"skills": ["release-notes"], "skills_discovery": False},
                )
                self.assertEqual(got.choices[0].message.content, "What goes away comes last.")

    def test_usage(self):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                options = {"stream_options": {"include_usage": True}} if streamed else {}
                used = complete(self.client, streamed, model="usage-cached", messages=[user("Notes, please.")], **options).usage
                self.assertEqual((used.prompt_tokens, used.completion_tokens, used.total_tokens), (700, 26, 726))
                self.assertEqual(used.prompt_tokens_details.cached_tokens, 512)

    def test_callers_tool(self):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                messages = [user("How is the weather in Oslo?")]
                first = complete(self.client, streamed, model="caller-tool", messages=messages, tools=[WEATHER]).choices[0]
                self.assertEqual(first.finish_reason, "tool_calls")
                (call,) = first.message.tool_calls
                self.assertEqual((call.id, call.function.name), ("call_weather_1", "get_weather"))
                messages += [first.message, {"role": "tool", "tool_call_id": call.id, "content": weather(call)}]
                second = complete(self.client, streamed, model="caller-tool", messages=messages, tools=[WEATHER]).choices[0]
                self.assertEqual((second.message.content, second.finish_reason), ("It is clear in Oslo.", "stop"))

    def test_models(self):
        listed = [m.id for m in self.client.models.list()]
        self.assertIn("hello", listed)
        self.assertIn("skill-read", listed)
        one = self.client.models.retrieve("hello")
        self.assertEqual((one.id, one.object), ("hello", "model"))


if __name__ == "__main__":
    unittest.main()
