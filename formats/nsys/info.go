package nsys

import (
	"context"
	"strings"
)

// rankVariables are the variables of the environment in which launchers tell a process its rank, and the number of
// ranks.
var rankVariables = [][2]string{{"RANK", "WORLD_SIZE"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"PMIX_RANK", ""}, {"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}}

// readInfo reads what the export tells of itself: the host, the environment, its zero of time.
func (x *export) readInfo(ctx context.Context, f *file) error {
	err := f.each(ctx, "TARGET_INFO_SYSTEM_ENV", []string{"name", "value"}, "", func(r *row) {
		switch r.text(0) {
		case "Hostname":
			x.host = r.text(1)
		case "DeviceEnvironment":
			x.readEnv(r.text(1))
		}
	})
	if err != nil {
		return err
	}
	if err := f.each(ctx, "TARGET_INFO_SESSION_START_TIME", []string{"utcEpochNs"}, "", func(r *row) {
		if r.values[0] != nil {
			x.baseNs = r.time(0)
		}
	}); err != nil {
		return err
	}
	return f.each(ctx, "META_DATA_EXPORT", []string{"name", "value"}, "", func(r *row) {
		switch name, value := r.text(0), r.text(1); name {
		case "EXPORT_PRODUCT_VERSION":
			x.version = first(value, longest)
		case "EXPORT_PARAM_TIME_NORMALIZE":
			if value == "true" { // --ts-normalize: the times count from 1970
				x.baseNs = 0
			}
		}
	})
}

// readEnv reads the variables of the environment that tell ranks.
func (x *export) readEnv(text string) {
	wanted := map[string]bool{}
	for _, pair := range rankVariables {
		wanted[pair[0]], wanted[pair[1]] = true, true
	}
	for word := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(word, "="); ok && wanted[name] {
			x.env[name] = value
		}
	}
}
