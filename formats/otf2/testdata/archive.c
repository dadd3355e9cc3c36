// Writes an OTF2 archive with OTF2's own library. A line of the standard input is a definition, or an event of a
// location: "@ LOCATION TIME NAME NUMBER...". Numbers are those of the library's functions, in their order; - is none.
//
//   archive FOLDER NAME < lines
#include <otf2/otf2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 64, MOST_LINES = 1 << 20, MOST_STRINGS = 1 << 12, MOST_LOCATIONS = 64 };

typedef struct {
    int n;
    char* w[MOST_WORDS];
} line;

static line lines[MOST_LINES];
static int line_count;
static char* strings[MOST_STRINGS];
static uint32_t string_count;
static uint64_t events_of[MOST_LOCATIONS];

static void fail(const char* what, const char* word)
{
    fprintf(stderr, "archive: %s: %s\n", what, word);
    exit(1);
}

static void check(OTF2_ErrorCode code, const line* l)
{
    if (code != OTF2_SUCCESS)
        fail(OTF2_Error_GetName(code), l->n > 0 ? l->w[0] : "");
}

static uint64_t number(const line* l, int i)
{
    if (i >= l->n)
        fail("a number is missing", l->w[0]);
    if (strcmp(l->w[i], "-") == 0)
        return UINT64_MAX;
    return strtoull(l->w[i], NULL, 10);
}

// text returns the number of a string; - is none.
static uint32_t text(const line* l, int i)
{
    if (i >= l->n)
        fail("a text is missing", l->w[0]);
    if (strcmp(l->w[i], "-") == 0)
        return OTF2_UNDEFINED_STRING;
    for (uint32_t k = 0; k < string_count; k++)
        if (strcmp(strings[k], l->w[i]) == 0)
            return k;
    strings[string_count] = l->w[i];
    return string_count++;
}

static void read_lines(void)
{
    static char row[1 << 16];
    while (fgets(row, sizeof row, stdin)) {
        line* l = &lines[line_count];
        for (char* w = strtok(row, " \n"); w && l->n < MOST_WORDS; w = strtok(NULL, " \n"))
            l->w[l->n++] = strdup(w);
        if (l->n > 0 && l->w[0][0] != '#')
            line_count++;
        else
            l->n = 0;
    }
}

#define EVENT(name, call) \
    if (strcmp(l->w[3], name) == 0) \
        return call

// N is the i-th number after the event's name.
#define N(i) number(l, 4 + (i))

static OTF2_ErrorCode message(OTF2_EvtWriter* w, const line* l, uint64_t t)
{
    EVENT("send", OTF2_EvtWriter_MpiSend(w, NULL, t, N(0), N(1), N(2), N(3)));
    EVENT("isend", OTF2_EvtWriter_MpiIsend(w, NULL, t, N(0), N(1), N(2), N(3), N(4)));
    EVENT("isend_complete", OTF2_EvtWriter_MpiIsendComplete(w, NULL, t, N(0)));
    EVENT("irecv_request", OTF2_EvtWriter_MpiIrecvRequest(w, NULL, t, N(0)));
    EVENT("recv", OTF2_EvtWriter_MpiRecv(w, NULL, t, N(0), N(1), N(2), N(3)));
    EVENT("irecv", OTF2_EvtWriter_MpiIrecv(w, NULL, t, N(0), N(1), N(2), N(3), N(4)));
    EVENT("test", OTF2_EvtWriter_MpiRequestTest(w, NULL, t, N(0)));
    EVENT("cancelled", OTF2_EvtWriter_MpiRequestCancelled(w, NULL, t, N(0)));
    EVENT("collective_begin", OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, t));
    EVENT("collective_end", OTF2_EvtWriter_MpiCollectiveEnd(w, NULL, t, N(0), N(1), N(2), N(3), N(4)));
    EVENT("nbc_request", OTF2_EvtWriter_NonBlockingCollectiveRequest(w, NULL, t, N(0)));
    EVENT("nbc_complete",
        OTF2_EvtWriter_NonBlockingCollectiveComplete(w, NULL, t, N(0), N(1), N(2), N(3), N(4), N(5)));
    EVENT("comm_create", OTF2_EvtWriter_CommCreate(w, NULL, t, N(0)));
    EVENT("comm_destroy", OTF2_EvtWriter_CommDestroy(w, NULL, t, N(0)));
    return OTF2_ERROR_INVALID_CALL;
}

static OTF2_ErrorCode one_sided(OTF2_EvtWriter* w, const line* l, uint64_t t)
{
    EVENT("win_create", OTF2_EvtWriter_RmaWinCreate(w, NULL, t, N(0)));
    EVENT("win_destroy", OTF2_EvtWriter_RmaWinDestroy(w, NULL, t, N(0)));
    EVENT("rma_collective_begin", OTF2_EvtWriter_RmaCollectiveBegin(w, NULL, t));
    EVENT("rma_collective_end", OTF2_EvtWriter_RmaCollectiveEnd(w, NULL, t, N(0), N(1), N(2), N(3), N(4), N(5)));
    EVENT("group_sync", OTF2_EvtWriter_RmaGroupSync(w, NULL, t, N(0), N(1), N(2)));
    EVENT("request_lock", OTF2_EvtWriter_RmaRequestLock(w, NULL, t, N(0), N(1), N(2), N(3)));
    EVENT("acquire_lock", OTF2_EvtWriter_RmaAcquireLock(w, NULL, t, N(0), N(1), N(2), N(3)));
    EVENT("release_lock", OTF2_EvtWriter_RmaReleaseLock(w, NULL, t, N(0), N(1), N(2)));
    EVENT("sync", OTF2_EvtWriter_RmaSync(w, NULL, t, N(0), N(1), N(2)));
    EVENT("put", OTF2_EvtWriter_RmaPut(w, NULL, t, N(0), N(1), N(2), N(3)));
    EVENT("get", OTF2_EvtWriter_RmaGet(w, NULL, t, N(0), N(1), N(2), N(3)));
    EVENT("atomic", OTF2_EvtWriter_RmaAtomic(w, NULL, t, N(0), N(1), N(2), N(3), N(4), N(5)));
    EVENT("op_complete_blocking", OTF2_EvtWriter_RmaOpCompleteBlocking(w, NULL, t, N(0), N(1)));
    EVENT("op_complete_non_blocking", OTF2_EvtWriter_RmaOpCompleteNonBlocking(w, NULL, t, N(0), N(1)));
    EVENT("op_complete_remote", OTF2_EvtWriter_RmaOpCompleteRemote(w, NULL, t, N(0), N(1)));
    return OTF2_ERROR_INVALID_CALL;
}

static OTF2_ErrorCode input_output(OTF2_EvtWriter* w, const line* l, uint64_t t)
{
    EVENT("io_create", OTF2_EvtWriter_IoCreateHandle(w, NULL, t, N(0), N(1), N(2), N(3)));
    EVENT("io_destroy", OTF2_EvtWriter_IoDestroyHandle(w, NULL, t, N(0)));
    EVENT("io_seek", OTF2_EvtWriter_IoSeek(w, NULL, t, N(0), N(1), N(2), N(3)));
    EVENT("io_begin", OTF2_EvtWriter_IoOperationBegin(w, NULL, t, N(0), N(1), N(2), N(3), N(4)));
    EVENT("io_issued", OTF2_EvtWriter_IoOperationIssued(w, NULL, t, N(0), N(1)));
    EVENT("io_complete", OTF2_EvtWriter_IoOperationComplete(w, NULL, t, N(0), N(1), N(2)));
    EVENT("io_cancelled", OTF2_EvtWriter_IoOperationCancelled(w, NULL, t, N(0), N(1)));
    return OTF2_ERROR_INVALID_CALL;
}

// metric writes so many values of metric N(0).
static OTF2_ErrorCode metric(OTF2_EvtWriter* w, const line* l, uint64_t t)
{
    OTF2_Type types[MOST_WORDS];
    OTF2_MetricValue values[MOST_WORDS];
    int n = l->n - 5;
    for (int i = 0; i < n; i++) {
        types[i] = OTF2_TYPE_UINT64;
        values[i].unsigned_int = N(1 + i);
    }
    return OTF2_EvtWriter_Metric(w, NULL, t, N(0), n, types, values);
}

// with_attribute enters a region with a list of attributes before the record.
static OTF2_ErrorCode with_attribute(OTF2_EvtWriter* w, const line* l, uint64_t t)
{
    OTF2_AttributeList* a = OTF2_AttributeList_New();
    OTF2_AttributeList_AddUint64(a, 0, N(1));
    OTF2_ErrorCode code = OTF2_EvtWriter_Enter(w, a, t, N(0));
    OTF2_AttributeList_Delete(a);
    return code;
}

static OTF2_ErrorCode region(OTF2_EvtWriter* w, const line* l, uint64_t t)
{
    EVENT("enter", OTF2_EvtWriter_Enter(w, NULL, t, N(0)));
    EVENT("leave", OTF2_EvtWriter_Leave(w, NULL, t, N(0)));
    EVENT("enter_with_attribute", with_attribute(w, l, t));
    EVENT("context_enter", OTF2_EvtWriter_CallingContextEnter(w, NULL, t, N(0), N(1)));
    EVENT("context_leave", OTF2_EvtWriter_CallingContextLeave(w, NULL, t, N(0)));
    EVENT("context_sample", OTF2_EvtWriter_CallingContextSample(w, NULL, t, N(0), N(1), N(2)));
    EVENT("flush", OTF2_EvtWriter_BufferFlush(w, NULL, t, N(0)));
    EVENT("measurement", OTF2_EvtWriter_MeasurementOnOff(w, NULL, t, N(0)));
    EVENT("metric", metric(w, l, t));
    EVENT("parameter_int", OTF2_EvtWriter_ParameterInt(w, NULL, t, N(0), N(1)));
    EVENT("thread_fork", OTF2_EvtWriter_ThreadFork(w, NULL, t, OTF2_PARADIGM_OPENMP, N(0)));
    EVENT("thread_join", OTF2_EvtWriter_ThreadJoin(w, NULL, t, OTF2_PARADIGM_OPENMP));
    EVENT("program_end", OTF2_EvtWriter_ProgramEnd(w, NULL, t, N(0)));
    return OTF2_ERROR_INVALID_CALL;
}

static void write_events(OTF2_Archive* a)
{
    typedef OTF2_ErrorCode writer(OTF2_EvtWriter*, const line*, uint64_t);
    writer* const writers[] = { region, message, one_sided, input_output };
    OTF2_EvtWriter* open[MOST_LOCATIONS] = { 0 };
    OTF2_Archive_OpenEvtFiles(a);
    for (int i = 0; i < line_count; i++) {
        const line* l = &lines[i];
        if (strcmp(l->w[0], "@") != 0)
            continue;
        uint64_t at = number(l, 1);
        if (!open[at])
            open[at] = OTF2_Archive_GetEvtWriter(a, at);
        OTF2_ErrorCode code = OTF2_ERROR_INVALID_CALL;
        for (int k = 0; k < 4 && code == OTF2_ERROR_INVALID_CALL; k++)
            code = writers[k](open[at], l, number(l, 2));
        if (code != OTF2_SUCCESS)
            fail(OTF2_Error_GetName(code), l->w[3]);
    }
    for (int k = 0; k < MOST_LOCATIONS; k++)
        if (open[k]) {
            OTF2_EvtWriter_GetNumberOfEvents(open[k], &events_of[k]);
            OTF2_Archive_CloseEvtWriter(a, open[k]);
        }
    OTF2_Archive_CloseEvtFiles(a);
}

// mapping writes "map LOCATION KIND FROM TO FROM TO ...", or "dense LOCATION KIND TO TO ...", where FROM counts from 0.
static OTF2_ErrorCode mapping(OTF2_DefWriter* w, const line* l)
{
    OTF2_IdMap* ids;
    if (strcmp(l->w[0], "dense") == 0) {
        uint64_t to[MOST_WORDS];
        for (int i = 3; i < l->n; i++)
            to[i - 3] = number(l, i);
        ids = OTF2_IdMap_CreateFromUint64Array(l->n - 3, to, false);
    } else {
        ids = OTF2_IdMap_Create(OTF2_ID_MAP_SPARSE, l->n);
        for (int i = 3; i + 1 < l->n; i += 2)
            OTF2_IdMap_AddIdPair(ids, number(l, i), number(l, i + 1));
    }
    OTF2_ErrorCode code = OTF2_DefWriter_WriteMappingTable(w, number(l, 2), ids);
    OTF2_IdMap_Free(ids);
    return code;
}

static void write_local(OTF2_Archive* a)
{
    OTF2_Archive_OpenDefFiles(a);
    for (int at = 0; at < MOST_LOCATIONS; at++) {
        OTF2_DefWriter* w = NULL;
        for (int i = 0; i < line_count; i++) {
            const line* l = &lines[i];
            bool maps = strcmp(l->w[0], "map") == 0 || strcmp(l->w[0], "dense") == 0;
            bool clock = strcmp(l->w[0], "offset") == 0;
            bool here = strcmp(l->w[0], "location") == 0;
            if ((!maps && !clock && !here) || number(l, 1) != (uint64_t)at)
                continue;
            if (!w)
                w = OTF2_Archive_GetDefWriter(a, at);
            if (maps)
                check(mapping(w, l), l);
            if (clock)
                check(OTF2_DefWriter_WriteClockOffset(w, number(l, 2), strtoll(l->w[3], NULL, 10), 0), l);
        }
        if (w)
            OTF2_Archive_CloseDefWriter(a, w);
    }
    OTF2_Archive_CloseDefFiles(a);
}

#define DEFINITION(name, call) \
    if (strcmp(l->w[0], name) == 0) \
        return call
#define D(i) number(l, i)

static OTF2_ErrorCode group(OTF2_GlobalDefWriter* w, const line* l, OTF2_GroupType type, OTF2_Paradigm paradigm)
{
    uint64_t members[MOST_WORDS];
    for (int i = 2; i < l->n; i++)
        members[i - 2] = D(i);
    return OTF2_GlobalDefWriter_WriteGroup(w, D(1), OTF2_UNDEFINED_STRING, type, paradigm, OTF2_GROUP_FLAG_NONE,
        l->n - 2, members);
}

// topology writes "cart ID COMMUNICATOR DIMENSION...".
static OTF2_ErrorCode topology(OTF2_GlobalDefWriter* w, const line* l)
{
    uint32_t dimensions[MOST_WORDS];
    for (int i = 3; i < l->n; i++)
        dimensions[i - 3] = D(i);
    return OTF2_GlobalDefWriter_WriteCartTopology(w, D(1), OTF2_UNDEFINED_STRING, D(2), l->n - 3, dimensions);
}

static OTF2_ErrorCode define_groups(OTF2_GlobalDefWriter* w, const line* l)
{
    DEFINITION("ranks", group(w, l, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI));
    DEFINITION("group", group(w, l, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI));
    DEFINITION("self", group(w, l, OTF2_GROUP_TYPE_COMM_SELF, OTF2_PARADIGM_MPI));
    DEFINITION("team", group(w, l, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_OPENMP));
    DEFINITION("comm", OTF2_GlobalDefWriter_WriteComm(w, D(1), text(l, 2), D(3), D(4), OTF2_COMM_FLAG_NONE));
    DEFINITION("intercomm",
        OTF2_GlobalDefWriter_WriteInterComm(w, D(1), text(l, 2), D(3), D(4), D(5), OTF2_COMM_FLAG_NONE));
    DEFINITION("dimension", OTF2_GlobalDefWriter_WriteCartDimension(w, D(1), OTF2_UNDEFINED_STRING, D(2), D(3)));
    DEFINITION("cart", topology(w, l));
    DEFINITION("window", OTF2_GlobalDefWriter_WriteRmaWin(w, D(1), text(l, 2), D(3), OTF2_RMA_WIN_FLAG_NONE));
    return OTF2_ERROR_INVALID_CALL;
}

static OTF2_ErrorCode define_metric(OTF2_GlobalDefWriter* w, const line* l)
{
    uint32_t member = D(1);
    OTF2_GlobalDefWriter_WriteMetricMember(w, member, text(l, 2), OTF2_UNDEFINED_STRING, OTF2_METRIC_TYPE_PAPI,
        OTF2_METRIC_ACCUMULATED_START, OTF2_TYPE_UINT64, OTF2_BASE_DECIMAL, 0, OTF2_UNDEFINED_STRING);
    return OTF2_GlobalDefWriter_WriteMetricClass(w, member, 1, &member, OTF2_METRIC_SYNCHRONOUS,
        OTF2_RECORDER_KIND_CPU);
}

static OTF2_ErrorCode define_places(OTF2_GlobalDefWriter* w, const line* l)
{
    DEFINITION("clock", OTF2_GlobalDefWriter_WriteClockProperties(w, D(1), D(2), D(3), OTF2_UNDEFINED_TIMESTAMP));
    DEFINITION("node", OTF2_GlobalDefWriter_WriteSystemTreeNode(w, D(1), text(l, 2), text(l, 3), D(4)));
    DEFINITION("process", OTF2_GlobalDefWriter_WriteLocationGroup(w, D(1), OTF2_UNDEFINED_STRING,
                              OTF2_LOCATION_GROUP_TYPE_PROCESS, D(2), OTF2_UNDEFINED_LOCATION_GROUP));
    DEFINITION("location",
        OTF2_GlobalDefWriter_WriteLocation(w, D(1), OTF2_UNDEFINED_STRING, D(3), events_of[D(1)], D(2)));
    DEFINITION("region", OTF2_GlobalDefWriter_WriteRegion(w, D(1), text(l, 2), text(l, 2), OTF2_UNDEFINED_STRING,
                             OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_USER, OTF2_REGION_FLAG_NONE, text(l, 3), D(4), 0));
    DEFINITION("source", OTF2_GlobalDefWriter_WriteSourceCodeLocation(w, D(1), text(l, 2), D(3)));
    DEFINITION("context", OTF2_GlobalDefWriter_WriteCallingContext(w, D(1), D(2), D(3), D(4)));
    DEFINITION("generator", OTF2_GlobalDefWriter_WriteInterruptGenerator(w, D(1), text(l, 2), 0, 0, 0, 1));
    DEFINITION("file", OTF2_GlobalDefWriter_WriteIoRegularFile(w, D(1), text(l, 2), OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    DEFINITION("io", OTF2_GlobalDefWriter_WriteIoParadigm(w, D(1), text(l, 2), text(l, 2), 0, 0, 0, NULL, NULL, NULL));
    DEFINITION("handle", OTF2_GlobalDefWriter_WriteIoHandle(w, D(1), text(l, 2), D(3), D(4), 0, D(5),
                             OTF2_UNDEFINED_IO_HANDLE));
    DEFINITION("metric", define_metric(w, l));
    DEFINITION("attribute",
        OTF2_GlobalDefWriter_WriteAttribute(w, D(1), text(l, 2), OTF2_UNDEFINED_STRING, OTF2_TYPE_UINT64));
    DEFINITION("parameter", OTF2_GlobalDefWriter_WriteParameter(w, D(1), text(l, 2), OTF2_PARAMETER_TYPE_INT64));
    return define_groups(w, l);
}

static bool is_local(const line* l)
{
    static const char* const words[] = { "@", "map", "dense", "offset" };
    for (int i = 0; i < 4; i++)
        if (strcmp(l->w[0], words[i]) == 0)
            return true;
    return false;
}

static void write_global(OTF2_Archive* a)
{
    OTF2_GlobalDefWriter* w = OTF2_Archive_GetGlobalDefWriter(a);
    uint32_t written = 0;
    for (int i = 0; i < line_count; i++) {
        const line* l = &lines[i];
        if (is_local(l))
            continue;
        for (int k = 1; k < l->n; k++)
            text(l, k); // numbers become strings too, which nobody names
        for (; written < string_count; written++)
            check(OTF2_GlobalDefWriter_WriteString(w, written, strings[written]), l);
        check(define_places(w, l), l);
    }
    OTF2_Archive_CloseGlobalDefWriter(a, w);
}

static OTF2_FlushType flushes(void* data, OTF2_FileType type, OTF2_LocationRef location, void* caller, bool final)
{
    (void)data, (void)type, (void)location, (void)caller, (void)final;
    return OTF2_FLUSH;
}

int main(int argc, char** argv)
{
    if (argc != 3)
        fail("want a folder and a name", argv[0]);
    read_lines();
    OTF2_FlushCallbacks callbacks = { .otf2_pre_flush = flushes, .otf2_post_flush = NULL };
    OTF2_Archive* a = OTF2_Archive_Open(argv[1], argv[2], OTF2_FILEMODE_WRITE, 1 << 18, 1 << 18, OTF2_SUBSTRATE_POSIX,
        OTF2_COMPRESSION_NONE);
    if (!a)
        fail("cannot open", argv[1]);
    OTF2_Archive_SetFlushCallbacks(a, &callbacks, NULL);
    OTF2_Archive_SetSerialCollectiveCallbacks(a);
    OTF2_Archive_SetCreator(a, "archive.c");
    write_events(a);
    write_local(a);
    write_global(a);
    return OTF2_Archive_Close(a) == OTF2_SUCCESS ? 0 : 1;
}
