-- summary: Calls of one thread that overlap in time, which a thread cannot do: a sign that calls were captured twice.
-- source: the invariants of a run: a thread makes one call after the other
-- needs: events, times
-- origins: measured, virtual, simulated
-- column rank INTEGER -: World rank that called.
-- column thread INTEGER -: Thread that called.
-- column seq BIGINT -: seq of the earlier row in events.
-- column call VARCHAR -: Its MPI function.
-- column next_seq BIGINT -: seq of the row that begins before the earlier one ends.
-- column next_call VARCHAR -: Its MPI function.
-- column overlap_ns BIGINT ns: How much of their times they have in common.
-- order: rank, seq
-- cost: Nothing where the manifest says that there is none, else six columns of events, sorted by thread.
WITH following AS (
  SELECT rank, thread, seq, call, end_ns,
         LEAD(seq) OVER w AS next_seq, LEAD(call) OVER w AS next_call, LEAD(start_ns) OVER w AS next_start_ns, LEAD(end_ns) OVER w AS next_end_ns,
         LEAD(start_ns) OVER w = start_ns AND LEAD(end_ns) OVER w = end_ns AS same
  FROM events
  -- The manifest has their number. It is usually 0, and the engine does not read a table that it joins with nothing.
  CROSS JOIN (SELECT overlapping_calls FROM runs WHERE overlapping_calls > 0) AS unsound
  WINDOW w AS (PARTITION BY rank, thread ORDER BY seq)
)
SELECT rank, thread, seq, call, next_seq, next_call, CAST(LEAST(end_ns, COALESCE(next_end_ns, end_ns)) - next_start_ns AS BIGINT) AS overlap_ns
FROM following
WHERE next_start_ns < end_ns AND NOT same
ORDER BY rank, seq
