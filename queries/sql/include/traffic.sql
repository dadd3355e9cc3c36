-- traffic(src, dst, messages, bytes): what goes from rank to rank, point-to-point messages for which where holds and
-- collectives folded in as the parameter collectives says. Not yet unique in (src, dst): sum over it.
-- docs/method/collectives-in-the-matrix.md says what each mode means and why.
{{include operations}},
groups AS (
  -- The groups of each communicator: number of members, and world rank of rank 0.
  SELECT comm, remote, CAST(COUNT(*) AS BIGINT) AS members,
         MAX(CASE WHEN comm_rank = 0 THEN world_rank END) AS first_world
  FROM comms
  WHERE {{collectives}} <> 'none'
  GROUP BY comm, remote
),
members AS (
  -- Each member with the group that receives its data: its own, or in an intercommunicator the other one.
  SELECT m.comm, m.remote, m.comm_rank, m.world_rank, own.members, own.first_world,
         CASE WHEN other.comm IS NULL THEN 0 ELSE 1 END AS inter,
         CASE WHEN other.comm IS NULL THEN own.remote ELSE other.remote END AS peer_remote,
         CASE WHEN other.comm IS NULL THEN own.members ELSE other.members END AS peer_members,
         CASE WHEN other.comm IS NULL THEN own.first_world ELSE other.first_world END AS peer_first_world
  FROM comms m
  JOIN groups own ON own.comm = m.comm AND own.remote = m.remote
  LEFT JOIN groups other ON other.comm = m.comm AND other.remote <> m.remote
  WHERE {{collectives}} <> 'none' AND m.world_rank IS NOT NULL
),
shaped AS (
  -- fan: the directions an operation has. in_kind, out_kind: whether an inner node of a tree passes on what its whole
  -- subtree sends or receives (sum), or a payload of the same size on every edge (one).
  SELECT c.comm, c.rank, c.root_world, c.op, c.calls, c.sending_calls, c.send_bytes, c.recv_bytes,
         m.remote, m.comm_rank, m.members, m.first_world, m.inter, m.peer_remote, m.peer_members, m.peer_first_world,
         CASE WHEN c.op IN ('bcast', 'scatter', 'scatterv') THEN 'out'
              WHEN c.op IN ('reduce', 'gather', 'gatherv') THEN 'in'
              WHEN c.op LIKE 'neighbor%' THEN 'parts'
              WHEN {{collectives}} = 'logical' AND c.op IN ('alltoallv', 'alltoallw') THEN 'parts'
              WHEN {{collectives}} = 'logical' AND c.op IN ('alltoall', 'allgather', 'allgatherv') THEN 'pairs'
              ELSE 'both' END AS fan,
         CASE WHEN c.op IN ('gather', 'gatherv', 'allgather', 'allgatherv', 'alltoall', 'alltoallv', 'alltoallw')
              THEN 'sum' ELSE 'one' END AS in_kind,
         CASE WHEN c.op IN ('scatter', 'scatterv', 'alltoall', 'alltoallv', 'alltoallw', 'reduce_scatter', 'reduce_scatter_block')
              THEN 'sum' ELSE 'one' END AS out_kind
  FROM calls c
  JOIN members m ON m.comm = c.comm AND m.world_rank = c.rank
  WHERE {{collectives}} <> 'none'
),
fans AS (
  -- One row per caller and direction: rank gives bytes to root ('in') or gets them from it ('out').
  SELECT 'in' AS direction, in_kind AS kind, comm, remote, comm_rank, members, rank, calls, send_bytes AS bytes,
         CASE WHEN fan = 'in' THEN root_world ELSE peer_first_world END AS root
  FROM shaped
  WHERE fan IN ('in', 'both')
  UNION ALL
  SELECT 'out' AS direction, out_kind AS kind, comm, remote, comm_rank, members, rank, calls, recv_bytes AS bytes,
         CASE WHEN fan = 'out' THEN root_world ELSE first_world END AS root
  FROM shaped
  WHERE fan IN ('out', 'both')
),
bits AS (
  SELECT bit
  FROM (VALUES (1), (2), (4), (8), (16), (32), (64), (128), (256), (512), (1024), (2048), (4096), (8192), (16384), (32768),
               (65536), (131072), (262144), (524288), (1048576), (2097152), (4194304), (8388608), (16777216)) AS b (bit)
  WHERE {{collectives}} = 'tree'
),
nodes AS (
  -- node: a caller's number in the tree, the root has 0. In an intercommunicator the root is of the other group, and the
  -- callers follow it in the order of their own.
  SELECT f.direction, f.kind, f.comm, f.remote, f.members, f.calls, f.bytes, f.root, r.comm_rank AS root_rank,
         CASE WHEN r.comm_rank IS NULL THEN f.comm_rank + 1
              ELSE (f.comm_rank - r.comm_rank + f.members) % f.members END AS node
  FROM fans f
  LEFT JOIN comms r ON r.comm = f.comm AND r.remote = f.remote AND r.world_rank = f.root
  WHERE {{collectives}} = 'tree' AND f.root IS NOT NULL AND f.rank <> f.root
),
edges AS (
  -- The way from a node to the root clears its one bits from the lowest: each is an edge child - parent. A payload of
  -- kind sum travels all of them, the message itself and a payload of kind one belong to the node's own edge.
  SELECT n.direction, n.comm, n.remote, n.members, n.root, n.root_rank,
         n.node - n.node % b.bit AS child, n.node - n.node % b.bit - b.bit AS parent,
         CASE WHEN n.node % b.bit = 0 THEN n.calls ELSE 0 END AS messages,
         CASE WHEN n.node % b.bit = 0 OR n.kind = 'sum' THEN n.bytes ELSE 0 END AS bytes
  FROM nodes n
  JOIN bits b ON n.node % (2 * b.bit) >= b.bit
),
tree AS (
  SELECT e.direction, child.world_rank AS child,
         CASE WHEN e.parent = 0 THEN e.root ELSE parent.world_rank END AS parent, e.messages, e.bytes
  FROM (SELECT direction, comm, remote, root, parent, messages, bytes,
               CASE WHEN root_rank IS NULL THEN child - 1 ELSE (child + root_rank) % members END AS child_rank,
               CASE WHEN root_rank IS NULL THEN parent - 1 ELSE (parent + root_rank) % members END AS parent_rank
        FROM edges) e
  JOIN comms child ON child.comm = e.comm AND child.remote = e.remote AND child.comm_rank = e.child_rank
  LEFT JOIN comms parent ON parent.comm = e.comm AND parent.remote = e.remote AND parent.comm_rank = e.parent_rank
),
traffic AS (
  SELECT src, dst, CAST(COUNT(*) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM {{messages unless default where}}
  WHERE {{where}} AND NOT {{default where}}
  GROUP BY src, dst
  UNION ALL
  SELECT src, dst, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM channels
  WHERE {{default where}}
  GROUP BY src, dst
  UNION ALL
  SELECT CASE WHEN direction = 'in' THEN rank ELSE root END AS src, CASE WHEN direction = 'in' THEN root ELSE rank END AS dst,
         calls AS messages, bytes
  FROM fans
  WHERE {{collectives}} IN ('rooted', 'logical') AND root IS NOT NULL AND rank <> root
  UNION ALL
  SELECT CASE WHEN direction = 'in' THEN child ELSE parent END AS src, CASE WHEN direction = 'in' THEN parent ELSE child END AS dst,
         messages, bytes
  FROM tree
  WHERE child IS NOT NULL AND parent IS NOT NULL
  UNION ALL
  -- Pairs: an allgather gives the caller's own part to every other member, an alltoall an equal share to each.
  SELECT s.rank AS src, p.world_rank AS dst, s.sending_calls AS messages,
         CASE WHEN s.op = 'alltoall' THEN CAST(s.send_bytes / s.peer_members AS BIGINT) ELSE s.send_bytes END AS bytes
  FROM shaped s
  JOIN comms p ON p.comm = s.comm AND p.remote = s.peer_remote
  WHERE s.fan = 'pairs' AND s.sending_calls > 0 AND p.world_rank IS NOT NULL AND p.world_rank <> s.rank
  UNION ALL
  -- Operations with an individual part for each peer.
  SELECT rank AS src, peer_world AS dst, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM {{collective_parts unless collectives none}}
  WHERE {{collectives}} <> 'none' AND peer_world <> rank AND call NOT IN ('MPI_Start', 'MPI_Startall')
    AND (lower(call) LIKE '%neighbor%'
         OR {{collectives}} = 'logical' AND (lower(call) LIKE '%alltoallv%' OR lower(call) LIKE '%alltoallw%'))
  GROUP BY rank, peer_world
)
