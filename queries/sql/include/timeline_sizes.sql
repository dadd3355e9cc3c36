-- sizes(line, rank, ranks): the lowest rank of each row of a timeline, and how many ranks it has.
sizes AS (
  SELECT COALESCE(g.line, CAST(FLOOR(CAST(p.rank - s.from_rank AS DOUBLE) / s.per_row) AS INTEGER)) AS line, CAST(MIN(p.rank) AS INTEGER) AS rank,
         CAST(COUNT(*) AS INTEGER) AS ranks
  FROM (SELECT rank FROM profile GROUP BY rank) AS p
  JOIN span s ON p.rank BETWEEN s.from_rank AND s.to_rank
  LEFT JOIN placed g ON g.rank = p.rank
  GROUP BY 1
)
