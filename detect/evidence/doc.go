// Package evidence weighs findings against chance, in bits, and gives them their certainty.
//
// A finding with b bits is expected in at most 2^-b runs whose messages have nothing to do with a collective. bits.go
// has the formulas, compared.go those for comparisons of payloads, traffic.go counts what else the same places of the
// program send, and causes.go finds messages that depend on others: answers and exchanges. docs/method/detection.md
// explains them with a figure.
package evidence
