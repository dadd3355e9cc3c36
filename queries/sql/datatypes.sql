-- summary: Which datatypes messages and collectives are made of, most bytes first.
-- source: what mpiP and IPM leave out; a derived type with gaps is packed on the way
-- needs: datatypes, messages, events
-- column datatype INTEGER -: Id in datatypes.
-- column name VARCHAR -: Its name, for example MPI_DOUBLE; null for an unnamed derived type.
-- column combiner VARCHAR -: How it was made, for example named, vector, struct.
-- column size_bytes BIGINT bytes: Payload of one element.
-- column extent_bytes BIGINT bytes: Span of one element in memory; where it is not size_bytes the element has gaps.
-- column messages BIGINT 1: Point-to-point messages sent with it.
-- column elements BIGINT elements: Elements that they carry.
-- column bytes BIGINT bytes: Payload of those.
-- column collective_calls BIGINT 1: Calls of collectives that name it, on the send or the receive side. Those with a type per
--     peer (MPI_Alltoallw) name none.
-- column collective_send_bytes BIGINT bytes: Payload that ranks gave to those collectives in it.
-- column collective_recv_bytes BIGINT bytes: Payload that ranks got from those collectives in it.
-- order: bytes + collective_send_bytes + collective_recv_bytes DESC, datatype
-- cost: The tables channels and collective_calls.
-- title: Data of each datatype
-- plot: bars datatype bytes+collective_send_bytes
-- label datatype: datatype
-- label bytes: messages
-- label collective_send_bytes: collectives
-- label y: sent data
WITH sent AS (
  SELECT datatype, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(count) AS BIGINT) AS elements,
         CAST(SUM(bytes) AS BIGINT) AS bytes
  FROM channels
  GROUP BY datatype
),
sides AS (
  SELECT send_datatype, recv_datatype, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(send_bytes) AS BIGINT) AS send_bytes,
         CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes
  FROM collective_calls
  GROUP BY send_datatype, recv_datatype
),
collective AS (
  SELECT datatype, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes
  FROM (SELECT send_datatype AS datatype, calls, send_bytes, CASE WHEN recv_datatype = send_datatype THEN recv_bytes ELSE 0 END AS recv_bytes
        FROM sides
        UNION ALL
        SELECT recv_datatype AS datatype, calls, 0 AS send_bytes, recv_bytes
        FROM sides
        WHERE send_datatype IS NULL OR send_datatype <> recv_datatype) b
  GROUP BY datatype
),
counted AS (
  SELECT d.id AS datatype, d.name, d.combiner, d.bytes AS size_bytes, d.extent_bytes,
         CAST(COALESCE(s.messages, 0) AS BIGINT) AS messages, CAST(COALESCE(s.elements, 0) AS BIGINT) AS elements,
         CAST(COALESCE(s.bytes, 0) AS BIGINT) AS bytes, CAST(COALESCE(c.calls, 0) AS BIGINT) AS collective_calls,
         CAST(COALESCE(c.send_bytes, 0) AS BIGINT) AS collective_send_bytes,
         CAST(COALESCE(c.recv_bytes, 0) AS BIGINT) AS collective_recv_bytes
  FROM datatypes d
  LEFT JOIN sent s ON s.datatype = d.id
  LEFT JOIN collective c ON c.datatype = d.id
)
SELECT datatype, name, combiner, size_bytes, extent_bytes, messages, elements, bytes, collective_calls, collective_send_bytes,
       collective_recv_bytes
FROM counted
ORDER BY bytes + collective_send_bytes + collective_recv_bytes DESC, datatype
