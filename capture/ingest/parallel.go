package ingest

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// parallel calls f for 0 to n-1 with at most this many workers. It returns the error of the lowest index that failed,
// so that a bad spool gives the same message every time.
func parallel(ctx context.Context, workers, n int, f func(int) error) error {
	workers = min(workers, n)
	if workers <= 1 {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := guarded(f, i); err != nil {
				return err
			}
		}
		return nil
	}
	var next, failed atomic.Int64
	failed.Store(int64(n))
	errs := make([]error, n)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= failed.Load() || i >= int64(n) { // lower indexes still run: their errors take precedence
					return
				}
				if errs[i] = ctx.Err(); errs[i] == nil {
					errs[i] = guarded(f, int(i))
				}
				for old := failed.Load(); errs[i] != nil && i < old &&
					!failed.CompareAndSwap(old, i); old = failed.Load() {
				}
			}
		})
	}
	wait.Wait()
	if first := failed.Load(); first < int64(n) {
		return errs[first]
	}
	return nil
}

// guarded calls f(i) and returns an error for a page that cannot be read: a mapped file was cut short, or its disk
// failed.
func guarded(f func(int) error, i int) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = fmt.Errorf("a spool file could not be read to its end: was it changed meanwhile? (memory fault at %#x)", p.Addr())
		default:
			panic(p)
		}
	}()
	return f(i)
}
