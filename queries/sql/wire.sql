-- summary: The messages and collective contributions whose payloads differ between two runs, the earliest first.
-- source: MPI's rule of matching, by which the n-th message of a rank to another on a communicator with a tag is known in both runs
-- needs: messages, events
-- over: runs
-- param base text = '': Name of the run that is the base; empty: the first by name.
-- column kind VARCHAR -: message, or the collective function that a rank contributes to.
-- column rank INTEGER -: World rank that sends or contributes.
-- column peer INTEGER -: World rank that receives; null for a contribution.
-- column comm INTEGER -: Communicator.
-- column tag INTEGER -: Tag; null for a contribution.
-- column nth BIGINT 1: It is the n-th message of rank to peer with that tag on that communicator, from 1; of a contribution the
--     communicator's n-th collective operation that is recorded. Calls that make communicators, windows or files do not count.
-- column differs VARCHAR -: What differs: payload (only where both runs have hashes), bytes, missing (only the base has it) or new (only the other run has it).
-- column base_bytes BIGINT bytes: Its payload in the base; null where it is new.
-- column new_bytes BIGINT bytes: Its payload in the other run; null where it is missing.
-- column at_ns BIGINT ns: When its call began, in the base, or where that does not have it in the other run; null in an untimed run.
-- column function VARCHAR -: Function that sends or contributes; in the other run where that has it.
-- column file VARCHAR -: Source file there.
-- column line INTEGER -: Source line there.
-- order: at_ns, nth, rank, peer, comm, tag, kind
-- cost: Nine columns of messages, sorted by sender, receiver, communicator and tag; twelve of the collective rows of events, sorted by rank and
--     communicator.
WITH named AS (
  SELECT MIN(run) AS first_run, MAX(run) AS last_run
  FROM runs
),
sides AS (
  SELECT CASE WHEN {{base}} = '' THEN first_run ELSE {{base}} END AS base,
         CASE WHEN {{base}} = last_run THEN first_run ELSE last_run END AS other
  FROM named
),
numbered AS (
  SELECT run, 'message' AS kind, src AS rank, dst AS peer, comm, tag, bytes, payload_hash, send_start_ns AS at_ns, send_callsite AS callsite,
         ROW_NUMBER() OVER (PARTITION BY run, src, dst, comm, tag ORDER BY send_seq, recv_post_seq) AS nth
  FROM messages
  UNION ALL
  SELECT run, call, rank, CAST(NULL AS INTEGER), comm, CAST(NULL AS INTEGER), COALESCE(send_bytes, 0), payload_hash, start_ns, callsite,
         ROW_NUMBER() OVER (PARTITION BY run, rank, comm ORDER BY seq, instance)
  FROM events
  WHERE class = 'collective' AND instance IS NOT NULL AND comm IS NOT NULL
),
base_side AS (
  SELECT n.kind, n.rank, COALESCE(n.peer, -1) AS peer, n.comm, COALESCE(n.tag, -1) AS tag, n.nth, n.bytes, n.payload_hash, n.at_ns, n.callsite, n.run
  FROM numbered n
  JOIN sides s ON s.base = n.run
),
other_side AS (
  SELECT n.kind, n.rank, COALESCE(n.peer, -1) AS peer, n.comm, COALESCE(n.tag, -1) AS tag, n.nth, n.bytes, n.payload_hash, n.at_ns, n.callsite, n.run
  FROM numbered n
  JOIN sides s ON s.other = n.run
),
paired AS (
  SELECT COALESCE(b.kind, o.kind) AS kind, COALESCE(b.rank, o.rank) AS rank, COALESCE(b.peer, o.peer) AS peer, COALESCE(b.comm, o.comm) AS comm,
         COALESCE(b.tag, o.tag) AS tag, COALESCE(b.nth, o.nth) AS nth, b.bytes AS base_bytes, o.bytes AS new_bytes, COALESCE(b.at_ns, o.at_ns) AS at_ns,
         CASE WHEN o.run IS NULL THEN b.run ELSE o.run END AS run, CASE WHEN o.run IS NULL THEN b.callsite ELSE o.callsite END AS callsite,
         CASE WHEN b.run IS NULL THEN 'new' WHEN o.run IS NULL THEN 'missing' WHEN b.bytes <> o.bytes THEN 'bytes'
              WHEN b.payload_hash <> o.payload_hash THEN 'payload' END AS differs
  FROM base_side b
  FULL OUTER JOIN other_side o ON o.kind = b.kind AND o.rank = b.rank AND o.peer = b.peer AND o.comm = b.comm AND o.tag = b.tag AND o.nth = b.nth
)
SELECT p.kind, p.rank, CASE WHEN p.kind = 'message' THEN p.peer END AS peer, p.comm, CASE WHEN p.kind = 'message' THEN p.tag END AS tag,
       p.nth, p.differs, p.base_bytes, p.new_bytes, p.at_ns, s.function, s.file, s.line
FROM paired p
LEFT JOIN callsites s ON s.run = p.run AND s.id = p.callsite
WHERE p.differs IS NOT NULL
ORDER BY p.at_ns, p.nth, p.rank, p.peer, p.comm, p.tag, p.kind
