// The rows of the user's SQL as bars, lines or points.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { Answer, plain } from "../api";
import * as colours from "../colours";
import { useSize } from "../parts";
import type { Chart } from "../state";
import * as units from "../units";

/** So many bars are drawn; more nobody can read. */
const mostBars = 200;

/** A column of an answer as the chart needs it. */
export interface Values {
  /** No other column of the answer has it. */
  name: string;
  isNumber: boolean;
  all: any[];
  /** How a number of the column is written. */
  write: (v: number) => string;
}

/** The columns of an answer. A name that an earlier column has already gets the number of the column behind it. */
export function columnsOf({ table }: Answer): Values[] {
  const names = table.schema.fields.map((f) => f.name);
  return names.map((name, at) => {
    const all = plain(table, at);
    const isNumber = all.some((v) => v !== null) && all.every((v) => v === null || ["number", "bigint"].includes(typeof v));
    return {
      name: names.indexOf(name) < at ? `${name} (column ${at + 1})` : name, isNumber, write: writer(name),
      all: isNumber ? all.map((v) => (v === null ? null : Number(v))) : all,
    };
  });
}

/** The columns that a chart has unless others are chosen: the first is X, the last one of numbers Y. */
export function chosen(columns: Values[], chart: Chart, x?: string, y?: string): { x?: Values; y?: Values; xs: Values[]; ys: Values[] } {
  const ys = columns.filter((c) => c.isNumber), xs = chart === "bars" ? columns : ys;
  const yAt = ys.find((c) => c.name === y) ?? ys[ys.length - 1];
  const xAt = xs.find((c) => c.name === x) ?? xs.find((c) => c !== yAt) ?? xs[0];
  return { x: xAt, y: yAt, xs, ys };
}

/** How a value of a column is written: its name tells the unit. */
function writer(name: string): (v: number) => string {
  return name.endsWith("_ns") ? units.time : name.endsWith("bytes") ? units.bytes : units.tick;
}

export function Drawn(props: { chart: Chart; x: Values; y: Values }) {
  return props.chart === "bars" ? <Bars x={props.x} y={props.y} /> : <Lines {...props} />;
}

function Bars({ x, y }: { x: Values; y: Values }) {
  const most = Math.max(...y.all.map((v) => Math.abs(v ?? 0)), Number.MIN_VALUE);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Chart">
      <table class="bars">
        <caption>{y.name} by {x.name}{y.all.length > mostBars && `, the first ${mostBars} rows`}</caption>
        <tbody>
          {y.all.slice(0, mostBars).map((v, i) => (
            <tr key={i}>
              <th scope="row">{String(x.all[i] ?? "")}</th>
              <td>
                <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
                  <rect width={(100 * Math.abs(v ?? 0)) / most} height="1" />
                </svg>
              </td>
              <td class="number">{v === null ? "" : y.write(v)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Lines({ chart, x, y }: { chart: Chart; x: Values; y: Values }) {
  const [box, width] = useSize<HTMLDivElement>();
  const drawn = useRef<uPlot | undefined>(undefined);
  const isDark = colours.dark();
  useEffect(() => {
    if (width === 0) return;
    const style = getComputedStyle(document.documentElement);
    const axis = { stroke: style.getPropertyValue("--text"), grid: { stroke: style.getPropertyValue("--line"), width: 1 },
      ticks: { stroke: style.getPropertyValue("--line") } };
    const colour = colours.css(colours.kindColour("send", isDark));
    const order = x.all.map((_, i) => i).filter((i) => x.all[i] !== null).sort((a, b) => x.all[a] - x.all[b]);
    const value = (of: Values) => (_: uPlot, v: number | null) => (v === null ? "" : of.write(v));
    const ticks = (of: Values) => (_: uPlot, all: number[]) => all.map(of.write);
    drawn.current = new uPlot({
      width, height: 360,
      scales: { x: { time: false } },
      axes: [{ ...axis, label: x.name, labelSize: 24, values: ticks(x) }, { ...axis, size: 84, values: ticks(y) }],
      series: [
        { label: x.name, value: value(x) },
        { label: y.name, stroke: colour, width: 1.5, value: value(y),
          ...(chart === "points" ? { paths: () => null, points: { show: true, size: 5, fill: colour } } : {}) },
      ],
    }, [order.map((i) => x.all[i]), order.map((i) => y.all[i])] as uPlot.AlignedData, box.current!);
    return () => drawn.current?.destroy();
  }, [chart, x, y, width, isDark]);
  return <div ref={box} class="chart" role="img" aria-label={`${y.name} over ${x.name}`} />;
}
