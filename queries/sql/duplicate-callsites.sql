-- summary: Where in the source payloads are sent that their rank had sent before, most bytes first.
-- source: duplicates, by call site: what to look at to send less
-- needs: repeats, messages, hashes, callsites
-- param by choice line|path|function = line: What is one call site. line: a line of the source (or, without debug
--     information, a place in a module). path: a line and its callers, as far as --stack kept them. function: a function.
-- param min-bytes integer 1..1000000000000 = 1: Leave out payloads of fewer bytes: flags and counters are equal by chance. Empty
--     messages never count.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- column callsite INTEGER -: Id in callsites of the send; of several that are one here, the lowest.
-- column function VARCHAR -: Function that calls; null where it is not known.
-- column file VARCHAR -: Source file; null where there is no debug information, and by function.
-- column line INTEGER -: Source line; null where file is.
-- column module VARCHAR -: Executable or shared library.
-- column code_offset BIGINT -: Place in the module, of a call site that no line (by function: no function) tells apart.
-- column callers VARCHAR -: By path, the functions that called it, nearest first, at most eight.
-- column sources BIGINT 1: World ranks that send duplicates there.
-- column duplicate_messages BIGINT 1: Messages with a payload that their source had sent before, there or elsewhere.
-- column duplicate_bytes BIGINT bytes: Payload of those.
-- column again_bytes BIGINT bytes: Duplicate bytes that had gone to the same rank before.
-- column copied_bytes BIGINT bytes: Duplicate bytes that had gone to other ranks only.
-- column blank_bytes BIGINT bytes: Duplicate bytes in payloads that begin with eight zero bytes (shorter ones: are zero).
-- order: duplicate_bytes DESC, callsite
-- cost: The table repeats. With --where, and in runs without that table, two columns of messages and seven more of those with a payload that comes
--     twice; memory then grows with the different payloads (about 60 bytes each) and spills.
-- title: Data sent more than once, by call site
-- plot: bars callsite duplicate_bytes
-- label callsite: call site
-- label duplicate_bytes: data sent before
WITH {{include sites}},
{{include duplicated}},
counted AS (
  SELECT src, callsite, CAST(SUM(again + copied) AS BIGINT) AS messages, CAST(SUM(again * bytes) AS BIGINT) AS again_bytes, CAST(SUM(copied * bytes) AS BIGINT) AS copied_bytes,
         CAST(SUM(CASE WHEN blank = 1 THEN (again + copied) * bytes ELSE 0 END) AS BIGINT) AS blank_bytes
  FROM duplicated
  GROUP BY src, callsite
  HAVING CAST(SUM(again + copied) AS BIGINT) > 0
)
SELECT s.site AS callsite, s.function, s.file, s.line, s.module, s.code_offset, s.callers, CAST(COUNT(DISTINCT c.src) AS BIGINT) AS sources,
       CAST(SUM(c.messages) AS BIGINT) AS duplicate_messages, CAST(SUM(c.again_bytes + c.copied_bytes) AS BIGINT) AS duplicate_bytes,
       CAST(SUM(c.again_bytes) AS BIGINT) AS again_bytes, CAST(SUM(c.copied_bytes) AS BIGINT) AS copied_bytes,
       CAST(SUM(c.blank_bytes) AS BIGINT) AS blank_bytes
FROM counted c
LEFT JOIN sites s ON s.callsite = c.callsite
GROUP BY s.site, s.function, s.file, s.line, s.module, s.code_offset, s.callers
ORDER BY duplicate_bytes DESC, callsite
