-- operations(rank, seq, comm, root_world, call, send_bytes, recv_bytes): the rows of events that are a rank's part of a
-- collective operation, those of a started persistent one with the call that made its request. calls has their sums.
started AS (
  -- Started persistent collectives, each with the call that made its request, which says what it does.
  SELECT s.rank, s.seq, s.comm, s.root_world, i.call, s.send_bytes, s.recv_bytes
  FROM events s
  JOIN events i ON i.rank = s.rank AND i.seq = s.init_seq
  WHERE s.class = 'collective' AND s.call IN ('MPI_Start', 'MPI_Startall')
    AND i.class = 'other' AND i.instance IS NOT NULL
),
operations AS (
  SELECT rank, seq, comm, root_world, call, send_bytes, recv_bytes
  FROM events
  WHERE class = 'collective' AND call NOT IN ('MPI_Start', 'MPI_Startall')
  UNION ALL
  SELECT rank, seq, comm, root_world, call, send_bytes, recv_bytes
  FROM started
),
calls AS (
  -- Collective calls, summed per communicator, caller, root and function. Nonblocking, large-count and persistent forms are
  -- the operation they do: MPI_Ibcast, MPI_Bcast_c and a started MPI_Bcast_init are a bcast.
  SELECT comm, rank, root_world,
         regexp_replace(regexp_replace(regexp_replace(lower(call), '^mpix?_i?', ''), '_c$', ''), '_init$', '') AS op,
         CAST(COUNT(*) AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN send_bytes > 0 THEN 1 ELSE 0 END) AS BIGINT) AS sending_calls,
         CAST(SUM(COALESCE(send_bytes, 0)) AS BIGINT) AS send_bytes,
         CAST(SUM(COALESCE(recv_bytes, 0)) AS BIGINT) AS recv_bytes
  FROM operations
  WHERE comm IS NOT NULL
  GROUP BY comm, rank, root_world, call
)
