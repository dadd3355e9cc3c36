-- late_senders(src, dst, callsite, start_ns, wait_ns): a row for each call that completed receives (MPI_Recv, MPI_Wait, MPI_Waitall, ...) and was
-- entered before a message that it completed was sent. The call waits for the message that is sent last: src sent that one, and
-- wait_ns is the time from the call's start to that send's, or to the call's end where clocks disagree. Of messages sent at
-- the same ns the one of the lowest rank counts. late_messages, which stands before this, has the columns of messages of those
-- that were sent after recv_start_ns, all of each call that is looked at.
senders AS (
  SELECT CAST(MAX(src) + 1 AS BIGINT) AS ranks
  FROM messages
),
late_calls AS (
  -- last_src: wait and sender in one number, the sender counted down from ranks, which is faster than sorting. Rows of one call
  -- have the same start and end.
  SELECT m.dst, m.recv_done_seq, s.ranks, MAX(m.send_start_ns - m.recv_start_ns) AS late_ns, MAX(m.recv_end_ns - m.recv_start_ns) AS call_ns,
         MAX(m.recv_callsite) AS callsite, MAX(m.recv_start_ns) AS start_ns,
         MAX(LEAST(m.send_start_ns - m.recv_start_ns, 8000000000000) * s.ranks + s.ranks - 1 - m.src) AS last_src
  FROM late_messages m
  CROSS JOIN senders s
  GROUP BY m.dst, m.recv_done_seq, s.ranks
),
late_senders AS (
  SELECT CAST(ranks - 1 - last_src % ranks AS INTEGER) AS src, dst, callsite, start_ns, LEAST(late_ns, COALESCE(call_ns, late_ns)) AS wait_ns
  FROM late_calls
)
