-- timeline_cells: what the rows of a timeline do in each step. Needs timeline_span, and placed(rank, line): the rows of ranks,
-- where they are not those of neighbours.
{{only read sums}}
reads AS (
  -- The steps of the resolution that is read. As a list, engines skip the row groups that have none of them.
  SELECT rank_power, read_power, from_ns + nth * read_ns AS start_ns
  FROM (SELECT s.rank_power, s.read_power, s.from_ns, s.to_ns, CAST(POWER(2, s.read_power) AS BIGINT) AS read_ns, 2 * b.bin + k.half AS nth
        FROM span s
        CROSS JOIN steps b
        CROSS JOIN (VALUES (0), (1)) AS k (half)
        WHERE s.read_power IS NOT NULL) AS r
  WHERE from_ns + nth * read_ns < to_ns
),
summed AS (
  SELECT a.rank, a.start_ns, a.class, a.calls, a.time_ns, a.bytes
  FROM activity a
  JOIN reads r ON r.start_ns = a.start_ns AND r.read_power = a.step_power AND r.rank_power = a.rank_power
),
{{end}}
clipped AS (
{{unless read sums}}
  -- The calls of the window, and each thread as a call that lasts as long as it ran.
  SELECT e.rank, e.class, CASE WHEN e.start_ns >= s.from_ns THEN 1 ELSE 0 END AS began, GREATEST(e.start_ns, s.from_ns) AS start_ns,
         LEAST(COALESCE(e.end_ns, s.to_ns), s.to_ns) AS end_ns
  FROM (SELECT rank, class, start_ns, end_ns
        FROM events
        WHERE end_ns >= CAST(ROUND({{from-s}} * 1e9) AS BIGINT)
        UNION ALL -- not OR: with it engines read the row groups of every time
        SELECT rank, class, start_ns, end_ns
        FROM events
        WHERE end_ns IS NULL) e
  CROSS JOIN span s
  WHERE e.start_ns <= s.to_ns AND COALESCE(e.end_ns, s.to_ns) >= s.from_ns
    AND ({{to-s}} = 0 OR e.start_ns <= CAST(ROUND({{to-s}} * 1e9) AS BIGINT))
    AND e.rank >= {{from-rank}} AND ({{to-rank}} < 0 OR e.rank <= {{to-rank}})
  UNION ALL
{{end}}
  SELECT t.rank, 'running' AS class, 0 AS began, GREATEST(t.first_ns, s.from_ns) AS start_ns, LEAST(t.last_ns, s.to_ns) AS end_ns
  FROM (SELECT rank, thread, MIN(first_ns) AS first_ns,
               CASE WHEN MAX(in_progress) > 0 THEN (SELECT last_ns FROM ends) ELSE MAX(last_ns) END AS last_ns
        FROM profile
        GROUP BY rank, thread) AS t
  CROSS JOIN span s
  WHERE t.first_ns <= s.to_ns AND t.last_ns >= s.from_ns AND t.rank BETWEEN s.from_rank AND s.to_rank
),
stepped AS (
  SELECT COALESCE(p.line, CAST(FLOOR(CAST(c.rank - s.from_rank AS DOUBLE) / s.per_row) AS INTEGER)) AS line, c.class, c.began,
         c.start_ns - s.from_ns AS start_ns, c.end_ns - s.from_ns AS end_ns, CAST(FLOOR(CAST(c.start_ns - s.from_ns AS DOUBLE) / s.step_ns) AS INTEGER) AS first_bin,
         CAST(FLOOR(CAST(c.end_ns - s.from_ns AS DOUBLE) / s.step_ns) AS INTEGER) AS last_bin, s.step_ns
  FROM clipped c
  CROSS JOIN span s
  LEFT JOIN placed p ON p.rank = c.rank
),
{{only read sums}}
sums AS (
  SELECT COALESCE(p.line, CAST(FLOOR(CAST(a.rank - s.from_rank AS DOUBLE) / s.per_row) AS INTEGER)) AS line, a.class,
         CAST(FLOOR(CAST(a.start_ns - s.from_ns AS DOUBLE) / s.step_ns) AS INTEGER) AS bin, CAST(SUM(a.calls) AS BIGINT) AS calls,
         CAST(SUM(a.time_ns) AS BIGINT) AS time_ns, CAST(SUM(a.bytes) AS BIGINT) AS bytes
  FROM summed a
  JOIN span s ON a.rank BETWEEN s.from_rank AND s.to_rank
  LEFT JOIN placed p ON p.rank = a.rank
  GROUP BY 1, 2, 3
),
{{end}}
grouped AS (
  -- One pass over the calls. What follows sees only sums by row, kind, first and last step.
  SELECT line, class, first_bin, last_bin, COUNT(*) AS n, CAST(SUM(began) AS BIGINT) AS calls,
         CAST(SUM(LEAST(end_ns, (first_bin + 1) * step_ns) - start_ns) AS BIGINT) AS first_ns,
         CAST(SUM(CASE WHEN last_bin > first_bin THEN end_ns - last_bin * step_ns ELSE 0 END) AS BIGINT) AS last_ns
  FROM stepped
  GROUP BY line, class, first_bin, last_bin
{{only read sums}}
  UNION ALL
  SELECT line, class, bin AS first_bin, bin AS last_bin, CAST(0 AS BIGINT) AS n, calls, time_ns AS first_ns, CAST(0 AS BIGINT) AS last_ns
  FROM sums
  WHERE class NOT IN ('sent', 'operations')
{{end}}
),
kinds AS (
  SELECT line, first_bin, last_bin, n, calls, first_ns, last_ns,
         CASE WHEN class = 'recv' THEN 'receive' WHEN class = 'sendrecv' THEN 'send and receive' WHEN class IN ('complete', 'probe') THEN 'wait'
              WHEN class IN ('send', 'collective', 'running') THEN class WHEN class = 'rma' THEN 'one-sided' WHEN class = 'io' THEN 'I/O'
              ELSE 'other MPI' END AS kind
  FROM grouped
),
changes AS (
  -- Calls that fill whole steps: how many more there are from a step on.
  SELECT line, kind, bin, CAST(SUM(n) AS BIGINT) AS n
  FROM (SELECT k.line, k.kind, CASE e.ends WHEN 0 THEN k.first_bin + 1 ELSE k.last_bin END AS bin, CASE e.ends WHEN 0 THEN k.n ELSE -k.n END AS n
        FROM kinds k
        CROSS JOIN (VALUES (0), (1)) AS e (ends)
        WHERE k.last_bin > k.first_bin + 1) AS c
  GROUP BY line, kind, bin
),
filled AS (
  SELECT line, kind, bin, CAST(SUM(n) OVER (PARTITION BY line, kind ORDER BY bin) AS BIGINT) AS n,
         LEAD(bin) OVER (PARTITION BY line, kind ORDER BY bin) AS next_bin
  FROM changes
),
cells AS (
  SELECT line, kind, bin, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(ns) AS BIGINT) AS ns
  FROM (SELECT k.line, k.kind, CASE e.ends WHEN 0 THEN k.first_bin ELSE k.last_bin END AS bin,
               CASE e.ends WHEN 0 THEN k.calls ELSE CAST(0 AS BIGINT) END AS calls, CASE e.ends WHEN 0 THEN k.first_ns ELSE k.last_ns END AS ns
        FROM kinds k
        CROSS JOIN (VALUES (0), (1)) AS e (ends)
        WHERE e.ends = 0 OR k.last_bin > k.first_bin
        UNION ALL
        SELECT f.line, f.kind, b.bin, CAST(0 AS BIGINT) AS calls, f.n * s.step_ns AS ns
        FROM filled f
        CROSS JOIN span s
        JOIN steps b ON b.bin < {{bins}} AND b.bin >= f.bin AND b.bin < f.next_bin
        WHERE f.n > 0) AS c
  GROUP BY line, kind, bin
),
spent AS (
  -- What is left of the time that threads ran is outside MPI.
  SELECT c.line, CASE k.outside WHEN 0 THEN c.kind ELSE 'outside MPI' END AS kind, c.bin,
         CAST(SUM(CASE k.outside WHEN 0 THEN c.calls END) AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN k.outside = 1 AND c.kind <> 'running' THEN -c.ns ELSE c.ns END) AS BIGINT) AS ns
  FROM cells c
  CROSS JOIN (VALUES (0), (1)) AS k (outside)
  WHERE k.outside = 1 OR c.kind <> 'running'
  GROUP BY 1, 2, 3
),
sent AS (
{{unless read sums}}
  SELECT COALESCE(p.line, CAST(FLOOR(CAST(src - {{from-rank}} AS DOUBLE) / s.per_row) AS INTEGER)) AS line,
         CAST(FLOOR(CAST(send_start_ns - s.from_ns AS DOUBLE) / s.step_ns) AS INTEGER) AS bin,
         COUNT(*) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM messages
  CROSS JOIN span s
  LEFT JOIN placed p ON p.rank = src
  WHERE {{where}} AND send_start_ns >= CAST(ROUND({{from-s}} * 1e9) AS BIGINT) AND send_start_ns <= s.to_ns AND ({{to-s}} = 0 OR send_start_ns <= CAST(ROUND({{to-s}} * 1e9) AS BIGINT))
    AND src >= {{from-rank}} AND ({{to-rank}} < 0 OR src <= {{to-rank}})
  GROUP BY 1, 2
{{end}}
{{only read sums}}
  SELECT line, bin, calls AS messages, bytes
  FROM sums
  WHERE class = 'sent'
{{end}}
),
{{unless read sums}}
few AS (
  SELECT to_ns
  FROM span
  WHERE (SELECT COALESCE(CAST(SUM(messages) AS BIGINT), 0) FROM sent) <= {{lines}}
),
{{end}}
{{include timeline_sizes}},
drawn AS (
  SELECT line, bin, kind, calls, ns, CAST(NULL AS BIGINT) AS messages, CAST(NULL AS BIGINT) AS bytes
  FROM spent
  WHERE ns > 0 OR calls > 0
  UNION ALL
  SELECT line, bin, 'sent' AS kind, CAST(NULL AS BIGINT) AS calls, CAST(NULL AS BIGINT) AS ns, messages, bytes
  FROM sent
)
