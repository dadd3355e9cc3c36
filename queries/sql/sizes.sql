-- summary: How many messages there are of each size, in thirteen buckets.
-- source: Riesen, Communication Patterns (2006), section 3.5 and Figure 14, whose sizes are elements
-- needs: messages, events, ranks
-- param unit choice bytes|elements = bytes: What a size is. bytes: payload. elements: elements of the send datatype, which is what
--     the paper's numbers for SP are.
-- param collectives choice none|calls = none: How collectives count. none: not at all. calls: each rank's call as a message of what
--     it sends, or receives where it sends nothing; its elements are the call's own count.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- column ranks INTEGER 1: Ranks of the run.
-- column bucket INTEGER -: Number of the bucket, from 1; 14 for messages whose elements are not known, where there are any.
-- column size VARCHAR -: Sizes in the bucket: at most so much (Ki 1024, Mi 1024 Ki) and more than in the one before.
-- column at_most BIGINT 1: Largest size in the bucket, in the unit asked for; null for the last.
-- column messages BIGINT 1: Messages of such a size.
-- column bytes BIGINT bytes: Payload of those messages.
-- order: bucket
-- cost: The tables channels and collective_calls; of messages one or two columns with --where.
-- example: --unit elements --collectives calls
-- title: Message sizes
-- plot: histogram size messages ranks
-- label ranks: number of ranks
-- label size: message size [{unit}]
-- label messages: messages
WITH buckets AS (
  SELECT bucket, size, at_most
  FROM (VALUES (1, '<= 16', CAST(16 AS BIGINT)), (2, '<= 64', 64), (3, '<= 256', 256), (4, '<= 1 Ki', 1024), (5, '<= 4 Ki', 4096),
               (6, '<= 16 Ki', 16384), (7, '<= 64 Ki', 65536), (8, '<= 256 Ki', 262144), (9, '<= 1 Mi', 1048576),
               (10, '<= 4 Mi', 4194304), (11, '<= 16 Mi', 16777216), (12, '<= 64 Mi', 67108864), (13, '> 64 Mi', NULL),
               (14, 'not known', NULL)) AS b (bucket, size, at_most)
),
population AS (
  SELECT CAST(COUNT(*) AS INTEGER) AS ranks
  FROM ranks
),
sized AS (
  -- The bounds of buckets are powers of two, so a row of sums is in one bucket.
  SELECT CASE WHEN {{unit}} = 'bytes' THEN max_bytes ELSE CAST(POWER(2, count_power) AS BIGINT) END AS size, messages, bytes
  FROM channels
  WHERE {{default where}}
  UNION ALL
  SELECT CASE WHEN {{unit}} = 'bytes' THEN bytes ELSE send_count END AS size, 1 AS messages, bytes
  FROM {{messages unless default where}}
  WHERE {{where}} AND NOT {{default where}}
  UNION ALL
  SELECT CAST(POWER(2, CASE WHEN {{unit}} = 'bytes' THEN bytes_power ELSE count_power END) AS BIGINT) AS size, calls AS messages,
         CASE WHEN send_bytes > 0 THEN send_bytes ELSE recv_bytes END AS bytes
  FROM {{collective_calls unless collectives none}}
  WHERE {{collectives}} = 'calls'
),
counted AS (
  SELECT CASE WHEN size <= 16 THEN 1 WHEN size <= 64 THEN 2 WHEN size <= 256 THEN 3 WHEN size <= 1024 THEN 4
              WHEN size <= 4096 THEN 5 WHEN size <= 16384 THEN 6 WHEN size <= 65536 THEN 7 WHEN size <= 262144 THEN 8
              WHEN size <= 1048576 THEN 9 WHEN size <= 4194304 THEN 10 WHEN size <= 16777216 THEN 11
              WHEN size <= 67108864 THEN 12 WHEN size IS NOT NULL THEN 13 ELSE 14 END AS bucket,
         CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM sized
  GROUP BY 1
)
SELECT p.ranks, b.bucket, b.size, b.at_most, CAST(COALESCE(c.messages, 0) AS BIGINT) AS messages, CAST(COALESCE(c.bytes, 0) AS BIGINT) AS bytes
FROM buckets b
CROSS JOIN population p
LEFT JOIN counted c ON c.bucket = b.bucket
WHERE EXISTS (SELECT 1 FROM counted) AND (b.bucket <= 13 OR c.messages > 0)
ORDER BY b.bucket
