// The program that plays a schedule (see ../file.go): every rank makes its calls in order, on its own buffers, and
// computes in between. ../ops.go puts the definitions of operations before this file.
#include <mpi.h>

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(OPEN_MPI) && defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(name) MPIX_##name##_init
#endif

// The compiler takes MPI's sentinels for arrays that are too short, and warns.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"

typedef int64_t word;

static const word *file;
static int rank, ranks;
static word row_seq; // seq of the current row, for messages

static void fail(const char *what)
{
    fprintf(stderr, "commq replay: rank %d, seq %lld: %s\n", rank, (long long)row_seq, what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

// ---- computing ----

static enum { BUSY, SLEEP, ZERO } mode;
static double loops_per_ns = 1, read_ns;

static int64_t cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void spin(double loops)
{
    for (int64_t i = (int64_t)loops; i > 0; i--)
        __asm__ volatile("" : "+r"(i));
}

// Takes the fastest of several tries: the others were disturbed.
static void calibrate(void)
{
    const int64_t loops = 400000;
    int64_t best = INT64_MAX, reads = INT64_MAX;
    for (int i = 0; i < 16; i++) {
        int64_t a = cpu_now();
        int64_t b = cpu_now();
        spin(loops);
        int64_t c = cpu_now();
        if (b - a < reads) reads = b - a;
        if (c - b < best) best = c - b;
    }
    read_ns = (double)reads;
    if (best > reads) loops_per_ns = (double)loops / (double)(best - reads);
}

// Bursts of at least LONG_NS read the clock, shorter ones only now and then. Reading is needed because the speed of
// the loop changes: another thread on the same core halves it.
enum { LONG_NS = 20000, PLAYER_NS = 30, NOW_AND_THEN = 64 };

// Spins for about ns nanoseconds, and corrects loops_per_ns by the time that took; returns the clock.
static int64_t spin_measured(double ns, int64_t from)
{
    const double loops = ns * loops_per_ns;
    spin(loops);
    const int64_t to = cpu_now();
    const double took = (double)(to - from) - read_ns;
    if (took > 1000) loops_per_ns += 0.2 * (loops / took - loops_per_ns);
    return to;
}

static void compute(int64_t ns)
{
    static unsigned bursts;
    if (mode == ZERO || ns <= 0) return;
    if (mode == SLEEP) {
        struct timespec t = {ns / 1000000000, ns % 1000000000};
        while (nanosleep(&t, &t)) {}
        return;
    }
    if (ns < LONG_NS && (ns < 2000 || ++bursts % NOW_AND_THEN)) {
        if (ns > PLAYER_NS) spin((double)(ns - PLAYER_NS) * loops_per_ns);
        return;
    }
    const int64_t start = cpu_now();
    for (int64_t now = start;;) {
        const double left = (double)(ns - (now - start)) - read_ns;
        if (left < 500) {
            if (left > 0) spin(left * loops_per_ns);
            return;
        }
        now = spin_measured(left > 2 * LONG_NS ? LONG_NS : left / 2, now);
    }
}

// ---- datatypes, operations ----

#define NAMED_TYPES(X) \
    X(MPI_CHAR) X(MPI_SIGNED_CHAR) X(MPI_UNSIGNED_CHAR) X(MPI_BYTE) X(MPI_WCHAR) X(MPI_SHORT) X(MPI_UNSIGNED_SHORT) \
    X(MPI_INT) X(MPI_UNSIGNED) \
    X(MPI_LONG) X(MPI_UNSIGNED_LONG) X(MPI_FLOAT) X(MPI_DOUBLE) X(MPI_LONG_DOUBLE) X(MPI_LONG_LONG_INT) \
    X(MPI_LONG_LONG) X(MPI_UNSIGNED_LONG_LONG) \
    X(MPI_PACKED) X(MPI_FLOAT_INT) X(MPI_DOUBLE_INT) X(MPI_LONG_INT) X(MPI_SHORT_INT) X(MPI_2INT) \
    X(MPI_LONG_DOUBLE_INT) X(MPI_AINT) X(MPI_OFFSET) X(MPI_COUNT) \
    X(MPI_INT8_T) X(MPI_INT16_T) X(MPI_INT32_T) X(MPI_INT64_T) X(MPI_UINT8_T) X(MPI_UINT16_T) X(MPI_UINT32_T) \
    X(MPI_UINT64_T) X(MPI_C_BOOL) \
    X(MPI_C_COMPLEX) X(MPI_C_FLOAT_COMPLEX) X(MPI_C_DOUBLE_COMPLEX) X(MPI_C_LONG_DOUBLE_COMPLEX) \
    X(MPI_COMPLEX) X(MPI_DOUBLE_COMPLEX) X(MPI_LOGICAL) X(MPI_REAL) X(MPI_DOUBLE_PRECISION) X(MPI_INTEGER) \
    X(MPI_CHARACTER) \
    X(MPI_2INTEGER) X(MPI_2REAL) X(MPI_2DOUBLE_PRECISION) X(MPI_INTEGER1) X(MPI_INTEGER2) X(MPI_INTEGER4) \
    X(MPI_INTEGER8) X(MPI_REAL4) X(MPI_REAL8)

static MPI_Datatype named(const char *name, word bytes)
{
#define X(t) if (!strcmp(name, #t)) return t == MPI_DATATYPE_NULL ? MPI_DATATYPE_NULL : t;
    NAMED_TYPES(X)
#undef X
    (void)bytes;
    return MPI_DATATYPE_NULL;
}

static void keep_inout(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)len, (void)type;
}

static MPI_Datatype *types;
static word *extents; // of types
static char *own_types;    // 1 for each type made here
static MPI_Op ops[] = {MPI_OP_NULL, REDUCE_OPS};

// Makes a predefined type that the library lacks from bytes, like a derived one.
static void make_types(const word *list, word n, const char *names)
{
    types = calloc(n, sizeof *types);
    extents = calloc(n, sizeof *extents);
    own_types = calloc(n, 1);
    for (word i = 0; i < n; i++, list += 3) {
        types[i] = list[0] >= 0 ? named(names + list[0], list[1]) : MPI_DATATYPE_NULL;
        int size = -1;
        if (types[i] != MPI_DATATYPE_NULL) MPI_Type_size(types[i], &size);
        extents[i] = list[2];
        if (size == list[1]) continue;
        own_types[i] = 1;
        MPI_Datatype bytes;
        MPI_Type_contiguous((int)list[1], MPI_BYTE, &bytes);
        MPI_Type_create_resized(bytes, 0, list[2], &types[i]);
        MPI_Type_commit(&types[i]);
        MPI_Type_free(&bytes);
    }
    MPI_Op_create(keep_inout, 1, &ops[0]);
}

// ---- the rank's handles and memory ----

typedef struct {
    int known, in, out;
    int *from, *to;
} Neighbours;

static MPI_Comm *comms;
static Neighbours *topologies;
static MPI_Request *requests;
static MPI_Message *messages;
static char *send_area, *recv_area, *buffer;
static word buffer_bytes;

static int to_int(word n) { return (int)n; }
static int peer(word p) { return p < 0 ? MPI_PROC_NULL : (int)p; }

static void *reserve(word bytes, int touch)
{
    if (bytes == 0) bytes = 64;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) fail("no memory for the buffers of messages");
    if (touch) memset(p, 0, bytes);
    return p;
}

static void attach(void)
{
    if (!buffer) buffer = malloc(buffer_bytes + 65536);
    MPI_Buffer_attach(buffer, to_int(buffer_bytes + 65536));
}

// A list of requests, by their numbers and by their handles.
typedef struct {
    int n, room;
    int *slot, *index;
    MPI_Request *handle;
} List;

static List list;

static void load_list(const word *a)
{
    const int n = to_int(a[0]);
    if (n > list.room) {
        list.room = 2 * n;
        list.slot = realloc(list.slot, list.room * sizeof *list.slot);
        list.index = realloc(list.index, list.room * sizeof *list.index);
        list.handle = realloc(list.handle, list.room * sizeof *list.handle);
    }
    list.n = n;
    for (int i = 0; i < n; i++) {
        list.slot[i] = to_int(a[1 + i]);
        list.handle[i] = requests[list.slot[i]];
    }
}

static void store_list(void)
{
    for (int i = 0; i < list.n; i++) requests[list.slot[i]] = list.handle[i];
}

// Waits, unseen by a recorder, until a call that completes some of the requests would complete all of them.
static void wait_for_all(void)
{
    for (int i = 0; i < list.n; i++)
        for (int done = list.handle[i] == MPI_REQUEST_NULL; !done;) {
            PMPI_Request_get_status(list.handle[i], &done, MPI_STATUS_IGNORE);
            if (!done) sched_yield();
        }
}

static int *ints(word n)
{
    int *p = calloc(n > 0 ? n : 1, sizeof *p);
    if (!p) fail("no memory");
    return p;
}

// ---- communicators ----

static MPI_Group subgroup(MPI_Comm parent, const word *a)
{
    MPI_Group all, group;
    int *members = ints(a[0]);
    for (word i = 0; i < a[0]; i++) members[i] = to_int(a[1 + i]);
    MPI_Comm_group(parent, &all);
    MPI_Group_incl(all, to_int(a[0]), members, &group);
    MPI_Group_free(&all);
    free(members);
    return group;
}

static int constructor(int op, const word *a)
{
    MPI_Comm parent = comms[a[0]], none, *made = a[1] < 0 ? &none : &comms[a[1]];
    int rc = MPI_SUCCESS;
    switch (op) {
    case OP_Comm_dup: return MPI_Comm_dup(parent, made);
    case OP_Comm_dup_with_info: return MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, made);
    case OP_Comm_idup: return MPI_Comm_idup(parent, made, &requests[a[2]]);
#if MPI_VERSION >= 4
    case OP_Comm_idup_with_info: return MPI_Comm_idup_with_info(parent, MPI_INFO_NULL, made, &requests[a[2]]);
#endif
    case OP_Comm_split: return MPI_Comm_split(parent, a[2] < 0 ? MPI_UNDEFINED : to_int(a[2]), to_int(a[3]), made);
    case OP_Comm_create:
    case OP_Comm_create_group: {
        MPI_Group group = a[2] ? subgroup(parent, a + 2) : MPI_GROUP_EMPTY;
        rc = op == OP_Comm_create ? MPI_Comm_create(parent, group, made) : MPI_Comm_create_group(parent, group, 0,
            made);
        if (a[2]) MPI_Group_free(&group);
        return rc;
    }
    case OP_Cart_create:
    case OP_Cart_sub: {
        const word n = a[2];
        int *x = ints(n), *y = ints(n);
        for (word i = 0; i < n; i++) {
            x[i] = to_int(op == OP_Cart_create ? a[3 + 2 * i] : a[3 + i]);
            y[i] = op == OP_Cart_create ? to_int(a[4 + 2 * i]) : 0;
        }
        rc = op == OP_Cart_create ? MPI_Cart_create(parent, to_int(n), x, y, 0, made) : MPI_Cart_sub(parent, x, made);
        free(x), free(y);
        return rc;
    }
    case OP_Graph_create: {
        const word n = a[2];
        word edges = 0, k = 3;
        for (word i = 0; i < n; i++) edges += a[k], k += 1 + a[k];
        int *index = ints(n), *to = ints(edges), e = 0;
        k = 3;
        for (word i = 0; i < n; i++) {
            const word m = a[k++];
            for (word j = 0; j < m; j++) to[e++] = to_int(a[k++]);
            index[i] = e;
        }
        rc = MPI_Graph_create(parent, to_int(n), index, to, 0, made);
        free(index), free(to);
        return rc;
    }
    case OP_Dist_graph_create:
    case OP_Dist_graph_create_adjacent: {
        const word in = a[2], out = a[3 + in];
        int *from = ints(in), *to = ints(out), me;
        for (word i = 0; i < in; i++) from[i] = to_int(a[3 + i]);
        for (word i = 0; i < out; i++) to[i] = to_int(a[4 + in + i]);
        MPI_Comm_rank(parent, &me);
        int degree = to_int(out);
        if (op == OP_Dist_graph_create)
            rc = MPI_Dist_graph_create(parent, 1, &me, &degree, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
        else
            rc = MPI_Dist_graph_create_adjacent(parent, to_int(in), from, MPI_UNWEIGHTED, to_int(out), to,
                MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
        free(from), free(to);
        return rc;
    }
    case OP_Intercomm_create: return MPI_Intercomm_create(parent, 0, MPI_COMM_WORLD, to_int(a[2]), to_int(a[3]), made);
    case OP_Intercomm_merge: return MPI_Intercomm_merge(parent, to_int(a[2]), made);
    }
    fail("this MPI library does not have that constructor");
    return rc;
}

// The neighbours of the rank in a topology; asks MPI once.
static Neighbours *neighbours(word comm)
{
    Neighbours *n = &topologies[comm];
    if (n->known) return n;
    n->known = 1;
    int kind, me;
    MPI_Topo_test(comms[comm], &kind);
    MPI_Comm_rank(comms[comm], &me);
    if (kind == MPI_CART) {
        int dims;
        MPI_Cartdim_get(comms[comm], &dims);
        n->in = n->out = 2 * dims;
        n->from = ints(2 * dims), n->to = n->from;
        for (int d = 0; d < dims; d++) MPI_Cart_shift(comms[comm], d, 1, &n->from[2 * d], &n->from[2 * d + 1]);
    } else if (kind == MPI_GRAPH) {
        MPI_Graph_neighbors_count(comms[comm], me, &n->in);
        n->out = n->in;
        n->from = ints(n->in), n->to = n->from;
        MPI_Graph_neighbors(comms[comm], me, n->in, n->from);
    } else if (kind == MPI_DIST_GRAPH) {
        int weighted;
        MPI_Dist_graph_neighbors_count(comms[comm], &n->in, &n->out, &weighted);
        n->from = ints(n->in), n->to = ints(n->out);
        int *w = ints(n->in), *v = ints(n->out);
        MPI_Dist_graph_neighbors(comms[comm], n->in, n->from, w, n->out, n->to, v);
        free(w), free(v);
    } else {
        fail("a neighbourhood collective on a communicator without a topology");
    }
    return n;
}

// Divides the count for each peer among the places where the neighbour list names the peer.
static int *spread_counts(int n, const int *who, word peers, const word *peer_ranks, const word *counts)
{
    int *out = ints(n);
    for (word p = 0; p < peers; p++) {
        int times = 0, nth = 0;
        for (int i = 0; i < n; i++) times += who[i] == peer_ranks[p];
        if (times == 0) {
            if (counts[p]) fail("a neighbourhood collective exchanges data with a rank that is no neighbour");
            continue;
        }
        for (int i = 0; i < n; i++)
            if (who[i] == peer_ranks[p]) out[i] = to_int(counts[p] / times + (nth++ < counts[p] % times));
    }
    return out;
}

static int *displacements(const int *counts, word n, word unit)
{
    int *d = ints(n);
    word sum = 0;
    for (word i = 0; i < n; i++) d[i] = to_int(sum * unit), sum += counts[i];
    return d;
}

// ---- collectives ----

enum { BLOCKING, NONBLOCKING, MAKES };

// Arrays of a nonblocking or persistent collective are never freed: they must outlive it, and the program ends soon.
typedef struct {
    int *scounts, *rcounts, *sdispls, *rdispls;
    MPI_Datatype *stypes, *rtypes;
    MPI_Aint *saddr, *raddr;
} Lists;

static int *from_words(const word *w, word n)
{
    int *p = ints(n);
    for (word i = 0; i < n; i++) p[i] = to_int(w[i]);
    return p;
}

static MPI_Datatype *repeat_type(MPI_Datatype t, word n)
{
    MPI_Datatype *p = malloc((n > 0 ? n : 1) * sizeof *p);
    for (word i = 0; i < n; i++) p[i] = t;
    return p;
}

static MPI_Aint *addresses(const int *d, word n)
{
    MPI_Aint *p = malloc((n > 0 ? n : 1) * sizeof *p);
    for (word i = 0; i < n; i++) p[i] = d[i];
    return p;
}

static void release(Lists *l)
{
    free(l->scounts), free(l->rcounts), free(l->sdispls), free(l->rdispls);
    free(l->stypes), free(l->rtypes), free(l->saddr), free(l->raddr);
}

#ifdef PERSISTENT
#define FORMS(Name, name, ...) \
    return form == BLOCKING      ? MPI_##Name(__VA_ARGS__) \
           : form == NONBLOCKING ? MPI_I##name(__VA_ARGS__, req) \
                                 : PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, req)
#else
#define FORMS(Name, name, ...) return form == BLOCKING ? MPI_##Name(__VA_ARGS__) : MPI_I##name(__VA_ARGS__, req)
#endif

static int exchange(int what, int form, const word *a, Lists *l)
{
    MPI_Comm comm = comms[a[2]];
    const int root = a[3] == -2 ? MPI_ROOT : peer(a[3]);
    const int scount = to_int(a[4]), rcount = to_int(a[6]);
    MPI_Datatype stype = types[a[5]], rtype = types[a[7]];
    MPI_Op op = a[8] == 0 ? ops[0] : ops[a[8] - FIRST_OP_MPI + 1];
    void *send = send_area, *recv = recv_area + a[9];
    MPI_Request *req = a[10] < 0 ? NULL : &requests[a[10]];
    const word n = a[11], *w = a + 12;
#ifndef PERSISTENT
    if (form == MAKES) fail("this MPI library has no persistent collectives");
#endif
    switch (what) {
    case COLL_Reduce_scatter:
    case COLL_Gatherv:
    case COLL_Allgatherv:
        l->rcounts = from_words(w, n);
        l->rdispls = displacements(l->rcounts, n, 1);
        break;
    case COLL_Scatterv:
        l->scounts = from_words(w, n);
        l->sdispls = displacements(l->scounts, n, 1);
        break;
    case COLL_Alltoallv:
    case COLL_Alltoallw:
        l->scounts = from_words(w, n);
        l->rcounts = from_words(w + n, n);
        l->sdispls = displacements(l->scounts, n, what == COLL_Alltoallw ? extents[a[5]] : 1);
        l->rdispls = displacements(l->rcounts, n, what == COLL_Alltoallw ? extents[a[7]] : 1);
        l->stypes = repeat_type(stype, n), l->rtypes = repeat_type(rtype, n);
        break;
    }
    if (what >= COLL_Neighbor_allgather) {
        Neighbours *x = neighbours(a[2]);
        l->scounts = spread_counts(x->out, x->to, n, w, w + n);
        l->rcounts = spread_counts(x->in, x->from, n, w, w + 2 * n);
        l->sdispls = displacements(l->scounts, x->out, what == COLL_Neighbor_alltoallw ? extents[a[5]] : 1);
        l->rdispls = displacements(l->rcounts, x->in, what == COLL_Neighbor_alltoallw ? extents[a[7]] : 1);
        l->stypes = repeat_type(stype, x->out), l->rtypes = repeat_type(rtype, x->in);
        l->saddr = addresses(l->sdispls, x->out), l->raddr = addresses(l->rdispls, x->in);
        int send_each = 0, recv_each = 0; // collectives without lists have one count for all neighbours
        for (int i = 0; i < x->out; i++) send_each = l->scounts[i] > send_each ? l->scounts[i] : send_each;
        for (int i = 0; i < x->in; i++) recv_each = l->rcounts[i] > recv_each ? l->rcounts[i] : recv_each;
        // Open MPI returns at once if a count is 0, so a rank without neighbours on one side takes the other side's
        // count
        if (x->in == 0) recv_each = send_each, rtype = stype;
        if (x->out == 0) send_each = recv_each, stype = rtype;
        switch (what) {
        case COLL_Neighbor_allgather: FORMS(Neighbor_allgather, neighbor_allgather, send, send_each, stype, recv,
            recv_each, rtype, comm);
        case COLL_Neighbor_alltoall: FORMS(Neighbor_alltoall, neighbor_alltoall, send, send_each, stype, recv,
            recv_each, rtype, comm);
        case COLL_Neighbor_allgatherv:
            FORMS(Neighbor_allgatherv, neighbor_allgatherv, send, send_each, stype, recv, l->rcounts, l->rdispls,
                rtype, comm);
        case COLL_Neighbor_alltoallv:
            FORMS(Neighbor_alltoallv, neighbor_alltoallv, send, l->scounts, l->sdispls, stype, recv, l->rcounts,
                l->rdispls, rtype, comm);
        case COLL_Neighbor_alltoallw:
            FORMS(Neighbor_alltoallw, neighbor_alltoallw, send, l->scounts, l->saddr, l->stypes, recv, l->rcounts,
                l->raddr, l->rtypes, comm);
        }
    }
    switch (what) {
    case COLL_Barrier:
#ifdef PERSISTENT
        return form == BLOCKING ? MPI_Barrier(comm) : form == NONBLOCKING ? MPI_Ibarrier(comm, req) :
            PERSISTENT(Barrier)(comm, MPI_INFO_NULL, req);
#else
        return form == BLOCKING ? MPI_Barrier(comm) : MPI_Ibarrier(comm, req);
#endif
    case COLL_Bcast: FORMS(Bcast, bcast, recv, scount, stype, root, comm);
    case COLL_Reduce: FORMS(Reduce, reduce, send, recv, scount, stype, op, root, comm);
    case COLL_Allreduce: FORMS(Allreduce, allreduce, send, recv, scount, stype, op, comm);
    case COLL_Scan: FORMS(Scan, scan, send, recv, scount, stype, op, comm);
    case COLL_Exscan: FORMS(Exscan, exscan, send, recv, scount, stype, op, comm);
    case COLL_Reduce_scatter: FORMS(Reduce_scatter, reduce_scatter, send, recv, l->rcounts, stype, op, comm);
    case COLL_Reduce_scatter_block: FORMS(Reduce_scatter_block, reduce_scatter_block, send, recv, rcount, stype, op,
        comm);
    case COLL_Gather: FORMS(Gather, gather, send, scount, stype, recv, rcount, rtype, root, comm);
    case COLL_Gatherv: FORMS(Gatherv, gatherv, send, scount, stype, recv, l->rcounts, l->rdispls, rtype, root, comm);
    case COLL_Scatter: FORMS(Scatter, scatter, send, scount, stype, recv, rcount, rtype, root, comm);
    case COLL_Scatterv: FORMS(Scatterv, scatterv, send, l->scounts, l->sdispls, stype, recv, rcount, rtype, root, comm);
    case COLL_Allgather: FORMS(Allgather, allgather, send, scount, stype, recv, rcount, rtype, comm);
    case COLL_Allgatherv: FORMS(Allgatherv, allgatherv, send, scount, stype, recv, l->rcounts, l->rdispls, rtype, comm);
    case COLL_Alltoall: FORMS(Alltoall, alltoall, send, scount, stype, recv, rcount, rtype, comm);
    case COLL_Alltoallv: FORMS(Alltoallv, alltoallv, send, l->scounts, l->sdispls, stype, recv, l->rcounts, l->rdispls,
        rtype, comm);
    case COLL_Alltoallw: FORMS(Alltoallw, alltoallw, send, l->scounts, l->sdispls, l->stypes, recv, l->rcounts,
        l->rdispls, l->rtypes, comm);
    }
    fail("unknown collective in the schedule");
    return MPI_SUCCESS;
}

static int collective(const word *a)
{
    Lists l = {0};
    const int form = to_int(a[1]);
    const int rc = exchange(to_int(a[0]), form, a, &l);
    if (form == BLOCKING) release(&l);
    return rc;
}

// ---- times ----

static const char *times_file;
static int64_t *times; // start, end, and the ends of the repetitions of each phase

static word times_words(void) { return 2 + file[6] * (file[7] + 1); }

// The barrier and the gather are not part of the schedule: they call PMPI, so that no recorder sees them.
static void begin_times(void)
{
    times = calloc(times_words(), sizeof *times);
    if (times_file) PMPI_Barrier(MPI_COMM_WORLD);
    times[0] = wall_now();
}

static void end_times(void)
{
    times[1] = wall_now();
    if (!times_file) return;
    const size_t n = times_words() * sizeof *times;
    char *all = rank == 0 ? malloc(n * ranks) : NULL;
    PMPI_Gather(times, to_int(n), MPI_BYTE, all, to_int(n), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank) return;
    FILE *f = fopen(times_file, "wb");
    if (!f || fwrite(all, n, ranks, f) != (size_t)ranks || fclose(f)) fail("cannot write the times");
}

// ---- all calls ----

#define SENDS(Name) \
    case OP_##Name: return MPI_##Name(send_area, to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]), comms[a[4]]);
#define ISENDS(Name) \
    case OP_##Name: return MPI_##Name(send_area, to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]), comms[a[4]], \
        &requests[a[5]]);
#define UNTIL(flag, call)                                  \
    do {                                                   \
        flag = 0;                                          \
        if ((rc = call) != MPI_SUCCESS) return rc;         \
        if (!flag) sched_yield();                          \
    } while (!flag)

static int play(int op, const word *a)
{
    int rc = MPI_SUCCESS, flag;
    MPI_Status *ignore = MPI_STATUS_IGNORE;
    switch (op) {
    SENDS(Send) SENDS(Bsend) SENDS(Ssend) SENDS(Rsend)
    ISENDS(Isend) ISENDS(Ibsend) ISENDS(Issend) ISENDS(Irsend) ISENDS(Send_init) ISENDS(Bsend_init)
    ISENDS(Ssend_init) ISENDS(Rsend_init)
    case OP_Recv: return MPI_Recv(recv_area + a[5], to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]), comms[a[4]],
        ignore);
    case OP_Irecv: return MPI_Irecv(recv_area + a[5], to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]), comms[a[4]],
        &requests[a[6]]);
    case OP_Recv_init: return MPI_Recv_init(recv_area + a[5], to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]),
        comms[a[4]], &requests[a[6]]);
    case OP_Mrecv:
    case OP_Imrecv: {
        MPI_Message none = MPI_MESSAGE_NO_PROC, *message = a[2] < 0 ? &none : &messages[a[2]];
        if (op == OP_Mrecv) return MPI_Mrecv(recv_area + a[3], to_int(a[0]), types[a[1]], message, ignore);
        return MPI_Imrecv(recv_area + a[3], to_int(a[0]), types[a[1]], message, &requests[a[4]]);
    }
    case OP_Probe: return MPI_Probe(peer(a[0]), to_int(a[1]), comms[a[2]], ignore);
    case OP_Mprobe: return MPI_Mprobe(peer(a[0]), to_int(a[1]), comms[a[2]], &messages[a[3]], ignore);
    case OP_Iprobe: UNTIL(flag, MPI_Iprobe(peer(a[0]), to_int(a[1]), comms[a[2]], &flag, ignore)); return rc;
    case OP_Improbe: UNTIL(flag, MPI_Improbe(peer(a[0]), to_int(a[1]), comms[a[2]], &flag, &messages[a[3]], ignore));
        return rc;
    case OP_Sendrecv:
        return MPI_Sendrecv(send_area, to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]), recv_area + a[9],
            to_int(a[4]), types[a[5]], peer(a[6]),
                            to_int(a[7]), comms[a[8]], ignore);
    case OP_Sendrecv_replace:
        return MPI_Sendrecv_replace(recv_area + a[9], to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]), peer(a[6]),
            to_int(a[7]), comms[a[8]], ignore);
#if MPI_VERSION >= 4
    case OP_Isendrecv:
        return MPI_Isendrecv(send_area, to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]), recv_area + a[9],
            to_int(a[4]), types[a[5]], peer(a[6]),
                             to_int(a[7]), comms[a[8]], &requests[a[10]]);
    case OP_Isendrecv_replace:
        return MPI_Isendrecv_replace(recv_area + a[9], to_int(a[0]), types[a[1]], peer(a[2]), to_int(a[3]), peer(a[6]),
            to_int(a[7]), comms[a[8]], &requests[a[10]]);
#endif
    case OP_Start: return MPI_Start(&requests[a[0]]);
    case OP_Startall: load_list(a); rc = MPI_Startall(list.n, list.handle); store_list(); return rc;
    case OP_Waitall: load_list(a); rc = MPI_Waitall(list.n, list.handle, MPI_STATUSES_IGNORE); store_list(); return rc;
    case OP_Testall: load_list(a); UNTIL(flag, MPI_Testall(list.n, list.handle, &flag, MPI_STATUSES_IGNORE));
        store_list(); return rc;
    case OP_Waitsome: load_list(a); wait_for_all(); rc = MPI_Waitsome(list.n, list.handle, &flag, list.index,
        MPI_STATUSES_IGNORE); store_list(); return rc;
    case OP_Testsome: load_list(a); wait_for_all(); rc = MPI_Testsome(list.n, list.handle, &flag, list.index,
        MPI_STATUSES_IGNORE); store_list(); return rc;
    case OP_Wait:
    case OP_Test:
    case OP_Waitany:
    case OP_Testany: {
        MPI_Request none = MPI_REQUEST_NULL, *one = a[0] > 0 ? &requests[a[1]] : &none;
        int index;
        switch (op) {
        case OP_Wait: return MPI_Wait(one, ignore);
        case OP_Waitany: return MPI_Waitany(to_int(a[0]), one, &index, ignore);
        case OP_Test: UNTIL(flag, MPI_Test(one, &flag, ignore)); return rc;
        default: UNTIL(flag, MPI_Testany(to_int(a[0]), one, &index, &flag, ignore)); return rc;
        }
    }
    case OP_Request_get_status: UNTIL(flag, MPI_Request_get_status(requests[a[0]], &flag, ignore)); return rc;
    case OP_Request_free: return MPI_Request_free(&requests[a[0]]);
    case OP_Cancel: return MPI_Cancel(&requests[a[0]]);
    case OP_Buffer_detach: {
        void *old;
        int bytes;
        if (!buffer) attach(); // the rank sends nothing from it
        rc = MPI_Buffer_detach(&old, &bytes);
        attach();
        return rc;
    }
    case OP_Pcontrol: return a[0] >= 2 ? MPI_Pcontrol(to_int(a[0]), (char *)NULL) : MPI_Pcontrol(to_int(a[0]));
    case OP_Comm_free: return MPI_Comm_free(&comms[a[0]]);
    case OP_Comm_disconnect: return MPI_Comm_disconnect(&comms[a[0]]);
    case OP_Collective: return collective(a);
    case OP_Compute: return MPI_SUCCESS;
    case OP_Finalize:
        end_times();
        for (word i = 0; i < file[2]; i++)
            if (own_types[i]) MPI_Type_free(&types[i]);
        MPI_Op_free(&ops[0]);
        return MPI_Finalize();
    }
    return constructor(op, a);
}

static const word *load_file(const char *name)
{
    struct stat st;
    const int fd = open(name, O_RDONLY);
    if (fd < 0 || fstat(fd, &st)) {
        fprintf(stderr, "commq replay: no schedule %s on this node; name a folder that all nodes see with "
            "--schedule-dir\n", name);
        exit(2);
    }
    const word *p = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED || st.st_size < 8 * HEADER_WORDS || p[0] != MAGIC) {
        fprintf(stderr, "commq replay: %s is not a schedule\n", name);
        exit(2);
    }
    return p;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: commq-replay SCHEDULE busy|sleep|zero [TIMES]\n");
        return 2;
    }
    file = load_file(argv[1]);
    mode = !strcmp(argv[2], "sleep") ? SLEEP : !strcmp(argv[2], "zero") ? ZERO : BUSY;
    if (mode == BUSY) calibrate();
    int level;
    if (file[5] > 0)
        MPI_Init_thread(&argc, &argv, to_int(file[5]), &level);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != file[1]) {
        if (rank == 0) fprintf(stderr, "commq replay: the launcher started %d ranks, the run has %lld\n", ranks,
            (long long)file[1]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const word ntypes = file[2], nnames = file[3], ncomms = file[4];
    const word *t = file + HEADER_WORDS, *own_words = t + 3 * ntypes + nnames + RANK_WORDS * rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    make_types(t, ntypes, (const char *)(t + 3 * ntypes));
    comms = calloc(ncomms, sizeof *comms);
    topologies = calloc(ncomms, sizeof *topologies);
    requests = calloc(own_words[4] + 1, sizeof *requests);
    messages = calloc(own_words[5] + 1, sizeof *messages);
    for (word i = 0; i < ncomms; i++) comms[i] = MPI_COMM_NULL;
    for (word i = 0; i <= own_words[4]; i++) requests[i] = MPI_REQUEST_NULL;
    for (word i = 0; i <= own_words[5]; i++) messages[i] = MPI_MESSAGE_NULL;
    comms[0] = MPI_COMM_WORLD;
    if (own_words[7] >= 0) comms[own_words[7]] = MPI_COMM_SELF;
    send_area = reserve(own_words[2], 1);
    recv_area = reserve(own_words[3], 0);
    buffer_bytes = own_words[6];
    if (buffer_bytes > 0) attach();
    times_file = argc > 3 ? argv[3] : NULL;
    const word *p = file + own_words[0], *end = p + own_words[1];
    const word *phase = NULL, *variants = NULL, *own = NULL; // first operation of a phase, and its compute times
    word repetition = 0;
    begin_times();
    while (p < end) {
        const int op = (int)(p[0] & 0xffff), flags = (int)(p[0] >> 16 & 0xffff);
        const word n = p[0] >> 32;
        row_seq = p[2];
        if (op == OP_Phase) {
            PMPI_Barrier(MPI_COMM_WORLD);
            repetition = 0;
            variants = p + 3, own = variants + 2;
            p += 3 + n, phase = p;
            continue;
        }
        if (op == OP_Phase_end) {
            times[2 + p[3] * (file[7] + 1) + repetition] = wall_now();
            own = variants + 2 + repetition % variants[0] * variants[1];
            if (repetition++ < file[7]) {
                p = phase;
            } else {
                p += 3 + n;
                phase = NULL;
            }
            continue;
        }
        compute(phase ? *own++ : p[1]);
        const int rc = play(op, p + 3);
        if (rc != MPI_SUCCESS && !(flags & FLAG_MAY_FAIL)) {
            char text[MPI_MAX_ERROR_STRING];
            int length;
            if (MPI_Error_string(rc, text, &length) != MPI_SUCCESS) fail("the call failed, and MPI has no text for it");
            fail(text);
        }
        p += 3 + n;
    }
    return 0;
}
