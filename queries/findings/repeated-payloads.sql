-- question: Are there messages that the receiver has already?
-- source: the hashes of Calotoiu et al. (detecting hand-written collectives), used as a ledger of redundant bytes
-- needs: repeats, profile, transfers, hashes, times
-- origins: measured, virtual, simulated
-- gain: messages
-- advice: Send this data once and keep it, or send only what has changed.
-- column messages BIGINT 1: Messages that these ranks send at the call site. Ranks count if at least half of theirs are repeated.
-- column repeated BIGINT 1: Those whose payload went from the same rank to the same other one before. Payloads of less than 64 bytes and those that
--     begin with eight zero bytes do not count: they are often equal by chance.
-- column repeated_bytes BIGINT bytes: Payload of those.
-- order: cost_ns DESC, callsite
-- cost: The tables repeats, profile and transfers.
WITH took AS (
  -- By size. Where no receiver waited for messages of a size, their time is not known: the longest of any size.
  SELECT bytes, SUM(messages * EXP((step + 0.5) / 128.0)) / SUM(messages) AS ns
  FROM transfers
  WHERE timed = 1 AND min_ns > 0
  GROUP BY bytes
),
again AS (
  SELECT src, COALESCE(callsite, -1) AS callsite, bytes, SUM(again) AS messages
  FROM repeats
  WHERE again > 0 AND blank = 0 AND bytes >= 64
  GROUP BY src, COALESCE(callsite, -1), bytes
),
repeated AS (
  SELECT a.src, a.callsite, SUM(a.messages) AS messages, SUM(a.messages * a.bytes) AS bytes,
         SUM(a.messages * COALESCE(t.ns, (SELECT MAX(ns) FROM took), 0)) AS ns
  FROM again a
  LEFT JOIN took t ON t.bytes = a.bytes
  GROUP BY a.src, a.callsite
),
sent AS (
  SELECT rank, COALESCE(callsite, -1) AS callsite, MIN(call) AS call, SUM(sends) AS messages, SUM(send_bytes) AS bytes
  FROM profile
  WHERE sends > 0
  GROUP BY rank, COALESCE(callsite, -1)
)
SELECT NULLIF(r.callsite, -1) AS callsite, MIN(s.call) AS call,
       CASE WHEN COUNT(*) < (SELECT COUNT(*) FROM ranks) THEN string_agg(r.src, ',' ORDER BY r.src) ELSE '' END AS ranks,
       CAST(MAX(r.ns) AS BIGINT) AS cost_ns,
       format('{:,} of {:,} messages carry what their receiver got from the same rank before',
              CAST(SUM(r.messages) AS BIGINT), CAST(SUM(s.messages) AS BIGINT)) AS found,
       CAST(1 - LEAST(1.0, SUM(r.messages) / SUM(s.messages)) AS DOUBLE) AS latency,
       CAST(1 - LEAST(1.0, SUM(r.bytes) / SUM(s.bytes)) AS DOUBLE) AS bytes,
       CAST(SUM(s.messages) AS BIGINT) AS messages, CAST(SUM(r.messages) AS BIGINT) AS repeated, CAST(SUM(r.bytes) AS BIGINT) AS repeated_bytes
FROM repeated r
JOIN sent s ON s.rank = r.src AND s.callsite = r.callsite AND 2 * r.messages >= s.messages
GROUP BY r.callsite
ORDER BY cost_ns DESC, callsite
