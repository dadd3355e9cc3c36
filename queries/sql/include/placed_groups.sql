-- placed(rank, line): the rows of a timeline that has one for each group of ranks, and one for each rank of the unfolded group.
-- Needs timeline_window.
{{only by neighbours}}
valued AS (
  SELECT rank, CAST(0 AS BIGINT) AS value
  FROM ranks
  WHERE 1 = 0
),
{{end}}
{{include rank_groups}},
lanes AS (
  SELECT g.rank, s.from_rank,
         DENSE_RANK() OVER (ORDER BY g.place, CASE WHEN g.first_rank = {{unfold}} THEN g.rank ELSE 0 END) - 1 AS lane
  FROM rank_groups g
  JOIN span s ON g.rank BETWEEN s.from_rank AND s.to_rank
),
placed AS (
  -- All ranks are of one partition: with a second look at lanes Trino would plan all that it is made of again.
  SELECT rank,
         CAST(FLOOR(CAST(lane AS DOUBLE) / CEIL(CAST(MAX(lane) OVER (PARTITION BY from_rank) + 1 AS DOUBLE) / {{rows}})) AS INTEGER) AS line
  FROM lanes
)
