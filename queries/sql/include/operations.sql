-- calls(comm, rank, root_world, op, calls, sending_calls, send_bytes, recv_bytes): the collective calls of each rank, summed per
-- communicator, root and operation. A started persistent collective is the operation of the call that made its request.
counted_calls AS (
  -- Collective rows of events are read once and only their sums kept, because reading takes most of the time.
  SELECT comm, rank, root_world, call, CAST(COUNT(*) AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN send_bytes > 0 THEN 1 ELSE 0 END) AS BIGINT) AS sending_calls,
         CAST(SUM(COALESCE(send_bytes, 0)) AS BIGINT) AS send_bytes,
         CAST(SUM(COALESCE(recv_bytes, 0)) AS BIGINT) AS recv_bytes
  FROM {{events unless collectives none}}
  WHERE class = 'collective' AND comm IS NOT NULL
  GROUP BY comm, rank, root_world, call
),
starting AS (
  SELECT rank, CAST(SUM(CASE WHEN call IN ('MPI_Start', 'MPI_Startall') THEN calls ELSE 0 END) AS BIGINT) AS starts
  FROM counted_calls
  GROUP BY rank
),
starts AS (
  -- Starts of persistent collectives: what they do, the call that made the request says. No rank made any, mostly, and then the engine
  -- stops at the first rows of events: if the condition on the call stood alone, it would look at all of them for one that holds.
  SELECT s.rank, s.seq, i.call, s.comm, s.root_world, s.send_bytes, s.recv_bytes
  FROM {{events unless collectives none}} s
  JOIN starting r ON r.rank = s.rank AND r.starts > 0
  JOIN {{events unless collectives none}} i ON i.rank = s.rank AND i.seq = s.init_seq
  WHERE s.class = 'collective' AND i.class = 'other'
    AND CASE WHEN r.starts > 0 THEN s.call IN ('MPI_Start', 'MPI_Startall') AND i.instance IS NOT NULL ELSE FALSE END
),
calls AS (
  -- Nonblocking, large-count and persistent forms are the operation they do: MPI_Ibcast, MPI_Bcast_c and a started
  -- MPI_Bcast_init are a bcast.
  SELECT comm, rank, root_world,
         regexp_replace(regexp_replace(regexp_replace(lower(call), '^mpix?_i?', ''), '_c$', ''), '_init$', '') AS op,
         calls, sending_calls, send_bytes, recv_bytes
  FROM counted_calls
  WHERE call NOT IN ('MPI_Start', 'MPI_Startall')
  UNION ALL
  SELECT comm, rank, root_world,
         regexp_replace(regexp_replace(regexp_replace(lower(call), '^mpix?_i?', ''), '_c$', ''), '_init$', '') AS op,
         CAST(COUNT(*) AS BIGINT) AS calls, CAST(SUM(CASE WHEN send_bytes > 0 THEN 1 ELSE 0 END) AS BIGINT) AS sending_calls,
         CAST(SUM(COALESCE(send_bytes, 0)) AS BIGINT) AS send_bytes, CAST(SUM(COALESCE(recv_bytes, 0)) AS BIGINT) AS recv_bytes
  FROM starts
  WHERE comm IS NOT NULL
  GROUP BY comm, rank, root_world, call
)
