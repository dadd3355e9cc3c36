// Numbers for people.

function scaled(value: number, units: [number, string][]): string {
  const [by, unit] = units.find(([by]) => Math.abs(value) >= by) ?? units[units.length - 1];
  const n = value / by;
  const digits = Math.abs(n) >= 100 ? 0 : Math.abs(n) >= 10 ? 1 : 2;
  return `${Number(n.toFixed(digits))} ${unit}`.trim();
}

/** A time of so many ns: "1.25 ms". */
export function time(ns: number): string {
  return scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
}

/** A moment of a run, as exact as a picture of so many ns shows it: "12.3456 ms". */
export function moment(ns: number, span: number): string {
  const [by, unit] = ([[1e9, "s"], [1e6, "ms"], [1e3, "µs"]] as const).find(([by]) => Math.abs(ns) >= by) ?? [1, "ns"];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(by / Math.max(span, 1))) + 3));
  return `${(ns / by).toFixed(digits)} ${unit}`;
}

/** So many bytes: "1.5 MB". */
export function bytes(n: number): string {
  return scaled(n, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
}

/** A number of things, or another one with so many decimals at most: "12,345". */
export function count(n: number, decimals = 3): string {
  return n.toLocaleString("en-US", { maximumFractionDigits: Math.min(decimals, 20) });
}

/** A number as units.Number in Go writes it: three significant digits, and the whole part in full: "1,234,568", "0.00123". */
export function number(n: number): string {
  const size = Math.abs(n);
  if (n === 0 || !Number.isFinite(n)) return String(n);
  if (size >= 1e15 || size < 1e-6) return n.toExponential(2).replace(/e\+?/, "×10^");
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Number(size.toPrecision(3)))));
  // Zeros at the end of the decimals show that the number was rounded.
  const exact = Number(n.toFixed(decimals)) === n;
  return n.toLocaleString("en-US", { maximumFractionDigits: decimals, minimumFractionDigits: exact ? 0 : decimals });
}

/** A number on an axis, where neighbours differ little: nine significant digits, and whole ones in full. */
export function tick(n: number): string {
  if (Math.abs(n) >= 1e15 || Math.abs(n) < 1e-6) return number(n);
  return Number.isInteger(n) ? count(n) : n.toLocaleString("en-US", { maximumSignificantDigits: 9 });
}

/** Ranks from first to last: "rank 3", "ranks 3 to 5". */
export function ranks(first: number, last: number): string {
  return first === last ? `rank ${first}` : `ranks ${first} to ${last}`;
}
