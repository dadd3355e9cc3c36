"""Writes the archive beside it, of messages that one thread matches and another one receives: write.py FOLDER.

It needs the package otf2 3.2 of PyPI.
"""
import sys

import otf2
from otf2.enums import GroupType, LocationType, Paradigm, RegionRole

# Ranks 0 and 2 send to rank 1, whose first thread matches the messages. Its second thread waits for the first one and
# receives the second one. It also waits for a receive whose probe the trace does not have.
with otf2.writer.open(sys.argv[1], timer_resolution=10**9) as trace:
    node = trace.definitions.system_tree_node("one", class_name="node")
    regions = {}
    groups = [trace.definitions.location_group(f"rank {r}", system_tree_parent=node) for r in range(3)]
    main = [trace.definitions.location("main", type=LocationType.CPU_THREAD, group=g) for g in groups]
    second = trace.definitions.location("second", type=LocationType.CPU_THREAD, group=groups[1])
    trace.definitions.group("locations", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=main)
    world = trace.definitions.group("world", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=[0, 1, 2])
    comm = trace.definitions.comm("MPI_COMM_WORLD", group=world)
    writers = [trace.event_writer_from_location(x) for x in [*main, second]]

    def call(thread, start, end, name, *records):
        if name not in regions:
            regions[name] = trace.definitions.region(name, region_role=RegionRole.FUNCTION, paradigm=Paradigm.MPI)
        writers[thread].enter(start, regions[name])
        for method, args in records:
            getattr(writers[thread], method)(end, **args)
        writers[thread].leave(end, regions[name])

    call(0, 10, 14, "MPI_Send", ("mpi_send", dict(receiver=1, communicator=comm, msg_tag=3, msg_length=21)))
    call(2, 10, 15, "MPI_Send", ("mpi_send", dict(receiver=1, communicator=comm, msg_tag=5, msg_length=33)))
    call(1, 17, 18, "MPI_Mprobe", ("mpi_probe", dict(sender=2, communicator=comm, tag=5, message_id=71)))
    call(1, 19, 20, "MPI_Imrecv", ("mpi_imrecv_request", dict(message_id=71, request_id=4)))
    call(1, 21, 22, "MPI_Mprobe", ("mpi_probe", dict(sender=0, communicator=comm, tag=3, message_id=72)))
    call(3, 25, 30, "MPI_Wait", ("mpi_imrecv", dict(request_id=4, msg_length=33)))
    call(3, 31, 32, "MPI_Mrecv", ("mpi_mrecv", dict(message_id=72, msg_length=21)))
    call(1, 33, 34, "MPI_Imrecv", ("mpi_imrecv_request", dict(message_id=99, request_id=5)))
    call(3, 35, 36, "MPI_Wait", ("mpi_imrecv", dict(request_id=5, msg_length=1)))
    for rank in range(3):
        call(rank, 50, 60, "MPI_Finalize")
