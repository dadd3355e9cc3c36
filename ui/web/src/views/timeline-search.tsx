// Finds the next call of a function, or the next wait, that takes at least some time.
import { useState } from "preact/hooks";
import { ask, Run, sql } from "../api";
import * as colours from "../colours";
import { useAsked } from "../parts";
import type { Window } from "./timeline-tiles";

/** A call or wait that was found. */
export interface Found {
  rank: number;
  start: number;
  end: number;
}

export function Search(props: { run: Run; window: Window; found: (f: Found) => void }) {
  const [call, setCall] = useState(props.run.lacks["timeline-waits"] ? "MPI_Wait" : "wait");
  // A thousandth of the run, so that what is found can be seen in it.
  const [least, setLeast] = useState(String(Number((props.run.end_ns / 1e9).toPrecision(1))));
  const [said, say] = useState("");
  const names = useAsked((signal) => functions(props.run.name, signal), [props.run.name]);
  const find = async (e: Event) => {
    e.preventDefault();
    const name = call.trim(), ns = Math.round(Number(least) * 1e6);
    const isWait = colours.waitNames.includes(name) || name === "wait";
    if (!(isWait || /^\w+$/.test(name)) || !(ns >= 0)) return say("want a function or a wait, and ms");
    say("searching");
    try {
      const next = (after: number) => (isWait ? nextWait(props.run, name, after, ns) : nextCall(props.run.name, name, after, ns));
      const isWhole = props.window.from <= 0 && props.window.to >= props.run.end_ns;
      const later = isWhole ? undefined : await next(Math.round((props.window.from + props.window.to) / 2));
      const found = later ?? (await next(-1));
      say(later ? "" : !found ? "there is none" : isWhole ? "the first" : "none later; this is the first");
      if (found) props.found(found);
    } catch (err: any) {
      say(err.message);
    }
  };
  return (
    <form class="search" onSubmit={find}>
      <label>Next <input value={call} onInput={(e) => setCall(e.currentTarget.value)} size={26} list="functions" /></label>
      <datalist id="functions">
        {[...(names.value ?? []), ...(props.run.lacks["timeline-waits"] ? [] : ["wait", ...colours.waitNames])].map((n) => <option key={n} value={n} />)}
      </datalist>
      <label>over <input value={least} onInput={(e) => setLeast(e.currentTarget.value)} size={5} inputMode="decimal" /> ms</label>
      <button>Find</button>
      <span role="status">{said}</span>
    </form>
  );
}

/** The functions that the run calls. */
async function functions(run: string, signal: AbortSignal): Promise<string[]> {
  const { table } = await sql(run, "SELECT DISTINCT call FROM profile ORDER BY call", 1000, signal);
  return table.toArray().map((r) => r.call);
}

/** The next call of a function after a time, in ns, that takes at least so many ns. */
async function nextCall(run: string, name: string, after: number, least: number): Promise<Found | undefined> {
  const text = `SELECT rank, start_ns, end_ns FROM events WHERE call = '${name}' AND start_ns > ${after} ` +
    `AND end_ns - start_ns >= ${least} ORDER BY start_ns, rank LIMIT 1`;
  const { table } = await sql(run, text, 1);
  const row = table.get(0);
  return row ? { rank: Number(row.rank), start: Number(row.start_ns), end: Number(row.end_ns) } : undefined;
}

/** Up to so many waits are listed one by one: what the query allows. */
const mostListed = 100000;

/**
 * The next wait, of a name in colours.waitNames or any, that begins after a time, in ns, and takes at least so many ns. Looks
 * at a hundredth of the run first, then at ever longer parts of it, or shorter ones where there are too many waits to list.
 */
async function nextWait(run: Run, name: string, after: number, least: number): Promise<Found | undefined> {
  for (let from = Math.max(after, 0), span = run.end_ns / 100; from < run.end_ns; ) {
    const args = { "from-s": from / 1e9, "to-s": Math.min(from + span, run.end_ns) / 1e9, "least-ns": least, bins: 1, lines: mostListed };
    const rows = (await ask("timeline-waits", run.name, args)).table.toArray();
    if (rows.length > 0 && rows.every((r) => r.bin !== null)) {
      span /= 16;
      if (span < 1000) throw new Error(`more than ${mostListed} waits in a microsecond: look for longer ones`);
      continue;
    }
    let first: Found | undefined;
    for (const row of rows) {
      const start = Number(row.start_ns);
      if (row.bin !== null || start <= after || (name !== "wait" && colours.waitName(row.state) !== name)) continue;
      if (!first || start < first.start) first = { rank: Number(row.rank), start, end: Number(row.end_ns) };
    }
    if (first) return first;
    from += span;
    span *= 4;
  }
  return undefined;
}
