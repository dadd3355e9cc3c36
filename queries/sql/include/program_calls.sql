-- program_calls: the table profile without the startup and shutdown of MPI, where the parameter init leaves them out. Of MPI_Init and
-- MPI_Init_thread only the moment remains when they ended, of MPI_Finalize the moment when it began: rows with 0 calls and no time, so that
-- MIN(first_ns) and MAX(last_ns) are the begin and end of the program proper. The row of MPI_Finalize keeps the computing and the failed tests
-- before it. Calls that never returned remain as the moment when they began.
profiled AS (
  SELECT run, rank, thread, call, class, callsite, error_class, in_progress, calls, send_bytes, time_ns, min_ns, max_ns, first_ns, last_ns, compute_ns, poll_ns,
         CASE WHEN {{init}} = 'include' THEN 'no'
              WHEN call IN ('MPI_Init', 'MPI_Init_thread') THEN 'begin'
              WHEN call = 'MPI_Finalize' THEN 'end' ELSE 'no' END AS edge
  FROM profile
),
program_calls AS (
  SELECT run, rank, thread, call, class, callsite, in_progress, CASE WHEN edge = 'no' THEN calls ELSE 0 END AS calls,
         CASE WHEN edge = 'no' THEN time_ns END AS time_ns, CASE WHEN edge = 'no' THEN min_ns END AS min_ns,
         CASE WHEN edge = 'no' THEN max_ns END AS max_ns, CASE WHEN edge = 'begin' THEN last_ns ELSE first_ns END AS first_ns,
         CASE WHEN edge = 'end' THEN first_ns ELSE last_ns END AS last_ns, CASE WHEN edge <> 'begin' THEN compute_ns END AS compute_ns,
         CASE WHEN edge <> 'begin' THEN poll_ns END AS poll_ns
  FROM profiled
)
