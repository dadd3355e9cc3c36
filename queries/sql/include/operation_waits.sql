-- operation_waits(pattern, call, comm, instance, rank, cause, callsite, start_ns, wait_ns): a row for each rank in each collective operation but
-- neighbourhood ones. wait_ns is the time that the rank was in the call that completed the operation for it (the collective itself, or the MPI_Wait of
-- a nonblocking or persistent one) before the last rank it needs had entered the operation, 0 where that was there before. cause is
-- that rank, of those that entered at the same ns the lowest, and null in scans. docs/method/wait-states.md says which ranks are
-- needed, and what until does: needed or last, see the table collective_waits. collective_rows, which stands before this, has the
-- rows of events of the operations that are looked at.
starting AS (
  -- Ranks that started persistent collectives. Usually there are none, and then makers stops at the first rows of events.
  SELECT DISTINCT rank
  FROM profile
  WHERE class = 'collective' AND call IN ('MPI_Start', 'MPI_Startall')
),
makers AS (
  -- The calls that made persistent collectives determine the operation of their starts.
  SELECT i.rank, i.seq, i.call
  FROM events i
  JOIN starting s ON s.rank = i.rank
  WHERE i.class = 'other' AND i.instance IS NOT NULL
),
entries AS (
  SELECT e.rank, e.seq, e.comm, e.instance, e.root_world, e.start_ns, e.end_ns, e.done_seq, e.request, e.callsite, COALESCE(i.call, e.call) AS call
  FROM collective_rows e
  LEFT JOIN makers i ON i.rank = e.rank AND i.seq = e.init_seq
),
ops AS (
  -- op as in include/traffic: MPI_Iallreduce, MPI_Allreduce_c and a started MPI_Allreduce_init are an allreduce. It is made of each name
  -- once, not of each row.
  SELECT call, regexp_replace(regexp_replace(regexp_replace(lower(call), '^mpix?_i?', ''), '_c$', ''), '_init$', '') AS op
  FROM (SELECT DISTINCT call FROM profile WHERE class IN ('collective', 'other')) AS names
),
member_groups AS (
  -- A rank's group, and the group whose ranks it needs: its own, or in an intercommunicator the other one.
  SELECT m.comm, m.world_rank, m.comm_rank, m.remote AS own, CASE WHEN i.comm IS NULL THEN m.remote ELSE 1 - m.remote END AS needed
  FROM comms m
  LEFT JOIN (SELECT DISTINCT comm FROM comms WHERE remote = 1) AS i ON i.comm = m.comm
  WHERE m.world_rank IS NOT NULL
),
patterns AS (
  SELECT e.rank, e.seq, e.comm, e.instance, e.root_world, e.start_ns, e.end_ns, e.done_seq, e.request, e.callsite, o.op,
         g.comm_rank, g.own, g.needed,
         CASE WHEN o.op = 'barrier' THEN 'wait-at-barrier'
              WHEN o.op IN ('bcast', 'scatter', 'scatterv') THEN 'late-broadcast'
              WHEN o.op IN ('reduce', 'gather', 'gatherv') THEN 'early-reduce'
              WHEN o.op IN ('scan', 'exscan') THEN 'early-scan'
              ELSE 'wait-at-nxn' END AS pattern
  FROM entries e
  JOIN ops o ON o.call = e.call
  JOIN member_groups g ON g.comm = e.comm AND g.world_rank = e.rank
  WHERE o.op NOT LIKE 'neighbor%'
),
entered AS (
  -- When the last rank of each group, the root and in scans the ranks up to this one entered. These are windows, not joins of patterns with
  -- itself: Trino would plan all that it is made of again for each.
  SELECT rank, seq, comm, instance, root_world, start_ns, end_ns, done_seq, request, callsite, op, own, needed, pattern,
         MAX(CASE WHEN own = 0 THEN start_ns END) OVER (PARTITION BY comm, instance) AS last_local_ns,
         MAX(CASE WHEN own = 1 THEN start_ns END) OVER (PARTITION BY comm, instance) AS last_remote_ns,
         MAX(root_world) OVER (PARTITION BY comm, instance) AS root,
         MAX(start_ns) OVER (PARTITION BY comm, instance ORDER BY CASE WHEN pattern = 'early-scan' THEN comm_rank END) AS before_ns
  FROM patterns
),
awaited AS (
  SELECT pattern, op, comm, instance, rank, request, seq, start_ns, end_ns, done_seq, callsite,
         CASE WHEN {{until}} = 'last' OR pattern IN ('wait-at-barrier', 'wait-at-nxn') OR pattern = 'early-reduce' AND rank = root_world
                THEN CASE needed WHEN 0 THEN last_local ELSE last_remote END
              WHEN pattern = 'late-broadcast' AND root_ns IS NOT NULL THEN root_world END AS cause,
         CASE WHEN {{until}} = 'last' OR pattern IN ('wait-at-barrier', 'wait-at-nxn') OR pattern = 'early-reduce' AND rank = root_world
                THEN CASE needed WHEN 0 THEN last_local_ns ELSE last_remote_ns END
              WHEN pattern = 'late-broadcast' AND root_world IS NOT NULL THEN root_ns
              WHEN pattern = 'early-scan' THEN before_ns END AS needed_ns
  FROM (SELECT rank, seq, comm, instance, root_world, start_ns, end_ns, done_seq, request, callsite, op, needed, pattern, last_local_ns,
               last_remote_ns, before_ns, MAX(CASE WHEN rank = root THEN start_ns END) OVER (PARTITION BY comm, instance) AS root_ns,
               MIN(CASE WHEN own = 0 AND start_ns = last_local_ns THEN rank END) OVER (PARTITION BY comm, instance) AS last_local,
               MIN(CASE WHEN own = 1 AND start_ns = last_remote_ns THEN rank END) OVER (PARTITION BY comm, instance) AS last_remote
        FROM entered) AS e
),
operation_waits AS (
  -- The call that completed the operation on each rank: an operation that no call completed has no row here, and does not count. One MPI_Waitall
  -- can complete several: it waits for the last, and the others do not count.
  SELECT pattern, 'MPI_' || upper(substr(op, 1, 1)) || substr(op, 2) AS call, comm, instance, rank, cause, callsite, start_ns,
         CASE WHEN nth = 1 AND needed_ns > start_ns THEN LEAST(needed_ns, COALESCE(end_ns, needed_ns)) - start_ns ELSE 0 END AS wait_ns
  FROM (SELECT pattern, op, comm, instance, rank, cause, callsite, start_ns, end_ns, needed_ns, 1 AS nth
        FROM awaited
        WHERE request IS NULL
        UNION ALL
        SELECT p.pattern, p.op, p.comm, p.instance, p.rank, p.cause, c.callsite, c.start_ns, c.end_ns, p.needed_ns,
               ROW_NUMBER() OVER (PARTITION BY p.rank, c.seq ORDER BY p.needed_ns DESC NULLS LAST, p.comm, p.instance) AS nth
        FROM awaited p
        JOIN events c ON c.rank = p.rank AND c.seq = p.done_seq
        WHERE p.request IS NOT NULL) AS a
)
