// What every rank does over time. Far out a pixel is the mix of what its ranks spend that time in; near, each call and
// message is drawn by itself. While an answer is on its way the earlier picture is shown, moved and scaled.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { alone, Answer, getPath } from "../api";
import * as colours from "../colours";
import { Asked, Choice, Panel, useAsked, useSize } from "../parts";
import * as units from "../units";
import type { ViewProps } from "../main";
import type { Group } from "../state";
import { above, draw, leftOf, pathColours } from "./timeline-draw";
import { getGroups, groupName, groupNames, Groups, inOrder, Lane, Lanes, lanesOf } from "./timeline-lanes";
import { aloneArgs, Call, CallId, isSame, mostArrows, mostCells, noScene, Scene, scene, Wait, waitArgs } from "./timeline-scene";
import { Search } from "./timeline-search";
import type { Tile, Window } from "./timeline-tiles";

export function Timeline({ run, state, set }: ViewProps) {
  const whole: Window = { from: 0, to: Math.max(run.end_ns, 1), first: 0, last: run.ranks - 1 };
  const chosen: Window = {
    from: state.from !== undefined ? state.from * 1e9 : whole.from,
    to: state.to !== undefined ? Math.min(state.to * 1e9, whole.to) : whole.to,
    first: Math.min(state.first ?? 0, whole.last),
    last: Math.min(state.last ?? state.first ?? whole.last, whole.last),
  };
  const [canvas, width, height] = useSize<HTMLCanvasElement>();
  const [picked, pick] = useState<CallId>();
  const [hover, setHover] = useState<{ x: number; y: number; text: string[] }>();
  const drag = useRef<{ x: number } | undefined>(undefined);
  const [brush, setBrush] = useState<[number, number]>();
  const [coming, setComing] = useState<{ of: string; tiles: Tile[] }>();
  const isDark = colours.dark();
  const waits = state.colour === "waits" && !run.lacks["timeline-waits"];
  const group = alone || run.lacks["timeline-groups"] ? undefined : state.group;
  const grouping: Asked<Groups | undefined> = useAsked(async (signal) => group && getGroups(run.name, group, signal), [run.name, group]);
  const groups = grouping.value?.by === group ? grouping.value : undefined;
  const left = leftOf(!!group), plotWidth = width - left, plotHeight = height - above;
  const bins = Math.max(1, Math.min(2000, Math.ceil(plotWidth / 2)));
  // Waits come in one answer, not in tiles.
  const rows = Math.max(1, Math.floor(Math.min(waits ? mostCells / bins : 1000, plotHeight / 2)));
  const lanes: Lanes | undefined = useMemo(() => groups && lanesOf(groups, state.unfold, chosen.first, chosen.last, rows),
    [groups, state.unfold, chosen.first, chosen.last, rows]);

  const args = {
    ...(alone ? aloneArgs : {
      bins,
      rows,
      lines: mostArrows,
    }),
    "from-s": chosen.from / 1e9 || undefined,
    "to-s": state.to !== undefined ? chosen.to / 1e9 : undefined,
    "from-rank": chosen.first || undefined,
    "to-rank": state.first !== undefined ? chosen.last : undefined,
    ...(group && { by: group, unfold: state.unfold }),
  };
  /** Tiles of other colours or rows are not drawn. */
  const drawnAs = JSON.stringify([isDark, waits, group, state.unfold, chosen.first, chosen.last, rows]);
  const ready = width > 0 && !group === !lanes;
  const asked: Asked<Scene> = useAsked(
    async (signal) => {
      if (!ready) return noScene;
      const show = (tiles: Tile[]) => setComing({ of: drawnAs, tiles });
      const all = await scene({ run: run.name, args, window: chosen, isDark, withWaits: waits, lanes, signal, show });
      setTimeout(() => signal.aborted || setComing(undefined)); // after the scene is there
      return all;
    },
    [run.name, JSON.stringify(args), chosen.to, chosen.last, ready, isDark, waits, lanes],
    60,
    run.lacks.timeline,
  );
  const now = asked.value, shown = coming?.of === drawnAs ? coming.tiles : undefined;
  const critical = !alone && state.critical === "shown";
  const path = useAsked(async (signal) => (critical ? getPath(run.name, chosen.from, chosen.to, signal) : undefined),
    [run.name, critical, chosen.from, chosen.to], 60);
  const show = useMemo(() => ({ window: chosen, lanes, left, width, height, scene: now, coming: shown, isDark, picked, brush, waits, path: path.value }), [
    chosen.from, chosen.to, chosen.first, chosen.last, lanes, left, width, height, now, shown, isDark, picked, brush, waits, path.value,
  ]);
  useEffect(() => {
    if (canvas.current && width > 0 && !group === !lanes) draw(canvas.current, show);
  }, [show]);

  const timeAt = (x: number) => chosen.from + ((x - left) / plotWidth) * (chosen.to - chosen.from);
  const move = (w: Partial<Window>, replace = false, further: Partial<ViewProps["state"]> = {}) => {
    let from = w.from ?? chosen.from, to = w.to ?? chosen.to;
    const span = Math.min(Math.max(to - from, 100), whole.to);
    if (to - from < 100) from = (from + to) / 2 - 50;
    from = Math.min(Math.max(from, 0), whole.to - span);
    to = from + span;
    const first = Math.max(0, Math.round(w.first ?? chosen.first)), last = Math.min(whole.last, Math.round(w.last ?? chosen.last));
    const all = from <= 0 && to >= whole.to, allRanks = first <= 0 && last >= whole.last;
    set({
      from: all ? undefined : Math.round(from) / 1e9, to: all ? undefined : Math.round(to) / 1e9,
      first: allRanks ? undefined : first, last: allRanks ? undefined : last, ...further,
    }, replace);
  };
  const zoom = (by: number, at: number, replace = false) =>
    move({ from: at - (at - chosen.from) * by, to: at + (chosen.to - at) * by }, replace);
  const pan = (share: number, replace = false) => {
    const by = share * (chosen.to - chosen.from);
    move({ from: chosen.from + by, to: chosen.to + by }, replace);
  };
  const panRanks = (share: number) => {
    const n = chosen.last - chosen.first + 1, by = Math.round(share * n) || Math.sign(share);
    const first = Math.min(Math.max(chosen.first + by, 0), whole.last - n + 1);
    move({ first, last: first + n - 1 });
  };
  const zoomRanks = (by: number) => {
    const middle = (chosen.first + chosen.last) / 2, half = Math.max(0, ((chosen.last - chosen.first + 1) * by) / 2);
    move({ first: Math.max(0, Math.round(middle - half)), last: Math.min(whole.last, Math.round(middle + half)) });
  };

  // Not as a property of the element: the browser would make the listener passive, and the page would scroll too.
  useEffect(() => {
    const element = canvas.current!;
    const wheel = (e: WheelEvent) => {
      e.preventDefault();
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan((e.deltaX || e.deltaY) / 1000, true);
      else zoom(Math.exp(e.deltaY / 400), timeAt(e.offsetX), true);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });

  const keys: Record<string, () => void> = {
    ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), ArrowUp: () => panRanks(-0.25), ArrowDown: () => panRanks(0.25),
    "+": () => zoom(0.5, (chosen.from + chosen.to) / 2), "=": () => zoom(0.5, (chosen.from + chosen.to) / 2),
    "-": () => zoom(2, (chosen.from + chosen.to) / 2), "[": () => zoomRanks(0.5), "]": () => zoomRanks(2),
    Home: () => move({ ...whole }), Escape: () => pick(undefined),
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  };

  const laneAt = (y: number): Lane | undefined => lanes?.all[Math.floor(((y - above) / plotHeight) * lanes.all.length)];
  /** The rank whose row this is; undefined if the row is of several. */
  const rankAt = (y: number): number | undefined => {
    if (!lanes) return chosen.first + Math.floor(((y - above) / plotHeight) * (chosen.last - chosen.first + 1));
    const lane = laneAt(y);
    return lane?.ranks === 1 ? lane.rank : undefined;
  };
  const unfold = (at: number | undefined) => set({ unfold: at === state.unfold ? undefined : at });
  const callAt = (x: number, y: number): Call | undefined => {
    // Of calls within three pixels the shortest: a longer one can be hit elsewhere.
    const rank = rankAt(y), t = timeAt(x), slack = (3 * (chosen.to - chosen.from)) / plotWidth;
    let hit: Call | undefined;
    for (const c of now?.calls ?? []) {
      if (c.rank !== rank || c.start - slack > t || t > c.end + slack) continue;
      if (!hit || c.end - c.start < hit.end - hit.start) hit = c;
    }
    return hit;
  };
  const waitAt = (x: number, y: number): Wait | undefined => {
    const rank = rankAt(y), t = timeAt(x);
    return now?.waits?.find((w) => w.rank === rank && w.start <= t && t <= w.end);
  };
  const onMove = (e: PointerEvent) => {
    const x = e.offsetX, y = e.offsetY;
    if (drag.current) {
      setBrush([drag.current.x, x]);
      return;
    }
    if (x < left || y < above) return setHover(undefined);
    const call = callAt(x, y), lane = laneAt(y), rank = rankAt(y);
    const text = call && now?.rows ? describe(now.rows, call.row) : [rank !== undefined ? `rank ${rank}` : `${lane?.label ?? ""}, ${lane?.ranks ?? 0} ranks`];
    if (groups && lane && rank !== undefined) text.push(groupName(groups, lane.group));
    const wait = waitAt(x, y);
    if (wait) text.push(waitText(wait));
    const on = path.value?.parts.find((p) => p.rank === rank && p.from_ns <= timeAt(x) && timeAt(x) <= p.to_ns);
    if (on) text.push(`on the critical path: ${on.kind}${on.call && on.kind !== "compute" ? ` in ${on.call}` : ""}`);
    setHover({ x, y, text: [...text, `at ${units.moment(timeAt(x), chosen.to - chosen.from)}`] });
  };
  const onUp = (e: PointerEvent) => {
    const d = drag.current;
    drag.current = undefined;
    setBrush(undefined);
    if (!d) return;
    if (Math.abs(e.offsetX - d.x) > 4) {
      const a = timeAt(Math.min(d.x, e.offsetX)), b = timeAt(Math.max(d.x, e.offsetX));
      move({ from: Math.max(a, 0), to: b });
    } else pick(callAt(e.offsetX, e.offsetY));
  };

  // Every answer has its own rows: the picked call is looked up in the one that is shown.
  const found = useMemo(() => picked && now?.calls?.find((c) => isSame(c, picked)), [picked, now]);
  return (
    <Panel title="Timeline" run={run.name} query={waits ? "timeline-waits" : group ? "timeline-groups" : "timeline"} args={waits ? waitArgs(args) : args}
      asked={{ ...asked, waiting: asked.waiting || grouping.waiting || path.waiting, error: asked.error ?? grouping.error ?? path.error }}
      cut={now?.cut}
      tools={<>
        <button type="button" onClick={keys["+"]} aria-label="Zoom in">+</button>
        <button type="button" onClick={keys["-"]} aria-label="Zoom out">-</button>
        <button type="button" onClick={keys.ArrowLeft} aria-label="Earlier">←</button>
        <button type="button" onClick={keys.ArrowRight} aria-label="Later">→</button>
        {!group && <>
          <button type="button" onClick={keys["["]} disabled={chosen.last === chosen.first}>Fewer ranks</button>
          <button type="button" onClick={keys["]"]}>More ranks</button>
        </>}
        <button type="button" onClick={keys.Home}>All</button>
        {!run.lacks["timeline-waits"] && (
          <Choice label="Colours" value={waits ? "waits" : "calls"} of={{ calls: "Calls", waits: "Waits" }}
            set={(v) => set({ colour: v === "waits" ? v : undefined })} />
        )}
        {!alone && (
          <button type="button" aria-pressed={critical} class="toggle" onClick={() => set({ critical: critical ? undefined : "shown" })}>Critical path</button>
        )}
        {!alone && !run.lacks["timeline-groups"] && run.ranks > 1 && <Rows group={group} groups={groups} unfolded={state.unfold} set={set} />}
        <Search run={run} window={chosen} found={({ rank, ...at }) => {
          const span = Math.min(chosen.to - chosen.from, 20 * Math.max(at.end - at.start, 1000));
          const middle = (at.start + at.end) / 2;
          const outside = rank < chosen.first || rank > chosen.last;
          move({ from: middle - span / 2, to: middle + span / 2, ...(outside ? { first: Math.max(0, rank - 4), last: rank + 4 } : {}) },
            false, groups && { unfold: groups.first.get(rank) });
        }} />
      </>}>
      <Legend isDark={isDark} waits={waits} path={critical} />
      <div class="canvas tall">
        <canvas ref={canvas} tabIndex={0} role="img" onKeyDown={onKey}
          aria-label={`Timeline of ${units.ranks(chosen.first, chosen.last)}${lanes ? ` in ${lanes.all.length} rows` : ""} from ${(chosen.from / 1e9).toFixed(6)} to ${(chosen.to / 1e9).toFixed(6)} s. ` +
            "Arrow keys move, plus and minus zoom in time, brackets in ranks, Home shows all."}
          onPointerDown={(e) => {
            if (e.button !== 0) return;
            if (e.offsetX < left) return laneAt(e.offsetY) && unfold(laneAt(e.offsetY)!.group);
            e.currentTarget.setPointerCapture(e.pointerId);
            drag.current = { x: e.offsetX };
            setHover(undefined);
          }}
          onPointerMove={onMove} onPointerUp={onUp} onPointerLeave={() => setHover(undefined)} />
        {hover && (
          <div class="tip" style={{ left: `${Math.min(hover.x + 12, width - 220)}px`, top: `${hover.y + 14}px` }}>
            {hover.text.map((t) => <div key={t}>{t}</div>)}
          </div>
        )}
      </div>
      <p class="note">
        {now?.calls ? `Each of ${units.count(now.calls.length)} calls${now.messages ? ` and ${units.count(now.messages.length)} messages` : "; there are too many messages for arrows"}.`
          : "A pixel mixes the colours of what its ranks spend the time in. Zoom in to see each call."}{" "}
        {(state.site !== undefined || state.comm !== undefined) && "A timeline shows the calls of all sites and communicators. "}
        Wheel zooms, shift and wheel moves, dragging selects a time, a click on a call shows it.
        {waits && now && now.tiles.length > 0 && !now.anyWait && " No rank waits for another here."}
        {group && " A click on the name of a group shows its ranks, or hides them."}
      </p>
      {path.value && (
        <p class="note">
          Critical path: {path.value.summary}.
          {path.value.step_ns > 0 && ` Shown in steps of ${units.time(path.value.step_ns)}; zoom in to see each part.`}{" "}
          <code>{path.value.command}</code>
        </p>
      )}
      {found && now?.rows &&
        <Details key={`${found.rank} ${found.thread} ${found.seq}`} rows={now.rows} row={found.row} waits={now.waits} set={set} state={state} />}
    </Panel>
  );
}

/** Chooses what the ranks of a row share, and the group whose ranks have rows each. */
function Rows(props: { group?: Group; groups?: Groups; unfolded?: number; set: ViewProps["set"] }) {
  const { group, groups, set } = props;
  return (
    <>
      <label>Rows{" "}
        <select value={group ?? ""} onChange={(e) => set({ group: (e.currentTarget.value || undefined) as Group | undefined, unfold: undefined })}>
          <option value="">Ranks</option>
          {(Object.keys(groupNames) as Group[]).map((g) => <option key={g} value={g}>{groupNames[g]}</option>)}
        </select>
      </label>
      {groups && (
        <label>with the ranks of{" "}
          <select value={props.unfolded ?? ""}
            onChange={(e) => set({ unfold: e.currentTarget.value === "" ? undefined : Number(e.currentTarget.value) })}>
            <option value="">no group</option>
            {inOrder(groups).slice(0, 1000).map((first) => <option key={first} value={first}>{groupName(groups, first)}</option>)}
          </select>
        </label>
      )}
    </>
  );
}

function Legend({ isDark, waits, path }: { isDark: boolean; waits: boolean; path: boolean }) {
  const of: [string, colours.RGB][] = waits
    ? [...colours.waitNames.map((name): [string, colours.RGB] => [`waits for ${article(name)}`, waitColourOf(name)]),
      ["other time in MPI", colours.quietColour("wait", isDark)], ["outside MPI", colours.outside(isDark)]]
    : [...colours.kinds, "outside MPI"].map((k) => [k, colours.kindColour(k, isDark)]);
  return (
    <ul class="legend" aria-label="Colours">
      {of.map(([name, colour]) => <li key={name}><i style={{ background: colours.css(colour) }} />{name}</li>)}
      {path && <li><i style={{ background: pathColours(isDark)[0] }} />critical path</li>}
    </ul>
  );
}

/** The colour of a wait by its name. */
const waitColourOf = (name: string) => colours.waitColour(name.replace(" ", "-"));

const article = (name: string) => `${name.startsWith("last") ? "the" : "a"} ${name}`;

/** A wait in a line. */
function waitText(w: Wait): string {
  return `waits ${units.time(w.end - w.start)} for ${article(colours.waitName(w.state))}${w.cause === null ? "" : `, rank ${w.cause}`}`;
}

/** A call in a few lines. */
function describe(answer: Answer, row: number): string[] {
  const r = answer.table.get(row)!.toJSON() as Record<string, any>;
  const lines = [`${r.call} on rank ${r.rank}`, units.time(Number((r.end_ns ?? r.start_ns) - r.start_ns))];
  if (r.send_bytes !== null && r.send_bytes !== undefined) lines.push(`sends ${units.bytes(Number(r.send_bytes))}${r.dst !== null ? ` to ${r.dst}` : ""}`);
  if (r.recv_bytes !== null && r.recv_bytes !== undefined) lines.push(`receives ${units.bytes(Number(r.recv_bytes))}${r.src !== null ? ` from ${r.src}` : ""}`);
  if (r.file) lines.push(`${r.file}:${r.line}`);
  return lines;
}

/** All that is known of a call. */
function Details({ rows, row, waits, set, state }: { rows: Answer; row: number; waits?: Wait[] } & Pick<ViewProps, "set" | "state">) {
  const r = rows.table.get(row)!.toJSON() as Record<string, any>;
  const facts = Object.entries(r).filter(([, v]) => v !== null && v !== "");
  const start = Number(r.start_ns), end = r.end_ns === null ? undefined : Number(r.end_ns);
  const wait = waits?.find((w) => w.rank === r.rank && w.start >= start && (end === undefined || w.start <= end));
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <section class="details" aria-label="Call" ref={panel}>
      <h3>{r.call} on rank {r.rank}{r.file && `, ${r.file}:${r.line}`}{end !== undefined && `, ${units.time(end - start)}`}</h3>
      {wait && <p>It {waitText(wait)}.</p>}
      <p>
        {r.callsite !== null && state.site !== r.callsite &&
          <button type="button" onClick={() => set({ site: r.callsite, view: "matrix" })}>Messages of this call site</button>}
        {r.comm !== null && state.comm !== r.comm &&
          <button type="button" onClick={() => set({ comm: r.comm, view: "matrix" })}>Messages of this communicator</button>}
      </p>
      <dl>{facts.map(([name, v]) => <><dt>{name}</dt><dd>{name.endsWith("_ns") ? `${units.count(Number(v))} ns` : String(v)}</dd></>)}</dl>
    </section>
  );
}
