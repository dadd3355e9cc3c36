-- The rows of the table transfers, of a run that lacks it.
WITH {{include transfers}}
SELECT same_host, bytes, timed, step, messages, min_ns, max_ns
FROM message_transfers
