-- summary: With how many other ranks each rank communicates, how much, and with whom most.
-- source: the communication partners of a rank, as IPM and Vampir users ask for; the degree of Riesen's matrices
-- needs: messages, events, comms, parts, ranks
-- param collectives choice none|rooted|logical|tree = none: How collectives count. none: not at all. rooted: as fan-ins and
--     fan-outs between the root (rank 0 of the communicator where there is none) and every other rank. logical: allgathers
--     and alltoalls between the pairs that exchange data, the rest as rooted. tree: along binomial trees.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- column rank INTEGER -: World rank.
-- column destinations BIGINT 1: Other ranks that it sends to.
-- column sources BIGINT 1: Other ranks that it receives from.
-- column partners BIGINT 1: Other ranks that it sends to or receives from.
-- column sent_messages BIGINT 1: Messages to other ranks.
-- column sent_bytes BIGINT bytes: Payload of those.
-- column received_messages BIGINT 1: Messages from other ranks.
-- column received_bytes BIGINT bytes: Payload of those.
-- column busiest INTEGER -: The other rank with the most bytes both ways together; of several, the one with more messages, then
--     the lowest. Null where there is none.
-- column busiest_messages BIGINT 1: Messages with it, both ways.
-- column busiest_bytes BIGINT bytes: Payload of those.
-- column self_messages BIGINT 1: Messages to itself, which are in none of the other columns.
-- column self_bytes BIGINT bytes: Payload of those.
-- order: rank
-- cost: The table channels; with collectives collective_calls and collective_parts; of messages three columns with --where.
-- title: Communication partners of each rank
-- plot: bars rank partners
-- label partners: other ranks
WITH {{include traffic}},
ways AS (
  SELECT src AS rank, dst AS peer, messages AS sent, bytes AS sent_bytes, CAST(0 AS BIGINT) AS received, CAST(0 AS BIGINT) AS received_bytes
  FROM traffic
  UNION ALL
  SELECT dst AS rank, src AS peer, CAST(0 AS BIGINT) AS sent, CAST(0 AS BIGINT) AS sent_bytes, messages AS received, bytes AS received_bytes
  FROM traffic
),
peers AS (
  SELECT rank, peer, CAST(SUM(sent) AS BIGINT) AS sent, CAST(SUM(sent_bytes) AS BIGINT) AS sent_bytes, CAST(SUM(received) AS BIGINT) AS received, CAST(SUM(received_bytes) AS BIGINT) AS received_bytes
  FROM ways
  GROUP BY rank, peer
),
placed AS (
  -- place 1 is the busiest partner besides the rank itself.
  SELECT rank, peer, sent, sent_bytes, received, received_bytes, CASE WHEN rank = peer THEN 1 ELSE 0 END AS self,
         ROW_NUMBER() OVER (PARTITION BY rank, CASE WHEN rank = peer THEN 1 ELSE 0 END
                            ORDER BY sent_bytes + received_bytes DESC, sent + received DESC, peer) AS place
  FROM peers
)
SELECT r.rank,
       CAST(COUNT(CASE WHEN p.self = 0 AND p.sent > 0 THEN 1 END) AS BIGINT) AS destinations,
       CAST(COUNT(CASE WHEN p.self = 0 AND p.received > 0 THEN 1 END) AS BIGINT) AS sources,
       CAST(COUNT(CASE WHEN p.self = 0 THEN 1 END) AS BIGINT) AS partners,
       CAST(COALESCE(CAST(SUM(CASE WHEN p.self = 0 THEN p.sent END) AS BIGINT), 0) AS BIGINT) AS sent_messages,
       CAST(COALESCE(CAST(SUM(CASE WHEN p.self = 0 THEN p.sent_bytes END) AS BIGINT), 0) AS BIGINT) AS sent_bytes,
       CAST(COALESCE(CAST(SUM(CASE WHEN p.self = 0 THEN p.received END) AS BIGINT), 0) AS BIGINT) AS received_messages,
       CAST(COALESCE(CAST(SUM(CASE WHEN p.self = 0 THEN p.received_bytes END) AS BIGINT), 0) AS BIGINT) AS received_bytes,
       MAX(CASE WHEN p.self = 0 AND p.place = 1 THEN p.peer END) AS busiest,
       CAST(MAX(CASE WHEN p.self = 0 AND p.place = 1 THEN p.sent + p.received END) AS BIGINT) AS busiest_messages,
       CAST(MAX(CASE WHEN p.self = 0 AND p.place = 1 THEN p.sent_bytes + p.received_bytes END) AS BIGINT) AS busiest_bytes,
       CAST(COALESCE(CAST(SUM(CASE WHEN p.self = 1 THEN p.sent END) AS BIGINT), 0) AS BIGINT) AS self_messages,
       CAST(COALESCE(CAST(SUM(CASE WHEN p.self = 1 THEN p.sent_bytes END) AS BIGINT), 0) AS BIGINT) AS self_bytes
FROM ranks r
LEFT JOIN placed p ON p.rank = r.rank
GROUP BY r.rank
ORDER BY r.rank
