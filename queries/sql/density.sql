-- summary: Messages and bytes from every rank to every other, collectives folded in.
-- source: Riesen, Communication Patterns (2006), section 3.1
-- needs: messages, events, comms, parts
-- param collectives choice rooted|logical|tree|none = rooted: How collectives count. rooted: as fan-ins and fan-outs
--     between the root (rank 0 of the communicator where there is none) and every other rank. logical: allgathers and
--     alltoalls between the pairs that exchange data, the rest as rooted. tree: along binomial trees. none: not at all.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- column src INTEGER -: World rank that sends.
-- column dst INTEGER -: World rank that receives.
-- column messages BIGINT 1: Messages from src to dst.
-- column bytes BIGINT bytes: Payload of those messages.
-- order: src, dst
-- cost: The table channels; with collectives collective_calls and collective_parts; of messages three columns with --where.
-- title: Messages from rank to rank
-- plot: matrix src dst messages
WITH {{include traffic}}
SELECT src, dst, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
FROM traffic
GROUP BY src, dst
ORDER BY src, dst
