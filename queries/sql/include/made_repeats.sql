-- The rows of the table repeats, of a run that lacks it.
WITH {{include repeated}},
summed AS (
  SELECT src, dst, callsite, bytes, blank, CAST(SUM(again) AS BIGINT) AS again, CAST(SUM(copied) AS BIGINT) AS copied
  FROM repeated
  GROUP BY src, dst, callsite, bytes, blank
  HAVING SUM(again + copied) > 0
)
SELECT src, ROW_NUMBER() OVER (PARTITION BY src ORDER BY dst, callsite NULLS FIRST, bytes, blank) - 1 AS nth, dst, callsite, bytes,
       CAST(blank AS INTEGER) AS blank, again, copied
FROM summed
