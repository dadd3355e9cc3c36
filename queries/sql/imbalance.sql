-- summary: Load imbalance of computing, of MPI and of each MPI function: how the rank with the most time compares with the mean.
-- source: Pipit's load_imbalance (max/mean) and the imbalance time and percentage of CrayPat (DeRose et al., Detecting Application Load Imbalance)
-- needs: profile, ranks, times, every-call
-- origins: measured, virtual, simulated
-- param init choice leave-out|include = leave-out: Whether the time in MPI_Init, MPI_Init_thread and MPI_Finalize counts. They start and stop
--     processes, and would be most of a short run. MPI_Session_init and MPI_Session_finalize always count.
-- column what VARCHAR -: compute (compute_ns: outside MPI, on the run's compute_clock; no row where that is none), MPI (all recorded calls, and failed tests), or
--     an MPI function.
-- column ranks BIGINT 1: Ranks that spent time in it. Means are over all ranks of the run; those that did not call a function spent 0 in it.
-- column total_ns BIGINT ns: Time of all ranks, all threads together.
-- column min_ns BIGINT ns: Time of the rank with the least.
-- column mean_ns BIGINT ns: Mean over all ranks.
-- column max_ns BIGINT ns: Time of the rank with the most.
-- column top_rank INTEGER -: That rank, the lowest of several.
-- column imbalance DOUBLE 1: max by mean: 1 is balance, the number of ranks is all on one.
-- column imbalance_ns BIGINT ns: max less mean: what the slowest rank would gain with balance.
-- column imbalance_share DOUBLE share: imbalance_ns by max, times n/(n - 1) for n ranks, so that 0 is balance and 1 is all on one rank; null for one rank.
-- order: imbalance_ns DESC, what
-- cost: The table profile.
-- title: Load imbalance
-- plot: bars what imbalance_ns
-- label what: where the time is spent
-- label imbalance_ns: slowest rank less mean
WITH {{include program_calls}},
spent AS (
  SELECT rank, call, CAST(SUM(time_ns) AS BIGINT) AS ns, CAST(SUM(compute_ns) AS BIGINT) AS compute_ns, CAST(SUM(poll_ns) AS BIGINT) AS poll_ns,
         CAST(SUM(calls) AS BIGINT) AS calls
  FROM program_calls
  GROUP BY rank, call
),
kinds AS (
  SELECT 'compute' AS what, rank, CAST(SUM(compute_ns) AS BIGINT) AS ns
  FROM spent
  WHERE compute_ns IS NOT NULL
  GROUP BY rank
  UNION ALL
  SELECT 'MPI' AS what, rank, CAST(SUM(COALESCE(ns, 0)) AS BIGINT) + COALESCE(CAST(SUM(poll_ns) AS BIGINT), 0) AS ns
  FROM spent
  GROUP BY rank
  UNION ALL
  SELECT call AS what, rank, COALESCE(ns, 0) AS ns
  FROM spent
  WHERE calls > 0
),
ranked AS (
  SELECT what, rank, CAST(ns AS BIGINT) AS ns, ROW_NUMBER() OVER (PARTITION BY what ORDER BY ns DESC, rank) AS nth
  FROM kinds
),
compared AS (
  SELECT what, CAST(SUM(CASE WHEN ns > 0 THEN 1 ELSE 0 END) AS BIGINT) AS ranks, CAST(SUM(ns) AS BIGINT) AS total_ns,
         CASE WHEN COUNT(*) < (SELECT COUNT(*) FROM ranks) THEN 0 ELSE MIN(ns) END AS min_ns,
         CAST(SUM(ns) AS DOUBLE) / GREATEST((SELECT COUNT(*) FROM ranks), COUNT(*)) AS mean_ns,
         MAX(ns) AS max_ns, MAX(CASE WHEN nth = 1 THEN rank END) AS top_rank,
         CAST(GREATEST((SELECT COUNT(*) FROM ranks), COUNT(*)) AS DOUBLE) AS n
  FROM ranked
  GROUP BY what
)
SELECT what, ranks, total_ns, CAST(min_ns AS BIGINT) AS min_ns, CAST(ROUND(mean_ns) AS BIGINT) AS mean_ns, max_ns, top_rank,
       ROUND(CAST(max_ns AS DOUBLE) / NULLIF(mean_ns, 0), 4) AS imbalance, CAST(ROUND(max_ns - mean_ns) AS BIGINT) AS imbalance_ns,
       ROUND((max_ns - mean_ns) / NULLIF(CAST(max_ns AS DOUBLE), 0) * n / NULLIF(n - 1, 0), 4) AS imbalance_share
FROM compared
ORDER BY imbalance_ns DESC, what
