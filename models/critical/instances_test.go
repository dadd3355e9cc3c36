package critical

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// Of the waits for the sends of rank 0 the five longest are kept, and all of them in time.
func TestInstances(t *testing.T) {
	var calls []call
	at := int64(0)
	for i := range int64(7) { // rank 0 computes for 1000, 2000, ... ns before each send
		at += 1000 * (i + 1)
		calls = append(calls, call{rank: 0, call: schema.CallSend, from: at, to: at},
			call{rank: 1, call: schema.CallRecv, from: at - 1000*(i+1), to: at})
	}
	g := graph(t, 2, Options{}, calls...)
	for i := range int64(7) {
		g.message(0, i, 1, i, i)
	}
	var sum Course
	var longest []Instance
	for _, d := range g.Delays() {
		if d.Rank != 0 {
			t.Errorf("rank %d delays others", d.Rank)
		}
		sum.Add(d.Course)
		longest = AddInstances(longest, d.Longest...)
	}
	if diff := cmp.Diff([]int64{14_000, 14_000}, sum.Slices(0, 28_000, 2)); diff != "" {
		t.Errorf("course: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int64{28_000, 0}, sum.Slices(0, 65_536, 2)); diff != "" {
		t.Errorf("in a longer run: -want +got:\n%s", diff)
	}
	if len(longest) != MostInstances {
		t.Fatalf("%d instances", len(longest))
	}
	for i, x := range longest {
		ns := int64(7-i) * 1000
		if x.Ns != ns || x.WaitNs != ns || x.OwnNs != ns || x.Rank != 1 || x.Peer != 0 || x.Call != schema.CallRecv ||
			x.For != AwaitsSender {
			t.Errorf("instance %d: %+v", i, x)
		}
	}
	if x := longest[0]; x.AtNs != 21_000 {
		t.Errorf("the longest is at %d", x.AtNs)
	}
}

// Courses with slices of different widths add up.
func TestCourses(t *testing.T) {
	var sum Course
	sum.Add(Course{WidthNs: 4, Ns: []int64{1, 2}})
	sum.Add(Course{WidthNs: 1, Ns: []int64{1, 1, 1, 0, 0, 0, 0, 0, 5}})
	sum.Add(Course{WidthNs: 8, Ns: []int64{10}})
	if diff := cmp.Diff(Course{WidthNs: 8, Ns: []int64{16, 5}}, sum); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int64{8, 13}, sum.Slices(0, 8, 2)); diff != "" {
		t.Errorf("with time after the end: -want +got:\n%s", diff)
	}
}

// Slices get wider until all times fit.
func TestCourseOfTimes(t *testing.T) {
	c := Course{FromNs: 1000}
	c.AddTime(1001, 1003)
	c.AddTime(990, 1200)
	if diff := cmp.Diff([]int64{112, 100}, c.Slices(1000, 1200, 2)); diff != "" || c.WidthNs != 4 {
		t.Errorf("%+v: -want +got:\n%s", c, diff)
	}
}
