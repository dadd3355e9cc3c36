// What every rank does over time. Far out a pixel is the mix of what its ranks spend that time in; near, each call and
// message is drawn by itself. While an answer is on its way the earlier picture is shown, moved and scaled.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Answer, ask, numbers, sql, texts } from "../api";
import * as colours from "../colours";
import { Asked, Panel, useAsked, useSize } from "../parts";
import * as units from "../units";
import type { ViewProps } from "../main";

/** A window of time in ns and of ranks, both ends inclusive. */
interface Window {
  from: number;
  to: number;
  first: number;
  last: number;
}

/** A call that is drawn by itself. */
interface Call {
  rank: number;
  start: number;
  end: number;
  kind: string;
  row: number;
}

interface Message {
  src: number;
  dst: number;
  start: number;
  end: number;
  bytes: number;
}

/** What is known of a window. */
interface Scene {
  window: Window;
  /** The mix of every cell: colours of bins by rows of ranks. */
  image?: ImageBitmap;
  ranksPerRow: number;
  messages: Message[];
  calls?: Call[];
  rows?: Answer;
}

/** Up to so many calls are drawn each by itself. */
const mostCalls = 20000;
/** Up to so many messages are drawn as arrows. */
const mostArrows = 2000;
/** Pixels: of the numbers of ranks at the left, and of the axis above. */
const left = 56, above = 24;

export function Timeline({ run, state, set }: ViewProps) {
  const whole: Window = { from: 0, to: Math.max(run.end_ns, 1), first: 0, last: run.ranks - 1 };
  const chosen: Window = {
    from: state.from !== undefined ? state.from * 1e9 : whole.from,
    to: state.to !== undefined ? Math.min(state.to * 1e9, whole.to) : whole.to,
    first: Math.min(state.first ?? 0, whole.last),
    last: Math.min(state.last ?? state.first ?? whole.last, whole.last),
  };
  const [canvas, width, height] = useSize<HTMLCanvasElement>();
  const [picked, pick] = useState<number>();
  const [hover, setHover] = useState<{ x: number; y: number; text: string[] }>();
  const drag = useRef<{ x: number } | undefined>(undefined);
  const [brush, setBrush] = useState<[number, number]>();
  const isDark = colours.dark();
  const plotWidth = width - left, plotHeight = height - above;

  const args = {
    bins: Math.max(1, Math.min(2000, Math.ceil(plotWidth / 2))),
    rows: Math.max(1, Math.min(1000, Math.floor(plotHeight / 2))),
    "from-s": chosen.from / 1e9,
    "to-s": state.to !== undefined ? chosen.to / 1e9 : undefined,
    "from-rank": chosen.first || undefined,
    "to-rank": state.first !== undefined ? chosen.last : undefined,
    lines: mostArrows,
  };
  const ready = width > 0;
  const asked: Asked<Scene> = useAsked(
    async (signal) => (ready ? scene(run.name, args, chosen, isDark, signal) : ({ window: chosen, ranksPerRow: 1, messages: [] } as Scene)),
    [run.name, JSON.stringify(args), chosen.to, chosen.last, ready, isDark],
    60,
    run.lacks.timeline,
  );
  const now = asked.value;
  const show = useMemo(() => ({ window: chosen, width, height, scene: now, isDark, picked, brush }), [
    chosen.from, chosen.to, chosen.first, chosen.last, width, height, now, isDark, picked, brush,
  ]);
  useEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, show);
  }, [show]);

  const timeAt = (x: number) => chosen.from + ((x - left) / plotWidth) * (chosen.to - chosen.from);
  const move = (w: Partial<Window>, replace = false) => {
    let from = w.from ?? chosen.from, to = w.to ?? chosen.to;
    const span = Math.min(Math.max(to - from, 100), whole.to);
    if (to - from < 100) from = (from + to) / 2 - 50;
    from = Math.min(Math.max(from, 0), whole.to - span);
    to = from + span;
    const first = Math.max(0, Math.round(w.first ?? chosen.first)), last = Math.min(whole.last, Math.round(w.last ?? chosen.last));
    const all = from <= 0 && to >= whole.to, allRanks = first <= 0 && last >= whole.last;
    set({
      from: all ? undefined : Math.round(from) / 1e9, to: all ? undefined : Math.round(to) / 1e9,
      first: allRanks ? undefined : first, last: allRanks ? undefined : last,
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

  const lineAt = (y: number) => chosen.first + Math.floor(((y - above) / plotHeight) * (chosen.last - chosen.first + 1));
  const callAt = (x: number, y: number): Call | undefined => {
    const rank = lineAt(y), t = timeAt(x), slack = (chosen.to - chosen.from) / plotWidth;
    return now?.calls?.find((c) => c.rank === rank && c.start - slack <= t && t <= c.end + slack);
  };
  const onMove = (e: PointerEvent) => {
    const x = e.offsetX, y = e.offsetY;
    if (drag.current) {
      setBrush([drag.current.x, x]);
      return;
    }
    if (x < left || y < above) return setHover(undefined);
    const call = callAt(x, y);
    const text = call && now?.rows ? describe(now.rows, call.row) : [`rank ${lineAt(y)}`];
    setHover({ x, y, text: [...text, `at ${(timeAt(x) / 1e9).toFixed(6)} s`] });
  };
  const onUp = (e: PointerEvent) => {
    const d = drag.current;
    drag.current = undefined;
    setBrush(undefined);
    if (!d) return;
    if (Math.abs(e.offsetX - d.x) > 4) {
      const a = timeAt(Math.min(d.x, e.offsetX)), b = timeAt(Math.max(d.x, e.offsetX));
      move({ from: Math.max(a, 0), to: b });
    } else pick(callAt(e.offsetX, e.offsetY)?.row);
  };

  const details = picked !== undefined && now?.rows ? now.rows : undefined;
  return (
    <Panel title="Timeline" asked={asked} run={run.name} query="timeline" args={args}
      tools={<>
        <button type="button" onClick={keys["+"]} aria-label="Zoom in">+</button>
        <button type="button" onClick={keys["-"]} aria-label="Zoom out">-</button>
        <button type="button" onClick={keys.ArrowLeft} aria-label="Earlier">←</button>
        <button type="button" onClick={keys.ArrowRight} aria-label="Later">→</button>
        <button type="button" onClick={keys["["]} disabled={chosen.last === chosen.first}>Fewer ranks</button>
        <button type="button" onClick={keys["]"]}>More ranks</button>
        <button type="button" onClick={keys.Home}>All</button>
        <Search run={run.name} window={chosen} found={(at, rank) => {
          const span = Math.min(chosen.to - chosen.from, 20 * Math.max(at.end - at.start, 1000));
          const middle = (at.start + at.end) / 2;
          const outside = rank < chosen.first || rank > chosen.last;
          move({ from: middle - span / 2, to: middle + span / 2, ...(outside ? { first: Math.max(0, rank - 4), last: rank + 4 } : {}) });
        }} />
      </>}>
      <Legend isDark={isDark} />
      <div class="canvas tall">
        <canvas ref={canvas} tabIndex={0} role="img" onKeyDown={onKey}
          aria-label={`Timeline of ${units.ranks(chosen.first, chosen.last)} from ${(chosen.from / 1e9).toFixed(6)} to ${(chosen.to / 1e9).toFixed(6)} s. ` +
            "Arrow keys move, plus and minus zoom in time, brackets in ranks, Home shows all."}
          onPointerDown={(e) => {
            if (e.button !== 0 || e.offsetX < left) return;
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
        {now?.calls ? `Each of ${units.count(now.calls.length)} calls and ${units.count(now.messages.length)} messages.`
          : "A pixel mixes the colours of what its ranks spend the time in. Zoom in to see each call."}{" "}
        Wheel zooms, shift and wheel moves, dragging selects a time, a click on a call shows it.
      </p>
      {details && <Details rows={details} row={picked!} set={set} state={state} />}
    </Panel>
  );
}

function Legend({ isDark }: { isDark: boolean }) {
  return (
    <ul class="legend" aria-label="Colours">
      {[...colours.kinds, "outside MPI"].map((k) => (
        <li key={k}><i style={{ background: colours.css(colours.kindColour(k, isDark)) }} />{k}</li>
      ))}
    </ul>
  );
}

/** Asks what is drawn of a window: first the mix and the messages, and the calls if they are few. */
async function scene(run: string, args: Record<string, any>, window: Window, isDark: boolean, signal: AbortSignal): Promise<Scene> {
  const { table } = await ask("timeline", run, args, signal);
  const rank = numbers(table, "rank"), ranks = numbers(table, "ranks"), bin = numbers(table, "bin"), start = numbers(table, "start_ns"),
    end = numbers(table, "end_ns"), kind = texts(table, "kind"), time = numbers(table, "time_ns"), calls = numbers(table, "calls"),
    bytes = numbers(table, "bytes"), dst = numbers(table, "dst");
  const bins: number = args.bins;
  let perRow = 1, total = 0;
  for (let i = 0; i < rank.length; i++) {
    perRow = Math.max(perRow, ranks[i] ?? 1);
    total += calls[i] ?? 0;
  }
  const rows = Math.ceil((window.last - window.first + 1) / perRow);
  const mix = new Float64Array(rows * bins * 4);
  const messages: Message[] = [];
  for (let i = 0; i < rank.length; i++) {
    if (kind[i] === "message") {
      messages.push({ src: rank[i]!, dst: dst[i]!, start: start[i]!, end: end[i]!, bytes: bytes[i] ?? 0 });
    } else if (time[i]) {
      const colour = colours.kindColour(kind[i], isDark);
      const at = 4 * (Math.floor((rank[i]! - window.first) / perRow) * bins + bin[i]!);
      for (let k = 0; k < 3; k++) mix[at + k] += colour[k] * time[i]!;
      mix[at + 3] += time[i]!;
    }
  }
  const result: Scene = { window, ranksPerRow: perRow, messages, image: await painted(mix, bins, rows) };
  if (total > 0 && total <= mostCalls && perRow === 1) {
    const { bins: _, rows: __, lines: ___, ...where } = args;
    const answer = await ask("timeline-calls", run, { ...where, limit: 2 * mostCalls }, signal);
    result.rows = answer;
    result.calls = callsOf(answer, window.to);
  }
  return result;
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
function Details({ rows, row, set, state }: { rows: Answer; row: number } & Pick<ViewProps, "set" | "state">) {
  const r = rows.table.get(row)!.toJSON() as Record<string, any>;
  const facts = Object.entries(r).filter(([, v]) => v !== null && v !== "");
  return (
    <section class="details" aria-label="Call">
      <h3>{r.call} on rank {r.rank}</h3>
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

/** Finds the next call of a function that takes at least some time. */
function Search(props: { run: string; window: Window; found: (at: { start: number; end: number }, rank: number) => void }) {
  const [call, setCall] = useState("MPI_Wait");
  const [least, setLeast] = useState("1");
  const [said, say] = useState("");
  const find = async (e: Event) => {
    e.preventDefault();
    const name = call.trim(), ms = Number(least);
    if (!/^\w+$/.test(name) || !(ms >= 0)) return say("want a function and ms");
    say("searching");
    const after = Math.round((props.window.from + props.window.to) / 2);
    const text = `SELECT rank, start_ns, end_ns FROM events WHERE call = '${name}' AND start_ns > ${after} ` +
      `AND end_ns - start_ns >= ${Math.round(ms * 1e6)} ORDER BY start_ns LIMIT 1`;
    try {
      const { table } = await sql(props.run, text, 1);
      if (table.numRows === 0) return say("none after the middle of the window");
      const row = table.get(0)!.toJSON() as Record<string, any>;
      say("");
      props.found({ start: Number(row.start_ns), end: Number(row.end_ns) }, Number(row.rank));
    } catch (err: any) {
      say(err.message);
    }
  };
  return (
    <form class="search" onSubmit={find}>
      <label>Next <input value={call} onInput={(e) => setCall(e.currentTarget.value)} size={14} /></label>
      <label>over <input value={least} onInput={(e) => setLeast(e.currentTarget.value)} size={5} inputMode="decimal" /> ms</label>
      <button>Find</button>
      <span role="status">{said}</span>
    </form>
  );
}

// Drawing.

interface Shown {
  window: Window;
  width: number;
  height: number;
  scene?: Scene;
  isDark: boolean;
  picked?: number;
  brush?: [number, number];
}

function draw(canvas: HTMLCanvasElement, s: Shown) {
  const ratio = devicePixelRatio || 1;
  canvas.width = s.width * ratio;
  canvas.height = s.height * ratio;
  const g = canvas.getContext("2d")!;
  g.scale(ratio, ratio);
  const w = s.window, plotWidth = s.width - left, plotHeight = s.height - above;
  const x = (t: number) => left + ((t - w.from) / (w.to - w.from)) * plotWidth;
  const lane = plotHeight / (w.last - w.first + 1);
  const y = (rank: number) => above + (rank - w.first) * lane;
  g.save();
  g.beginPath();
  g.rect(left, above, plotWidth, plotHeight);
  g.clip();
  const scene = s.scene;
  if (scene?.image) {
    const sw = scene.window;
    g.imageSmoothingEnabled = false;
    const rows = scene.image.height * scene.ranksPerRow;
    g.drawImage(scene.image, x(sw.from), y(sw.first), x(sw.to) - x(sw.from), rows * lane);
  }
  if (scene?.calls) drawCalls(g, scene.calls, s, x, y, lane);
  if (lane >= 4 && scene) drawLines(g, s, lane);
  if (scene && lane >= 2) drawMessages(g, scene.messages, s.isDark, x, y, lane);
  if (s.brush) {
    g.fillStyle = s.isDark ? "rgb(255 255 255 / 0.2)" : "rgb(0 0 0 / 0.15)";
    g.fillRect(Math.min(...s.brush), above, Math.abs(s.brush[1] - s.brush[0]), plotHeight);
  }
  g.restore();
  drawAxes(g, s, x, y, lane);
}

function drawCalls(g: CanvasRenderingContext2D, calls: Call[], s: Shown, x: (t: number) => number, y: (rank: number) => number, lane: number) {
  const gap = lane > 6 ? 1 : 0;
  g.fillStyle = colours.css(colours.outside(s.isDark));
  g.fillRect(left, above, s.width, s.height);
  for (const c of calls) {
    const from = x(c.start), to = Math.max(x(c.end), from + 0.5);
    if (to < left || from > s.width) continue;
    g.fillStyle = colours.css(colours.kindColour(c.kind, s.isDark));
    g.fillRect(from, y(c.rank) + gap, to - from, lane - 2 * gap);
    if (c.row === s.picked) {
      g.strokeStyle = s.isDark ? "#fff" : "#000";
      g.lineWidth = 2;
      g.strokeRect(from, y(c.rank) + 1, to - from, lane - 2);
    }
  }
}

/** Lines between the lanes of ranks. */
function drawLines(g: CanvasRenderingContext2D, s: Shown, lane: number) {
  g.fillStyle = s.isDark ? "rgb(0 0 0 / 0.5)" : "rgb(255 255 255 / 0.7)";
  for (let at = above; at < s.height; at += lane) g.fillRect(left, at - 0.5, s.width, 1);
}

function drawMessages(g: CanvasRenderingContext2D, messages: Message[], isDark: boolean, x: (t: number) => number,
  y: (rank: number) => number, lane: number) {
  g.strokeStyle = g.fillStyle = isDark ? "rgb(255 255 255 / 0.75)" : "rgb(0 0 0 / 0.65)";
  g.lineWidth = messages.length > 500 ? 0.5 : 1;
  for (const m of messages) {
    const x0 = x(m.start), y0 = y(m.src) + lane / 2, x1 = x(m.end), y1 = y(m.dst) + lane / 2;
    g.beginPath();
    g.moveTo(x0, y0);
    g.lineTo(x1, y1);
    g.stroke();
    if (messages.length <= 500) arrowHead(g, x0, y0, x1, y1);
  }
}

function arrowHead(g: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number) {
  const angle = Math.atan2(y1 - y0, x1 - x0), size = 5;
  g.beginPath();
  g.moveTo(x1, y1);
  for (const turn of [2.7, -2.7]) g.lineTo(x1 + size * Math.cos(angle + turn), y1 + size * Math.sin(angle + turn));
  g.fill();
}

function drawAxes(g: CanvasRenderingContext2D, s: Shown, x: (t: number) => number, y: (rank: number) => number, lane: number) {
  const style = getComputedStyle(document.documentElement);
  g.fillStyle = style.getPropertyValue("--text");
  g.strokeStyle = style.getPropertyValue("--line");
  g.font = "12px system-ui, sans-serif";
  g.textBaseline = "middle";
  g.textAlign = "right";
  const every = Math.max(1, Math.ceil(14 / lane));
  for (let r = s.window.first; r <= s.window.last; r++) {
    if ((r - s.window.first) % every === 0) g.fillText(String(r), left - 8, Math.min(y(r) + Math.max(lane, 14) / 2, s.height - 6));
  }
  const span = s.window.to - s.window.from;
  const raw = span / Math.max(2, (s.width - left) / 110), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw)!;
  const [by, unit] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "µs"] : [1, "ns"];
  g.textAlign = "center";
  for (let t = Math.ceil(s.window.from / step) * step; t <= s.window.to; t += step) {
    const text = `${Number((t / (by as number)).toFixed(3))} ${unit}`;
    const at = x(t);
    if (at > left + 20 && at < s.width - 16) g.fillText(text, at, above / 2 - 2);
    g.fillRect(at, above - 5, 1, 5);
  }
}
