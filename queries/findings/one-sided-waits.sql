-- question: Do ranks wait for others in the synchronisation of one-sided communication?
-- source: M.-A. Hermanns, M. Geimer, B. Mohr and F. Wolf, "Scalable detection of MPI-2 remote memory access inefficiency patterns" (IJHPCA 2012):
--     wait at fence, early wait, late post, lock contention.
-- needs: events, times, every-call
-- origins: measured, virtual, simulated
-- gain: bound
-- advice: Let ranks synchronise only with those whose data they need (MPI_Win_post and MPI_Win_start), or flush (MPI_Win_lock_all,
--     MPI_Win_flush); do the late rank's work after it.
-- column calls BIGINT 1: Calls of these ranks at this place.
-- column wait_ns BIGINT ns: Time that these ranks wait there, all of them together.
-- column late_rank INTEGER -: Rank that enters the fence last most often when these ranks wait; null for other calls.
-- order: cost_ns DESC, callsite, call
-- cost: Eight columns of the one-sided rows of events.
WITH synchronised AS (
  SELECT rank, seq, callsite, call, init_seq, start_ns, end_ns,
         ROW_NUMBER() OVER (PARTITION BY rank, init_seq, call ORDER BY seq) AS nth
  FROM events
  WHERE call IN ('MPI_Win_fence', 'MPI_Win_start', 'MPI_Win_complete', 'MPI_Win_wait', 'MPI_Win_lock') AND class = 'rma' AND end_ns IS NOT NULL
),
windows AS (
  SELECT DISTINCT e.rank, e.seq, e.comm, e.instance
  FROM events e
  JOIN (SELECT DISTINCT rank, init_seq FROM synchronised) s ON s.rank = e.rank AND s.init_seq = e.seq
),
fences AS (
  SELECT w.comm, w.instance, s.nth, MAX(s.start_ns) AS last_ns, arg_max(s.rank, s.start_ns) AS late_rank
  FROM synchronised s
  JOIN windows w ON w.rank = s.rank AND w.seq = s.init_seq
  WHERE s.call = 'MPI_Win_fence'
  GROUP BY w.comm, w.instance, s.nth
),
waited AS (
  SELECT s.rank, s.callsite, s.call, f.late_rank, GREATEST(0, LEAST(f.last_ns, s.end_ns) - s.start_ns) AS wait_ns
  FROM synchronised s
  JOIN windows w ON w.rank = s.rank AND w.seq = s.init_seq
  JOIN fences f ON f.comm = w.comm AND f.instance = w.instance AND f.nth = s.nth
  WHERE s.call = 'MPI_Win_fence'
  UNION ALL
  -- Which ranks a rank waits for in the other calls is not recorded: all their time counts.
  SELECT rank, callsite, call, NULL AS late_rank, end_ns - start_ns AS wait_ns
  FROM synchronised
  WHERE call <> 'MPI_Win_fence'
),
by_rank AS (
  SELECT rank, callsite, call, mode(late_rank) FILTER (WHERE wait_ns > 0) AS late_rank, COUNT(*) AS calls, SUM(wait_ns) AS wait_ns
  FROM waited
  GROUP BY rank, callsite, call
),
costs AS (
  SELECT *, MAX(wait_ns) OVER (PARTITION BY callsite, call) AS cost_ns
  FROM by_rank
)
SELECT callsite, call, string_agg(CAST(rank AS VARCHAR), ',' ORDER BY rank) AS ranks, CAST(MAX(cost_ns) AS BIGINT) AS cost_ns,
       'In ' || call || ' ranks wait for others' || COALESCE(', most often for rank ' || CAST(mode(late_rank) AS VARCHAR), '') AS found,
       CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(wait_ns) AS BIGINT) AS wait_ns, CAST(mode(late_rank) AS INTEGER) AS late_rank
FROM costs
WHERE wait_ns >= cost_ns * 0.2 AND wait_ns > 0
GROUP BY callsite, call
ORDER BY cost_ns DESC, callsite, call
