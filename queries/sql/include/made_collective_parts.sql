-- The rows of the table collective_parts, of a run that lacks it.
WITH named AS (
  SELECT p.rank, p.peer_world, COALESCE(i.call, o.call) AS call, p.send_bytes
  FROM parts p
  JOIN events o ON o.rank = p.rank AND o.seq = p.seq
  LEFT JOIN events i ON i.rank = o.rank AND i.seq = CASE WHEN o.call IN ('MPI_Start', 'MPI_Startall') THEN o.init_seq END
       AND i.class = 'other' AND i.instance IS NOT NULL
  WHERE o.class = 'collective' AND o.error_class IS NULL AND p.send_bytes > 0
)
SELECT rank, ROW_NUMBER() OVER (PARTITION BY rank ORDER BY peer_world, call) - 1 AS nth, peer_world, call,
       COUNT(*) AS messages, CAST(SUM(send_bytes) AS BIGINT) AS bytes
FROM named
GROUP BY rank, peer_world, call
