package detect

import (
	"github.com/commq/commq/detect/combine"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/neighbours"
	"github.com/commq/commq/detect/scan"
)

// Types of the stages that callers of Detect use.
type (
	Operation = ledger.Operation
	Certainty = ledger.Certainty
	Basis     = ledger.Basis
	Neighbors = neighbours.Neighbors
	Stretch   = scan.Stretch
	Self      = combine.Self
	Datatype  = combine.Datatype
)

// The values of Certainty.
const (
	Verified  = ledger.Verified
	Inferred  = ledger.Inferred
	Candidate = ledger.Candidate
)

// The values of Basis.
const (
	ByPayload   = ledger.ByPayload
	ByAddress   = ledger.ByAddress
	ByStructure = ledger.ByStructure
)

// DefaultMinRanks is the least number of ranks of a finding: between two ranks every message would be a broadcast.
const DefaultMinRanks = ledger.DefaultMinRanks

// Columns are the columns of messages that Detect reads; the others may be null.
var Columns = scan.Columns

// Operations returns the names of all operations that Detect looks for, without those between neighbours.
func Operations() []string { return ledger.Operations() }
