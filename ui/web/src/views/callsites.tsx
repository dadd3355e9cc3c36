// Where in the source the program communicates: a table that sorts, and its rows as bars.
import { useMemo, useState } from "preact/hooks";
import { Answer } from "../api";
import { Choice, Panel, useQuery } from "../parts";
import * as units from "../units";
import type { ViewProps } from "../main";

import { Icicle, isBelow, Measure, measures } from "./icicle";

/** So many rows are shown. */
const mostShown = 500;

type By = "line" | "path" | "function";

/** A column: its name in the answer, its heading, how a value is written; "" for texts. */
const columns: [string, string, ((n: number) => string) | ""][] = [
  ["call", "Call", ""],
  ["place", "Where", ""],
  ["calls", "Calls", units.count],
  ["ranks", "Ranks", units.count],
  ["messages", "Messages", units.count],
  ["send_bytes", "Sent", units.bytes],
  ["recv_bytes", "Received", units.bytes],
  ["time_ns", "Time", units.time],
];

export function CallSites({ run, state, set }: ViewProps) {
  const by = state.by ?? "line";
  const [sorted, sort] = useState({ column: "time_ns", down: true });
  const sent = useQuery("callsites", run, { by });
  const timed = useQuery("callsite-time", run, { by });
  const all = useMemo(() => merge(sent.value, timed.value), [sent.value, timed.value]);
  const rows = by === "path" ? all.filter((r) => isBelow(r, state.path)) : [...all];
  const hasTime = all.some((r) => r.time_ns !== undefined);
  const column = hasTime || sorted.column !== "time_ns" ? sorted.column : "send_bytes";
  const measure: Measure = state.measure ?? (all.some((r) => r.time_ns !== undefined) ? "time_ns" : "send_bytes");
  rows.sort((a, b) => compare(a[column], b[column]) * (sorted.down ? -1 : 1));
  const most = Math.max(...rows.map((r) => Number(r[column]) || 0), 1);
  const shown = columns.filter(([name]) => name !== "time_ns" || hasTime);
  return (
    <Panel title="Call sites" asked={sent} cut={sent.value?.more || timed.value?.more} run={run.name} query="callsites" args={{ by }}
      tools={<>
        <Choice<By> label="Grouped by" value={by} of={{ line: "Line", path: "Call path", function: "Function" }}
          set={(v) => set({ by: v === "line" ? undefined : v, path: undefined })} />
        {by === "path" && all.length > 0 && <Choice<Measure> label="Width" value={measure} of={measures} set={(v) => set({ measure: v })} />}
      </>}>
      {by === "path" && all.length > 0 && <>
        <Icicle rows={all} measure={measure} path={state.path} pick={(path) => set({ path })} />
        <p class="note">
          Calls lie below what calls them, with the MPI function last. A click shows a path alone, here and in the table; another one or Escape
          takes it back.{!all.some((r) => r.callers) && " The run has no callers; commq run --stack 16 keeps them."}
        </p>
      </>}
      {rows.length > mostShown && <p class="note">The first {mostShown} of {units.count(rows.length)} rows, as they are sorted.</p>}
      {rows.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="Rows">
        <table class="rows">
          <thead>
            <tr>
              {shown.map(([name, heading, write]) => (
                <th key={name} scope="col" class={write ? "number" : ""} aria-sort={name === column ? (sorted.down ? "descending" : "ascending") : "none"}>
                  <button type="button" onClick={() => sort({ column: name, down: name === column ? !sorted.down : write !== "" })}>
                    {heading}{name === column ? (sorted.down ? " ▾" : " ▴") : ""}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, mostShown).map((r) => (
              <tr key={`${r.callsite} ${r.call}`} class={r.callsite === state.site ? "picked" : ""}>
                {shown.map(([name, , write]) => (
                  <td key={name} class={write ? "number" : ""}>
                    {name === "place" && r.callsite !== undefined ? (
                      <button type="button" class="plain" title="The messages of this call site" onClick={() => set({ site: r.callsite, view: "matrix" })}>{r.place}</button>
                    ) : write ? (r[name] === undefined ? "" : write(r[name])) : r[name]}
                    {name === column && write && (
                      <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                        <rect width={(100 * (Number(r[name]) || 0)) / most} height="4" />
                      </svg>
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>}
      {!sent.lacks && (timed.lacks ?? timed.error) && <p class="note">No times: {timed.lacks ?? timed.error}</p>}
    </Panel>
  );
}

function compare(a: any, b: any): number {
  if (a === undefined || b === undefined) return (a !== undefined ? 1 : 0) - (b !== undefined ? 1 : 0);
  return typeof a === "number" ? a - b : String(b).localeCompare(String(a));
}

/** Joins what call sites send with the time that they take. */
function merge(sent: Answer | undefined, timed: Answer | undefined): Record<string, any>[] {
  const rows = new Map<string, Record<string, any>>();
  for (const answer of [sent, timed]) {
    for (const r of answer?.table.toArray() ?? []) {
      const given = r.toJSON();
      const key = `${given.callsite} ${given.call}`;
      const row = rows.get(key) ?? { place: placeOf(given) };
      for (const [name, v] of Object.entries(given)) if (v !== null) row[name] = typeof v === "bigint" ? Number(v) : v;
      rows.set(key, row);
    }
  }
  return [...rows.values()];
}

export function placeOf(r: Record<string, any>): string {
  const base = r.file ? `${String(r.file).split("/").pop()}:${r.line}` : r.code_offset ? `${r.module}+0x${Number(r.code_offset).toString(16)}` : r.module ?? "";
  const at = r.function && base ? `${r.function} (${base})` : r.function || base || "not known";
  return r.callers ? `${at} < ${r.callers}` : at;
}
