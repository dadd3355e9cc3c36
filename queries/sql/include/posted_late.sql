-- sending_calls(src, dst, seq, recv_post_ns, send_start_ns, bytes, call, done_call, start_ns, end_ns, callsite): the sends whose receive was posted after
-- they began, each with the call that completed it: start_ns, end_ns, callsite and done_call are that one's, send_start_ns and call the send's.
-- posted_messages, which stands before this, has the columns of messages of those whose receive was posted after send_start_ns.
posted_late AS (
  SELECT m.src, m.dst, m.send_seq, m.send_start_ns, m.send_end_ns, m.recv_post_ns, m.send_callsite, m.bytes, s.done_seq, s.call
  FROM posted_messages m
  JOIN events s ON s.rank = m.src AND s.seq = m.send_seq
  WHERE s.class IN ('send', 'sendrecv')
),
sending_calls AS (
  -- The call that completed the send: another row for a request, else the send itself.
  SELECT p.src, p.dst, COALESCE(p.done_seq, p.send_seq) AS seq, p.recv_post_ns, p.send_start_ns, p.bytes, p.call,
         CASE WHEN p.done_seq IS NULL THEN p.call ELSE c.call END AS done_call,
         CASE WHEN p.done_seq IS NULL THEN p.send_start_ns ELSE c.start_ns END AS start_ns,
         CASE WHEN p.done_seq IS NULL THEN p.send_end_ns ELSE c.end_ns END AS end_ns,
         CASE WHEN p.done_seq IS NULL THEN p.send_callsite ELSE c.callsite END AS callsite
  FROM posted_late p
  LEFT JOIN events c ON c.rank = p.src AND c.seq = p.done_seq
)
