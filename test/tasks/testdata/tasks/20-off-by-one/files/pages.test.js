"use strict";

const assert = require("node:assert");
const test = require("node:test");

const { page, pageCount } = require("./pages.js");

const list = [1, 2, 3, 4, 5];

test("the first page", () => assert.deepStrictEqual(page(list, 1, 2), [1, 2]));
test("the last page", () => assert.deepStrictEqual(page(list, 3, 2), [5]));
test("the number of pages", () => assert.strictEqual(pageCount(5, 2), 3));
test("full pages", () => assert.strictEqual(pageCount(4, 2), 2));
