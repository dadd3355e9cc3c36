package training

import (
	"fmt"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// FindRuns finds the runs that a name, a path or a pattern matches and that are evidence of what a program does. listed
// is true for a pattern: it leaves out runs that commq made and tells skipped. Naming such a run is an error, but for
// a replayed one.
func FindRuns(store, nameOrPattern string, skipped func(string)) (runs []run.Found, listed bool, err error) {
	found, err := run.FindAll(store, []string{nameOrPattern})
	if err != nil {
		return nil, false, err
	}
	listed = len(found) != 1 || !run.Names(store, nameOrPattern)
	for _, r := range found {
		skip, err := check(r.Name, r.Manifest.Evidence(), listed)
		if err != nil {
			return nil, false, err
		}
		if skip {
			skipped(skippedText(r.Name, r.Manifest.Evidence()))
			continue
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, false, fmt.Errorf("runs %q: commq made all that match; want runs of the program", nameOrPattern)
	}
	return runs, listed, nil
}

// keepEvidence returns the signatures that are evidence of what a program does.
func keepEvidence(all []*signature.Signature, sources []signatureSource,
	skipped func(string)) (kept []*signature.Signature, err error) {
	for i, s := range all {
		skip, err := check(sources[i].name, evidenceOf(s), sources[i].listed)
		if err != nil {
			return nil, err
		}
		if skip {
			skipped(skippedText(sources[i].name, evidenceOf(s)))
			continue
		}
		kept = append(kept, s)
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("commq made all runs that match; want runs of the program")
	}
	return kept, nil
}

// unknownEvidence stands for a file of an older version of commq that does not tell how the run came about.
const unknownEvidence = "unknown"

// evidenceOf returns how the run of a signature came about. Files of older versions do not tell: calls with measured or
// virtual times were captured; calls without times may be predicted.
func evidenceOf(s *signature.Signature) string {
	switch {
	case s.Evidence != "":
		return s.Evidence
	case s.TimeOrigin == "simulated":
		return schema.EvidenceSimulated
	case s.TimeOrigin == "untimed":
		return unknownEvidence
	}
	return schema.EvidenceCaptured
}

// check decides about a run by its evidence: keep it, skip it, or refuse it because the user named it.
func check(name, evidence string, listed bool) (skip bool, err error) {
	switch {
	case evidence == schema.EvidenceCaptured, evidence == schema.EvidenceImported:
		return false, nil
	case listed:
		return true, nil
	case evidence == schema.EvidenceReplayed:
		return false, nil
	case evidence == unknownEvidence:
		return false, fmt.Errorf("%s: an older commq wrote this signature of a run without times, which may be "+
			"predicted; make it again with commq export signature", name)
	}
	return false, fmt.Errorf("%s is %s: commq made it, so it does not show what the program does; want runs of the "+
		"program", name, evidence)
}

// skippedText tells that a pattern skips a run.
func skippedText(name, evidence string) string {
	if evidence == unknownEvidence {
		return fmt.Sprintf("%s is skipped: an older commq wrote it, and it may be of a predicted run", name)
	}
	return fmt.Sprintf("%s is skipped: it is %s, not a run of the program", name, evidence)
}
