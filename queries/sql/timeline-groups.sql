-- summary: What groups of ranks do over time, as in timeline, with a row for each group: the ranks of a host, of a
--     communicator, or that behave alike: that call or wait alike.
-- source: the timelines of Vampir, Paraver and Jumpshot
-- needs: messages, events, activity, profile, ranks, comms, times, every-call
-- origins: measured, virtual, simulated
-- param bins integer 1..10000 = 550: How many steps the time is cut into.
-- param by choice host|communicator|calls|time = host: What the ranks of a row share; see rank-groups.
-- param unfold integer -1..2147483647 = -1: The group whose ranks have a row each, by its lowest rank; -1 is none.
-- param rows integer 1..10000 = 350: How many rows there are at most. With more groups a row is of several.
-- param from-s number 0..1000000000 = 0: Where the time begins, in s since the run's start.
-- param to-s number 0..1000000000 = 0: Where it ends; 0 is the end of the run.
-- param from-rank integer 0..2147483647 = 0: The lowest world rank.
-- param to-rank integer -1..2147483647 = -1: The highest one; -1 is the last rank of the run.
-- param lines integer 0..100000 = 1000: Up to so many messages each has a row of its own.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- param read choice auto|rows|sums = auto: Rows of events and messages, or the sums over time in activity: then steps last 2^n ns, begin at
--     multiples of that, and are no shorter than those of the sums; neighbours in a row are blocks of activity; no message has a row of its
--     own. auto: sums if the window has about a million calls or more; with --lines 0 from about 130,000 on, if the steps of sums are at
--     most twice as long.
-- column rank INTEGER -: The lowest world rank of the row, which names it. Of a message the sender.
-- column ranks INTEGER 1: Ranks in the row.
-- column bin INTEGER -: Step, from 0; null for a single message.
-- column start_ns BIGINT ns: When the step begins, or when the message's send was entered.
-- column end_ns BIGINT ns: When the next step begins, or when the message's receive was complete.
-- column kind VARCHAR -: What the time was spent in: outside MPI, send, receive, send and receive, wait (tests that succeeded and probes
--     too), collective, one-sided, I/O or other MPI. sent: the messages sent in the step. message: a single one.
-- column calls BIGINT 1: Calls of that kind that began in the step.
-- column time_ns BIGINT ns: Time in them in the step, summed over ranks and threads. A call that never returned lasts to the end.
-- column messages BIGINT 1: Point-to-point messages that the row's ranks sent in the step.
-- column bytes BIGINT bytes: Their payload.
-- column dst INTEGER -: The receiver of a single message.
-- column seq BIGINT -: The seq of its send.
-- order: rank, start_ns, kind, seq
-- cost: The profile; four columns of events and three of messages, those of messages twice unless --lines is 0; with --from-s and --to-s only the files of that time.
--     From sums a few rows for each step and rank.
-- example: --by calls --bins 20
WITH widest AS (
  SELECT 0 AS rank_power
),
{{include timeline_span}},
{{include placed_groups}},
{{include timeline_cells}}
SELECT r.rank, r.ranks, d.bin, s.from_ns + d.bin * s.step_ns AS start_ns, s.from_ns + (d.bin + 1) * s.step_ns AS end_ns, d.kind, d.calls,
       d.ns AS time_ns, d.messages, d.bytes, CAST(NULL AS INTEGER) AS dst, CAST(NULL AS BIGINT) AS seq
FROM drawn d
CROSS JOIN span s
JOIN sizes r ON r.line = d.line
{{unless read sums}}
UNION ALL
SELECT src AS rank, 1 AS ranks, CAST(NULL AS INTEGER) AS bin, send_start_ns AS start_ns, recv_end_ns AS end_ns, 'message' AS kind,
       CAST(NULL AS BIGINT) AS calls, CAST(NULL AS BIGINT) AS time_ns, CAST(1 AS BIGINT) AS messages, bytes, dst, send_seq AS seq
FROM messages
WHERE {{lines}} > 0 AND {{where}} AND send_start_ns >= CAST(ROUND({{from-s}} * 1e9) AS BIGINT) AND send_start_ns <= (SELECT to_ns FROM few) AND ({{to-s}} = 0 OR send_start_ns <= CAST(ROUND({{to-s}} * 1e9) AS BIGINT))
    AND src >= {{from-rank}} AND ({{to-rank}} < 0 OR src <= {{to-rank}})
  AND recv_end_ns IS NOT NULL
{{end}}
ORDER BY rank, start_ns, kind, seq
