-- summary: Time in each MPI function over all ranks: the flat profile, longest first.
-- source: the table Aggregate Time of mpiP (Call, Time, App%, MPI%, Count, COV) and the flat profiles of IPM and Pipit
-- needs: profile, times, every-call
-- origins: measured, virtual, simulated
-- param init choice leave-out|include = leave-out: Whether the time in MPI_Init, MPI_Init_thread and MPI_Finalize counts. They start and stop
--     processes, and would be most of a short run. MPI_Session_init and MPI_Session_finalize always count.
-- column call VARCHAR -: The MPI function.
-- column ranks BIGINT 1: Ranks that called it.
-- column calls BIGINT 1: Calls (Count): rows of events, for MPI_Startall started requests.
-- column time_ns BIGINT ns: Time in all of them together (Time). A call that never returned adds nothing.
-- column min_ns BIGINT ns: Time of the shortest.
-- column mean_ns BIGINT ns: Mean time.
-- column max_ns BIGINT ns: Time of the longest.
-- column app_share DOUBLE share: Share of the time that all threads ran together, each from the end of MPI_Init to
--     the start of MPI_Finalize, or where it called neither from its first call's start to its last call's end (App%).
-- column mpi_share DOUBLE share: Share of the time in all calls (MPI%). Failed tests and probes are in none: commq query
--     time-by-rank has their time.
-- column cov DOUBLE 1: How far the ranks that called it differ: the standard deviation of their times in it, n - 1 in the
--     denominator, by the mean (COV); 0 for one rank, null where nobody spent time in it.
-- order: time_ns DESC, call
-- cost: The table profile.
-- title: Time in each MPI function
-- plot: bars call time_ns
-- label call: MPI function
-- label time_ns: time, all ranks together
WITH {{include program_calls}},
by_thread AS (
  SELECT rank, thread, call, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(time_ns) AS BIGINT) AS time_ns, MIN(min_ns) AS min_ns, MAX(max_ns) AS max_ns,
         CAST(SUM(CASE WHEN in_progress = 0 THEN calls ELSE 0 END) AS BIGINT) AS returned, MIN(first_ns) AS first_ns, MAX(last_ns) AS last_ns
  FROM program_calls
  GROUP BY rank, thread, call
),
by_rank AS (
  SELECT rank, call, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(COALESCE(time_ns, 0)) AS BIGINT) AS time_ns, MIN(min_ns) AS min_ns, MAX(max_ns) AS max_ns,
         CAST(SUM(returned) AS BIGINT) AS returned
  FROM by_thread
  WHERE calls > 0
  GROUP BY rank, call
),
threads AS (
  SELECT MAX(last_ns) - MIN(first_ns) AS ran_ns
  FROM by_thread
  GROUP BY rank, thread
),
whole AS (
  SELECT CAST(SUM(ran_ns) AS DOUBLE) AS app_ns, (SELECT CAST(SUM(time_ns) AS DOUBLE) FROM by_rank) AS mpi_ns
  FROM threads
),
by_call AS (
  SELECT call, CAST(COUNT(*) AS BIGINT) AS ranks, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(time_ns) AS BIGINT) AS time_ns,
         CAST(MIN(min_ns) AS BIGINT) AS min_ns, CAST(MAX(max_ns) AS BIGINT) AS max_ns, CAST(SUM(returned) AS BIGINT) AS returned,
         COALESCE(STDDEV_SAMP(CAST(time_ns AS DOUBLE)), 0) AS deviation_ns, AVG(CAST(time_ns AS DOUBLE)) AS mean_rank_ns
  FROM by_rank
  GROUP BY call
)
SELECT c.call, c.ranks, c.calls, c.time_ns, c.min_ns, CAST(ROUND(CAST(c.time_ns AS DOUBLE) / NULLIF(c.returned, 0)) AS BIGINT) AS mean_ns, c.max_ns,
       ROUND(CAST(c.time_ns AS DOUBLE) / NULLIF(w.app_ns, 0), 4) AS app_share, ROUND(CAST(c.time_ns AS DOUBLE) / NULLIF(w.mpi_ns, 0), 4) AS mpi_share,
       ROUND(CAST(c.deviation_ns AS DOUBLE) / NULLIF(c.mean_rank_ns, 0), 4) AS cov
FROM by_call c
CROSS JOIN whole w
ORDER BY c.time_ns DESC, c.call
