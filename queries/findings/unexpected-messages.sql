-- question: Are large messages sent long before their receive is posted?
-- source: R. Keller and R. L. Graham, "Characteristics of the Unexpected Message Queue of MPI Applications" (EuroMPI 2010): the library copies
--     such a message, or does not begin to transfer it.
-- needs: messages, times
-- origins: measured
-- gain: bound
-- advice: Post the receive (MPI_Irecv) before the message is sent, so that it comes while the rank computes.
-- column messages BIGINT 1: Messages of at least 4 KiB that these ranks receive there and that were sent before the receive was posted.
-- column bytes BIGINT bytes: Their payload.
-- column early_ns BIGINT ns: Time from the send to the receive's post, of the rank that loses most.
-- order: cost_ns DESC, callsite
-- cost: Eight columns of messages. Other times than measured ones know when sends wait for receives, and no copies.
WITH early AS (
  -- Had the receive been posted when the message was sent, the call would not have had to wait for it. Up to 64 KiB a message is rather
  -- copied, at 4 GB/s, than transferred late. A message that was sent less early than the call takes may just have been under way.
  SELECT dst AS rank, recv_callsite AS callsite, bytes, recv_post_ns - send_start_ns AS early_ns,
         LEAST(recv_end_ns - recv_start_ns, CASE WHEN bytes <= 65536 THEN CAST(CAST(bytes AS DOUBLE) / 4 AS BIGINT) ELSE recv_end_ns END) AS loss_ns
  FROM messages
  WHERE bytes >= 4096 AND recv_post_ns - send_start_ns >= recv_end_ns - recv_start_ns
),
by_rank AS (
  SELECT rank, callsite, COUNT(*) AS messages, SUM(bytes) AS bytes, SUM(early_ns) AS early_ns, SUM(loss_ns) AS loss_ns
  FROM early
  GROUP BY rank, callsite
),
costs AS (
  SELECT *, MAX(loss_ns) OVER (PARTITION BY callsite) AS cost_ns
  FROM by_rank
),
calls AS (
  SELECT callsite, MIN(call) AS call
  FROM profile
  GROUP BY callsite
)
SELECT c.callsite, COALESCE(MAX(p.call), '') AS call, string_agg(CAST(c.rank AS VARCHAR), ',' ORDER BY c.rank) AS ranks,
       CAST(MAX(c.cost_ns) AS BIGINT) AS cost_ns,
       CAST(CAST(SUM(c.messages) AS BIGINT) AS VARCHAR) || ' messages of 4 KiB and more are sent before their receive is posted' AS found,
       CAST(SUM(c.messages) AS BIGINT) AS messages, CAST(SUM(c.bytes) AS BIGINT) AS bytes, CAST(arg_max(c.early_ns, c.loss_ns) AS BIGINT) AS early_ns
FROM costs c
LEFT JOIN calls p ON p.callsite = c.callsite
WHERE c.loss_ns >= c.cost_ns * 0.2 AND c.loss_ns > 0
GROUP BY c.callsite
ORDER BY cost_ns DESC, c.callsite
