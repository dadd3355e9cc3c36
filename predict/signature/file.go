package signature

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/commq/commq/internal/bounded"
)

// Write writes the signature as one line of JSON.
func (s *Signature) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	if err := json.NewEncoder(b).Encode(s); err != nil {
		return err
	}
	return b.Flush()
}

// Read reads a signature that Write wrote. The error tells what is wrong with it, and where.
func Read(r io.Reader) (*Signature, error) {
	text, err := bounded.ReadAll(r, bounded.TextBytes)
	if err != nil {
		return nil, err
	}
	s := &Signature{}
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("not a signature of commq export signature: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("unexpected data after the signature, from byte %d", dec.InputOffset())
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("signature of %q: %w", s.Run, err)
	}
	return s, nil
}
