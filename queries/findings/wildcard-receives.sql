-- question: Does a rank wait for any source although another message has come that it receives later?
-- source: MPI 4.0, section 3.5: a receive with MPI_ANY_SOURCE takes the first message of its tag and communicator, not the first of all.
-- needs: messages, events, times, every-call
-- origins: measured, virtual, simulated
-- gain: bound
-- advice: Receive what comes first: MPI_ANY_TAG, a probe, or a request for each kind of message and MPI_Waitany.
-- column times BIGINT 1: How often these ranks received in a worse order than that of arrival.
-- column receives BIGINT 1: Their receives from any source in a row.
-- column wait_ns BIGINT ns: Time in these receives, of the rank that would gain most.
-- order: cost_ns DESC, callsite
-- cost: Messages joined with the receives from any source.
WITH received AS (
  SELECT e.rank, e.seq, e.thread, e.callsite, e.call, e.start_ns, e.end_ns, m.send_start_ns AS sent_ns
  FROM messages m
  JOIN events e ON e.rank = m.dst AND e.seq = m.recv_done_seq
  WHERE e.posted_any IN (1, 3) AND e.class = 'recv' AND m.recv_post_seq = m.recv_done_seq
),
{{include receive_order}}
SELECT callsite, call, string_agg(CAST(rank AS VARCHAR), ',' ORDER BY rank) AS ranks, CAST(MAX(cost_ns) AS BIGINT) AS cost_ns,
       call || ' from any source waits for one message while others have come that are received later' AS found,
       CAST(SUM(times) AS BIGINT) AS times, CAST(SUM(receives) AS BIGINT) AS receives, CAST(arg_max(time_ns, gain_ns) AS BIGINT) AS wait_ns
FROM costs
WHERE gain_ns >= cost_ns * 0.2
GROUP BY callsite, call
ORDER BY cost_ns DESC, callsite
