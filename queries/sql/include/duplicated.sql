-- duplicated(src, dst, callsite, bytes, blank, again, copied): messages of a payload that src sends more than once, from a call
-- site to dst. Summed over rows, again are those whose payload had gone the same way before, and copied are the first of it
-- to dst where it had gone to other ranks before. The table repeats, where all messages count.
{{include repeated}},
duplicated AS (
  SELECT src, dst, callsite, bytes, blank, again, copied
  FROM repeats
  WHERE {{default where}} AND bytes >= {{min-bytes}}
  UNION ALL
  SELECT src, dst, callsite, bytes, blank, again, copied
  FROM repeated
  WHERE NOT {{default where}} AND bytes >= {{min-bytes}}
)
