// Answers: buffered and streamed, skills, the caller's own tools, usage.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiKey, collect, connect, requests, tagged, textOf, turn, user, weather } from './rig.mjs';

const client = connect();

// wellFormed holds what a client may rely on in any stream that ended well.
function wellFormed(chunks, model) {
  assert.ok(chunks.length > 2);
  const id = chunks[0].id;
  assert.match(id, /^chatcmpl-/);
  for (const c of chunks) {
    assert.equal(c.id, id, 'one completion has one id');
    assert.equal(c.object, 'chat.completion.chunk');
    assert.equal(c.model, model);
    assert.equal(c.created, chunks[0].created, 'and one date');
  }
  const choices = chunks.flatMap((c) => c.choices);
  assert.deepEqual(choices.filter((c) => c.delta.role).map((c) => c.delta.role), ['assistant'], 'the role is said once');
  assert.equal(choices[0].delta.role, 'assistant', 'and said first');
  assert.equal(choices.filter((c) => c.finish_reason).length, 1, 'it finishes once');
  assert.ok(choices.at(-1).finish_reason, 'and nothing comes after that');
}

test('buffered', async () => {
  const { id, headers } = tagged();
  const { data, request_id, response } = await client.chat.completions
    .create({ model: 'hello', messages: [user('Hello?')] }, { headers })
    .withResponse();
  assert.equal(data.object, 'chat.completion');
  assert.equal(data.model, 'hello');
  assert.match(data.id, /^chatcmpl-/);
  assert.equal(data.choices.length, 1);
  assert.equal(data.choices[0].message.role, 'assistant');
  assert.equal(data.choices[0].message.content, 'Good morning, and welcome.');
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.deepEqual([data.usage.prompt_tokens, data.usage.completion_tokens, data.usage.total_tokens], [12, 6, 18]);
  assert.equal(request_id, id, 'the request id that was sent comes back');
  assert.equal(data._request_id, id);
  assert.match(response.headers.get('content-type'), /^application\/json/);

  const [asked] = await requests('hello');
  assert.deepEqual(asked.header.Authorization, [`Bearer ${apiKey}`], "the caller's key goes upstream");
});

test('a request without an id gets one', async () => {
  const answer = await client.chat.completions.create({ model: 'hello', messages: [user('Hello?')] });
  assert.match(answer._request_id, /^req_/);
  const logged = await turn(answer._request_id);
  assert.equal(logged.outcome, 'answered');
});

test('streamed', async () => {
  const { data: stream, request_id } = await client.chat.completions
    .create({ model: 'hello', messages: [user('Hello?')], stream: true })
    .withResponse();
  assert.match(request_id, /^req_/);
  const chunks = await collect(stream);
  wellFormed(chunks, 'hello');
  assert.equal(textOf(chunks), 'Good morning, and welcome.');
  assert.ok(chunks.every((c) => !c.usage), 'usage comes only when it is asked for');
});

test('characters that arrive in pieces', async () => {
  const stream = await client.chat.completions.create({ model: 'split-utf8', messages: [user('Greet us.')], stream: true });
  assert.equal(textOf(await collect(stream)), 'Grüße, 世界 und 🦉.');
});

test('the stream helper gathers what the buffered answer says', async () => {
  const body = { model: 'skill-read', messages: [user('How do we write release notes?')] };
  const whole = await client.chat.completions.create(body);
  const helped = await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion();
  assert.equal(helped.choices[0].message.content, whole.choices[0].message.content);
  assert.equal(helped.choices[0].finish_reason, whole.choices[0].finish_reason);
  assert.deepEqual(helped.usage, whole.usage);
});

test('the model finds a skill by itself, streamed', async () => {
  const { id, headers } = tagged();
  const stream = await client.chat.completions.create(
    { model: 'skill-read', messages: [user('How do we write release notes?')], stream: true, stream_options: { include_usage: true } },
    { headers },
  );
  const chunks = await collect(stream);
  wellFormed(chunks, 'skill-read');
  assert.equal(textOf(chunks), 'The notes begin with what changed for the reader.');
  assert.ok(chunks.flatMap((c) => c.choices).every((c) => !c.delta.tool_calls), "the host's calls don't show");
  const used = chunks.filter((c) => c.usage);
  assert.equal(used.length, 1, 'usage comes once');
  assert.equal(used[0], chunks.at(-1), 'and last');
  assert.deepEqual(used[0].choices, []);
  assert.deepEqual([used[0].usage.prompt_tokens, used[0].usage.completion_tokens, used[0].usage.total_tokens], [600, 36, 636]);

  const logged = await turn(id);
  assert.equal(logged.outcome, 'answered');
  assert.equal(logged.rounds, 2);
  assert.equal(logged.host_calls, 1);
  assert.equal(logged.reads, 'release-notes/SKILL.md');
  assert.equal(logged.selected, '');
  assert.equal(logged.advertised, 3);
});

test("skills by a field of the body, which stays the host's", async () => {
  for (const stream of [false, true]) {
    const { id, headers } = tagged();
    const answer = await client.chat.completions.create(
      { model: 'selected', messages: [user('What comes last?')], skills: ['release-notes'], skills_discovery: false, stream },
      { headers },
    );
    let text;
    if (stream) {
      const chunks = await collect(answer);
      wellFormed(chunks, 'selected');
      text = textOf(chunks);
    } else {
      text = answer.choices[0].message.content;
    }
    assert.equal(text, 'What goes away comes last.');
    const logged = await turn(id);
    assert.equal(logged.selected, 'release-notes');
    assert.equal(logged.advertised, 0);
    assert.equal(logged.reads, 'release-notes/SKILL.md');
  }
});

test('skills by a header, for clients that can add no field', async () => {
  const { id, headers } = tagged();
  const other = connect({ defaultHeaders: { 'X-Metier-Skills': 'release-notes, unit-pricing' } });
  const answer = await other.chat.completions.create({ model: 'skill-read', messages: [user('Notes, please.')] }, { headers });
  assert.equal(answer.choices[0].message.content, 'The notes begin with what changed for the reader.');
  const logged = await turn(id);
  assert.equal(logged.selected, 'release-notes,unit-pricing');
  assert.equal(logged.advertised, 1);
  for (const asked of await requests('skill-read')) {
    assert.ok(!('X-Metier-Skills' in asked.header), "the host's header stays here");
  }
});

test('usage of all rounds is summed, what came from the cache too', async () => {
  const body = { model: 'usage-cached', messages: [user('Notes, please.')] };
  const sums = (u) => [u.prompt_tokens, u.completion_tokens, u.total_tokens, u.prompt_tokens_details.cached_tokens];
  const whole = await client.chat.completions.create(body);
  assert.deepEqual(sums(whole.usage), [700, 26, 726, 512]);

  const chunks = await collect(await client.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } }));
  wellFormed(chunks, 'usage-cached');
  assert.deepEqual(chunks.filter((c) => c.usage).map((c) => sums(c.usage)), [[700, 26, 726, 512]]);

  const silent = await collect(await client.chat.completions.create({ ...body, stream: true }));
  wellFormed(silent, 'usage-cached');
  assert.ok(silent.every((c) => !c.usage && c.choices.length === 1), 'a client that did not ask sees no usage chunk');
});

test("the caller's tool parks the turn, and its result goes on", async () => {
  for (const streamed of [false, true]) {
    const messages = [user('How is the weather in Oslo?')];
    const ask = async () => {
      const body = { model: 'caller-tool', messages, tools: [weather] };
      if (!streamed) return client.chat.completions.create(body);
      return client.chat.completions.stream(body).finalChatCompletion();
    };
    const first = await ask();
    const { message, finish_reason } = first.choices[0];
    assert.equal(finish_reason, 'tool_calls');
    assert.equal(message.tool_calls.length, 1);
    assert.equal(message.tool_calls[0].id, 'call_weather_1');
    assert.equal(message.tool_calls[0].function.name, 'get_weather');
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { city: 'Oslo' });

    messages.push(message, { role: 'tool', tool_call_id: 'call_weather_1', content: 'clear, 3 degrees' });
    const second = await ask();
    assert.equal(second.choices[0].message.content, 'It is clear in Oslo.');
    assert.equal(second.choices[0].finish_reason, 'stop');
  }
});

test("the client's own tool loop runs through", async () => {
  const cities = [];
  const runner = client.chat.completions.runTools({
    model: 'caller-tool',
    messages: [user('How is the weather in Oslo?')],
    tools: [{
      type: 'function',
      function: {
        ...weather.function,
        parse: JSON.parse,
        function: ({ city }) => {
          cities.push(city);
          return 'clear, 3 degrees';
        },
      },
    }],
  });
  assert.equal(await runner.finalContent(), 'It is clear in Oslo.');
  assert.deepEqual(cities, ['Oslo']);
});

test("a mixed round: the host's call is answered, the caller's is passed on", async () => {
  for (const streamed of [false, true]) {
    const { id, headers } = tagged();
    const messages = [user('Notes on the weather in Bergen, please.')];
    const body = { model: 'mixed-round', messages, tools: [weather] };
    let message;
    if (streamed) {
      const chunks = await collect(await client.chat.completions.create({ ...body, stream: true }, { headers }));
      wellFormed(chunks, 'mixed-round');
      const deltas = chunks.flatMap((c) => c.choices[0]?.delta?.tool_calls ?? []);
      assert.ok(deltas.every((d) => d.index === 0), "the caller's calls count from 0");
      assert.equal(deltas[0].id, 'call_mixed_weather');
      assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
      const args = deltas.map((d) => d.function.arguments ?? '').join('');
      message = {
        role: 'assistant',
        content: textOf(chunks),
        tool_calls: [{ id: deltas[0].id, type: 'function', function: { name: deltas[0].function.name, arguments: args } }],
      };
    } else {
      const answer = await client.chat.completions.create(body, { headers });
      assert.equal(answer.choices[0].finish_reason, 'tool_calls');
      message = answer.choices[0].message;
    }
    assert.equal(message.content, 'Let me look. ');
    assert.deepEqual(message.tool_calls.map((c) => [c.id, c.function.name, JSON.parse(c.function.arguments).city]), [
      ['call_mixed_weather', 'get_weather', 'Bergen'],
    ]);
    const logged = await turn(id);
    assert.equal(logged.host_calls, 1);
    assert.equal(logged.caller_calls, 1);
    assert.equal(logged.reads, 'release-notes/SKILL.md');

    messages.push(message, { role: 'tool', tool_call_id: 'call_mixed_weather', content: 'rain, 7 degrees' });
    const second = await client.chat.completions.create(body);
    assert.equal(second.choices[0].message.content, 'It rains in Bergen.');
    assert.equal(second.choices[0].finish_reason, 'stop');
  }
});

test('two thousand chunks', async () => {
  const chunks = await collect(await client.chat.completions.create({ model: 'long', messages: [user('Go on.')], stream: true }));
  wellFormed(chunks, 'long');
  assert.equal(textOf(chunks), Array.from({ length: 2000 }, (_, i) => `w${i + 1} `).join(''));
});

test('models', async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes('hello') && ids.includes('skill-read'), ids.join());
  const model = await client.models.retrieve('hello');
  assert.deepEqual([model.id, model.object], ['hello', 'model']);
});
