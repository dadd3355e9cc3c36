-- question: Do the ranks that exchange most sit on different nodes?
-- source: the hop-bytes of topology-aware mapping (Bhatele and Kale, 2008); swaps as in B. W. Kernighan and S. Lin, "An efficient heuristic
--     procedure for partitioning graphs" (1970)
-- needs: messages, ranks, transfers, times
-- origins: measured, virtual, simulated
-- gain: bound
-- advice: Place the ranks so (a rank file, --map-by or --distribution of the launcher, or MPI_Cart_create with reorder).
-- column placement VARCHAR -: The best of three: block (successive ranks on a node), cyclic (round robin) or swap (the ranks as they are, with
--     these exchanged).
-- column far_bytes BIGINT bytes: Payload of messages between nodes as the ranks are.
-- column left_bytes BIGINT bytes: What is left of it.
-- column all_bytes BIGINT bytes: Payload of all messages between different ranks.
-- order: cost_ns DESC
-- cost: Three columns of messages.
WITH sized AS (
  SELECT src, dst, bytes, COUNT(*) AS messages
  FROM messages
  WHERE src <> dst AND (SELECT COUNT(DISTINCT host) FROM ranks) > 1
  GROUP BY src, dst, bytes
),
pairs AS (
  SELECT rank, other, SUM(bytes) AS bytes
  FROM (SELECT src AS rank, dst AS other, bytes * messages AS bytes FROM sized
        UNION ALL
        SELECT dst, src, bytes * messages FROM sized) b
  GROUP BY rank, other
),
to_host AS (
  SELECT p.rank, r.host, SUM(p.bytes) AS bytes
  FROM pairs p
  JOIN ranks r ON r.rank = p.other
  GROUP BY p.rank, r.host
),
heavy AS (
  -- The pairs on different nodes with most bytes: rank may go to the node of other.
  SELECT p.rank, a.host, b.host AS to_node
  FROM pairs p
  JOIN ranks a ON a.rank = p.rank
  JOIN ranks b ON b.rank = p.other
  WHERE a.host <> b.host
  ORDER BY p.bytes DESC, p.rank, p.other
  LIMIT 1000
),
swaps AS (
  -- For whom on that node, and how many bytes that spares.
  SELECT DISTINCT LEAST(h.rank, c.rank) AS one, GREATEST(h.rank, c.rank) AS two, LEAST(h.host, h.to_node) AS node, GREATEST(h.host, h.to_node) AS node2,
         COALESCE(there.bytes, 0) - COALESCE(here.bytes, 0) + COALESCE(back.bytes, 0) - COALESCE(stay.bytes, 0) - 2 * COALESCE(w.bytes, 0) AS bytes
  FROM heavy h
  JOIN ranks c ON c.host = h.to_node
  LEFT JOIN to_host there ON there.rank = h.rank AND there.host = h.to_node
  LEFT JOIN to_host here ON here.rank = h.rank AND here.host = h.host
  LEFT JOIN to_host back ON back.rank = c.rank AND back.host = h.host
  LEFT JOIN to_host stay ON stay.rank = c.rank AND stay.host = h.to_node
  LEFT JOIN pairs w ON w.rank = h.rank AND w.other = c.rank
),
nth_swaps AS (
  SELECT *, ROW_NUMBER() OVER (ORDER BY bytes DESC, one, two) AS nth
  FROM swaps
  WHERE bytes > 0
),
best AS (
  -- Of the swaps between two nodes the best, unless one of the ranks has a better one: after one swap the others spare other bytes.
  SELECT one, two
  FROM nth_swaps
  QUALIFY nth = MIN(nth) OVER (PARTITION BY node, node2) AND nth = MIN(nth) OVER (PARTITION BY one) AND nth = MIN(nth) OVER (PARTITION BY two)
),
moves AS (
  SELECT one AS rank, two AS other FROM best
  UNION ALL
  SELECT two, one FROM best
),
seats AS (
  -- The seats that the run has, in the order of nodes, and dealt out one to each node in turn.
  SELECT host, ROW_NUMBER() OVER (ORDER BY host, turn) - 1 AS block, ROW_NUMBER() OVER (ORDER BY turn, host) - 1 AS cyclic
  FROM (SELECT host, ROW_NUMBER() OVER (PARTITION BY host ORDER BY rank) AS turn FROM ranks) s
),
placements AS (
  SELECT 'now' AS placement, rank, host FROM ranks
  UNION ALL
  SELECT 'block', CAST(block AS INTEGER), host FROM seats
  UNION ALL
  SELECT 'cyclic', CAST(cyclic AS INTEGER), host FROM seats
  UNION ALL
  SELECT 'swap', r.rank, COALESCE(o.host, r.host)
  FROM ranks r
  LEFT JOIN (SELECT rank, MIN(other) AS other FROM moves GROUP BY rank) m ON m.rank = r.rank
  LEFT JOIN ranks o ON o.rank = m.other
),
far AS (
  SELECT p.placement, CAST(SUM(CASE WHEN p.host <> q.host THEN s.bytes * s.messages ELSE 0 END) AS BIGINT) AS bytes,
         CAST(SUM(s.bytes * s.messages) AS BIGINT) AS all_bytes
  FROM sized s
  JOIN placements p ON p.rank = s.src
  JOIN placements q ON q.rank = s.dst AND q.placement = p.placement
  GROUP BY p.placement
),
chosen AS (
  SELECT f.placement, f.bytes AS left_bytes, n.bytes AS far_bytes, f.all_bytes
  FROM far f
  JOIN far n ON n.placement = 'now'
  WHERE f.bytes < n.bytes
  ORDER BY f.bytes, f.placement
  LIMIT 1
),
times AS (
  SELECT same_host, bytes, SUM(messages * EXP((step + 0.5) / 128)) / SUM(messages) AS ns
  FROM transfers
  WHERE timed = 1 AND step >= 0
  GROUP BY same_host, bytes
),
nearer AS (
  SELECT s.dst AS rank, s.bytes, s.messages
  FROM chosen c
  JOIN placements p ON p.placement = c.placement
  JOIN placements q ON q.placement = c.placement AND q.host = p.host
  JOIN sized s ON s.src = p.rank AND s.dst = q.rank
  JOIN ranks a ON a.rank = s.src
  JOIN ranks b ON b.rank = s.dst
  WHERE a.host <> b.host
),
saved AS (
  -- What each rank would receive within a node: at most the time of messages that are as large or larger less that of those that are
  -- as large or smaller.
  SELECT n.rank, SUM(n.messages * GREATEST(0, f.ns - COALESCE(t.ns, 0))) AS ns
  FROM nearer n
  ASOF LEFT JOIN (SELECT bytes, ns FROM times WHERE same_host = 0) f ON n.bytes <= f.bytes
  ASOF LEFT JOIN (SELECT bytes, ns FROM times WHERE same_host = 1) t ON n.bytes >= t.bytes
  GROUP BY n.rank
)
SELECT CAST(NULL AS INTEGER) AS callsite, '' AS call,
       COALESCE(CASE WHEN c.placement = 'swap' THEN (SELECT string_agg(CAST(rank AS VARCHAR), ',' ORDER BY rank) FROM moves) END, '') AS ranks,
       CAST((SELECT MAX(ns) FROM saved) AS BIGINT) AS cost_ns,
       CAST(ROUND(100.0 * c.far_bytes / c.all_bytes) AS INTEGER) || ' % of the bytes of messages go from node to node, and '
         || CASE c.placement WHEN 'block' THEN 'with successive ranks on each node' WHEN 'cyclic' THEN 'with ranks dealt out to nodes in turn'
            ELSE 'with ranks ' || (SELECT string_agg(CAST(one AS VARCHAR) || ' and ' || CAST(two AS VARCHAR), ', ' ORDER BY one)
                                   FROM (SELECT one, two FROM best ORDER BY one LIMIT 4) b)
                 || CASE WHEN (SELECT COUNT(*) FROM best) > 4 THEN ' and others' ELSE '' END || ' exchanged' END
         || ' it would be ' || CAST(ROUND(100.0 * c.left_bytes / c.all_bytes) AS INTEGER) || ' %' AS found,
       c.placement, c.far_bytes, c.left_bytes, c.all_bytes
FROM chosen c
WHERE (SELECT MAX(ns) FROM saved) > 0
ORDER BY cost_ns DESC
