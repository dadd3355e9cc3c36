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
first_steps AS (
  SELECT *, MIN(start_ns) OVER (PARTITION BY rank, run) AS begin_ns, COUNT(*) OVER (PARTITION BY rank, run) AS receives
  FROM steps
),
orders AS (
  -- When the work after all receives is done, as far as this one decides it: in the program's order, and in that of arrival.
  SELECT *,
         GREATEST(begin_ns, there_ns) + SUM(work_ns) OVER (PARTITION BY rank, run ORDER BY seq DESC) AS done_ns,
         GREATEST(begin_ns, there_ns) + SUM(work_ns) OVER (PARTITION BY rank, run ORDER BY there_ns DESC, seq DESC ROWS UNBOUNDED PRECEDING) AS sooner_ns
  FROM first_steps
  WHERE receives > 1
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
