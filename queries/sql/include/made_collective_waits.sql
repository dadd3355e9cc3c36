-- The rows of the table collective_waits, of a run that lacks it, for one value of until.
WITH collective_rows AS (
  SELECT rank, seq, comm, instance, root_world, start_ns, end_ns, done_seq, init_seq, request, callsite, call
  FROM events
  WHERE class = 'collective' AND error_class IS NULL AND comm IS NOT NULL AND instance IS NOT NULL
),
{{include operation_waits}},
sides AS (
  SELECT pattern, call, comm, rank, 1 AS calls, CASE WHEN wait_ns > 0 THEN 1 ELSE 0 END AS waits, wait_ns, 0 AS caused, 0 AS caused_ns
  FROM operation_waits
  UNION ALL
  SELECT pattern, call, comm, cause AS rank, 0 AS calls, 0 AS waits, 0 AS wait_ns, 1 AS caused, wait_ns AS caused_ns
  FROM operation_waits
  WHERE wait_ns > 0 AND cause IS NOT NULL
)
SELECT CAST(rank AS INTEGER) AS rank, ROW_NUMBER() OVER (PARTITION BY rank ORDER BY comm, call) - 1 AS nth, {{until}} AS until, pattern, call, comm,
       CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(waits) AS BIGINT) AS waits,
       CAST(SUM(wait_ns) AS BIGINT) AS wait_ns, CAST(MAX(wait_ns) AS BIGINT) AS max_ns,
       CAST(SUM(caused) AS BIGINT) AS caused, CAST(SUM(caused_ns) AS BIGINT) AS caused_ns
FROM sides
GROUP BY pattern, call, comm, rank
