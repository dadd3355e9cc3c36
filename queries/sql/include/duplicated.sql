-- duplicated(src, dst, callsite, again, copied, bytes_each, blank): payloads that their source sends more than once, by where they are
-- sent to and from. again: messages whose payload went the same way before. copied: 1 for the first that went to dst when
-- the payload had gone to another rank before, else 0.
suspects AS (
  -- Only these need a closer look, and this finds them with one small group per payload.
  SELECT src AS suspect_src, payload_hash AS suspect_hash
  FROM messages
  WHERE payload_hash IS NOT NULL AND bytes >= {{min-bytes}} AND {{where}}
  GROUP BY src, payload_hash
  HAVING COUNT(*) > 1
),
sent AS (
  -- With bytes, send_count says the size of the datatype. The head tells payloads apart where a hash of 32 bits does not.
  SELECT src, dst, payload_hash, payload_head, bytes, send_count, send_callsite, COUNT(*) AS messages, MIN(send_seq) AS first_seq
  FROM messages
  JOIN suspects ON suspect_src = src AND suspect_hash = payload_hash
  WHERE bytes >= {{min-bytes}} AND {{where}}
  GROUP BY src, dst, payload_hash, payload_head, bytes, send_count, send_callsite
),
ordered AS (
  SELECT src, dst, payload_head, bytes, send_callsite, messages, first_seq,
         MIN(first_seq) OVER (PARTITION BY src, payload_hash, payload_head, bytes, send_count, dst) AS first_to_dst,
         MIN(first_seq) OVER (PARTITION BY src, payload_hash, payload_head, bytes, send_count) AS first_of_all
  FROM sent
),
duplicated AS (
  SELECT src, dst, send_callsite AS callsite, messages - CASE WHEN first_seq = first_to_dst THEN 1 ELSE 0 END AS again,
         CASE WHEN first_seq = first_to_dst AND first_to_dst > first_of_all THEN 1 ELSE 0 END AS copied,
         bytes AS bytes_each, CASE WHEN payload_head = 0 THEN 1 ELSE 0 END AS blank
  FROM ordered
)
