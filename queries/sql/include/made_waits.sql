-- The rows of the table waits, of a run that lacks it: a pair of ranks may have several, one for each kind of sum.
WITH late_messages AS (
  SELECT src, dst, recv_done_seq, send_start_ns, recv_start_ns, recv_end_ns, recv_callsite
  FROM messages
  WHERE send_start_ns > recv_start_ns
),
{{include late_senders}},
posted_messages AS (
  SELECT src, dst, send_seq, send_start_ns, send_end_ns, recv_post_ns, send_callsite, bytes
  FROM messages
  WHERE recv_post_ns > send_start_ns
),
{{include late_receivers}}
SELECT src, dst, CAST(COUNT(*) AS BIGINT) AS messages, CAST(0 AS BIGINT) AS late_sends, CAST(0 AS BIGINT) AS late_send_ns, CAST(0 AS BIGINT) AS late_send_max_ns,
       CAST(0 AS BIGINT) AS late_receives, CAST(0 AS BIGINT) AS late_receive_ns, CAST(0 AS BIGINT) AS late_receive_max_ns
FROM messages
GROUP BY src, dst
UNION ALL
SELECT src, dst, CAST(0 AS BIGINT) AS messages, CAST(COUNT(*) AS BIGINT) AS late_sends, CAST(SUM(wait_ns) AS BIGINT) AS late_send_ns,
       MAX(wait_ns) AS late_send_max_ns, CAST(0 AS BIGINT) AS late_receives, CAST(0 AS BIGINT) AS late_receive_ns, CAST(0 AS BIGINT) AS late_receive_max_ns
FROM late_senders
WHERE wait_ns > 0
GROUP BY src, dst
UNION ALL
SELECT src, dst, CAST(0 AS BIGINT) AS messages, CAST(0 AS BIGINT) AS late_sends, CAST(0 AS BIGINT) AS late_send_ns, CAST(0 AS BIGINT) AS late_send_max_ns,
       CAST(COUNT(*) AS BIGINT) AS late_receives, CAST(SUM(wait_ns) AS BIGINT) AS late_receive_ns, MAX(wait_ns) AS late_receive_max_ns
FROM late_receivers
GROUP BY src, dst
