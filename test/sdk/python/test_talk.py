"""Conversations: what comes back is put back, and the model still has what it
read in rounds that the client never saw."""

import itertools
import unittest

from rig import WEATHER, complete, connect, tagged, user, want_talk, weather

# How applications put an answer back: the object itself, or all its members,
# those without a value too.
PUT_BACK = {
    "the message": lambda message: message,
    "model_dump": lambda message: message.model_dump(),
}


class Conversation:
    """A client that holds its own history."""

    def __init__(self, model, opening, streamed, put_back):
        self.client, self.model, self.streamed, self.put_back = connect(), model, streamed, put_back
        self.messages = [user(opening)]

    def next(self):
        got = complete(self.client, self.streamed, model=self.model, messages=self.messages, tools=[WEATHER])
        self.messages.append(self.put_back(got.choices[0].message))
        return got.choices[0].message

    def say(self, text):
        self.messages.append(user(text))
        return self.next()

    def answer_calls(self, message):
        for call in message.tool_calls:
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(call)})
        return self.next()


class Talks(unittest.TestCase):
    def every_way(self, converse):
        """Hold a conversation buffered and streamed, put back in each way."""
        for streamed, (name, put_back) in itertools.product([False, True], PUT_BACK.items()):
            with self.subTest(streamed=streamed, puts_back=name):
                converse(f"First question of {tagged()[0]}", streamed, put_back)

    def test_a_skill_stays_read(self):
        def converse(opening, streamed, put_back):
            c = Conversation("remembered", opening, streamed, put_back)
            self.assertEqual(c.next().content, "Let me look. \n\n**Act now** comes first – always ✓\n\n")
            self.assertEqual(c.answer_calls(c.say("Second question")).content, "One more page: It snows in Tromsø. ")
            self.assertEqual(c.say("Third question").content, "The next train is the Heron.")
            want_talk(self, "remembered", opening)

        self.every_way(converse)

    def test_a_round_that_is_shared_with_the_host(self):
        def converse(opening, streamed, put_back):
            c = Conversation("shared-round", opening, streamed, put_back)
            self.assertEqual(c.answer_calls(c.next()).content, "Rain in Bergen, snow in Tromsø.")
            self.assertEqual(c.say("Second question").content, "The same again.")
            want_talk(self, "shared-round", opening)

        self.every_way(converse)


if __name__ == "__main__":
    unittest.main()
