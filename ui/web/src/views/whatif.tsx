// What if the network or the CPUs were others: the run simulated on a machine whose values the reader changes.
import { useState } from "preact/hooks";
import { alone, getMachines, Machine, whatIf } from "../api";
import * as colours from "../colours";
import { Copied, Panel, useAsked } from "../parts";
import type { State } from "../state";
import * as units from "../units";
import type { ViewProps } from "../main";

/** Sliders: the field of the state, the label, and the key of the machine that its factor changes. */
const sliders = [
  ["latency", "Latency", "latency_ns"],
  ["bandwidth", "Bandwidth", "bandwidth_bytes_per_s"],
  ["cpu", "CPU speed", "cpu_ratio"],
] as const;

export function WhatIf({ run, state, set }: ViewProps) {
  const machines = useAsked(getMachines, []);
  const machine = machines.value && machineOf(machines.value, state);
  const changes = machine ? changesOf(machine, state) : [];
  const asked = useAsked(
    async (signal) => (machine ? whatIf(run.name, machine.name, changes, signal) : undefined),
    [run.name, machine?.name, changes.join()],
    250,
  );
  const base = useAsked(async (signal) => (machine ? whatIf(run.name, machine.name, [], signal) : undefined), [run.name, machine?.name]);
  const answer = asked.value?.answer;
  return (
    <Panel title="What if" asked={asked} run={run.name}>
      <form class="whatif" onSubmit={(e) => e.preventDefault()}>
        <label>Machine{" "}
          <select value={machine?.name} onChange={(e) => set({ machine: e.currentTarget.value, ...unchanged })}>
            {(machines.value ?? []).map((m) => <option key={m.name}>{m.name}</option>)}
          </select>
        </label>
        {machine && sliders.map(([field, label, key]) => machine[key] > 0 && (
          <Slider key={field} label={label} value={state[field] ?? 1} write={written(key, machine[key])}
            set={(v) => set({ [field]: v === 1 ? undefined : v }, true)} />
        ))}
        <label>Messages at a time{" "}
          <input type="number" min={0} size={6} value={state.buses ?? machine?.buses ?? 0}
            onChange={(e) => set({ buses: numberOf(e.currentTarget.value) }, true)} />
          <span class="note"> 0 is any number</span>
        </label>
        <label>CPUs of a node{" "}
          <input type="number" min={1} size={6} value={state.cpus ?? machine?.cpus_per_node ?? 1} onChange={(e) => set({ cpus: numberOf(e.currentTarget.value) || undefined }, true)} />
        </label>
        <button type="button" onClick={() => set(unchanged)}>As the machine is</button>
      </form>
      {answer && (
        <>
          <p class="verdict">
            {units.time(answer.predicted_ns)} on {answer.machine}
            {changes.length > 0 && base.value && `, ${units.time(base.value.answer.predicted_ns)} without the changes`}
            {run.end_ns > 0 && `; captured ${units.time(run.end_ns)}, MPI_Init included`}
          </p>
          {state.machine && state.machine !== machine?.name && <p class="lacks">commq knows no machine {state.machine}; this is {machine?.name}.</p>}
          {answer.untimed && (
            <p class="lacks">The run was captured without compute times (--clock none): computing takes no time here, so that predicted and measured time cannot
              be compared.</p>
          )}
          {!alone && !run.lacks.timeline && (
            <p><button type="button" onClick={() => set({ view: "compare", beside: "predicted", machine: machine!.name, critical: "shown" })}>
              Show its timeline beside the captured one
            </button></p>
          )}
          <Efficiencies answer={answer} />
          <h3>What each rank does</h3>
          <Ranks ranks={answer.ranks} total={answer.predicted_ns} />
          <h3>The critical path</h3>
          <PathParts parts={answer.critical_path ?? []} />
          <h3>Command line</h3>
          <Copied text={asked.value!.command} />
        </>
      )}
      <p class="note">
        A run is simulated three times for each answer, about a second for a million calls. Computing takes as long as it did, by the
        CPU speed; where ranks shared cores when the run was captured, the measured time is longer than any here.
      </p>
    </Panel>
  );
}

const unchanged: Partial<State> = { latency: undefined, bandwidth: undefined, cpu: undefined, buses: undefined, cpus: undefined };

function numberOf(text: string): number | undefined {
  const n = Math.round(Number(text));
  return text !== "" && n >= 0 ? n : undefined;
}

/** The machine of a what-if. */
export function machineOf(machines: Machine[], state: State): Machine | undefined {
  return machines.find((m) => m.name === (state.machine ?? "ethernet-40g")) ?? machines[0];
}

/** The changes of a machine as commq simulate --set takes them. */
export function changesOf(machine: Machine, state: State): string[] {
  const changes: string[] = [];
  for (const [field, , key] of sliders) {
    const factor = state[field];
    if (factor !== undefined && machine[key] > 0) changes.push(`${key}=${Number((machine[key] * factor).toPrecision(4))}`);
  }
  if (state.buses !== undefined) changes.push(`buses=${state.buses}`);
  if (state.cpus !== undefined) changes.push(`cpus_per_node=${state.cpus}`);
  return changes;
}

/** How a value of the machine, times a factor, is written. */
function written(key: string, value: number): (factor: number) => string {
  if (key === "latency_ns") return (f) => units.time(value * f);
  if (key === "bandwidth_bytes_per_s") return (f) => `${units.bytes(value * f)}/s`;
  return (f) => `${Number((value * f).toPrecision(3))} times`;
}

/** A slider from a thirtieth to thirty times, in steps of a fifth of a factor of two. */
function Slider(props: { label: string; value: number; write: (factor: number) => string; set: (factor: number) => void }) {
  const step = Math.round(Math.log2(props.value) * 5);
  return (
    <label>{props.label}{" "}
      <input type="range" min={-25} max={25} step={1} value={step} aria-valuetext={props.write(props.value)}
        onInput={(e) => props.set(Number((2 ** (Number(e.currentTarget.value) / 5)).toPrecision(4)))} />
      <output>{props.write(props.value)}</output>
    </label>
  );
}

const shares: [string, string][] = [
  ["parallel_efficiency", "Parallel efficiency"],
  ["load_balance", "Load balance"],
  ["serialisation", "Serialisation"],
  ["transfer", "Transfer"],
];

function Efficiencies({ answer }: { answer: any }) {
  return (
    <table class="factors">
      <caption class="hidden">Efficiencies</caption>
      <tbody>
        {shares.filter(([key]) => answer[key] !== undefined).map(([key, label], i) => (
          <tr key={key} class={i ? "depth1" : "depth0"}>
            <th scope="row">{label}</th>
            <td><meter min={0} max={1} low={0.7} high={0.85} optimum={1} value={answer[key]} aria-label={label} /></td>
            <td class="number">{(100 * answer[key]).toFixed(1)} %</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const parts: [string, string, string][] = [
  ["compute_ns", "computing", "outside MPI"],
  ["point_to_point_ns", "point-to-point", "send"],
  ["collective_ns", "collective", "collective"],
  ["cpu_wait_ns", "waiting for a CPU", "other MPI"],
];

/** Bars of the ranks; of many ranks those that end last. */
function Ranks({ ranks, total }: { ranks: any[]; total: number }) {
  const [all, setAll] = useState(false);
  const most = 32;
  const shown = all || ranks.length <= most ? ranks : [...ranks].sort((a, b) => b.compute_ns - a.compute_ns).slice(0, most);
  const isDark = colours.dark();
  return (
    <>
      <ul class="legend" aria-label="Colours">
        {parts.map(([, label, kind]) => <li key={label}><i style={{ background: colours.css(colours.kindColour(kind, isDark)) }} />{label}</li>)}
      </ul>
      <div class="scroll short" tabIndex={0} role="region" aria-label="Ranks">
        <table class="rankbars">
          <caption class="hidden">Time of each rank</caption>
          <tbody>
            {shown.map((r) => {
              let x = 0;
              return (
                <tr key={r.rank}>
                  <th scope="row">{r.rank}</th>
                  <td>
                    <svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img"
                      aria-label={parts.map(([key, label]) => `${label} ${units.time(r[key])}`).join(", ")}>
                      {parts.map(([key, , kind]) => {
                        const width = (1000 * r[key]) / total, at = x;
                        x += width;
                        return <rect key={key} x={at} width={width} height={10} fill={colours.css(colours.kindColour(kind, isDark))} />;
                      })}
                    </svg>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {ranks.length > most && <button type="button" onClick={() => setAll(!all)}>{all ? `The ${most} that compute longest` : `All ${ranks.length} ranks`}</button>}
    </>
  );
}

function PathParts({ parts }: { parts: any[] }) {
  const most = 50;
  return (
    <div class="scroll short" tabIndex={0} role="region" aria-label="Critical path">
      <table class="rows">
        {parts.length > most && <caption>The first {most} of {units.count(parts.length)} parts; --format json of the command below has all</caption>}
        <thead><tr><th scope="col">Call</th><th scope="col">Where</th><th scope="col" class="number">Rank</th>
          <th scope="col" class="number">Time</th><th scope="col" class="number">Computing before it</th><th scope="col" class="number">Share</th></tr></thead>
        <tbody>
          {parts.slice(0, most).map((p) => (
            <tr key={`${p.callsite} ${p.call} ${p.rank}`}>
              <td>{p.call}</td><td>{p.callsite ?? ""}</td><td class="number">{p.rank}</td><td class="number">{units.time(p.path_ns)}</td>
              <td class="number">{units.time(p.compute_ns)}</td><td class="number">{(100 * p.share).toFixed(1)} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
