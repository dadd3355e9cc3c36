-- steps(bin): the numbers 0 to 9999, which is as many bins as a query may have.
digits AS (
  SELECT digit
  FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS d (digit)
),
steps AS (
  SELECT CAST(a.digit * 1000 + b.digit * 100 + c.digit * 10 + d.digit AS INTEGER) AS bin
  FROM digits a
  CROSS JOIN digits b
  CROSS JOIN digits c
  CROSS JOIN digits d
)
