-- calls(comm, rank, root_world, op, calls, sending_calls, unsized_calls, send_bytes, recv_bytes): the collective calls of each rank,
-- summed per communicator, root and operation. Unsized calls have neither bytes nor datatypes. A started persistent
-- collective is the operation of the call that made its request.
calls AS (
  -- Nonblocking, large-count and persistent forms are the operation they do: MPI_Ibcast, MPI_Bcast_c and a started
  -- MPI_Bcast_init are a bcast. Starts of requests that no recorded call made are unknown operations.
  SELECT comm, rank, root_world,
         regexp_replace(regexp_replace(regexp_replace(lower(call), '^mpix?_i?', ''), '_c$', ''), '_init$', '') AS op,
         CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(CASE WHEN send_bytes > 0 THEN calls ELSE 0 END) AS BIGINT) AS sending_calls,
         CAST(SUM(CASE WHEN send_bytes + recv_bytes = 0 AND send_datatype IS NULL AND recv_datatype IS NULL THEN calls ELSE 0 END) AS BIGINT) AS unsized_calls,
         CAST(SUM(send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes
  FROM {{collective_calls unless collectives none}}
  WHERE comm IS NOT NULL AND call NOT IN ('MPI_Start', 'MPI_Startall')
  GROUP BY comm, rank, root_world, call
)
