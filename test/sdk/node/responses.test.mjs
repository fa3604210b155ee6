// The Responses API with the official client: answers, the server's memory of them,
// skills, the caller's tools, conversations, errors, and streams that are left.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { caught, collect, connect, gone, skies, tagged, turn, user, wantTalk, weather } from './rig.mjs';

const client = connect();
const tool = { type: 'function', strict: false, ...weather.function };

// ways are how a response is asked for.
const ways = {
  buffered: (body, options) => client.responses.create(body, options),
  streamed: async (body, options) => {
    const stream = client.responses.stream(body, options);
    const events = await collect(stream);
    wellFormed(events);
    return stream.finalResponse();
  },
};

// wellFormed holds what a client may rely on in any stream that ended well.
function wellFormed(events) {
  assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => i), 'events are numbered from 0 without gaps');
  assert.equal(events[0].type, 'response.created');
  assert.equal(events.at(-1).type, 'response.completed');
  assert.equal(events.filter((e) => /^response\.(completed|failed|incomplete)$/.test(e.type)).length, 1, 'it ends once');
  const added = events.filter((e) => e.type === 'response.output_item.added').map((e) => e.output_index);
  const done = events.filter((e) => e.type === 'response.output_item.done').map((e) => e.output_index);
  assert.deepEqual(added, added.map((_, i) => i), 'items come in order');
  assert.deepEqual([...done].sort((a, b) => a - b), added, 'and each is done');
  const { response } = events.at(-1);
  assert.equal(response.id, events[0].response.id);
  assert.equal(response.output.length, added.length);
  const deltas = events.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join('');
  const whole = response.output.flatMap((o) => (o.type === 'message' ? o.content : [])).map((c) => c.text).join('');
  assert.equal(deltas, whole, 'the text is that of the deltas');
}

const calls = (response) => response.output.filter((o) => o.type === 'function_call');
const results = (response) => calls(response).map((c) => ({
  type: 'function_call_output', call_id: c.call_id, output: skies[JSON.parse(c.arguments).city],
}));

for (const [way, ask] of Object.entries(ways)) {
  // memories are how a conversation goes on: the server has it, or the client sends
  // back all that it got.
  const memories = {
    'the server remembers': (model, opening) => {
      let last;
      return async (input) => {
        last = await ask({ model, tools: [tool], input: input ?? opening, previous_response_id: last?.id });
        return last;
      };
    },
    'the client remembers': (model, opening) => {
      const input = [];
      return async (more) => {
        input.push(...(Array.isArray(more) ? more : [user(more ?? opening)]));
        const answer = await ask({ model, tools: [tool], input, store: false });
        input.push(...answer.output);
        return answer;
      };
    },
  };

  for (const [memory, converse] of Object.entries(memories)) {
    test(`a skill stays read, ${way}, ${memory}`, async () => {
      const opening = `First question of ${tagged().id}`;
      const say = converse('remembered', opening);
      assert.equal((await say()).output_text, 'Let me look. \n\n**Act now** comes first – always ✓\n\n');
      const second = await say('Second question');
      assert.equal(calls(second)[0].call_id, 'call_weather');
      assert.equal((await say(results(second))).output_text, 'One more page: It snows in Tromsø. ');
      assert.equal((await say('Third question')).output_text, 'The next train is the Heron.');
      await wantTalk('remembered', opening);
    });

    test(`a round that is shared with the host, ${way}, ${memory}`, async () => {
      const opening = `First question of ${tagged().id}`;
      const say = converse('shared-round', opening);
      const first = await say();
      assert.deepEqual(calls(first).map((c) => c.call_id), ['call_bergen', 'call_tromso'], "the host's call does not show");
      assert.equal((await say(results(first))).output_text, 'Rain in Bergen, snow in Tromsø.');
      assert.equal((await say('Second question')).output_text, 'The same again.');
      await wantTalk('shared-round', opening);
    });
  }

  test(`skills by a field of the body, ${way}`, async () => {
    const { id, headers } = tagged();
    const answer = await ask({ model: 'selected', input: 'What comes last?', skills: ['release-notes'], skills_discovery: false }, { headers });
    assert.equal(answer.output_text, 'What goes away comes last.');
    assert.equal(answer.status, 'completed');
    const logged = await turn(id);
    assert.equal(logged.selected, 'release-notes');
    assert.equal(logged.advertised, 0);
    assert.equal(logged.reads, 'release-notes/SKILL.md');
  });

  test(`skills by a header, ${way}`, async () => {
    const { id, headers } = tagged();
    const answer = await ask({ model: 'skill-read', input: 'Notes, please.' }, { headers: { ...headers, 'X-Metier-Skills': 'release-notes' } });
    assert.equal(answer.output_text, 'The notes begin with what changed for the reader.');
    assert.deepEqual([answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens], [600, 36, 636]);
    assert.equal((await turn(id)).selected, 'release-notes');
  });
}

test('a response is kept, listed and deleted', async () => {
  const made = await client.responses.create({ model: 'hello', instructions: 'Be kind.', input: 'Hello?', metadata: { a: 'b' } });
  assert.equal(made.object, 'response');
  assert.match(made.id, /^resp_/);
  const got = await client.responses.retrieve(made.id);
  assert.equal(got.output_text, 'Good morning, and welcome.');
  assert.deepEqual(got.output, made.output);
  assert.deepEqual(got.metadata, { a: 'b' });
  const items = await collect(await client.responses.inputItems.list(made.id));
  assert.equal(items.length, 1);
  assert.equal(items[0].role, 'user');
  assert.equal(items[0].content[0].text, 'Hello?');
  await client.responses.delete(made.id);
  assert.ok(await caught(client.responses.retrieve(made.id)) instanceof OpenAI.NotFoundError);
  const err = await caught(client.responses.create({ model: 'hello', input: 'Hello?', previous_response_id: made.id }));
  assert.ok(err instanceof OpenAI.APIError, `${err}`);
  assert.equal(err.code, 'previous_response_not_found');
});

test('a response that is not to be kept is not', async () => {
  const made = await client.responses.create({ model: 'hello', input: 'Hello?', store: false });
  assert.ok(await caught(client.responses.retrieve(made.id)) instanceof OpenAI.NotFoundError);
});

test('in the background', async () => {
  const begun = await client.responses.create({ model: 'hello', input: 'Hello?', background: true });
  let now = begun;
  for (let i = 0; i < 200 && ['queued', 'in_progress'].includes(now.status); i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    now = await client.responses.retrieve(begun.id);
  }
  assert.equal(now.status, 'completed');
  assert.equal(now.output_text, 'Good morning, and welcome.');
});

test('in the background, and cancelled', async () => {
  const begun = await client.responses.create({ model: 'hang', input: 'Hello?', background: true });
  const now = await client.responses.cancel(begun.id);
  assert.equal(now.status, 'cancelled');
});

test('what the model thinks is an item of its own', async () => {
  const answer = await ways.streamed({ model: 'reasoning', input: 'A number?', reasoning: { effort: 'low', summary: 'auto' } });
  assert.equal(answer.output_text, 'The number is seven.');
  assert.ok(answer.output.some((o) => o.type === 'reasoning'), JSON.stringify(answer.output));
});

const create = (body, options) => client.responses.create({ input: 'Hello?', ...body }, options);

test('errors are the classes that applications catch', async () => {
  const { id, headers } = tagged();
  const unknown = await caught(create({ model: 'hello', skills: ['no-such-skill'] }, { headers }));
  assert.ok(unknown instanceof OpenAI.BadRequestError, `${unknown}`);
  assert.equal(unknown.code, 'skill_not_found');
  assert.equal(unknown.param, 'skills');
  assert.equal(unknown.requestID, id);
  for (const [model, kind, says] of [
    ['rate-limited', OpenAI.RateLimitError, /0 of 60 requests are left/],
    ['unauthorized', OpenAI.AuthenticationError, /opens nothing here/],
    ['overflow', OpenAI.BadRequestError, /window holds 4096/],
    ['server-error', OpenAI.InternalServerError, /502/],
    ['no-such-model', OpenAI.NotFoundError, /no-such-model/],
    ['cut', OpenAI.InternalServerError, /./],
  ]) {
    const err = await caught(create({ model }));
    assert.ok(err instanceof kind, `${model}: ${err}`);
    assert.match(err.message, says);
  }
  assert.ok(await caught(client.responses.retrieve('resp_none')) instanceof OpenAI.NotFoundError);
});

test('a stream that breaks off ends as failed', async () => {
  for (const model of ['error-in-stream', 'cut']) {
    const events = await collect(await create({ model, stream: true }));
    assert.equal(events.at(-1).type, 'response.failed');
    assert.equal(events.at(-1).response.status, 'failed');
    assert.ok(events.at(-1).response.error.message);
    assert.ok(!events.some((e) => e.type === 'response.completed'), 'it must not look finished');
  }
});

test('a stream that the client leaves', async () => {
  const { id, headers } = tagged();
  const stream = await create({ model: 'hang', stream: true }, { headers });
  for await (const event of stream) if (event.type === 'response.output_text.delta') stream.controller.abort();
  await gone('hang');
  assert.equal((await turn(id)).outcome, 'cancelled');
});
