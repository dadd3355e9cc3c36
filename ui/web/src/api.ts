// What the page asks the server. Rows come as Arrow tables; errors are the server's own words.
import { DataType, Table, tableFromIPC } from "apache-arrow";

/** A run in the list; the field names are those of ui.Listed in Go. */
export interface Run {
  name: string;
  ranks: number;
  calls: number;
  messages: number;
  /** When the last call ended, in ns since the run's start; 0 without times. */
  end_ns: number;
  /** The arguments that name the run on a command line. */
  args: string[];
  /** Why queries, by their names, cannot be asked of the run. */
  lacks: Record<string, string>;
  /** What the run's rows are: another run of the same name has another one. */
  digest: string;
}

/** The arguments of a query by name. Undefined ones keep their default. */
export type Args = Record<string, string | number | undefined>;

/** Rows and whether there are more of them than were asked for. */
export interface Answer {
  table: Table;
  more: boolean;
}

/** The answers inside a page that commq ui --once wrote, by path and values; undefined if a server answers. */
const saved: Record<string, { header: Record<string, string>; body: string }> | undefined = (() => {
  const element = document.getElementById("answers");
  return element ? JSON.parse(element.textContent!) : undefined;
})();

/** True if no server answers, so that only what the page has inside can be shown. */
export const alone = saved !== undefined;

/** The answer to a question inside the page; once.go names it in the same way. */
function fromPage(path: string, body: unknown): Response {
  const [place, values] = path.split("?");
  const parts = [...new URLSearchParams(values ?? "")].map(([name, value]) => `${name}=${value}`).sort();
  const answer = saved![`${place}?${parts.join("&")}${body ?? ""}`];
  if (!answer) throw new Error("This page was saved and has no answer to that; commq ui has.");
  return new Response(Uint8Array.from(atob(answer.body), (c) => c.charCodeAt(0)), { headers: answer.header });
}

/** The digests of the runs that the page knows; all that it shows is of these. */
const digests = new Map<string, string>();

async function get(path: string, init: RequestInit): Promise<Response> {
  if (saved) return fromPage(path, init.body);
  const response = await fetch(path, init);
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  const run = new URLSearchParams(path.split("?")[1]).get("run"), digest = response.headers.get("Commq-Digest");
  const known = run && digests.get(run);
  if (known && digest && known !== digest) throw new Error(`The run ${run} was replaced while this page was open: load the page again.`);
  return response;
}

export async function getRuns(): Promise<Run[]> {
  const runs: Run[] = await (await get("api/runs", {})).json();
  for (const run of runs) digests.set(run.name, run.digest);
  return runs;
}

/** What a run is, in words. */
export async function getFacts(run: string, signal: AbortSignal): Promise<{ Name: string; Value: string }[]> {
  return (await get("api/facts?" + new URLSearchParams({ run }), { signal })).json();
}

export async function getDiagnosis(run: string, signal: AbortSignal): Promise<any> {
  return (await get("api/diagnose?" + new URLSearchParams({ run }), { signal })).json();
}

/** A machine that commq knows; see ui.Machine in Go. */
export interface Machine {
  name: string;
  latency_ns: number;
  bandwidth_bytes_per_s: number;
  buses: number;
  cpus_per_node: number;
  cpu_ratio: number;
}

export async function getMachines(signal: AbortSignal): Promise<Machine[]> {
  return (await get("api/machines", { signal })).json();
}

/** Simulates a run on a machine with changes KEY=VALUE; the answer is that of commq simulate --format json. */
export async function whatIf(run: string, machine: string, changes: string[], signal: AbortSignal): Promise<{ answer: any; command: string }> {
  const given = new URLSearchParams({ run, machine });
  for (const change of changes) given.append("set", change);
  return (await get("api/whatif?" + given, { signal })).json();
}

/** A run with the times of a machine, which the server makes at the first question; see ui.Predicted in Go. */
export async function getPredicted(run: string, machine: string, changes: string[], signal: AbortSignal): Promise<{ run: Run; command: string }> {
  const given = new URLSearchParams({ run, machine });
  for (const change of changes) given.append("set", change);
  const predicted = await (await get("api/predicted?" + given, { signal })).json();
  digests.set(predicted.run.name, predicted.run.digest);
  return predicted;
}

function values(run: string, args: Args): URLSearchParams {
  const given = new URLSearchParams({ run });
  for (const [name, value] of Object.entries(args)) if (value !== undefined) given.set(name, String(value));
  return given;
}

async function rows(response: Response): Promise<Answer> {
  const table = tableFromIPC(new Uint8Array(await response.arrayBuffer()));
  return { table, more: response.headers.get("Commq-More") === "true" };
}

/** Asks a canned query of a run. */
export async function ask(query: string, run: string, args: Args, signal?: AbortSignal): Promise<Answer> {
  return rows(await get(`api/ask/${query}?${values(run, args)}`, { signal }));
}

/** Runs SQL over the tables of a run. */
export async function sql(run: string, text: string, limit: number, signal?: AbortSignal): Promise<Answer> {
  const path = "api/sql?" + new URLSearchParams({ run, limit: String(limit) });
  return rows(await get(path, { method: "POST", body: text, signal }));
}

/** Parts of a critical path; see ui.PathParts in Go. */
export interface PathParts {
  parts: { rank: number; from_ns: number; to_ns: number; kind: string; call: string }[];
  step_ns: number;
  summary: string;
  command: string;
}

/** The critical path between two times, in ns. */
export async function getPath(run: string, from: number, to: number, signal: AbortSignal): Promise<PathParts> {
  return (await get("api/path?" + new URLSearchParams({ run, "from-ns": String(Math.floor(from)), "to-ns": String(Math.ceil(to)) }), { signal })).json();
}

/** The text of a file NAME.sql that makes a query of SQL; as names its columns in a chart. */
export async function ownFile(run: string, text: string, as: { name: string; summary: string; chart?: string; x?: string; y?: string }): Promise<string> {
  const path = `api/own?${values(run, as)}`;
  return (await get(path, { method: "POST", body: text })).text();
}

/** The SQL and the command line of a canned query. */
export async function getText(query: string, run: string, args: Args): Promise<{ sql: string; command: string }> {
  return (await get(`api/text/${query}?${values(run, args)}`, {})).json();
}

/** The decimals of a column by its number; undefined if it has no fixed number of them. */
export function decimals(table: Table, at: number): number | undefined {
  const type = table.getChildAt(at)!.type;
  return DataType.isDecimal(type) ? type.scale : undefined;
}

/** The values of a column by its number, of any type, as numbers, whole ones of 64 bits and more, texts and so on. */
export function plain(table: Table, at: number): any[] {
  const column = table.getChildAt(at)!;
  const scale = decimals(table, at), isDate = DataType.isDate(column.type);
  return Array.from({ length: column.length }, (_, i) => {
    const v = column.get(i);
    if (v !== null && isDate) return day(Number(v));
    if (v === null || scale === undefined) return v;
    const n = BigInt.asIntN(128, [...(v as Uint32Array)].reduceRight((sum, word) => (sum << 32n) + BigInt(word), 0n));
    return scale === 0 ? n : Number(n) / 10 ** scale;
  });
}

/** A day as DuckDB writes it, of its begin in ms since 1970. */
function day(ms: number): string {
  const d = new Date(ms);
  return Number.isNaN(d.getTime()) ? String(d) : d.toISOString().split("T")[0];
}

/** The values of a column as numbers; null where there is none. */
export function numbers(table: Table, name: string): (number | null)[] {
  const column = table.getChild(name);
  if (!column) throw new Error(`the answer has no column ${name}`);
  const out = new Array<number | null>(column.length);
  for (let i = 0; i < column.length; i++) {
    const v = column.get(i);
    out[i] = v === null ? null : Number(v);
  }
  return out;
}

/** The values of a column as texts; "" where there is none. */
export function texts(table: Table, name: string): string[] {
  const column = table.getChild(name);
  if (!column) throw new Error(`the answer has no column ${name}`);
  const out = new Array<string>(column.length);
  for (let i = 0; i < column.length; i++) out[i] = column.get(i)?.toString() ?? "";
  return out;
}
