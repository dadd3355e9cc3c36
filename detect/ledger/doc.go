// Package ledger has what the stages of detection share: the candidate messages of a run (Message), what groups them
// (Payload, Way, Cell, Place, Class), the instances of operations found among them (Instance), a bounded selection of
// all messages (Sample), the rows of a loop's messages (Series), and the rules by which messages form an operation
// (Rules).
//
// An instance takes its messages: a message belongs to one instance at most, and later stages look only at free ones.
package ledger
