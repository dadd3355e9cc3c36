-- summary: Receives and probes posted with MPI_ANY_SOURCE or MPI_ANY_TAG, by rank and place in the source, and what they met.
-- source: what makes a program's order of messages depend on time; debuggers and replay tools ask first for it
-- needs: profile, every-call
-- param by choice line|path|function = line: What is one call site. line: a line of the source (or, without debug
--     information, a place in a module). path: a line and its callers, as far as --stack kept them. function: a function.
-- column rank INTEGER -: World rank that posted them.
-- column call VARCHAR -: The MPI function; of persistent requests the one that started them.
-- column comm INTEGER -: Communicator, an id in comms.
-- column wildcard VARCHAR -: source (MPI_ANY_SOURCE), tag (MPI_ANY_TAG) or both.
-- column callsite INTEGER -: Id in callsites of where they were posted, of several that are one here the lowest; null in a run
--     without call sites.
-- column function VARCHAR -: Function that calls; null where it is not known.
-- column file VARCHAR -: Source file; null where it is not known, and by function.
-- column line INTEGER -: Source line; null where file is.
-- column callers VARCHAR -: By path, the functions that called it, nearest first, at most eight.
-- column posted BIGINT 1: How many were posted. Failed probes are not counted.
-- column matched BIGINT 1: Those of them that met a message; the others were cancelled, failed, left open, or from MPI_PROC_NULL.
-- column sources BIGINT 1: World ranks whose messages they met. Where it is 1 the wildcard let nothing overtake.
-- column tags BIGINT 1: Different tags of those messages.
-- column bytes BIGINT bytes: Payload of those messages; a probe's are received by another call.
-- order: rank, posted DESC, call, comm, wildcard, callsite
-- cost: The table profile.
WITH {{include sites}},
met AS (
  SELECT rank, call, comm, posted_any, callsite, recv_world, recv_tag, CAST(SUM(calls) AS BIGINT) AS posted,
         CAST(SUM(CASE WHEN error_class IS NULL THEN receives ELSE 0 END) AS BIGINT) AS matched,
         CAST(SUM(CASE WHEN error_class IS NULL THEN COALESCE(recv_bytes, 0) ELSE 0 END) AS BIGINT) AS bytes
  FROM profile
  WHERE posted_any > 0 AND class IN ('recv', 'sendrecv', 'probe')
  GROUP BY rank, call, comm, posted_any, callsite, recv_world, recv_tag
),
placed AS (
  SELECT m.rank, m.call, m.comm, CASE m.posted_any WHEN 1 THEN 'source' WHEN 2 THEN 'tag' ELSE 'both' END AS wildcard,
         s.site, s.module, s.function, s.file, s.line, s.code_offset, s.callers, m.posted, m.matched, m.bytes,
         CASE WHEN m.matched > 0 THEN m.recv_world END AS source, CASE WHEN m.matched > 0 THEN m.recv_tag END AS tag
  FROM met m
  LEFT JOIN sites s ON s.callsite = m.callsite
),
counted AS (
  SELECT rank, call, comm, wildcard, site, function, file, line, callers, CAST(SUM(posted) AS BIGINT) AS posted,
         CAST(SUM(matched) AS BIGINT) AS matched, CAST(COUNT(DISTINCT source) AS BIGINT) AS sources,
         CAST(COUNT(DISTINCT tag) AS BIGINT) AS tags, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM placed
  GROUP BY rank, call, comm, wildcard, site, function, file, line, callers
)
SELECT rank, call, comm, wildcard, site AS callsite, function, file, line, callers, posted, matched, sources, tags, bytes
FROM counted
ORDER BY rank, posted DESC, call, comm, wildcard, callsite
