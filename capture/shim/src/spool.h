/* The spool: what the shim writes and commq ingest reads. One file per thread of a rank:
 *
 *     <spool>/<job>.<rank>.<thread>.cqs      job 16 hexadecimal digits, rank and thread decimal
 *
 * a 4096-byte header, then 64-byte slots, little endian, in the order in which the thread entered its calls. A slot
 * of kind 0 ends the file (the file grows in chunks of zeros). A call is one CALL slot. Slots that continue it may
 * follow (SIDE, COLL, PARTS, DONE, START, PRE, WIDE, ERR, HASH, RMA, IO), and definitions (DEF, BLOB). A CALL slot is
 * filled at entry, its kind last. Its t1 is written when the call has returned and all its continuing slots are
 * complete. So t1 == 0 means that the call never returned. Then the slots after it may be incomplete; only HASH slots
 * of what it sends are not, because they are written before its kind.
 *
 * Among them, about every 64 slots, stands a SUM slot with checksums of slots before it that will not change any more:
 * those before the call in progress. Each continues where the one before ended, so slots that no SUM slot covers are
 * the last ones of a process that was killed, and SUM slots themselves are covered by later ones. The checksums are
 * CRC-32C, in three lanes, because a processor computes three at a time as fast as one.
 *
 * Unless COMMQ_SINK is mmap or write, the file has blocks of packed slots behind its header, each a cq_block and its bytes (pack.c). The
 * last slots are in a second file, <job>.<rank>.<thread>.cqw, which is removed when the first is closed: two windows of
 * CQ_WINDOW_BYTES, each a cq_base and then slots. When one is full its slots become a block; then those of the call in
 * progress go to the other window, whose base gets its number last. So at any moment the slots are those of the blocks,
 * and those behind them of the window with the highest base that is not beyond the blocks' end.
 *
 * The Go twin is capture/spool/layout.go; a test compares the two. */
#ifndef COMMQ_SPOOL_H
#define COMMQ_SPOOL_H

#include <stdint.h>

#define CQ_SPOOL_MAGIC "COMMQSP1"
#define CQ_SPOOL_VERSION 6
#define CQ_HEADER_BYTES 4096
#define CQ_SLOT_BYTES 64

#define CQ_NULL32 INT32_MIN
#define CQ_NULL64 INT64_MIN

/* Kinds of slots. */
enum {
	CQ_END = 0,
	CQ_CALL = 1,  /* a call */
	CQ_SIDE = 2,  /* the receive side of a Sendrecv */
	CQ_COLL = 3,  /* what a collective has in addition to the CALL slot */
	CQ_PARTS = 4, /* per-peer bytes, up to 2 entries */
	CQ_DONE = 5,  /* completed requests, up to 2 entries */
	CQ_START = 6, /* started persistent requests, up to 7 entries */
	CQ_PRE = 7,   /* compute time and failed polls before the call */
	CQ_WIDE = 8,  /* values that did not fit 32 bits */
	CQ_ERR = 9,   /* the call returned an error */
	CQ_DEF = 10,  /* a definition; its payload follows in BLOB slots */
	CQ_BLOB = 11, /* up to 56 bytes of payload */
	CQ_HASH = 12, /* hashes of a payload */
	CQ_RMA = 13,  /* what an RMA call has in addition to the CALL slot */
	CQ_IO = 14,   /* what an I/O call has in addition to the CALL slot */
	CQ_SUM = 15,  /* checksums of earlier slots; it may stand between any two slots */
	CQ_BASE = 16, /* the beginning of a window */
};

/* flags of CALL and SIDE slots. In a call with both sides the CALL slot's flags are those of the send side, SIDE's of
 * the other. */
enum {
	CQ_F_ANY_SOURCE = 1, /* posted with MPI_ANY_SOURCE */
	CQ_F_ANY_TAG = 2,    /* posted with MPI_ANY_TAG */
	CQ_F_PROC_NULL = 4,  /* the peer is MPI_PROC_NULL (or, for a rooted collective, root is) */
	CQ_F_ROOT = 8,       /* root is MPI_ROOT: the caller is the root of an intercommunicator's collective */
	CQ_F_IN_PLACE_S = 16, /* sendbuf is MPI_IN_PLACE */
	CQ_F_IN_PLACE_R = 32, /* recvbuf is MPI_IN_PLACE */
	CQ_F_NO_STATUS = 64, /* a receive whose source, tag or bytes are not known */
	CQ_F_CANCELLED = 128, /* in DONE entries and on completion calls: the request was cancelled */
	CQ_F_NO_ERROR = 256,  /* in DONE entries of a call that failed: this request did not */
	CQ_F_TRUNCATED = 512, /* in DONE entries of a call that failed: it took a message that was longer than its buffer */
};

/* A CALL slot. Which fields a call uses:
 *   send, isend, *_init of sends: comm, peer, tag, count, dtype, buf; req where it makes a request.
 *   recv: comm, count (posted), dtype, buf; peer and tag as posted (CQ_NULL32 and the flag for a wildcard), and after
 *         the call as received; req holds the received bytes (0xffffffff: in a WIDE slot).
 *   irecv, recv_init: comm, peer, tag as posted, count, dtype, buf, req.
 *   sendrecv: the send side, then a SIDE slot; until it returns, req is the source plus 1 (0: MPI_PROC_NULL, 0xffffffff: any).
 *         isendrecv: the same with its request as req.
 *   probe, mprobe and successful iprobe, improbe: comm, flags, peer, tag as got; count is the message's bytes; req the message's
 *         serial for mprobe and improbe (0: MPI_MESSAGE_NO_PROC).
 *   mrecv, imrecv: count, dtype, buf; the message's serial is in a WIDE slot (what 2);
 *         mrecv: comm null, req the received bytes; imrecv: req its request.
 *   completions: one request: req; peer, tag, count as got (source, tag, bytes) and flags; any number of others in DONE slots.
 *         request_free, cancel: req. Wait on MPI_REQUEST_NULL: req 0.
 *         waitall, until it returns: req and tag are the lowest and the highest serial that it waits for, count how many.
 *   start: req is the new serial; a START slot has the pair. startall: START slots only.
 *   collectives: comm, peer is root (CQ_NULL32 where there is none), count and dtype and buf of the send argument (of the one
 *         buffer argument for bcast), req for nonblocking ones; then a COLL slot, and PARTS for v and w.
 *   comm constructors: comm is the parent, then DEF COMM of the new one; count is its number as in DEF COMM, or -1 when the
 *         caller got MPI_COMM_NULL; a COLL slot has the instance on the parent. idup: req too. comm_free: comm.
 *   persistent collectives (*_init): as the collective, with req, the template's serial; instance counts on the communicator.
 *         Their starts are in START slots, as those of other persistent requests.
 *   neighbourhood collectives: as the collective, with PARTS for every neighbour; sbytes and rbytes of the COLL slot are what
 *         goes to and comes from all of them (MPI_PROC_NULL: nothing). A rank can have several parts.
 *   psend_init, precv_init: as send_init and recv_init; count is that of one partition, and a WIDE slot (what 3) has the
 *         number of partitions. pready*: req; count is the number of partitions made ready, a WIDE slot (what 4) the lowest.
 *         parrived: polls like iprobe; when it succeeds req, and what 4.
 *   window constructors: comm, and count the process's own number of the window (-1: none), buf its memory, a COLL slot with
 *         the instance on comm and the bytes of the window as rbytes.
 *   win_post, win_start: DEF LABEL the group's world ranks, as 0-3,7 or none; win_lock: DEF LABEL exclusive or shared.
 *   RMA: comm of the window, peer the target's rank in it, tag null, count, dtype, buf of the origin argument, req of the R
 *         forms; then an RMA slot, also for synchronisation (peer if there is one target) and win_free. With MPI_NO_OP the
 *         origin argument is unused: dtype and count null, obytes 0.
 *   I/O: comm of the file; a CALL slot with count, dtype, buf, req of nonblocking ones; then an IO slot. The begin of a
 *         split collective also gets a serial as req; its end completes that: req, and count is the bytes.
 *         File_delete: DEF LABEL. File_open: count is the process's own number of the file, a COLL slot with the
 *         instance on comm, DEF LABEL its name.
 *   from_group*, join: as comm constructors without a parent (comm null). accept, connect: those with the same pair of
 *         leaders are distinguished by counting.
 *   session_init, session_finalize, buffer_detach: no fields. pcontrol: count is the level; DEF LABEL a name.
 *         commq_mark: DEF LABEL. commq_send_to_self: comm null, count, dtype, buf.
 *   spawn: as comm constructors; DEF LABEL the program.
 * Serials of requests, messages and templates count from 1 in each process; 0 is none. */
typedef struct {
	uint16_t call;      /* id in schema/calls.csv; 0 in slots other than CALL */
	uint8_t kind;       /* CQ_CALL */
	uint8_t flags;
	uint32_t compute_ns; /* compute time before the call; 0xffffffff: in a PRE slot */
	uint64_t t0;        /* entry, in ticks of the header's timer */
	uint64_t t1;        /* return; 0 while in the call */
	int32_t comm;       /* the process's own number of the communicator, see DEF COMM; CQ_NULL32: none */
	int32_t peer;       /* rank in comm; CQ_NULL32 where a flag gives the reason */
	int32_t tag;
	int32_t dtype;      /* the process's own number of the datatype, see DEF TYPE; CQ_NULL32: none */
	int64_t count;
	uint64_t buf;       /* 0 for MPI_BOTTOM and MPI_IN_PLACE */
	uint32_t req;
	uint32_t site;      /* call site number, see DEF SITE; 0: none */
} cq_call;

/* The receive side of a sendrecv: as in a CALL slot of a receive. */
typedef struct {
	uint16_t zero;
	uint8_t kind;
	uint8_t flags;
	int32_t dtype;
	int32_t peer;
	int32_t tag;
	int64_t count;
	int64_t bytes; /* received; CQ_NULL64 in an isendrecv: see its completion */
	uint64_t buf;
	uint64_t spare[3];
} cq_side;

typedef struct {
	uint16_t op; /* schema.Op; 0xffff: none */
	uint8_t kind;
	uint8_t flags;
	int32_t rdtype;   /* of the receive argument; CQ_NULL32: none */
	uint64_t instance; /* n-th collective operation on this communicator in this process, from 0 */
	int64_t rcount;   /* the receive argument's count (sum for v and w); CQ_NULL64: none */
	int64_t sbytes;   /* count x size of the send argument (sum for v and w); CQ_NULL64: not significant on this rank */
	int64_t rbytes;   /* the same of the receive argument */
	uint64_t rbuf;
	uint64_t spare[2];
} cq_coll;

typedef struct {
	int32_t peer; /* rank in comm (in the remote group of an intercommunicator) */
	uint32_t spare;
	int64_t send_bytes;
	int64_t recv_bytes;
} cq_part;

typedef struct {
	uint16_t n; /* entries used */
	uint8_t kind;
	uint8_t flags;
	uint32_t spare[3];
	cq_part part[2];
} cq_parts;

typedef struct {
	uint32_t req;
	int32_t source; /* as a receive got it; CQ_NULL32 for a send, MPI_PROC_NULL, none */
	int32_t tag;
	uint32_t flags; /* CQ_F_* */
	int64_t bytes;  /* CQ_NULL64 for a send */
} cq_done_entry;

typedef struct {
	uint16_t n;
	uint8_t kind;
	uint8_t flags;
	uint32_t spare[3];
	cq_done_entry done[2];
} cq_done;

typedef struct {
	uint16_t n;
	uint8_t kind;
	uint8_t flags;
	uint32_t spare;
	struct {
		uint32_t req;      /* the new serial of this start */
		uint32_t template_; /* the serial in the CALL slot of the *_init call */
	} start[7];
} cq_start;

typedef struct {
	uint16_t zero;
	uint8_t kind;
	uint8_t flags;
	uint32_t spare;
	uint64_t compute_ns;
	uint64_t polls;
	uint64_t poll_ticks;
	int64_t instructions; /* of the compute gap, failed polls excluded; CQ_NULL64 where not counted */
	int64_t cycles;
	uint64_t spare2[2];
} cq_pre;

typedef struct {
	uint16_t what; /* 1: received bytes; 2: serial of the matched message (mrecv, imrecv); 3: partitions; 4: lowest partition */
	uint8_t kind;
	uint8_t flags;
	uint32_t spare;
	int64_t value;
	uint64_t spare2[6];
} cq_wide;

/* CQ_ERR_TRUNCATE: error_class is MPI_ERR_TRUNCATE, whose value depends on the library. A receive that failed with it
 * took its message: of a wildcard the source and tag are recorded, its bytes are not known. A call that receives has
 * CQ_F_NO_STATUS then, one that completes a receive has not. */
enum { CQ_ERR_TRUNCATE = 1 };

typedef struct {
	uint16_t zero;
	uint8_t kind;
	uint8_t flags; /* CQ_ERR_* */
	int32_t error_class;
	uint64_t spare[7];
} cq_err;

enum { CQ_HASH_SENT = 0, CQ_HASH_RECEIVED = 1 };
enum { CQ_HAS_HASH = 1, CQ_HAS_SUM = 2, CQ_HAS_HEAD = 4 };

/* Hashes of a payload: what the call contributes (sends, collectives, RMA origins), or with --hash-verify what it
 * received. */
typedef struct {
	uint16_t what; /* CQ_HASH_* */
	uint8_t kind;
	uint8_t flags; /* CQ_HAS_*: which are there */
	uint32_t req;  /* serial of its request, if that is not the call's own; else 0 */
	uint64_t hash; /* by the header's algorithm */
	uint64_t sum;  /* of the typed elements, mod 2^64 */
	uint64_t head; /* first 8 bytes, padded with zeros */
	int64_t bytes; /* that were hashed */
	uint64_t spare[3];
} cq_hashes;

typedef struct {
	uint16_t op; /* schema.Op; 0xffff: none */
	uint8_t kind;
	uint8_t flags;
	int32_t tdtype;  /* of the target argument; CQ_NULL32: none */
	int32_t window;  /* the process's own number of the window, as in its constructor's CALL slot */
	int32_t rdtype;  /* of the result argument; CQ_NULL32: none */
	int64_t disp;    /* target displacement; CQ_NULL64: none */
	int64_t tcount;
	int64_t rcount;  /* CQ_NULL64: none */
	int64_t obytes;  /* origin count x size; CQ_NULL64: no such argument */
	int64_t tbytes;  /* target count x size: what moves; CQ_NULL64: no data moves */
	uint64_t rbuf;   /* result buffer */
} cq_rma;

typedef struct {
	uint16_t zero;
	uint8_t kind;
	uint8_t flags;
	int32_t file;   /* the process's own number of the file, as in its File_open's CALL slot */
	int64_t offset; /* given explicitly; CQ_NULL64: none */
	int64_t bytes;  /* read or written, by the status; CQ_NULL64: not known yet, see the completion */
	uint64_t spare[5];
} cq_io;

/* Kinds of DEF slots. */
enum {
	CQ_DEF_COMM = 1,      /* id: the communicator's number; payload cq_def_comm */
	CQ_DEF_COMM_NAME = 2, /* id: the communicator's number; payload: the name */
	CQ_DEF_TYPE = 3,      /* id: the datatype's number; payload cq_def_type */
	CQ_DEF_SITE = 4,      /* id: the call site's number; payload: uint64 return addresses, the innermost first; no frames of
	                       * the shim or the MPI library are among them */
	CQ_DEF_CLOCK = 5,     /* payload: uint64 ticks, int64 CLOCK_MONOTONIC ns read together */
	CQ_DEF_COMM_FREE = 6, /* id: the communicator's number is free again */
	CQ_DEF_MODULE = 7,    /* id: the module's number; payload cq_def_module; it stands before the sites with addresses in it */
	CQ_DEF_LABEL = 8,     /* payload: the text that the call carries */
	CQ_DEF_RETURN = 9,    /* id: number of a CALL slot in a block, whose call had more slots than a window; payload: the slot
	                       * as it is when the call has returned */
};

typedef struct {
	uint16_t what; /* CQ_DEF_* */
	uint8_t kind;
	uint8_t flags;
	uint32_t bytes; /* of the payload in the BLOB slots that follow directly */
	int64_t id;
	uint64_t spare[6];
} cq_def;

typedef struct {
	uint16_t n; /* bytes used of data */
	uint8_t kind;
	uint8_t flags;
	uint32_t spare;
	uint8_t data[56];
} cq_blob;

enum { CQ_SUM_GAP = 1 };

/* Checksums of the slots from to from + n - 1, which lie before this one. */
typedef struct {
	uint16_t zero;
	uint8_t kind;
	uint8_t flags;   /* CQ_SUM_GAP: no SUM slot covers the slots between the end of the last one and from */
	uint32_t number; /* of this SUM slot in the file, from 0 */
	uint64_t from;   /* a slot's number, from 0 behind the header */
	uint64_t n;
	uint32_t crc[3]; /* CRC-32C of the first n / 3 slots, of the next n / 3, and of the others */
	uint32_t check;  /* CRC-32C of the first 36 bytes of this slot, with kind as CQ_SUM */
	uint64_t spare[3];
} cq_sum;

#define CQ_WINDOW_BYTES (512 << 10)
#define CQ_BLOCK_MAGIC "CQB1"

/* The first slot of a window. */
typedef struct {
	uint16_t zero;
	uint8_t kind;
	uint8_t flags;
	uint32_t spare;
	uint64_t number; /* of the slot behind it, plus 1; 0: none is there */
	uint64_t spare2[6];
} cq_base;

/* Before the bytes of packed slots, which are filled up to a multiple of 4. */
typedef struct {
	char magic[4];
	uint32_t scale; /* ns per tick, times 2^20: the compute time of a call is predicted by it */
	uint64_t first; /* number of the first slot */
	uint32_t n;     /* slots */
	uint32_t bytes; /* that follow */
	uint32_t crc;   /* CRC-32C of these */
	uint32_t check; /* CRC-32C of the fields before this one; both are 0 where the header has no sums */
} cq_block;

/* Payload of DEF COMM. A communicator has a number in each process; commq ingest finds out which of them are the same
 * communicator: those with equal parent, instance on the parent, and leader. Numbers 0 and 1 are MPI_COMM_WORLD and
 * MPI_COMM_SELF. The member list is written only by the leader (rank 0 of the group; for an intercommunicator each
 * group has one), and if the leader is outside MPI_COMM_WORLD by every process. */
typedef struct {
	int32_t kind;     /* schema.CommKind */
	int32_t parent;   /* number of the parent (the local communicator for an intercommunicator); CQ_NULL32: not known */
	uint64_t instance; /* n-th collective operation on the parent; for create_group and intercomm_create: 0 */
	int32_t size;     /* of the (local) group */
	int32_t rank;     /* the caller's rank in it */
	int32_t leader_world; /* world rank of its rank 0 */
	int32_t remote_size;  /* intercommunicators; else 0 */
	int32_t remote_leader_world;
	int32_t key;      /* tag of create_group and intercomm_create, hash of the string tag of *_from_group*, -1 of accept and
	                   * connect, -2 of join; else 0 */
	int32_t members;  /* world ranks that follow: size on the leader, else 0 (-1: outside MPI_COMM_WORLD) */
	int32_t remote_members; /* world ranks of the remote group that follow: remote_size on the leader, else 0 */
	int32_t dims;     /* Cartesian dimensions; extents then periods follow, 2 x dims int32 */
	int32_t edges;    /* graph neighbours this member sends to; they follow, int32 */
	/* int32 members[], remote_members[], extents[], periods[], edges[] */
} cq_def_comm;

typedef struct {
	int64_t bytes;  /* MPI_Type_size */
	int64_t extent; /* MPI_Type_get_extent */
	int32_t combiner; /* 0 named, 1 dup, 2 contiguous, 3 vector, 4 hvector, 5 indexed, 6 hindexed, 7 indexed_block, 8 hindexed_block, 9 struct, 10 subarray, 11 darray, 12 resized, 13 f90, -1 other */
	int32_t spare;
	/* then the name, not terminated; empty: none */
} cq_def_type;

/* A loaded module. Its addresses are low to high - 1, until a later definition takes them over. Modules and sites
 * share one sequence of numbers, in all threads of the process: a frame belongs to the module that has its address
 * and the highest number below the site's own. */
typedef struct {
	uint64_t low, high;
	uint64_t bias;  /* address minus address in the file's program headers */
	int32_t id_bytes; /* of the build id */
	int32_t skip;   /* 1: the shim or the MPI library, whose frames are not the program's */
	/* then the build id, then the path, not terminated */
} cq_def_module;

enum { CQ_TIMER_MONOTONIC = 0, CQ_TIMER_TSC = 1, CQ_TIMER_CNTVCT = 2, CQ_TIMER_VIRTUAL = 3 };
enum { CQ_VIRTUAL_START = 1000000 }; /* ticks of the virtual timer are picoseconds, and this is its first: a t1 of 0 is none */
enum { CQ_CLOCK_NONE = 0, CQ_CLOCK_WALL = 1, CQ_CLOCK_CPU = 2 };
enum { CQ_ALGORITHM_NONE = 0, CQ_ALGORITHM_CRC64 = 1, CQ_ALGORITHM_CRC32 = 2 };
enum { CQ_COUNTERS_NONE = 0, CQ_COUNTERS_PERF = 1, CQ_COUNTERS_FAKE = 2 };
enum { CQ_ENDED_NOT = 0, CQ_ENDED_FINALIZED = 1, CQ_ENDED_ABORTED = 2 };

typedef struct {
	char magic[8];
	uint32_t header_bytes;
	uint32_t slot_bytes;
	uint32_t version;
	uint32_t ended; /* CQ_ENDED_* */
	int32_t rank;   /* in MPI_COMM_WORLD */
	int32_t size;
	int32_t thread;
	int32_t thread_level; /* provided: 0 single .. 3 multiple */
	uint64_t job;
	uint32_t timer;
	uint32_t compute_clock;
	/* The timer and CLOCK_MONOTONIC read together: at the start, and when a chunk was last added or at the end.
	 * DEF CLOCK slots have pairs in between. */
	uint64_t clock0_tick;
	int64_t clock0_ns;
	uint64_t clock1_tick;
	int64_t clock1_ns;
	int64_t realtime_ns; /* CLOCK_REALTIME at clock0 */
	/* This host's CLOCK_MONOTONIC minus that of rank 0's host, at MPI_Init and MPI_Finalize; CQ_NULL64 where not
	 * measured. */
	int64_t offset_init_ns;
	int64_t offset_init_error_ns;
	int64_t offset_init_at_ns; /* when, on this host's CLOCK_MONOTONIC */
	int64_t offset_final_ns;
	int64_t offset_final_error_ns;
	int64_t offset_final_at_ns;
	uint64_t dropped; /* calls that could not be recorded */
	uint64_t polls;   /* all failed polls, at the end (0 when the process was killed: see PRE slots) */
	int64_t pid;
	uint64_t slots;    /* used slots, even if they were not kept (COMMQ_SINK=null); at the end, and at a flush */
	uint64_t limit;    /* bytes that the file may have; 0: no limit */
	uint64_t marks;    /* SIGUSR1 received */
	int64_t mark_ns;   /* the last of them, on CLOCK_MONOTONIC */
	uint32_t hash;     /* CQ_ALGORITHM_* */
	uint32_t hash_verify;
	uint32_t stack;    /* frames of a call site; 0: none */
	uint32_t counters; /* CQ_COUNTERS_* */
	uint32_t sessions; /* 1: started by MPI_Session_init: rank and size are those in mpi://WORLD, and MPI_COMM_WORLD is there
	                    * only if MPI_Init is called later */
	uint32_t limited;  /* 1: recording stopped at the limit */
	uint64_t calls;    /* COMMQ_SINK=null: CALL slots that were used; else 0 */
	uint64_t summed;   /* slots that SUM slots cover, when the file was closed */
	uint32_t sums;     /* 1: there are SUM slots */
	uint32_t check;    /* CRC-32C of the header with 0 here, when the file was closed; 0: it was not, or has no sums */
	uint32_t packed;   /* 1: blocks follow the header, not slots */
	uint32_t threads;  /* in the header of thread 0 when MPI_Finalize ended: threads with records; else 0 */
	char host[64];        /* host name, terminated */
	char boot_id[64];     /* distinguishes machines with the same name */
	char mpi_library[512]; /* MPI_Get_library_version, first bytes, terminated */
	char program[256];    /* path of the executable, terminated, last bytes if longer */
	uint8_t cores[512];   /* cores that the process might use at MPI_Init: bit i % 8 of byte i / 8 is core i; all 0: not known */
	uint64_t blocks;      /* COMMQ_SINK=null: bytes of the blocks that the slots would be; else 0 */
	char pad[2424];
} cq_header;

_Static_assert(sizeof(cq_call) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_side) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_coll) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_parts) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_done) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_start) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_pre) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_wide) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_err) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_hashes) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_rma) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_io) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_def) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_blob) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_sum) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_base) == CQ_SLOT_BYTES, "slot");
_Static_assert(sizeof(cq_block) == 32, "block");
_Static_assert(sizeof(cq_header) == CQ_HEADER_BYTES, "header");

#endif
