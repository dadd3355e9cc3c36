package nsys

import "context"

func countMPI(ctx context.Context, f *file) (n int64, err error) { return 0, nil }
