// Conversations: what comes back is put back as it is, and the model still has
// what it read in rounds that the client never saw.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, skies, tagged, user, wantTalk, weather } from './rig.mjs';

const client = connect();

for (const streamed of [false, true]) {
  const way = streamed ? 'streamed' : 'buffered';

  // converse is a client that holds its own history, as all clients of chat
  // completions do.
  const converse = (model, opening) => {
    const messages = [user(opening)];
    const next = async () => {
      const body = { model, messages, tools: [weather] };
      const answer = streamed
        ? await client.chat.completions.stream(body).finalChatCompletion()
        : await client.chat.completions.create(body);
      messages.push(answer.choices[0].message);
      return answer.choices[0].message;
    };
    const say = (text) => {
      messages.push(user(text));
      return next();
    };
    return { messages, next, say };
  };

  test(`a skill stays read, ${way}`, async () => {
    const opening = `First question of ${tagged().id}`;
    const { messages, next, say } = converse('remembered', opening);
    assert.equal((await next()).content, 'Let me look. \n\n**Act now** comes first – always ✓\n\n');
    const [call] = (await say('Second question')).tool_calls;
    messages.push({ role: 'tool', tool_call_id: call.id, content: skies[JSON.parse(call.function.arguments).city] });
    assert.equal((await next()).content, 'One more page: It snows in Tromsø. ');
    assert.equal((await say('Third question')).content, 'The next train is the Heron.');
    await wantTalk('remembered', opening);
  });

  test(`the client's tool loop in a round that is shared with the host, ${way}`, async () => {
    const opening = `First question of ${tagged().id}`;
    const cities = [];
    const run = (messages) => client.chat.completions.runTools({
      model: 'shared-round',
      messages,
      stream: streamed,
      tools: [{
        type: 'function',
        function: {
          ...weather.function,
          parse: JSON.parse,
          function: ({ city }) => {
            cities.push(city);
            return skies[city];
          },
        },
      }],
    });
    const first = run([user(opening)]);
    assert.equal(await first.finalContent(), 'Rain in Bergen, snow in Tromsø.');
    assert.deepEqual(cities, ['Bergen', 'Tromsø']);
    const second = run([...first.messages, user('Second question')]);
    assert.equal(await second.finalContent(), 'The same again.');
    await wantTalk('shared-round', opening);
  });
}
