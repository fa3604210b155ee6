// What a test needs of its surroundings: see rig in ../rig_test.go.

import { randomUUID } from 'node:crypto';
import OpenAI from 'openai';

const url = need('METIER_URL');
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

export const user = (content) => ({ role: 'user', content });

export const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

// collect reads a stream to its end.
export async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

export const textOf = (chunks) => chunks.map((c) => c.choices[0]?.delta?.content ?? '').join('');
