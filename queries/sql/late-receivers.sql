-- summary: Time that sends waited for receives that had not yet been posted, by sender and receiver, longest first.
-- source: the wait state Late Receiver of Scalasca and KOJAK
-- needs: messages, events, ranks, times, every-call
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
-- cost: Thirteen columns of messages and seven of events; joins on (rank, seq) of the messages whose receive was posted after the
--     send began.
-- plot: matrix src dst wait_ns
WITH {{include late_senders}},
{{include late_receivers}},
waited AS (
  SELECT src, dst, COUNT(*) AS waits, CAST(SUM(wait_ns) AS BIGINT) AS wait_ns, MAX(wait_ns) AS max_ns
  FROM late_receivers
  GROUP BY src, dst
),
bounds AS (
  SELECT rank, GREATEST(COALESCE(clock_error_init_ns, 0), COALESCE(clock_error_final_ns, 0)) AS error_ns
  FROM ranks
),
pairs AS (
  SELECT src, dst, COUNT(*) AS messages
  FROM messages
  GROUP BY src, dst
)
SELECT w.src, w.dst, CAST(p.messages AS BIGINT) AS messages, CAST(w.waits AS BIGINT) AS waits, CAST(w.wait_ns AS BIGINT) AS wait_ns,
       CAST(w.max_ns AS BIGINT) AS max_ns, CAST(COALESCE(s.error_ns, 0) + COALESCE(d.error_ns, 0) AS BIGINT) AS bound_ns
FROM waited w
JOIN pairs p ON p.src = w.src AND p.dst = w.dst
LEFT JOIN bounds s ON s.rank = w.src
LEFT JOIN bounds d ON d.rank = w.dst
ORDER BY wait_ns DESC, w.src, w.dst
