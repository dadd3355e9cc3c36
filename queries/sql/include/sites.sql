-- sites(callsite, site, module, function, file, line, code_offset, callers): each call site and what the parameter by makes
-- it part of. site is the lowest id of those that are one. A path has at most eight callers here.
frames AS (
  SELECT id, parent, COALESCE(function, module, '?') AS name
  FROM callsites
  WHERE {{by}} = 'path'
),
paths AS (
  SELECT c0.id,
         COALESCE(c1.name, '') || COALESCE(' < ' || c2.name, '') || COALESCE(' < ' || c3.name, '') || COALESCE(' < ' || c4.name, '')
         || COALESCE(' < ' || c5.name, '') || COALESCE(' < ' || c6.name, '') || COALESCE(' < ' || c7.name, '') || COALESCE(' < ' || c8.name, '') AS callers
  FROM frames c0
  LEFT JOIN frames c1 ON c1.id = c0.parent
  LEFT JOIN frames c2 ON c2.id = c1.parent
  LEFT JOIN frames c3 ON c3.id = c2.parent
  LEFT JOIN frames c4 ON c4.id = c3.parent
  LEFT JOIN frames c5 ON c5.id = c4.parent
  LEFT JOIN frames c6 ON c6.id = c5.parent
  LEFT JOIN frames c7 ON c7.id = c6.parent
  LEFT JOIN frames c8 ON c8.id = c7.parent
),
shown AS (
  -- Without debug information the offset in the module distinguishes call sites.
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
  LEFT JOIN paths p ON p.id = s.id
)
