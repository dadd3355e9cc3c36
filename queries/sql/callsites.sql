-- summary: Where in the source the program communicates: calls, messages and bytes of each MPI call there, most bytes first.
-- source: mpiP's list of call sites, without their times (callsite-time has those)
-- needs: profile, callsites, every-call
-- param by choice line|path|function = line: What is one call site. line: a line of the source (or, without debug
--     information, a place in a module). path: a line and its callers, as far as --stack kept them. function: a function.
-- column callsite INTEGER -: Id in callsites; of several that are one here, the lowest.
-- column function VARCHAR -: Function that calls; null where it is not known.
-- column file VARCHAR -: Source file; null where there is no debug information, and by function.
-- column line INTEGER -: Source line; null where file is.
-- column module VARCHAR -: Executable or shared library.
-- column code_offset BIGINT -: Place in the module, of a call site that no line (by function: no function) tells apart.
-- column callers VARCHAR -: By path, the functions that called it, nearest first, at most eight.
-- column call VARCHAR -: The MPI function.
-- column calls BIGINT 1: Rows of events: calls, and for MPI_Startall started requests. Failed tests and probes are none.
-- column ranks BIGINT 1: World ranks that made them.
-- column messages BIGINT 1: Point-to-point messages that they sent, matched or not; none to MPI_PROC_NULL and none
--     that returned an error.
-- column send_bytes BIGINT bytes: Payload that they sent, of point-to-point, collective and one-sided calls and files. What a
--     nonblocking call moves counts where it was posted, what a persistent request moves where it was started.
-- column recv_bytes BIGINT bytes: Payload that they received.
-- order: send_bytes + recv_bytes DESC, calls DESC, callsite, call
-- cost: The table profile.
-- title: Data sent by call site
-- plot: bars callsite send_bytes call
-- label callsite: call site
-- label send_bytes: sent data
-- label call: MPI function
WITH {{include sites}},
counted AS (
  -- Failed calls, probes and calls that only make requests move no data.
  SELECT callsite, call, rank, CAST(SUM(calls) AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN error_class IS NULL AND class IN ('send', 'sendrecv') THEN sends ELSE 0 END) AS BIGINT) AS sends,
         CAST(SUM(CASE WHEN error_class IS NULL AND class NOT IN ('probe', 'other') THEN send_bytes END) AS BIGINT) AS send_bytes,
         CAST(SUM(CASE WHEN error_class IS NULL AND class NOT IN ('probe', 'other') THEN recv_bytes END) AS BIGINT) AS recv_bytes
  FROM profile
  GROUP BY callsite, call, rank
),
placed AS (
  SELECT s.site, s.function, s.file, s.line, s.module, s.code_offset, s.callers, c.call, CAST(SUM(c.calls) AS BIGINT) AS calls,
         CAST(COUNT(DISTINCT c.rank) AS BIGINT) AS ranks,
         CAST(SUM(c.sends) AS BIGINT) AS messages, CAST(SUM(COALESCE(c.send_bytes, 0)) AS BIGINT) AS send_bytes,
         CAST(SUM(COALESCE(c.recv_bytes, 0)) AS BIGINT) AS recv_bytes
  FROM counted c
  LEFT JOIN sites s ON s.callsite = c.callsite
  GROUP BY s.site, s.function, s.file, s.line, s.module, s.code_offset, s.callers, c.call
)
SELECT site AS callsite, function, file, line, module, code_offset, callers, call, calls, ranks, messages, send_bytes, recv_bytes
FROM placed
ORDER BY send_bytes + recv_bytes DESC, calls DESC, callsite, call
