-- summary: Time that ranks waited in collectives for ranks that had not yet entered, by operation, communicator and rank.
-- source: the wait states Wait at Barrier, Wait at NxN, Late Broadcast, Early Reduce and Early Scan of Scalasca and KOJAK
-- needs: collective_waits, events, comms, times, every-call
-- origins: measured, virtual, simulated
-- param until choice needed|last = needed: Whom a rank waits for. needed: whom it needs, for the result of the operation or to know that
--     all have come: every rank in a barrier, allreduce, allgather, alltoall or reduce-scatter; the root in a broadcast or scatter; at the
--     root of a reduce or gather every rank; in a scan those before it. last: the last rank in every operation, as in virtual and
--     simulated times, whose collectives end for all ranks at once. On an intercommunicator a rank waits for those of the other group.
-- column pattern VARCHAR -: wait-at-barrier, wait-at-nxn, late-broadcast, early-reduce or early-scan.
-- column call VARCHAR -: The operation by the name of its blocking call, whether it was nonblocking or persistent.
-- column comm INTEGER -: Communicator.
-- column rank INTEGER -: World rank.
-- column calls BIGINT 1: Operations it took part in.
-- column waits BIGINT 1: Those it waited in.
-- column wait_ns BIGINT ns: Time lost: from the start of the collective, or of the MPI_Wait of a nonblocking one, until the last rank that it needs has
--     entered the collective. Where one call completes several operations the longest counts.
-- column max_ns BIGINT ns: The longest of these waits.
-- column caused BIGINT 1: How often another rank waited and this one was the last it needed; 0 in scans, except with --until last.
-- column caused_ns BIGINT ns: Time that the others lost in them.
-- order: call, comm, rank, pattern
-- cost: The table collective_waits. In runs without it fourteen columns of events, of their collectives a sort and joins on (comm, instance); joins on
--     (rank, seq) where collectives are nonblocking or persistent.
-- title: Waiting in collectives
-- plot: bars rank wait_ns call
-- label wait_ns: time waited
-- label call: operation
SELECT pattern, call, comm, rank, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(waits) AS BIGINT) AS waits,
       CAST(SUM(wait_ns) AS BIGINT) AS wait_ns, CAST(MAX(max_ns) AS BIGINT) AS max_ns,
       CAST(SUM(caused) AS BIGINT) AS caused, CAST(SUM(caused_ns) AS BIGINT) AS caused_ns
FROM collective_waits
WHERE until = {{until}}
GROUP BY pattern, call, comm, rank
ORDER BY call, comm, rank, pattern
