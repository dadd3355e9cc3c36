-- summary: Time that receives waited for messages that had not yet been sent, by sender and receiver, longest first.
-- source: the wait state Late Sender of Scalasca and KOJAK
-- needs: waits, messages, ranks, times
-- origins: measured, virtual, simulated
-- column src INTEGER -: World rank that sent late.
-- column dst INTEGER -: World rank that waited.
-- column messages BIGINT 1: All messages from src to dst.
-- column waits BIGINT 1: Calls of dst that waited for src: the call that completed a receive (MPI_Recv, MPI_Wait, MPI_Waitall, ...) began before
--     the message was sent. Of several messages that one call completed the one that was sent last counts, and no other.
-- column wait_ns BIGINT ns: Time lost in them: from the call's start to the send's. Not in it: receives that were tested for, and time in
--     MPI_Probe.
-- column max_ns BIGINT ns: The longest of these waits.
-- column bound_ns BIGINT ns: Bound of the error of the two ranks' clock offsets together, by which each wait can be wrong; 0 where they
--     share a clock.
-- order: wait_ns DESC, src, dst
-- cost: The table waits.
-- title: Time receives waited for late senders
-- plot: matrix src dst wait_ns
-- label src: late source rank
-- label dst: waiting destination rank
-- label wait_ns: time waited
WITH bounds AS (
  SELECT rank, host, GREATEST(COALESCE(clock_error_init_ns, 0), COALESCE(clock_error_final_ns, 0)) AS error_ns
  FROM ranks
),
pairs AS (
  SELECT src, dst, messages
  FROM waits
  WHERE messages > 0
)
SELECT w.src, w.dst, p.messages, w.late_sends AS waits, w.late_send_ns AS wait_ns, w.late_send_max_ns AS max_ns,
       CAST(CASE WHEN s.host = d.host THEN 0 ELSE COALESCE(s.error_ns, 0) + COALESCE(d.error_ns, 0) END AS BIGINT) AS bound_ns
FROM waits w
JOIN pairs p ON p.src = w.src AND p.dst = w.dst
LEFT JOIN bounds s ON s.rank = w.src
LEFT JOIN bounds d ON d.rank = w.dst
WHERE w.late_sends > 0
ORDER BY wait_ns DESC, w.src, w.dst
