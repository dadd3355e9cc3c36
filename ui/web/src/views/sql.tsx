// The user's own SQL over the tables of the run, and its rows.
import { PostgreSQL, sql as language } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Prec } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup, EditorView } from "codemirror";
import { useEffect, useRef, useState } from "preact/hooks";
import { Answer, sql } from "../api";
import { dark } from "../colours";
import { Asked, Copied, Panel } from "../parts";
import * as units from "../units";
import type { ViewProps } from "../main";

const mostRows = 1000;
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

export function SQL({ run, state, set }: ViewProps) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | undefined>(undefined);
  const stop = useRef<AbortController | undefined>(undefined);
  const [asked, put] = useState<Asked<Answer>>({ waiting: false });
  const text = () => editor.current!.state.doc.toString();
  const ask = () => {
    stop.current?.abort();
    const now = (stop.current = new AbortController());
    put({ waiting: true });
    set({ sql: text() }, true);
    sql(run.name, text(), mostRows, now.signal).then(
      (value) => now.signal.aborted || put({ value, waiting: false }),
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
        doc: state.sql ?? example,
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
      if (state.sql) ask();
    });
    return () => {
      live = false;
      stop.current?.abort();
      editor.current?.destroy();
    };
  }, [run.name]);
  return (
    <Panel title="SQL" asked={asked} run={run.name}
      tools={<>
        <button type="button" class="main" onClick={ask}>Run (Ctrl-Enter)</button>
        {asked.waiting && <button type="button" onClick={() => { stop.current?.abort(); put({ waiting: false }); }}>Stop</button>}
      </>}>
      <div ref={place} class="editor" />
      {asked.value && <Rows answer={asked.value} />}
      {asked.value && <Copied text={`commq sql ${run.args.map(quoted).join(" ")} ${quoted(state.sql ?? "")}`} />}
    </Panel>
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

/** Rows of an answer as a table. */
function Rows({ answer }: { answer: Answer }) {
  const fields = answer.table.schema.fields;
  const rows = answer.table.toArray();
  const isNumber = fields.map((f) => rows.length > 0 && ["number", "bigint"].includes(typeof rows[0][f.name]));
  const write = (v: any) => (v === null || v === undefined ? "" : typeof v === "number" ? units.count(v) : typeof v === "bigint" ? v.toLocaleString("en-US") : String(v));
  return (
    <>
      <p class="note">{answer.more && "The first "}{units.count(rows.length)} {rows.length === 1 ? "row" : "rows"}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Rows">
        <table class="rows">
          <thead><tr>{fields.map((f, i) => <th key={f.name} scope="col" class={isNumber[i] ? "number" : ""}>{f.name}</th>)}</tr></thead>
          <tbody>
            {rows.map((r, i) => (
              <tr key={i}>{fields.map((f, k) => <td key={f.name} class={isNumber[k] ? "number" : ""}>{write(r[f.name])}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
