package schema

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/zeebo/xxh3"
)

// Text sets Sum and returns the manifest as its file has it.
func (m *Manifest) Text() ([]byte, error) {
	m.Sum = ""
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSuffix(text, []byte("\n}"))
	m.Sum = sumOf(text)
	return append(text, m.ending()...), nil
}

// ending is the end of the text of a manifest with a Sum.
func (m *Manifest) ending() string { return fmt.Sprintf(",\n  \"sum\": %q\n}\n", m.Sum) }

func sumOf(text []byte) string { return fmt.Sprintf("%016x", xxh3.Hash(text)) }

// compareSum compares the text that a manifest was read from with its Sum.
func (m *Manifest) compareSum(text []byte) error {
	if m.Sum == "" {
		return nil
	}
	const mend = `it was changed after commq wrote it: copy the run again or capture it again; if you changed it on ` +
		`purpose, remove its field "sum"`
	summed, ok := bytes.CutSuffix(text, []byte(m.ending()))
	if !ok {
		return fmt.Errorf(`the field "sum" is not the last line as commq writes it; %s`, mend)
	}
	if sum := sumOf(summed); sum != m.Sum {
		return fmt.Errorf(`its hash is %s, and its field "sum" says %s; %s`, sum, m.Sum, mend)
	}
	return nil
}

// Identity returns the 128-bit xxh3 hash of the part of a manifest that identifies its run, which is its JSON without
// Origin, Digest, Sum, the tables' files, and what is derived: tables and Payloads.
func (m *Manifest) Identity() xxh3.Uint128 {
	id := *m
	id.Origin, id.Digest, id.Sum = Origin{}, "", ""
	id.Tables, id.Payloads = nil, nil
	for _, t := range m.Tables {
		if IsDerived(t.Name) {
			continue
		}
		t.Files = nil
		id.Tables = append(id.Tables, t)
	}
	text, err := json.Marshal(&id)
	if err != nil {
		panic(err) // a Manifest holds nothing that JSON cannot
	}
	return xxh3.Hash128(text)
}

// CompareDigest compares Digest with Identity.
func (m *Manifest) CompareDigest() error {
	h := m.Identity()
	if is := fmt.Sprintf("%016x%016x", h.Hi, h.Lo); is != m.Digest {
		return fmt.Errorf("the manifest says that its digest is %s, and it is %s: it was changed, or a newer commq wrote "+
			"it; copy the run again or capture it again; if you changed it on purpose, its field \"digest\" is to be %[2]s",
			m.Digest, is)
	}
	return nil
}
