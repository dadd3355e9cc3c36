-- summary: Where each rank's time went: point-to-point, waits, collectives, RMA, I/O and outside MPI.
-- source: Pipit's time_profile and comm_by_process, the per-rank tables of IPM and APS
-- needs: profile, times, every-call
-- origins: measured, virtual, simulated
-- param init choice leave-out|include = leave-out: Whether the time in MPI_Init, MPI_Init_thread and MPI_Finalize counts. They start and stop
--     processes, and would be most of a short run. MPI_Session_init and MPI_Session_finalize always count.
-- column rank INTEGER -: World rank.
-- column thread INTEGER -: Its thread: each has times of its own, which do not add up to the rank's.
-- column total_ns BIGINT ns: From the end of MPI_Init to the start of MPI_Finalize, or where the thread called neither from the start of its first call
--     to the end of its last: what the columns from point_to_point_ns to outside_ns add up to.
-- column mpi_ns BIGINT ns: Inside MPI: the columns from point_to_point_ns to other_ns.
-- column point_to_point_ns BIGINT ns: In sends, receives and Sendrecv, blocking or not, and starts of persistent ones.
-- column completion_ns BIGINT ns: In MPI_Wait, Waitall and the like and in tests that succeeded, whatever they completed: messages, collectives
--     or I/O.
-- column probe_ns BIGINT ns: In probes that found something.
-- column poll_ns BIGINT ns: In tests and probes that found nothing.
-- column collective_ns BIGINT ns: In collectives; of nonblocking ones only the call that starts them.
-- column rma_ns BIGINT ns: In one-sided communication with its synchronisation and windows.
-- column io_ns BIGINT ns: In files.
-- column other_ns BIGINT ns: In all other recorded calls: constructors of communicators and persistent requests,
--     with --init include MPI_Init and MPI_Finalize.
-- column outside_ns BIGINT ns: Outside MPI, and in calls that are not recorded.
-- column compute_ns BIGINT ns: What of that the run's compute_clock counted as computing: with the CPU clock what the thread was not
--     running is missing, so outside_ns beyond it is time that other processes or the operating system had the CPU.
-- order: rank, thread
-- cost: The table profile.
-- title: Where the time of each rank goes
-- plot: bars rank outside_ns+point_to_point_ns+completion_ns+probe_ns+poll_ns+collective_ns+rma_ns+io_ns+other_ns
-- label outside_ns: outside MPI
-- label point_to_point_ns: point-to-point
-- label completion_ns: wait and test
-- label probe_ns: probe
-- label poll_ns: failed tests
-- label collective_ns: collectives
-- label rma_ns: one-sided
-- label io_ns: files
-- label other_ns: other MPI
-- label y: time
WITH {{include program_calls}},
spent AS (
  SELECT rank, thread, class, MIN(first_ns) AS first_ns, MAX(last_ns) AS last_ns, CAST(SUM(time_ns) AS BIGINT) AS ns,
         CAST(SUM(poll_ns) AS BIGINT) AS poll_ns, CAST(SUM(compute_ns) AS BIGINT) AS compute_ns
  FROM program_calls
  GROUP BY rank, thread, class
),
threads AS (
  SELECT rank, thread, MAX(last_ns) - MIN(first_ns) AS total_ns, CAST(SUM(COALESCE(ns, 0)) AS BIGINT) AS calls_ns,
         CAST(SUM(CASE WHEN class IN ('send', 'recv', 'sendrecv') THEN ns ELSE 0 END) AS BIGINT) AS point_to_point_ns,
         CAST(SUM(CASE WHEN class = 'complete' THEN ns ELSE 0 END) AS BIGINT) AS completion_ns,
         CAST(SUM(CASE WHEN class = 'probe' THEN ns ELSE 0 END) AS BIGINT) AS probe_ns,
         CAST(SUM(COALESCE(poll_ns, 0)) AS BIGINT) AS poll_ns,
         CAST(SUM(CASE WHEN class = 'collective' THEN ns ELSE 0 END) AS BIGINT) AS collective_ns,
         CAST(SUM(CASE WHEN class = 'rma' THEN ns ELSE 0 END) AS BIGINT) AS rma_ns,
         CAST(SUM(CASE WHEN class = 'io' THEN ns ELSE 0 END) AS BIGINT) AS io_ns,
         CAST(SUM(CASE WHEN class IN ('comm', 'mark', 'other') THEN ns ELSE 0 END) AS BIGINT) AS other_ns,
         CAST(SUM(compute_ns) AS BIGINT) AS compute_ns
  FROM spent
  GROUP BY rank, thread
)
SELECT rank, thread, CAST(total_ns AS BIGINT) AS total_ns, CAST(calls_ns + poll_ns AS BIGINT) AS mpi_ns,
       CAST(COALESCE(point_to_point_ns, 0) AS BIGINT) AS point_to_point_ns, CAST(COALESCE(completion_ns, 0) AS BIGINT) AS completion_ns,
       CAST(COALESCE(probe_ns, 0) AS BIGINT) AS probe_ns, CAST(poll_ns AS BIGINT) AS poll_ns,
       CAST(COALESCE(collective_ns, 0) AS BIGINT) AS collective_ns, CAST(COALESCE(rma_ns, 0) AS BIGINT) AS rma_ns,
       CAST(COALESCE(io_ns, 0) AS BIGINT) AS io_ns, CAST(COALESCE(other_ns, 0) AS BIGINT) AS other_ns,
       CAST(total_ns - calls_ns - poll_ns AS BIGINT) AS outside_ns, CAST(compute_ns AS BIGINT) AS compute_ns
FROM threads
ORDER BY rank, thread
