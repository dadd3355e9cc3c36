-- summary: Every measure of a run as a row: what commq diff compares, and commq check with a baseline.
-- source: benchstat's table of units, with the counts of Riesen, Communication Patterns (2006), section 3, which are exact
-- needs: messages, profile, ranks
-- over: runs
-- param init choice leave-out|include = leave-out: Whether mpi_ns and runtime_ns count MPI_Init, MPI_Init_thread and MPI_Finalize.
-- column run VARCHAR -: The run.
-- column measure VARCHAR -: What is measured. message_bytes: payload of point-to-point messages. pairs: ordered pairs of ranks with
--     messages. partners_max: other ranks of the rank that exchanges messages with most. rank_messages_max, rank_bytes_max: sent by
--     the rank that sends most. payloads: a fingerprint of all payloads with their sender and receiver, whatever their order.
--     sites: lines of the source that call MPI; site_calls, site_bytes: what is called and sent there. compute_ns, mpi_ns,
--     point_to_point_ns, completion_ns (MPI_Wait, Waitall and the like, and tests that succeeded), collective_ns: sums over ranks.
--     lost_ns: what all ranks lost waiting for others, as the row all of wait-states. compute_ns_max: of the rank that computes
--     most. end_ns: from the run's start to its end; runtime_ns: from the first rank's end of MPI_Init to the last rank's start
--     of MPI_Finalize.
-- column item VARCHAR -: The part of the measure that the row has: a call, a size, a place (the call, function and file, but not the
--     line, which moves); empty for the whole. A measure whose whole has a row has the value 0 for parts without one.
-- column value BIGINT -: Its value.
-- column unit VARCHAR -: Unit of value: 1 (how many), bytes, ns, or - for a fingerprint.
-- column exact BOOLEAN -: The value depends on the program alone; else it is a time.
-- column file VARCHAR -: Source file of a place.
-- column line INTEGER -: Lowest of its lines.
-- order: run, measure, item
-- cost: The tables channels, profile, waits and collective_waits; of older runs with payload hashes four columns of messages.
-- example: --format csv
WITH {{include program_calls}},
pairs AS (
  SELECT run, src, dst, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM channels
  GROUP BY run, src, dst
),
sized AS (
  SELECT run,
         CASE WHEN max_bytes <= 16 THEN '<= 16' WHEN max_bytes <= 64 THEN '<= 64' WHEN max_bytes <= 256 THEN '<= 256' WHEN max_bytes <= 1024 THEN '<= 1 Ki'
              WHEN max_bytes <= 4096 THEN '<= 4 Ki' WHEN max_bytes <= 16384 THEN '<= 16 Ki' WHEN max_bytes <= 65536 THEN '<= 64 Ki'
              WHEN max_bytes <= 262144 THEN '<= 256 Ki' WHEN max_bytes <= 1048576 THEN '<= 1 Mi' WHEN max_bytes <= 4194304 THEN '<= 4 Mi'
              WHEN max_bytes <= 16777216 THEN '<= 16 Mi' WHEN max_bytes <= 67108864 THEN '<= 64 Mi' ELSE '> 64 Mi' END AS size,
         CAST(SUM(messages) AS BIGINT) AS messages
  FROM channels
  GROUP BY 1, 2
),
partners AS (
  SELECT run, MAX(partners) AS partners_max
  FROM (SELECT run, rank, CAST(COUNT(*) AS BIGINT) AS partners
        FROM (SELECT run, src AS rank, dst AS peer FROM pairs WHERE src <> dst
              UNION
              SELECT run, dst AS rank, src AS peer FROM pairs WHERE src <> dst) both_ways
        GROUP BY run, rank) by_rank
  GROUP BY run
),
sent AS (
  SELECT run, CAST(COUNT(*) AS BIGINT) AS pairs, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM pairs
  GROUP BY run
),
senders AS (
  SELECT run, MAX(messages) AS messages, MAX(bytes) AS bytes
  FROM (SELECT run, src, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
        FROM pairs
        GROUP BY run, src) by_rank
  GROUP BY run
),
unprinted AS (
  -- Runs of older versions, whose manifest has no fingerprint. Usually there is none, and messages are not read.
  SELECT run
  FROM runs
  WHERE payloads IS NULL AND hash <> 'none'
),
residues AS (
  -- A message's numbers modulo two primes below 2^31, so that squares fit in 64 bits.
  SELECT run, ((payload_hash % 2147483647 + 2147483647) * 48271 + CAST(src AS BIGINT) * 69621 + CAST(dst AS BIGINT) * 16807 + bytes % 2147483647) % 2147483647 AS a,
         ((payload_hash % 2147483629 + 2147483629) * 39373 + CAST(src AS BIGINT) * 40014 + CAST(dst AS BIGINT) * 40692 + bytes % 2147483629) % 2147483629 AS b
  FROM messages
  WHERE payload_hash IS NOT NULL AND run IN (SELECT run FROM unprinted)
),
fingerprints AS (
  SELECT run, payloads
  FROM runs
  WHERE payloads IS NOT NULL
  UNION ALL
  -- Squares, because sums of the numbers themselves would not change if two messages swapped payloads.
  SELECT run, CAST(SUM(a * a % 2147483647) AS BIGINT) % 2147483647 * 2147483648 + CAST(SUM(b * b % 2147483629) AS BIGINT) % 2147483629 AS payloads
  FROM residues
  GROUP BY run
),
called AS (
  -- Failed calls, probes and calls that only make requests move no data.
  SELECT run, call, class, callsite, CAST(SUM(calls) AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN error_class IS NULL AND class NOT IN ('probe', 'other') THEN COALESCE(send_bytes, 0) ELSE 0 END) AS BIGINT) AS bytes
  FROM profiled
  GROUP BY run, call, class, callsite
),
collected AS (
  SELECT run, call, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM called
  WHERE class = 'collective'
  GROUP BY run, call
),
placed AS (
  SELECT c.run,
         c.call || ' in ' || COALESCE(s.function, '?') || ' (' || COALESCE(regexp_replace(COALESCE(s.file, s.module), '^.*/', ''), '?') || ')' AS item,
         CAST(COUNT(DISTINCT COALESCE(CAST(s.line AS BIGINT), s."offset")) AS BIGINT) AS sites, CAST(SUM(c.calls) AS BIGINT) AS calls,
         CAST(SUM(c.bytes) AS BIGINT) AS bytes, MIN(s.file) AS file, MIN(s.line) AS line
  FROM called c
  JOIN callsites s ON s.run = c.run AND s.id = c.callsite
  GROUP BY 1, 2
),
timed AS (
  SELECT run, rank, class, CAST(SUM(COALESCE(time_ns, 0)) AS BIGINT) AS time_ns, CAST(SUM(COALESCE(poll_ns, 0)) AS BIGINT) AS poll_ns,
         CAST(SUM(COALESCE(compute_ns, 0)) AS BIGINT) AS compute_ns,
         MIN(first_ns) AS first_ns, MAX(last_ns) AS last_ns
  FROM program_calls
  GROUP BY run, rank, class
),
spent AS (
  SELECT run, MAX(last_ns) - MIN(first_ns) AS runtime_ns, CAST(SUM(compute_ns) AS BIGINT) AS compute_ns,
         CAST(SUM(time_ns) AS BIGINT) + CAST(SUM(poll_ns) AS BIGINT) AS mpi_ns,
         CAST(SUM(CASE WHEN class IN ('send', 'recv', 'sendrecv') THEN time_ns ELSE 0 END) AS BIGINT) AS point_to_point_ns,
         CAST(SUM(CASE WHEN class = 'complete' THEN time_ns ELSE 0 END) AS BIGINT) AS completion_ns,
         CAST(SUM(CASE WHEN class = 'collective' THEN time_ns ELSE 0 END) AS BIGINT) AS collective_ns
  FROM timed
  GROUP BY run
),
computing AS (
  SELECT run, MAX(compute_ns) AS compute_ns
  FROM (SELECT run, rank, CAST(SUM(compute_ns) AS BIGINT) AS compute_ns FROM timed GROUP BY run, rank) by_rank
  GROUP BY run
),
lost AS (
  -- As in wait-states: in virtual time every send is eager and waits for no rank.
  SELECT w.run, w.late_send_ns AS ns FROM waits w WHERE w.late_sends > 0
  UNION ALL
  SELECT w.run, w.late_receive_ns AS ns FROM waits w JOIN runs r ON r.run = w.run WHERE w.late_receives > 0 AND r.time_origin <> 'virtual'
  UNION ALL
  SELECT c.run, c.wait_ns AS ns FROM collective_waits c WHERE c.waits > 0 AND c.until = 'needed'
),
losses AS (
  SELECT run, CAST(SUM(ns) AS BIGINT) AS lost_ns
  FROM lost
  GROUP BY run
),
whole AS (
  -- One row for each run. A run without any rows has no measures, and what was not recorded is null. Only where all calls were recorded are their
  -- number and the times beside collectives those of the program.
  SELECT r.run, CAST(r.ranks AS BIGINT) AS ranks, COALESCE(s.messages, 0) AS messages, COALESCE(s.bytes, 0) AS message_bytes,
         COALESCE(s.pairs, 0) AS pairs, COALESCE(p.partners_max, 0) AS partners_max, COALESCE(n.messages, 0) AS rank_messages_max,
         COALESCE(n.bytes, 0) AS rank_bytes_max, CASE WHEN r.hash <> 'none' THEN COALESCE(f.payloads, 0) END AS payloads,
         r.unmatched_sends, r.unmatched_receives, COALESCE(c.calls, 0) AS collective_calls, COALESCE(c.bytes, 0) AS collective_bytes,
         CASE WHEN r.record = 'all' THEN r.calls END AS calls,
         CASE WHEN r.time_origin <> 'untimed' THEN r.end_ns END AS end_ns,
         CASE WHEN r.time_origin <> 'untimed' THEN t.collective_ns END AS collective_ns,
         CASE WHEN r.record = 'all' AND r.time_origin <> 'untimed' THEN t.runtime_ns END AS runtime_ns,
         CASE WHEN r.record = 'all' AND r.time_origin <> 'untimed' THEN t.mpi_ns END AS mpi_ns,
         CASE WHEN r.record = 'all' AND r.time_origin <> 'untimed' THEN t.point_to_point_ns END AS point_to_point_ns,
         CASE WHEN r.record = 'all' AND r.time_origin <> 'untimed' THEN t.completion_ns END AS completion_ns,
         CASE WHEN r.record = 'all' AND r.time_origin <> 'untimed' THEN COALESCE(l.lost_ns, 0) END AS lost_ns,
         CASE WHEN r.record = 'all' AND r.compute_clock <> 'none' THEN t.compute_ns END AS compute_ns,
         CASE WHEN r.record = 'all' AND r.compute_clock <> 'none' THEN o.compute_ns END AS compute_ns_max
  FROM runs r
  LEFT JOIN sent s ON s.run = r.run
  LEFT JOIN partners p ON p.run = r.run
  LEFT JOIN senders n ON n.run = r.run
  LEFT JOIN fingerprints f ON f.run = r.run
  LEFT JOIN (SELECT run, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(bytes) AS BIGINT) AS bytes FROM collected GROUP BY run) c ON c.run = r.run
  LEFT JOIN spent t ON t.run = r.run
  LEFT JOIN computing o ON o.run = r.run
  LEFT JOIN losses l ON l.run = r.run
  WHERE r.run IN (SELECT run FROM channels UNION SELECT run FROM profile)
),
named AS (
  -- whole stands here once, not in a SELECT for each measure: Trino would plan all that it is made of again for each.
  SELECT w.run, m.measure, m.unit, m.exact,
         CASE m.measure
           WHEN 'ranks' THEN w.ranks WHEN 'messages' THEN w.messages WHEN 'message_bytes' THEN w.message_bytes
           WHEN 'pairs' THEN w.pairs WHEN 'partners_max' THEN w.partners_max WHEN 'rank_messages_max' THEN w.rank_messages_max
           WHEN 'rank_bytes_max' THEN w.rank_bytes_max WHEN 'payloads' THEN w.payloads
           WHEN 'unmatched_sends' THEN w.unmatched_sends WHEN 'unmatched_receives' THEN w.unmatched_receives
           WHEN 'collective_calls' THEN w.collective_calls WHEN 'collective_bytes' THEN w.collective_bytes
           WHEN 'calls' THEN w.calls WHEN 'end_ns' THEN w.end_ns WHEN 'runtime_ns' THEN w.runtime_ns WHEN 'mpi_ns' THEN w.mpi_ns
           WHEN 'point_to_point_ns' THEN w.point_to_point_ns WHEN 'completion_ns' THEN w.completion_ns
           WHEN 'lost_ns' THEN w.lost_ns WHEN 'collective_ns' THEN w.collective_ns WHEN 'compute_ns' THEN w.compute_ns
           WHEN 'compute_ns_max' THEN w.compute_ns_max
         END AS value
  FROM whole w
  CROSS JOIN (VALUES ('ranks', '1', TRUE), ('messages', '1', TRUE), ('message_bytes', 'bytes', TRUE), ('pairs', '1', TRUE),
                     ('partners_max', '1', TRUE), ('rank_messages_max', '1', TRUE), ('rank_bytes_max', 'bytes', TRUE), ('payloads', '-', TRUE),
                     ('unmatched_sends', '1', TRUE), ('unmatched_receives', '1', TRUE), ('collective_calls', '1', TRUE),
                     ('collective_bytes', 'bytes', TRUE), ('calls', '1', TRUE), ('end_ns', 'ns', FALSE), ('runtime_ns', 'ns', FALSE),
                     ('mpi_ns', 'ns', FALSE), ('point_to_point_ns', 'ns', FALSE), ('completion_ns', 'ns', FALSE), ('lost_ns', 'ns', FALSE),
                     ('collective_ns', 'ns', FALSE), ('compute_ns', 'ns', FALSE), ('compute_ns_max', 'ns', FALSE)) AS m (measure, unit, exact)
),
itemized AS (
  -- Measures that have a value for each item: sizes, calls and call sites. Those of call sites have one for all items, too.
  SELECT run, 'messages' AS measure, size AS item, messages AS value, '1' AS unit
  FROM sized
  UNION ALL
  SELECT c.run, m.measure, c.call, CASE m.measure WHEN 'collective_calls' THEN c.calls ELSE c.bytes END, m.unit
  FROM collected c
  CROSS JOIN (VALUES ('collective_calls', '1'), ('collective_bytes', 'bytes')) AS m (measure, unit)
  UNION ALL
  SELECT c.run, 'calls', c.call, CAST(SUM(c.calls) AS BIGINT), '1'
  FROM called c
  JOIN runs r ON r.run = c.run
  WHERE r.record = 'all'
  GROUP BY c.run, c.call
  UNION ALL
  SELECT p.run, m.measure, CASE m.among WHEN 0 THEN '' ELSE p.item END,
         CAST(SUM(CASE m.measure WHEN 'sites' THEN p.sites WHEN 'site_calls' THEN p.calls ELSE p.bytes END) AS BIGINT), m.unit
  FROM placed p
  JOIN runs r ON r.run = p.run
  CROSS JOIN (VALUES ('sites', '1', 0), ('site_calls', '1', 0), ('site_bytes', 'bytes', 0),
                     ('sites', '1', 1), ('site_calls', '1', 1), ('site_bytes', 'bytes', 1)) AS m (measure, unit, among)
  WHERE r.record = 'all'
  GROUP BY 1, 2, 3, 5
),
measured AS (
  SELECT run, measure, '' AS item, value, unit, exact
  FROM named
  WHERE value IS NOT NULL
  UNION ALL
  SELECT run, measure, item, value, unit, TRUE AS exact
  FROM itemized
)
SELECT m.run, m.measure, m.item, CAST(m.value AS BIGINT) AS value, m.unit, m.exact, p.file, p.line
FROM measured m
LEFT JOIN placed p ON p.run = m.run AND p.item = m.item AND m.measure IN ('sites', 'site_calls', 'site_bytes')
ORDER BY m.run, m.measure, m.item
