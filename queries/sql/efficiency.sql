-- summary: Parallel efficiency of the program and its two factors, load balance and communication, as POP defines them.
-- source: POP Standard Metrics for Parallel Performance Analysis (POP Centre of Excellence, pop-coe.eu); Rosas, Gimenez and Labarta, Scalability
--     Prediction for Fundamental Performance Factors (2014)
-- needs: profile, times, every-call
-- origins: measured, virtual, simulated
-- param init choice leave-out|include = leave-out: Whether the time in MPI_Init, MPI_Init_thread and MPI_Finalize counts. They start and stop
--     processes, and would be most of a short run. MPI_Session_init and MPI_Session_finalize always count.
-- column metric VARCHAR -: parallel-efficiency: the part of the runtime that the ranks compute in, on average; the product of the other two.
--     load-balance: how far the ranks compute equally long, average by most. communication-efficiency: the part of the runtime that the rank
--     that computes longest computes in; the rest it spends in MPI, waiting or transferring.
-- column efficiency DOUBLE share: The metric, part_ns by whole_ns: 1 is best, and POP looks for the cause below 0.8. Null where whole_ns is 0.
-- column part_ns BIGINT ns: Time that counts. parallel-efficiency and load-balance: the average over ranks of their useful time, which is all time
--     outside MPI from the end of MPI_Init to the start of MPI_Finalize (without them, and with --init include, from the first call to the last), whether or not
--     the rank had a CPU. communication-efficiency: the most of a rank.
-- column whole_ns BIGINT ns: Time it is compared with. load-balance: the most useful time of a rank. The others: the runtime, from the first rank's
--     end of MPI_Init to the last rank's start of MPI_Finalize: over the run and not by rank, because a rank that leaves MPI_Init
--     early waits for the others. --init include: from the first call of all to the last.
-- column ranks BIGINT 1: Ranks that are averaged over: those that made calls. Of each its thread 0 counts, the first that called MPI.
-- column top_rank INTEGER -: The rank with the most useful time, the lowest of several.
-- order: metric DESC
-- cost: The table profile.
-- title: Parallel efficiency and its factors
-- plot: bars metric efficiency 0..1
-- label metric: metric
-- label efficiency: efficiency
WITH {{include program_times}},
useful AS (
  SELECT rank, begin_ns, end_ns, end_ns - begin_ns - mpi_ns AS useful_ns,
         ROW_NUMBER() OVER (ORDER BY end_ns - begin_ns - mpi_ns DESC, rank) AS nth
  FROM program_times
  WHERE thread = 0
),
run_times AS (
  SELECT CAST(COUNT(*) AS BIGINT) AS ranks, CAST(SUM(useful_ns) AS DOUBLE) / COUNT(*) AS mean_ns, MAX(useful_ns) AS max_ns,
         MAX(end_ns) - MIN(begin_ns) AS runtime_ns, MAX(CASE WHEN nth = 1 THEN rank END) AS top_rank
  FROM useful
  HAVING COUNT(*) > 0
),
metrics AS (
  SELECT 'parallel-efficiency' AS metric, mean_ns AS part_ns, runtime_ns AS whole_ns, ranks, top_rank
  FROM run_times
  UNION ALL
  SELECT 'load-balance' AS metric, mean_ns AS part_ns, max_ns AS whole_ns, ranks, top_rank
  FROM run_times
  UNION ALL
  SELECT 'communication-efficiency' AS metric, CAST(max_ns AS DOUBLE) AS part_ns, runtime_ns AS whole_ns, ranks, top_rank
  FROM run_times
)
SELECT metric, ROUND(CAST(part_ns AS DOUBLE) / NULLIF(CAST(whole_ns AS DOUBLE), 0), 4) AS efficiency, CAST(ROUND(part_ns) AS BIGINT) AS part_ns,
       CAST(whole_ns AS BIGINT) AS whole_ns, ranks, top_rank
FROM metrics
ORDER BY metric DESC
