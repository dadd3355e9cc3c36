-- summary: Messages that by their times were received before they were sent: what is left of the clocks' differences.
-- source: trace tools that need synchronised clocks; a receive cannot end before its send begins
-- needs: messages, ranks, times
-- origins: measured, virtual, simulated
-- column src INTEGER -: World rank that sent.
-- column dst INTEGER -: World rank that received.
-- column messages BIGINT 1: Messages from src to dst whose receive ends before their send begins.
-- column beyond BIGINT 1: Those of them that are more before it than bound_ns.
-- column worst_ns BIGINT ns: By how much the worst of them is before it.
-- column bound_ns BIGINT ns: Bound of the error of the two ranks' clock offsets together; 0 where they share a clock.
-- order: src, dst
-- cost: Four columns of messages.
WITH bounds AS (
  SELECT rank, host, GREATEST(COALESCE(clock_error_init_ns, 0), COALESCE(clock_error_final_ns, 0)) AS error_ns
  FROM ranks
),
backwards AS (
  SELECT m.src, m.dst, m.send_start_ns - m.recv_end_ns AS before_ns,
         CASE WHEN s.host = d.host THEN 0 ELSE s.error_ns + d.error_ns END AS bound_ns
  FROM messages m
  JOIN bounds s ON s.rank = m.src
  JOIN bounds d ON d.rank = m.dst
  WHERE m.recv_end_ns < m.send_start_ns
)
SELECT src, dst, CAST(COUNT(*) AS BIGINT) AS messages, CAST(COUNT(*) FILTER (WHERE before_ns > bound_ns) AS BIGINT) AS beyond,
       CAST(MAX(before_ns) AS BIGINT) AS worst_ns, CAST(MAX(bound_ns) AS BIGINT) AS bound_ns
FROM backwards
GROUP BY src, dst
ORDER BY src, dst
