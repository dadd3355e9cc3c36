-- summary: Which message tags are used on which communicator, by how many pairs of ranks, and for how much.
-- source: message statistics by tag, as in Vampir
-- needs: messages
-- column comm INTEGER -: Communicator, an id in comms.
-- column tag INTEGER -: Message tag.
-- column messages BIGINT 1: Messages with it.
-- column bytes BIGINT bytes: Payload of those.
-- column min_bytes BIGINT bytes: The smallest of them.
-- column max_bytes BIGINT bytes: The largest of them.
-- column sources BIGINT 1: World ranks that send with it.
-- column destinations BIGINT 1: World ranks that receive with it.
-- column pairs BIGINT 1: Pairs of a source and a destination; a rank with itself is one.
-- order: bytes DESC, messages DESC, comm, tag
-- cost: The table channels; memory grows with communicators x tags x pairs.
-- title: Data sent with each tag
-- plot: bars tag bytes comm
-- label bytes: sent data
-- label comm: communicator
WITH pairs AS (
  SELECT comm, tag, src, dst, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes,
         MIN(min_bytes) AS min_bytes, MAX(max_bytes) AS max_bytes
  FROM channels
  GROUP BY comm, tag, src, dst
)
SELECT comm, tag, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes,
       MIN(min_bytes) AS min_bytes, MAX(max_bytes) AS max_bytes, CAST(COUNT(DISTINCT src) AS BIGINT) AS sources,
       CAST(COUNT(DISTINCT dst) AS BIGINT) AS destinations, CAST(COUNT(*) AS BIGINT) AS pairs
FROM pairs
GROUP BY comm, tag
ORDER BY bytes DESC, messages DESC, comm, tag
