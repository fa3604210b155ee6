// What a test needs of its surroundings: see rig in ../rig_test.go.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

export const url = need('METIER_URL');
const control = need('METIER_CONTROL');

function need(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run go test in the folder above, which starts what is needed`);
  return value;
}

// The key is the caller's own: nobody here checks it, and the upstream must get it.
export const apiKey = 'caller-key-of-the-node-tests';

export function connect(options = {}) {
  return new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0, ...options });
}

export function connectAnthropic(options = {}) {
  return new Anthropic({ apiKey, authToken: null, baseURL: url, maxRetries: 0, ...options });
}

export function connectOllama(headers = {}) {
  return new Ollama({ host: url, headers: { Authorization: `Bearer ${apiKey}`, ...headers } });
}

// tagged gives a request an id of its own, by which its turn is found in the
// server's log.
export function tagged() {
  const id = `node-${randomUUID()}`;
  return { id, headers: { 'X-Request-Id': id } };
}

async function ask(path, query) {
  const res = await fetch(`${control}/${path}?${new URLSearchParams(query)}`);
  if (!res.ok) throw new Error(await res.text());
  return res.json();
}

// turn is the server's log line about a request's turn.
export const turn = (id) => ask('turn', { request: id });

// begun returns when the upstream has read a request for a model, gone when it
// has seen the connection of one go.
export const begun = (model) => ask('begun', { model });
export const gone = (model) => ask('gone', { model });

// requests lists what the upstream was asked for a model.
export const requests = (model) => ask('requests', { model });

// skies is what the caller's tool says.
export const skies = { Bergen: 'rain, 7 degrees', Tromsø: 'snow, 4 degrees' };

// wantTalk holds what the upstream was sent over the whole conversation that a
// text is said in: the steps and no other, nothing that it had read already a
// second time, and at the end the model's own bytes and the result of each call.
// Arguments that a client writes anew in a round of its own are given by call; a
// client that knows no ids of calls has those of its own calls made for it.
export async function wantTalk(model, says, rewritten = {}, named = true) {
  const want = JSON.parse(await readFile(new URL('../testdata/talks.json', import.meta.url), 'utf8'))[model];
  const talk = await ask('talk', { model, says });
  assert.deepEqual(talk.map((r) => r.step), want.steps);
  assert.deepEqual(talk.map((r) => r.lost), want.steps.map(() => 0), 'no byte is sent differently than before');
  const { calls, results, answers } = talk.at(-1);
  const expected = want.calls.map((c, i) => ({
    ...c,
    id: named || c.name === 'skills_read' ? c.id : calls[i]?.id,
    arguments: rewritten[c.id] ?? c.arguments,
  }));
  assert.deepEqual(calls, expected);
  assert.equal(new Set(expected.map((c) => c.id)).size, expected.length, 'no two calls have one id');
  assert.deepEqual(results, expected.map((c) => c.id));
  assert.deepEqual(answers, want.answers);
}

export const user = (content) => ({ role: 'user', content });

export const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'number' } }, required: ['city'] },
  },
};

// collect reads a stream to its end.
export async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

// caught is the error that a promise ends with.
export async function caught(promise) {
  try {
    await promise;
  } catch (err) {
    return err;
  }
  assert.fail('it should have failed');
}

export const textOf = (chunks) => chunks.map((c) => c.choices[0]?.delta?.content ?? '').join('');
