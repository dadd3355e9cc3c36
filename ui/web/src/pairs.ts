// What goes from rank to rank in runs of many ranks, from SQL of the page's own: the canned queries answer each pair.
// once.go has the same limit and SQL.

/** With more ranks each pair would not fit into an answer: a cell is of several ranks, and collectives are left out. */
export const mostPairRanks = 1000;

/** The most rows of an answer; mostRows in ask.go is the same. */
export const mostAnswerRows = 1_000_000;

/**
 * SQL of what blocks of perCell neighbours send each other, by the number of the block: the messages for which condition
 * holds and, of some ranks, those of which one of these is an end.
 */
export function pairs(perCell: number, condition?: string, among?: { first: number; last: number }): string {
  const [table, count] = condition ? ["messages", "COUNT(*)"] : ["channels", "SUM(messages)"];
  const isAmong = (side: string) => among && `${side} BETWEEN ${among.first} AND ${among.last}`;
  const within = among && `(${isAmong("src")} OR ${isAmong("dst")})`;
  return `SELECT CAST(FLOOR(src / ${perCell}) AS INTEGER) AS src, CAST(FLOOR(dst / ${perCell}) AS INTEGER) AS dst, ` +
    `CAST(${count} AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes FROM ${table} ` +
    `WHERE ${[condition, within].filter((c) => c).join(" AND ") || "TRUE"} GROUP BY 1, 2`;
}
