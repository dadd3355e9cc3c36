steps AS (
  -- there_ns: when the message had come: the end of the call where it waited, else when it was sent, and what the call took.
  -- run: receives that were completed one right after the other. work_ns: computing after the receive.
  SELECT r.rank, r.seq, r.callsite, r.call, r.start_ns, r.end_ns, r.seq - ROW_NUMBER() OVER (PARTITION BY r.rank ORDER BY r.seq) AS run,
         LEAST(r.end_ns, r.sent_ns + (r.end_ns - r.start_ns)) AS there_ns,
         CASE WHEN n.thread = r.thread
              THEN GREATEST(0, LEAST(COALESCE(n.compute_ns, n.start_ns - r.end_ns), n.start_ns - r.end_ns - COALESCE(n.poll_ns, 0))) ELSE 0 END AS work_ns
  FROM received r
  LEFT JOIN events n ON n.rank = r.rank AND n.seq = r.seq + 1
),
runs_of_steps AS (
  SELECT *, MIN(start_ns) OVER (PARTITION BY rank, run) AS begin_ns, COUNT(*) OVER (PARTITION BY rank, run) AS receives,
         SUM(work_ns) OVER (PARTITION BY rank, run) AS all_work_ns, seq = MAX(seq) OVER (PARTITION BY rank, run) AS last,
         FIRST_VALUE(callsite) OVER (PARTITION BY rank, run ORDER BY seq) AS begins_at
  FROM steps
),
at_work AS (
  -- Where runs begin in which something is usually computed: less than 1 us in three of four cases is the loop, and the rest interruptions.
  SELECT begins_at
  FROM runs_of_steps
  WHERE NOT last
  GROUP BY begins_at
  HAVING quantile_cont(work_ns, 0.75) >= 1000
),
first_steps AS (
  -- What is computed after the last receive of a run may need all of them: of that only as much counts as after the others on average.
  SELECT s.rank, s.run, s.seq, s.callsite, s.call, s.start_ns, s.end_ns, s.there_ns, s.begin_ns, s.receives,
         CASE WHEN s.last THEN LEAST(s.work_ns, (s.all_work_ns - s.work_ns) / (s.receives - 1)) ELSE s.work_ns END AS work_ns
  FROM runs_of_steps s
  JOIN at_work w ON w.begins_at IS NOT DISTINCT FROM s.begins_at
  WHERE s.receives > 1
),
orders AS (
  -- When the work after all receives is done, as far as this one decides it: in the program's order, and in that of arrival.
  SELECT *,
         GREATEST(begin_ns, there_ns) + SUM(work_ns) OVER (PARTITION BY rank, run ORDER BY seq DESC) AS done_ns,
         GREATEST(begin_ns, there_ns) + SUM(work_ns) OVER (PARTITION BY rank, run ORDER BY there_ns DESC, seq DESC ROWS UNBOUNDED PRECEDING) AS sooner_ns
  FROM first_steps
),
in_runs AS (
  SELECT rank, run, arg_max(callsite, end_ns - start_ns) AS callsite, arg_max(call, end_ns - start_ns) AS call, MAX(receives) AS receives,
         SUM(end_ns - start_ns) AS time_ns, MAX(done_ns) - MAX(sooner_ns) AS gain_ns
  FROM orders
  GROUP BY rank, run
),
by_rank AS (
  SELECT rank, callsite, call, COUNT(*) AS times, SUM(receives) AS receives, SUM(time_ns) AS time_ns, SUM(gain_ns) AS gain_ns
  FROM in_runs
  WHERE gain_ns > 0
  GROUP BY rank, callsite, call
),
costs AS (
  SELECT *, MAX(gain_ns) OVER (PARTITION BY callsite, call) AS cost_ns
  FROM by_rank
)
