// The AI SDK, which keeps messages in a form of its own and writes them anew for
// every request: arguments are read and written again, texts joined, reasoning
// sent back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { convertToModelMessages, generateText, readUIMessageStream, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { apiKey, caught, gone, skies, tagged, turn, url, user, wantTalk } from './rig.mjs';

// rewritten is the call in which the host had no part, as this client writes it.
const rewritten = { call_weather: '{"city":"Tromsø","days":2}' };

// providers are the dialects that it speaks. The options let the model's thoughts be
// shown, which two of the dialects do on request only.
const providers = {
  completions: {
    connect: (headers) => createOpenAICompatible({ name: 'metier', baseURL: `${url}/v1`, apiKey, headers }),
    options: {},
  },
  // Sends the ids of what came before, which the server has.
  responses: {
    connect: (headers) => createOpenAI({ baseURL: `${url}/v1`, apiKey, headers }),
    options: { openai: { forceReasoning: true, reasoningSummary: 'auto' } },
  },
  'responses that are not kept': {
    connect: (headers) => createOpenAI({ baseURL: `${url}/v1`, apiKey, headers }),
    options: { openai: { forceReasoning: true, reasoningSummary: 'auto', store: false } },
  },
  messages: {
    connect: (headers) => createAnthropic({ baseURL: `${url}/v1`, apiKey, headers }),
    options: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
  },
};

// ways are the functions that ask, each until the model calls no tool any more.
const ways = {
  generateText: async (options) => {
    const { text, reasoningText, response } = await generateText(options);
    return { text, reasoningText, messages: response.messages };
  },
  streamText: async (options) => {
    const errors = [];
    const result = streamText({ ...options, onError: ({ error }) => errors.push(error) });
    await result.consumeStream();
    assert.deepEqual(errors, []);
    return { text: await result.text, reasoningText: await result.reasoningText, messages: (await result.response).messages };
  },
  // What a page keeps of a stream, and sends with its next question.
  'UI messages': async (options) => {
    const result = streamText(options);
    let message;
    for await (const state of readUIMessageStream({ stream: result.toUIMessageStream(), terminateOnError: true })) message = state;
    const stored = JSON.parse(JSON.stringify([message]));
    const messages = await convertToModelMessages(stored, { tools: options.tools });
    return { text: await result.text, reasoningText: await result.reasoningText, messages };
  },
};

for (const [dialect, { connect, options }] of Object.entries(providers)) for (const [way, ask] of Object.entries(ways)) {
  // converse is a client that holds its own history and has its tool called for
  // it.
  const converse = (model) => {
    const talk = { messages: [], cities: [] };
    const tools = {
      get_weather: tool({
        description: 'The weather of a city.',
        inputSchema: z.object({ city: z.string(), days: z.number().optional() }),
        execute: ({ city }) => {
          talk.cities.push(city);
          return skies[city];
        },
      }),
    };
    talk.say = async (text) => {
      talk.messages.push(user(text));
      const answer = await ask({ model: connect()(model), messages: talk.messages, tools, providerOptions: options, stopWhen: stepCountIs(5), maxRetries: 0 });
      talk.messages.push(...answer.messages);
      return answer;
    };
    return talk;
  };

  test(`a skill stays read, ${dialect}, ${way}`, async () => {
    const opening = `First question of ${tagged().id}`;
    const talk = converse('remembered');
    const first = await talk.say(opening);
    assert.equal(first.text, 'Let me look. \n\n**Act now** comes first – always ✓\n\n');
    assert.equal(first.reasoningText, 'A skill fits.Now I know.');
    assert.equal((await talk.say('Second question')).text, 'One more page: It snows in Tromsø. ');
    assert.deepEqual(talk.cities, ['Tromsø']);
    assert.equal((await talk.say('Third question')).text, 'The next train is the Heron.');
    await wantTalk('remembered', opening, rewritten);
  });

  test(`a round that is shared with the host, ${dialect}, ${way}`, async () => {
    const opening = `First question of ${tagged().id}`;
    const talk = converse('shared-round');
    assert.equal((await talk.say(opening)).text, 'Rain in Bergen, snow in Tromsø.');
    assert.deepEqual(talk.cities, ['Bergen', 'Tromsø']);
    assert.equal((await talk.say('Second question')).text, 'The same again.');
    await wantTalk('shared-round', opening);
  });
}

for (const [dialect, { connect }] of Object.entries(providers)) {
  test(`skills by a header, ${dialect}`, async () => {
    const { id, headers } = tagged();
    const model = connect({ ...headers, 'X-Metier-Skills': 'release-notes' })('skill-read');
    const answer = await generateText({ model, prompt: 'Notes, please.', maxRetries: 0 });
    assert.equal(answer.text, 'The notes begin with what changed for the reader.');
    assert.deepEqual([answer.usage.inputTokens, answer.usage.outputTokens], [600, 36]);
    assert.equal((await turn(id)).selected, 'release-notes');
  });

  test(`a refusal is an error with a status, ${dialect}`, async () => {
    const err = await caught(generateText({ model: connect()('rate-limited'), prompt: 'Hello?', maxRetries: 0 }));
    assert.equal(err.name, 'AI_APICallError', `${err}`);
    assert.equal(err.statusCode, 429);
    assert.match(err.message, /0 of 60 requests are left/);
  });

  test(`a stream that the client leaves, ${dialect}`, async () => {
    const { id, headers } = tagged();
    const abort = new AbortController();
    const result = streamText({ model: connect(headers)('hang'), prompt: 'Hello?', abortSignal: abort.signal, maxRetries: 0 });
    for await (const part of result.fullStream) if (part.type === 'text-delta') abort.abort();
    await gone('hang');
    assert.equal((await turn(id)).outcome, 'cancelled');
  });
}

test('skills by an option of the provider', async () => {
  const { id, headers } = tagged();
  const answer = await generateText({
    model: providers.completions.connect(headers)('selected'), prompt: 'What comes last?', maxRetries: 0,
    providerOptions: { metier: { skills: ['release-notes'], skills_discovery: false } },
  });
  assert.equal(answer.text, 'What goes away comes last.');
  assert.equal((await turn(id)).advertised, 0);
});
