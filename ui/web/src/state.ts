// The state of the page: what is selected and which view shows it. The address holds all of it, so that a copied
// address shows a colleague the same.

export const views = ["overview", "timeline", "matrix", "graph", "callsites", "overtime", "compare", "whatif", "sql"] as const;
export type View = (typeof views)[number];

/** Views that are nothing without a server: they ask what nobody could foresee. */
export const serverViews: readonly View[] = ["compare", "sql"];

export const viewNames: Record<View, string> = {
  overview: "Overview",
  timeline: "Timeline",
  matrix: "Matrix",
  graph: "Graph",
  callsites: "Call sites",
  overtime: "Over time",
  compare: "Two runs",
  whatif: "What if",
  sql: "SQL",
};

/** What the ranks of a group share; the values of the parameter by of the query rank-groups. */
export const groups = ["host", "communicator", "calls", "time"] as const;
export type Group = (typeof groups)[number];

/** All fields but run and view are optional: undefined selects everything. */
export interface State {
  run: string;
  view: View;
  /** What the address names and the page does not have, with what it shows instead; never written. */
  missing?: string;
  /** A window of time, in s since the run's start. */
  from?: number;
  to?: number;
  /** A range of world ranks, both inclusive. */
  first?: number;
  last?: number;
  /** A communicator, and the call site of the calls, by their ids. */
  comm?: number;
  site?: number;
  /** What the timeline's colours tell; undefined is the kinds of calls. */
  colour?: "waits";
  /** The timeline shows the critical path. */
  critical?: "shown";
  /** What the ranks of a row of the timeline share, and the lowest rank of the group whose ranks have rows each. */
  group?: Group;
  unfold?: number;
  /** What a matrix shows. */
  amount?: "messages";
  scale?: "linear";
  collectives?: string;
  /** Of a graph: how ranks are placed; undefined is partners near each other. And the rank whose partners are shown. */
  layout?: "circle";
  node?: number;
  /** What call sites are grouped by; undefined is lines. Of call paths: what the icicle's widths are, and the path shown alone. */
  by?: "path" | "function";
  measure?: "time_ns" | "send_bytes" | "calls";
  path?: string;
  /** The run beside this one; or the run itself as predicted on the machine of the what-if. */
  other?: string;
  beside?: "predicted";
  /** Of a what-if: the machine, and factors of its values; buses and CPUs per node as they are. */
  machine?: string;
  latency?: number;
  bandwidth?: number;
  cpu?: number;
  buses?: number;
  cpus?: number;
  /** The user's SQL, and its chart: the kind, and the columns of X and Y. */
  sql?: string;
  chart?: Chart;
  x?: string;
  y?: string;
}

/** How the rows of SQL are drawn; the kinds of plots of commq query --plot that need two columns. */
export const charts = ["bars", "lines", "points"] as const;
export type Chart = (typeof charts)[number];

const numeric = ["from", "to", "first", "last", "comm", "site", "unfold", "node", "latency", "bandwidth", "cpu", "buses", "cpus"] as const;

/** What is selected in a run, and says nothing of another run. */
export const ofRun = ["from", "to", "first", "last", "comm", "site", "node", "unfold", "path", "beside"] as const;

/** Reads a state from the part of an address after #. What it does not understand it leaves out. */
export function readState(hash: string, runs: string[]): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const view = given.get("view") as View;
  const wanted = given.get("run") || runs[0];
  const state: State = { run: runs.includes(wanted) ? wanted : runs[0], view: views.includes(view) ? view : "overview" };
  if (state.run !== wanted) {
    state.missing = `There is no run ${wanted} here; this is ${state.run}.`;
    for (const name of ofRun) given.delete(name);
  }
  for (const name of numeric) {
    const value = Number(given.get(name) ?? NaN);
    if (Number.isFinite(value) && value >= 0) state[name] = value;
  }
  if (state.from !== undefined && state.to !== undefined && state.from >= state.to) state.from = state.to = undefined;
  if (given.get("amount") === "messages") state.amount = "messages";
  if (given.get("colour") === "waits") state.colour = "waits";
  if (groups.includes(given.get("group") as Group)) state.group = given.get("group") as Group;
  const by = given.get("by"), measure = given.get("measure");
  if (by === "path" || by === "function") state.by = by;
  if (measure === "time_ns" || measure === "send_bytes" || measure === "calls") state.measure = measure;
  const other = given.get("other");
  if (other && runs.includes(other)) state.other = other;
  else if (other) state.missing = `There is no run ${other} here to compare with.`;
  if (given.get("beside") === "predicted") state.beside = "predicted";
  if (given.get("critical") === "shown") state.critical = "shown";
  if (given.get("layout") === "circle") state.layout = "circle";
  if (given.get("scale") === "linear") state.scale = "linear";
  const collectives = given.get("collectives");
  if (collectives) state.collectives = collectives;
  const machine = given.get("machine");
  if (machine) state.machine = machine;
  if (charts.includes(given.get("chart") as Chart)) state.chart = given.get("chart") as Chart;
  for (const name of ["sql", "x", "y", "path"] as const) {
    const text = given.get(name);
    if (text) state[name] = text;
  }
  return state;
}

/** Writes a state as the part of an address after #. */
export function writeState(state: State): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (value !== undefined && name !== "missing") out.set(name, String(value));
  return "#" + out;
}

/** The condition on the table messages for what is selected; undefined if everything is. */
export function messageCondition(s: State): string | undefined {
  const terms: string[] = [];
  if (s.from !== undefined) terms.push(`send_start_ns >= ${Math.round(s.from * 1e9)}`);
  if (s.to !== undefined) terms.push(`send_start_ns < ${Math.round(s.to * 1e9)}`);
  if (s.first !== undefined) terms.push(`src BETWEEN ${s.first} AND ${s.last ?? s.first}`);
  if (s.comm !== undefined) terms.push(`comm = ${s.comm}`);
  if (s.site !== undefined) terms.push(`send_callsite = ${s.site}`);
  return terms.length ? terms.join(" AND ") : undefined;
}
