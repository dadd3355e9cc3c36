-- summary: How much each two ranks exchange, both directions together, most bytes first.
-- source: the undirected graph of communication that graph partitioners and mapping tools take
-- needs: messages, events, comms, parts
-- param collectives choice none|rooted|logical|tree = none: How collectives count. none: not at all. rooted: as fan-ins and
--     fan-outs between the root (rank 0 of the communicator where there is none) and every other rank. logical: allgathers
--     and alltoalls between the pairs that exchange data, the rest as rooted. tree: along binomial trees.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- column rank INTEGER -: The lower world rank of the two.
-- column partner INTEGER -: The higher one; rank itself for messages of a rank to itself.
-- column messages BIGINT 1: Messages between them.
-- column bytes BIGINT bytes: Payload of those.
-- column messages_up BIGINT 1: Those of the messages that go from rank to partner.
-- column bytes_up BIGINT bytes: Payload of those.
-- column messages_down BIGINT 1: Those that go from partner to rank; 0 for a rank itself.
-- column bytes_down BIGINT bytes: Payload of those.
-- order: bytes DESC, messages DESC, rank, partner
-- cost: The table channels; with collectives collective_calls and collective_parts; of messages three columns with --where.
-- title: Data exchanged by pairs of ranks
-- plot: matrix rank partner bytes
-- label rank: lower rank
-- label partner: higher rank
-- label bytes: exchanged data
WITH {{include traffic}}
SELECT LEAST(src, dst) AS rank, GREATEST(src, dst) AS partner, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes,
       CAST(SUM(CASE WHEN src <= dst THEN messages ELSE 0 END) AS BIGINT) AS messages_up,
       CAST(SUM(CASE WHEN src <= dst THEN bytes ELSE 0 END) AS BIGINT) AS bytes_up,
       CAST(SUM(CASE WHEN src > dst THEN messages ELSE 0 END) AS BIGINT) AS messages_down,
       CAST(SUM(CASE WHEN src > dst THEN bytes ELSE 0 END) AS BIGINT) AS bytes_down
FROM traffic
GROUP BY LEAST(src, dst), GREATEST(src, dst)
ORDER BY bytes DESC, messages DESC, rank, partner
