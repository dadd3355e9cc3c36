-- summary: Which sends returned before their receive was posted, by size: where the library's eager threshold lies.
-- source: the protocols eager and rendezvous of MPI libraries; Dimemas' synchronous sends
-- needs: messages, events, ranks, times, every-call
-- origins: measured, simulated
-- param late-ns integer 0..1000000000 = 100000: Only messages count whose receive was posted so many ns or more after the send began: for less, a send
--     that just took long cannot be told from one that waited.
-- column same_host BOOLEAN -: Whether sender and receiver ran on one host.
-- column bytes BIGINT bytes: Size.
-- column late BIGINT 1: Messages by MPI_Send, or by MPI_Isend and an MPI_Wait that had begun by then, whose receive was posted late.
-- column eager BIGINT 1: Those whose send was over before.
-- column rendezvous BIGINT 1: Those whose send was not: it waited for the receiver.
-- order: same_host DESC, bytes
-- cost: Ten columns of messages and five of events; joins on (rank, seq) of the messages whose receive was posted after the send began.
-- title: Eager and rendezvous sends
-- plot: lines bytes eager+rendezvous same_host log-log
-- label bytes: message size
-- label y: messages
WITH posted_messages AS (
  SELECT src, dst, send_seq, send_start_ns, send_end_ns, recv_post_ns, send_callsite, bytes
  FROM messages
  WHERE recv_post_ns > send_start_ns
),
{{include posted_late}}
SELECT s.host = d.host AS same_host, c.bytes, CAST(COUNT(*) AS BIGINT) AS late,
       CAST(SUM(CASE WHEN c.end_ns <= c.recv_post_ns THEN 1 ELSE 0 END) AS BIGINT) AS eager,
       CAST(SUM(CASE WHEN c.end_ns <= c.recv_post_ns THEN 0 ELSE 1 END) AS BIGINT) AS rendezvous
FROM sending_calls c
JOIN ranks s ON s.rank = c.src
JOIN ranks d ON d.rank = c.dst
WHERE c.call IN ('MPI_Send', 'MPI_Send_c', 'MPI_Isend', 'MPI_Isend_c') AND c.done_call IN ('MPI_Send', 'MPI_Send_c', 'MPI_Wait')
  AND c.end_ns IS NOT NULL AND c.src <> c.dst AND c.start_ns < c.recv_post_ns AND c.recv_post_ns - c.send_start_ns >= {{late-ns}}
GROUP BY s.host = d.host, c.bytes
ORDER BY same_host DESC, c.bytes
