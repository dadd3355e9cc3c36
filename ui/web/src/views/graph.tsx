// Who sends to whom, as a graph of a few ranks: near each other are those that exchange data.
import { useMemo } from "preact/hooks";
import { Answer, ask, numbers, sql } from "../api";
import * as colours from "../colours";
import { mostPairRanks, mostAnswerRows, pairs } from "../pairs";
import { Choice, Panel, useAsked } from "../parts";
import { messageCondition } from "../state";
import * as units from "../units";
import type { ViewProps } from "../main";
import { circle, Point, springs } from "./graph-layout";

/** More ranks nobody can tell apart. */
const mostRanks = 64;

/** What a rank sends to another. */
interface Edge {
  src: number;
  dst: number;
  messages: number;
  bytes: number;
}

export function Graph({ run, state, set }: ViewProps) {
  const first = Math.min(state.first ?? 0, run.ranks - 1);
  const last = Math.min(state.last ?? state.first ?? run.ranks - 1, run.ranks - 1, first + mostRanks - 1);
  const amount = state.amount ?? "bytes";
  const query = amount === "bytes" ? "data-density" : "density";
  const where = messageCondition({ ...state, first: undefined, last: undefined });
  // Of many ranks not all pairs fit into an answer: only those of the ranks that are drawn are asked for, without collectives.
  const among = run.ranks > mostPairRanks ? { first, last } : undefined;
  const collectives = where || among ? "none" : state.collectives ?? "none";
  const args = { collectives, where };
  const asked = useAsked<Answer>(
    (signal) => (among ? sql(run.name, pairs(1, where, among), mostAnswerRows, signal) : ask(query, run.name, args, signal)),
    [run.name, query, JSON.stringify(args), among?.first, among?.last],
    0,
    run.lacks[query],
  );
  const { inside, outside } = useMemo(() => edgesOf(asked.value?.table, first, last), [asked.value, first, last]);
  const layout = state.layout ?? "springs";
  const places = useMemo(() => {
    const pairs = inside.map((e): [number, number] => [e.src - first, e.dst - first]);
    return layout === "circle" ? circle(last - first + 1) : springs(last - first + 1, pairs);
  }, [inside, layout, first, last]);
  const picked = state.node !== undefined && state.node >= first && state.node <= last ? state.node : undefined;
  const shift = (by: number) => {
    const from = Math.min(Math.max(0, first + by), run.ranks - 1);
    set({ first: from, last: Math.min(from + mostRanks, run.ranks) - 1, node: undefined });
  };
  return (
    <Panel title="Graph" asked={asked} cut={asked.value?.more} run={run.name} query={among ? undefined : query} args={args}
      tools={<>
        <Choice label="Amount" value={amount} of={{ bytes: "Bytes", messages: "Messages" }}
          set={(v) => set({ amount: v === "messages" ? v : undefined })} />
        <Choice label="Layout" value={layout} of={{ springs: "Partners near", circle: "Circle" }}
          set={(v) => set({ layout: v === "circle" ? v : undefined })} />
        {!where && !among && (
          <label>Collectives{" "}
            <select value={collectives} onChange={(e) => set({ collectives: e.currentTarget.value })}>
              {["none", "rooted", "logical", "tree"].map((c) => <option key={c}>{c}</option>)}
            </select>
          </label>
        )}
        {run.ranks > mostRanks && <>
          <button type="button" disabled={first === 0} onClick={() => shift(-mostRanks)}>Earlier ranks</button>
          <button type="button" disabled={last >= run.ranks - 1} onClick={() => shift(mostRanks)}>Later ranks</button>
        </>}
      </>}>
      {asked.value && <Picture edges={inside} places={places} first={first} amount={amount} picked={picked}
        pick={(node) => set({ node: node === picked ? undefined : node })} />}
      <p class="note">
        {asked.value && `${units.ranks(first, last)}: ${total(inside)} between them` + (outside.length ? `, ${total(outside)} with others. ` : ". ")}
        Thicker is more. A click on a rank shows its partners.
        {where && " What is selected limits messages; collectives are left out."}
        {among && !where && " Collectives are left out."}
        {run.ranks > mostRanks && ` At most ${mostRanks} ranks are drawn; the matrix has all.`}
      </p>
      {picked !== undefined && <Partners rank={picked} edges={[...inside, ...outside]} set={set} />}
    </Panel>
  );
}

const total = (edges: Edge[]) =>
  `${units.count(edges.reduce((n, e) => n + e.messages, 0))} messages, ${units.bytes(edges.reduce((n, e) => n + e.bytes, 0))}`;

/** What ranks from first to last send to each other, and what goes between them and others. */
function edgesOf(table: Parameters<typeof numbers>[0] | undefined, first: number, last: number): { inside: Edge[]; outside: Edge[] } {
  const inside: Edge[] = [], outside: Edge[] = [];
  if (!table) return { inside, outside };
  const src = numbers(table, "src"), dst = numbers(table, "dst"), messages = numbers(table, "messages"), bytes = numbers(table, "bytes");
  const within = (r: number) => r >= first && r <= last;
  for (let i = 0; i < src.length; i++) {
    const e = { src: src[i]!, dst: dst[i]!, messages: messages[i] ?? 0, bytes: bytes[i] ?? 0 };
    const ends = Number(within(e.src)) + Number(within(e.dst));
    if (ends > 0) (ends === 2 ? inside : outside).push(e);
  }
  return { inside, outside };
}

/** Of the picture: its size, and the radius of a rank. */
const wide = 1000, high = 640, radius = 15;

function Picture(props: { edges: Edge[]; places: Point[]; first: number; amount: "bytes" | "messages"; picked?: number; pick: (rank: number) => void }) {
  const { first, amount, picked } = props;
  const isDark = colours.dark();
  const at = (rank: number): Point => {
    const p = props.places[rank - first];
    return { x: wide / 2 + p.x * (wide / 2 - 3 * radius), y: high / 2 + p.y * (high / 2 - 4 * radius) };
  };
  const values = props.edges.map((e) => e[amount]).filter((v) => v > 0);
  const most = Math.max(...values, 1), least = Math.min(...values, most);
  // Logarithmic, over a power of ten at least, so that nearly equal amounts look so.
  const share = (v: number) => (v <= 0 ? 0 : 1 - Math.log(most / v) / Math.log(Math.max(most / least, 10)));
  const ordered = [...props.edges].sort((a, b) => a[amount] - b[amount]);
  const labels = new Map<number, string>();
  props.places.forEach((_, i) => {
    const rank = first + i, sent = props.edges.filter((e) => e.src === rank), got = props.edges.filter((e) => e.dst === rank);
    labels.set(rank, `rank ${rank} sends ${total(sent)} to ${sent.length} ranks and receives ${total(got)} from ${got.length}`);
  });
  return (
    <svg class="graph" viewBox={`0 0 ${wide} ${high}`} role="group" aria-label={`Graph of ${amount} between ${props.places.length} ranks`}>
      {ordered.map((e) => {
        const of = share(e[amount]);
        const quiet = picked !== undefined && e.src !== picked && e.dst !== picked;
        const width = 1 + 5 * of, a = at(e.src), b = at(e.dst);
        const colour = colours.css(colours.amountColour(isDark ? 0.25 + 0.75 * of : 0.85 * (1 - of)));
        return (
          <g key={`${e.src} ${e.dst}`} opacity={quiet ? 0.07 : 0.85}>
            <path d={e.src === e.dst ? loop(a) : arc(a, b)} fill="none" stroke={colour} stroke-width={width} />
            {e.src !== e.dst && <path d={head(a, b, width)} fill={colour} />}
          </g>
        );
      })}
      {props.places.map((_, i) => {
        const rank = first + i, p = at(rank);
        return (
          <g key={rank} class="rank" role="button" tabindex={0} aria-pressed={rank === picked} aria-label={labels.get(rank)}
            onClick={() => props.pick(rank)}
            onKeyDown={(e) => {
              if (e.key !== "Enter" && e.key !== " ") return;
              e.preventDefault();
              props.pick(rank);
            }}>
            <title>{labels.get(rank)}</title>
            <circle cx={p.x} cy={p.y} r={radius} />
            <text x={p.x} y={p.y}>{rank}</text>
          </g>
        );
      })}
    </svg>
  );
}

/** The middle of an arc between two ranks: what goes back has another one. */
function bend(a: Point, b: Point): Point {
  return { x: (a.x + b.x) / 2 + (b.y - a.y) * 0.12, y: (a.y + b.y) / 2 - (b.x - a.x) * 0.12 };
}

function arc(a: Point, b: Point): string {
  const m = bend(a, b);
  return `M${a.x} ${a.y}Q${m.x} ${m.y} ${b.x} ${b.y}`;
}

const loop = (p: Point) => `M${p.x - 6} ${p.y - 10}C${p.x - 40} ${p.y - 52} ${p.x + 40} ${p.y - 52} ${p.x + 6} ${p.y - 10}`;

/** The head of an arrow that ends at the edge of rank b. */
function head(a: Point, b: Point, width: number): string {
  const m = bend(a, b), angle = Math.atan2(b.y - m.y, b.x - m.x), size = 7 + width;
  const x = b.x - radius * Math.cos(angle), y = b.y - radius * Math.sin(angle);
  const corner = (turn: number) => `${x - size * Math.cos(angle + turn)} ${y - size * Math.sin(angle + turn)}`;
  return `M${x} ${y}L${corner(0.4)}L${corner(-0.4)}Z`;
}

/** What a rank exchanges with each other one. */
function Partners({ rank, edges, set }: { rank: number; edges: Edge[]; set: ViewProps["set"] }) {
  const rows = new Map<number, { sent?: Edge; got?: Edge }>();
  for (const e of edges) {
    if (e.src === rank) rows.set(e.dst, { ...rows.get(e.dst), sent: e });
    if (e.dst === rank) rows.set(e.src, { ...rows.get(e.src), got: e });
  }
  const bytesOf = (r: { sent?: Edge; got?: Edge }) => (r.sent?.bytes ?? 0) + (r.got?.bytes ?? 0);
  const sorted = [...rows].sort(([a, x], [b, y]) => bytesOf(y) - bytesOf(x) || a - b);
  const cells = (e?: Edge) => [units.count(e?.messages ?? 0), units.bytes(e?.bytes ?? 0)];
  return (
    <section class="details" aria-label="Partners">
      <h3>Rank {rank}</h3>
      <p>
        <button type="button" onClick={() => set({ first: rank, last: rank, view: "timeline" })}>Its timeline</button>{" "}
        <button type="button" onClick={() => set({ first: rank, last: rank, view: "matrix" })}>Its messages in the matrix</button>
      </p>
      <div class="scroll short" tabIndex={0} role="region" aria-label="Partners of the rank">
        <table class="rows">
          <thead><tr>{["Partner", "Messages to", "Sent", "Messages from", "Received"].map((h) => <th key={h} scope="col" class="number">{h}</th>)}</tr></thead>
          <tbody>
            {sorted.map(([other, r]) => (
              <tr key={other}>{[String(other), ...cells(r.sent), ...cells(r.got)].map((c, i) => <td key={i} class="number">{c}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
