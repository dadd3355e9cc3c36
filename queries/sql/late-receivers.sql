-- summary: Time that sends waited for receives that had not yet been posted, by sender and receiver, longest first.
-- source: the wait state Late Receiver of Scalasca and KOJAK
-- needs: waits, messages, events, ranks, times, every-call
-- origins: measured, simulated
-- column src INTEGER -: World rank that waited.
-- column dst INTEGER -: World rank that posted its receive late.
-- column messages BIGINT 1: All messages from src to dst.
-- column waits BIGINT 1: Calls of src that waited for dst: the receive was posted while the call that completes the send (MPI_Send, MPI_Ssend,
--     MPI_Wait, MPI_Waitall, ...) was under way. Where one call completes several sends the one whose receive was posted last counts, and no
--     other. A send that returned before was eager or buffered and waited for nobody.
-- column wait_ns BIGINT ns: Time lost in them: from the call's start to the post. An eager send that took long for another reason cannot be
--     told from one that waited: this is the most that was lost. Not in it: sends that were tested for, and calls that completed a
--     receive as well (MPI_Sendrecv, MPI_Waitall) and waited for its sender: those are in late-senders.
-- column max_ns BIGINT ns: The longest of these waits.
-- column bound_ns BIGINT ns: Bound of the error of the two ranks' clock offsets together, by which each wait can be wrong; 0 where they
--     share a clock.
-- order: wait_ns DESC, src, dst
-- cost: The table waits.
-- title: Time sends waited for late receivers
-- plot: matrix src dst wait_ns
-- label src: waiting source rank
-- label dst: late destination rank
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
SELECT w.src, w.dst, p.messages, w.late_receives AS waits, w.late_receive_ns AS wait_ns, w.late_receive_max_ns AS max_ns,
       CAST(CASE WHEN s.host = d.host THEN 0 ELSE COALESCE(s.error_ns, 0) + COALESCE(d.error_ns, 0) END AS BIGINT) AS bound_ns
FROM waits w
JOIN pairs p ON p.src = w.src AND p.dst = w.dst
LEFT JOIN bounds s ON s.rank = w.src
LEFT JOIN bounds d ON d.rank = w.dst
WHERE w.late_receives > 0
ORDER BY wait_ns DESC, w.src, w.dst
