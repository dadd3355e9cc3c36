-- calls(comm, rank, root_world, op, calls, sending_calls, send_bytes, recv_bytes): the collective calls of each rank, summed per
-- communicator, root and operation. A started persistent collective is the operation of the call that made its request.
counted_calls AS (
  -- The collective rows of events are read once, and only sums of them kept: reading is what takes the time.
  SELECT comm, rank, root_world, call, CASE WHEN call IN ('MPI_Start', 'MPI_Startall') THEN init_seq END AS init_seq,
         CAST(COUNT(*) AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN send_bytes > 0 THEN 1 ELSE 0 END) AS BIGINT) AS sending_calls,
         CAST(SUM(COALESCE(send_bytes, 0)) AS BIGINT) AS send_bytes,
         CAST(SUM(COALESCE(recv_bytes, 0)) AS BIGINT) AS recv_bytes
  FROM events
  WHERE class = 'collective' AND comm IS NOT NULL
  GROUP BY 1, 2, 3, 4, 5
),
started_calls AS (
  -- What a start does, the call that made its request says.
  SELECT c.comm, c.rank, c.root_world, i.call, c.calls, c.sending_calls, c.send_bytes, c.recv_bytes
  FROM counted_calls c
  JOIN events i ON i.rank = c.rank AND i.seq = c.init_seq
  WHERE c.init_seq IS NOT NULL AND i.class = 'other' AND i.instance IS NOT NULL
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
         calls, sending_calls, send_bytes, recv_bytes
  FROM started_calls
)
