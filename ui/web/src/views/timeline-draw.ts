// Draws a window of the timeline: cells or calls, lanes, messages, axes.
import type { PathParts } from "../api";
import * as colours from "../colours";
import type { Lanes } from "./timeline-lanes";
import { Call, CallId, isSame, Message, Scene, Wait } from "./timeline-scene";
import type { Tile, Window } from "./timeline-tiles";

/** Pixels: of the axis above. */
export const above = 24;
/** Pixels: of the names of rows at the left. */
export const leftOf = (grouped: boolean) => (grouped ? 136 : 56);

export interface Shown {
  window: Window;
  /** The rows where these are of groups of ranks. */
  lanes?: Lanes;
  /** Pixels: of the names of rows at the left. */
  left: number;
  width: number;
  height: number;
  scene?: Scene;
  /** Tiles of the window that are there while others come; they are drawn over the scene before. */
  coming?: Tile[];
  isDark: boolean;
  picked?: CallId;
  brush?: [number, number];
  /** The critical path. */
  path?: PathParts;
  /** Times that have a triangle above. */
  marks?: number[];
  /** Colours tell what ranks wait for, not the kinds of calls. */
  waits: boolean;
}

export function draw(canvas: HTMLCanvasElement, s: Shown) {
  const ratio = devicePixelRatio || 1;
  canvas.width = s.width * ratio;
  canvas.height = s.height * ratio;
  const g = canvas.getContext("2d")!;
  g.scale(ratio, ratio);
  const { window: w, left, lanes } = s, plotWidth = s.width - left, plotHeight = s.height - above;
  const x = (t: number) => left + ((t - w.from) / (w.to - w.from)) * plotWidth;
  const lane = plotHeight / (lanes ? lanes.all.length : w.last - w.first + 1);
  const y = (rank: number) => above + (lanes ? lanes.of.get(rank) ?? NaN : rank - w.first) * lane;
  g.save();
  g.beginPath();
  g.rect(left, above, plotWidth, plotHeight);
  g.clip();
  const scene = s.scene;
  const within = (from: number, to: number, paint: () => void) => {
    g.save();
    g.beginPath();
    g.rect(from, above, to - from, plotHeight);
    g.clip();
    paint();
    g.restore();
  };
  // Borders of tiles are borders of the device's pixels: else what is behind them shines through.
  const snap = (v: number) => Math.round(v * ratio) / ratio;
  const drawTile = (t: Tile, grouped: boolean) => {
    const tw = t.window, from = snap(x(t.from)), to = snap(x(t.to + 1));
    if (to <= left || from >= s.width) return;
    const [top, high] = grouped ? [above, plotHeight] : [y(tw.first), t.image.height * t.ranksPerRow * lane];
    const begin = tw.from === t.from ? from : x(tw.from), end = tw.to === t.to + 1 ? to : x(tw.to);
    within(from, to, () => g.drawImage(t.image, begin, top, end - begin, high));
  };
  g.imageSmoothingEnabled = false;
  scene?.tiles.forEach((t) => drawTile(t, !!(lanes || scene.lanes)));
  s.coming?.forEach((t) => drawTile(t, !!lanes));
  // The calls that are known stay over the tiles that come.
  const sw = scene?.window;
  if (scene?.calls && sw && (!s.coming?.length || (sw.first <= w.first && sw.last >= w.last))) {
    within(snap(x(sw.from)), snap(x(sw.to)), () => {
      drawCalls(g, scene.calls!, s, x, y, lane);
      if (scene.waits) drawWaits(g, scene.waits, s, x, y, lane);
    });
  }
  if (lane >= 4 && scene) drawLines(g, s, lane);
  if (scene?.messages && lane >= 2) drawMessages(g, scene.messages, s.isDark, x, y, lane);
  if (s.path) drawPath(g, s.path, s.isDark, x, y, lane);
  if (s.brush) {
    g.fillStyle = s.isDark ? "rgb(255 255 255 / 0.2)" : "rgb(0 0 0 / 0.15)";
    g.fillRect(Math.min(...s.brush), above, Math.abs(s.brush[1] - s.brush[0]), plotHeight);
  }
  g.restore();
  drawAxes(g, s, x, lane);
}

function drawCalls(g: CanvasRenderingContext2D, calls: Call[], s: Shown, x: (t: number) => number, y: (rank: number) => number, lane: number) {
  const gap = lane > 6 ? 1 : 0;
  g.fillStyle = colours.css(colours.outside(s.isDark));
  if (!s.lanes) g.fillRect(s.left, above, s.width, s.height);
  s.lanes?.all.forEach((l, i) => l.ranks === 1 && g.fillRect(s.left, above + i * lane, s.width, lane));
  for (const c of calls) {
    const from = x(c.start), to = Math.max(x(c.end), from + 0.5);
    if (to < s.left || from > s.width || !ownLane(s, c.rank)) continue;
    g.fillStyle = colours.css((s.waits ? colours.quietColour : colours.kindColour)(c.kind, s.isDark));
    g.fillRect(from, y(c.rank) + gap, to - from, lane - 2 * gap);
    if (s.picked && isSame(c, s.picked)) {
      g.strokeStyle = s.isDark ? "#fff" : "#000";
      g.lineWidth = 2;
      g.strokeRect(from, y(c.rank) + 1, to - from, lane - 2);
    }
  }
}

/** True if a rank has a row of its own. */
function ownLane(s: Shown, rank: number): boolean {
  return !s.lanes || s.lanes.all[s.lanes.of.get(rank) ?? -1]?.ranks === 1;
}

/** Waits are drawn into their calls. */
function drawWaits(g: CanvasRenderingContext2D, waits: Wait[], s: Shown, x: (t: number) => number, y: (rank: number) => number, lane: number) {
  const gap = lane > 6 ? 2 : 0;
  for (const w of waits) {
    const from = x(w.start), to = Math.max(x(w.end), from + 0.5);
    if (to < s.left || from > s.width || !ownLane(s, w.rank)) continue;
    g.fillStyle = colours.css(colours.waitColour(w.state));
    g.fillRect(from, y(w.rank) + gap, to - from, lane - 2 * gap);
  }
}

/** The colour of the critical path, and of its edge. */
export const pathColours = (isDark: boolean) => (isDark ? ["#fff", "#000"] : ["#000", "#fff"]);

/** The critical path is a thick line along the lanes, with an edge, so that it is seen on all colours. */
function drawPath(g: CanvasRenderingContext2D, path: PathParts, isDark: boolean, x: (t: number) => number, y: (rank: number) => number, lane: number) {
  const [inner, edge] = pathColours(isDark), thick = Math.max(2, Math.min(6, lane / 3));
  const line = new Path2D();
  let before: number | undefined; // the rank that the line is on
  for (const p of path.parts) {
    const at = y(p.rank) + lane / 2, from = x(p.from_ns);
    if (Number.isNaN(at)) {
      before = undefined;
      continue;
    }
    if (before !== undefined && path.step_ns === 0 && before !== p.rank) line.lineTo(from, at);
    else line.moveTo(from, at);
    line.lineTo(Math.max(x(p.to_ns), from + 0.5), at);
    before = p.rank;
  }
  for (const [colour, width] of [[edge, thick + 2], [inner, thick]] as const) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.stroke(line);
  }
}

/** Lines between the lanes of ranks. */
function drawLines(g: CanvasRenderingContext2D, s: Shown, lane: number) {
  g.fillStyle = s.isDark ? "rgb(0 0 0 / 0.5)" : "rgb(255 255 255 / 0.7)";
  for (let at = above; at < s.height; at += lane) g.fillRect(s.left, at - 0.5, s.width, 1);
}

function drawMessages(g: CanvasRenderingContext2D, messages: Message[], isDark: boolean, x: (t: number) => number,
  y: (rank: number) => number, lane: number) {
  g.strokeStyle = g.fillStyle = isDark ? "rgb(255 255 255 / 0.75)" : "rgb(0 0 0 / 0.65)";
  g.lineWidth = messages.length > 500 ? 0.5 : 1;
  for (const m of messages) {
    if (Number.isNaN(y(m.src) + y(m.dst))) continue;
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

function drawAxes(g: CanvasRenderingContext2D, s: Shown, x: (t: number) => number, lane: number) {
  const style = getComputedStyle(document.documentElement);
  g.fillStyle = style.getPropertyValue("--text");
  g.strokeStyle = style.getPropertyValue("--line");
  g.font = "12px system-ui, sans-serif";
  g.textBaseline = "middle";
  g.textAlign = "right";
  const every = Math.max(1, Math.ceil(14 / lane)), left = s.left;
  const rows = s.lanes ? s.lanes.all.length : s.window.last - s.window.first + 1;
  for (let row = 0; row < rows; row += every) {
    const at = above + row * lane, l = s.lanes?.all[row];
    const name = l ? (l.ranks > 1 ? `${l.label} (${l.ranks})` : l.label) : String(s.window.first + row);
    g.fillText(name, left - 8, Math.min(at + Math.max(lane, 14) / 2, s.height - 6), left - 12);
  }
  for (const m of s.marks ?? []) {
    const at = x(m);
    g.beginPath();
    g.moveTo(at - 4, above - 7);
    g.lineTo(at + 4, above - 7);
    g.lineTo(at, above);
    g.fill();
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
