-- placed(rank, line): the rows of a timeline that has one for each group of ranks, and one for each rank of the unfolded group.
-- Needs timeline_window.
{{include rank_groups}},
lanes AS (
  SELECT g.rank, DENSE_RANK() OVER (ORDER BY g.place, CASE WHEN g.first_rank = {{unfold}} THEN g.rank ELSE 0 END) - 1 AS lane
  FROM rank_groups g
  JOIN span s ON g.rank BETWEEN s.from_rank AND s.to_rank
  WHERE {{by}} <> 'neighbours'
),
placed AS (
  SELECT l.rank, CAST(FLOOR(CAST(l.lane AS DOUBLE) / p.per_line) AS INTEGER) AS line
  FROM lanes l
  CROSS JOIN (SELECT CEIL(CAST(MAX(lane) + 1 AS DOUBLE) / {{rows}}) AS per_line FROM lanes) AS p
)
