package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// servers are process ids.
type servers []int

func newServers(list string) (servers, error) {
	var all servers
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("--servers %s: want process numbers with commas", list)
		}
		all = append(all, pid)
	}
	return all, nil
}

// ticks is the number of clock ticks per second in /proc/PID/stat (USER_HZ, the same on every Linux that Go
// supports).
const ticks = 100

// used returns the CPU time of the processes since they started, and the sum of their peak memory since the last
// call.
func (s servers) used() (m measured, err error) {
	for _, pid := range s {
		folder := fmt.Sprintf("/proc/%d/", pid)
		stat, err := os.ReadFile(folder + "stat")
		if err != nil {
			return m, err
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // the name may contain spaces
		fields := strings.Fields(rest)
		for _, i := range []int{11, 12} { // utime and stime
			t, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return m, fmt.Errorf("%sstat: %w", folder, err)
			}
			m.coreTimes += t / ticks
		}
		status, err := os.ReadFile(folder + "status")
		if err != nil {
			return m, err
		}
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		var kib float64
		if _, err := fmt.Sscan(peak, &kib); err != nil {
			return m, fmt.Errorf("%sstatus: no VmHWM: %w", folder, err)
		}
		m.peakMiB += kib / 1024
		if err := os.WriteFile(folder+"clear_refs", []byte("5"), 0); err != nil { // resets VmHWM
			return m, err
		}
	}
	return m, nil
}
