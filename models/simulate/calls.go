package simulate

import "github.com/commq/commq/schema"

// role is what a call does in a simulation.
type role uint8

const (
	roleLocal role = iota // computes only
	roleMark              // a mark of the program
	roleSend
	roleIsend
	roleRecv
	roleIrecv
	roleSendrecv
	roleIsendrecv
	roleProbe
	roleMprobe
	roleMrecv
	roleImrecv
	roleComplete // completes requests
	roleStart    // starts persistent requests
	roleInit     // makes a persistent request
	roleCollective
	roleIcollective
	roleWindow   // makes a window
	roleTransfer // one-sided
	roleSync     // synchronises or frees a window
	roleReady    // of a partition
	roleFile
)

// roles is indexed by call; it is only read.
var roles = func() []role {
	roles := make([]role, len(schema.Calls))
	for id := range roles {
		roles[id] = roleOf(schema.CallID(id))
	}
	return roles
}()

// sendFlags are the flags of a send, by call; they are only read.
var sendFlags = func() []uint8 {
	flags := make([]uint8, len(schema.Calls))
	for id := range flags {
		if schema.CallID(id).Is(schema.FactSynchronous) {
			flags[id] |= flagSync
		}
		if schema.CallID(id).Is(schema.FactBuffered) {
			flags[id] |= flagBuffered
		}
	}
	return flags
}()

func roleOf(call schema.CallID) role {
	is := call.IsAny
	// choose returns the role of the blocking or the nonblocking form of a call
	choose := func(blocking, nonblocking role) role {
		if is(schema.FactNonblocking) {
			return nonblocking
		}
		return blocking
	}
	switch {
	case call == schema.CallPcontrol || call == schema.CallCommqMark:
		return roleMark
	case call == schema.CallCommqSendToSelf: // the program reports a copy; no message is sent
		return roleLocal
	case is(schema.FactStarts):
		return roleStart
	case is(schema.FactPersistent):
		return roleInit
	case schema.Calls[call].Class == schema.ClassComplete:
		return roleComplete
	case is(schema.FactCollective | schema.FactCreatesCommunicator):
		return choose(roleCollective, roleIcollective)
	case is(schema.FactOpensFile):
		return roleCollective
	case is(schema.FactCreatesWindow):
		return roleWindow
	case is(schema.FactOneSided) && is(schema.FactTransfers):
		return roleTransfer
	case is(schema.FactOneSided) && (!is(schema.FactTests) || is(schema.FactEndsExposure)):
		return roleSync
	case is(schema.FactFile):
		return roleFile
	case is(schema.FactPartitioned) && !is(schema.FactTests):
		return roleReady
	case is(schema.FactProbes) && is(schema.FactMatched):
		return roleMprobe
	case is(schema.FactProbes):
		return roleProbe
	case is(schema.FactMatched):
		return choose(roleMrecv, roleImrecv)
	case is(schema.FactSends) && is(schema.FactReceives):
		return choose(roleSendrecv, roleIsendrecv)
	case is(schema.FactSends):
		return choose(roleSend, roleIsend)
	case is(schema.FactReceives):
		return choose(roleRecv, roleIrecv)
	}
	return roleLocal
}

// Costs reports whether simulations have a cost for a call itself or for what it completes. Other calls take no time.
func Costs(call schema.CallID) bool {
	switch roles[call] {
	case roleLocal, roleMark, roleInit:
		return false
	case roleSync:
		return call.IsAny(schema.FactFence | schema.FactCompletesTransfers | schema.FactAccesses | schema.FactEndsExposure)
	}
	return true
}
