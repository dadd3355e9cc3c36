-- The rows of the table collective_calls, of a run that lacks it.
WITH counted AS (
  SELECT rank, comm, call, init_seq, root_world, send_datatype, recv_datatype, sends, bytes_power, count_power,
         COUNT(*) AS calls, CAST(SUM(send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes
  FROM (SELECT rank, comm, call, init_seq, root_world, send_datatype, recv_datatype, sends, send_bytes, recv_bytes,
               CAST(CASE WHEN size <= 0 THEN -1 WHEN size = 1 THEN 0 ELSE LENGTH(TO_BASE(size - 1, 2)) END AS INTEGER) AS bytes_power,
               CAST(CASE WHEN elements <= 0 THEN -1 WHEN elements = 1 THEN 0 ELSE LENGTH(TO_BASE(elements - 1, 2)) END AS INTEGER) AS count_power
        FROM (SELECT rank, comm, call, CASE WHEN call IN ('MPI_Start', 'MPI_Startall') THEN init_seq END AS init_seq, root_world,
                     send_datatype, recv_datatype, CASE WHEN send_bytes > 0 THEN 1 ELSE 0 END AS sends,
                     CASE WHEN send_bytes > 0 THEN send_bytes ELSE COALESCE(recv_bytes, 0) END AS size,
                     COALESCE(send_count, recv_count, 0) AS elements, COALESCE(send_bytes, 0) AS send_bytes, COALESCE(recv_bytes, 0) AS recv_bytes
              FROM events
              WHERE class = 'collective' AND error_class IS NULL) AS e) AS s
  GROUP BY rank, comm, call, init_seq, root_world, send_datatype, recv_datatype, sends, bytes_power, count_power
),
started AS (
  SELECT DISTINCT rank, init_seq
  FROM counted
  WHERE init_seq IS NOT NULL
),
makers AS (
  -- One condition on both sides of the join: without starts the engine then stops at the first rows of events.
  SELECT i.rank, i.seq, i.call
  FROM started s
  JOIN events i ON i.rank = s.rank AND i.seq = s.init_seq
  WHERE CASE WHEN s.init_seq IS NOT NULL THEN i.class = 'other' AND i.instance IS NOT NULL ELSE FALSE END
),
named AS (
  SELECT c.rank, c.comm, COALESCE(m.call, c.call) AS call, c.root_world, c.send_datatype, c.recv_datatype, c.bytes_power, c.count_power, c.sends,
         CAST(SUM(c.calls) AS BIGINT) AS calls, CAST(SUM(c.send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(c.recv_bytes) AS BIGINT) AS recv_bytes
  FROM counted c
  LEFT JOIN makers m ON m.rank = c.rank AND m.seq = c.init_seq
  GROUP BY c.rank, c.comm, COALESCE(m.call, c.call), c.root_world, c.send_datatype, c.recv_datatype, c.bytes_power, c.count_power, c.sends
),
numbered AS (
  SELECT rank, ROW_NUMBER() OVER (PARTITION BY rank ORDER BY comm NULLS FIRST, call, root_world NULLS FIRST, send_datatype NULLS FIRST,
                                  recv_datatype NULLS FIRST, bytes_power, count_power, sends) - 1 AS nth,
         comm, call, root_world, send_datatype, recv_datatype, bytes_power, count_power, calls, send_bytes, recv_bytes
  FROM named
),
operated AS (
  SELECT comm, COUNT(*) AS operations
  FROM (SELECT DISTINCT comm, instance
        FROM events
        WHERE class = 'collective' AND error_class IS NULL AND comm IS NOT NULL) AS i
  GROUP BY comm
)
SELECT n.rank, n.nth, n.comm, n.call, n.root_world, n.send_datatype, n.recv_datatype, n.bytes_power, n.count_power, n.calls, n.send_bytes, n.recv_bytes,
       CASE WHEN ROW_NUMBER() OVER (PARTITION BY n.comm ORDER BY n.rank, n.nth) = 1 THEN COALESCE(o.operations, 0) ELSE 0 END AS operations
FROM numbered n
LEFT JOIN operated o ON o.comm = n.comm
