import { isVersion } from "./versions.mjs";

const cases = { "1.2.3": true, "v0.1.0": true, "10.0.12": true, "1.2.3-rc.1": true, "1.2": false, "v1.2.3x": false, "1.2.3-": false, "x1.2.3": false };
let wrong = 0;
for (const [text, want] of Object.entries(cases)) {
  if (isVersion(text) !== want) {
    console.log(`${text}: ${isVersion(text)}, want ${want}`);
    wrong++;
  }
}
console.log(wrong === 0 ? "all right" : `${wrong} wrong`);
process.exitCode = wrong === 0 ? 0 : 1;
