-- late_receivers(src, dst, callsite, start_ns, wait_ns): a row for each call that completed sends (MPI_Send, MPI_Ssend, MPI_Wait, ...) and during which
-- the receive of a message was posted: the call began before and ended after. Such a send was not eager, or it would have been
-- over. wait_ns is the time from the call's start to the post, the last of them where the call completed several. Of receives
-- posted at the same ns that of the lowest rank counts. A call that waited for a sender (late_senders, which stands before
-- this) waited for that and is not among them. docs/method/wait-states.md has the definitions.
{{include posted_late}},
late_receivers AS (
  SELECT src, dst, callsite, start_ns, wait_ns
  FROM (SELECT s.src, s.dst, s.callsite, s.start_ns, s.recv_post_ns - s.start_ns AS wait_ns,
               ROW_NUMBER() OVER (PARTITION BY s.src, s.seq ORDER BY s.recv_post_ns DESC, s.dst, s.start_ns) AS nth
        FROM sending_calls s
        WHERE s.recv_post_ns > s.start_ns AND s.recv_post_ns < s.end_ns
          AND NOT EXISTS (SELECT 1 FROM late_calls l WHERE l.dst = s.src AND l.recv_done_seq = s.seq)) AS b
  WHERE nth = 1
)
