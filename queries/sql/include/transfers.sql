-- message_transfers(same_host, bytes, timed, step, messages, min_ns, max_ns): the rows of the table transfers, of the messages that count. A message is timed
-- when its receiver was waiting for it when it was sent: the call that completed the receive had begun, and completed no other message that
-- was sent after it began. Its time, from the start of the send to the end of that call, is then the time that it took. Of all others
-- only a bound is known.
transfer_calls AS (
  SELECT dst, MAX(src) AS src, MAX(bytes) AS bytes, MAX(recv_end_ns - send_start_ns) AS transfer_ns
  FROM {{messages unless default where}}
  WHERE recv_start_ns <= send_start_ns AND recv_end_ns IS NOT NULL
  GROUP BY dst, recv_done_seq
  HAVING COUNT(*) = 1 AND MAX(CASE WHEN {{where}} THEN 1 ELSE 0 END) = 1
),
message_sizes AS (
  SELECT src, dst, bytes, COUNT(*) AS messages
  FROM {{messages unless default where}}
  WHERE {{where}}
  GROUP BY src, dst, bytes
),
message_transfers AS (
  -- Times are counted in steps of 1/128 of a natural logarithm, so that their medians need no sorting of all messages.
  SELECT CAST(CASE WHEN s.host = d.host THEN 1 ELSE 0 END AS INTEGER) AS same_host, t.bytes, CAST(1 AS INTEGER) AS timed,
         CASE WHEN t.transfer_ns <= 0 THEN -1 ELSE CAST(FLOOR(LN(CAST(t.transfer_ns AS DOUBLE)) * 128) AS INTEGER) END AS step,
         CAST(COUNT(*) AS BIGINT) AS messages, MIN(t.transfer_ns) AS min_ns, MAX(t.transfer_ns) AS max_ns
  FROM transfer_calls t
  JOIN ranks s ON s.rank = t.src
  JOIN ranks d ON d.rank = t.dst
  GROUP BY 1, 2, 4
  UNION ALL
  SELECT CAST(CASE WHEN s.host = d.host THEN 1 ELSE 0 END AS INTEGER) AS same_host, m.bytes, CAST(0 AS INTEGER) AS timed, CAST(0 AS INTEGER) AS step,
         CAST(SUM(m.messages) AS BIGINT) AS messages, CAST(NULL AS BIGINT) AS min_ns, CAST(NULL AS BIGINT) AS max_ns
  FROM message_sizes m
  JOIN ranks s ON s.rank = m.src
  JOIN ranks d ON d.rank = m.dst
  GROUP BY 1, 2
)
