// The AI SDK, which keeps messages in a form of its own and writes them anew for
// every request: arguments are read and written again, texts joined, reasoning
// sent back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { convertToModelMessages, generateText, readUIMessageStream, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { apiKey, skies, tagged, url, user, wantTalk } from './rig.mjs';

const provider = createOpenAICompatible({ name: 'metier', baseURL: `${url}/v1`, apiKey });

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

for (const [way, ask] of Object.entries(ways)) {
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
      const answer = await ask({ model: provider(model), messages: talk.messages, tools, stopWhen: stepCountIs(5), maxRetries: 0 });
      talk.messages.push(...answer.messages);
      return answer;
    };
    return talk;
  };

  test(`a skill stays read, ${way}`, async () => {
    const opening = `First question of ${tagged().id}`;
    const talk = converse('remembered');
    const first = await talk.say(opening);
    assert.equal(first.text, 'Let me look. \n\n**Act now** comes first – always ✓\n\n');
    assert.equal(first.reasoningText, 'A skill fits.Now I know.');
    assert.equal((await talk.say('Second question')).text, 'One more page: It snows in Tromsø. ');
    assert.deepEqual(talk.cities, ['Tromsø']);
    assert.equal((await talk.say('Third question')).text, 'The next train is the Heron.');
    // The call in which the host had no part goes back as this client writes it.
    await wantTalk('remembered', opening, { call_weather: '{"city":"Tromsø","days":2}' });
  });

  test(`a round that is shared with the host, ${way}`, async () => {
    const opening = `First question of ${tagged().id}`;
    const talk = converse('shared-round');
    assert.equal((await talk.say(opening)).text, 'Rain in Bergen, snow in Tromsø.');
    assert.deepEqual(talk.cities, ['Bergen', 'Tromsø']);
    assert.equal((await talk.say('Second question')).text, 'The same again.');
    await wantTalk('shared-round', opening);
  });
}
