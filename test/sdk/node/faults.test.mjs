// Errors as the classes that applications catch, and requests that are left.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { begun, caught, connect, gone, requests, tagged, turn, user } from './rig.mjs';

const client = connect();
const create = (body, options) => client.chat.completions.create({ messages: [user('Hello?')], ...body }, options);

test('an unknown skill', async () => {
  for (const stream of [false, true]) {
    const { id, headers } = tagged();
    const err = await caught(create({ model: 'hello', skills: ['no-such-skill'], stream }, { headers }));
    assert.ok(err instanceof OpenAI.BadRequestError, `${err}`);
    assert.equal(err.status, 400);
    assert.equal(err.param, 'skills');
    assert.equal(err.code, 'skill_not_found');
    assert.equal(err.type, 'invalid_request_error');
    for (const name of ['no-such-skill', 'incident-report', 'release-notes', 'unit-pricing']) assert.match(err.message, new RegExp(name));
    assert.equal(err.requestID, id, 'an error shows the request id');
  }
});

test('a request that no model could answer', async () => {
  const err = await caught(create({ model: 'hello', messages: 'Hello?' }));
  assert.ok(err instanceof OpenAI.BadRequestError, `${err}`);
  assert.equal(err.param, 'messages');
});

test('more than one choice with skills', async () => {
  const err = await caught(create({ model: 'hello', skills: ['release-notes'], n: 2 }));
  assert.ok(err instanceof OpenAI.BadRequestError, `${err}`);
  assert.equal(err.param, 'n');
});

test('the upstream is busy', async () => {
  for (const stream of [false, true]) {
    const err = await caught(create({ model: 'rate-limited', stream }));
    assert.ok(err instanceof OpenAI.RateLimitError, `${err}`);
    assert.equal(err.code, 'rate_limit_exceeded');
    assert.equal(err.type, 'rate_limit_error');
    assert.match(err.message, /0 of 60 requests are left/);
    assert.equal(err.headers.get('retry-after'), '7');
    assert.equal(err.headers.get('x-ratelimit-remaining-requests'), '0');
  }
});

test("the client's own retry waits as long as the upstream says", async () => {
  const began = performance.now();
  const answer = await connect({ maxRetries: 2 }).chat.completions.create({ model: 'limited-once', messages: [user('Hello?')] });
  const took = performance.now() - began;
  assert.equal(answer.choices[0].message.content, 'Now there is room.');
  // Without the header the client would come back after half a second.
  assert.ok(took > 900, `it came back after ${took} ms`);
  const asked = await requests('limited-once');
  assert.deepEqual(asked.map((r) => r.step), [1, 2]);
});

test('the upstream refuses the key', async () => {
  const err = await caught(create({ model: 'unauthorized' }));
  assert.ok(err instanceof OpenAI.AuthenticationError, `${err}`);
  assert.equal(err.code, 'invalid_api_key');
  assert.match(err.message, /opens nothing here/);
});

test('the prompt is too long', async () => {
  const err = await caught(create({ model: 'overflow' }));
  assert.ok(err instanceof OpenAI.BadRequestError, `${err}`);
  assert.match(err.message, /window holds 4096/);
});

test('a page instead of an answer', async () => {
  const err = await caught(create({ model: 'server-error' }));
  assert.ok(err instanceof OpenAI.InternalServerError, `${err}`);
  assert.equal(err.status, 502);
  assert.equal(err.type, 'server_error');
});

test('a model that is not there', async () => {
  const err = await caught(create({ model: 'no-such-model' }));
  assert.ok(err instanceof OpenAI.NotFoundError, `${err}`);
  assert.equal(err.code, 'model_not_found');
  const other = await caught(client.models.retrieve('no-such-model'));
  assert.ok(other instanceof OpenAI.NotFoundError, `${other}`);
  assert.equal(other.code, 'model_not_found');
});

test('a route that is not there', async () => {
  const err = await caught(client.embeddings.create({ model: 'hello', input: 'Hello?' }));
  assert.ok(err instanceof OpenAI.NotFoundError, `${err}`);
  assert.equal(err.type, 'invalid_request_error');
});

test('an error in a stream that has begun', async () => {
  const stream = await create({ model: 'error-in-stream', stream: true });
  let text = '';
  const err = await caught((async () => {
    for await (const chunk of stream) text += chunk.choices[0].delta.content ?? '';
  })());
  assert.equal(text, 'I was ');
  assert.ok(err instanceof OpenAI.APIError, `${err}`);
  assert.match(err.message, /ran out of memory/);
  assert.equal(err.code, 'oom');
});

test('a stream that breaks off is no answer', async () => {
  for (const model of ['cut', 'early-end']) {
    const stream = await create({ model, stream: true });
    const err = await caught((async () => {
      for await (const chunk of stream) assert.ok(!chunk.choices[0]?.finish_reason, 'it must not look finished');
    })());
    assert.ok(err instanceof OpenAI.APIError, `${model}: ${err}`);
    assert.equal(err.type, 'server_error');
    assert.ok(await caught(create({ model })) instanceof OpenAI.InternalServerError);
  }
});

test('a stream that the client leaves', async () => {
  const { id, headers } = tagged();
  const stream = await create({ model: 'hang', stream: true }, { headers });
  let text = '';
  for await (const chunk of stream) {
    text += chunk.choices[0].delta.content ?? '';
    if (text === 'One moment ') stream.controller.abort();
  }
  assert.equal(text, 'One moment ');
  await gone('hang');
  const logged = await turn(id);
  assert.equal(logged.outcome, 'cancelled');
  assert.equal(logged.level, 'INFO');
});

test('a buffered request that the client leaves', async () => {
  const { id, headers } = tagged();
  const abort = new AbortController();
  const answer = caught(create({ model: 'hang-headers' }, { headers, signal: abort.signal }));
  // Leave when the upstream has the request, and not before.
  await begun('hang-headers');
  abort.abort();
  assert.ok(await answer instanceof OpenAI.APIUserAbortError);
  await gone('hang-headers');
  assert.equal((await turn(id)).outcome, 'cancelled');
});
