-- The rows of the table channels, of a run that lacks it.
SELECT src, ROW_NUMBER() OVER (PARTITION BY src ORDER BY dst, comm, tag, datatype NULLS FIRST, bytes_power, count_power NULLS FIRST) - 1 AS nth,
       dst, comm, tag, datatype, bytes_power, count_power, CAST(COUNT(*) AS BIGINT) AS messages,
       CAST(SUM(bytes) AS BIGINT) AS bytes, MIN(bytes) AS min_bytes, MAX(bytes) AS max_bytes, CAST(SUM(send_count) AS BIGINT) AS count
FROM (SELECT src, dst, comm, tag, send_datatype AS datatype, bytes, send_count,
             CAST(CASE WHEN bytes <= 0 THEN -1 WHEN bytes = 1 THEN 0 ELSE LENGTH(TO_BASE(bytes - 1, 2)) END AS INTEGER) AS bytes_power,
             CAST(CASE WHEN send_count <= 0 THEN -1 WHEN send_count = 1 THEN 0 ELSE LENGTH(TO_BASE(send_count - 1, 2)) END AS INTEGER) AS count_power
      FROM messages) AS m
GROUP BY src, dst, comm, tag, datatype, bytes_power, count_power
