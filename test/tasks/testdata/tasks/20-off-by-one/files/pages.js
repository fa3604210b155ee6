"use strict";

// Pages of a list; the first page has the number 1.

function pageCount(total, size) {
  return Math.floor(total / size);
}

function page(list, number, size) {
  const from = (number - 1) * size + 1;
  return list.slice(from, from + size);
}

module.exports = { page, pageCount };
