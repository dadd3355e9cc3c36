-- sites(callsite, site, module, function, file, line, code_offset, callers): each call site and what the parameter by makes
-- it part of. site is the lowest id of those that are one. A path has at most eight callers here.
paths (id, up, depth, callers) AS (
  SELECT id, parent, 0, CAST('' AS VARCHAR)
  FROM callsites
  UNION ALL
  SELECT p.id, c.parent, p.depth + 1,
         p.callers || CASE WHEN p.depth = 0 THEN '' ELSE ' < ' END || COALESCE(c.function, c.module, '?')
  FROM paths p
  JOIN callsites c ON c.id = p.up
  WHERE {{by}} = 'path' AND p.depth < 8
),
shown AS (
  -- Without debug information the place in the module tells two call sites apart.
  SELECT id, module, function, CASE WHEN {{by}} <> 'function' THEN file END AS file, CASE WHEN {{by}} <> 'function' THEN line END AS line,
         CASE WHEN function IS NULL OR line IS NULL AND {{by}} <> 'function' THEN "offset" END AS code_offset
  FROM callsites
),
sites AS (
  SELECT s.id AS callsite,
         CASE WHEN {{by}} = 'path' THEN s.id
              ELSE MIN(s.id) OVER (PARTITION BY s.module, s.function, s.file, s.line, s.code_offset) END AS site,
         s.module, s.function, s.file, s.line, s.code_offset, p.callers
  FROM shown s
  LEFT JOIN (SELECT id, MAX(CASE WHEN up IS NULL OR depth = 8 THEN callers END) AS callers
             FROM paths
             WHERE {{by}} = 'path'
             GROUP BY id) p ON p.id = s.id
)
