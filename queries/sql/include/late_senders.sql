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
  SELECT dst, recv_done_seq, MAX(send_start_ns - recv_start_ns) AS late_ns, MAX(recv_end_ns - recv_start_ns) AS call_ns,
         MAX(recv_callsite) AS callsite, MAX(recv_start_ns) AS start_ns,
         MAX(LEAST(send_start_ns - recv_start_ns, 8000000000000) * (SELECT ranks FROM senders) + (SELECT ranks FROM senders) - 1 - src) AS last_src
  FROM late_messages
  GROUP BY dst, recv_done_seq
),
late_senders AS (
  SELECT CAST((SELECT ranks FROM senders) - 1 - last_src % (SELECT ranks FROM senders) AS INTEGER) AS src, dst, callsite, start_ns,
         LEAST(late_ns, COALESCE(call_ns, late_ns)) AS wait_ns
  FROM late_calls
)
