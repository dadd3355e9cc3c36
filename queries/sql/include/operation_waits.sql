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
  FROM (SELECT DISTINCT call FROM entries) AS names
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
last_entries AS (
  SELECT comm, instance, own, rank, start_ns
  FROM (SELECT comm, instance, own, rank, start_ns,
               ROW_NUMBER() OVER (PARTITION BY comm, instance, own ORDER BY start_ns DESC, rank) AS nth
        FROM patterns) AS p
  WHERE nth = 1
),
scan_entries AS (
  SELECT comm, instance, rank, MAX(start_ns) OVER (PARTITION BY comm, instance ORDER BY comm_rank) AS start_ns
  FROM patterns
  WHERE pattern = 'early-scan' AND {{until}} = 'needed'
),
calls_inside AS (
  -- The call that completed the operation on each rank. An operation that no call completed has no row here, and does not count.
  SELECT pattern, op, comm, instance, rank, root_world, needed, request, seq, start_ns, end_ns, callsite
  FROM patterns
  WHERE request IS NULL
  UNION ALL
  SELECT p.pattern, p.op, p.comm, p.instance, p.rank, p.root_world, p.needed, p.request, c.seq, c.start_ns, c.end_ns, c.callsite
  FROM patterns p
  JOIN events c ON c.rank = p.rank AND c.seq = p.done_seq
  WHERE p.request IS NOT NULL
),
awaited AS (
  SELECT p.pattern, p.op, p.comm, p.instance, p.rank, p.request, p.seq, p.start_ns, p.end_ns, p.callsite,
         CASE WHEN {{until}} = 'last' OR p.pattern IN ('wait-at-barrier', 'wait-at-nxn') OR p.pattern = 'early-reduce' AND p.rank = p.root_world
                THEN l.rank
              WHEN p.pattern = 'late-broadcast' THEN r.rank END AS cause,
         CASE WHEN {{until}} = 'last' OR p.pattern IN ('wait-at-barrier', 'wait-at-nxn') OR p.pattern = 'early-reduce' AND p.rank = p.root_world
                THEN l.start_ns
              WHEN p.pattern = 'late-broadcast' THEN r.start_ns
              ELSE s.start_ns END AS needed_ns
  FROM calls_inside p
  LEFT JOIN last_entries l ON l.comm = p.comm AND l.instance = p.instance AND l.own = p.needed
  LEFT JOIN patterns r ON r.comm = p.comm AND r.instance = p.instance AND r.rank = p.root_world
  LEFT JOIN scan_entries s ON s.comm = p.comm AND s.instance = p.instance AND s.rank = p.rank
),
operation_waits AS (
  -- One MPI_Waitall can complete several operations: it waits for the last, and the others do not count.
  SELECT pattern, 'MPI_' || upper(substr(op, 1, 1)) || substr(op, 2) AS call, comm, instance, rank, cause, callsite, start_ns,
         CASE WHEN nth = 1 AND needed_ns > start_ns THEN LEAST(needed_ns, COALESCE(end_ns, needed_ns)) - start_ns ELSE 0 END AS wait_ns
  FROM (SELECT pattern, op, comm, instance, rank, cause, callsite, start_ns, end_ns, needed_ns, 1 AS nth
        FROM awaited
        WHERE request IS NULL
        UNION ALL
        SELECT pattern, op, comm, instance, rank, cause, callsite, start_ns, end_ns, needed_ns,
               ROW_NUMBER() OVER (PARTITION BY rank, seq ORDER BY needed_ns DESC NULLS LAST, comm, instance) AS nth
        FROM awaited
        WHERE request IS NOT NULL) AS a
)
