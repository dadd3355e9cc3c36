-- summary: How long messages of each size take, those whose receiver was waiting: what commq calibrate fits a machine to.
-- source: ping-pong tests as OSU's and NetPIPE's, from the program's own messages; T = L + S/B (Girona et al., equation 1) is fitted to it
-- needs: transfers, messages, ranks, times
-- origins: measured, virtual, simulated
-- param where condition messages = TRUE: Which messages count: a condition on the columns of messages.
-- column same_host BOOLEAN -: Whether sender and receiver ran on one host where the run was captured; virtual and simulated times know nodes of
--     their own.
-- column bytes BIGINT bytes: Size.
-- column messages BIGINT 1: Messages of that size whose time is known, as in commq query latency (timed).
-- column min_ns BIGINT ns: The shortest time from the start of the send to the end of the call that completed the receive.
-- column q25_ns BIGINT ns: A quarter of them takes no longer (this and the next to within 1 %).
-- column median_ns BIGINT ns: Half of them.
-- order: same_host DESC, bytes
-- cost: The table transfers. With --where ten columns of messages, and a group for each message whose receiver waited.
-- title: Time of messages by size
-- plot: lines bytes min_ns+q25_ns+median_ns same_host log-log
-- label bytes: message size
-- label min_ns: shortest
-- label q25_ns: 25 % quantile
-- label median_ns: median
-- label y: time from send to receive
WITH {{include transfer_times}}
SELECT same_host, bytes, CAST(messages AS BIGINT) AS messages, CAST(min_ns AS BIGINT) AS min_ns, CAST(q25_ns AS BIGINT) AS q25_ns,
       CAST(median_ns AS BIGINT) AS median_ns
FROM transfer_times
ORDER BY same_host DESC, bytes
