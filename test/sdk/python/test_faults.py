"""Errors as the classes that applications catch."""

import time
import unittest

import openai
from rig import connect, requests, tagged, user


class Faults(unittest.TestCase):
    def setUp(self):
        self.client = connect()

    def caught(self, kind, **body):
        with self.assertRaises(kind) as caught:
            self.client.chat.completions.create(**{"messages": [user("Hello?")], **body})
        return caught.exception

    def test_unknown_skill(self):
        for stream in (False, True):
            with self.subTest(stream=stream):
                name, headers = tagged()
                err = self.caught(
                    openai.BadRequestError, model="hello", stream=stream, extra_body={"skills": ["no-such-skill"]}, extra_headers=headers
                )
                self.assertEqual(
                    (err.status_code, err.param, err.code, err.type), (400, "skills", "skill_not_found", "invalid_request_error")
                )
                for skill in ("no-such-skill", "incident-report", "release-notes", "unit-pricing"):
                    self.assertIn(skill, err.message)
                self.assertEqual(err.body["code"], "skill_not_found")
                self.assertEqual(err.request_id, name, "an error shows the request id")

    def test_more_than_one_choice_with_skills(self):
        err = self.caught(openai.BadRequestError, model="hello", n=2, extra_body={"skills": ["release-notes"]})
        self.assertEqual((err.param, err.code), ("n", "n_with_skills"))

    def test_no_messages(self):
        err = self.caught(openai.BadRequestError, model="hello", messages=[])
        self.assertEqual(err.param, "messages")

    def test_refusals(self):
        for model, kind, code, says in (
            ("rate-limited", openai.RateLimitError, "rate_limit_exceeded", "0 of 60 requests are left"),
            ("unauthorized", openai.AuthenticationError, "invalid_api_key", "opens nothing here"),
            ("no-such-model", openai.NotFoundError, "model_not_found", "no-such-model"),
            ("server-error", openai.InternalServerError, "upstream_error", "502 Bad Gateway"),
            ("cut", openai.InternalServerError, "upstream_error", ""),
        ):
            with self.subTest(model=model):
                err = self.caught(kind, model=model)
                self.assertEqual(err.code, code)
                self.assertIn(says, err.message)
        self.assertEqual(self.caught(openai.RateLimitError, model="rate-limited").response.headers["Retry-After"], "7")

    def test_retry(self):
        began = time.monotonic()
        got = connect(max_retries=2).chat.completions.create(model="limited-once", messages=[user("Hello?")])
        # Without the header the client would come back after half a second.
        self.assertGreater(time.monotonic() - began, 0.9)
        self.assertEqual(got.choices[0].message.content, "Now there is room.")
        self.assertEqual([r["step"] for r in requests("limited-once")], [1, 2])

    def test_broken_streams(self):
        for model, text, says in (("error-in-stream", "I was ", "ran out of memory"), ("cut", None, ""), ("early-end", None, "")):
            with self.subTest(model=model):
                got = ""
                with self.assertRaises(openai.APIError) as caught:
                    for chunk in self.client.chat.completions.create(model=model, messages=[user("Hello?")], stream=True):
                        got += chunk.choices[0].delta.content or ""
                        self.assertIsNone(chunk.choices[0].finish_reason, "it must not look finished")
                self.assertIn(says, caught.exception.message)
                if text is not None:
                    self.assertEqual(got, text)


if __name__ == "__main__":
    unittest.main()
