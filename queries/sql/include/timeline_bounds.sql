-- ends and bounds: when the run ends, and the time and ranks that a timeline is asked for.
ends AS (
  SELECT MAX(at_ns) AS last_ns, MAX(rank) AS last_rank
  FROM (SELECT MAX(last_ns) AS at_ns, MAX(rank) AS rank FROM profile
        UNION ALL
        SELECT NULLIF(end_ns, 0) AS at_ns, NULL AS rank FROM runs) AS e
),
bounds AS (
  SELECT CAST(ROUND(CAST({{from-s}} AS DOUBLE) * 1e9) AS BIGINT) AS from_ns,
         CASE WHEN {{to-s}} > 0 THEN LEAST(CAST(ROUND(CAST({{to-s}} AS DOUBLE) * 1e9) AS BIGINT), last_ns) ELSE last_ns END AS to_ns,
         {{from-rank}} AS from_rank, CASE WHEN {{to-rank}} < 0 THEN last_rank ELSE LEAST({{to-rank}}, last_rank) END AS to_rank
  FROM ends
)
