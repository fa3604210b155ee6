const VERSION = /v?(\d).?(\d).?(\d)?/;

export function isVersion(text) {
  return VERSION.test(text);
}
