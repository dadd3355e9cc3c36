-- summary: Calls of each MPI function by each rank, with the bytes they sent and received.
-- source: the tables themselves; the flat profile that mpiP and IPM users know
-- needs: profile, comms, every-call
-- column rank INTEGER -: World rank that called.
-- column call VARCHAR -: The MPI function.
-- column comm_size BIGINT 1: Processes in the communicator it was called on (both groups of an intercommunicator); null where the
--     call has none.
-- column calls BIGINT 1: Rows of events: calls, and for MPI_Startall started requests.
-- column send_bytes BIGINT bytes: Payload that the calls sent; 0 where they send nothing, as a call that returned an error.
-- column recv_bytes BIGINT bytes: Payload that the calls received; 0 where they receive nothing, as a probe, whose message
--     another call receives.
-- order: rank, call, comm_size
-- cost: The table profile.
WITH sizes AS (
  SELECT comm, CAST(COUNT(*) AS BIGINT) AS comm_size
  FROM comms
  GROUP BY comm
),
counted AS (
  -- Failed calls, probes and calls that only make requests move no data.
  SELECT rank, call, comm, CAST(SUM(calls) AS BIGINT) AS calls,
         CAST(SUM(CASE WHEN error_class IS NULL AND class NOT IN ('probe', 'other') THEN send_bytes END) AS BIGINT) AS send_bytes,
         CAST(SUM(CASE WHEN error_class IS NULL AND class NOT IN ('probe', 'other') THEN recv_bytes END) AS BIGINT) AS recv_bytes
  FROM profile
  GROUP BY rank, call, comm
)
SELECT c.rank, c.call, s.comm_size, CAST(SUM(c.calls) AS BIGINT) AS calls,
       CAST(SUM(COALESCE(c.send_bytes, 0)) AS BIGINT) AS send_bytes, CAST(SUM(COALESCE(c.recv_bytes, 0)) AS BIGINT) AS recv_bytes
FROM counted c
LEFT JOIN sizes s ON s.comm = c.comm
GROUP BY c.rank, c.call, s.comm_size
ORDER BY c.rank, c.call, s.comm_size
