-- summary: Communication over time: messages and bytes, and collective operations, in equal steps of the run's time.
-- source: Pipit's comm_over_time; the timelines of Vampir and Paraver as numbers
-- needs: messages, events, activity, times
-- origins: measured, virtual, simulated
-- param bins integer 1..10000 = 50: How many steps the run's time is cut into.
-- param side choice send|receive = send: When a message counts: when its send is entered, or when its receive is complete.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- param read choice auto|rows|sums = auto: What is read: rows of messages and events, or the sums over time in activity: then steps last 2^n
--     ns and are no shorter than those of the sums. auto: sums if the run has about a million calls or more.
-- column bin INTEGER -: Step, from 0.
-- column start_ns BIGINT ns: When it begins, since the run's start.
-- column end_ns BIGINT ns: When the next one does.
-- column messages BIGINT 1: Point-to-point messages in it.
-- column bytes BIGINT bytes: Their payload.
-- column collectives BIGINT 1: Collective operations whose first rank entered in it: an operation is one, however many ranks it has.
-- column collective_bytes BIGINT bytes: What all their ranks together send in them.
-- order: bin
-- cost: Two columns of messages (where calls never returned, one of them twice) and six of the collective rows of events, or with sums a
--     few rows for each step.
-- title: Communication over time
-- plot: lines start_ns bytes+collective_bytes
-- label start_ns: start of the step
-- label bytes: messages
-- label collective_bytes: collectives
-- label y: sent data per step
WITH
{{unless read sums}}
operations AS (
  SELECT comm, instance, MIN(start_ns) AS at_ns, CAST(SUM(COALESCE(send_bytes, 0)) AS BIGINT) AS bytes
  FROM events
  WHERE class = 'collective' AND error_class IS NULL
  GROUP BY comm, instance
),
unended AS (
  -- The manifest has the end of the last call, but a call that never ended can begin after it. Usually there is none, and messages
  -- are not read to find out.
  SELECT run
  FROM runs
  WHERE in_progress > 0 OR end_ns = 0
),
{{end}}
latest AS (
  SELECT MAX(at_ns) AS last_ns
  FROM (SELECT NULLIF(end_ns, 0) AS at_ns FROM runs
{{unless read sums}}
        UNION ALL
        SELECT MAX(CASE WHEN {{side}} = 'send' THEN send_start_ns ELSE recv_end_ns END) AS at_ns
        FROM messages
        WHERE run IN (SELECT run FROM unended) AND {{where}}
        UNION ALL
        SELECT MAX(at_ns) AS at_ns FROM operations
{{end}}
       ) AS ends
),
{{include steps}},
{{only read sums}}
resolutions AS (
  SELECT rank_power, MIN(step_power) AS finest, MAX(step_power) AS coarsest
  FROM activity
  GROUP BY rank_power
),
fitted AS (
  -- The largest blocks of ranks have the fewest rows, and the shortest steps.
  SELECT l.last_ns, r.rank_power, r.finest, r.coarsest, GREATEST(MIN(p.bin), r.finest) AS step_power
  FROM latest l
  JOIN resolutions r ON r.rank_power = (SELECT MAX(rank_power) FROM resolutions)
  JOIN steps p ON p.bin <= 62 AND FLOOR(CAST(l.last_ns AS DOUBLE) / POWER(2, p.bin)) < {{bins}}
  GROUP BY l.last_ns, r.rank_power, r.finest, r.coarsest
),
{{end}}
span AS (
  -- Steps last whole ns, and the last one ends after all events.
{{unless read sums}}
  SELECT last_ns, CAST(FLOOR(CAST(last_ns AS DOUBLE) / {{bins}}) AS BIGINT) + 1 AS step_ns
  FROM latest
  WHERE last_ns IS NOT NULL
{{end}}
{{only read sums}}
  SELECT last_ns, CAST(POWER(2, step_power) AS BIGINT) AS step_ns, rank_power,
         LEAST(CAST(finest + 2 * FLOOR((step_power - finest) / 2.0) AS INTEGER), coarsest) AS read_power
  FROM fitted
{{end}}
),
counted AS (
{{unless read sums}}
  -- Exact below 2^53 ns (104 days): a time 1 ns short of a multiple of the step differs from it by 1 / step, which is more than the quotient is rounded by.
  SELECT CAST(FLOOR(CAST(at_ns AS DOUBLE) / (SELECT step_ns FROM span)) AS INTEGER) AS bin,
         COUNT(*) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes, CAST(0 AS BIGINT) AS collectives, CAST(0 AS BIGINT) AS collective_bytes
  FROM (SELECT CASE WHEN {{side}} = 'send' THEN send_start_ns ELSE recv_end_ns END AS at_ns, bytes
        FROM messages
        WHERE {{where}}) AS timed
  WHERE at_ns IS NOT NULL
  GROUP BY 1
  UNION ALL
  SELECT CAST(FLOOR(CAST(at_ns AS DOUBLE) / (SELECT step_ns FROM span)) AS INTEGER) AS bin,
         CAST(0 AS BIGINT) AS messages, CAST(0 AS BIGINT) AS bytes, COUNT(*) AS collectives, CAST(SUM(bytes) AS BIGINT) AS collective_bytes
  FROM operations
  WHERE at_ns IS NOT NULL
  GROUP BY 1
{{end}}
{{only read sums}}
  SELECT CAST(FLOOR(CAST(a.start_ns AS DOUBLE) / s.step_ns) AS INTEGER) AS bin,
         CAST(SUM(CASE a.class WHEN 'sent' THEN a.calls END) AS BIGINT) AS messages, CAST(SUM(CASE a.class WHEN 'sent' THEN a.bytes END) AS BIGINT) AS bytes,
         CAST(SUM(CASE a.class WHEN 'operations' THEN a.calls END) AS BIGINT) AS collectives,
         CAST(SUM(CASE a.class WHEN 'operations' THEN a.bytes END) AS BIGINT) AS collective_bytes
  FROM activity a
  JOIN span s ON s.read_power = a.step_power AND s.rank_power = a.rank_power
  WHERE a.class IN ('sent', 'operations')
  GROUP BY 1
{{end}}
),
binned AS (
  -- A join with counted would make the engine compute the bin of each message twice, to leave out messages outside all steps.
  SELECT b.bin, CAST(0 AS BIGINT) AS messages, CAST(0 AS BIGINT) AS bytes, CAST(0 AS BIGINT) AS collectives, CAST(0 AS BIGINT) AS collective_bytes
  FROM span s
  JOIN steps b ON b.bin < {{bins}} AND b.bin * s.step_ns <= s.last_ns
  UNION ALL
  SELECT bin, messages, bytes, collectives, collective_bytes
  FROM counted
)
SELECT b.bin, CAST(MIN(b.bin * s.step_ns) AS BIGINT) AS start_ns, CAST(MIN((b.bin + 1) * s.step_ns) AS BIGINT) AS end_ns,
       CAST(SUM(b.messages) AS BIGINT) AS messages, CAST(SUM(COALESCE(b.bytes, 0)) AS BIGINT) AS bytes,
       CAST(SUM(b.collectives) AS BIGINT) AS collectives, CAST(SUM(COALESCE(b.collective_bytes, 0)) AS BIGINT) AS collective_bytes
FROM binned b
CROSS JOIN span s
GROUP BY b.bin
ORDER BY b.bin
