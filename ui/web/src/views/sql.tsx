// The user's own SQL over the tables of the run, and its rows.
import { PostgreSQL, sql as language } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Prec } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup, EditorView } from "codemirror";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Answer, decimals, ownFile, plain, sql } from "../api";
import { dark } from "../colours";
import { Asked, Choice, Copied, Panel } from "../parts";
import type { Chart } from "../state";
import * as units from "../units";
import type { ViewProps } from "../main";
import { chosen, columnsOf, Drawn } from "./sql-chart";

const mostShown = 1000;
const example = `SELECT call, count(*) AS calls, sum(end_ns - start_ns) AS time_ns
FROM events
GROUP BY call
ORDER BY time_ns DESC`;

const darkTheme = EditorView.theme(
  { "&": { backgroundColor: "#1f2226", color: "#e6e7e9" }, ".cm-gutters": { backgroundColor: "#1f2226", color: "#a2a8b0", border: 0 } },
  { dark: true },
);

const darkColours = HighlightStyle.define([
  { tag: tags.keyword, color: "#d2a8ff" },
  { tag: [tags.string, tags.special(tags.string)], color: "#a5d6ff" },
  { tag: [tags.number, tags.bool, tags.null], color: "#79c0ff" },
  { tag: tags.comment, color: "#b0b8c0" },
]);

/** An answer and its SQL: the editor or the address may have another one by now. */
interface Answered {
  answer: Answer;
  sql: string;
}

export function SQL({ run, state, set }: ViewProps) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | undefined>(undefined);
  const stop = useRef<AbortController | undefined>(undefined);
  const latest = useRef<string | undefined>(undefined); // the SQL that was asked last
  const present = useRef(state.sql); // of the last render: the editor may be made later
  present.current = state.sql;
  const [asked, put] = useState<Asked<Answered>>({ waiting: false });
  const ask = (text = editor.current!.state.doc.toString()) => {
    stop.current?.abort();
    const now = (stop.current = new AbortController());
    put({ waiting: true });
    latest.current = text;
    set({ sql: text }, true);
    sql(run.name, text, mostShown, now.signal).then(
      (answer) => now.signal.aborted || put({ value: { answer, sql: text }, waiting: false }),
      (err) => now.signal.aborted || put({ error: err.message, waiting: false }),
    );
  };
  useEffect(() => {
    let live = true;
    tables(run.name).catch(() => ({})).then((schema) => {
      if (!live) return;
      // In a shadow root the editor brings its styles as a style sheet, which the page's policy allows; in the page it
      // would add a style element, which it does not.
      const root = place.current!.shadowRoot ?? place.current!.attachShadow({ mode: "open" });
      editor.current = new EditorView({
        doc: present.current ?? example,
        parent: root,
        root,
        extensions: [
          Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (ask(), true) }])),
          basicSetup,
          language({ dialect: PostgreSQL, schema, upperCaseKeywords: true }),
          ...(dark() ? [darkTheme, syntaxHighlighting(darkColours)] : []),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "SQL" }),
        ],
      });
      if (present.current) ask();
    });
    return () => {
      live = false;
      stop.current?.abort();
      editor.current?.destroy();
    };
  }, [run.name]);
  // A step back or forward may have another SQL.
  useEffect(() => {
    const view = editor.current;
    if (!view || !state.sql || state.sql === latest.current) return;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: state.sql } });
    ask(state.sql);
  }, [state.sql]);
  const value = asked.value;
  return (
    <Panel title="SQL" asked={asked} run={run.name}
      tools={<>
        <button type="button" class="main" onClick={() => ask()}>Run (Ctrl-Enter)</button>
        {asked.waiting && <button type="button" onClick={() => { stop.current?.abort(); put({ waiting: false }); }}>Stop</button>}
      </>}>
      <div ref={place} class="editor" />
      {value && <>
        <Result answer={value.answer} state={state} set={set} />
        <Copied text={`commq sql ${run.args.map(quoted).join(" ")} ${quoted(value.sql)}`} />
        <Keep run={run} state={state} of={value} />
      </>}
    </Panel>
  );
}

/** The rows as a table or as a chart. */
function Result({ answer, state, set }: { answer: Answer } & Pick<ViewProps, "state" | "set">) {
  const columns = useMemo(() => columnsOf(answer), [answer]);
  const at = state.chart && chosen(columns, state.chart, state.x, state.y);
  const names: Record<Chart | "table", string> = { table: "Table", bars: "Bars", lines: "Lines", points: "Points" };
  const pick = (axis: "x" | "y", of: { name: string }[], now?: string) => (
    <label>{axis.toUpperCase()}{" "}
      <select value={now} onChange={(e) => set({ [axis]: e.currentTarget.value })}>{of.map((c) => <option key={c.name}>{c.name}</option>)}</select>
    </label>
  );
  return (
    <>
      <div class="tools">
        <Choice label="Shown as" value={state.chart ?? "table"} of={names} set={(v) => set({ chart: v === "table" ? undefined : v })} />
        {at && at.x && at.y && <>{pick("x", at.xs, at.x.name)}{pick("y", at.ys, at.y.name)}</>}
      </div>
      <p class="note">{answer.more && "The first "}{units.count(answer.table.numRows)} {answer.table.numRows === 1 ? "row" : "rows"}</p>
      {!at ? <Rows answer={answer} />
        : at.x && at.y && answer.table.numRows > 0 ? <Drawn chart={state.chart!} x={at.x} y={at.y} />
        : <p class="note">There is nothing to draw: {answer.table.numRows === 0 ? "no rows" : "no column of numbers"}.</p>}
    </>
  );
}

/** Downloads the SQL as a query of the user's own. */
function Keep({ run, state, of }: { of: Answered } & Pick<ViewProps, "run" | "state">) {
  const [name, setName] = useState("");
  const [summary, setSummary] = useState("");
  const [said, say] = useState("");
  const keep = async (e: Event) => {
    e.preventDefault();
    const at = state.chart && chosen(columnsOf(of.answer), state.chart, state.x, state.y);
    try {
      const text = await ownFile(run.name, of.sql,
        { name, summary, ...(at?.x && at.y && { chart: state.chart, x: at.x.name, y: at.y.name }) });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
      link.download = `${name}.sql`;
      link.click();
      URL.revokeObjectURL(link.href);
      say(`Move ${name}.sql to ~/.config/commq/queries: then commq query ${name} asks it.`);
    } catch (err: any) {
      say(err.message);
    }
  };
  return (
    <form class="tools keep" onSubmit={keep}>
      <label>Name <input required pattern="[a-z][a-z0-9\-]*" title="lower-case letters, digits and -" size={18} value={name}
        onInput={(e) => setName(e.currentTarget.value)} /></label>
      <label>What it answers <input required size={30} value={summary} onInput={(e) => setSummary(e.currentTarget.value)} /></label>
      <button>Download as a query</button>
      <span role="status" class="note">{said}</span>
    </form>
  );
}

/** A word as a shell reads it. */
function quoted(word: string): string {
  return /^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The tables and their columns, for completion. */
async function tables(run: string): Promise<Record<string, string[]>> {
  const { table } = await sql(run, "SELECT table_name, column_name FROM information_schema.columns ORDER BY ordinal_position", 10000);
  const all: Record<string, string[]> = {};
  for (const row of table.toArray()) (all[row.table_name] ??= []).push(row.column_name);
  return all;
}

/** A value of a column with so many decimals, if their number is fixed. */
function written(v: any, decimals: number | undefined): string {
  if (v === null || v === undefined) return "";
  if (typeof v === "number") return decimals === undefined ? units.number(v) : units.count(v, decimals);
  return typeof v === "bigint" ? v.toLocaleString("en-US") : String(v);
}

/** Rows of an answer as a table. */
function Rows({ answer }: { answer: Answer }) {
  const fields = answer.table.schema.fields;
  const columns = useMemo(() => fields.map((_, i) => plain(answer.table, i)), [answer]); // by number: names may be alike
  const isNumber = columns.map((c) => ["number", "bigint"].includes(typeof c.find((v) => v !== null)));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Rows">
      <table class="rows">
        <thead><tr>{fields.map((f, i) => <th key={i} scope="col" class={isNumber[i] ? "number" : ""}>{f.name}</th>)}</tr></thead>
        <tbody>
          {Array.from({ length: answer.table.numRows }, (_, i) => (
            <tr key={i}>{fields.map((_, k) => <td key={k} class={isNumber[k] ? "number" : ""}>{written(columns[k][i], decimals(answer.table, k))}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
