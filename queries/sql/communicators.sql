-- summary: Each communicator: how it was made, its size, and what is sent on it.
-- source: message statistics by communicator, as in Vampir; what a matrix of world ranks cannot show
-- needs: comms, messages, events
-- column comm INTEGER -: Id in comms; 0 is MPI_COMM_WORLD.
-- column kind VARCHAR -: How it was made: world, self, dup, split, create, cart, graph, dist_graph, inter, merge or other.
-- column name VARCHAR -: Its name; where its processes named it differently, the first in alphabetical order.
-- column parent INTEGER -: Communicator it was made from; of an intercommunicator that of the group with the lowest world
--     rank; null where there is none.
-- column size BIGINT 1: Its processes; of an intercommunicator those of the group with the lowest world rank.
-- column remote_size BIGINT 1: Processes of an intercommunicator's other group; null for an intracommunicator.
-- column messages BIGINT 1: Point-to-point messages on it.
-- column bytes BIGINT bytes: Payload of those.
-- column collectives BIGINT 1: Collective operations on it, one for all ranks together; constructors of communicators, one-sided
--     calls and files are none.
-- column collective_calls BIGINT 1: Calls that made them: of a complete run, operations times ranks.
-- column collective_send_bytes BIGINT bytes: Payload that all ranks gave to them, by their own arguments; unknown
--     bytes add nothing.
-- column collective_recv_bytes BIGINT bytes: Payload that all ranks got from them, by their own arguments; unknown
--     bytes add nothing.
-- order: comm
-- cost: The tables channels and collective_calls.
-- title: Data sent on each communicator
-- plot: bars comm bytes+collective_send_bytes
-- label comm: communicator
-- label bytes: messages
-- label collective_send_bytes: collectives
-- label y: sent data
WITH made AS (
  SELECT comm, MAX(kind) AS kind, MIN(name) AS name, MAX(CASE WHEN remote = 0 THEN parent END) AS parent,
         CAST(SUM(CASE WHEN remote = 0 THEN 1 ELSE 0 END) AS BIGINT) AS size,
         CAST(NULLIF(CAST(SUM(remote) AS BIGINT), 0) AS BIGINT) AS remote_size
  FROM comms
  GROUP BY comm
),
sent AS (
  SELECT comm, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM channels
  GROUP BY comm
),
collective AS (
  SELECT comm, CAST(SUM(operations) AS BIGINT) AS collectives, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(send_bytes) AS BIGINT) AS send_bytes,
         CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes
  FROM collective_calls
  GROUP BY comm
)
SELECT m.comm, m.kind, m.name, m.parent, m.size, m.remote_size,
       CAST(COALESCE(s.messages, 0) AS BIGINT) AS messages, CAST(COALESCE(s.bytes, 0) AS BIGINT) AS bytes,
       CAST(COALESCE(c.collectives, 0) AS BIGINT) AS collectives, CAST(COALESCE(c.calls, 0) AS BIGINT) AS collective_calls,
       CAST(COALESCE(c.send_bytes, 0) AS BIGINT) AS collective_send_bytes,
       CAST(COALESCE(c.recv_bytes, 0) AS BIGINT) AS collective_recv_bytes
FROM made m
LEFT JOIN sent s ON s.comm = m.comm
LEFT JOIN collective c ON c.comm = m.comm
ORDER BY m.comm
