-- transfer_rows(same_host, bytes, timed, step, messages, min_ns, max_ns): as in the table transfers, and that table itself where all messages count.
-- transfer_times(same_host, bytes, messages, median_ns, q25_ns, min_ns): the times that messages of each size took, within a host and between
-- hosts, the median and the lower quartile to within 1 %.
{{include transfers}},
transfer_rows AS (
  SELECT same_host, bytes, timed, step, messages, min_ns, max_ns
  FROM transfers
  WHERE {{default where}}
  UNION ALL
  SELECT same_host, bytes, timed, step, messages, min_ns, max_ns
  FROM message_transfers
  WHERE NOT {{default where}}
),
transfer_steps AS (
  SELECT same_host = 1 AS same_host, bytes, step, messages, min_ns, max_ns
  FROM transfer_rows
  WHERE timed = 1
),
transfer_counts AS (
  SELECT same_host, bytes, messages, min_ns, max_ns,
         CAST(SUM(messages) OVER (PARTITION BY same_host, bytes ORDER BY step) AS BIGINT) AS upto, CAST(SUM(messages) OVER (PARTITION BY same_host, bytes) AS BIGINT) AS timed
  FROM transfer_steps
),
transfer_times AS (
  SELECT same_host, bytes, CAST(SUM(messages) AS BIGINT) AS messages, CAST(MIN(CASE WHEN upto * 2 >= timed THEN max_ns END) AS DOUBLE) AS median_ns,
         CAST(MIN(CASE WHEN upto * 4 >= timed THEN max_ns END) AS DOUBLE) AS q25_ns, CAST(MIN(min_ns) AS DOUBLE) AS min_ns
  FROM transfer_counts
  GROUP BY same_host, bytes
)
