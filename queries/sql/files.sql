-- summary: Each file that the ranks opened with MPI, and what they read and wrote.
-- source: Darshan's counters of MPI-IO, by file
-- needs: events
-- column file VARCHAR -: Its name as the program gave it; null where the call that opened it was not recorded.
-- column ranks BIGINT 1: World ranks that called on it.
-- column opens BIGINT 1: Calls of MPI_File_open, one for each rank.
-- column reads BIGINT 1: Calls that read. A split collective is one, its begin.
-- column read_bytes BIGINT bytes: What they read, by their status.
-- column writes BIGINT 1: Calls that wrote.
-- column write_bytes BIGINT bytes: What they wrote, by their status.
-- column errors BIGINT 1: Calls on it that returned an error; they are not reads or writes.
-- order: read_bytes + write_bytes DESC, file
-- cost: Eight columns of the rows of events that are about files, joined with those that opened them.
-- title: Data written to files
-- plot: bars file write_bytes
-- label write_bytes: written data
WITH about_files AS (
  SELECT rank, seq, init_seq, call, label, error_class, send_bytes, recv_bytes
  FROM events
  WHERE class = 'io'
),
calls AS (
  SELECT rank, CASE WHEN label IS NOT NULL OR init_seq IS NULL THEN seq ELSE init_seq END AS open_seq, call, label, error_class,
         CASE WHEN error_class IS NOT NULL OR call LIKE '%_end' THEN 'none' WHEN call LIKE 'MPI_File_%read%' THEN 'read'
              WHEN call LIKE 'MPI_File_%write%' THEN 'write' ELSE 'none' END AS kind,
         COALESCE(send_bytes, 0) AS send_bytes, COALESCE(recv_bytes, 0) AS recv_bytes
  FROM about_files
),
opened AS (
  SELECT rank, seq, label
  FROM about_files
  WHERE label IS NOT NULL
),
counted AS (
  SELECT o.label AS file, CAST(COUNT(DISTINCT c.rank) AS BIGINT) AS ranks,
         CAST(SUM(CASE WHEN c.call = 'MPI_File_open' AND c.error_class IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS opens,
         CAST(SUM(CASE WHEN c.kind = 'read' THEN 1 ELSE 0 END) AS BIGINT) AS reads,
         CAST(SUM(CASE WHEN c.kind = 'read' THEN c.recv_bytes ELSE 0 END) AS BIGINT) AS read_bytes,
         CAST(SUM(CASE WHEN c.kind = 'write' THEN 1 ELSE 0 END) AS BIGINT) AS writes,
         CAST(SUM(CASE WHEN c.kind = 'write' THEN c.send_bytes ELSE 0 END) AS BIGINT) AS write_bytes,
         CAST(COUNT(c.error_class) AS BIGINT) AS errors
  FROM calls c
  LEFT JOIN opened o ON o.rank = c.rank AND o.seq = c.open_seq
  GROUP BY o.label
)
SELECT file, ranks, opens, reads, read_bytes, writes, write_bytes, errors
FROM counted
ORDER BY read_bytes + write_bytes DESC, file
