-- summary: Groups of ranks, for pictures of thousands: the ranks of a host, of a communicator, or that behave alike: that call or wait alike.
-- source: the process groups of Vampir and the clusters of ranks of Ravel and PerfExplorer
-- needs: profile, ranks, comms, times
-- origins: measured, virtual, simulated
-- param by choice host|communicator|calls|time = host: What the ranks of a group share. host: the machine. communicator: the one with two
--     ranks or more, but not all of the run, on which a rank makes most calls; that of all ranks if there is none. calls: how often they make which
--     calls, those to MPI_PROC_NULL apart and probes left out; if that makes more than 32 groups, within powers of two; if that does too, only
--     which calls. time: the share of their time between MPI_Init and MPI_Finalize that they spend in MPI, in tenths.
-- column rank INTEGER -: World rank.
-- column first_rank INTEGER -: The lowest rank of its group, which names it.
-- column ranks INTEGER 1: Ranks in the group.
-- column value INTEGER -: The host, the communicator or the tenths, rounded down, of time in MPI; null for calls.
-- order: rank
-- cost: The profile, and ranks and comms.
-- example: --by calls
WITH {{include rank_groups}}
SELECT rank, first_rank, ranks, value
FROM rank_groups
ORDER BY rank
