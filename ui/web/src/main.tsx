// The page of commq ui: the run, the views, and what is selected in them.
import { render } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { dropPending, showAddress } from "./address";
import { alone, getRuns, plain, Run, sql } from "./api";
import * as colours from "./colours";
import { useAsked } from "./parts";
import { ofRun, readState, serverViews, State, View, viewNames, views, writeState } from "./state";
import * as units from "./units";
import { CallSites, placeOf } from "./views/callsites";
import { Compare } from "./views/compare";
import { Graph } from "./views/graph";
import { Matrix } from "./views/matrix";
import { Overview } from "./views/overview";
import { OverTime } from "./views/overtime";
import { SQL } from "./views/sql";
import { Timeline } from "./views/timeline";
import { WhatIf } from "./views/whatif";

/** What every view gets: the run, the state, and how to change it. */
export interface ViewProps {
  run: Run;
  /** All runs. */
  runs: Run[];
  state: State;
  /** Changes some fields of the state. It becomes a step of the browser's history, unless it replaces the last one. */
  set: (change: Partial<State>, replace?: boolean) => void;
}

const pages: Record<View, (props: ViewProps) => any> = {
  overview: Overview,
  timeline: Timeline,
  matrix: Matrix,
  graph: Graph,
  callsites: CallSites,
  overtime: OverTime,
  compare: Compare,
  whatif: WhatIf,
  sql: SQL,
};

function App(props: { runs: Run[] }) {
  const names = props.runs.map((r) => r.name);
  const [state, setState] = useState(() => readState(location.hash, names));
  const now = useRef(state);
  useEffect(() => {
    const read = () => {
      dropPending();
      setState((now.current = readState(location.hash, names)));
    };
    addEventListener("popstate", read);
    return () => removeEventListener("popstate", read);
  }, []);
  const [, draw] = useState(colours.dark());
  useEffect(() => {
    const theme = matchMedia("(prefers-color-scheme: dark)"), changed = () => draw(theme.matches);
    theme.addEventListener("change", changed);
    return () => theme.removeEventListener("change", changed);
  }, []);
  const set = useCallback((change: Partial<State>, replace = false) => {
    now.current = { ...now.current, missing: undefined, ...change };
    setState(now.current);
    showAddress(writeState(now.current), replace);
  }, []);
  const run = props.runs.find((r) => r.name === state.run)!;
  useEffect(() => {
    document.title = `${run.name}: ${viewNames[state.view]} - commq`;
  }, [run.name, state.view]);
  const Page = pages[state.view];
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")!.focus(); }}>
        Skip to the view
      </a>
      <header>
        <h1>commq</h1>
        <label>
          <span class="hidden">Run</span>
          <select value={run.name} onChange={(e) => set({ run: e.currentTarget.value, ...nothing })}>
            {names.map((n) => <option key={n}>{n}</option>)}
          </select>
        </label>
        <span class="note">
          {units.count(run.ranks)} ranks, {units.count(run.messages)} messages{run.end_ns > 0 && `, ${units.time(run.end_ns)}`}
        </span>
        <nav aria-label="Views">
          {views.filter((v) => !alone || !serverViews.includes(v)).map((v) => (
            <a key={v} href={writeState({ ...state, view: v })} aria-current={v === state.view ? "page" : undefined}
              onClick={(e) => { e.preventDefault(); set({ view: v }); }}>{viewNames[v]}</a>
          ))}
        </nav>
        <Selected run={run} runs={props.runs} state={state} set={set} />
      </header>
      <main id="main" tabIndex={-1}>
        {state.missing && <p class="lacks" role="status">{state.missing}</p>}
        <Page key={run.name + state.view} run={run} runs={props.runs} state={state} set={set} />
      </main>
    </>
  );
}

const nothing: Partial<State> = Object.fromEntries(ofRun.map((name) => [name, undefined]));

/** Where a call site is in the source; undefined until the server says so. */
function useSite(run: string, site: number | undefined): string | undefined {
  const asked = useAsked(async (signal) => {
    if (site === undefined || alone) return undefined;
    const { table } = await sql(run, `SELECT "function", file, line, module, "offset" AS code_offset FROM callsites WHERE id = ${site}`, 1, signal);
    if (table.numRows === 0) return undefined;
    const columns = table.schema.fields.map((f, i) => [f.name, plain(table, i)[0]]);
    return { site, place: placeOf(Object.fromEntries(columns)) };
  }, [run, site]);
  return asked.value?.site === site ? asked.value?.place : undefined;
}

/** What is selected, each with a button that takes it back. */
function Selected(props: ViewProps) {
  const s = props.state;
  const place = useSite(props.run.name, s.site);
  const chips: [string, Partial<State>][] = [];
  if (s.from !== undefined || s.to !== undefined) {
    const from = s.from ?? 0, to = s.to ?? props.run.end_ns / 1e9;
    const span = (to - from) * 1e9;
    chips.push([`${units.moment(from * 1e9, span)} to ${units.moment(to * 1e9, span)}`, { from: undefined, to: undefined }]);
  }
  if (s.first !== undefined) chips.push([units.ranks(s.first, s.last ?? s.first), { first: undefined, last: undefined }]);
  if (s.comm !== undefined) chips.push([`communicator ${s.comm}`, { comm: undefined }]);
  if (s.site !== undefined) chips.push([`call site ${place ?? s.site}`, { site: undefined }]);
  if (chips.length === 0) return null;
  return (
    <div class="chips" role="group" aria-label="Selected">
      <span class="note">Only</span>
      {chips.map(([text, without]) => (
        <button type="button" key={text} onClick={() => props.set(without)} aria-label={`${text}, take back`}>{text} ×</button>
      ))}
      {chips.length > 1 && <button type="button" onClick={() => props.set(nothing)}>All</button>}
    </div>
  );
}

getRuns().then(
  (runs) => {
    if (runs.length > 0) return render(<App runs={runs} />, prepared());
    prepared().textContent = "The runs that this page was about are not there any more.";
  },
  (err) => {
    prepared().textContent = String(err.message ?? err);
  },
);

/** The element that the page is drawn in, empty. */
function prepared(): HTMLElement {
  const app = document.getElementById("app")!;
  app.replaceChildren();
  return app;
}
