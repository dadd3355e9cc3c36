package kineto

import "testing"

// A trace with kernels becomes a run of the store, whose compute clock is the device's.
func TestImportOfADevice(t *testing.T) {
	dir := write(t, t.TempDir(),
		head(0)+asked(10, 1, allreduce)+ran("gemm", 7, 0, 100, 0)+ran("ncclDevKernel_AllReduce", 9, 100, 200, 1)+end,
		head(1)+asked(10, 1, allreduce)+ran("gemm", 7, 0, 150, 0)+ran("ncclDevKernel_AllReduce", 9, 150, 200, 1)+end)
	m, err := ImportPath(t.Context(), dir, t.TempDir(), "gpu", Options{})
	if err != nil || m.ComputeClock != "device" {
		t.Errorf("%+v, %v", m, err)
	}
}
