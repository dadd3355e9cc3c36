// Communication over time, as lines. A time that is selected in it is selected everywhere.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { numbers } from "../api";
import * as colours from "../colours";
import { Panel, useQuery, useSize } from "../parts";
import { messageCondition } from "../state";
import * as units from "../units";
import type { ViewProps } from "../main";

export function OverTime({ run, state, set }: ViewProps) {
  const [box, width] = useSize<HTMLDivElement>();
  const chart = useRef<uPlot | undefined>(undefined);
  const where = messageCondition({ ...state, from: undefined, to: undefined });
  const args = { bins: 500, where };
  const asked = useQuery("over-time", run, args);
  const isDark = colours.dark();
  useEffect(() => {
    const t = asked.value?.table;
    if (!t || width === 0) return;
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--text"), line = style.getPropertyValue("--line");
    const data = [numbers(t, "start_ns").map((v) => v! / 1e9), numbers(t, "bytes"), numbers(t, "collective_bytes")] as uPlot.AlignedData;
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
    const colour = (kind: string) => colours.css(colours.kindColour(kind, isDark));
    chart.current?.destroy();
    chart.current = new uPlot({
      width, height: 360,
      scales: { x: { time: false } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((v) => (v === 0 ? "0" : units.time(v * 1e9))) },
        { ...axis, size: 76, values: (_, ticks) => ticks.map((v) => units.bytes(v)) },
      ],
      series: [
        { label: "time", value: (_, v) => (v === null ? "" : units.moment(v * 1e9, run.end_ns)) },
        { label: "messages", stroke: colour("send"), width: 1.5, value: (_, v) => (v === null ? "" : units.bytes(v)) },
        { label: "collectives", stroke: colour("collective"), width: 1.5, value: (_, v) => (v === null ? "" : units.bytes(v)) },
      ],
      cursor: { drag: { x: true, y: false, setScale: false } },
      hooks: {
        setSelect: [(u) => {
          if (u.select.width < 3) return;
          set({ from: Math.max(0, u.posToVal(u.select.left, "x")), to: u.posToVal(u.select.left + u.select.width, "x") });
        }],
        ready: [(u) => {
          if (state.from === undefined && state.to === undefined) return;
          const a = u.valToPos(state.from ?? 0, "x"), b = u.valToPos(state.to ?? run.end_ns / 1e9, "x");
          u.setSelect({ left: a, width: b - a, top: 0, height: u.bbox.height / devicePixelRatio }, false);
        }],
      },
    }, data, box.current!);
    return () => {
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [asked.value, width, state.from, state.to, isDark]);
  return (
    <Panel title="Over time" asked={asked} cut={asked.value?.more} run={run.name} query="over-time" args={args}>
      <div ref={box} class="chart" />
      <p class="note">
        Sent data in {asked.value?.table.numRows ?? 500} equal steps. {where && "What is selected limits messages, not collectives. "}
        Dragging selects a time; the timeline and the matrix show it.
      </p>
    </Panel>
  );
}
