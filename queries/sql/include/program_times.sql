-- program_times(rank, thread, begin_ns, end_ns, mpi_ns): a row for each thread that called MPI: when its part of the program began and ended, and how long
-- it was in MPI in between, failed tests and probes too. MPI_Init and MPI_Finalize are left out: the program begins at the end of the one
-- and ends at the start of the other, on threads that called neither with the first call and the last.
program_times AS (
  SELECT rank, thread,
         COALESCE(MAX(CASE WHEN call IN ('MPI_Init', 'MPI_Init_thread') THEN end_ns END), MIN(start_ns)) AS begin_ns,
         COALESCE(MIN(CASE WHEN call = 'MPI_Finalize' THEN start_ns END), MAX(COALESCE(end_ns, start_ns))) AS end_ns,
         CAST(SUM(CASE WHEN call IN ('MPI_Init', 'MPI_Init_thread') THEN 0
                       WHEN call = 'MPI_Finalize' THEN COALESCE(poll_ns, 0)
                       ELSE COALESCE(end_ns - start_ns, 0) + COALESCE(poll_ns, 0) END) AS BIGINT) AS mpi_ns
  FROM events
  GROUP BY rank, thread
)
