-- summary: What every rank does over time: the time in each kind of call in equal steps, the messages sent in them, and
--     each message by itself where they are few.
-- source: the timelines of Vampir, Paraver and Jumpshot
-- needs: messages, events, profile, times, every-call
-- origins: measured, virtual, simulated
-- param bins integer 1..10000 = 550: How many steps the time is cut into.
-- param rows integer 1..10000 = 350: How many rows of ranks there are at most. With more ranks a row is of several neighbours.
-- param from-s number 0..1000000000 = 0: Where the time begins, in s since the run's start.
-- param to-s number 0..1000000000 = 0: Where it ends; 0 is the end of the run.
-- param from-rank integer 0..2147483647 = 0: The lowest world rank.
-- param to-rank integer -1..2147483647 = -1: The highest one; -1 is the last rank of the run.
-- param lines integer 0..100000 = 1000: Up to so many messages each has a row of its own.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- column rank INTEGER -: World rank; the lowest one of a row of several. Of a message the sender.
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
-- cost: Four columns of events and three of messages, both twice of messages; with --from-s and --to-s only the files of that time.
-- example: --from-s 0.9 --to-s 0.95 --to-rank 7
-- title: Timeline
-- plot: timeline rank ranks start_ns end_ns kind time_ns bytes dst
-- label bytes: sent
WITH chosen AS (
  SELECT {{from-rank}} AS from_rank, CASE WHEN {{to-rank}} < 0 THEN last_rank ELSE LEAST({{to-rank}}, last_rank) END AS to_rank
  FROM (SELECT MAX(rank) AS last_rank FROM profile) AS r
),
ends AS (
  SELECT MAX(at_ns) AS last_ns
  FROM (SELECT MAX(last_ns) AS at_ns FROM profile
        UNION ALL
        SELECT NULLIF(end_ns, 0) AS at_ns FROM runs) AS e
),
bounds AS (
  SELECT CAST(ROUND(CAST({{from-s}} AS DOUBLE) * 1e9) AS BIGINT) AS from_ns,
         CASE WHEN {{to-s}} > 0 THEN LEAST(CAST(ROUND(CAST({{to-s}} AS DOUBLE) * 1e9) AS BIGINT), last_ns) ELSE last_ns END AS to_ns,
         from_rank, to_rank, CAST(CEIL(CAST(to_rank - from_rank + 1 AS DOUBLE) / {{rows}}) AS INTEGER) AS per_row
  FROM ends
  CROSS JOIN chosen
),
span AS (
  -- Steps last whole ns, and the last one ends after to_ns.
  SELECT from_ns, to_ns, from_rank, to_rank, per_row, CAST(FLOOR(CAST(to_ns - from_ns AS DOUBLE) / {{bins}}) AS BIGINT) + 1 AS step_ns
  FROM bounds
  WHERE (to_ns > from_ns OR to_ns = from_ns AND {{to-s}} = 0) AND to_rank >= from_rank
),
clipped AS (
  -- The calls of the window, and each thread as a call that lasts as long as it ran.
  SELECT e.rank, e.class, CASE WHEN e.start_ns >= s.from_ns THEN 1 ELSE 0 END AS began, GREATEST(e.start_ns, s.from_ns) AS start_ns,
         LEAST(COALESCE(e.end_ns, s.to_ns), s.to_ns) AS end_ns
  FROM events e
  CROSS JOIN span s
  WHERE e.start_ns <= s.to_ns AND COALESCE(e.end_ns, s.to_ns) >= s.from_ns
    AND ({{to-s}} = 0 OR e.start_ns <= {{to-s}} * 1e9) AND (e.end_ns IS NULL OR e.end_ns >= {{from-s}} * 1e9)
    AND e.rank >= {{from-rank}} AND ({{to-rank}} < 0 OR e.rank <= {{to-rank}})
  UNION ALL
  SELECT t.rank, 'running' AS class, 0 AS began, GREATEST(t.first_ns, s.from_ns) AS start_ns, LEAST(t.last_ns, s.to_ns) AS end_ns
  FROM (SELECT rank, thread, MIN(first_ns) AS first_ns,
               CASE WHEN MAX(in_progress) > 0 THEN (SELECT last_ns FROM ends) ELSE MAX(last_ns) END AS last_ns
        FROM profile
        GROUP BY rank, thread) AS t
  CROSS JOIN span s
  WHERE t.first_ns <= s.to_ns AND t.last_ns >= s.from_ns AND t.rank BETWEEN s.from_rank AND s.to_rank
),
stepped AS (
  SELECT CAST(FLOOR(CAST(c.rank - s.from_rank AS DOUBLE) / s.per_row) AS INTEGER) AS line, c.class, c.began, c.start_ns - s.from_ns AS start_ns,
         c.end_ns - s.from_ns AS end_ns, CAST(FLOOR(CAST(c.start_ns - s.from_ns AS DOUBLE) / s.step_ns) AS INTEGER) AS first_bin,
         CAST(FLOOR(CAST(c.end_ns - s.from_ns AS DOUBLE) / s.step_ns) AS INTEGER) AS last_bin, s.step_ns
  FROM clipped c
  CROSS JOIN span s
),
grouped AS (
  -- One pass over the calls. What follows sees only sums by row, kind, first and last step.
  SELECT line, class, first_bin, last_bin, COUNT(*) AS n, CAST(SUM(began) AS BIGINT) AS calls,
         CAST(SUM(LEAST(end_ns, (first_bin + 1) * step_ns) - start_ns) AS BIGINT) AS first_ns,
         CAST(SUM(CASE WHEN last_bin > first_bin THEN end_ns - last_bin * step_ns ELSE 0 END) AS BIGINT) AS last_ns
  FROM stepped
  GROUP BY line, class, first_bin, last_bin
),
kinds AS (
  SELECT line, first_bin, last_bin, n, calls, first_ns, last_ns,
         CASE WHEN class = 'recv' THEN 'receive' WHEN class = 'sendrecv' THEN 'send and receive' WHEN class IN ('complete', 'probe') THEN 'wait'
              WHEN class IN ('send', 'collective', 'running') THEN class WHEN class = 'rma' THEN 'one-sided' WHEN class = 'io' THEN 'I/O'
              ELSE 'other MPI' END AS kind
  FROM grouped
),
changes AS (
  -- Calls that fill whole steps: how many more there are from a step on.
  SELECT line, kind, bin, CAST(SUM(n) AS BIGINT) AS n
  FROM (SELECT line, kind, first_bin + 1 AS bin, n FROM kinds WHERE last_bin > first_bin + 1
        UNION ALL
        SELECT line, kind, last_bin AS bin, -n AS n FROM kinds WHERE last_bin > first_bin + 1) AS c
  GROUP BY line, kind, bin
),
filled AS (
  SELECT line, kind, bin, CAST(SUM(n) OVER (PARTITION BY line, kind ORDER BY bin) AS BIGINT) AS n,
         LEAD(bin) OVER (PARTITION BY line, kind ORDER BY bin) AS next_bin
  FROM changes
),
{{include steps}},
cells AS (
  SELECT line, kind, bin, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(ns) AS BIGINT) AS ns
  FROM (SELECT line, kind, first_bin AS bin, calls, first_ns AS ns FROM kinds
        UNION ALL
        SELECT line, kind, last_bin AS bin, CAST(0 AS BIGINT) AS calls, last_ns AS ns FROM kinds WHERE last_bin > first_bin
        UNION ALL
        SELECT f.line, f.kind, b.bin, CAST(0 AS BIGINT) AS calls, f.n * s.step_ns AS ns
        FROM filled f
        CROSS JOIN span s
        JOIN steps b ON b.bin < {{bins}} AND b.bin >= f.bin AND b.bin < f.next_bin
        WHERE f.n > 0) AS c
  GROUP BY line, kind, bin
),
outside AS (
  SELECT line, 'outside MPI' AS kind, bin, CAST(0 AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN kind = 'running' THEN ns ELSE -ns END) AS BIGINT) AS ns
  FROM cells
  GROUP BY line, bin
),
sent AS (
  SELECT CAST(FLOOR(CAST(src - {{from-rank}} AS DOUBLE) / (SELECT per_row FROM span)) AS INTEGER) AS line,
         CAST(FLOOR(CAST(send_start_ns - (SELECT from_ns FROM span) AS DOUBLE) / (SELECT step_ns FROM span)) AS INTEGER) AS bin,
         COUNT(*) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM messages
  WHERE {{where}} AND send_start_ns >= {{from-s}} * 1e9 AND send_start_ns <= (SELECT to_ns FROM span) AND ({{to-s}} = 0 OR send_start_ns <= {{to-s}} * 1e9)
    AND src >= {{from-rank}} AND ({{to-rank}} < 0 OR src <= {{to-rank}})
  GROUP BY 1, 2
),
few AS (
  SELECT to_ns
  FROM span
  WHERE (SELECT COALESCE(CAST(SUM(messages) AS BIGINT), 0) FROM sent) <= {{lines}}
),
sizes AS (
  SELECT CAST(FLOOR(CAST(p.rank - s.from_rank AS DOUBLE) / s.per_row) AS INTEGER) AS line, CAST(MIN(p.rank) AS INTEGER) AS rank, CAST(COUNT(*) AS INTEGER) AS ranks
  FROM (SELECT rank FROM profile GROUP BY rank) AS p
  JOIN span s ON p.rank BETWEEN s.from_rank AND s.to_rank
  GROUP BY 1
),
drawn AS (
  SELECT line, bin, kind, calls, ns, CAST(NULL AS BIGINT) AS messages, CAST(NULL AS BIGINT) AS bytes
  FROM cells
  WHERE kind <> 'running' AND (ns > 0 OR calls > 0)
  UNION ALL
  SELECT line, bin, kind, CAST(NULL AS BIGINT) AS calls, ns, CAST(NULL AS BIGINT) AS messages, CAST(NULL AS BIGINT) AS bytes
  FROM outside
  WHERE ns > 0
  UNION ALL
  SELECT line, bin, 'sent' AS kind, CAST(NULL AS BIGINT) AS calls, CAST(NULL AS BIGINT) AS ns, messages, bytes
  FROM sent
)
SELECT r.rank, r.ranks, d.bin, s.from_ns + d.bin * s.step_ns AS start_ns, s.from_ns + (d.bin + 1) * s.step_ns AS end_ns, d.kind, d.calls,
       d.ns AS time_ns, d.messages, d.bytes, CAST(NULL AS INTEGER) AS dst, CAST(NULL AS BIGINT) AS seq
FROM drawn d
CROSS JOIN span s
JOIN sizes r ON r.line = d.line
UNION ALL
SELECT src AS rank, 1 AS ranks, CAST(NULL AS INTEGER) AS bin, send_start_ns AS start_ns, recv_end_ns AS end_ns, 'message' AS kind,
       CAST(NULL AS BIGINT) AS calls, CAST(NULL AS BIGINT) AS time_ns, CAST(1 AS BIGINT) AS messages, bytes, dst, send_seq AS seq
FROM messages
WHERE {{where}} AND send_start_ns >= {{from-s}} * 1e9 AND send_start_ns <= (SELECT to_ns FROM few) AND ({{to-s}} = 0 OR send_start_ns <= {{to-s}} * 1e9)
    AND src >= {{from-rank}} AND ({{to-rank}} < 0 OR src <= {{to-rank}})
  AND recv_end_ns IS NOT NULL
ORDER BY rank, start_ns, kind, seq
