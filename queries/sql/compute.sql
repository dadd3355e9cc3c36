-- summary: Which ranks compute how long before which line of the source: the computing before each MPI call there, longest first.
-- source: commq diagnose, which names the line of an imbalance by it
-- needs: profile, callsites, every-call, times, compute
-- origins: measured, virtual, simulated
-- param by choice line|line-rank = line: What a row is. line: a line of the source (or, without debug information, a place in a
--     module) and its MPI function. line-rank: the same of one rank. Sums of ranks alone are in time-by-rank.
-- column callsite INTEGER -: Id in callsites of the call that follows the computing; of several that are one here, the lowest.
-- column function VARCHAR -: Function that calls; null where it is not known.
-- column file VARCHAR -: Source file; null where there is no debug information.
-- column line INTEGER -: Source line; null where file is.
-- column module VARCHAR -: Executable or shared library.
-- column code_offset BIGINT -: Place in the module, of a call site that no line tells apart.
-- column call VARCHAR -: The MPI function.
-- column rank INTEGER -: World rank that computes; null by line.
-- column ranks BIGINT 1: World ranks that made these calls.
-- column calls BIGINT 1: Rows of events.
-- column compute_ns BIGINT ns: Computing before them, on the run's compute_clock, summed over ranks and threads. What ranks compute before
--     MPI_Init is not counted.
-- column mean_ns DOUBLE ns: Its mean per call.
-- column top_rank INTEGER -: The rank that computes longest before them, the lowest of several.
-- column top_ns BIGINT ns: The time of that rank.
-- column imbalance DOUBLE 1: top_ns by the mean of the ranks that made these calls: 1 is balance.
-- column share DOUBLE share: Part of all computing here.
-- order: compute_ns DESC, callsite, call, rank
-- cost: The table profile.
-- title: Computing before each call site
-- plot: bars callsite compute_ns call
-- label callsite: call site
-- label compute_ns: computing, all ranks together
-- label call: MPI function
WITH {{include sites}},
by_rank AS (
  SELECT s.site, s.function, s.file, s.line, s.module, s.code_offset, p.call, p.rank, CAST(SUM(p.calls) AS BIGINT) AS calls,
         CAST(SUM(COALESCE(p.compute_ns, 0)) AS BIGINT) AS compute_ns
  FROM profile p
  LEFT JOIN sites s ON s.callsite = p.callsite
  WHERE p.call NOT IN ('MPI_Init', 'MPI_Init_thread')
  GROUP BY s.site, s.function, s.file, s.line, s.module, s.code_offset, p.call, p.rank
),
ranked AS (
  SELECT site, function, file, line, module, code_offset, call, rank, calls, compute_ns,
         CASE WHEN {{by}} = 'line-rank' THEN rank END AS row_rank,
         ROW_NUMBER() OVER (PARTITION BY site, function, file, line, module, code_offset, call, CASE WHEN {{by}} = 'line-rank' THEN rank END
                            ORDER BY compute_ns DESC, rank) AS nth
  FROM by_rank
),
placed AS (
  SELECT site, function, file, line, module, code_offset, call, row_rank, CAST(COUNT(*) AS BIGINT) AS ranks,
         CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(compute_ns) AS BIGINT) AS compute_ns,
         MAX(CASE WHEN nth = 1 THEN rank END) AS top_rank, CAST(MAX(compute_ns) AS BIGINT) AS top_ns
  FROM ranked
  GROUP BY site, function, file, line, module, code_offset, call, row_rank
),
totals AS (
  SELECT CAST(SUM(compute_ns) AS DOUBLE) AS compute_ns
  FROM by_rank
)
SELECT p.site AS callsite, p.function, p.file, p.line, p.module, p.code_offset, p.call, p.row_rank AS rank, p.ranks, p.calls, p.compute_ns,
       CAST(p.compute_ns AS DOUBLE) / CAST(p.calls AS DOUBLE) AS mean_ns, p.top_rank, p.top_ns,
       CAST(p.top_ns AS DOUBLE) * CAST(p.ranks AS DOUBLE) / NULLIF(CAST(p.compute_ns AS DOUBLE), 0) AS imbalance,
       CAST(p.compute_ns AS DOUBLE) / NULLIF(t.compute_ns, 0) AS share
FROM placed p
CROSS JOIN totals t
ORDER BY p.compute_ns DESC, callsite, p.call, rank
