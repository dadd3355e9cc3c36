package ui

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

// After a run was replaced its prediction is another one of the same name: the old one is found no more.
func TestPredictionOfAReplacedRun(t *testing.T) {
	var p predictedRuns
	made := func(key, name, dir string) predictedByKey {
		return predictedByKey{key: key, run: run.Found{Name: name, Dir: dir}}
	}
	p.keep(made("old", "a on flat", "1"))
	p.keep(made("other", "b on flat", "2"))
	p.keep(made("new", "a on flat", "3"))
	for range 3 {
		if one, _ := p.named("a on flat"); one.key != "new" {
			t.Errorf("found %q", one.key)
		}
	}
	if one, _ := p.named("b on flat"); one.key != "other" {
		t.Errorf("found %q", one.key)
	}
	if dropped := p.takeDropped(); !slices.Equal(dropped, []string{"1"}) {
		t.Errorf("dropped %q", dropped)
	}
}

// Close does not wait for ever: it leaves the engines of questions that do not end, and removes the predicted runs.
func TestCloseLeavesEnginesInUse(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.patience = 10 * time.Millisecond
	found, err := run.Find("../testdata/runs", "pingpong.2")
	if err != nil {
		t.Fatal(err)
	}
	store, err := s.predictions.folder()
	if err != nil {
		t.Fatal(err)
	}
	if !s.questions.begin() {
		t.Fatal("no questions are answered")
	}
	ask := func(db *queries.DB) error {
		rows, err := db.Query(context.Background(), "SELECT count(*) FROM events")
		if err != nil {
			return err
		}
		return rows.Close()
	}
	err = s.engines.with(context.Background(), engineRuns([]run.Found{found}), func(db *queries.DB) error {
		if err := s.Close(); err == nil {
			t.Error("Close does not say that a question is being answered")
		}
		return ask(db)
	})
	if err != nil {
		t.Errorf("after Close: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(store)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of predicted runs: %v", err)
	}
	s.questions.end(s.predictions.takeDropped, s.engines.removeRuns)
	if err := s.Close(); err != nil || len(s.engines.open) > 0 {
		t.Errorf("when no question is being answered: %d engines, %v", len(s.engines.open), err)
	}
}

// Questions begin while an earlier one removes runs, and Close waits for it.
func TestQuestionsBeginWhileDroppedRunsAreRemoved(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.questions.begin()
	removing, removed := make(chan bool), make(chan bool)
	go s.questions.end(func() []string { return []string{"1/run"} }, func([]string) {
		close(removing)
		<-removed
	})
	<-removing
	begun := make(chan bool, 1)
	go func() { begun <- s.questions.begin() }()
	select {
	case <-begun:
		s.questions.end(s.predictions.takeDropped, s.engines.removeRuns)
	case <-time.After(5 * time.Second):
		t.Error("a question waits until runs are removed")
	}
	if s.questions.close(time.Millisecond) {
		t.Error("close does not wait until runs are removed")
	}
	close(removed)
	if !s.questions.close(time.Minute) {
		t.Error("close waits for ever")
	}
}
