package schema

import "strings"

// sides says, by CallID, which sides the row of a call of one-sided communication or of MPI-IO has.
var sides = func() [][2]bool {
	t := make([][2]bool, len(Calls))
	for i := range Calls {
		name := strings.ToLower(strings.TrimSuffix(Calls[i].Name, "_c"))
		switch Calls[i].Recorder {
		case "rma", "rma_request":
			get := strings.HasSuffix(name, "get")
			fetches := strings.Contains(name, "get") || strings.Contains(name, "fetch") || strings.Contains(name, "compare")
			t[i] = [2]bool{!get, fetches}
		case "file_rw", "file_irw", "file_begin":
			write := strings.Contains(name, "write")
			t[i] = [2]bool{write, !write}
		}
	}
	return t
}()

// Sides says which sides the row of a call has that moves data to or from a window or a file: MPI_Put and the writes send,
// MPI_Get and the reads receive, MPI_Get_accumulate, MPI_Fetch_and_op, MPI_Compare_and_swap do both. Both are false for
// all other calls.
func Sides(call CallID) (send, recv bool) { return sides[call][0], sides[call][1] }
