-- The rows of the table activity, of a run that lacks it: none. Queries then read events and messages.
SELECT 0 AS rank_power, 0 AS step_power, CAST(0 AS BIGINT) AS start_ns, 0 AS rank, 0 AS nth, 'other' AS class, CAST(0 AS BIGINT) AS calls,
       CAST(0 AS BIGINT) AS time_ns, CAST(0 AS BIGINT) AS bytes
FROM ranks
WHERE 1 = 0
