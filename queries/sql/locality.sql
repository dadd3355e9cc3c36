-- summary: How far messages travel: within a rank, a node, or over how many hops of the network between nodes.
-- source: the hop-bytes of topology-aware mapping (Bhatele and Kale, 2008); what a change of mapping would do to them
-- needs: messages, events, comms, parts, ranks
-- param topology choice nodes|torus|tree = nodes: What joins the nodes. nodes: one hop from every node to every other. torus:
--     a torus of the extents dims, nodes numbered with the last one fastest. A hop is a link; a mesh is farther only across
--     its edges. tree: a tree of switches: dims are the branches at the root, of each of those, and so on, the last
--     one the nodes at a leaf switch. Up to the lowest common switch and down again, every link is a hop.
-- param dims text = '': Extents of the torus or branches of the tree, up to six, for example 4x4x4.
-- param mapping choice hosts|block|cyclic|file = hosts: Which node a rank is on. hosts: the machine that the run had it on.
--     block: ranks-per-node successive ranks on each. cyclic: round robin over as many nodes as that takes. file: as rankmap says.
-- param ranks-per-node integer 1..1000000 = 1: Ranks on each node, for the mappings block and cyclic.
-- param rankmap file rank:INTEGER,node:INTEGER = none: The node of each rank, nodes numbered from 0, for the mapping file.
-- param collectives choice none|rooted|logical|tree = none: How collectives count. none: not at all. rooted: as fan-ins and
--     fan-outs between the root (rank 0 of the communicator where there is none) and every other rank. logical: allgathers
--     and alltoalls between the pairs that exchange data, the rest as rooted. tree: along binomial trees.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- column place VARCHAR -: self (a rank to itself), intra-node or inter-node.
-- column hops BIGINT 1: Hops of the network; 0 within a node.
-- column pairs BIGINT 1: Pairs of a source and a destination so far apart that have messages.
-- column messages BIGINT 1: Their messages.
-- column bytes BIGINT bytes: Payload of those.
-- column messages_share DOUBLE share: Part of all messages.
-- column bytes_share DOUBLE share: Part of all bytes; null where there are none.
-- column hop_bytes BIGINT bytes: hops times bytes: what the links carry. Its sum is what a mapping is judged by.
-- order: hops, place DESC
-- cost: The table channels; with collectives collective_calls and collective_parts; of messages three columns with --where.
-- example: --mapping block --ranks-per-node 4 --topology torus --dims 2x2
-- title: How far messages travel
-- plot: bars hops bytes place
-- label hops: hops between nodes
-- label bytes: sent data
WITH {{include traffic}},
moved AS (
  SELECT src, dst, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM traffic
  GROUP BY src, dst
),
mapped AS (
  SELECT rank, MIN(node) AS node, MAX(node) AS last_node
  FROM {{rankmap}} f
  GROUP BY rank
),
placed AS (
  SELECT r.rank,
         CASE {{mapping}}
           WHEN 'hosts' THEN r.host
           WHEN 'block' THEN CAST((r.rank - r.rank % {{ranks-per-node}}) / {{ranks-per-node}} AS INTEGER)
           WHEN 'cyclic' THEN CAST(r.rank % CEIL(CAST(n.ranks AS DOUBLE) / {{ranks-per-node}}) AS INTEGER)
           ELSE CASE WHEN f.node IS NULL OR f.node < 0 OR f.node <> f.last_node
                     THEN CAST('refused: rankmap needs one node, from 0, for rank ' || CAST(r.rank AS VARCHAR) AS INTEGER)
                     ELSE f.node END END AS node
  FROM ranks r
  CROSS JOIN (SELECT COUNT(*) AS ranks FROM ranks) n
  LEFT JOIN mapped f ON f.rank = r.rank
),
sizes AS (
  SELECT CASE WHEN regexp_replace({{dims}}, '^(1|2|3|4|5|6|7|8|9)\d{0,5}(x(1|2|3|4|5|6|7|8|9)\d{0,5}){0,5}$', '') = '' THEN {{dims}} ELSE '' END AS dims
),
extents AS (
  SELECT CAST(NULLIF(split_part(dims, 'x', 1), '') AS BIGINT) AS d1, CAST(NULLIF(split_part(dims, 'x', 2), '') AS BIGINT) AS d2,
         CAST(NULLIF(split_part(dims, 'x', 3), '') AS BIGINT) AS d3, CAST(NULLIF(split_part(dims, 'x', 4), '') AS BIGINT) AS d4,
         CAST(NULLIF(split_part(dims, 'x', 5), '') AS BIGINT) AS d5, CAST(NULLIF(split_part(dims, 'x', 6), '') AS BIGINT) AS d6
  FROM sizes
),
axes AS (
  -- stride: the increase of a node's number per step along the axis.
  SELECT 1 AS axis, d1 AS size, COALESCE(d2, 1) * COALESCE(d3, 1) * COALESCE(d4, 1) * COALESCE(d5, 1) * COALESCE(d6, 1) AS stride FROM extents
  UNION ALL
  SELECT 2, d2, COALESCE(d3, 1) * COALESCE(d4, 1) * COALESCE(d5, 1) * COALESCE(d6, 1) FROM extents
  UNION ALL
  SELECT 3, d3, COALESCE(d4, 1) * COALESCE(d5, 1) * COALESCE(d6, 1) FROM extents
  UNION ALL
  SELECT 4, d4, COALESCE(d5, 1) * COALESCE(d6, 1) FROM extents
  UNION ALL
  SELECT 5, d5, COALESCE(d6, 1) FROM extents
  UNION ALL
  SELECT 6, d6, 1 FROM extents
),
between_nodes AS (
  SELECT CASE WHEN m.src = m.dst THEN 'self' WHEN s.node = d.node THEN 'intra-node' ELSE 'inter-node' END AS place,
         s.node AS src_node, d.node AS dst_node, COUNT(*) AS pairs, CAST(SUM(m.messages) AS BIGINT) AS messages, CAST(SUM(m.bytes) AS BIGINT) AS bytes
  FROM moved m
  JOIN placed s ON s.rank = m.src
  JOIN placed d ON d.rank = m.dst
  GROUP BY CASE WHEN m.src = m.dst THEN 'self' WHEN s.node = d.node THEN 'intra-node' ELSE 'inter-node' END, s.node, d.node
),
steps AS (
  -- from_step, to_step: how far the two nodes are along the axis and, in a tree, which branch they are on as counted over the
  -- whole level.
  SELECT b.place, b.src_node, b.dst_node, b.pairs, b.messages, b.bytes, a.axis, a.size,
         CAST((b.src_node - b.src_node % a.stride) / a.stride AS BIGINT) AS from_step,
         CAST((b.dst_node - b.dst_node % a.stride) / a.stride AS BIGINT) AS to_step
  FROM between_nodes b
  CROSS JOIN axes a
),
far AS (
  SELECT place, src_node, dst_node, pairs, messages, bytes,
         CAST(SUM(CASE WHEN {{topology}} = 'nodes' THEN CASE WHEN axis = 1 AND place = 'inter-node' THEN 1 ELSE 0 END
                       WHEN axis = 1 AND (size IS NULL OR GREATEST(from_step, to_step) >= size)
                       THEN CAST('refused: dims ''' || {{dims}} || ''': want extents as in 4x4x4, with room for node '
                                 || CAST(GREATEST(src_node, dst_node) AS VARCHAR) AS INTEGER)
                       WHEN size IS NULL THEN 0
                       WHEN {{topology}} = 'tree' THEN CASE WHEN from_step <> to_step THEN 2 ELSE 0 END
                       ELSE LEAST(ABS(from_step % size - to_step % size), size - ABS(from_step % size - to_step % size)) END) AS BIGINT) AS hops
  FROM steps
  GROUP BY place, src_node, dst_node, pairs, messages, bytes
),
totals AS (
  SELECT CAST(SUM(messages) AS DOUBLE) AS messages, CAST(SUM(bytes) AS DOUBLE) AS bytes
  FROM moved
)
SELECT f.place, f.hops, CAST(SUM(f.pairs) AS BIGINT) AS pairs, CAST(SUM(f.messages) AS BIGINT) AS messages, CAST(SUM(f.bytes) AS BIGINT) AS bytes,
       CAST(SUM(f.messages) AS DOUBLE) / NULLIF(t.messages, 0) AS messages_share, CAST(SUM(f.bytes) AS DOUBLE) / NULLIF(t.bytes, 0) AS bytes_share,
       CAST(f.hops * CAST(SUM(f.bytes) AS BIGINT) AS BIGINT) AS hop_bytes
FROM far f
CROSS JOIN totals t
GROUP BY f.place, f.hops, t.messages, t.bytes
ORDER BY f.hops, f.place DESC
