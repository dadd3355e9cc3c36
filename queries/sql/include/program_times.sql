-- program_times(rank, thread, begin_ns, end_ns, mpi_ns): a row for each thread that called MPI: when its part of the program began and ended, and how long
-- it was in MPI in between, failed tests and probes too. The program begins at the end of MPI_Init and ends at the start of MPI_Finalize, on
-- threads that called neither (and on all where the parameter init counts the two) with the first call and the last.
{{include program_calls}},
program_times AS (
  SELECT rank, thread, MIN(first_ns) AS begin_ns, MAX(last_ns) AS end_ns,
         CAST(SUM(COALESCE(time_ns, 0)) AS BIGINT) + CAST(SUM(COALESCE(poll_ns, 0)) AS BIGINT) AS mpi_ns
  FROM program_calls
  GROUP BY rank, thread
)
