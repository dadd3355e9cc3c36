-- summary: How much time the ranks lost waiting for others, by kind of wait: late senders, late receivers, and at collectives.
-- source: the wait states of Scalasca and KOJAK, summed up as in the metric tree of CUBE
-- needs: waits, collective_waits, messages, profile, events, comms, times, every-call
-- origins: measured, virtual, simulated
-- param by choice run|rank = run: run: a row for each kind over all ranks. rank: a row for each kind and rank.
-- param until choice needed|last = needed: Whom a rank waits for in a collective; see collective-wait.
-- param init choice leave-out|include = leave-out: Whether the time in MPI_Init, MPI_Init_thread and MPI_Finalize counts. They start and stop
--     processes, and would be most of a short run. MPI_Session_init and MPI_Session_finalize always count.
-- column state VARCHAR -: late-sender, late-receiver, and of collectives wait-at-barrier, wait-at-nxn, late-broadcast, early-reduce and
--     early-scan; docs/method/wait-states.md defines them. Kinds that did not occur have no row. all: their sum, also where it is 0. An MPI_Waitall
--     that waited for messages and for collectives counts in both.
-- column rank INTEGER -: World rank that waited; null for --by run.
-- column waits BIGINT 1: Calls that waited.
-- column wait_ns BIGINT ns: Time lost in them.
-- column mpi_share DOUBLE share: Part of the time in MPI (of all ranks, or of this one) that this is. Null where there is none.
-- column time_share DOUBLE share: Part of the whole time of their threads, from the end of MPI_Init to the start of MPI_Finalize.
-- column max_ns BIGINT ns: The longest of these waits.
-- column top_rank INTEGER -: The rank that lost most, the lowest of several; null where nobody waited.
-- column top_rank_ns BIGINT ns: What it lost.
-- order: state, rank
-- cost: The tables waits, collective_waits and profile.
-- title: Time lost waiting
-- plot: bars state wait_ns
-- label state: kind of wait
-- label wait_ns: time waited
WITH {{include program_times}},
states AS (
  SELECT 'late-sender' AS state, dst AS rank, CAST(SUM(late_sends) AS BIGINT) AS waits, CAST(SUM(late_send_ns) AS BIGINT) AS wait_ns, MAX(late_send_max_ns) AS max_ns
  FROM waits
  WHERE late_sends > 0
  GROUP BY dst
  UNION ALL
  -- In virtual time every send is eager and waits for no rank.
  SELECT 'late-receiver' AS state, src AS rank, CAST(SUM(late_receives) AS BIGINT) AS waits, CAST(SUM(late_receive_ns) AS BIGINT) AS wait_ns,
         MAX(late_receive_max_ns) AS max_ns
  FROM waits
  WHERE late_receives > 0 AND (SELECT MAX(time_origin) FROM runs) <> 'virtual'
  GROUP BY src
  UNION ALL
  SELECT pattern AS state, rank, CAST(SUM(waits) AS BIGINT) AS waits, CAST(SUM(wait_ns) AS BIGINT) AS wait_ns, MAX(max_ns) AS max_ns
  FROM collective_waits
  WHERE waits > 0 AND until = {{until}}
  GROUP BY pattern, rank
),
rank_times AS (
  SELECT rank, CAST(SUM(mpi_ns) AS BIGINT) AS mpi_ns, CAST(SUM(end_ns - begin_ns) AS BIGINT) AS time_ns
  FROM program_times
  GROUP BY rank
),
lost AS (
  SELECT state, rank, waits, wait_ns, max_ns
  FROM states
  UNION ALL
  SELECT 'all' AS state, t.rank, COALESCE(CAST(SUM(s.waits) AS BIGINT), 0) AS waits, COALESCE(CAST(SUM(s.wait_ns) AS BIGINT), 0) AS wait_ns,
         COALESCE(MAX(s.max_ns), 0) AS max_ns
  FROM rank_times t
  LEFT JOIN states s ON s.rank = t.rank
  GROUP BY t.rank
),
ranked AS (
  SELECT state, rank, CASE WHEN {{by}} = 'rank' THEN rank END AS shown, waits, wait_ns, max_ns,
         ROW_NUMBER() OVER (PARTITION BY state, CASE WHEN {{by}} = 'rank' THEN rank END ORDER BY wait_ns DESC, rank) AS nth
  FROM lost
),
summed AS (
  SELECT state, shown, CAST(SUM(waits) AS BIGINT) AS waits, CAST(SUM(wait_ns) AS BIGINT) AS wait_ns, MAX(max_ns) AS max_ns,
         MAX(CASE WHEN nth = 1 AND wait_ns > 0 THEN rank END) AS top_rank, MAX(CASE WHEN nth = 1 THEN wait_ns END) AS top_rank_ns
  FROM ranked
  GROUP BY state, shown
),
whole AS (
  SELECT CASE WHEN {{by}} = 'rank' THEN rank END AS shown, CAST(SUM(mpi_ns) AS DOUBLE) AS mpi_ns, CAST(SUM(time_ns) AS DOUBLE) AS time_ns
  FROM rank_times
  GROUP BY CASE WHEN {{by}} = 'rank' THEN rank END
)
SELECT s.state, CAST(s.shown AS INTEGER) AS rank, CAST(s.waits AS BIGINT) AS waits, s.wait_ns,
       ROUND(CAST(s.wait_ns AS DOUBLE) / NULLIF(w.mpi_ns, 0), 4) AS mpi_share,
       ROUND(CAST(s.wait_ns AS DOUBLE) / NULLIF(w.time_ns, 0), 4) AS time_share,
       CAST(s.max_ns AS BIGINT) AS max_ns, CAST(s.top_rank AS INTEGER) AS top_rank, CAST(s.top_rank_ns AS BIGINT) AS top_rank_ns
FROM summed s
JOIN whole w ON COALESCE(w.shown, -1) = COALESCE(s.shown, -1)
ORDER BY s.state, s.shown
