// Why the run is slow, and what it is.
import { getDiagnosis, getFacts } from "../api";
import { Panel, useAsked } from "../parts";
import * as units from "../units";
import type { ViewProps } from "../main";

export function Overview({ run, set }: ViewProps) {
  const asked = useAsked((signal) => getDiagnosis(run.name, signal), [run.name]);
  const facts = useAsked((signal) => getFacts(run.name, signal), [run.name]);
  const d = asked.value;
  return (
    <>
      <Panel title="Why it takes so long" asked={asked} run={run.name}>
        {d && <Diagnosis d={d} set={set} />}
      </Panel>
      <Panel title="The run" asked={facts} run={run.name}>
        <dl>
          {(facts.value ?? []).map((f) => (
            <><dt>{f.Name}</dt><dd>{f.Value}</dd></>
          ))}
        </dl>
      </Panel>
    </>
  );
}

const percent = (share: number) => `${(100 * share).toFixed(1)} %`;

function Diagnosis({ d, set }: { d: any; set: ViewProps["set"] }) {
  const findings: any[] = d.findings ?? [];
  const shown = findings.slice(0, d.shown);
  return (
    <>
      {d.verdict && <p class="verdict">{d.verdict}</p>}
      {(d.warnings ?? []).map((w: string) => <p class="note" key={w}>{w}</p>)}
      {d.efficiency && <Efficiency e={d.efficiency} />}
      {shown.length === 0 && <p>No cause was found that costs enough time to name.</p>}
      <ol class="causes">
        {shown.map((f, i) => (
          <li key={f.rule + f.title}>
            <b>{f.title}</b>
            {f.callsite && <div class="place">{f.call} at {f.callsite}{f.function && ` in ${f.function}`}{ranksOf(f)}</div>}
            {(f.waits ?? []).slice(0, 2).map((w: any) => (
              <div class="note" key={w.call + w.callsite}>
                {units.time(w.wait_ns)} of waiting in {w.call}{w.callsite && ` at ${w.callsite}`}, {units.count(w.calls)} calls
              </div>
            ))}
            {f.gain_ns > 0 && <div>Gain without it: {d.gains[i]}.</div>}
            {f.advice && <div class="note">{f.advice}</div>}
            {f.window
              ? <button type="button" onClick={() => set({ view: "timeline", colour: "waits", ...windowOf(f.window) })}>Show in the timeline</button>
              : f.callsite && <button type="button" onClick={() => set({ view: "callsites" })}>Show the call sites</button>}
          </li>
        ))}
      </ol>
      {findings.length > shown.length && (
        <p class="note">{findings.length - shown.length} smaller {findings.length - shown.length === 1 ? "finding" : "findings"}: commq diagnose --all lists them.</p>
      )}
    </>
  );
}

/** The ranks of a finding, unless they are many. */
function ranksOf(f: any): string {
  const ranks: number[] = f.ranks ?? [];
  if (ranks.length === 0 || ranks.length > 8) return "";
  return `, ${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
}

/** The selection that shows a window of a finding. */
function windowOf(w: any): { from: number; to: number } {
  return { from: w.from_ns / 1e9, to: w.to_ns / 1e9 };
}

function Efficiency({ e }: { e: any }) {
  const rows: [string, number | null, number][] = [
    ["Parallel efficiency", e.parallel, 0],
    ["Load balance", e.load_balance, 1],
    ["Serialisation", e.serialisation, 1],
    ["Transfer", e.transfer, 1],
  ];
  return (
    <table class="factors">
      <caption class="hidden">Efficiencies</caption>
      <tbody>
        {rows.map(([name, share, depth]) => (
          <tr key={name} class={`depth${depth}`}>
            <th scope="row">{name}</th>
            <td>{share !== null && <meter min={0} max={1} low={0.7} high={0.85} optimum={1} value={share} aria-label={name} />}</td>
            <td class="number">{share === null ? "not known" : percent(share)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
