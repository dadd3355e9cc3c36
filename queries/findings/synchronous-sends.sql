-- question: Do synchronous sends wait for their receivers?
-- source: MPI 4.0, section 3.4: a synchronous send completes only when its receive has begun; a standard one may be buffered
-- needs: profile, waits, times
-- origins: measured, simulated
-- gain: standard
-- advice: Use MPI_Send, MPI_Isend or MPI_Send_init, unless the program needs to know that the receive has begun.
-- column sends BIGINT 1: Synchronous sends at the call site, of all ranks; of MPI_Ssend_init how many it makes.
-- column wait_ns BIGINT ns: Bound of the time that a rank waited in them: what all its sends waited for late receivers, and of MPI_Ssend the time
--     in the calls. It is that of the rank that waited longest.
-- order: cost_ns DESC, callsite, call
-- cost: The tables profile and waits. In virtual times no send waits.
WITH sends AS (
  SELECT callsite, call, rank, SUM(calls) AS calls,
         CASE WHEN call IN ('MPI_Ssend', 'MPI_Ssend_c') THEN SUM(time_ns) END AS time_ns
  FROM profile
  WHERE call IN ('MPI_Ssend', 'MPI_Ssend_c', 'MPI_Issend', 'MPI_Issend_c') AND sends > 0 OR call IN ('MPI_Ssend_init', 'MPI_Ssend_init_c')
  GROUP BY callsite, call, rank
),
waited AS (
  SELECT src AS rank, SUM(late_receive_ns) AS ns
  FROM waits
  GROUP BY src
),
by_rank AS (
  SELECT s.callsite, s.call, s.rank, s.calls, LEAST(w.ns, COALESCE(s.time_ns, w.ns)) AS wait_ns
  FROM sends s
  JOIN waited w ON w.rank = s.rank
)
SELECT callsite, call,
       CASE WHEN COUNT(*) < (SELECT COUNT(*) FROM ranks) THEN string_agg(rank, ',' ORDER BY rank) ELSE '' END AS ranks,
       CAST(MAX(wait_ns) AS BIGINT) AS cost_ns,
       CASE WHEN call LIKE '%init%' THEN 'The sends that ' || call || ' makes wait for their receivers'
            WHEN SUM(calls) = 1 THEN call || ' waits for its receiver' ELSE call || format(' waits for its receiver, {:,} times at most', CAST(SUM(calls) AS BIGINT)) END AS found,
       CAST(SUM(calls) AS BIGINT) AS sends, CAST(MAX(wait_ns) AS BIGINT) AS wait_ns
FROM by_rank
WHERE wait_ns > 0
GROUP BY callsite, call
ORDER BY cost_ns DESC, callsite, call
