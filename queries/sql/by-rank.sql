-- summary: What each rank sends and receives: point-to-point messages, collectives and one-sided calls.
-- source: Pipit's comm_by_process, with collectives and one-sided communication beside it
-- needs: messages, profile, ranks
-- column rank INTEGER -: World rank.
-- column sent_messages BIGINT 1: Point-to-point messages that it sent, those to itself too.
-- column sent_bytes BIGINT bytes: Payload of those.
-- column received_messages BIGINT 1: Point-to-point messages that it received, those from itself too.
-- column received_bytes BIGINT bytes: Payload of those.
-- column collectives BIGINT 1: Collective operations that it took part in; constructors of communicators, one-sided calls, files
--     and calls that returned an error are none.
-- column collective_send_bytes BIGINT bytes: Payload that it gave to them, by its own arguments; unknown bytes add
--     nothing.
-- column collective_recv_bytes BIGINT bytes: Payload that it got from them, by its own arguments; unknown bytes add
--     nothing.
-- column one_sided BIGINT 1: Puts, gets and accumulates that it made, without those to MPI_PROC_NULL or with an error; not those that others made to its windows.
-- column one_sided_send_bytes BIGINT bytes: Payload that they took from it; unknown bytes add nothing.
-- column one_sided_recv_bytes BIGINT bytes: Payload that they brought to it; unknown bytes add nothing.
-- order: rank
-- cost: The tables channels and profile.
-- title: What each rank sends
-- plot: bars rank sent_bytes+collective_send_bytes+one_sided_send_bytes
-- label sent_bytes: messages
-- label collective_send_bytes: collectives
-- label one_sided_send_bytes: one-sided calls
-- label y: sent data
WITH pairs AS (
  SELECT src, dst, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM channels
  GROUP BY src, dst
),
sent AS (
  SELECT src AS rank, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM pairs
  GROUP BY src
),
received AS (
  SELECT dst AS rank, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM pairs
  GROUP BY dst
),
operated AS (
  SELECT rank, CAST(SUM(calls) AS BIGINT) AS collectives, CAST(SUM(COALESCE(send_bytes, 0)) AS BIGINT) AS collective_send_bytes,
         CAST(SUM(COALESCE(recv_bytes, 0)) AS BIGINT) AS collective_recv_bytes
  FROM profile
  WHERE class = 'collective' AND error_class IS NULL
  GROUP BY rank
),
others AS (
  -- Calls that synchronise have no bytes.
  SELECT rank, CAST(SUM(calls) AS BIGINT) AS one_sided, CAST(SUM(COALESCE(send_bytes, 0)) AS BIGINT) AS one_sided_send_bytes,
         CAST(SUM(COALESCE(recv_bytes, 0)) AS BIGINT) AS one_sided_recv_bytes
  FROM profile
  WHERE class = 'rma' AND error_class IS NULL AND COALESCE(proc_null, 0) = 0 AND COALESCE(send_bytes, recv_bytes) IS NOT NULL
  GROUP BY rank
)
SELECT r.rank, CAST(COALESCE(s.messages, 0) AS BIGINT) AS sent_messages, CAST(COALESCE(s.bytes, 0) AS BIGINT) AS sent_bytes,
       CAST(COALESCE(d.messages, 0) AS BIGINT) AS received_messages, CAST(COALESCE(d.bytes, 0) AS BIGINT) AS received_bytes,
       CAST(COALESCE(c.collectives, 0) AS BIGINT) AS collectives,
       CAST(COALESCE(c.collective_send_bytes, 0) AS BIGINT) AS collective_send_bytes,
       CAST(COALESCE(c.collective_recv_bytes, 0) AS BIGINT) AS collective_recv_bytes,
       CAST(COALESCE(o.one_sided, 0) AS BIGINT) AS one_sided,
       CAST(COALESCE(o.one_sided_send_bytes, 0) AS BIGINT) AS one_sided_send_bytes,
       CAST(COALESCE(o.one_sided_recv_bytes, 0) AS BIGINT) AS one_sided_recv_bytes
FROM ranks r
LEFT JOIN sent s ON s.rank = r.rank
LEFT JOIN received d ON d.rank = r.rank
LEFT JOIN operated c ON c.rank = r.rank
LEFT JOIN others o ON o.rank = r.rank
ORDER BY r.rank
