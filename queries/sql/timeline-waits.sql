-- summary: When ranks waited for others and for which: late senders, late receivers and the last rank of collectives, in the
--     steps of query timeline, and each wait by itself where they are few.
-- source: the wait states of Scalasca and KOJAK, on the timeline of Vampir
-- needs: messages, events, profile, ranks, comms, times, every-call
-- origins: measured, virtual, simulated
-- param bins integer 1..10000 = 550: How many steps the time is cut into.
-- param by choice neighbours|host|communicator|calls|time = neighbours: What the ranks of a row share. neighbours: a row is of one rank, of several
--     neighbours if there are more ranks than rows; else of a group of rank-groups, as in timeline-groups.
-- param unfold integer -1..2147483647 = -1: The group whose ranks have a row each, by its lowest rank; -1 is none.
-- param rows integer 1..10000 = 350: How many rows there are at most.
-- param from-s number 0..1000000000 = 0: Where the time begins, in s since the run's start.
-- param to-s number 0..1000000000 = 0: Where it ends; 0 is the end of the run.
-- param from-rank integer 0..2147483647 = 0: The lowest world rank.
-- param to-rank integer -1..2147483647 = -1: The highest one; -1 is the last rank of the run.
-- param lines integer 0..100000 = 1000: Up to so many waits each has a row of its own.
-- param least-ns integer 0..1000000000000 = 0: Only waits that are at least so long.
-- param until choice needed|last = needed: Whom a rank waits for in a collective; see collective-wait.
-- column rank INTEGER -: World rank that waited; the lowest one of a row of several.
-- column ranks INTEGER 1: Ranks in the row.
-- column bin INTEGER -: Step, from 0; null for a single wait.
-- column start_ns BIGINT ns: When the step begins, or when the wait did: when its call began.
-- column end_ns BIGINT ns: When the next step begins, or when the wait was over: the message was sent, the receive posted, or the last rank that
--     is needed had entered the collective.
-- column state VARCHAR -: Kind of wait, as in wait-states.
-- column waits BIGINT 1: Waits that began in the step; 1 for a single one.
-- column wait_ns BIGINT ns: Time lost in the step, summed over the row's ranks.
-- column cause INTEGER -: World rank that a single wait was for; null in scans, except with --until last.
-- column callsite INTEGER -: Call site of the call that waited.
-- order: rank, start_ns, state, end_ns, cause
-- cost: Nine columns of messages and joins on (rank, seq) of those that waited, only of the files of that time; six columns of events, of
--     their collectives a sort and joins on (comm, instance).
-- example: --from-s 0.9 --to-s 0.95 --least-ns 100000
WITH {{include timeline_window}},
{{include placed_groups}},
late_messages AS (
  SELECT src, dst, recv_done_seq, send_start_ns, recv_start_ns, recv_end_ns, recv_callsite
  FROM (SELECT src, dst, recv_done_seq, send_start_ns, recv_start_ns, recv_end_ns, recv_callsite
        FROM messages
        WHERE recv_end_ns >= CAST(ROUND({{from-s}} * 1e9) AS BIGINT)
        UNION ALL -- not OR: with it engines read the row groups of every time
        SELECT src, dst, recv_done_seq, send_start_ns, recv_start_ns, recv_end_ns, recv_callsite
        FROM messages
        WHERE recv_end_ns IS NULL) AS m
  WHERE send_start_ns > recv_start_ns AND ({{to-s}} = 0 OR recv_start_ns <= CAST(ROUND({{to-s}} * 1e9) AS BIGINT))
),
{{include late_senders}},
posted_messages AS (
  SELECT src, dst, send_seq, send_start_ns, send_end_ns, recv_post_ns, send_callsite, bytes
  FROM messages
  WHERE recv_post_ns > send_start_ns
    AND ({{to-s}} = 0 OR send_start_ns <= CAST(ROUND({{to-s}} * 1e9) AS BIGINT)) AND recv_post_ns >= CAST(ROUND({{from-s}} * 1e9) AS BIGINT)
),
{{include late_receivers}},
collective_rows AS (
  -- Of operations that some rank entered in that time.
  SELECT rank, seq, comm, instance, root_world, start_ns, end_ns, done_seq, init_seq, request, callsite, call
  FROM (SELECT rank, seq, comm, instance, root_world, start_ns, end_ns, done_seq, init_seq, request, callsite, call,
               MIN(start_ns) OVER (PARTITION BY comm, instance) AS first_ns, MAX(start_ns) OVER (PARTITION BY comm, instance) AS last_ns
        FROM events
        WHERE class = 'collective' AND error_class IS NULL AND comm IS NOT NULL AND instance IS NOT NULL) AS o
  WHERE ({{to-s}} = 0 OR first_ns <= CAST(ROUND({{to-s}} * 1e9) AS BIGINT)) AND last_ns >= CAST(ROUND({{from-s}} * 1e9) AS BIGINT)
),
{{include operation_waits}},
all_waits AS (
  SELECT dst AS rank, src AS cause, callsite, 'late-sender' AS state, start_ns, start_ns + wait_ns AS end_ns
  FROM late_senders
  UNION ALL
  -- In virtual time every send is eager and waits for no rank.
  SELECT src AS rank, dst AS cause, callsite, 'late-receiver' AS state, start_ns, start_ns + wait_ns AS end_ns
  FROM late_receivers
  WHERE (SELECT MAX(time_origin) FROM runs) <> 'virtual'
  UNION ALL
  SELECT rank, cause, callsite, pattern AS state, start_ns, start_ns + wait_ns AS end_ns
  FROM operation_waits
),
chosen AS (
  SELECT w.rank, w.cause, w.callsite, w.state, w.start_ns, w.end_ns,
         COALESCE(p.line, CAST(FLOOR(CAST(w.rank - s.from_rank AS DOUBLE) / s.per_row) AS INTEGER)) AS line,
         CASE WHEN w.start_ns >= s.from_ns THEN 1 ELSE 0 END AS began, GREATEST(w.start_ns - s.from_ns, 0) AS from_ns,
         LEAST(w.end_ns, s.to_ns) - s.from_ns AS to_ns, s.step_ns
  FROM all_waits w
  CROSS JOIN span s
  LEFT JOIN placed p ON p.rank = w.rank
  WHERE w.end_ns > w.start_ns AND w.end_ns - w.start_ns >= {{least-ns}} AND w.start_ns <= s.to_ns AND w.end_ns >= s.from_ns
    AND w.rank BETWEEN {{from-rank}} AND s.to_rank
),
{{include steps}},
binned AS (
  SELECT line, state, began, from_ns, to_ns, step_ns, CAST(FLOOR(CAST(from_ns AS DOUBLE) / step_ns) AS INTEGER) AS first_bin,
         CAST(FLOOR(CAST(to_ns AS DOUBLE) / step_ns) AS INTEGER) AS last_bin
  FROM chosen
),
further AS (
  -- Nearly all waits are over in the step that they begin in: only the others are joined with the steps after it.
  SELECT 0 AS after_first, 0 AS bin
  UNION ALL
  SELECT 1 AS after_first, bin
  FROM steps
  WHERE bin <= {{bins}}
),
pieces AS (
  SELECT w.line, w.state, CASE WHEN f.after_first = 0 THEN w.first_bin ELSE f.bin END AS bin, w.from_ns, w.to_ns, w.step_ns,
         CASE WHEN f.after_first = 0 THEN w.began ELSE 0 END AS began
  FROM (SELECT b.line, b.state, b.began, b.from_ns, b.to_ns, b.step_ns, b.first_bin, b.last_bin, k.after_first
        FROM binned b
        CROSS JOIN (VALUES (0), (1)) AS k (after_first)
        WHERE k.after_first = 0 OR b.last_bin > b.first_bin) AS w
  JOIN further f ON f.after_first = w.after_first AND (f.after_first = 0 OR f.bin > w.first_bin AND f.bin <= w.last_bin)
),
cells AS (
  SELECT line, bin, state, CAST(SUM(began) AS BIGINT) AS waits,
         CAST(SUM(LEAST(to_ns, (bin + 1) * step_ns) - GREATEST(from_ns, bin * step_ns)) AS BIGINT) AS wait_ns
  FROM pieces
  GROUP BY line, bin, state
),
{{include timeline_sizes}}
SELECT r.rank, r.ranks, c.bin, s.from_ns + c.bin * s.step_ns AS start_ns, s.from_ns + (c.bin + 1) * s.step_ns AS end_ns, c.state, c.waits,
       c.wait_ns, CAST(NULL AS INTEGER) AS cause, CAST(NULL AS INTEGER) AS callsite
FROM cells c
CROSS JOIN span s
JOIN sizes r ON r.line = c.line
WHERE c.wait_ns > 0 OR c.waits > 0
UNION ALL
SELECT rank, 1 AS ranks, CAST(NULL AS INTEGER) AS bin, start_ns, end_ns, state, CAST(1 AS BIGINT) AS waits, end_ns - start_ns AS wait_ns, cause,
       callsite
FROM chosen
WHERE (SELECT COUNT(*) FROM chosen) <= {{lines}}
ORDER BY rank, start_ns, state, end_ns, cause
