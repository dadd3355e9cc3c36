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

/** A number: "12,345". */
export function count(n: number): string {
  return n.toLocaleString("en-US", { maximumFractionDigits: 3 });
}

/** Ranks from first to last: "rank 3", "ranks 3 to 5". */
export function ranks(first: number, last: number): string {
  return first === last ? `rank ${first}` : `ranks ${first} to ${last}`;
}
