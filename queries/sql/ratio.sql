-- summary: Point-to-point messages per rank against collective operations per rank.
-- source: Riesen, Communication Patterns (2006), section 3.3 and Figure 12
-- needs: events, ranks
-- column ranks INTEGER 1: Ranks of the run.
-- column kind VARCHAR -: point-to-point or collective.
-- column operations BIGINT 1: Messages, each once, those of a rank to itself too; collective operations, each once for each of its ranks.
-- column per_rank DOUBLE 1: Operations divided by ranks: P ranks in one barrier are one operation per rank.
-- column share DOUBLE share: Part of the two kinds' operations that are of this kind, 0 to 1.
-- order: kind DESC
-- cost: The tables channels and profile.
-- title: Point-to-point messages and collectives
-- plot: bars ranks share kind 0..1
-- label ranks: number of ranks
-- label share: share of all operations
-- label kind: kind of operation
WITH population AS (
  SELECT CAST(COUNT(*) AS INTEGER) AS ranks
  FROM ranks
),
counted AS (
  -- A run without rows of messages still records their number.
  SELECT 'point-to-point' AS kind,
         CASE WHEN (SELECT MAX(record) FROM runs) = 'collectives' THEN (SELECT MAX(messages) FROM runs)
              ELSE (SELECT COALESCE(CAST(SUM(messages) AS BIGINT), 0) FROM channels) END AS operations
  UNION ALL
  -- Calls that make a communicator, a window or a file belong to other classes, as do waits. Failed calls are no operations.
  SELECT 'collective' AS kind, (SELECT COALESCE(CAST(SUM(calls) AS BIGINT), 0) FROM profile
                                 WHERE class = 'collective' AND error_class IS NULL) AS operations
),
total AS (
  SELECT CAST(SUM(operations) AS BIGINT) AS operations
  FROM counted
)
SELECT p.ranks, c.kind, CAST(c.operations AS BIGINT) AS operations,
       CAST(c.operations AS DOUBLE) / CAST(p.ranks AS DOUBLE) AS per_rank,
       CAST(c.operations AS DOUBLE) / CAST(t.operations AS DOUBLE) AS share
FROM counted c
CROSS JOIN total t
CROSS JOIN population p
WHERE t.operations > 0
ORDER BY c.kind DESC
