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
-- cost: The tables channels, profile, waits and collective_waits; with payload hashes four columns of messages.
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
residues AS (
  -- A message's numbers modulo two primes below 2^31, so that squares fit in 64 bits.
  SELECT run, ((payload_hash % 2147483647 + 2147483647) * 48271 + CAST(src AS BIGINT) * 69621 + CAST(dst AS BIGINT) * 16807 + bytes % 2147483647) % 2147483647 AS a,
         ((payload_hash % 2147483629 + 2147483629) * 39373 + CAST(src AS BIGINT) * 40014 + CAST(dst AS BIGINT) * 40692 + bytes % 2147483629) % 2147483629 AS b
  FROM messages
  WHERE payload_hash IS NOT NULL
),
fingerprints AS (
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
  SELECT run, rank, class, CAST(SUM(COALESCE(time_ns, 0)) AS BIGINT) AS time_ns, CAST(SUM(COALESCE(compute_ns, 0)) AS BIGINT) AS compute_ns,
         MIN(first_ns) AS first_ns, MAX(last_ns) AS last_ns
  FROM program_calls
  GROUP BY run, rank, class
),
spent AS (
  SELECT run, MAX(last_ns) - MIN(first_ns) AS runtime_ns, CAST(SUM(compute_ns) AS BIGINT) AS compute_ns, CAST(SUM(time_ns) AS BIGINT) AS mpi_ns,
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
filled AS (
  -- A run without any rows has no measures.
  SELECT run, ranks, hash, record, time_origin, compute_clock, calls, unmatched_sends, unmatched_receives, end_ns
  FROM runs
  WHERE run IN (SELECT run FROM pairs UNION SELECT run FROM called)
),
measured AS (
  SELECT r.run, 'ranks' AS measure, '' AS item, CAST(r.ranks AS BIGINT) AS value, '1' AS unit, TRUE AS exact FROM filled r
  UNION ALL
  SELECT r.run, 'messages', '', COALESCE(s.messages, 0), '1', TRUE FROM filled r LEFT JOIN sent s ON s.run = r.run
  UNION ALL
  SELECT run, 'messages', size, messages, '1', TRUE FROM sized
  UNION ALL
  SELECT r.run, 'message_bytes', '', COALESCE(s.bytes, 0), 'bytes', TRUE FROM filled r LEFT JOIN sent s ON s.run = r.run
  UNION ALL
  SELECT r.run, 'pairs', '', COALESCE(s.pairs, 0), '1', TRUE FROM filled r LEFT JOIN sent s ON s.run = r.run
  UNION ALL
  SELECT r.run, 'partners_max', '', COALESCE(p.partners_max, 0), '1', TRUE FROM filled r LEFT JOIN partners p ON p.run = r.run
  UNION ALL
  SELECT r.run, 'rank_messages_max', '', COALESCE(s.messages, 0), '1', TRUE FROM filled r LEFT JOIN senders s ON s.run = r.run
  UNION ALL
  SELECT r.run, 'rank_bytes_max', '', COALESCE(s.bytes, 0), 'bytes', TRUE FROM filled r LEFT JOIN senders s ON s.run = r.run
  UNION ALL
  SELECT r.run, 'payloads', '', COALESCE(f.payloads, 0), '-', TRUE FROM filled r LEFT JOIN fingerprints f ON f.run = r.run WHERE r.hash <> 'none'
  UNION ALL
  SELECT r.run, 'unmatched_sends', '', r.unmatched_sends, '1', TRUE FROM filled r
  UNION ALL
  SELECT r.run, 'unmatched_receives', '', r.unmatched_receives, '1', TRUE FROM filled r
  UNION ALL
  SELECT r.run, 'collective_calls', '', COALESCE(CAST(SUM(c.calls) AS BIGINT), 0), '1', TRUE FROM filled r LEFT JOIN collected c ON c.run = r.run GROUP BY r.run
  UNION ALL
  SELECT run, 'collective_calls', call, calls, '1', TRUE FROM collected
  UNION ALL
  SELECT r.run, 'collective_bytes', '', COALESCE(CAST(SUM(c.bytes) AS BIGINT), 0), 'bytes', TRUE FROM filled r LEFT JOIN collected c ON c.run = r.run GROUP BY r.run
  UNION ALL
  SELECT run, 'collective_bytes', call, bytes, 'bytes', TRUE FROM collected
  UNION ALL
  SELECT r.run, 'calls', '', r.calls, '1', TRUE FROM filled r WHERE r.record = 'all'
  UNION ALL
  SELECT c.run, 'calls', c.call, CAST(SUM(c.calls) AS BIGINT), '1', TRUE FROM called c JOIN filled r ON r.run = c.run WHERE r.record = 'all' GROUP BY c.run, c.call
  UNION ALL
  SELECT p.run, 'sites', '', CAST(SUM(p.sites) AS BIGINT), '1', TRUE FROM placed p JOIN filled r ON r.run = p.run WHERE r.record = 'all' GROUP BY p.run
  UNION ALL
  SELECT p.run, 'sites', p.item, p.sites, '1', TRUE FROM placed p JOIN filled r ON r.run = p.run WHERE r.record = 'all'
  UNION ALL
  SELECT p.run, 'site_calls', '', CAST(SUM(p.calls) AS BIGINT), '1', TRUE FROM placed p JOIN filled r ON r.run = p.run WHERE r.record = 'all' GROUP BY p.run
  UNION ALL
  SELECT p.run, 'site_calls', p.item, p.calls, '1', TRUE FROM placed p JOIN filled r ON r.run = p.run WHERE r.record = 'all'
  UNION ALL
  SELECT p.run, 'site_bytes', '', CAST(SUM(p.bytes) AS BIGINT), 'bytes', TRUE FROM placed p JOIN filled r ON r.run = p.run WHERE r.record = 'all' GROUP BY p.run
  UNION ALL
  SELECT p.run, 'site_bytes', p.item, p.bytes, 'bytes', TRUE FROM placed p JOIN filled r ON r.run = p.run WHERE r.record = 'all'
  UNION ALL
  SELECT r.run, 'end_ns', '', r.end_ns, 'ns', FALSE FROM filled r WHERE r.time_origin <> 'untimed'
  UNION ALL
  SELECT s.run, 'runtime_ns', '', s.runtime_ns, 'ns', FALSE FROM spent s JOIN filled r ON r.run = s.run
  WHERE r.record = 'all' AND r.time_origin <> 'untimed' AND s.runtime_ns IS NOT NULL
  UNION ALL
  SELECT s.run, 'mpi_ns', '', s.mpi_ns, 'ns', FALSE FROM spent s JOIN filled r ON r.run = s.run WHERE r.record = 'all' AND r.time_origin <> 'untimed'
  UNION ALL
  SELECT s.run, 'point_to_point_ns', '', s.point_to_point_ns, 'ns', FALSE FROM spent s JOIN filled r ON r.run = s.run WHERE r.record = 'all' AND r.time_origin <> 'untimed'
  UNION ALL
  SELECT s.run, 'completion_ns', '', s.completion_ns, 'ns', FALSE FROM spent s JOIN filled r ON r.run = s.run WHERE r.record = 'all' AND r.time_origin <> 'untimed'
  UNION ALL
  SELECT r.run, 'lost_ns', '', COALESCE(l.lost_ns, 0), 'ns', FALSE FROM filled r LEFT JOIN losses l ON l.run = r.run
  WHERE r.record = 'all' AND r.time_origin <> 'untimed'
  UNION ALL
  SELECT s.run, 'collective_ns', '', s.collective_ns, 'ns', FALSE FROM spent s JOIN filled r ON r.run = s.run WHERE r.time_origin <> 'untimed'
  UNION ALL
  SELECT s.run, 'compute_ns', '', s.compute_ns, 'ns', FALSE FROM spent s JOIN filled r ON r.run = s.run WHERE r.record = 'all' AND r.compute_clock <> 'none'
  UNION ALL
  SELECT c.run, 'compute_ns_max', '', c.compute_ns, 'ns', FALSE FROM computing c JOIN filled r ON r.run = c.run WHERE r.record = 'all' AND r.compute_clock <> 'none'
)
SELECT m.run, m.measure, m.item, CAST(m.value AS BIGINT) AS value, m.unit, m.exact, p.file, p.line
FROM measured m
LEFT JOIN placed p ON p.run = m.run AND p.item = m.item AND m.measure IN ('sites', 'site_calls', 'site_bytes')
ORDER BY m.run, m.measure, m.item
