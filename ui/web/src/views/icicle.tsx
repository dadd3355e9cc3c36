// Call paths as an icicle: every call lies below those that made it, as wide as its share of the time or data.
import { useMemo } from "preact/hooks";
import * as units from "../units";

/** A place of a call path, with what was called from it. */
interface Frame {
  name: string;
  /** The names of its path, from the outermost function. */
  path: string[];
  amount: number;
  below: Map<string, Frame>;
}

/** Rows of the call-site table, by path. */
type Row = Record<string, any>;

export const measures = { time_ns: "Time", send_bytes: "Sent", calls: "Calls" } as const;
export type Measure = keyof typeof measures;

const writers: Record<Measure, (n: number) => string> = { time_ns: units.time, send_bytes: units.bytes, calls: units.count };

/** The path of a row: its callers, its function, its line and the MPI function. */
export function pathOf(r: Row): string[] {
  const line = r.file ? `${String(r.file).split("/").pop()}:${r.line}` : undefined;
  return [...(r.callers ? String(r.callers).split(" < ").reverse() : []), r.function ?? r.module ?? "not known", ...(line ? [line] : []), r.call];
}

/** The address has a path as one text. */
const between = " > ";
export const joined = (path: string[]) => path.join(between);

/** True if a row is below a path of the address; all are if there is none. */
export function isBelow(r: Row, path: string | undefined): boolean {
  const own = joined(pathOf(r)) + between;
  return !path || own.startsWith(path + between);
}

function tree(rows: Row[], measure: Measure): Frame {
  const root: Frame = { name: "all calls", path: [], amount: 0, below: new Map() };
  for (const r of rows) {
    const amount = Number(r[measure]) || 0;
    let at = root;
    at.amount += amount;
    for (const name of pathOf(r)) {
      let next = at.below.get(name);
      if (!next) at.below.set(name, (next = { name, path: [...at.path, name], amount: 0, below: new Map() }));
      next.amount += amount;
      at = next;
    }
  }
  return root;
}

/** A frame at its place: from and share of the width, and the row. */
interface Placed {
  frame: Frame;
  from: number;
  share: number;
  depth: number;
}

/** Narrower ones nobody can see or hit. */
const narrowest = 0.002;

function placed(root: Frame, path: string | undefined): Placed[] {
  const all: Placed[] = [];
  let top = root, depth = 0;
  all.push({ frame: root, from: 0, share: 1, depth });
  // The frames of the path have the whole width, and so has what is below.
  for (;;) {
    const next: Frame | undefined = path === undefined ? undefined
      : [...top.below.values()].find((f) => joined(f.path) === path || path.startsWith(joined(f.path) + between));
    if (!next) break;
    all.push({ frame: next, from: 0, share: 1, depth: ++depth });
    top = next;
  }
  const put = (frame: Frame, from: number, share: number, depth: number) => {
    let at = from;
    for (const f of [...frame.below.values()].sort((a, b) => b.amount - a.amount)) {
      const part = frame.amount > 0 ? (share * f.amount) / frame.amount : 0;
      if (part >= narrowest) {
        all.push({ frame: f, from: at, share: part, depth });
        put(f, at, part, depth + 1);
      }
      at += part;
    }
  };
  put(top, 0, 1, depth + 1);
  return all;
}

/** Pixels of a row. */
const rowHeight = 24;

export function Icicle(props: { rows: Row[]; measure: Measure; path?: string; pick: (path: string | undefined) => void }) {
  const root = useMemo(() => tree(props.rows, props.measure), [props.rows, props.measure]);
  const all = useMemo(() => placed(root, props.path), [root, props.path]);
  const write = writers[props.measure];
  if (root.amount === 0) return <p class="note">No call path has any of it.</p>;
  const pick = (f: Frame) => {
    const path = joined(f.path);
    props.pick(path === props.path ? joined(f.path.slice(0, -1)) || undefined : path || undefined);
  };
  return (
    <div class="icicle" role="group" aria-label="Call paths" style={{ height: `${rowHeight * (1 + Math.max(...all.map((p) => p.depth)))}px` }}
      onKeyDown={(e) => e.key === "Escape" && props.pick(undefined)}>
      {all.map(({ frame, from, share, depth }) => {
        const text = `${frame.name}, ${write(frame.amount)}, ${((100 * frame.amount) / root.amount).toFixed(1)} %`;
        return (
          <button type="button" key={joined(frame.path)} title={text} aria-label={text} onClick={() => pick(frame)}
            class={depth % 2 ? "odd" : ""} aria-pressed={joined(frame.path) === (props.path ?? "")}
            style={{ left: `${100 * from}%`, width: `${100 * share}%`, top: `${depth * rowHeight}px`, height: `${rowHeight - 1}px` }}>
            {share > 0.03 ? frame.name : ""}
          </button>
        );
      })}
    </div>
  );
}
