const LABELS = Object.keys(UNITS);
const format = (value, unit) => `${value * UNITS[unit]} m`;
