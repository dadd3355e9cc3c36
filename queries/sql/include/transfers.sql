-- transfers(src, dst, bytes, transfer_ns): the messages whose receiver was waiting for them when they were sent: the call that completed the
-- receive had begun, and completed no other message that was sent after it began. transfer_ns, from the start of the send to the end of
-- that call, is then the time that the message took. Of all others only a bound is known.
transfers AS (
  SELECT dst, MAX(src) AS src, MAX(bytes) AS bytes, MAX(recv_end_ns - send_start_ns) AS transfer_ns
  FROM messages
  WHERE recv_start_ns <= send_start_ns AND recv_end_ns IS NOT NULL
  GROUP BY dst, recv_done_seq
  HAVING COUNT(*) = 1 AND MAX(CASE WHEN {{where}} THEN 1 ELSE 0 END) = 1
)
