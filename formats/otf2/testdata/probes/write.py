"""Writes the archive beside it, with the records of OTF2 3.2 for probes and matched receives: write.py FOLDER.

It needs the package otf2 3.2 of PyPI.
"""
import sys

import otf2
from otf2.enums import LocationType, Paradigm, GroupType, RegionRole

# Rank 0 sends three messages. Rank 1 probes in vain, finds the first, matches and receives the second and the third,
# which a request receives.
with otf2.writer.open(sys.argv[1], timer_resolution=10**9) as trace:
    node = trace.definitions.system_tree_node("one", class_name="node")
    regions = {}
    writers = []
    locations = []
    for rank in range(2):
        group = trace.definitions.location_group(f"rank {rank}", system_tree_parent=node)
        locations.append(trace.definitions.location("main", type=LocationType.CPU_THREAD, group=group))
    trace.definitions.group("locations", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=locations)
    world = trace.definitions.group("world", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=[0, 1])
    comm = trace.definitions.comm("MPI_COMM_WORLD", group=world)
    writers = [trace.event_writer_from_location(x) for x in locations]

    def call(rank, start, end, name, *records):
        if name not in regions:
            regions[name] = trace.definitions.region(name, region_role=RegionRole.FUNCTION, paradigm=Paradigm.MPI)
        writers[rank].enter(start, regions[name])
        for method, args in records:
            getattr(writers[rank], method)(end, **args)
        writers[rank].leave(end, regions[name])

    for k, (tag, size) in enumerate([(9, 4097), (5, 33), (3, 21)]):
        call(0, 10 + 10 * k, 15 + 10 * k, "MPI_Send",
             ("mpi_send", dict(receiver=1, communicator=comm, msg_tag=tag, msg_length=size)))
    found = dict(sender=0, communicator=comm)
    call(1, 5, 6, "MPI_Iprobe")
    call(1, 12, 16, "MPI_Probe", ("mpi_probe", dict(**found, tag=9, message_id=2**64 - 1)))
    call(1, 17, 18, "MPI_Mprobe", ("mpi_probe", dict(**found, tag=5, message_id=71)))
    call(1, 19, 20, "MPI_Recv", ("mpi_recv", dict(sender=0, communicator=comm, msg_tag=9, msg_length=4097)))
    call(1, 31, 32, "MPI_Improbe", ("mpi_probe", dict(**found, tag=3, message_id=72)))
    call(1, 33, 34, "MPI_Imrecv", ("mpi_imrecv_request", dict(message_id=72, request_id=4)))
    call(1, 35, 36, "MPI_Mrecv", ("mpi_mrecv", dict(message_id=71, msg_length=33)))
    call(1, 37, 40, "MPI_Wait", ("mpi_imrecv", dict(request_id=4, msg_length=21)))
    for rank in range(2):
        call(rank, 50, 60, "MPI_Finalize")
