-- summary: Where messages stand whose payload several messages of the run have: by epoch and rank that sends, what commq detect has to look at.
-- source: Calotoiu et al. (detecting hand-written collectives): a payload that reaches few ranks is of no collective
-- needs: messages, hashes
-- param min-messages integer 1..1000000000 = 2: How many messages from a rank to another one must have a payload. A broadcast among three ranks takes two.
-- column epoch INTEGER -: Epoch; those without such messages are left out.
-- column src INTEGER -: World rank that sends.
-- column messages BIGINT 1: Messages that it sends in the epoch, to itself too.
-- column shared_messages BIGINT 1: Those to other ranks with a payload that at least min-messages such messages of the whole run have: same hash and same length. All empty
--     payloads are one.
-- column shared_bytes BIGINT bytes: Payload of those.
-- column unknown_messages BIGINT 1: Those that are not empty and have no hash.
-- order: epoch, src
-- cost: Five columns of messages, read twice. Memory grows with the different payloads (about 40 bytes each) and spills.
-- example: --min-messages 3
WITH payloads AS (
  SELECT epoch, src, bytes, CASE WHEN bytes = 0 THEN 0 ELSE payload_hash END AS payload, CASE WHEN src = dst THEN 0 ELSE 1 END AS sent
  FROM messages
),
shared AS (
  SELECT payload, bytes
  FROM payloads
  WHERE payload IS NOT NULL AND sent = 1
  GROUP BY payload, bytes
  HAVING COUNT(*) >= {{min-messages}}
),
marked AS (
  SELECT p.epoch, p.src, p.bytes, CASE WHEN p.payload IS NULL THEN 1 ELSE 0 END AS unknown, CASE WHEN s.payload IS NULL THEN 0 ELSE p.sent END AS shared
  FROM payloads p
  LEFT JOIN shared s ON s.payload = p.payload AND s.bytes = p.bytes
)
SELECT epoch, src, CAST(COUNT(*) AS BIGINT) AS messages, CAST(SUM(shared) AS BIGINT) AS shared_messages, CAST(SUM(shared * bytes) AS BIGINT) AS shared_bytes,
       CAST(SUM(unknown) AS BIGINT) AS unknown_messages
FROM marked
GROUP BY epoch, src
HAVING CAST(SUM(shared + unknown) AS BIGINT) > 0
ORDER BY epoch, src
