-- summary: Puts, gets and accumulates from every origin to every target, by the communicator of the window.
-- source: one-sided communication, which a matrix of messages does not show
-- needs: events
-- column origin INTEGER -: World rank that made the calls.
-- column target INTEGER -: World rank whose window they are about; null where it is not known.
-- column comm INTEGER -: Communicator that the window was made on.
-- column puts BIGINT 1: MPI_Put and MPI_Rput. Calls to MPI_PROC_NULL and calls that returned an error count nowhere.
-- column put_bytes BIGINT bytes: Payload that they bring to the target.
-- column gets BIGINT 1: MPI_Get and MPI_Rget.
-- column get_bytes BIGINT bytes: Payload that they bring to the origin.
-- column accumulates BIGINT 1: MPI_Accumulate, MPI_Get_accumulate and their request forms, MPI_Fetch_and_op and
--     MPI_Compare_and_swap.
-- column accumulate_bytes BIGINT bytes: Payload that they bring to the target.
-- column fetched_bytes BIGINT bytes: Payload that they bring to the origin.
-- order: origin, target, comm
-- cost: Eight columns of the one-sided rows of events.
-- title: Data put from rank to rank
-- plot: matrix origin target put_bytes
-- label origin: origin rank
-- label target: target rank
-- label put_bytes: data put
WITH moves AS (
  SELECT rank, COALESCE(send_world, recv_world) AS target, comm, COALESCE(send_bytes, 0) AS send_bytes, COALESCE(recv_bytes, 0) AS recv_bytes,
         CASE WHEN call IN ('MPI_Put', 'MPI_Put_c', 'MPI_Rput', 'MPI_Rput_c') THEN 'put'
              WHEN call IN ('MPI_Get', 'MPI_Get_c', 'MPI_Rget', 'MPI_Rget_c') THEN 'get'
              ELSE 'accumulate' END AS kind
  FROM events
  WHERE class = 'rma' AND error_class IS NULL AND COALESCE(proc_null, 0) = 0
    AND (send_bytes IS NOT NULL OR recv_bytes IS NOT NULL) -- locks and flushes move nothing
)
SELECT rank AS origin, target, comm,
       CAST(SUM(CASE WHEN kind = 'put' THEN 1 ELSE 0 END) AS BIGINT) AS puts,
       CAST(SUM(CASE WHEN kind = 'put' THEN send_bytes ELSE 0 END) AS BIGINT) AS put_bytes,
       CAST(SUM(CASE WHEN kind = 'get' THEN 1 ELSE 0 END) AS BIGINT) AS gets,
       CAST(SUM(CASE WHEN kind = 'get' THEN recv_bytes ELSE 0 END) AS BIGINT) AS get_bytes,
       CAST(SUM(CASE WHEN kind = 'accumulate' THEN 1 ELSE 0 END) AS BIGINT) AS accumulates,
       CAST(SUM(CASE WHEN kind = 'accumulate' THEN send_bytes ELSE 0 END) AS BIGINT) AS accumulate_bytes,
       CAST(SUM(CASE WHEN kind = 'accumulate' THEN recv_bytes ELSE 0 END) AS BIGINT) AS fetched_bytes
FROM moves
GROUP BY rank, target, comm
ORDER BY origin, target, comm
