// The rows of a timeline: of ranks, or of groups of ranks of which one may be unfolded.
import { ask, numbers } from "../api";
import type { Group } from "../state";

/** Which group each rank belongs to, as the query rank-groups tells. */
export interface Groups {
  by: Group;
  /** By rank: the lowest rank of its group, and what the group shares. */
  first: Map<number, number>;
  value: Map<number, number | null>;
}

/** A row. */
export interface Lane {
  /** Its lowest rank, and how many it has. */
  rank: number;
  ranks: number;
  /** The group that its ranks belong to, by its lowest rank. */
  group: number;
  label: string;
}

/** The rows of groups, and the row of each rank. */
export interface Lanes {
  all: Lane[];
  of: Map<number, number>;
}

export const groupNames: Record<Group, string> = {
  host: "Hosts",
  communicator: "Communicators",
  calls: "Ranks that call alike",
  time: "Time in MPI",
};

export async function getGroups(run: string, by: Group, signal: AbortSignal): Promise<Groups> {
  const { table } = await ask("rank-groups", run, { by }, signal);
  const rank = numbers(table, "rank"), first = numbers(table, "first_rank"), value = numbers(table, "value");
  return { by, first: new Map(rank.map((r, i) => [r!, first[i]!])), value: new Map(rank.map((_, i) => [first[i]!, value[i]])) };
}

/** The name of a group. */
export function groupName(g: Groups, first: number): string {
  const v = g.value.get(first);
  return { host: `host ${v}`, communicator: `communicator ${v}`, calls: `like rank ${first}`, time: `${10 * (v ?? 0)}-${10 * (v ?? 0) + 10} % MPI` }[g.by];
}

/** The groups by their lowest ranks, in the order of the rows. */
export function inOrder(g: Groups): number[] {
  const place = (first: number) => (g.by === "time" ? g.value.get(first)! : first);
  return [...g.value.keys()].sort((a, b) => place(a) - place(b));
}

/** Rows for the ranks from first to last: at most so many, as the query timeline-groups has them. */
export function lanesOf(g: Groups, unfold: number | undefined, first: number, last: number, rows: number): Lanes {
  const members = new Map<number, number[]>();
  for (const [rank, group] of g.first) {
    if (rank < first || rank > last) continue;
    if (!members.has(group)) members.set(group, []);
    members.get(group)!.push(rank);
  }
  const single: { ranks: number[]; group: number }[] = [];
  for (const group of inOrder(g)) {
    const ranks = members.get(group)?.sort((a, b) => a - b);
    if (!ranks) continue;
    if (group === unfold) single.push(...ranks.map((r) => ({ ranks: [r], group })));
    else single.push({ ranks, group });
  }
  const per = Math.ceil(single.length / rows);
  const lanes: Lanes = { all: [], of: new Map() };
  single.forEach(({ ranks, group }, i) => {
    const at = Math.floor(i / per), lane = lanes.all[at];
    for (const r of ranks) lanes.of.set(r, at);
    if (lane) {
      lane.rank = Math.min(lane.rank, ranks[0]);
      lane.ranks += ranks.length;
      if (!lane.label.endsWith("...")) lane.label += " ...";
      return;
    }
    lanes.all.push({ rank: ranks[0], ranks: ranks.length, group, label: group === unfold ? `rank ${ranks[0]}` : groupName(g, group) });
  });
  return lanes;
}
