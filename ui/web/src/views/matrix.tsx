// Who sends how much to whom. With many ranks a cell is of several.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Answer, ask, numbers, sql } from "../api";
import * as colours from "../colours";
import { Choice, Panel, useAsked, useSize } from "../parts";
import { mostPairRanks, mostAnswerRows, pairs } from "../pairs";
import { messageCondition } from "../state";
import * as units from "../units";
import type { ViewProps } from "../main";

/** Pixels: of the numbers of ranks. */
const left = 56, above = 24;

interface Cells {
  src: (number | null)[];
  dst: (number | null)[];
  messages: (number | null)[];
  bytes: (number | null)[];
}

export function Matrix({ run, state, set }: ViewProps) {
  const [canvas, width] = useSize<HTMLCanvasElement>();
  const [hover, setHover] = useState<{ x: number; y: number; text: string[] }>();
  const [drag, setDrag] = useState<{ x: number; y: number; toX: number; toY: number }>();
  const first = Math.min(state.first ?? 0, run.ranks - 1), last = Math.min(state.last ?? state.first ?? run.ranks - 1, run.ranks - 1);
  const perCell = Math.max(1, Math.ceil(run.ranks / mostPairRanks));
  const amount = state.amount ?? "bytes";
  const collectives = state.collectives ?? "rooted";
  const query = amount === "bytes" ? "data-density" : "density";
  const where = messageCondition(state);
  // A condition on messages says nothing of collectives: with one, only messages are shown.
  const args = { collectives: where || perCell > 1 ? "none" : collectives, where };
  const asked = useAsked<Answer>(
    (signal) => (perCell > 1 ? sql(run.name, pairs(perCell, where), mostAnswerRows, signal) : ask(query, run.name, args, signal)),
    [run.name, query, JSON.stringify(args), perCell],
    0,
    run.lacks[query],
  );
  const cells = useMemo<Cells | undefined>(() => {
    const t = asked.value?.table;
    return t && { src: numbers(t, "src"), dst: numbers(t, "dst"), messages: numbers(t, "messages"), bytes: numbers(t, "bytes") };
  }, [asked.value]);
  const isDark = colours.dark();
  const size = Math.max(64, Math.min(width - left, 900));
  // Sources that are selected are rows; all ranks are columns.
  const rows = { first: Math.floor(first / perCell), last: Math.floor(last / perCell) };
  const columns = { first: 0, last: Math.floor((run.ranks - 1) / perCell) };
  const height = above + Math.max(48, Math.min(size, (size * (rows.last - rows.first + 1)) / (columns.last + 1)));
  const shown = { cells, amount, log: state.scale !== "linear", rows, columns, perCell, width: left + size, height, isDark, drag } as const;
  useEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, shown);
  }, [cells, amount, state.scale, rows.first, rows.last, width, isDark, drag]);

  const at = (x: number, y: number) => {
    const src = rows.first + Math.floor(((y - above) / (height - above)) * (rows.last - rows.first + 1));
    const dst = columns.first + Math.floor(((x - left) / size) * (columns.last - columns.first + 1));
    return src >= rows.first && src <= rows.last && dst >= 0 && dst <= columns.last ? { src, dst } : undefined;
  };
  const found = useMemo(() => {
    const index = new Map<string, number>();
    cells?.src.forEach((s, i) => index.set(`${s},${cells.dst[i]}`, i));
    return index;
  }, [cells]);
  const names = (cell: number) => units.ranks(cell * perCell, Math.min((cell + 1) * perCell, run.ranks) - 1);
  const onMove = (e: PointerEvent) => {
    if (drag) return setDrag({ ...drag, toX: e.offsetX, toY: e.offsetY });
    const cell = at(e.offsetX, e.offsetY);
    if (!cell || !cells) return setHover(undefined);
    const i = found.get(`${cell.src},${cell.dst}`);
    const text = [`${names(cell.src)} to ${names(cell.dst)}`];
    text.push(i === undefined ? "nothing" : `${units.count(cells.messages[i] ?? 0)} messages, ${units.bytes(cells.bytes[i] ?? 0)}`);
    setHover({ x: e.offsetX, y: e.offsetY, text });
  };
  const onUp = (e: PointerEvent) => {
    const a = drag && at(drag.x, drag.y), b = at(e.offsetX, e.offsetY);
    setDrag(undefined);
    if (!a || !b) return;
    set({ first: Math.min(a.src, b.src) * perCell, last: Math.min(run.ranks, (Math.max(a.src, b.src) + 1) * perCell) - 1 });
  };
  const [least, most] = cells ? range(cells[amount]) : [0, 0];
  const total = cells ? { messages: sum(cells.messages), bytes: sum(cells.bytes) } : undefined;
  return (
    <Panel title="Matrix" asked={asked} cut={asked.value?.more} run={run.name} query={perCell > 1 ? undefined : query} args={args}
      tools={<>
        <Choice label="Amount" value={amount} of={{ bytes: "Bytes", messages: "Messages" }}
          set={(v) => set({ amount: v === "messages" ? v : undefined })} />
        <Choice label="Scale" value={state.scale ?? "log"} of={{ log: "Logarithmic", linear: "Linear" }}
          set={(v) => set({ scale: v === "linear" ? v : undefined })} />
        {perCell === 1 && !where && (
          <label>Collectives{" "}
            <select value={collectives} onChange={(e) => set({ collectives: e.currentTarget.value })}>
              {["rooted", "logical", "tree", "none"].map((c) => <option key={c}>{c}</option>)}
            </select>
          </label>
        )}
      </>}>
      {most > 0 && <Scale least={shown.log ? least : 0} most={most} write={amount === "bytes" ? units.bytes : units.count} isDark={isDark} />}
      <div class="canvas">
        <canvas ref={canvas} tabIndex={0} role="img" style={{ height: `${height}px` }}
          aria-label={`Matrix of ${amount} from rank to rank` + (total ? `: ${units.count(total.messages)} messages, ${units.bytes(total.bytes)} in all` : "")}
          onPointerDown={(e) => { e.currentTarget.setPointerCapture(e.pointerId); setHover(undefined); setDrag({ x: e.offsetX, y: e.offsetY, toX: e.offsetX, toY: e.offsetY }); }}
          onPointerMove={onMove} onPointerUp={onUp} onPointerLeave={() => setHover(undefined)} />
        {hover && (
          <div class="tip" style={{ left: `${Math.min(hover.x + 12, width - 220)}px`, top: `${hover.y + 14}px` }}>
            {hover.text.map((t) => <div key={t}>{t}</div>)}
          </div>
        )}
      </div>
      <p class="note">
        {total && `${units.count(total.messages)} messages, ${units.bytes(total.bytes)}. `}
        Rows send, columns receive. {where && "What is selected limits messages; collectives are left out. "}
        {perCell > 1 && `A cell is of ${perCell} times ${perCell} ranks; collectives are left out. `}
        Dragging over rows selects the ranks that send.
      </p>
    </Panel>
  );
}

const sum = (all: (number | null)[]) => all.reduce<number>((s, v) => s + (v ?? 0), 0);

/** The least value above 0, and the greatest. */
function range(values: (number | null)[]): [number, number] {
  let least = Infinity, most = 0;
  for (const v of values) if (v) [least, most] = [Math.min(least, v), Math.max(most, v)];
  return [most > 0 ? least : 0, most];
}

/** The colour of a share of the scale. Light is little on white paper, dark is little on black: much stands out on both. */
function colourOf(share: number, isDark: boolean): colours.RGB {
  return colours.amountColour(isDark ? 0.1 + 0.9 * share : 0.95 * (1 - share));
}

/** What the colours mean. */
function Scale(props: { least: number; most: number; write: (n: number) => string; isDark: boolean }) {
  const steps = 24;
  return (
    <div class="scale" role="img" aria-label={`Colours from ${props.write(props.least)} to ${props.write(props.most)}`}>
      <span>{props.write(props.least)}</span>
      <svg viewBox={`0 0 ${steps} 1`} preserveAspectRatio="none">
        {Array.from({ length: steps }, (_, i) => (
          <rect key={i} x={i} width={1.05} height={1} fill={colours.css(colourOf(props.most === props.least ? 1 : i / (steps - 1), props.isDark))} />
        ))}
      </svg>
      <span>{props.write(props.most)}</span>
    </div>
  );
}

interface Shown {
  cells?: Cells;
  amount: "bytes" | "messages";
  log: boolean;
  rows: { first: number; last: number };
  columns: { first: number; last: number };
  perCell: number;
  width: number;
  height: number;
  isDark: boolean;
  drag?: { x: number; y: number; toX: number; toY: number };
}

function draw(canvas: HTMLCanvasElement, s: Shown) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(s.height * ratio);
  const g = canvas.getContext("2d")!;
  g.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const plotWidth = s.width - left, plotHeight = s.height - above;
  const nRows = s.rows.last - s.rows.first + 1, nColumns = s.columns.last - s.columns.first + 1;
  g.fillStyle = style.getPropertyValue("--panel");
  g.fillRect(left, above, plotWidth, plotHeight);
  if (s.cells) {
    const values = s.cells[s.amount];
    const [least, most] = range(values);
    const share = (v: number) => (s.log ? (most > least ? Math.log(v / least) / Math.log(most / least) : 1) : v / most);
    const w = plotWidth / nColumns, h = plotHeight / nRows;
    for (let i = 0; i < values.length; i++) {
      const v = values[i], row = s.cells.src[i]! - s.rows.first, column = s.cells.dst[i]! - s.columns.first;
      if (!v || row < 0 || row >= nRows) continue;
      g.fillStyle = colours.css(colourOf(share(v), s.isDark));
      g.fillRect(left + column * w, above + row * h, Math.max(w, 1), Math.max(h, 1));
    }
  }
  if (s.drag) {
    const top = Math.min(s.drag.y, s.drag.toY), bottom = Math.max(s.drag.y, s.drag.toY);
    g.fillStyle = s.isDark ? "rgb(255 255 255 / 0.2)" : "rgb(0 0 0 / 0.15)";
    g.fillRect(left, top, plotWidth, bottom - top);
  }
  g.fillStyle = style.getPropertyValue("--text");
  g.font = "12px system-ui, sans-serif";
  g.textBaseline = "middle";
  const mark = (n: number, length: number, put: (cell: number, at: number) => void) => {
    const every = Math.max(1, Math.ceil((28 * n) / length));
    for (let i = 0; i < n; i += every) put(i, ((i + 0.5) * length) / n);
  };
  g.textAlign = "right";
  mark(nRows, plotHeight, (i, at) => g.fillText(String((s.rows.first + i) * s.perCell), left - 8, above + at));
  g.textAlign = "center";
  mark(nColumns, plotWidth, (i, at) => g.fillText(String((s.columns.first + i) * s.perCell), left + at, above / 2));
}
