-- question: Are there many small messages that could be one?
-- source: aggregation of messages: a message costs a latency whatever its size (Culler et al., LogP, PPoPP 1993)
-- needs: messages, profile, transfers, times
-- origins: measured, virtual, simulated
-- gain: messages
-- advice: Put this data into one message: collect it in a buffer, or describe it with a derived datatype.
-- column messages BIGINT 1: Messages that these ranks send at the call site.
-- column groups BIGINT 1: Messages that would do: those of a group go from the same rank to the same other one, follow each other at once (in
--     less than a latency) and the sender receives nothing in between.
-- column mean_bytes DOUBLE bytes: Size of the messages, on average.
-- column latency_ns BIGINT ns: Time of a small message: a quarter of those whose receiver was waiting took no longer.
-- order: cost_ns DESC, callsite
-- cost: Ten columns of the messages of call sites where a rank sends at least 16 and mostly small ones, and one of all.
WITH steps AS (
  SELECT step, SUM(messages) AS messages
  FROM transfers
  WHERE timed = 1 AND bytes <= 4096 AND min_ns > 0
  GROUP BY step
),
upto AS (
  SELECT step, SUM(messages) OVER (ORDER BY step) AS messages FROM steps
),
latency AS (
  SELECT EXP((MIN(step) + 1) / 128.0) AS ns FROM upto WHERE CAST(messages AS DOUBLE) / (SELECT SUM(messages) FROM steps) >= 0.25
),
busy AS (
  SELECT rank, COALESCE(callsite, -1) AS callsite
  FROM profile
  WHERE sends > 0
  GROUP BY rank, COALESCE(callsite, -1)
  HAVING SUM(sends) >= 16 AND SUM(send_bytes) <= 4096 * SUM(sends)
),
sent AS (
  SELECT m.src, m.dst, b.callsite, m.bytes, m.send_seq, m.send_end_ns - m.send_start_ns AS send_ns, m.recv_end_ns - m.recv_start_ns AS recv_ns,
         m.send_start_ns - LAG(m.send_end_ns) OVER follow AS gap_ns,
         LAG(m.send_seq) OVER follow AS before_seq, GREATEST(m.bytes, LAG(m.bytes) OVER follow) <= 4096 AS small
  FROM messages m
  JOIN busy b ON b.rank = m.src AND b.callsite = COALESCE(m.send_callsite, -1)
  WINDOW follow AS (PARTITION BY m.src, m.dst, b.callsite ORDER BY m.send_seq)
),
followed AS (
  SELECT s.src, s.dst, s.callsite, s.bytes, s.send_seq, s.send_ns, s.recv_ns, COALESCE(s.small AND s.gap_ns <= l.ns, FALSE) AS close, s.before_seq
  FROM sent s
  CROSS JOIN latency l
),
received AS (
  SELECT dst AS rank, recv_done_seq AS seq
  FROM messages
  WHERE recv_done_seq IS NOT NULL AND dst IN (SELECT src FROM followed WHERE close AND send_seq > before_seq + 1)
),
grouped AS (
  SELECT f.src, f.dst, f.callsite, f.bytes, f.send_ns, f.recv_ns, f.close AND (r.seq IS NULL OR r.seq < f.before_seq) AS joins
  FROM followed f
  ASOF LEFT JOIN received r ON r.rank = f.src AND r.seq < f.send_seq
),
by_rank AS (
  SELECT src, callsite, COUNT(*) AS messages, COUNT(*) FILTER (WHERE NOT joins) AS groups, SUM(bytes) AS bytes,
         COALESCE(SUM(send_ns) FILTER (WHERE joins), 0) AS send_ns
  FROM grouped
  GROUP BY src, callsite
  HAVING COUNT(*) >= 4 * COUNT(*) FILTER (WHERE NOT joins)
),
by_receiver AS (
  SELECT dst, callsite, SUM(recv_ns) AS ns
  FROM grouped
  WHERE joins
  GROUP BY dst, callsite
),
in_receives AS (
  SELECT callsite, MAX(ns) AS ns
  FROM by_receiver
  GROUP BY callsite
),
calls AS (
  SELECT COALESCE(callsite, -1) AS callsite, MIN(call) AS call FROM profile WHERE sends > 0 GROUP BY COALESCE(callsite, -1)
)
SELECT NULLIF(b.callsite, -1) AS callsite, MIN(c.call) AS call,
       CASE WHEN COUNT(*) < (SELECT COUNT(*) FROM ranks) THEN string_agg(b.src, ',' ORDER BY b.src) ELSE '' END AS ranks,
       -- A latency for each message too many, but no more than the time in the calls of a sender and a receiver.
       CAST(LEAST(MAX(b.messages - b.groups) * MIN(l.ns), MAX(b.send_ns) + COALESCE(MIN(t.ns), 0)) AS BIGINT) AS cost_ns,
       format('{:,} messages of {:,} bytes on average follow each other at once: {:,} would do',
              CAST(SUM(b.messages) AS BIGINT), CAST(SUM(b.bytes) / SUM(b.messages) AS BIGINT), CAST(SUM(b.groups) AS BIGINT)) AS found,
       CAST(SUM(b.groups) AS DOUBLE) / SUM(b.messages) AS latency, CAST(1 AS DOUBLE) AS bytes,
       CAST(SUM(b.messages) AS BIGINT) AS messages, CAST(SUM(b.groups) AS BIGINT) AS groups,
       CAST(SUM(b.bytes) AS DOUBLE) / SUM(b.messages) AS mean_bytes, CAST(MIN(l.ns) AS BIGINT) AS latency_ns
FROM by_rank b
JOIN calls c ON c.callsite = b.callsite
LEFT JOIN in_receives t ON t.callsite = b.callsite
CROSS JOIN latency l
GROUP BY b.callsite
ORDER BY cost_ns DESC, callsite
