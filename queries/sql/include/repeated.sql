-- repeated(src, dst, callsite, bytes, blank, again, copied): the rows of the table repeats, of the messages that count. Of several rows that agree in the
-- columns from src to blank the sums count.
suspects AS (
  -- Only these payloads need a closer check, and one small group per payload finds them.
  SELECT src AS suspect_src, payload_hash AS suspect_hash
  FROM {{messages unless default where}}
  WHERE payload_hash IS NOT NULL AND bytes > 0 AND {{where}}
  GROUP BY src, payload_hash
  HAVING COUNT(*) > 1
),
sent AS (
  -- With bytes, send_count says the size of the datatype. The head distinguishes payloads if a 32-bit hash does not.
  SELECT src, dst, payload_hash, payload_head, bytes, send_count, send_callsite, COUNT(*) AS messages, MIN(send_seq) AS first_seq
  FROM {{messages unless default where}}
  JOIN suspects ON suspect_src = src AND suspect_hash = payload_hash
  WHERE bytes > 0 AND {{where}}
  GROUP BY src, dst, payload_hash, payload_head, bytes, send_count, send_callsite
),
way_firsts AS (
  SELECT src, dst, payload_hash, payload_head, bytes, send_count, MIN(first_seq) AS first_seq, NULLIF(MIN_BY(COALESCE(send_callsite, -1), first_seq), -1) AS callsite
  FROM sent
  GROUP BY src, dst, payload_hash, payload_head, bytes, send_count
),
firsts AS (
  SELECT src, payload_head, bytes, MIN_BY(dst, first_seq) AS dst, NULLIF(MIN_BY(COALESCE(callsite, -1), first_seq), -1) AS callsite
  FROM way_firsts
  GROUP BY src, payload_hash, payload_head, bytes, send_count
),
repeated AS (
  -- All, less the first of each way, of which all but the first from src are copies.
  SELECT src, dst, send_callsite AS callsite, bytes, CASE WHEN payload_head = 0 THEN 1 ELSE 0 END AS blank, messages AS again, 0 AS copied FROM sent
  UNION ALL
  SELECT src, dst, callsite, bytes, CASE WHEN payload_head = 0 THEN 1 ELSE 0 END AS blank, -1 AS again, 1 AS copied FROM way_firsts
  UNION ALL
  SELECT src, dst, callsite, bytes, CASE WHEN payload_head = 0 THEN 1 ELSE 0 END AS blank, 0 AS again, -1 AS copied FROM firsts
)
