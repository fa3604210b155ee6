// padLine puts dots between two texts, so that the line has the width.
export function padLine(left, right, width) {
  const dots = width - left.length - right.length;
  if (dots < 1) throw new RangeError("the texts leave no room");
  return left + ".".repeat(dots) + right;
}
