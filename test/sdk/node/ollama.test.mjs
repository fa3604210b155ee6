// The Ollama API with the official client. It knows no ids of calls, and neither do
// the requests that it sends back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ollama } from 'ollama';
import { caught, collect, connectOllama, gone, skies, tagged, turn, url, user, wantTalk, weather } from './rig.mjs';

const client = connectOllama();

// ways are how an answer is asked for. What is gathered of a stream is what the
// client's own users gather: the texts joined, the calls one after another.
const ways = {
  buffered: (body, speaker = client) => speaker.chat(body),
  streamed: async (body, speaker = client) => {
    const parts = await collect(await speaker.chat({ ...body, stream: true }));
    assert.deepEqual(parts.filter((p) => p.done), [parts.at(-1)], 'it ends once, and last');
    const message = { role: 'assistant', content: '', thinking: '', tool_calls: [] };
    for (const p of parts) {
      message.content += p.message.content;
      message.thinking += p.message.thinking ?? '';
      message.tool_calls.push(...(p.message.tool_calls ?? []));
    }
    if (!message.tool_calls.length) delete message.tool_calls;
    return { ...parts.at(-1), message };
  },
};

for (const [way, ask] of Object.entries(ways)) {
  // converse is a client that holds its own history, as all clients of Ollama do.
  const converse = (model, opening) => {
    const messages = [user(opening)];
    const next = async () => {
      const answer = await ask({ model, messages, tools: [weather] });
      messages.push(answer.message);
      return answer.message;
    };
    const say = (text) => {
      messages.push(user(text));
      return next();
    };
    const answerCalls = (message) => {
      for (const { function: f } of message.tool_calls) messages.push({ role: 'tool', tool_name: f.name, content: skies[f.arguments.city] });
      return next();
    };
    return { next, say, answerCalls };
  };

  test(`a skill stays read, ${way}`, async () => {
    const opening = `First question of ${tagged().id}`;
    const { next, say, answerCalls } = converse('remembered', opening);
    assert.equal((await next()).content, 'Let me look. \n\n**Act now** comes first – always ✓\n\n');
    const second = await say('Second question');
    assert.deepEqual(second.tool_calls.map((c) => [c.function.name, c.function.arguments]), [['get_weather', { city: 'Tromsø', days: 2 }]]);
    assert.equal((await answerCalls(second)).content, 'One more page: It snows in Tromsø. ');
    assert.equal((await say('Third question')).content, 'The next train is the Heron.');
    // The call in which the host had no part goes back as this client writes it.
    await wantTalk('remembered', opening, { call_weather: '{"city":"Tromsø","days":2}' }, false);
  });

  test(`a round that is shared with the host, ${way}`, async () => {
    const opening = `First question of ${tagged().id}`;
    const { next, say, answerCalls } = converse('shared-round', opening);
    const first = await next();
    assert.deepEqual(first.tool_calls.map((c) => c.function.arguments.city), ['Bergen', 'Tromsø'], "the host's call does not show");
    assert.equal((await answerCalls(first)).content, 'Rain in Bergen, snow in Tromsø.');
    assert.equal((await say('Second question')).content, 'The same again.');
    await wantTalk('shared-round', opening, {}, false);
  });

  test(`skills by a field of the body, ${way}`, async () => {
    const { id, headers } = tagged();
    const answer = await ask({ model: 'selected', messages: [user('What comes last?')], skills: ['release-notes'], skills_discovery: false }, connectOllama(headers));
    assert.equal(answer.message.content, 'What goes away comes last.');
    assert.equal(answer.done_reason, 'stop');
    const logged = await turn(id);
    assert.equal(logged.selected, 'release-notes');
    assert.equal(logged.advertised, 0);
    assert.equal(logged.reads, 'release-notes/SKILL.md');
  });

  test(`skills by a header, ${way}`, async () => {
    const { id, headers } = tagged();
    const answer = await ask({ model: 'skill-read', messages: [user('Notes, please.')] }, connectOllama({ ...headers, 'X-Metier-Skills': 'release-notes' }));
    assert.equal(answer.message.content, 'The notes begin with what changed for the reader.');
    assert.deepEqual([answer.prompt_eval_count, answer.eval_count], [600, 36], 'the counts are those of all rounds');
    assert.equal((await turn(id)).selected, 'release-notes');
  });

  test(`what the model thinks, ${way}`, async () => {
    const answer = await ask({ model: 'reasoning', messages: [user('A number?')], think: true });
    assert.equal(answer.message.content, 'The number is seven.');
    assert.equal(answer.message.thinking, 'They ask for a number. Seven fits.');
  });
}

test('generate', async () => {
  const whole = await client.generate({ model: 'hello', prompt: 'Hello?' });
  assert.equal(whole.response, 'Good morning, and welcome.');
  const parts = await collect(await client.generate({ model: 'hello', prompt: 'Hello?', stream: true }));
  assert.equal(parts.map((p) => p.response).join(''), 'Good morning, and welcome.');
  assert.ok(parts.at(-1).done);
});

test('models are listed and shown', async () => {
  const { models } = await client.list();
  assert.ok(models.some((m) => m.name === 'hello' && m.model === 'hello'), JSON.stringify(models).slice(0, 200));
  const shown = await client.show({ model: 'hello' });
  assert.ok(shown.capabilities.includes('tools') && shown.capabilities.includes('completion'), `${shown.capabilities}`);
  assert.equal((await caught(client.show({ model: 'no-such-model' }))).status_code, 404);
  assert.match((await client.version()).version, /^\d+\.\d+\.\d+/);
});

test('below a base URL of its own', async () => {
  const below = new Ollama({ host: `${url}/ollama` });
  assert.equal((await below.chat({ model: 'hello', messages: [user('Hello?')] })).message.content, 'Good morning, and welcome.');
});

test('errors have a status and words', async () => {
  const chat = (body) => client.chat({ messages: [user('Hello?')], ...body });
  for (const [body, status, says] of [
    [{ model: 'hello', skills: ['no-such-skill'] }, 400, /no-such-skill.*release-notes/s],
    [{ model: 'rate-limited' }, 429, /0 of 60 requests are left/],
    [{ model: 'unauthorized' }, 401, /opens nothing here/],
    [{ model: 'overflow' }, 400, /window holds 4096/],
    [{ model: 'server-error' }, 502, /502/],
    [{ model: 'no-such-model' }, 404, /no-such-model/],
    [{ model: 'cut' }, 502, /./],
  ]) {
    const err = await caught(chat(body));
    assert.equal(err.name, 'ResponseError', `${body.model}: ${err}`);
    assert.equal(err.status_code, status, body.model);
    assert.match(err.message, says);
  }
  for (const model of ['error-in-stream', 'cut']) {
    await caught((async () => {
      for await (const part of await chat({ model, stream: true })) assert.ok(!part.done, 'it must not look finished');
    })());
  }
});

test('a stream that the client leaves', async () => {
  const { id, headers } = tagged();
  const stream = await connectOllama(headers).chat({ model: 'hang', messages: [user('Hello?')], stream: true });
  await caught((async () => {
    for await (const part of stream) if (part.message.content === 'One moment ') stream.abort();
  })());
  await gone('hang');
  assert.equal((await turn(id)).outcome, 'cancelled');
});
