// The picture of a timeline in tiles: equal parts of its time that are asked, drawn and kept one by one. A tile begins at a
// multiple of its length, so it is of use whatever window it was asked for.
import { Answer, Args, ask, numbers, texts } from "../api";
import * as colours from "../colours";
import type { Lanes } from "./timeline-lanes";

/** A window of time in ns and of ranks, both ends inclusive. */
export interface Window {
  from: number;
  to: number;
  first: number;
  last: number;
}

/** A picture of some time. */
export interface Tile {
  /** What the image covers: the tile's time, or a little more. */
  window: Window;
  /** The tile's own time. */
  from: number;
  to: number;
  /** The mix of every cell: colours of steps by rows of ranks. */
  image: ImageBitmap;
  ranksPerRow: number;
  /** The calls that begin in each step, and the messages that are sent in it. */
  calls: Float64Array;
  sent: Float64Array;
}

/** Steps of a tile: 128 to 256 pixels wide, as a step is 2 to 4. */
const tileSteps = 64;
/** Up to so many tiles are kept: 50 to 100 kB each, 256 kB of 1,000 rows. */
const mostKept = 400;

/** The cells of an answer of timeline or timeline-groups. */
export interface Cells {
  /** Sums of colours, each times ns, and of ns. */
  mix: Float64Array;
  /** Of the picture in ns: when it begins and how long a step is. */
  from: number;
  step: number;
  bins: number;
  rows: number;
  first: number;
  ranksPerRow: number;
  calls: Float64Array;
  sent: Float64Array;
  /** The index of a rank's first cell. */
  rowAt: (rank: number) => number;
}

/** Sums an answer by cells. */
export function cellsOf({ table }: Answer, bins: number, window: Window, lanes: Lanes | undefined,
  colourOf: (kind: string) => colours.RGB): Cells {
  const rank = numbers(table, "rank"), ranks = numbers(table, "ranks"), bin = numbers(table, "bin");
  const start = numbers(table, "start_ns"), end = numbers(table, "end_ns"), time = numbers(table, "time_ns");
  const kind = texts(table, "kind"), begun = numbers(table, "calls"), messages = numbers(table, "messages");
  let ranksPerRow = 1;
  for (const n of ranks) ranksPerRow = Math.max(ranksPerRow, n ?? 1);
  // From sums the steps and rows begin at multiples of their size: a little before the window.
  const any = bin.findIndex((b) => b !== null);
  const step = any < 0 ? Math.max(1, (window.to - window.from) / bins) : end[any]! - start[any]!;
  const from = any < 0 ? window.from : start[any]! - bin[any]! * step;
  const before = any < 0 || lanes ? 0 : (((window.first - rank[any]!) % ranksPerRow) + ranksPerRow) % ranksPerRow;
  const first = window.first - before;
  const rows = lanes ? lanes.all.length : Math.ceil((window.last - first + 1) / ranksPerRow);
  const rowAt = (r: number) => (lanes ? lanes.of.get(r)! : Math.floor((r - first) / ranksPerRow)) * bins;
  const mix = new Float64Array(rows * bins * 4), calls = new Float64Array(bins), sent = new Float64Array(bins);
  for (let i = 0; i < rank.length; i++) {
    const b = bin[i];
    if (b === null) continue;
    calls[b] += begun[i] ?? 0;
    sent[b] += messages[i] ?? 0;
    if (!time[i]) continue;
    const colour = colourOf(kind[i]), at = 4 * (rowAt(rank[i]!) + b);
    for (let k = 0; k < 3; k++) mix[at + k] += colour[k] * time[i]!;
    mix[at + 3] += time[i]!;
  }
  return { mix, from, step, bins, rows, first, ranksPerRow, calls, sent, rowAt };
}

/** The tile that cells are drawn as. */
export async function tileOf(c: Cells, window: Window): Promise<Tile> {
  const image = new ImageData(c.bins, c.rows);
  for (let at = 0; at < c.mix.length; at += 4) {
    if (c.mix[at + 3] === 0) continue;
    for (let k = 0; k < 3; k++) image.data[at + k] = c.mix[at + k] / c.mix[at + 3];
    image.data[at + 3] = 255;
  }
  return {
    window: { ...window, from: c.from, to: c.from + c.bins * c.step, first: c.first }, from: window.from, to: window.to,
    image: await createImageBitmap(image), ranksPerRow: c.ranksPerRow, calls: c.calls, sent: c.sent,
  };
}

/** How many calls begin in a time, and how many messages are sent in it, as far as tiles tell: to whole steps. */
export function within(tiles: Tile[], from: number, to: number): { calls: number; sent: number } {
  let calls = 0, sent = 0;
  for (const t of tiles) {
    const step = (t.window.to - t.window.from) / t.calls.length;
    for (let bin = 0; bin < t.calls.length; bin++) {
      const at = t.window.from + bin * step;
      if (at > to || at + step <= from) continue;
      calls += t.calls[bin];
      sent += t.sent[bin];
    }
  }
  return { calls, sent };
}

/** A tile that is asked for. */
interface Flight {
  tile: Promise<Tile>;
  stop: AbortController;
  /** Who waits for it. */
  users: number;
}

const kept = new Map<string, Tile>();
const flights = new Map<string, Flight>();
/** A tile that nobody waits for is still answered if the next window wants it within so many ms. */
const grace = 150;

/**
 * The tiles of a window of bins steps or fewer, 2^n ns each: those that are kept, and promises of the others. args are
 * those of the query for any window.
 */
export function tilesOf(query: string, run: string, args: Args, bins: number, window: Window, isDark: boolean,
  lanes: Lanes | undefined, signal: AbortSignal): { ready: Tile[]; coming: Promise<Tile>[] } {
  const length = tileSteps * 2 ** Math.max(0, Math.ceil(Math.log2((window.to - window.from) / bins)));
  const ready: Tile[] = [], coming: Promise<Tile>[] = [];
  for (let n = Math.floor(window.from / length); n * length <= window.to; n++) {
    const own = { ...window, from: n * length, to: (n + 1) * length - 1 };
    const key = JSON.stringify([query, run, args, isDark, own]);
    const tile = kept.get(key);
    if (!tile) {
      coming.push(wait(key, signal, (stop) => askTile(query, run, args, own, isDark, lanes, stop)));
      continue;
    }
    ready.push(tile);
    kept.delete(key); // the one used last comes last
    kept.set(key, tile);
  }
  return { ready, coming };
}

/** So many tiles are asked for at once: the server answers them one by one, and other questions should not wait for all. */
let turns = 3;
const queue: (() => void)[] = [];

/** Asks when it is its turn. */
async function inTurn<T>(question: () => Promise<T>): Promise<T> {
  if (turns === 0) await new Promise<void>((go) => queue.push(go));
  else turns--;
  try {
    return await question();
  } finally {
    const next = queue.shift();
    if (next) next();
    else turns++;
  }
}

/** Asks for a tile once, however many wait for it. */
function wait(key: string, signal: AbortSignal, question: (stop: AbortSignal) => Promise<Tile>): Promise<Tile> {
  let flight = flights.get(key);
  if (!flight) {
    const stop = new AbortController();
    const asked: Flight = { stop, users: 0, tile: inTurn(() => question(stop.signal)) };
    const ended = () => flights.get(key) === asked && flights.delete(key);
    asked.tile.then((tile) => {
      ended();
      kept.set(key, tile);
      if (kept.size > mostKept) kept.delete(kept.keys().next().value!);
    }, ended); // everyone who waits for it gets the error
    flights.set(key, flight = asked);
  }
  const waited = flight;
  waited.users++;
  signal.addEventListener("abort", () => {
    waited.users--;
    setTimeout(() => {
      if (waited.users > 0) return;
      if (flights.get(key) === waited) flights.delete(key); // the next one asks again
      waited.stop.abort();
    }, grace);
  });
  return waited.tile;
}

async function askTile(query: string, run: string, args: Args, own: Window, isDark: boolean, lanes: Lanes | undefined,
  signal: AbortSignal): Promise<Tile> {
  const seconds = (ns: number) => (ns / 1e9).toFixed(9);
  const answer = await ask(query, run, { ...args, bins: tileSteps, lines: 0, order: "any",
    "from-s": own.from > 0 ? seconds(own.from) : undefined, "to-s": seconds(own.to) }, signal);
  return tileOf(cellsOf(answer, tileSteps, own, lanes, (kind) => colours.kindColour(kind, isDark)), own);
}
