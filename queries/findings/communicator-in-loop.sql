-- question: Is the same communicator made again and again?
-- source: MPI 4.0, section 7.4: making a communicator is collective and may synchronise; libraries agree on its id with an allreduce.
-- needs: profile, comms, times
-- origins: measured, virtual, simulated
-- gain: bound
-- advice: Make the communicator once, before the loop, and keep it.
-- column calls BIGINT 1: Calls at this place by a rank.
-- column repeats BIGINT 1: Those that made a communicator of a group that the rank had one of, from the same communicator and of the same kind.
-- column time_ns BIGINT ns: Time in these calls of the rank that was in them for the shortest time: the others also waited for it.
-- order: cost_ns DESC, callsite, call
-- cost: The tables profile and comms.
WITH made AS (
  -- The sums tell groups apart: two with the same ones differ by their kind, if at all.
  SELECT comm, MAX(parent) AS parent, MAX(kind) || '/' || COUNT(*) || '/' || MAX(COALESCE(cart_dims, '')) || '/'
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
  SELECT c.callsite, c.call, c.rank, SUM(c.calls) AS calls,
         SUM(LEAST(c.calls - 1, o.made - o.different,
                   CAST(FLOOR(CAST(c.calls AS DOUBLE) * (o.made - o.different) / o.made + 1e-9) AS BIGINT))) AS repeats,
         SUM(c.time_ns) AS time_ns
  FROM calls c
  JOIN of_rank o ON o.rank = c.rank AND o.parent = c.comm
  WHERE o.made > o.different
  GROUP BY c.callsite, c.call, c.rank
)
SELECT callsite, call, '' AS ranks,
       CAST(MIN(CAST(time_ns AS DOUBLE) * repeats / calls) AS BIGINT) AS cost_ns,
       call || ' makes the same communicator ' || MAX(repeats) + 1 || ' times' AS found,
       CAST(MAX(calls) AS BIGINT) AS calls, CAST(MAX(repeats) AS BIGINT) AS repeats, CAST(MIN(time_ns) AS BIGINT) AS time_ns
FROM repeated
WHERE repeats > 0
GROUP BY callsite, call
ORDER BY cost_ns DESC, callsite, call
