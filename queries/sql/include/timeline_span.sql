-- timeline_span: as timeline_window, of a query with the parameter read. With sums a step lasts 2^n ns, the window grows to whole
-- steps and blocks of ranks, and rank_power and read_power are the resolution of activity that is read. Needs
-- widest(rank_power): of the largest blocks that can be read.
{{include timeline_bounds}},
{{include steps}},
{{only read sums}}
firsts AS (
  -- The step of each length in which the first call of the run began: every resolution has a sum of it.
  SELECT CAST(p.bin AS INTEGER) AS step_power,
         CAST(FLOOR(CAST(f.first_ns AS DOUBLE) / POWER(2, p.bin)) * POWER(2, p.bin) AS BIGINT) AS start_ns
  FROM (SELECT MIN(first_ns) AS first_ns FROM profile) f
  JOIN steps p ON p.bin <= 62
),
resolutions AS (
  SELECT a.rank_power, MIN(a.step_power) AS finest, MAX(a.step_power) AS coarsest
  FROM activity a
  JOIN firsts f ON f.start_ns = a.start_ns AND f.step_power = a.step_power
  GROUP BY a.rank_power
),
wanted AS (
  -- The shortest steps of which there are not too many.
  SELECT b.from_ns, b.to_ns, b.from_rank, b.to_rank, MIN(p.bin) AS step_power, CEIL(CAST(b.to_rank - b.from_rank + 1 AS DOUBLE) / {{rows}}) AS per_row
  FROM bounds b
  JOIN steps p ON p.bin <= 62 AND FLOOR(CAST(b.to_ns AS DOUBLE) / POWER(2, p.bin)) - FLOOR(CAST(b.from_ns AS DOUBLE) / POWER(2, p.bin)) < {{bins}}
  WHERE b.to_ns >= b.from_ns AND b.to_rank >= b.from_rank
  GROUP BY b.from_ns, b.to_ns, b.from_rank, b.to_rank
),
blocked AS (
  -- The largest blocks that are not larger than a row: they have the shortest steps and fewest rows. Otherwise the smallest.
  SELECT w.from_ns, w.to_ns, w.from_rank, w.to_rank, w.step_power, w.per_row,
         COALESCE(MAX(CASE WHEN POWER(2, r.rank_power) <= w.per_row THEN r.rank_power END), MIN(r.rank_power)) AS rank_power
  FROM wanted w
  CROSS JOIN widest m
  JOIN resolutions r ON r.rank_power <= m.rank_power
  GROUP BY w.from_ns, w.to_ns, w.from_rank, w.to_rank, w.step_power, w.per_row
),
fitted AS (
  SELECT w.from_ns, w.to_ns, w.from_rank, w.to_rank, w.per_row, r.rank_power, POWER(2, r.rank_power) AS block,
         POWER(2, GREATEST(w.step_power, r.finest)) AS step_ns,
         LEAST(CAST(r.finest + 2 * FLOOR((GREATEST(w.step_power, r.finest) - r.finest) / 2.0) AS INTEGER), r.coarsest) AS read_power
  FROM blocked w
  JOIN resolutions r ON r.rank_power = w.rank_power
),
{{end}}
spans AS (
{{unless read sums}}
  -- Steps last whole ns, and the last one ends after to_ns.
  SELECT from_ns, to_ns, from_rank, to_rank, CAST(CEIL(CAST(to_rank - from_rank + 1 AS DOUBLE) / {{rows}}) AS INTEGER) AS per_row,
         CAST(FLOOR(CAST(to_ns - from_ns AS DOUBLE) / {{bins}}) AS BIGINT) + 1 AS step_ns, CAST(NULL AS INTEGER) AS rank_power, CAST(NULL AS INTEGER) AS read_power
  FROM bounds
  WHERE (to_ns > from_ns OR to_ns = from_ns AND {{to-s}} = 0) AND to_rank >= from_rank
{{end}}
{{only read sums}}
  SELECT CAST(FLOOR(from_ns / step_ns) * step_ns AS BIGINT) AS from_ns, CAST((FLOOR(to_ns / step_ns) + 1) * step_ns AS BIGINT) AS to_ns,
         CAST(FLOOR(from_rank / block) * block AS INTEGER) AS from_rank, CAST((FLOOR(to_rank / block) + 1) * block - 1 AS INTEGER) AS to_rank,
         CAST(CEIL(per_row / block) * block AS INTEGER) AS per_row, CAST(step_ns AS BIGINT) AS step_ns, rank_power, read_power
  FROM fitted
{{end}}
),
span AS (
  -- An aggregate has one row, so engines look for the steps of reads in activity, and not the other way around.
  SELECT MAX(from_ns) AS from_ns, MAX(to_ns) AS to_ns, MAX(from_rank) AS from_rank, MAX(to_rank) AS to_rank, MAX(per_row) AS per_row,
         MAX(step_ns) AS step_ns, MAX(rank_power) AS rank_power, MAX(read_power) AS read_power
  FROM spans
  HAVING COUNT(*) > 0
)
