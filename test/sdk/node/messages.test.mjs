// The Messages API with the official client: answers, skills, the caller's tools,
// conversations, counting, models, errors, and streams that are left. Today's client
// speaks version 2026-10-21 and sends its key as a bearer token; the one from before
// that speaks 2023-06-01 and sends x-api-key, and is in use for as long as anybody has
// it installed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import AnthropicOf2023 from 'anthropic-sdk-2023';
import { apiKey, caught, collect, connectAnthropic, gone, requests, skies, tagged, turn, url, user, wantTalk, weather } from './rig.mjs';

const client = connectAnthropic();
const clients = {
  '2026-10-21': client,
  '2023-06-01': new AnthropicOf2023({ apiKey, authToken: null, baseURL: url, maxRetries: 0 }),
};

const tool = { name: weather.function.name, description: weather.function.description, input_schema: weather.function.parameters };
const textOf = (message) => message.content.map((b) => b.text ?? '').join('');
const uses = (message) => message.content.filter((b) => b.type === 'tool_use');
const results = (message) => ({
  role: 'user',
  content: uses(message).map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: skies[b.input.city] })),
});

for (const [version, speaker] of Object.entries(clients)) {
  // ways are how a message is asked for.
  const ways = {
    buffered: (body, options) => speaker.messages.create({ max_tokens: 512, ...body }, options),
    streamed: async (body, options) => {
      const stream = speaker.messages.stream({ max_tokens: 512, ...body }, options);
      wellFormed(await collect(stream));
      return stream.finalMessage();
    },
  };

  for (const [way, ask] of Object.entries(ways)) {
    // converse is a client that holds its own history, as all clients of messages do.
    const converse = (model, opening) => {
      const messages = [user(opening)];
      const next = async () => {
        const answer = await ask({ model, messages, tools: [tool] });
        messages.push({ role: 'assistant', content: answer.content });
        return answer;
      };
      const say = (message) => {
        messages.push(typeof message === 'string' ? user(message) : message);
        return next();
      };
      return { next, say };
    };

    test(`a skill stays read, ${way}, ${version}`, async () => {
      const opening = `First question of ${tagged().id}`;
      const { next, say } = converse('remembered', opening);
      const first = await next();
      assert.equal(textOf(first), 'Let me look. \n\n**Act now** comes first – always ✓\n\n');
      assert.equal(first.stop_reason, 'end_turn');
      const second = await say('Second question');
      assert.equal(second.stop_reason, 'tool_use');
      assert.deepEqual(uses(second).map((b) => [b.name, b.input]), [['get_weather', { city: 'Tromsø', days: 2 }]]);
      assert.equal(textOf(await say(results(second))), 'One more page: It snows in Tromsø. ');
      assert.equal(textOf(await say('Third question')), 'The next train is the Heron.');
      // The call in which the host had no part goes back as this client writes it.
      await wantTalk('remembered', opening, { call_weather: '{"city":"Tromsø","days":2}' });
    });

    test(`a round that is shared with the host, ${way}, ${version}`, async () => {
      const opening = `First question of ${tagged().id}`;
      const { next, say } = converse('shared-round', opening);
      const first = await next();
      assert.deepEqual(uses(first).map((b) => b.id), ['call_bergen', 'call_tromso'], "the host's call does not show");
      assert.equal(textOf(await say(results(first))), 'Rain in Bergen, snow in Tromsø.');
      assert.equal(textOf(await say('Second question')), 'The same again.');
      await wantTalk('shared-round', opening);
    });

    test(`skills by a field of the body, ${way}, ${version}`, async () => {
      const { id, headers } = tagged();
      const answer = await ask({ model: 'selected', messages: [user('What comes last?')], skills: ['release-notes'], skills_discovery: false }, { headers });
      assert.equal(textOf(answer), 'What goes away comes last.');
      const logged = await turn(id);
      assert.equal(logged.selected, 'release-notes');
      assert.equal(logged.advertised, 0);
      assert.equal(logged.reads, 'release-notes/SKILL.md');
    });

    test(`skills by a header, ${way}, ${version}`, async () => {
      const { id, headers } = tagged();
      const answer = await ask({ model: 'skill-read', messages: [user('Notes, please.')] }, { headers: { ...headers, 'X-Metier-Skills': 'release-notes' } });
      assert.equal(textOf(answer), 'The notes begin with what changed for the reader.');
      assert.deepEqual([answer.usage.input_tokens, answer.usage.output_tokens], [600, 36]);
      assert.equal((await turn(id)).selected, 'release-notes');
    });
  }

  test(`the model is listed, ${version}`, async () => {
    const listed = await collect(await speaker.models.list());
    assert.ok(listed.some((m) => m.id === 'hello' && m.type === 'model'), JSON.stringify(listed).slice(0, 200));
    assert.equal((await speaker.models.retrieve('hello')).id, 'hello');
    const err = await caught(speaker.models.retrieve('no-such-model'));
    assert.equal(err.status, 404);
  });

  test(`the key goes upstream, ${version}`, async () => {
    const { id, headers } = tagged();
    await speaker.messages.create({ model: 'hello', max_tokens: 64, messages: [user(`Hello from ${id}?`)] }, { headers });
    const asked = (await requests('hello')).find((r) => JSON.stringify(r.body).includes(id));
    assert.deepEqual(asked.header.Authorization, [`Bearer ${apiKey}`]);
    assert.equal(asked.header['X-Api-Key'], undefined);
  });

  test(`errors are the classes that applications catch, ${version}`, async () => {
    const { APIError, AuthenticationError, BadRequestError, InternalServerError, NotFoundError, RateLimitError } = speaker.constructor;
    const { id, headers } = tagged();
    const unknown = await caught(speaker.messages.create({ model: 'hello', max_tokens: 64, messages: [user('Hello?')], skills: ['no-such-skill'] }, { headers }));
    assert.ok(unknown instanceof BadRequestError, `${unknown}`);
    assert.equal(unknown.error.error.type, 'invalid_request_error');
    assert.equal(unknown.error.request_id, id);
    for (const name of ['no-such-skill', 'release-notes']) assert.match(unknown.message, new RegExp(name));
    for (const [model, kind, type, says] of [
      ['rate-limited', RateLimitError, 'rate_limit_error', /0 of 60 requests are left/],
      ['unauthorized', AuthenticationError, 'authentication_error', /opens nothing here/],
      ['overflow', BadRequestError, 'invalid_request_error', /window holds 4096/],
      ['server-error', InternalServerError, 'api_error', /502/],
      ['no-such-model', NotFoundError, 'not_found_error', /no-such-model/],
      ['cut', InternalServerError, 'api_error', /./],
    ]) {
      const err = await caught(speaker.messages.create({ model, max_tokens: 64, messages: [user('Hello?')] }));
      assert.ok(err instanceof kind, `${model}: ${err}`);
      assert.equal(err.error.error.type, type, model);
      assert.match(err.message, says);
    }
    for (const model of ['error-in-stream', 'cut']) {
      const stream = speaker.messages.stream({ model, max_tokens: 64, messages: [user('Hello?')] });
      assert.ok(await caught(stream.finalMessage()) instanceof APIError, model);
    }
  });
}

// wellFormed holds what a client may rely on in any stream that ended well.
function wellFormed(events) {
  const kinds = events.map((e) => e.type).filter((t) => t !== 'ping');
  assert.equal(kinds[0], 'message_start');
  assert.equal(kinds.at(-1), 'message_stop');
  assert.equal(kinds.at(-2), 'message_delta');
  assert.equal(kinds.filter((t) => t === 'message_start' || t === 'message_delta').length, 2);
  let open = -1;
  let next = 0;
  for (const e of events) {
    if (e.type === 'content_block_start') {
      assert.equal(open, -1, 'one block is open at a time');
      assert.equal(e.index, next++, 'blocks are numbered from 0 without gaps');
      open = e.index;
    }
    if (e.type === 'content_block_delta') assert.equal(e.index, open);
    if (e.type === 'content_block_stop') {
      assert.equal(e.index, open);
      open = -1;
    }
  }
}

test('system blocks, an image and a document reach a model of another dialect', async () => {
  const answer = await client.messages.create({
    model: 'sees', max_tokens: 64,
    system: [{ type: 'text', text: 'You sort pictures.', cache_control: { type: 'ephemeral' } }],
    messages: [user([
      { type: 'text', text: 'What is on it?' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
    ])],
  });
  assert.equal(textOf(answer), 'One pixel.');
});

// pixel is the smallest picture.
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

test('a system message among the messages', async () => {
  const answer = await client.messages.create({
    model: 'sees', max_tokens: 64,
    messages: [
      user([{ type: 'text', text: 'What is on it?' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } }]),
      { role: 'system', content: 'You sort pictures.' },
    ],
  });
  assert.equal(textOf(answer), 'One pixel.');
});

test('tokens are counted', async () => {
  const few = await client.messages.countTokens({ model: 'hello', messages: [user('Hello?')] });
  const more = await client.messages.countTokens({ model: 'hello', messages: [user('Hello? '.repeat(200))] });
  assert.ok(few.input_tokens > 0 && more.input_tokens > few.input_tokens + 100, `${few.input_tokens} and ${more.input_tokens}`);
});

test('what the model thinks, for a client that asks to see it', async () => {
  const body = { model: 'reasoning', max_tokens: 2048, messages: [user('A number?')] };
  const shown = await client.messages.stream({ ...body, thinking: { type: 'enabled', budget_tokens: 1024 } }).finalMessage();
  assert.equal(textOf(shown), 'The number is seven.');
  assert.equal(shown.content.map((b) => b.thinking ?? '').join(''), 'They ask for a number. Seven fits.');
  const plain = await client.messages.create(body);
  assert.deepEqual(plain.content.map((b) => b.type), ['text']);
});

// The loop sends a thread's new messages alone if the server has threads, which a host
// that adds rounds of its own has not, and else all of them.
for (const thread of [undefined, false]) {
  test(`the client's own tool loop, thread ${thread}`, async () => {
    const cities = [];
    const opening = `First question of ${tagged().id}`;
    const final = await client.beta.messages.toolRunner({
      model: 'shared-round', max_tokens: 512, messages: [user(opening)], thread,
      tools: [{
        ...tool, type: 'custom', parse: (input) => input,
        run: ({ city }) => {
          cities.push(city);
          return skies[city];
        },
      }],
    });
    assert.equal(textOf(final), 'Rain in Bergen, snow in Tromsø.');
    assert.deepEqual(cities, ['Bergen', 'Tromsø']);
  });
}

test('a stream that the client leaves', async () => {
  const { id, headers } = tagged();
  const stream = await client.messages.create({ model: 'hang', max_tokens: 64, messages: [user('Hello?')], stream: true }, { headers });
  for await (const event of stream) if (event.type === 'content_block_delta') stream.controller.abort();
  await gone('hang');
  assert.equal((await turn(id)).outcome, 'cancelled');
});

test('a request that no model could answer', async () => {
  const err = await caught(client.messages.create({ model: 'hello', max_tokens: 64, messages: [] }));
  assert.ok(err instanceof Anthropic.BadRequestError, `${err}`);
});
