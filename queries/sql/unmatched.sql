-- summary: Sends and receives that were posted and never met a partner.
-- source: the invariants of a run: every message has two sides
-- needs: events, messages, every-send
-- column rank INTEGER -: World rank that posted it.
-- column seq BIGINT -: seq of the posting row in events.
-- column side VARCHAR -: send or recv: which side of the row has no partner.
-- column call VARCHAR -: The MPI function.
-- column comm INTEGER -: Communicator.
-- column peer_world INTEGER -: World rank it sends to or wants from; null for MPI_ANY_SOURCE and where it is not known.
-- column tag INTEGER -: Message tag; null for MPI_ANY_TAG and where it is not known.
-- column bytes BIGINT bytes: Payload of a send; null for a receive, which got nothing.
-- order: rank, seq, side
-- cost: Anti-joins of events with messages on (rank, seq): four columns of messages, fourteen of events; memory grows with the
--     smaller of the two and spills.
WITH posted AS (
  -- A persistent request counts when it is started, not when it is made. A cancelled one that met nobody was withdrawn, and
  -- one that returned an error, or whose completion did, is none.
  SELECT e.rank, e.seq, e.class, e.call, e.comm, e.send_world, e.send_tag, e.send_bytes, e.recv_peer, e.recv_world, e.recv_tag, e.proc_null,
         CASE WHEN e.call IN ('MPI_Mrecv', 'MPI_Imrecv', 'MPI_Mrecv_c', 'MPI_Imrecv_c') THEN e.init_seq ELSE e.seq END AS recv_post_seq
  FROM events e
  WHERE e.class IN ('send', 'recv', 'sendrecv') AND e.call NOT LIKE '%_init'
    AND e.error_class IS NULL
    AND NOT EXISTS (SELECT 1 FROM events c WHERE c.call = 'MPI_Cancel' AND c.rank = e.rank AND c.request = e.request)
    AND NOT EXISTS (SELECT 1 FROM events f WHERE f.error_class IS NOT NULL AND f.rank = e.rank AND f.seq = e.done_seq)
)
SELECT p.rank, p.seq, 'send' AS side, p.call, p.comm, p.send_world AS peer_world, p.send_tag AS tag, p.send_bytes AS bytes
FROM posted p
WHERE p.class IN ('send', 'sendrecv') AND p.send_world IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.src = p.rank AND m.send_seq = p.seq)
UNION ALL
SELECT p.rank, p.seq, 'recv' AS side, p.call, p.comm, p.recv_world AS peer_world, p.recv_tag AS tag, CAST(NULL AS BIGINT) AS bytes
FROM posted p
WHERE p.class IN ('recv', 'sendrecv') AND COALESCE(p.proc_null, 0) < 2
  AND (p.recv_peer IS NULL OR p.recv_world IS NOT NULL) -- what came from a process outside the run is no message of it
  AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.dst = p.rank AND m.recv_post_seq = p.recv_post_seq)
ORDER BY rank, seq, side
