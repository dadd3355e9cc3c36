-- transfer_times(same_host, bytes, messages, median_ns, q25_ns, min_ns): the times that messages of each size took, within a host and between
-- hosts, the median and the lower quartile to within 1 %.
{{include transfers}},
transfer_steps AS (
  -- Times are counted in steps of 1/128 of a natural logarithm, so that their medians need no sorting of all messages.
  SELECT s.host = d.host AS same_host, t.bytes, CASE WHEN t.transfer_ns <= 0 THEN -1 ELSE CAST(FLOOR(LN(CAST(t.transfer_ns AS DOUBLE)) * 128) AS INTEGER) END AS step,
         COUNT(*) AS messages, MIN(t.transfer_ns) AS min_ns, MAX(t.transfer_ns) AS max_ns
  FROM transfers t
  JOIN ranks s ON s.rank = t.src
  JOIN ranks d ON d.rank = t.dst
  GROUP BY 1, 2, 3
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
