// What the timeline shows of a window: the answers of the server, ready to be drawn.
import { alone, Answer, Args, ask, numbers, texts } from "../api";
import * as colours from "../colours";
import type { Lanes } from "./timeline-lanes";
import { Cells, cellsOf, Tile, tileOf, tilesOf, Window, within } from "./timeline-tiles";

/** What tells a call from all others of a run. */
export interface CallId {
  rank: number;
  thread: number | null;
  /** Its number along the rank. */
  seq: number | null;
}

/** A call that is drawn by itself. */
export interface Call extends CallId {
  start: number;
  end: number;
  kind: string;
  /** The row of the answer that it came with: another answer has it elsewhere, or not at all. */
  row: number;
}

/** True if both are the same call. */
export const isSame = (a: CallId, b: CallId) => a.rank === b.rank && a.thread === b.thread && a.seq === b.seq;

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
  /** What was asked for; undefined if nothing was. */
  window?: Window;
  tiles: Tile[];
  /** The rows where these are of groups. */
  lanes?: Lanes;
  /** The messages, each by itself; undefined if they are too many. */
  messages?: Message[];
  calls?: Call[];
  rows?: Answer;
  /** The waits, each by itself; undefined if they are not asked for or too many. */
  waits?: Wait[];
  /** True if there is a wait. */
  anyWait?: boolean;
  /** True if an answer had more rows than the server gives, so that not all is drawn. */
  cut?: boolean;
}

/** Nothing is known yet. */
export const noScene: Scene = { tiles: [], messages: [] };

/** Up to so many calls are drawn each by itself. */
const mostCalls = 20000;
/** Up to so many cells are asked for at once: with five kinds of calls in each they fit into an answer. */
export const mostCells = 180000;
/** What a page without a server has inside; onceTimeline in once.go is the same. */
export const aloneArgs = { bins: 600, rows: 300, lines: 1000 };
/** Up to so many messages are drawn as arrows. */
export const mostArrows = 2000;
/** The arguments that ask for the waits of what args ask for. */
export function waitArgs(args: Record<string, any>): Record<string, any> {
  return alone ? args : { ...args, lines: mostCalls };
}

/** What a scene is asked for. */
export interface Asking {
  run: string;
  /** The arguments of timeline or timeline-groups. */
  args: Record<string, any>;
  window: Window;
  isDark: boolean;
  /** Time in MPI is apart by what it waits for, else by the kind of call. */
  withWaits: boolean;
  lanes?: Lanes;
  signal: AbortSignal;
  /** Is given the tiles that are there while others come. */
  show?: (tiles: Tile[]) => void;
}

/** Asks what is drawn of a window: first the mix, then the calls and messages if they are few. */
export async function scene(a: Asking): Promise<Scene> {
  if (alone || a.withWaits) return inOne(a);
  const { bins, lines, "from-s": _, "to-s": __, ...where } = a.args;
  const query = a.lanes ? "timeline-groups" : "timeline";
  const { ready, coming } = tilesOf(query, a.run, where, bins, a.window, a.isDark, a.lanes, a.signal);
  const tiles = [...ready];
  a.show?.([...tiles]);
  await Promise.all(coming.map(async (tile) => {
    tiles.push(await tile);
    if (!a.signal.aborted) a.show?.([...tiles]);
  }));
  return { window: a.window, tiles, lanes: a.lanes, ...(await details(a, tiles)) };
}

/** Asks for the calls of a window and its messages, each by itself, where they are few. */
async function details(a: Asking, tiles: Tile[]): Promise<Pick<Scene, "messages" | "calls" | "rows">> {
  const { calls, sent } = within(tiles, a.window.from, a.window.to);
  const { bins: _, rows: __, lines, by: ___, unfold: ____, ...where } = a.args;
  const [rows, messages] = await Promise.all([
    calls <= mostCalls && (a.lanes || tiles.every((t) => t.ranksPerRow === 1)) ?
      ask("timeline-calls", a.run, { ...where, limit: 2 * mostCalls, order: "any" }, a.signal) : undefined,
    lines > 0 && sent <= lines ? messagesOf(a, where, 2 * lines) : undefined,
  ]);
  return rows && !rows.more ? { messages, rows, calls: callsOf(rows, a.window.to) } : { messages };
}

/** The messages that are on their way in a window; undefined if there are more than most. */
async function messagesOf(a: Asking, where: Args, most: number): Promise<Message[] | undefined> {
  const { table, more } = await ask("timeline-messages", a.run, { ...where, limit: most, order: "any" }, a.signal);
  if (more) return undefined;
  const src = numbers(table, "src"), dst = numbers(table, "dst"), bytes = numbers(table, "bytes");
  const start = numbers(table, "send_start_ns"), end = numbers(table, "recv_end_ns");
  return src.map((s, i) => ({ src: s!, dst: dst[i]!, start: start[i]!, end: end[i]!, bytes: bytes[i] ?? 0 }));
}

/** The scene as one tile of the window alone: with waits, whose steps are those of the window, and without a server. */
async function inOne(a: Asking): Promise<Scene> {
  const { args, run, window, isDark, lanes, signal } = a;
  a.show?.([]);
  // Waits are from rows, so the steps of what they are drawn over are too.
  const [answer, waiting] = await Promise.all([
    ask(lanes ? "timeline-groups" : "timeline", run, alone ? args : { ...args, read: "rows", order: "any", lines: 0 }, signal),
    a.withWaits ? ask("timeline-waits", run, waitArgs(args), signal) : undefined,
  ]);
  const colourOf = a.withWaits ? colours.quietColour : colours.kindColour;
  const cells = cellsOf(answer, args.bins, window, lanes, (kind) => colourOf(kind, isDark));
  const waits = waiting && addWaits(cells, waiting, isDark);
  const tiles = [await tileOf(cells, window)];
  return {
    window, tiles, lanes, waits, anyWait: !!waiting && waiting.table.numRows > 0, cut: answer.more || waiting?.more,
    ...(alone ? { messages: singleMessages(answer) } : await details(a, tiles)),
  };
}

/** The messages that an answer of timeline has each by itself. */
function singleMessages({ table }: Answer): Message[] {
  const kind = texts(table, "kind"), src = numbers(table, "rank"), dst = numbers(table, "dst");
  const start = numbers(table, "start_ns"), end = numbers(table, "end_ns"), bytes = numbers(table, "bytes");
  const found: Message[] = [];
  kind.forEach((k, i) => {
    if (k === "message") found.push({ src: src[i]!, dst: dst[i]!, start: start[i]!, end: end[i]!, bytes: bytes[i] ?? 0 });
  });
  return found;
}

/** Gives waits their colours in the mix, in place of that of other time in MPI; returns the single ones. */
function addWaits(c: Cells, { table }: Answer, isDark: boolean): Wait[] | undefined {
  const rank = numbers(table, "rank"), bin = numbers(table, "bin"), state = texts(table, "state"), cause = numbers(table, "cause");
  const start = numbers(table, "start_ns"), end = numbers(table, "end_ns"), time = numbers(table, "wait_ns");
  const quiet = colours.quietColour("wait", isDark);
  const binAt = (t: number) => Math.max(0, Math.min(c.bins - 1, Math.floor((t - c.from) / c.step)));
  const waits: Wait[] = [];
  for (let i = 0; i < rank.length; i++) {
    if (bin[i] === null) {
      waits.push({ rank: rank[i]!, start: start[i]!, end: end[i]!, state: state[i], cause: cause[i] });
      continue;
    }
    const colour = colours.waitColour(state[i]), at = 4 * (c.rowAt(rank[i]!) + binAt((start[i]! + end[i]!) / 2));
    for (let k = 0; k < 3; k++) c.mix[at + k] += (colour[k] - quiet[k]) * Math.min(time[i]!, c.mix[at + 3]);
  }
  return waits.length > 0 || rank.length === 0 ? waits : undefined;
}

function callsOf(answer: Answer, last: number): Call[] {
  const rank = numbers(answer.table, "rank"), klass = texts(answer.table, "class");
  const thread = numbers(answer.table, "thread"), seq = numbers(answer.table, "seq");
  const start = numbers(answer.table, "start_ns"), end = numbers(answer.table, "end_ns");
  return rank.map((r, row) => {
    const kind = colours.kindOfClass(klass[row]);
    return { rank: r!, thread: thread[row], seq: seq[row], start: start[row]!, end: end[row] ?? last, kind, row };
  });
}
