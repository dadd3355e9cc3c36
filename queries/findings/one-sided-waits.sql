-- question: Do ranks wait in MPI_Win_start, complete, wait or lock for ranks that the rows do not name?
-- source: M.-A. Hermanns, M. Geimer, B. Mohr and F. Wolf, "Scalable detection of MPI-2 remote memory access inefficiency patterns" (IJHPCA 2012):
--     early wait, late post, lock contention.
-- needs: events, times, every-call
-- origins: measured, virtual, simulated
-- gain: bound
-- advice: Post the window (MPI_Win_post) and complete the transfers (MPI_Win_complete) before other work; hold locks for a short time, or
--     keep one lock and flush (MPI_Win_lock_all, MPI_Win_flush).
-- column calls BIGINT 1: Calls of these ranks at this place.
-- column wait_ns BIGINT ns: Time that these ranks wait there, all of them together.
-- order: cost_ns DESC, callsite, call
-- cost: Eight columns of the one-sided rows of events.
WITH followed AS (
  SELECT DISTINCT rank, init_seq
  FROM events
  WHERE call IN ('MPI_Win_start', 'MPI_Win_post') AND class = 'rma' AND label IS NOT NULL
),
by_rank AS (
  SELECT e.rank, e.callsite, e.call, COUNT(*) AS calls, SUM(e.end_ns - e.start_ns) AS wait_ns
  FROM events AS e LEFT JOIN followed AS f ON f.rank = e.rank AND f.init_seq = e.init_seq
  WHERE (e.call IN ('MPI_Win_start', 'MPI_Win_complete', 'MPI_Win_wait') AND f.rank IS NULL OR e.call = 'MPI_Win_lock' AND e.label IS NULL)
        AND e.class = 'rma' AND e.end_ns IS NOT NULL
  GROUP BY e.rank, e.callsite, e.call
),
costs AS (
  SELECT *, MAX(wait_ns) OVER (PARTITION BY callsite, call) AS cost_ns
  FROM by_rank
)
SELECT callsite, call, string_agg(CAST(rank AS VARCHAR), ',' ORDER BY rank) AS ranks, CAST(MAX(cost_ns) AS BIGINT) AS cost_ns,
       'In ' || call || ' ranks wait for others, which are not recorded' AS found, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(wait_ns) AS BIGINT) AS wait_ns
FROM costs
WHERE wait_ns >= cost_ns * 0.2 AND wait_ns > 0
GROUP BY callsite, call
ORDER BY cost_ns DESC, callsite, call
