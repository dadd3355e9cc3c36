-- summary: How often each collective operation was done, and the bytes that its ranks sent and received in it.
-- source: Riesen, Communication Patterns (2006), section 3.4 and Figure 13
-- needs: events, ranks
-- column ranks INTEGER 1: Ranks of the run.
-- column operation VARCHAR -: The operation: nonblocking calls, those with large counts and started persistent ones are the operation
--     they do, MPI_Ibcast an MPI_Bcast.
-- column instances BIGINT 1: Operations: P ranks in one barrier are one.
-- column per_rank DOUBLE 1: Operations that a rank took part in, the average over all ranks of the run.
-- column send_bytes BIGINT bytes: Payload that their ranks sent, by each call's own arguments: the root of a bcast sends it once.
--     Null where the run has no sizes.
-- column recv_bytes BIGINT bytes: Payload that their ranks received: every other rank of a bcast once.
--     Null where the run has no sizes.
-- order: operation
-- cost: The table collective_calls.
-- title: Collective operations
-- plot: grouped ranks instances operation
-- label ranks: number of ranks
-- label instances: operations
WITH {{include operations}},
population AS (
  SELECT CAST(COUNT(*) AS INTEGER) AS ranks
  FROM ranks
),
by_rank AS (
  -- One operation under several names and roots: ranks may call different forms of it.
  SELECT comm, op, rank, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(unsized_calls) AS BIGINT) AS unsized_calls,
         CAST(SUM(send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes
  FROM calls
  GROUP BY comm, op, rank
),
by_comm AS (
  -- All ranks of a communicator do the same operations, up to the point that the program reached.
  SELECT comm, op, MAX(calls) AS instances, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(unsized_calls) AS BIGINT) AS unsized_calls,
         CAST(SUM(send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes
  FROM by_rank
  GROUP BY comm, op
),
by_operation AS (
  SELECT op, CAST(SUM(instances) AS BIGINT) AS instances, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(unsized_calls) AS BIGINT) AS unsized_calls,
         CAST(SUM(send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes
  FROM by_comm
  GROUP BY op
),
sized AS (
  -- A trace that has no sizes leaves all calls of an operation without them. A barrier has none, an alltoallw no single datatype.
  SELECT op, instances, calls, send_bytes, recv_bytes,
         unsized_calls < calls OR op IN ('barrier', 'alltoallw', 'neighbor_alltoallw') AS sized
  FROM by_operation
)
SELECT p.ranks, 'MPI_' || upper(substr(o.op, 1, 1)) || substr(o.op, 2) AS operation,
       CAST(o.instances AS BIGINT) AS instances, CAST(o.calls AS DOUBLE) / CAST(p.ranks AS DOUBLE) AS per_rank,
       CASE WHEN o.sized THEN o.send_bytes END AS send_bytes, CASE WHEN o.sized THEN o.recv_bytes END AS recv_bytes
FROM sized o
CROSS JOIN population p
ORDER BY operation
