// Small parts that several views share.
import { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { alone, Answer, Args, ask, getText, Run } from "./api";
import { mostAnswerRows } from "./pairs";
import * as units from "./units";

/** What a question has answered so far. */
export interface Asked<T> {
  value?: T;
  error?: string;
  /** Why the question cannot be asked of this run. */
  lacks?: string;
  /** True while a question is not answered yet; value is then the answer of an earlier one. */
  waiting: boolean;
}

/** Asks whenever one of keys changes, and ends the question that this makes stale. Waits `delay` ms first. */
export function useAsked<T>(question: (signal: AbortSignal) => Promise<T>, keys: unknown[], delay = 0, lacks?: string): Asked<T> {
  const [asked, set] = useState<Asked<T>>({ lacks, waiting: !lacks });
  useEffect(() => {
    if (lacks) return set({ lacks, waiting: false });
    const stop = new AbortController();
    set((before) => ({ ...before, waiting: true }));
    const timer = setTimeout(() => {
      question(stop.signal).then(
        (value) => stop.signal.aborted || set({ value, waiting: false }),
        (err) => stop.signal.aborted || set({ error: String(err.message ?? err), waiting: false }),
      );
    }, delay);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, keys);
  return asked;
}

/** Asks a canned query whenever its arguments change. */
export function useQuery(query: string, run: Run, args: Args): Asked<Answer> {
  return useAsked((signal) => ask(query, run.name, args, signal), [query, run.name, JSON.stringify(args)], 0, run.lacks[query]);
}

/** The width and height of an element, as it changes. */
export function useSize<E extends Element>(): [{ current: E | null }, number, number] {
  const ref = useRef<E>(null);
  const [size, set] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) =>
      set({ width: Math.round(entry.contentRect.width), height: Math.round(entry.contentRect.height) }));
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return [ref, size.width, size.height];
}

/** A view: a heading, what is going on, and how to ask the same elsewhere. */
export function Panel(props: {
  title: string;
  asked: Asked<unknown>;
  run: string;
  query?: string;
  args?: Args;
  tools?: ComponentChildren;
  /** The answer has more rows than the server gives. */
  cut?: boolean;
  children: ComponentChildren;
}) {
  return (
    <section aria-label={props.title} aria-busy={props.asked.waiting}>
      <div class="head">
        <h2>{props.title}</h2>
        <div class="tools">{props.tools}</div>
        {props.query && !alone && !props.asked.lacks && <Elsewhere run={props.run} query={props.query} args={props.args ?? {}} />}
        <span class="waiting" role="status">{props.asked.waiting ? "Asking" : ""}</span>
      </div>
      {props.asked.error && <p class="error" role="alert">{props.asked.error}</p>}
      {props.asked.lacks && <p class="lacks">Not in this run: {props.asked.lacks}</p>}
      {props.cut && <Cut />}
      {props.children}
    </section>
  );
}

/** Says that an answer is not whole. */
export function Cut() {
  return <p class="lacks" role="status">Cut, not all is shown: the answer has more than {units.count(mostAnswerRows)} rows. A smaller selection may fit.</p>;
}

/** A button that tells the SQL and the command line of what a view shows. */
function Elsewhere(props: { run: string; query: string; args: Args }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, set] = useState<{ sql: string; command: string }>();
  const [error, fail] = useState("");
  const open = () => {
    set(undefined);
    fail("");
    dialog.current!.showModal();
    getText(props.query, props.run, props.args).then(set, (err) => fail(err.message));
  };
  return (
    <>
      <button type="button" onClick={open}>SQL and command</button>
      <dialog ref={dialog} aria-label="SQL and command line">
        <form method="dialog"><button>Close</button></form>
        {error && <p class="error">{error}</p>}
        {text && (
          <>
            <h3>Command line</h3>
            <Copied text={text.command} />
            <h3>SQL, for the duckdb shell</h3>
            <Copied text={text.sql} />
          </>
        )}
      </dialog>
    </>
  );
}

/** A text to copy. */
export function Copied(props: { text: string }) {
  const [done, set] = useState(false);
  const copy = () => navigator.clipboard.writeText(props.text).then(() => set(true));
  return (
    <div class="copied">
      <button type="button" onClick={copy}>{done ? "Copied" : "Copy"}</button>
      <pre tabIndex={0}>{props.text}</pre>
    </div>
  );
}

/** Buttons of which one is pressed. */
export function Choice<T extends string>(props: { label: string; value: T; of: Record<T, string>; set: (v: T) => void }) {
  return (
    <span class="choice" role="group" aria-label={props.label}>
      {(Object.keys(props.of) as T[]).map((v) => (
        <button type="button" key={v} aria-pressed={v === props.value} onClick={() => props.set(v)}>{props.of[v]}</button>
      ))}
    </span>
  );
}
