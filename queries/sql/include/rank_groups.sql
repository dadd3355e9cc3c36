-- rank_groups(rank, first_rank, ranks, value, place): the group of each rank: its lowest rank, how many ranks it has, what these share, and
-- what groups are in the order of.
{{only by calls}}
counted AS (
  -- How often a rank makes which call. How often it probes depends on time alone.
  SELECT rank, call, COALESCE(proc_null, 0) AS proc_null, CAST(SUM(calls) AS BIGINT) AS calls
  FROM profile
  WHERE class <> 'probe'
  GROUP BY rank, call, COALESCE(proc_null, 0)
),
features AS (
  SELECT level, rank, DENSE_RANK() OVER (ORDER BY level, call, proc_null, amount) AS feature
  FROM (SELECT k.level, c.rank, c.call, c.proc_null,
               CASE k.level WHEN 0 THEN c.calls WHEN 1 THEN CAST(FLOOR(LN(CAST(GREATEST(c.calls, 1) AS DOUBLE)) / LN(2e0)) AS BIGINT) ELSE 0 END AS amount
        FROM counted c
        CROSS JOIN (VALUES (0), (1), (2)) AS k (level)) AS f
),
marks AS (
  -- Equal for ranks of the same features. Two others have the same mark by a chance of about 1 in 10^12.
  SELECT level, rank, CAST(SUM(CAST(FLOOR(SIN(CAST(feature AS DOUBLE)) * 1e12) AS BIGINT)) AS BIGINT) AS mark
  FROM features
  GROUP BY level, rank
),
finest AS (
  SELECT MIN(level) AS level
  FROM (SELECT level, COUNT(DISTINCT mark) AS groups FROM marks GROUP BY level) AS l
  WHERE groups <= 32 OR level = 2
),
valued AS (
  SELECT r.rank, COALESCE(m.mark, 0) AS value
  FROM ranks r
  LEFT JOIN (SELECT m.rank, m.mark FROM marks m JOIN finest f ON f.level = m.level) AS m ON m.rank = r.rank
),
{{end}}
{{only by communicator}}
parts_of_world AS (
  SELECT comm
  FROM comms
  GROUP BY comm
  HAVING COUNT(world_rank) > 1 AND COUNT(world_rank) < (SELECT COUNT(*) FROM ranks)
),
most_used AS (
  SELECT rank, comm, ROW_NUMBER() OVER (PARTITION BY rank ORDER BY calls DESC, comm) AS nth
  FROM (SELECT p.rank, p.comm, CAST(SUM(p.calls) AS BIGINT) AS calls
        FROM profile p
        JOIN parts_of_world w ON w.comm = p.comm
        GROUP BY p.rank, p.comm) AS u
),
valued AS (
  SELECT r.rank, CAST(COALESCE(u.comm, 0) AS BIGINT) AS value
  FROM ranks r
  LEFT JOIN most_used u ON u.rank = r.rank AND u.nth = 1
),
{{end}}
{{only by time}}
threads AS (
  -- From the end of MPI_Init to the begin of MPI_Finalize. Of the two calls themselves only failed tests before MPI_Finalize count.
  SELECT rank, thread,
         CAST(SUM(CASE WHEN call IN ('MPI_Init', 'MPI_Init_thread', 'MPI_Finalize') THEN 0 ELSE COALESCE(time_ns, 0) END) AS BIGINT)
           + CAST(SUM(CASE WHEN call IN ('MPI_Init', 'MPI_Init_thread') THEN 0 ELSE COALESCE(poll_ns, 0) END) AS BIGINT) AS mpi_ns,
         MAX(CASE WHEN call = 'MPI_Finalize' THEN first_ns ELSE last_ns END)
           - MIN(CASE WHEN call IN ('MPI_Init', 'MPI_Init_thread') THEN last_ns ELSE first_ns END) AS ran_ns
  FROM profile
  GROUP BY rank, thread
),
shares AS (
  SELECT rank, LEAST(COALESCE(CAST(FLOOR(1e1 * CAST(SUM(mpi_ns) AS BIGINT) / NULLIF(CAST(SUM(ran_ns) AS BIGINT), 0)) AS BIGINT), 0), 9) AS tenths
  FROM threads
  GROUP BY rank
),
valued AS (
  SELECT r.rank, COALESCE(t.tenths, 0) AS value
  FROM ranks r
  LEFT JOIN shares t ON t.rank = r.rank
),
{{end}}
{{only by host}}
valued AS (
  SELECT rank, CAST(host AS BIGINT) AS value
  FROM ranks
),
{{end}}
rank_groups AS (
  SELECT rank, CAST(MIN(rank) OVER (PARTITION BY value) AS INTEGER) AS first_rank, CAST(COUNT(*) OVER (PARTITION BY value) AS INTEGER) AS ranks,
         CASE WHEN {{by}} = 'calls' THEN NULL ELSE CAST(value AS INTEGER) END AS value,
         CASE WHEN {{by}} = 'time' THEN CAST(value AS INTEGER) ELSE CAST(MIN(rank) OVER (PARTITION BY value) AS INTEGER) END AS place
  FROM valued
)
