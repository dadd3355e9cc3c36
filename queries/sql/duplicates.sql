-- summary: Bytes that need not have been sent: payloads that a rank sends again, to the same rank or to another, most bytes first.
-- source: the hashes of Calotoiu et al. (detecting hand-written collectives), used as a ledger of redundant bytes
-- needs: repeats, messages, hashes
-- param min-bytes integer 1..1000000000000 = 1: Leave out payloads of fewer bytes: flags and counters are equal by chance. Empty
--     messages never count.
-- param where condition messages = TRUE: Which point-to-point messages count: a condition on the columns of messages.
-- column src INTEGER -: World rank that sends.
-- column dst INTEGER -: World rank that receives; src itself for messages of a rank to itself. Only pairs with duplicates are listed.
-- column messages BIGINT 1: All messages from src to dst.
-- column bytes BIGINT bytes: Payload of those.
-- column duplicate_messages BIGINT 1: Those with a payload that src had sent before: same hash, same first eight bytes, same
--     length, same size of datatype. Collectives are not looked at.
-- column duplicate_bytes BIGINT bytes: Payload of those.
-- column again_messages BIGINT 1: Those of the duplicates whose payload had gone from src to dst before: dst had it.
-- column again_bytes BIGINT bytes: Payload of those.
-- column copied_messages BIGINT 1: The other duplicates, whose payload had gone to other ranks only: what a broadcast sends.
-- column copied_bytes BIGINT bytes: Payload of those.
-- column blank_bytes BIGINT bytes: Duplicate bytes in payloads that begin with eight zero bytes (shorter ones: are zero). Those may
--     be equal because nothing is in them yet, not because they are the same data; so may other constants, which are not known.
-- order: duplicate_bytes DESC, src, dst
-- cost: The tables repeats and channels. With --where, and in runs without that table, two columns more of all messages and seven of those
--     with a payload that comes twice; memory then grows with the different payloads (about 60 bytes each) and spills.
-- title: Data sent more than once
-- plot: matrix src dst duplicate_bytes
-- label duplicate_bytes: data sent before
WITH {{include duplicated}},
counted AS (
  SELECT src, dst, CAST(SUM(again) AS BIGINT) AS again_messages, CAST(SUM(again * bytes) AS BIGINT) AS again_bytes,
         CAST(SUM(copied) AS BIGINT) AS copied_messages, CAST(SUM(copied * bytes) AS BIGINT) AS copied_bytes,
         CAST(SUM(CASE WHEN blank = 1 THEN (again + copied) * bytes ELSE 0 END) AS BIGINT) AS blank_bytes
  FROM duplicated
  GROUP BY src, dst
  HAVING CAST(SUM(again + copied) AS BIGINT) > 0
),
totals AS (
  SELECT src, dst, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM (SELECT src, dst, messages, bytes
        FROM channels
        WHERE {{default where}}
        UNION ALL
        SELECT src, dst, COUNT(*) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
        FROM {{messages unless default where}}
        WHERE {{where}} AND NOT {{default where}}
        GROUP BY src, dst) AS s
  GROUP BY src, dst
)
SELECT c.src, c.dst, t.messages, t.bytes, c.again_messages + c.copied_messages AS duplicate_messages,
       c.again_bytes + c.copied_bytes AS duplicate_bytes, c.again_messages, c.again_bytes, c.copied_messages, c.copied_bytes, c.blank_bytes
FROM counted c
JOIN totals t ON t.src = c.src AND t.dst = c.dst
ORDER BY duplicate_bytes DESC, c.src, c.dst
