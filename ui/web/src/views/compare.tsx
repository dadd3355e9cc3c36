// Two runs one above the other, aligned by the collective operations of all ranks that they have in common.
import { useEffect, useMemo } from "preact/hooks";
import { alone, ask, getMachines, getPath, getPredicted, numbers, Run, sql, texts } from "../api";
import * as colours from "../colours";
import { Asked, Copied, Panel, useAsked, useSize } from "../parts";
import * as units from "../units";
import type { ViewProps } from "../main";
import { above, draw, leftOf } from "./timeline-draw";
import { noScene, Scene, scene } from "./timeline-scene";
import type { Window } from "./timeline-tiles";
import { changesOf, machineOf } from "./whatif";

/** A collective operation of all ranks: its name, and when the last rank began it, in ns. */
interface Operation {
  call: string;
  at: number;
}

/** A time of the one run that is the same place of the program as a time of the other; name is what begins there. */
export interface Anchor {
  name: string;
  a: number;
  b: number;
}

/** So many operations are looked at. */
const mostOperations = 100000;
/** So many phases are listed. */
const mostPhases = 30;

/** The first operations of a run; cut is true if there are more. */
interface Operations {
  all: Operation[];
  cut: boolean;
}

async function operations(run: Run, signal: AbortSignal): Promise<Operations> {
  const text = "SELECT instance, MIN(call) AS call, MAX(start_ns) AS at_ns FROM events WHERE class = 'collective' AND comm = 0 " +
    "AND instance IS NOT NULL AND start_ns IS NOT NULL GROUP BY instance ORDER BY instance";
  const { table, more } = await sql(run.name, text, mostOperations, signal);
  const call = texts(table, "call"), at = numbers(table, "at_ns");
  return { all: call.map((c, i) => ({ call: c, at: at[i]! })), cut: more };
}

/**
 * The anchors of two runs: as many operations as agree from the start, and of the others as many as agree from the end, so that runs
 * with more iterations are aligned too. The last ones of a list that was cut are not those at the end. The start and the end are anchors.
 */
function anchors([{ all: a, cut: cutA }, { all: b, cut: cutB }]: Operations[], endA: number, endB: number): Anchor[] {
  const n = Math.min(a.length, b.length);
  let before = 0, after = 0;
  while (before < n && a[before].call === b[before].call) before++;
  while (!cutA && !cutB && after < n - before && a[a.length - 1 - after].call === b[b.length - 1 - after].call) after++;
  const all: Anchor[] = [{ name: "start", a: 0, b: 0 }];
  for (let i = 0; i < before; i++) all.push({ name: `${a[i].call} ${i}`, a: a[i].at, b: b[i].at });
  for (let i = after; i > 0; i--) {
    const at = a.length - i;
    all.push({ name: `${a[at].call} ${at}`, a: a[at].at, b: b[b.length - i].at });
  }
  all.push({ name: "end", a: endA, b: endB });
  // Two operations may overlap; what comes later is no earlier here.
  for (let i = 1; i < all.length; i++) {
    all[i].a = Math.max(all[i].a, all[i - 1].a);
    all[i].b = Math.max(all[i].b, all[i - 1].b);
  }
  return all;
}

/** The time of the second run that is the place of a time of the first. */
function placeIn(all: Anchor[], t: number): number {
  const i = Math.max(1, all.findIndex((p) => p.a >= t)), from = all[i - 1], to = all[i];
  return to.a > from.a ? from.b + ((t - from.a) / (to.a - from.a)) * (to.b - from.b) : to.b;
}

/** The value of the choice of runs that stands for the prediction; no run has such a name. */
const predictedChoice = "/predicted";

/** The run as predicted on the machine of the what-if; the server makes it. */
function usePredicted(run: Run, state: ViewProps["state"], wanted: boolean) {
  const changes = [state.latency, state.bandwidth, state.cpu, state.buses, state.cpus];
  return useAsked(async (signal) => {
    if (!wanted) return undefined;
    const machine = machineOf(await getMachines(signal), state);
    if (!machine) throw new Error("commq knows no machine");
    return getPredicted(run.name, machine.name, changesOf(machine, state), signal);
  }, [run.name, wanted, state.machine, ...changes], 0, run.lacks.timeline);
}

export function Compare({ run, runs, state, set }: ViewProps) {
  const others = runs.filter((r) => r.name !== run.name && !r.lacks.timeline);
  const stored = others.find((r) => r.name === state.other) ?? others.find((r) => r.ranks === run.ranks) ?? others[0];
  const wanted = !alone && state.beside === "predicted";
  const predicted = usePredicted(run, state, wanted);
  const other = wanted ? predicted.value?.run : stored;
  const lacks = run.lacks.timeline ?? (other || !alone ? undefined : "there is no other run with times and all calls");
  const asked = useAsked(async (signal) => other && { other: other.name, of: await Promise.all([run, other].map((r) => operations(r, signal))) },
    [run.name, other?.name], 0, lacks);
  const critical = !alone && state.critical === "shown";
  const all = useMemo(() => asked.value && other?.name === asked.value.other &&
    anchors(asked.value.of, run.end_ns, other.end_ns), [asked.value, other?.name]);
  const from = (state.from ?? 0) * 1e9, to = Math.min((state.to ?? Infinity) * 1e9, run.end_ns);
  return (
    <Panel title="Two runs" asked={{ ...asked, waiting: asked.waiting || (wanted && predicted.waiting), error: predicted.error ?? asked.error }} run={run.name}
      tools={<>
        {!lacks && (
          <label>{run.name} and{" "}
            <select value={wanted ? predictedChoice : other?.name ?? ""}
              onChange={(e) => set(e.currentTarget.value === predictedChoice ? { beside: "predicted" } : { other: e.currentTarget.value, beside: undefined })}>
              {!other && !wanted && <option value="">(choose)</option>}
              {others.map((r) => <option key={r.name}>{r.name}</option>)}
              {!alone && <option value={predictedChoice}>itself, predicted on another machine</option>}
            </select>
          </label>
        )}
        {!alone && !lacks && (
          <button type="button" aria-pressed={critical} class="toggle" onClick={() => set({ critical: critical ? undefined : "shown" })}>Critical path</button>
        )}
        {state.from !== undefined && <button type="button" onClick={() => set({ from: undefined, to: undefined })}>All</button>}
      </>}>
      {!other && !wanted && !lacks && <p class="note">There is no other run with times and all calls, but this one can be predicted on another machine.</p>}
      {asked.value?.of.some((o) => o.cut) && (
        <p class="lacks" role="status">Only the first {units.count(mostOperations)} collective operations of all ranks of each run are aligned.</p>
      )}
      {all && other && <>
        <Strip run={run} from={from} to={to} marks={all.map((p) => p.a)} critical={critical} />
        <Strip run={other} from={placeIn(all, from)} to={placeIn(all, to)} marks={all.map((p) => p.b)} critical={critical} />
        <p class="note">
          {all.length === 2 ? "The runs have no collective operation of all ranks in common: they are aligned by start and end. "
            : `${units.count(all.length - 2)} collective operations of all ranks are in both. They have a triangle each, as have the start and the end; both pictures begin and end at the same one. `}
          Colours are those of the timeline.
        </p>
        {wanted && predicted.value && <>
          <p class="note">The second run is the first one as simulated. What if has other machines. This writes it into the store:</p>
          <Copied text={predicted.value.command} />
        </>}
        {!alone && <Efficiencies runs={[run, other]} />}
        <Phases all={all} names={[run.name, other.name]} from={from} to={to} set={set} />
      </>}
    </Panel>
  );
}

/** The efficiencies of two runs beside each other. */
function Efficiencies({ runs }: { runs: [Run, Run] }) {
  const asked = useAsked((signal) => Promise.all(runs.map(async (r) => {
    if (r.lacks.efficiency) return undefined;
    const { table } = await ask("efficiency", r.name, {}, signal);
    return new Map(texts(table, "metric").map((metric, i) => [metric, numbers(table, "efficiency")[i]]));
  })), runs.map((r) => r.name));
  const metrics = [...(asked.value?.find((m) => m)?.keys() ?? [])];
  if (asked.error) return <p class="error" role="alert">{asked.error}</p>;
  if (metrics.length === 0) return null;
  const share = (v: number | null | undefined) => (v === null || v === undefined ? "" : `${(100 * v).toFixed(1)} %`);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Efficiencies">
      <table class="rows">
        <caption>Efficiencies</caption>
        <thead><tr><th scope="col">Of what</th>{runs.map((r) => <th key={r.name} scope="col" class="number">{r.name}</th>)}</tr></thead>
        <tbody>
          {metrics.map((m) => <tr key={m}><th scope="row">{m.replace("-", " ")}</th>{asked.value!.map((of, i) => <td key={i} class="number">{share(of?.get(m))}</td>)}</tr>)}
        </tbody>
      </table>
      <p class="note">
        From captured times, of a killed job up to its last records. Where ranks shared cores they include waiting for a core; the overview then has
        the efficiencies of a simulation with a core for each rank.
      </p>
    </div>
  );
}

/** The timeline of a run between two times. */
function Strip({ run, from, to, marks, critical }: { run: Run; from: number; to: number; marks: number[]; critical: boolean }) {
  const [canvas, width, height] = useSize<HTMLCanvasElement>();
  const isDark = colours.dark(), left = leftOf(false);
  const window: Window = { from, to: Math.max(to, from + 1), first: 0, last: run.ranks - 1 };
  const args = { bins: Math.max(1, Math.min(1000, Math.ceil((width - left) / 2))), rows: Math.max(1, Math.floor((height - above) / 2)), lines: 0,
    "from-s": from / 1e9 || undefined, "to-s": window.to / 1e9 };
  const drawn: Asked<Scene> = useAsked(async (signal) => {
    if (width === 0) return noScene;
    const s = await scene({ run: run.name, args, window, isDark, withWaits: false, signal });
    return { ...s, calls: undefined };
  }, [run.name, JSON.stringify(args), isDark, width > 0], 60);
  const path = useAsked(async (signal) => (critical ? getPath(run.name, window.from, window.to, signal) : undefined),
    [run.name, critical, window.from, window.to], 60);
  const visible = marks.filter((m) => m >= window.from && m <= window.to);
  useEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, { window, left, width, height, scene: drawn.value, isDark, waits: false, marks: visible, path: path.value });
  }, [drawn.value, path.value, width, height, isDark, from, to, visible.length]);
  return (
    <section class="canvas strip" aria-label={run.name} aria-busy={drawn.waiting || path.waiting}>
      <h3>{run.name}, {units.time(window.to - window.from)}</h3>
      {(drawn.error ?? path.error) && <p class="error" role="alert">{drawn.error ?? path.error}</p>}
      <canvas ref={canvas} role="img" aria-label={`Timeline of ${run.name} from ${(from / 1e9).toFixed(6)} to ${(window.to / 1e9).toFixed(6)} s, ` +
        `${visible.length} operations of all ranks`} />
      {path.value && <p class="note">Critical path: {path.value.summary}.</p>}
    </section>
  );
}

/** The phases between operations that both runs have, those that differ most first. */
function Phases(props: { all: Anchor[]; names: [string, string]; from: number; to: number; set: ViewProps["set"] }) {
  const phases = props.all.slice(1).map((end, i) => {
    const start = props.all[i];
    return { start, end, a: end.a - start.a, b: end.b - start.b };
  }).filter((p) => p.end.a > props.from && p.start.a < props.to && (p.a > 0 || p.b > 0));
  const shown = [...phases].sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a)).slice(0, mostPhases);
  return (
    <div class="scroll short" tabIndex={0} role="region" aria-label="Phases">
      <table class="rows">
        <caption>Phases that differ most{phases.length > mostPhases && `, ${mostPhases} of ${units.count(phases.length)}`}</caption>
        <thead><tr><th scope="col">From</th><th scope="col">To</th>
          {[...props.names, "Difference"].map((h) => <th key={h} scope="col" class="number">{h}</th>)}</tr></thead>
        <tbody>
          {shown.map((p) => (
            <tr key={p.end.name}>
              <td><button type="button" class="plain" title="Show this phase" onClick={() => props.set({ from: p.start.a / 1e9, to: p.end.a / 1e9 })}>{p.start.name}</button></td>
              <td>{p.end.name}</td>
              <td class="number">{units.time(p.a)}</td><td class="number">{units.time(p.b)}</td>
              <td class="number">{p.b >= p.a ? "+" : "-"}{units.time(Math.abs(p.b - p.a))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
