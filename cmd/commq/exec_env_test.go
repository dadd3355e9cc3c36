package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLauncherFlags(t *testing.T) {
	vars := []string{"LD_PRELOAD=/a b/libcommq.so:/c.so", "COMMQ_STACK=4"}
	for launcher, want := range map[string][]string{
		"openmpi": {"-x", "LD_PRELOAD=/a b/libcommq.so:/c.so", "-x", "COMMQ_STACK=4"},
		"mpich":   {"-genv", "LD_PRELOAD", "/a b/libcommq.so:/c.so", "-genv", "COMMQ_STACK", "4"},
		"srun":    {"--export=ALL,LD_PRELOAD=/a b/libcommq.so:/c.so,COMMQ_STACK=4"},
	} {
		got, err := launcherFlags(launcher, vars)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", launcher, err, diff)
		}
	}
	if _, err := launcherFlags("srun", []string{"COMMQ_SPOOL=/a,b"}); err == nil ||
		!strings.Contains(err.Error(), "commas") {
		t.Errorf("a comma for srun: %v", err)
	}
}
