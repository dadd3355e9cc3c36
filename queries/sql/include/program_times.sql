-- program_times(rank, thread, begin_ns, end_ns, mpi_ns): a row for each thread that called MPI: when its part of the program began and ended, and how long
-- it was in MPI in between, failed tests and probes too. MPI_Init and MPI_Finalize are left out: the program begins at the end of the one
-- and ends at the start of the other, on threads that called neither with the first call and the last.
edges AS (
  -- Where the program begins and ends.
  SELECT rank, thread, MAX(CASE WHEN call <> 'MPI_Finalize' AND in_progress = 0 THEN last_ns END) AS begin_ns, MIN(CASE WHEN call = 'MPI_Finalize' THEN first_ns END) AS end_ns,
         CAST(SUM(COALESCE(time_ns, 0)) AS BIGINT) AS edge_ns, CAST(SUM(CASE WHEN call <> 'MPI_Finalize' THEN COALESCE(poll_ns, 0) ELSE 0 END) AS BIGINT) AS edge_poll_ns
  FROM profile
  WHERE call IN ('MPI_Init', 'MPI_Init_thread', 'MPI_Finalize')
  GROUP BY rank, thread
),
called AS (
  SELECT rank, thread, MIN(first_ns) AS begin_ns, MAX(last_ns) AS end_ns, CAST(SUM(time_ns) AS BIGINT) AS call_ns, CAST(SUM(poll_ns) AS BIGINT) AS poll_ns
  FROM profile
  GROUP BY rank, thread
),
program_times AS (
  SELECT c.rank, c.thread, COALESCE(e.begin_ns, c.begin_ns) AS begin_ns, COALESCE(e.end_ns, c.end_ns) AS end_ns,
         COALESCE(c.call_ns, 0) - COALESCE(e.edge_ns, 0) + COALESCE(c.poll_ns, 0) - COALESCE(e.edge_poll_ns, 0) AS mpi_ns
  FROM called c
  LEFT JOIN edges e ON e.rank = c.rank AND e.thread = c.thread
)
