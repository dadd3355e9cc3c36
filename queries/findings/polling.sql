-- question: Does a rank spend its time in tests and probes that find nothing?
-- source: MPI 4.0, section 3.7.3: a test that finds nothing returns at once; time in it is lost to work that could be done meanwhile.
-- needs: events, times, every-call
-- origins: measured, virtual, simulated
-- gain: bound
-- advice: Test less often, or not at all: MPI_Wait where nothing else is to be done, MPI_Waitsome for several requests.
-- column polls BIGINT 1: Tests and probes of these ranks that found nothing.
-- column poll_ns BIGINT ns: Time in them, of the rank that loses most.
-- column work_ns BIGINT ns: What that rank computed between them.
-- column in_vain_ns BIGINT ns: Time in those after which no request was complete and no message there, of that rank.
-- order: cost_ns DESC, callsite, call
-- cost: Eight columns of events.
WITH polled AS (
  -- A test that is in vain is no loss to a rank that has nothing else to do. So it counts as far as the rank computes meanwhile, and
  -- all of it if the rank then goes on without what it tested for.
  SELECT rank, callsite, call, polls, poll_ns, GREATEST(0, COALESCE(compute_ns, 0)) AS work_ns,
         CASE WHEN class IN ('complete', 'probe') THEN 0 ELSE poll_ns END AS in_vain_ns
  FROM events
  WHERE polls > 0 AND poll_ns > 0
),
by_rank AS (
  SELECT rank, callsite, call, SUM(polls) AS polls, SUM(poll_ns) AS poll_ns, SUM(work_ns) AS work_ns, SUM(in_vain_ns) AS in_vain_ns,
         SUM(GREATEST(in_vain_ns, LEAST(poll_ns, work_ns))) AS loss_ns
  FROM polled
  GROUP BY rank, callsite, call
),
costs AS (
  SELECT *, MAX(loss_ns) OVER (PARTITION BY callsite, call) AS cost_ns
  FROM by_rank
)
SELECT callsite, call, string_agg(CAST(rank AS VARCHAR), ',' ORDER BY rank) AS ranks, CAST(MAX(cost_ns) AS BIGINT) AS cost_ns,
       'Between computing, tests and probes before ' || call || ' find nothing ' || CAST(CAST(SUM(polls) AS BIGINT) AS VARCHAR) || ' times' AS found,
       CAST(SUM(polls) AS BIGINT) AS polls, CAST(arg_max(poll_ns, loss_ns) AS BIGINT) AS poll_ns,
       CAST(arg_max(work_ns, loss_ns) AS BIGINT) AS work_ns, CAST(arg_max(in_vain_ns, loss_ns) AS BIGINT) AS in_vain_ns
FROM costs
WHERE loss_ns >= cost_ns * 0.2 AND loss_ns > 0
GROUP BY callsite, call
ORDER BY cost_ns DESC, callsite, call
