// What the timeline shows of a window: the answers of the server, ready to be drawn.
import { alone, Answer, ask, numbers, texts } from "../api";
import * as colours from "../colours";
import type { Lanes } from "./timeline-lanes";

/** A window of time in ns and of ranks, both ends inclusive. */
export interface Window {
  from: number;
  to: number;
  first: number;
  last: number;
}

/** A call that is drawn by itself. */
export interface Call {
  rank: number;
  start: number;
  end: number;
  kind: string;
  row: number;
}

export interface Message {
  src: number;
  dst: number;
  start: number;
  end: number;
  bytes: number;
}

/** A time that a rank waited for another. */
export interface Wait {
  rank: number;
  start: number;
  end: number;
  /** Kind of wait, as in the query wait-states. */
  state: string;
  /** The rank that it waited for; null in scans. */
  cause: number | null;
}

/** What is known of a window. */
export interface Scene {
  /** What the image covers: the window, or a little more. */
  window: Window;
  /** The mix of every cell: colours of bins by rows of ranks. */
  image?: ImageBitmap;
  ranksPerRow: number;
  /** The rows where these are of groups. */
  lanes?: Lanes;
  messages: Message[];
  calls?: Call[];
  rows?: Answer;
  /** The waits, each by itself; undefined if they are not asked for or too many. */
  waits?: Wait[];
  /** True if there is a wait. */
  anyWait?: boolean;
}

/** Up to so many calls are drawn each by itself. */
const mostCalls = 20000;
/** What a page without a server has inside; onceTimeline in once.go is the same. */
export const aloneArgs = { bins: 600, rows: 350, lines: 1000 };
/** Up to so many messages are drawn as arrows. */
export const mostArrows = 2000;
/** The arguments that ask for the waits of what args ask for. */
export function waitArgs(args: Record<string, any>): Record<string, any> {
  return alone ? args : { ...args, lines: mostCalls };
}

/**
 * Asks what is drawn of a window: first the mix and the messages, and the calls if they are few. With waits, time in MPI is
 * apart by what it waits for, else by the kind of call.
 */
export async function scene(run: string, args: Record<string, any>, window: Window, isDark: boolean, withWaits: boolean,
  lanes: Lanes | undefined, signal: AbortSignal): Promise<Scene> {
  // Waits are from rows, so the steps of what they are drawn over are too.
  const read = withWaits && !alone ? "rows" : undefined;
  const order = alone ? undefined : "any"; // a picture needs none
  const [{ table }, waiting] = await Promise.all([
    ask(lanes ? "timeline-groups" : "timeline", run, { ...args, read, order }, signal), withWaits ? ask("timeline-waits", run, waitArgs(args), signal) : undefined,
  ]);
  const colourOf = (kind: string) => (withWaits ? colours.quietColour(kind, isDark) : colours.kindColour(kind, isDark));
  const rank = numbers(table, "rank"), ranks = numbers(table, "ranks"), bin = numbers(table, "bin"), start = numbers(table, "start_ns"),
    end = numbers(table, "end_ns"), kind = texts(table, "kind"), time = numbers(table, "time_ns"), calls = numbers(table, "calls"),
    bytes = numbers(table, "bytes"), dst = numbers(table, "dst");
  const bins: number = args.bins;
  let perRow = 1, total = 0;
  for (let i = 0; i < rank.length; i++) {
    perRow = Math.max(perRow, ranks[i] ?? 1);
    total += calls[i] ?? 0;
  }
  // From sums the steps and rows begin at multiples of their size: a little before the window.
  const any = bin.findIndex((b) => b !== null);
  const step = any < 0 ? 1 : end[any]! - start[any]!, from = any < 0 ? window.from : start[any]! - bin[any]! * step;
  const first = any < 0 || lanes ? window.first : window.first - ((((window.first - rank[any]!) % perRow) + perRow) % perRow);
  const rows = lanes ? lanes.all.length : Math.ceil((window.last - first + 1) / perRow);
  const rowAt = (r: number) => (lanes ? lanes.of.get(r)! : Math.floor((r - first) / perRow)) * bins;
  const binAt = (t: number) => Math.max(0, Math.min(bins - 1, Math.floor((t - from) / step)));
  const mix = new Float64Array(rows * bins * 4);
  const messages: Message[] = [];
  for (let i = 0; i < rank.length; i++) {
    if (kind[i] === "message") {
      messages.push({ src: rank[i]!, dst: dst[i]!, start: start[i]!, end: end[i]!, bytes: bytes[i] ?? 0 });
    } else if (time[i]) {
      const colour = colourOf(kind[i]);
      const at = 4 * (rowAt(rank[i]!) + bin[i]!);
      for (let k = 0; k < 3; k++) mix[at + k] += colour[k] * time[i]!;
      mix[at + 3] += time[i]!;
    }
  }
  const waits = waiting && addWaits(mix, waiting, rowAt, binAt, isDark);
  const result: Scene = { window: any < 0 ? window : { from, to: from + bins * step, first, last: window.last }, ranksPerRow: perRow, lanes, messages, waits, anyWait: !!waiting && waiting.table.numRows > 0, image: await painted(mix, bins, rows) };
  if (!alone && total > 0 && total <= mostCalls && (perRow === 1 || lanes)) {
    const { bins: _, rows: __, lines: ___, by: ____, unfold: _____, ...where } = args;
    const answer = await ask("timeline-calls", run, { ...where, limit: 2 * mostCalls }, signal);
    result.rows = answer;
    result.calls = callsOf(answer, window.to);
  }
  return result;
}

/** Gives waits their colours in the mix, in place of that of other time in MPI; returns the single ones. */
function addWaits(mix: Float64Array, { table }: Answer, rowAt: (rank: number) => number, binAt: (t: number) => number,
  isDark: boolean): Wait[] | undefined {
  const rank = numbers(table, "rank"), bin = numbers(table, "bin"), start = numbers(table, "start_ns"), end = numbers(table, "end_ns"),
    state = texts(table, "state"), time = numbers(table, "wait_ns"), cause = numbers(table, "cause");
  const quiet = colours.quietColour("wait", isDark);
  const waits: Wait[] = [];
  for (let i = 0; i < rank.length; i++) {
    if (bin[i] === null) {
      waits.push({ rank: rank[i]!, start: start[i]!, end: end[i]!, state: state[i], cause: cause[i] });
      continue;
    }
    const colour = colours.waitColour(state[i]), at = 4 * (rowAt(rank[i]!) + binAt((start[i]! + end[i]!) / 2));
    for (let k = 0; k < 3; k++) mix[at + k] += (colour[k] - quiet[k]) * Math.min(time[i]!, mix[at + 3]);
  }
  return waits.length > 0 || rank.length === 0 ? waits : undefined;
}

function painted(mix: Float64Array, bins: number, rows: number): Promise<ImageBitmap> {
  const image = new ImageData(bins, rows);
  for (let at = 0; at < mix.length; at += 4) {
    if (mix[at + 3] === 0) continue;
    for (let k = 0; k < 3; k++) image.data[at + k] = mix[at + k] / mix[at + 3];
    image.data[at + 3] = 255;
  }
  return createImageBitmap(image);
}

function callsOf(answer: Answer, last: number): Call[] {
  const rank = numbers(answer.table, "rank"), start = numbers(answer.table, "start_ns"), end = numbers(answer.table, "end_ns"),
    klass = texts(answer.table, "class");
  return rank.map((r, row) => ({ rank: r!, start: start[row]!, end: end[row] ?? last, kind: colours.kindOfClass(klass[row]), row }));
}
