package derive

import "github.com/commq/commq/schema"

// The primes of a fingerprint of payloads, and the factors of a message's numbers for each. The query measures has
// them too (queries/sql/measures.sql). The primes are below 2^31, so that squares fit in 64 bits.
const (
	payloadPrime, otherPrime = 1<<31 - 1, 1<<31 - 19

	hashFactor, srcFactor, dstFactor                = 48271, 69621, 16807
	otherHashFactor, otherSrcFactor, otherDstFactor = 39373, 40014, 40692
)

// PayloadSums makes the fingerprint of a run's payloads, from messages in any order: two sums of squares, of a number
// for each message that has a hash. Two runs have the same one if they sent the same payloads from the same senders to
// the same receivers, whatever the order. The zero value has no messages.
type PayloadSums struct{ a, b int64 } // below the primes

// PayloadColumns lists the columns of messages that PayloadSums reads.
func PayloadColumns() []string { return []string{"src", "dst", "bytes", "payload_hash"} }

// Add adds messages.
func (s *PayloadSums) Add(m *schema.Messages) {
	for i, hash := range m.PayloadHash {
		if hash == schema.NullInt64 {
			continue
		}
		src, dst, bytes := int64(m.Src[i]), int64(m.Dst[i]), m.Bytes[i]
		a := ((hash%payloadPrime+payloadPrime)*hashFactor + src*srcFactor + dst*dstFactor + bytes%payloadPrime) % payloadPrime
		b := ((hash%otherPrime+otherPrime)*otherHashFactor + src*otherSrcFactor + dst*otherDstFactor + bytes%otherPrime) %
			otherPrime
		s.a = (s.a + a*a) % payloadPrime
		s.b = (s.b + b*b) % otherPrime
	}
}

// Join adds the messages of another sum.
func (s *PayloadSums) Join(other PayloadSums) {
	s.a = (s.a + other.a) % payloadPrime
	s.b = (s.b + other.b) % otherPrime
}

// Fingerprint returns the fingerprint; 0 if no message has a hash.
func (s *PayloadSums) Fingerprint() int64 { return s.a<<31 + s.b }
