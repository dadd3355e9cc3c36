-- summary: Every point-to-point message that is on its way in a window of time, and whose receive was complete later: between
--     whom, how much, and when.
-- source: the arrows in the timelines of Vampir, Paraver and Jumpshot
-- needs: messages, times
-- origins: measured, virtual, simulated
-- param from-s number 0..1000000000 = 0: Where the window begins, in s since the run's start.
-- param to-s number 0..1000000000 = 0: Where it ends; 0 is the end of the run.
-- param from-rank integer 0..2147483647 = 0: The lowest world rank: of the sender or the receiver.
-- param to-rank integer -1..2147483647 = -1: The highest one; -1 is the last rank of the run.
-- column src INTEGER -: World rank of the sender.
-- column dst INTEGER -: World rank of the receiver.
-- column send_start_ns BIGINT ns: When the call that sends was entered.
-- column recv_end_ns BIGINT ns: When the receive was complete.
-- column bytes BIGINT bytes: Payload.
-- column tag INTEGER -: Tag.
-- column comm INTEGER -: Communicator.
-- column send_seq BIGINT -: Number of the send along the sender.
-- order: send_start_ns, src, send_seq, dst
-- cost: Eight columns of messages, of the files of that time.
-- example: --from-s 0.9 --to-s 0.9001
SELECT src, dst, send_start_ns, recv_end_ns, bytes, tag, comm, send_seq
FROM messages
WHERE recv_end_ns >= CAST(ROUND({{from-s}} * 1e9) AS BIGINT) AND send_start_ns IS NOT NULL
  AND ({{to-s}} = 0 OR send_start_ns <= CAST(ROUND({{to-s}} * 1e9) AS BIGINT))
  AND (src >= {{from-rank}} AND ({{to-rank}} < 0 OR src <= {{to-rank}})
    OR dst >= {{from-rank}} AND ({{to-rank}} < 0 OR dst <= {{to-rank}}))
ORDER BY send_start_ns, src, send_seq, dst
