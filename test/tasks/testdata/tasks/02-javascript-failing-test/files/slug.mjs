// Slugs for the addresses of articles.

const SMALL = new Set(["a", "an", "the", "of"]);

export function words(title) {
  return title
    .toLowerCase()
    .split(" ")
    .filter((word) => word !== "");
}

export function slug(title, limit = 40) {
  const kept = words(title)
    .map((word) => word.replace(/[^a-z0-9]/, ""))
    .filter((word) => word !== "" && !SMALL.has(word));
  let result = "";
  for (const word of kept) {
    const next = result === "" ? word : result + "-" + word;
    if (next.length > limit) break;
    result = next;
  }
  return result;
}
