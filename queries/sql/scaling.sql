-- summary: How a measure grows over several runs, with the law of the chosen form fitted to it.
-- source: Riesen, Communication Patterns (2006), sections 3.3 to 3.5, which compare node counts and classes; Panadero et al., PAS2P, which
--     fits volumes over node counts
-- needs: events, profile, ranks
-- over: runs
-- param measure choice messages|bytes|messages-per-rank|bytes-per-rank|mean-message-bytes|partners-max|collectives-per-rank|collective-bytes|ratio|collective-share|calls-per-rank|point-to-point-ns|completion-ns|collective-ns|compute-ns|runtime-ns|end-ns = messages:
--     What is measured. messages, bytes: of all point-to-point messages together. partners-max: with how many other ranks the one
--     with the most exchanges messages. collectives-per-rank: operations, as ratio counts them. collective-bytes: what all ranks send
--     in them. ratio: messages per collective operation. collective-share: the part of the two that are collectives.
--     point-to-point-ns, completion-ns, collective-ns, compute-ns: a rank's time in sends and receives, in MPI_Wait and the
--     like, in collectives and outside MPI, the mean over ranks. runtime-ns: from the first rank's end of MPI_Init to the last
--     rank's start of MPI_Finalize. end-ns: from the run's start to its end, with both.
-- param by choice ranks|class|label = ranks: What it is measured against. class: the class in the run's name APP.CLASS.RANKS as a
--     number, S 1, W 2, A 3, B 4, C 5, D 6, E 7, F 8. label: the run's label, where it is a number.
-- param form choice power|log|linear = power: The form of the law, which is not compared with others (commq fit chooses one). power: y = constant * x ^ slope. log: y = constant + slope * ln(x). linear:
--     y = constant + slope * x.
-- column series VARCHAR -: The runs that are fitted together: those of one program and class; against the class, those of one program and
--     number of ranks. Times of different origins are not fitted together.
-- column run VARCHAR -: The run.
-- column ranks INTEGER 1: Its ranks.
-- column x DOUBLE 1: What it is measured against; null where the run's name or label does not say.
-- column y DOUBLE 1: The measure; null where the run does not hold it.
-- column fitted DOUBLE 1: The law at x. Null, as the law's numbers are, where points have fewer than two different x.
-- column slope DOUBLE 1: Slope of the law: how much y grows with ln(x) or x, and for power the exponent.
-- column slope_low DOUBLE 1: Lower end of the slope's 95 % confidence interval; null for fewer than three points.
-- column slope_high DOUBLE 1: Upper end of the interval.
-- column constant DOUBLE 1: Constant of the law.
-- column r2 DOUBLE 1: Coefficient of determination, for power that of the logarithms: 1 where the law goes through every point.
-- column points BIGINT 1: Runs that the law is fitted to: those with x and y, above 0 where their logarithm is taken.
-- order: series, x, run
-- cost: What the measure needs: nothing but manifests, or the tables channels and profile.
-- example: --measure bytes-per-rank --form log --format csv
-- title: Scaling of {measure}
-- plot: points x y fitted series log-log
-- axis x: by
-- axis y: measure
WITH population AS (
  SELECT run, CAST(COUNT(*) AS BIGINT) AS ranks
  FROM ranks
  GROUP BY run
),
sent AS (
  SELECT run, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM channels
  WHERE {{measure}} IN ('messages', 'bytes', 'messages-per-rank', 'bytes-per-rank', 'mean-message-bytes', 'ratio', 'collective-share')
  GROUP BY run
),
pairs AS (
  SELECT DISTINCT run, src, dst
  FROM channels
  WHERE {{measure}} = 'partners-max' AND src <> dst
),
partners AS (
  SELECT run, MAX(partners) AS partners_max
  FROM (SELECT run, rank, CAST(COUNT(*) AS BIGINT) AS partners
        FROM (SELECT run, src AS rank, dst AS peer FROM pairs
              UNION
              SELECT run, dst AS rank, src AS peer FROM pairs) both_ways
        GROUP BY run, rank) by_rank
  GROUP BY run
),
spent AS (
  SELECT run, class, CAST(SUM(CASE WHEN error_class IS NULL THEN calls ELSE 0 END) AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN error_class IS NULL THEN send_bytes END) AS BIGINT) AS send_bytes,
         CAST(SUM(time_ns) AS BIGINT) AS ns, CAST(SUM(compute_ns) AS BIGINT) AS compute_ns
  FROM profile
  WHERE {{measure}} IN ('collectives-per-rank', 'collective-bytes', 'ratio', 'collective-share') AND class = 'collective'
     OR {{measure}} IN ('point-to-point-ns', 'completion-ns', 'collective-ns', 'compute-ns')
  GROUP BY run, class
),
done AS (
  SELECT run,
         CAST(SUM(CASE WHEN class = 'collective' THEN calls ELSE 0 END) AS BIGINT) AS collectives,
         CAST(SUM(CASE WHEN class = 'collective' THEN COALESCE(send_bytes, 0) ELSE 0 END) AS BIGINT) AS collective_bytes,
         CAST(SUM(CASE WHEN class IN ('send', 'recv', 'sendrecv') THEN ns ELSE 0 END) AS BIGINT) AS point_to_point_ns,
         CAST(SUM(CASE WHEN class = 'complete' THEN ns ELSE 0 END) AS BIGINT) AS completion_ns,
         CAST(SUM(CASE WHEN class = 'collective' THEN ns ELSE 0 END) AS BIGINT) AS collective_ns,
         CAST(SUM(compute_ns) AS BIGINT) AS compute_ns
  FROM spent
  GROUP BY run
),
proper AS (
  SELECT run, MAX(CASE WHEN call = 'MPI_Finalize' THEN first_ns ELSE last_ns END)
              - MIN(CASE WHEN call IN ('MPI_Init', 'MPI_Init_thread') THEN last_ns ELSE first_ns END) AS runtime_ns
  FROM profile
  WHERE {{measure}} = 'runtime-ns'
  GROUP BY run
),
counted AS (
  -- A run without rows of messages still records their number. Other unrecorded values are unknown.
  SELECT r.run, r.app, r.class, r.label, r.time_origin, p.ranks, r.calls,
         CASE WHEN r.record = 'collectives' THEN r.messages ELSE COALESCE(s.messages, 0) END AS messages,
         CASE WHEN r.record = 'collectives' THEN r.message_bytes ELSE COALESCE(s.bytes, 0) END AS bytes,
         CASE WHEN r.record <> 'collectives' THEN COALESCE(t.partners_max, 0) END AS partners_max,
         COALESCE(d.collectives, 0) AS collectives, COALESCE(d.collective_bytes, 0) AS collective_bytes,
         CASE WHEN r.record = 'all' AND r.time_origin <> 'untimed' THEN d.point_to_point_ns END AS point_to_point_ns,
         CASE WHEN r.record = 'all' AND r.time_origin <> 'untimed' THEN d.completion_ns END AS completion_ns,
         CASE WHEN r.time_origin <> 'untimed' THEN d.collective_ns END AS collective_ns,
         CASE WHEN r.record = 'all' THEN d.compute_ns END AS compute_ns,
         CASE WHEN r.record = 'all' AND r.time_origin <> 'untimed' THEN q.runtime_ns END AS runtime_ns,
         CASE WHEN r.time_origin <> 'untimed' THEN r.end_ns END AS end_ns
  FROM runs r
  JOIN population p ON p.run = r.run
  LEFT JOIN sent s ON s.run = r.run
  LEFT JOIN partners t ON t.run = r.run
  LEFT JOIN done d ON d.run = r.run
  LEFT JOIN proper q ON q.run = r.run
),
fractions AS (
  -- Every measure is a ratio of two numbers.
  SELECT run, ranks,
         COALESCE(app, NULLIF(regexp_replace(run, '\W*\d+$', ''), ''), run)
         || CASE WHEN {{by}} = 'class' THEN '.' || CAST(ranks AS VARCHAR) WHEN class IS NOT NULL THEN '.' || class ELSE '' END
         || CASE WHEN {{measure}} IN ('point-to-point-ns', 'completion-ns', 'collective-ns', 'compute-ns', 'runtime-ns', 'end-ns') THEN ' ' || time_origin
                 ELSE '' END AS series,
         CASE {{by}} WHEN 'ranks' THEN CAST(ranks AS DOUBLE)
                     WHEN 'class' THEN CASE WHEN length(class) = 1 THEN CAST(NULLIF(strpos('SWABCDEF', class), 0) AS DOUBLE) END
                     ELSE TRY_CAST(label AS DOUBLE) END AS x,
         CASE {{measure}} WHEN 'messages' THEN messages WHEN 'messages-per-rank' THEN messages WHEN 'ratio' THEN messages
                          WHEN 'bytes' THEN bytes WHEN 'bytes-per-rank' THEN bytes WHEN 'mean-message-bytes' THEN bytes
                          WHEN 'partners-max' THEN partners_max
                          WHEN 'collectives-per-rank' THEN collectives WHEN 'collective-share' THEN collectives
                          WHEN 'collective-bytes' THEN collective_bytes
                          WHEN 'calls-per-rank' THEN calls
                          WHEN 'point-to-point-ns' THEN point_to_point_ns WHEN 'completion-ns' THEN completion_ns
                          WHEN 'collective-ns' THEN collective_ns WHEN 'compute-ns' THEN compute_ns
                          WHEN 'runtime-ns' THEN runtime_ns WHEN 'end-ns' THEN end_ns END AS above,
         CASE WHEN {{measure}} IN ('messages', 'bytes', 'partners-max', 'collective-bytes', 'runtime-ns', 'end-ns') THEN 1
              WHEN {{measure}} = 'mean-message-bytes' THEN messages
              WHEN {{measure}} = 'ratio' THEN collectives
              WHEN {{measure}} = 'collective-share' THEN messages + collectives
              ELSE ranks END AS below
  FROM counted
),
measured AS (
  SELECT series, run, ranks, x, CAST(above AS DOUBLE) / CAST(NULLIF(below, 0) AS DOUBLE) AS y
  FROM fractions
),
bent AS (
  -- In u and v every law is a straight line.
  SELECT series, run, x,
         CASE WHEN {{form}} = 'linear' THEN x WHEN x > 0 THEN LN(x) END AS u,
         CASE WHEN {{form}} <> 'power' THEN y WHEN y > 0 THEN LN(y) END AS v
  FROM measured
),
lines AS (
  SELECT series, CAST(COUNT(*) AS BIGINT) AS points, regr_slope(v, u) AS slope, regr_intercept(v, u) AS intercept,
         VAR_POP(u) AS var_u, VAR_POP(v) AS var_v
  FROM bent
  WHERE u IS NOT NULL AND v IS NOT NULL
  GROUP BY series
  HAVING COUNT(DISTINCT u) >= 2
),
residuals AS (
  -- The mean of the squared distances from the line.
  SELECT b.series, AVG((b.v - l.intercept - l.slope * b.u) * (b.v - l.intercept - l.slope * b.u)) AS var_residual
  FROM bent b
  JOIN lines l ON l.series = b.series
  WHERE b.u IS NOT NULL AND b.v IS NOT NULL
  GROUP BY b.series
),
quantiles AS (
  -- Student's t at 0.975, by degrees of freedom.
  SELECT freedom, CAST(t AS DOUBLE) AS t
  FROM (VALUES (1, 12.706205), (2, 4.302653), (3, 3.182446), (4, 2.776445), (5, 2.570582), (6, 2.446912), (7, 2.364624), (8, 2.306004),
               (9, 2.262157), (10, 2.228139), (11, 2.200985), (12, 2.178813), (13, 2.160369), (14, 2.144787), (15, 2.131450),
               (16, 2.119905), (17, 2.109816), (18, 2.100922), (19, 2.093024), (20, 2.085963), (21, 2.079614), (22, 2.073873),
               (23, 2.068658), (24, 2.063899), (25, 2.059539), (26, 2.055529), (27, 2.051831), (28, 2.048407), (29, 2.045230),
               (30, 2.042272)) AS q (freedom, t)
),
errors AS (
  -- For more than 30 degrees of freedom t comes from its expansion in their inverse, to six digits.
  SELECT l.series, l.points, l.slope, l.intercept, l.var_v, r.var_residual,
         COALESCE(q.t, 1.959964E0 + 2.372271E0 / CAST(l.points - 2 AS DOUBLE) + 2.822499E0 / POWER(CAST(l.points - 2 AS DOUBLE), 2)
                       + 2.555850E0 / POWER(CAST(l.points - 2 AS DOUBLE), 3)) AS t,
         SQRT(r.var_residual / (CAST(l.points - 2 AS DOUBLE) * l.var_u)) AS error
  FROM lines l
  JOIN residuals r ON r.series = l.series
  LEFT JOIN quantiles q ON q.freedom = l.points - 2
),
fits AS (
  SELECT series, points, slope, intercept,
         CASE WHEN points > 2 THEN slope - t * error END AS slope_low, CASE WHEN points > 2 THEN slope + t * error END AS slope_high,
         CASE WHEN var_v > 0 THEN 1 - var_residual / CAST(var_v AS DOUBLE) ELSE CAST(1 AS DOUBLE) END AS r2
  FROM errors
)
SELECT m.series, m.run, CAST(m.ranks AS INTEGER) AS ranks, m.x, m.y,
       CASE WHEN {{form}} = 'linear' THEN f.intercept + f.slope * m.x
            WHEN m.x > 0 AND {{form}} = 'log' THEN f.intercept + f.slope * LN(m.x)
            WHEN m.x > 0 THEN EXP(f.intercept + f.slope * LN(m.x)) END AS fitted,
       f.slope, f.slope_low, f.slope_high, CASE WHEN {{form}} = 'power' THEN EXP(f.intercept) ELSE f.intercept END AS constant, f.r2,
       COALESCE(f.points, 0) AS points
FROM measured m
LEFT JOIN fits f ON f.series = m.series
ORDER BY m.series, m.x, m.run
