-- question: Does a rank wait for requests in another order than their messages come?
-- source: MPI 4.0, section 3.7.5: MPI_Waitany and MPI_Waitsome give the requests that are complete, so that their data can be worked on while
--     others are open.
-- needs: messages, events, times, every-call
-- origins: measured, virtual, simulated
-- gain: bound
-- advice: Take requests as they complete: MPI_Waitany or MPI_Waitsome in place of MPI_Wait on one after the other.
-- column times BIGINT 1: How often these ranks waited for requests in a worse order than that of arrival.
-- column waits BIGINT 1: Their calls of MPI_Wait.
-- column wait_ns BIGINT ns: Time in these calls, of the rank that would gain most.
-- order: cost_ns DESC, callsite
-- cost: Messages joined with the calls of MPI_Wait.
WITH received AS (
  SELECT e.rank, e.seq, e.thread, e.callsite, e.call, e.start_ns, e.end_ns, m.send_start_ns AS sent_ns
  FROM messages m
  JOIN events e ON e.rank = m.dst AND e.seq = m.recv_done_seq
  WHERE e.call = 'MPI_Wait'
),
{{include receive_order}}
SELECT callsite, call, string_agg(CAST(rank AS VARCHAR), ',' ORDER BY rank) AS ranks, CAST(MAX(cost_ns) AS BIGINT) AS cost_ns,
       'MPI_Wait waits for a request while later ones are complete, and the work on their data could be done meanwhile' AS found,
       CAST(SUM(times) AS BIGINT) AS times, CAST(SUM(receives) AS BIGINT) AS waits, CAST(arg_max(time_ns, gain_ns) AS BIGINT) AS wait_ns
FROM costs
WHERE gain_ns >= cost_ns * 0.2
GROUP BY callsite, call
ORDER BY cost_ns DESC, callsite
