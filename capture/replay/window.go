package replay

// Window is a part of the run that is played by itself.
type Window struct {
	// First and End are the rows of each rank: those from First on and before End. A rank whose two are equal has no part in it.
	First, End []int64
}
