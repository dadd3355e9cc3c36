package queries

// profileOfEvents is SQL for the rows of profile of the rows of events that the text selects, as the writer makes them: for runs that
// were written before there was that table.
func profileOfEvents(events string) string {
	return `SELECT run, rank, ROW_NUMBER() OVER (PARTITION BY rank ORDER BY MIN(seq)) - 1 AS nth, CAST(0 AS INTEGER) AS epoch, thread, call, class, comm, callsite,
       error_class, posted_any, proc_null, in_progress, any_world AS recv_world, any_tag AS recv_tag,
       CAST(COUNT(*) AS BIGINT) AS calls, CAST(COUNT(send_peer) AS BIGINT) AS sends, CAST(COUNT(recv_peer) AS BIGINT) AS receives,
       CAST(SUM(send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes,
       CAST(SUM(end_ns - start_ns) AS BIGINT) AS time_ns, MIN(end_ns - start_ns) AS min_ns, MAX(end_ns - start_ns) AS max_ns,
       MIN(start_ns) AS first_ns, MAX(COALESCE(end_ns, start_ns)) AS last_ns,
       CAST(SUM(compute_ns) AS BIGINT) AS compute_ns, CAST(SUM(polls) AS BIGINT) AS polls, CAST(SUM(poll_ns) AS BIGINT) AS poll_ns
FROM (SELECT *, CASE WHEN start_ns IS NOT NULL AND end_ns IS NULL THEN 1 ELSE 0 END AS in_progress,
             CASE WHEN posted_any > 0 THEN recv_world END AS any_world, CASE WHEN posted_any > 0 THEN recv_tag END AS any_tag
      FROM (` + events + `) AS e) AS e
GROUP BY run, rank, thread, call, class, comm, callsite, error_class, posted_any, proc_null, in_progress, any_world, any_tag`
}
