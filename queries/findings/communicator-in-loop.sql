-- question: Is the same communicator made again and again?
-- source: MPI 4.0, section 7.4: making a communicator is collective and may synchronise; libraries agree on its id with an allreduce.
-- needs: profile, comms, times
-- origins: measured, virtual, simulated
-- gain: messages
-- advice: Make the communicator once, before the loop, and keep it.
-- column calls BIGINT 1: Calls at this place by a rank.
-- column repeats BIGINT 1: Those that made a communicator of a group that each rank had one of, from the same communicator and of the same kind.
-- column time_ns BIGINT ns: Time in these calls of the rank that was in them for the shortest time: the others also waited for it.
-- order: cost_ns DESC, callsite, call
-- cost: The tables profile and comms.
WITH made AS (
  -- The sums tell groups apart: two with the same ones differ by their kind, if at all.
  SELECT comm, MAX(parent) AS parent, MAX(kind) || '/' || COUNT(*) || '/' || MAX(COALESCE(cart_dims, '')) || '/'
           || MAX(COALESCE(cart_periods, '')) || '/' || CAST(SUM(hash(comm_rank, graph_edges)) AS VARCHAR) || '/'
           || CAST(SUM((remote + 1) * (comm_rank + 1) * CAST(COALESCE(world_rank, -1) + 2 AS DOUBLE)) AS VARCHAR) || '/'
           || CAST(SUM(CAST(COALESCE(world_rank, -1) AS DOUBLE) * world_rank) AS VARCHAR) AS what
  FROM comms
  WHERE kind NOT IN ('world', 'self')
  GROUP BY comm
),
of_rank AS (
  SELECT c.world_rank AS rank, m.parent, COUNT(DISTINCT m.comm) AS made, COUNT(DISTINCT m.what) AS different
  FROM made m
  JOIN (SELECT DISTINCT comm, world_rank FROM comms) c ON c.comm = m.comm
  GROUP BY c.world_rank, m.parent
),
calls AS (
  SELECT callsite, call, rank, comm, SUM(calls) AS calls, SUM(time_ns) AS time_ns
  FROM profile
  WHERE class = 'comm' AND call NOT IN ('MPI_Comm_free', 'MPI_Comm_disconnect')
  GROUP BY callsite, call, rank, comm
  HAVING SUM(calls) > 1
),
repeated AS (
  -- Where several places make communicators from the same one, each has its part of the repeats.
  SELECT c.callsite, c.call, c.rank, SUM(c.calls) AS calls, SUM(c.time_ns) AS time_ns,
         SUM(LEAST(c.calls - 1, o.made - o.different,
                   CAST(FLOOR(CAST(c.calls AS DOUBLE) * (o.made - o.different) / o.made + 1e-9) AS BIGINT))) AS repeats
  FROM calls c
  JOIN of_rank o ON o.rank = c.rank AND o.parent = c.comm
  GROUP BY c.callsite, c.call, c.rank
)
SELECT callsite, call, '' AS ranks,
       CAST(MIN(CAST(time_ns AS DOUBLE) * repeats / calls) AS BIGINT) AS cost_ns,
       format('{} makes the same communicator {:,} times', call, CAST(MIN(repeats) + 1 AS BIGINT)) AS found,
       CAST(MAX(1 - CAST(repeats AS DOUBLE) / calls) AS DOUBLE) AS latency, CAST(MAX(1 - CAST(repeats AS DOUBLE) / calls) AS DOUBLE) AS bytes,
       CAST(MAX(calls) AS BIGINT) AS calls, CAST(MIN(repeats) AS BIGINT) AS repeats, CAST(MIN(time_ns) AS BIGINT) AS time_ns
FROM repeated
GROUP BY callsite, call
HAVING MIN(repeats) > 0
ORDER BY cost_ns DESC, callsite, call
