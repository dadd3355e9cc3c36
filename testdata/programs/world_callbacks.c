/* MPI_COMM_WORLD's attributes, error handlers and callbacks, as rank 3 sees them. Run with 4 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define W MPI_COMM_WORLD
#if defined(OPEN_MPI) /* removed from its mpi.h, but not from the library */
#undef MPI_Errhandler_create
#undef MPI_Errhandler_set
int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
#endif

static int rank, other, ten = 10;
static MPI_Comm dup;

static const char *which(MPI_Comm c)
{
	return c == W ? "WORLD" : c == MPI_COMM_SELF ? "SELF" : c == dup ? "dup" : "another";
}

#define SAY(...) do { if (rank == 3) { printf(__VA_ARGS__); fflush(stdout); } } while (0)

static int copy(MPI_Comm c, int keyval, void *extra, void *in, void *out, int *flag)
{
	SAY("copy from %s, extra %d, value %d\n", which(c), *(int *)extra, *(int *)in);
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}

static int gone(MPI_Comm c, int keyval, void *value, void *extra)
{
	int size, there = 0;
	void *v;
	MPI_Comm_size(c, &size);
	if (c == W)
		MPI_Comm_get_attr(W, other, &v, &there);
	SAY("delete from %s of %d, extra %d, value %d, other %d\n", which(c), size, *(int *)extra, *(int *)value, there);
	return *(int *)value == 9 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void handler(MPI_Comm *c, int *code, ...)
{
	int class;
	MPI_Error_class(*code, &class);
	SAY("handler: %s, %s\n", which(*c), class == MPI_ERR_RANK ? "rank" : class == MPI_ERR_TAG ? "tag" : class == MPI_ERR_OTHER ? "other" : class == MPI_ERR_COMM ? "comm" : "?");
}

static void second(MPI_Comm *c, int *code, ...)
{
	SAY("second handler: %s\n", which(*c));
}

static void predefined(const char *what, MPI_Comm c)
{
	static const struct {
		const char *name;
		int keyval;
	} all[] = {{"TAG_UB", MPI_TAG_UB}, {"HOST", MPI_HOST}, {"IO", MPI_IO}, {"WTIME_IS_GLOBAL", MPI_WTIME_IS_GLOBAL}, {"UNIVERSE_SIZE", MPI_UNIVERSE_SIZE},
		{"APPNUM", MPI_APPNUM}, {"LASTUSEDCODE", MPI_LASTUSEDCODE}};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		int *v = NULL, *w = NULL, flag = -1, f = -1;
		MPI_Comm_get_attr(c, all[i].keyval, &v, &flag);
		MPI_Attr_get(c, all[i].keyval, &w, &f);
		SAY("%s %s: %d %d, %d %d\n", what, all[i].name, flag, flag ? *v : 0, f, f ? *w : 0);
	}
}

int main(int argc, char **argv)
{
	int keyval, old, one, three = 3, five = 5, nine = 9, err, flag, class, code;
	MPI_Comm again, split;
	MPI_Errhandler h, s, got;
	void *v;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(W, &rank);
	MPI_Comm_dup(W, &dup);
	MPI_Comm_dup(dup, &again);
	MPI_Comm_split(W, 0, rank, &split);
	predefined("WORLD", W);
	predefined("dup", dup);
	predefined("its dup", again);
	predefined("split", split);
	predefined("SELF", MPI_COMM_SELF);
	MPI_Comm_free(&again);
	MPI_Comm_free(&split);
	MPI_Comm_free(&dup);
	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
	MPI_Comm_get_attr(W, MPI_LASTUSEDCODE, &v, &flag);
	SAY("last code %d %d\n", flag, *(int *)v == code);

	MPI_Comm_create_keyval(copy, gone, &keyval, &ten);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, gone, &other, &ten);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &one, NULL);
	MPI_Keyval_create(copy, gone, &old, &three);
	MPI_Comm_set_attr(W, keyval, &five);
	MPI_Comm_set_attr(W, other, &three);
	MPI_Comm_set_attr(W, one, &five);
	MPI_Attr_put(W, old, &ten);
	MPI_Comm_dup(W, &dup);
	MPI_Comm_get_attr(dup, keyval, &v, &flag);
	SAY("dup has %d %d\n", flag, flag && v == &five);
	MPI_Comm_get_attr(dup, other, &v, &flag);
	SAY("dup has %d\n", flag);
	MPI_Comm_get_attr(dup, one, &v, &flag);
	SAY("dup has %d\n", flag);
	MPI_Attr_get(W, old, &v, &flag);
	SAY("WORLD has %d %d\n", flag, flag && v == &ten);
	MPI_Comm_dup(dup, &again);
	MPI_Comm_free(&again);
	MPI_Comm_free(&dup);
	MPI_Comm_set_attr(W, keyval, &three); /* deletes the previous one */
	MPI_Attr_delete(W, old);

	MPI_Comm_create_errhandler(handler, &h);
	MPI_Errhandler_create(second, &s);
	MPI_Comm_set_errhandler(W, h);
	MPI_Comm_get_errhandler(W, &got);
	SAY("handler is set: %d\n", got == h);
	MPI_Errhandler_free(&got);
	err = MPI_Send(&one, 1, MPI_INT, 4, 9, W);
	MPI_Error_class(err, &class);
	SAY("to rank 4: %d\n", class == MPI_ERR_RANK);
	err = MPI_Send(&one, 1, MPI_INT, 2, -9, W);
	MPI_Error_class(err, &class);
	SAY("tag -9: %d\n", class == MPI_ERR_TAG);
	MPI_Comm_call_errhandler(W, MPI_ERR_OTHER);
	MPI_Comm_set_attr(W, keyval, &nine);
	err = MPI_Comm_delete_attr(W, keyval);
	SAY("refused: %d\n", err != MPI_SUCCESS);
	MPI_Comm_dup(W, &dup);
	MPI_Comm_call_errhandler(dup, MPI_ERR_OTHER);
	MPI_Comm_free(&dup);
	MPI_Errhandler_set(W, s);
	MPI_Comm_call_errhandler(W, MPI_ERR_OTHER);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, s);
	MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, h);
	err = MPI_Type_free(&(MPI_Datatype){MPI_INT}); /* an error without a communicator */
	SAY("MPI_INT stays: %d\n", err != MPI_SUCCESS);
	MPI_Comm_free(&(MPI_Comm){MPI_COMM_NULL});
	MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
	err = MPI_Recv(&one, 1, MPI_INT, 5, 9, W, MPI_STATUS_IGNORE);
	MPI_Error_class(err, &class);
	SAY("from rank 5: %d\n", class == MPI_ERR_RANK);
	MPI_Errhandler_free(&h);
	MPI_Errhandler_free(&s);

	nine = 4; /* no longer refused: under MPICH a rank whose MPI_Finalize fails on it ends unannounced, and the launcher kills the others */
	MPI_Comm_set_attr(W, keyval, &ten);
	MPI_Comm_set_attr(MPI_COMM_SELF, other, &five);
	SAY("the end\n");
	MPI_Finalize();
	SAY("after it\n");
	return 0;
}
