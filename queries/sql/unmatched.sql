-- summary: Sends and receives that were posted and never met a partner.
-- source: the invariants of a run: every message has two sides
-- needs: profile, events, messages, every-send
-- column rank INTEGER -: World rank that posted it.
-- column seq BIGINT -: seq of the posting row in events.
-- column side VARCHAR -: send or recv: which side of the row has no partner.
-- column call VARCHAR -: The MPI function.
-- column comm INTEGER -: Communicator.
-- column peer_world INTEGER -: World rank it sends to or wants from; null for MPI_ANY_SOURCE and where it is not known.
-- column tag INTEGER -: Message tag; null for MPI_ANY_TAG and where it is not known.
-- column bytes BIGINT bytes: Payload of a send; null for a receive, which got nothing.
-- order: rank, seq, side
-- cost: The tables profile and channels. Of ranks whose counts differ also anti-joins of events with messages on (rank, seq), over the
--     stretches of seq in which they do.
WITH posted_counts AS (
  SELECT rank, CAST(SUM(CASE WHEN class IN ('send', 'sendrecv') AND COALESCE(proc_null, 0) IN (0, 2) THEN calls ELSE 0 END) AS BIGINT) AS sends,
         CAST(SUM(CASE WHEN class IN ('recv', 'sendrecv') AND COALESCE(proc_null, 0) < 2 THEN calls ELSE 0 END) AS BIGINT) AS receives
  FROM profile
  GROUP BY rank
),
met_counts AS (
  SELECT src, dst, CAST(SUM(messages) AS BIGINT) AS messages
  FROM channels
  GROUP BY src, dst
),
differing AS (
  -- Each message has a row of events on both sides. If a rank has as many rows as messages, every row is matched. Rows that count here
  -- but are not posts (a cancelled receive, a send to another run) only cost a closer check.
  SELECT rank
  FROM (SELECT rank, sends, receives
        FROM posted_counts
        UNION ALL
        SELECT CASE k.receives WHEN 0 THEN m.src ELSE m.dst END AS rank, CASE k.receives WHEN 0 THEN -m.messages ELSE 0 END AS sends,
               CASE k.receives WHEN 0 THEN 0 ELSE -m.messages END AS receives
        FROM met_counts m
        CROSS JOIN (VALUES (0), (1)) AS k (receives)) AS counts
  GROUP BY rank
  HAVING CAST(SUM(sends) AS BIGINT) <> 0 OR CAST(SUM(receives) AS BIGINT) <> 0
),
sides AS (
  -- The rows and the messages of those ranks, by side. post_seq is the seq of a message's post.
  SELECT s.rank, s.side, s.post_seq, s.posts
  FROM (SELECT rank, 'send' AS side, seq AS post_seq, 1 AS posts
        FROM events
        WHERE class IN ('send', 'sendrecv') AND send_world IS NOT NULL AND call NOT LIKE '%_init'
        UNION ALL
        SELECT rank, 'recv' AS side,
               COALESCE(CASE WHEN call IN ('MPI_Mrecv', 'MPI_Imrecv', 'MPI_Mrecv_c', 'MPI_Imrecv_c') THEN init_seq END, seq) AS post_seq, 1 AS posts
        FROM events
        WHERE class IN ('recv', 'sendrecv') AND COALESCE(proc_null, 0) < 2 AND call NOT LIKE '%_init'
        UNION ALL
        SELECT src AS rank, 'send' AS side, send_seq AS post_seq, -1 AS posts
        FROM messages
        UNION ALL
        SELECT dst AS rank, 'recv' AS side, recv_post_seq AS post_seq, -1 AS posts
        FROM messages) AS s
  JOIN differing d ON d.rank = s.rank
),
stretches AS (
  SELECT rank, side, post_seq - post_seq % 4096 AS first_seq
  FROM sides
  GROUP BY rank, side, post_seq - post_seq % 4096
  HAVING CAST(SUM(posts) AS BIGINT) <> 0
),
posted AS (
  -- A persistent request counts when it is started, not when it is made. A cancelled one that met nobody was withdrawn, and
  -- one that returned an error is none, nor one that failed when it was completed.
  SELECT e.rank, e.seq, e.class, e.call, e.comm, e.send_world, e.send_tag, e.send_bytes, e.recv_peer, e.recv_world, e.recv_tag, e.proc_null,
         e.request, e.done_seq,
         CASE WHEN e.call IN ('MPI_Mrecv', 'MPI_Imrecv', 'MPI_Mrecv_c', 'MPI_Imrecv_c') THEN e.init_seq ELSE e.seq END AS recv_post_seq
  FROM events e
  JOIN differing d ON d.rank = e.rank
  WHERE e.class IN ('send', 'recv', 'sendrecv') AND e.call NOT LIKE '%_init' AND e.error_class IS NULL
),
unmet AS (
  SELECT p.rank, p.seq, 'send' AS side, p.call, p.comm, p.send_world AS peer_world, p.send_tag AS tag, p.send_bytes AS bytes, p.request, p.done_seq
  FROM posted p
  JOIN stretches s ON s.rank = p.rank AND s.side = 'send' AND s.first_seq = p.seq - p.seq % 4096
  WHERE p.class IN ('send', 'sendrecv') AND p.send_world IS NOT NULL
    AND NOT EXISTS (SELECT 1
                    FROM messages m
                    JOIN stretches n ON n.rank = m.src AND n.side = 'send' AND n.first_seq = m.send_seq - m.send_seq % 4096
                    WHERE m.src = p.rank AND m.send_seq = p.seq)
  UNION ALL
  SELECT p.rank, p.seq, 'recv' AS side, p.call, p.comm, p.recv_world AS peer_world, p.recv_tag AS tag, CAST(NULL AS BIGINT) AS bytes, p.request, p.done_seq
  FROM posted p
  JOIN stretches s ON s.rank = p.rank AND s.side = 'recv' AND s.first_seq = COALESCE(p.recv_post_seq, p.seq) - COALESCE(p.recv_post_seq, p.seq) % 4096
  WHERE p.class IN ('recv', 'sendrecv') AND COALESCE(p.proc_null, 0) < 2
    AND (p.recv_peer IS NULL OR p.recv_world IS NOT NULL) -- what came from a process outside the run is no message of it
    AND NOT EXISTS (SELECT 1
                    FROM messages m
                    JOIN stretches n ON n.rank = m.dst AND n.side = 'recv' AND n.first_seq = m.recv_post_seq - m.recv_post_seq % 4096
                    WHERE m.dst = p.rank AND m.recv_post_seq = p.recv_post_seq)
),
ends AS (
  -- Calls that cancelled or failed a request, on ranks that may have unmatched posts.
  SELECT e.rank, e.seq, e.call, e.request, e.error_class
  FROM events e
  JOIN (SELECT DISTINCT rank FROM stretches) AS u ON u.rank = e.rank
  WHERE e.call = 'MPI_Cancel' OR e.error_class IS NOT NULL
)
SELECT u.rank, u.seq, u.side, u.call, u.comm, u.peer_world, u.tag, u.bytes
FROM unmet u
WHERE NOT EXISTS (SELECT 1 FROM ends c WHERE c.call = 'MPI_Cancel' AND c.rank = u.rank AND c.request = u.request)
  AND (u.side = 'send' AND u.bytes IS NOT NULL -- a send that failed has no bytes, one beside it in the same call may have
       OR NOT EXISTS (SELECT 1 FROM ends f WHERE f.error_class IS NOT NULL AND f.rank = u.rank AND f.seq = u.done_seq))
ORDER BY u.rank, u.seq, u.side
