-- summary: Where in the source the program spends its time in MPI: the time of each MPI call there, longest first.
-- source: mpiP's list of call sites with Time, App%, MPI%, Count and COV
-- needs: profile, callsites, every-call, times
-- origins: measured, virtual, simulated
-- param by choice line|path|function = line: What is one call site. line: a line of the source (or, without debug
--     information, a place in a module). path: a line and its callers, as far as --stack kept them. function: a function.
-- param init choice leave-out|include = leave-out: Whether the time in MPI_Init, MPI_Init_thread and MPI_Finalize counts. They start and stop
--     processes, and would be most of a short run. MPI_Session_init and MPI_Session_finalize always count.
-- column callsite INTEGER -: Id in callsites; of several that are one here, the lowest.
-- column function VARCHAR -: Function that calls; null where it is not known.
-- column file VARCHAR -: Source file; null where there is no debug information, and by function.
-- column line INTEGER -: Source line; null where file is.
-- column module VARCHAR -: Executable or shared library.
-- column code_offset BIGINT -: Place in the module, of a call site that no line (by function: no function) tells apart.
-- column callers VARCHAR -: By path, the functions that called it, nearest first, at most eight.
-- column call VARCHAR -: The MPI function.
-- column calls BIGINT 1: Rows of events that have an end: calls that returned.
-- column ranks BIGINT 1: World ranks that made them.
-- column time_ns BIGINT ns: Time inside them, summed over ranks and threads. Failed tests and probes have no call site and are
--     not in it (events.poll_ns has them).
-- column mean_ns DOUBLE ns: Its mean per call.
-- column max_ns BIGINT ns: The longest call.
-- column mpi_share DOUBLE share: Part of the time in all calls here.
-- column app_share DOUBLE share: Part of the time that all threads ran together, each from the end of MPI_Init to the start of MPI_Finalize,
--     or where it called neither (or with --init include) from its first call's start to its last call's end.
-- column cov DOUBLE 1: Coefficient of variation of the ranks' times at it: population standard deviation over mean, among the ranks that
--     called; 0 is even.
-- order: time_ns DESC, callsite, call
-- cost: The table profile.
-- title: Time in MPI by call site
-- plot: bars callsite time_ns call
-- label callsite: call site
-- label time_ns: time, all ranks together
-- label call: MPI function
WITH {{include sites}},
{{include program_calls}},
counted AS (
  SELECT callsite, call, rank, thread, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(time_ns) AS BIGINT) AS time_ns,
         MAX(max_ns) AS max_ns, MIN(first_ns) AS first_ns, MAX(last_ns) AS last_ns
  FROM program_calls
  WHERE in_progress = 0
  GROUP BY callsite, call, rank, thread
),
totals AS (
  SELECT CAST(SUM(time_ns) AS DOUBLE) AS mpi_ns, CAST(SUM(last_ns - first_ns) AS DOUBLE) AS app_ns
  FROM (SELECT CAST(SUM(time_ns) AS BIGINT) AS time_ns, MIN(first_ns) AS first_ns, MAX(last_ns) AS last_ns
        FROM counted
        GROUP BY rank, thread) t
),
by_rank AS (
  SELECT s.site, s.function, s.file, s.line, s.module, s.code_offset, s.callers, c.call, c.rank,
         CAST(SUM(c.calls) AS BIGINT) AS calls, CAST(SUM(c.time_ns) AS BIGINT) AS time_ns, MAX(c.max_ns) AS max_ns
  FROM counted c
  LEFT JOIN sites s ON s.callsite = c.callsite
  WHERE c.calls > 0
  GROUP BY s.site, s.function, s.file, s.line, s.module, s.code_offset, s.callers, c.call, c.rank
),
placed AS (
  SELECT site, function, file, line, module, code_offset, callers, call, CAST(SUM(calls) AS BIGINT) AS calls,
         CAST(COUNT(*) AS BIGINT) AS ranks, CAST(SUM(time_ns) AS BIGINT) AS time_ns, CAST(MAX(max_ns) AS BIGINT) AS max_ns,
         STDDEV_POP(CAST(time_ns AS DOUBLE)) / NULLIF(AVG(CAST(time_ns AS DOUBLE)), 0) AS cov
  FROM by_rank
  GROUP BY site, function, file, line, module, code_offset, callers, call
)
SELECT p.site AS callsite, p.function, p.file, p.line, p.module, p.code_offset, p.callers, p.call, p.calls, p.ranks, p.time_ns,
       CAST(p.time_ns AS DOUBLE) / CAST(p.calls AS DOUBLE) AS mean_ns, p.max_ns,
       CAST(p.time_ns AS DOUBLE) / NULLIF(t.mpi_ns, 0) AS mpi_share, CAST(p.time_ns AS DOUBLE) / NULLIF(t.app_ns, 0) AS app_share, p.cov
FROM placed p
CROSS JOIN totals t
ORDER BY p.time_ns DESC, callsite, p.call
