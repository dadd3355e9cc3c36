-- summary: Every call in a window of time, rank by rank: what it was, how long it took, with whom, how much, and where in
--     the source.
-- source: what the timelines of Vampir, Paraver and Jumpshot show of a call
-- needs: events, times
-- origins: measured, virtual, simulated
-- param from-s number 0..1000000000 = 0: Where the window begins, in s since the run's start.
-- param to-s number 0..1000000000 = 0: Where it ends; 0 is the end of the run.
-- param from-rank integer 0..2147483647 = 0: The lowest world rank.
-- param to-rank integer -1..2147483647 = -1: The highest one; -1 is the last rank of the run.
-- column rank INTEGER -: World rank that made the call.
-- column thread INTEGER -: Its thread.
-- column seq BIGINT -: Number of the call along its rank.
-- column call VARCHAR -: The MPI function.
-- column class VARCHAR -: Kind of call, as in events.
-- column start_ns BIGINT ns: When it was entered.
-- column end_ns BIGINT ns: When it returned; null for a call that never did.
-- column comm INTEGER -: Communicator.
-- column instance BIGINT -: Of a collective operation, its number on the communicator.
-- column dst INTEGER -: World rank that it sends to; null if none or several.
-- column src INTEGER -: World rank that it receives from; null if none or several.
-- column tag INTEGER -: Tag of what it sends, else of what it receives.
-- column send_bytes BIGINT bytes: Payload that it sends.
-- column recv_bytes BIGINT bytes: Payload that it receives.
-- column callsite INTEGER -: Call site.
-- column function VARCHAR -: Function that calls.
-- column file VARCHAR -: Source file.
-- column line INTEGER -: Source line.
-- order: rank, start_ns, seq
-- cost: The columns of events that it prints, of the files of that time.
-- example: --from-s 0.9 --to-s 0.91 --to-rank 7
SELECT e.rank, e.thread, e.seq, e.call, e.class, e.start_ns, e.end_ns, e.comm, e.instance, e.send_world AS dst, e.recv_world AS src,
       COALESCE(e.send_tag, e.recv_tag) AS tag, e.send_bytes, e.recv_bytes, e.callsite, c.function, c.file, c.line
FROM (SELECT rank, thread, seq, call, class, start_ns, end_ns, comm, instance, send_world, recv_world, send_tag, recv_tag, send_bytes, recv_bytes,
             callsite
      FROM events
      WHERE end_ns >= CAST(ROUND({{from-s}} * 1e9) AS BIGINT)
      UNION ALL -- not OR: with it engines read the row groups of every time
      SELECT rank, thread, seq, call, class, start_ns, end_ns, comm, instance, send_world, recv_world, send_tag, recv_tag, send_bytes, recv_bytes,
             callsite
      FROM events
      WHERE end_ns IS NULL) e
LEFT JOIN callsites c ON c.id = e.callsite
WHERE ({{to-s}} = 0 OR e.start_ns <= CAST(ROUND({{to-s}} * 1e9) AS BIGINT))
  AND e.start_ns IS NOT NULL AND e.rank >= {{from-rank}} AND ({{to-rank}} < 0 OR e.rank <= {{to-rank}})
ORDER BY e.rank, e.start_ns, e.seq
