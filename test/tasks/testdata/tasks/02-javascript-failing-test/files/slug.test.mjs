import assert from "node:assert/strict";
import test from "node:test";

import { slug, words } from "./slug.mjs";

test("words drops empty ones", () => {
  assert.deepEqual(words("A  Tale"), ["a", "tale"]);
});

test("small words go", () => {
  assert.equal(slug("The Art of War"), "art-war");
});

test("all punctuation goes", () => {
  assert.equal(slug("Who's afraid? (Not I!)"), "whos-afraid-not-i");
});

test("a slug has a limit", () => {
  assert.equal(slug("one two three", 8), "one-two");
});
