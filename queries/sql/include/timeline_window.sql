-- timeline_window: the time, ranks, steps and rows that a timeline is asked for.
{{include timeline_bounds}},
span AS (
  -- Steps last whole ns, and the last one ends after to_ns.
  SELECT from_ns, to_ns, from_rank, to_rank, CAST(CEIL(CAST(to_rank - from_rank + 1 AS DOUBLE) / {{rows}}) AS INTEGER) AS per_row,
         CAST(FLOOR(CAST(to_ns - from_ns AS DOUBLE) / {{bins}}) AS BIGINT) + 1 AS step_ns
  FROM bounds
  WHERE (to_ns > from_ns OR to_ns = from_ns AND {{to-s}} = 0) AND to_rank >= from_rank
)
