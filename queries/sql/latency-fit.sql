-- summary: Latency and bandwidth of the network, a line fitted through the times of messages of each size: time = latency + bytes / bandwidth.
-- source: the parameters L and B of Dimemas (Girona et al., equation 1), as the program's own messages had them
-- needs: transfers, messages, ranks, times
-- origins: measured, virtual, simulated
-- param where condition messages = TRUE: Which messages count: a condition on the columns of messages.
-- param through choice median|minimum = median: Which time of each size the line goes through. median: what a message of that size typically took
--     (to within 1 %). minimum: the best that it took, as ping-pong tests report.
-- column same_host BOOLEAN -: Whether sender and receiver ran on one host where the run was captured; virtual and simulated times know nodes of
--     their own.
-- column messages BIGINT 1: Messages whose time is known, as in commq query latency (timed).
-- column sizes BIGINT 1: Different sizes among them: points that the line goes through, all of the same weight.
-- column min_bytes BIGINT bytes: The smallest size.
-- column max_bytes BIGINT bytes: The largest. Outside of these two the line says nothing.
-- column latency_ns BIGINT ns: L: the line's time for no bytes; null where there is one size only. From the start of the send to the end of the receive, so the
--     software of both sides is in it, and between hosts the error of their clocks.
-- column bytes_per_s BIGINT bytes/s: B: bytes in a second by the line's slope; null where the slope is not positive.
-- column r2 DOUBLE 1: Share of the variance that the line explains; null where there is none.
-- order: same_host DESC
-- cost: The table transfers. With --where ten columns of messages, and a group for each message whose receiver waited.
WITH {{include transfer_times}},
points AS (
  SELECT same_host, bytes, messages, CASE WHEN {{through}} = 'median' THEN median_ns ELSE min_ns END AS ns
  FROM transfer_times
),
lines AS (
  SELECT same_host, CAST(SUM(messages) AS BIGINT) AS messages, COUNT(*) AS sizes, MIN(bytes) AS min_bytes, MAX(bytes) AS max_bytes,
         REGR_INTERCEPT(ns, CAST(bytes AS DOUBLE)) AS latency_ns, REGR_SLOPE(ns, CAST(bytes AS DOUBLE)) AS ns_per_byte,
         CORR(ns, CAST(bytes AS DOUBLE)) AS r
  FROM points
  GROUP BY same_host
)
SELECT same_host, CAST(messages AS BIGINT) AS messages, CAST(sizes AS BIGINT) AS sizes, min_bytes, max_bytes,
       CASE WHEN sizes > 1 THEN CAST(ROUND(latency_ns) AS BIGINT) END AS latency_ns,
       CASE WHEN sizes > 1 AND ns_per_byte > 0 THEN CAST(ROUND(1e9 / ns_per_byte) AS BIGINT) END AS bytes_per_s,
       CASE WHEN sizes > 1 AND r * r <= 1.0001 THEN ROUND(r * r, 4) END AS r2
FROM lines
ORDER BY same_host DESC
