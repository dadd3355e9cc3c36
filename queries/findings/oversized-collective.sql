-- question: Do ranks take part in a collective operation that give nothing to it and get nothing from it?
-- source: MPI 4.0, section 6.2: a collective is of all ranks of its communicator, also of those without data.
-- needs: profile, comms, collective_waits, times
-- origins: measured, virtual, simulated
-- gain: bound
-- advice: Make a communicator of the ranks that have data (MPI_Comm_split), once, and call the collective there.
-- column calls BIGINT 1: Calls of each rank at this place.
-- column idle BIGINT 1: Ranks that neither give nor get data there.
-- column comm_ranks BIGINT 1: All ranks of the communicator.
-- column idle_ns BIGINT ns: Time in these calls, of the rank without data that is in them for the longest time.
-- column waited_ns BIGINT ns: Time that a rank with data waits for ranks without any, on average.
-- order: cost_ns DESC, callsite, call, comm
-- cost: The tables profile, comms and collective_waits.
WITH of_rank AS (
  SELECT callsite, call, comm, rank, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
         SUM(COALESCE(send_bytes, 0)) + SUM(COALESCE(recv_bytes, 0)) AS bytes
  FROM profile
  WHERE class = 'collective' AND comm IS NOT NULL AND in_progress = 0
  GROUP BY callsite, call, comm, rank
),
caused AS (
  SELECT call, comm, rank, SUM(caused_ns) AS ns
  FROM collective_waits
  WHERE until = 'needed'
  GROUP BY call, comm, rank
),
at_place AS (
  SELECT r.callsite, r.call, r.comm, MAX(r.calls) AS calls, COUNT(*) AS ranks, COUNT(*) FILTER (WHERE r.bytes = 0) AS idle,
         string_agg(CAST(r.rank AS VARCHAR), ',' ORDER BY r.rank) FILTER (WHERE r.bytes = 0) AS idle_ranks,
         MAX(r.time_ns) FILTER (WHERE r.bytes = 0) AS idle_ns, MAX(r.time_ns) FILTER (WHERE r.bytes > 0) AS busy_ns,
         COALESCE(SUM(c.ns) FILTER (WHERE r.bytes = 0), 0) AS caused_ns
  FROM of_rank r
  LEFT JOIN caused c ON c.call = r.call AND c.comm = r.comm AND c.rank = r.rank
  GROUP BY r.callsite, r.call, r.comm
  HAVING MIN(r.calls) = MAX(r.calls)
),
members AS (
  SELECT comm, COUNT(*) AS ranks
  FROM comms
  GROUP BY comm
),
found_at AS (
  SELECT p.*, m.ranks AS comm_ranks, LEAST(p.busy_ns, p.caused_ns / (p.ranks - p.idle)) AS waited_ns
  FROM at_place p
  JOIN members m ON m.comm = p.comm
  WHERE p.ranks = m.ranks AND p.idle > 0 AND p.idle < p.ranks
)
SELECT callsite, call, idle_ranks AS ranks, CAST(GREATEST(idle_ns, waited_ns) AS BIGINT) AS cost_ns,
       call || ' is called by ' || comm_ranks || ' ranks, of which ' || idle || ' never give or get data' AS found,
       CAST(calls AS BIGINT) AS calls, CAST(idle AS BIGINT) AS idle, CAST(comm_ranks AS BIGINT) AS comm_ranks,
       CAST(idle_ns AS BIGINT) AS idle_ns, CAST(waited_ns AS BIGINT) AS waited_ns
FROM found_at
ORDER BY cost_ns DESC, callsite, call, comm
