-- summary: How long messages take by their size, and the bandwidth they get: quantiles of those whose receiver was waiting.
-- source: what the latency and bandwidth tests of OSU and NetPIPE show, from the program's own messages, by the sizes of Riesen's Figure 14
-- needs: transfers, messages, ranks, times
-- origins: measured, virtual, simulated
-- param where condition messages = TRUE: Which messages count: a condition on the columns of messages.
-- column same_host BOOLEAN -: Whether sender and receiver ran on one host where the run was captured; virtual and simulated times know nodes of
--     their own.
-- column bucket INTEGER -: Number of the size, from 1.
-- column size VARCHAR -: The messages' sizes: up to so many bytes, and more than in the bucket before.
-- column at_most BIGINT bytes: The same as a number; null for the last.
-- column messages BIGINT 1: Messages of that size.
-- column timed BIGINT 1: Those whose time is known: when they were sent their receiver was waiting, and for no other that was sent as late. The
--     rest may have arrived long before anybody looked. Where the call also completes a send, it may end later because of that.
-- column mean_bytes BIGINT bytes: Mean size of the timed ones.
-- column min_ns BIGINT ns: The shortest time from the start of the send to the end of the call that completed the receive. Between hosts it can
--     be wrong, and even negative, by what commq query negative-latencies calls bound_ns.
-- column q25_ns BIGINT ns: A quarter of the timed ones takes no longer (this and the next three to within 1 %).
-- column q50_ns BIGINT ns: Half of them: the median.
-- column q75_ns BIGINT ns: Three quarters of them.
-- column q99_ns BIGINT ns: 99 of 100.
-- column max_ns BIGINT ns: The longest time.
-- column bytes_per_s BIGINT bytes/s: Bandwidth: bytes that a message of mean size and median time moves in a second; null where that time is not positive.
-- column fitted_ns BIGINT ns: Time that a message of mean size takes by the line that commq query latency-fit puts through the medians of all sizes; null
--     where there is one size only.
-- order: same_host DESC, bucket
-- cost: The table transfers. With --where ten columns of messages, and a group for each message whose receiver waited.
-- title: Time of messages by size
-- plot: lines mean_bytes min_ns+q25_ns+q50_ns+q75_ns+q99_ns+fitted_ns same_host log-log
-- label mean_bytes: mean message size
-- label min_ns: shortest
-- label q25_ns: 25 % quantile
-- label q50_ns: median
-- label q75_ns: 75 % quantile
-- label q99_ns: 99 % quantile
-- label fitted_ns: fitted line
-- label y: time from send to receive
WITH {{include transfer_times}},
buckets AS (
  SELECT bucket, size, at_most
  FROM (VALUES (1, '<= 16', CAST(16 AS BIGINT)), (2, '<= 64', 64), (3, '<= 256', 256), (4, '<= 1 Ki', 1024), (5, '<= 4 Ki', 4096),
               (6, '<= 16 Ki', 16384), (7, '<= 64 Ki', 65536), (8, '<= 256 Ki', 262144), (9, '<= 1 Mi', 1048576),
               (10, '<= 4 Mi', 4194304), (11, '<= 16 Mi', 16777216), (12, '<= 64 Mi', 67108864), (13, '> 64 Mi', NULL)) AS b (bucket, size, at_most)
),
bucketed AS (
  SELECT same_host = 1 AS same_host, timed, step, messages, CAST(bytes AS DOUBLE) * CAST(messages AS DOUBLE) AS bytes, min_ns, max_ns,
         CASE WHEN bytes <= 16 THEN 1 WHEN bytes <= 64 THEN 2 WHEN bytes <= 256 THEN 3 WHEN bytes <= 1024 THEN 4
              WHEN bytes <= 4096 THEN 5 WHEN bytes <= 16384 THEN 6 WHEN bytes <= 65536 THEN 7 WHEN bytes <= 262144 THEN 8
              WHEN bytes <= 1048576 THEN 9 WHEN bytes <= 4194304 THEN 10 WHEN bytes <= 16777216 THEN 11
              WHEN bytes <= 67108864 THEN 12 ELSE 13 END AS bucket
  FROM transfer_rows
),
timed AS (
  SELECT same_host, bucket, step, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS DOUBLE) AS bytes, MIN(min_ns) AS min_ns, MAX(max_ns) AS max_ns
  FROM bucketed
  WHERE timed = 1
  GROUP BY same_host, bucket, step
),
steps AS (
  -- upto: the messages of this step and all before it.
  SELECT same_host, bucket, messages, bytes, min_ns, max_ns,
         CAST(SUM(messages) OVER (PARTITION BY same_host, bucket ORDER BY step) AS BIGINT) AS upto, CAST(SUM(messages) OVER (PARTITION BY same_host, bucket) AS BIGINT) AS timed
  FROM timed
),
quantiles AS (
  -- The q-quantile is the longest time of the first step with which a share of q is reached.
  SELECT same_host, bucket, CAST(SUM(messages) AS BIGINT) AS timed, CAST(SUM(bytes) AS DOUBLE) / CAST(SUM(messages) AS BIGINT) AS mean_bytes, MIN(min_ns) AS min_ns, MAX(max_ns) AS max_ns,
         MIN(CASE WHEN upto * 4 >= timed THEN max_ns END) AS q25_ns, MIN(CASE WHEN upto * 2 >= timed THEN max_ns END) AS q50_ns,
         MIN(CASE WHEN upto * 4 >= timed * 3 THEN max_ns END) AS q75_ns, MIN(CASE WHEN upto * 100 >= timed * 99 THEN max_ns END) AS q99_ns
  FROM steps
  GROUP BY same_host, bucket
),
fits AS (
  SELECT same_host, REGR_INTERCEPT(median_ns, CAST(bytes AS DOUBLE)) AS latency_ns, REGR_SLOPE(median_ns, CAST(bytes AS DOUBLE)) AS ns_per_byte
  FROM transfer_times
  GROUP BY same_host
  HAVING COUNT(*) > 1
),
sizes AS (
  SELECT same_host, bucket, CAST(SUM(messages) AS BIGINT) AS messages
  FROM bucketed
  WHERE timed = 0
  GROUP BY same_host, bucket
)
SELECT s.same_host, b.bucket, b.size, b.at_most, CAST(s.messages AS BIGINT) AS messages, CAST(COALESCE(q.timed, 0) AS BIGINT) AS timed,
       CAST(ROUND(q.mean_bytes) AS BIGINT) AS mean_bytes, q.min_ns, q.q25_ns, q.q50_ns, q.q75_ns, q.q99_ns, q.max_ns,
       CASE WHEN q.q50_ns > 0 THEN CAST(ROUND(q.mean_bytes * 1e9 / CAST(q.q50_ns AS DOUBLE)) AS BIGINT) END AS bytes_per_s,
       CAST(ROUND(f.latency_ns + f.ns_per_byte * q.mean_bytes) AS BIGINT) AS fitted_ns
FROM sizes s
JOIN buckets b ON b.bucket = s.bucket
LEFT JOIN quantiles q ON q.same_host = s.same_host AND q.bucket = s.bucket
LEFT JOIN fits f ON f.same_host = s.same_host
ORDER BY s.same_host DESC, b.bucket
