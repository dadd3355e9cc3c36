// Package keyed reads YAML files key by key. Decoding into a struct would go through float64, could not tell a
// missing key from a zero, and would accept words for numbers. Here only known keys are accepted, and an error names
// the line, the key, what was found and what is wanted.
package keyed

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/internal/nearest"
)

// parserError is a message of the YAML parser: what it was parsing, line and column, and what it found.
var parserError = regexp.MustCompile(`^go-yaml load error in \w+ (?:\((.*?)\) )?at L(\d+)\.C(\d+): (.*)$`)

// explain returns what is wrong with a text that is not YAML, and where.
func explain(err error) string {
	m := parserError.FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error()
	}
	text := fmt.Sprintf("line %s, column %s: %s", m[2], m[3], m[4])
	if m[1] != "" {
		text += " " + m[1]
	}
	return text
}

// Load parses a file and returns its root. An empty file has an empty root.
func Load(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, fmt.Errorf("not YAML: %s", explain(err))
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		return doc.Content[0], nil
	}
	return &doc, nil
}

// Text accepts a non-empty text.
func Text(to *string) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		if v.Kind != yaml.ScalarNode || strings.TrimSpace(v.Value) == "" {
			return Wrong(v, path, "a text")
		}
		*to = v.Value
		return nil
	}
}

// List accepts a non-empty list and passes each of its items to set.
func List(what string, set func(v *yaml.Node, path string) error) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		switch {
		case v.Kind != yaml.SequenceNode:
			return Wrong(v, path, "a list of "+what)
		case len(v.Content) == 0:
			return ErrorAt(v, fmt.Sprintf("%s is an empty list; want a list of %s", path, what))
		}
		for i, item := range v.Content {
			if err := set(item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// Key is a key of a mapping. Set takes its value and returns an error that names the key's path and the line, as
// ErrorAt and Wrong make it.
type Key struct {
	Name     string
	Required bool
	Set      func(v *yaml.Node, path string) error
	// Doc is for the reference of the file's keys.
	Doc
}

// Doc describes a key in Markdown: what it means, its unit (if it has one), what leaving it out means (if it may be
// left out), and a value as it stands in a file.
type Doc struct{ Means, Unit, Default, Example string }

// Mapping reads the keys of a mapping. A key that is unknown or repeated, or a required one that is missing, is an
// error.
func Mapping(v *yaml.Node, path string, keys []Key) error {
	if v.Kind != yaml.MappingNode {
		return Wrong(v, path, "a mapping with the keys "+Names(keys))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		name, value := v.Content[i], v.Content[i+1]
		k := slices.IndexFunc(keys, func(k Key) bool { return name.Kind == yaml.ScalarNode && k.Name == name.Value })
		switch {
		case k < 0:
			return ErrorAt(name, unknownKey(name, path, keys))
		case seen[name.Value]:
			return ErrorAt(name, fmt.Sprintf("%s is there a second time; remove one of them", Join(path, name.Value)))
		}
		seen[name.Value] = true
		if err := keys[k].Set(value, Join(path, name.Value)); err != nil {
			return err
		}
	}
	for _, k := range keys {
		if k.Required && !seen[k.Name] {
			return ErrorAt(v, fmt.Sprintf("%s is missing; add it", Join(path, k.Name)))
		}
	}
	return nil
}

// unknownKey is the message about a key that a mapping does not have.
func unknownKey(name *yaml.Node, path string, keys []Key) string {
	in := ""
	if path != "" {
		in = " in " + path
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return fmt.Sprintf("unknown key %s%s%s", Found(name), in,
		nearest.HintOr(name.Value, names, "there are "+strings.Join(names, ", ")))
}

// Has reports whether a mapping has a key.
func Has(v *yaml.Node, name string) bool {
	for i := 0; i+1 < len(v.Content); i += 2 {
		if v.Content[i].Value == name {
			return true
		}
	}
	return false
}

// Names lists keys.
func Names(keys []Key) string {
	var n []string
	for _, k := range keys {
		n = append(n, k.Name)
	}
	return strings.Join(n, ", ")
}

// Join returns the path of a key below a path.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// ErrorAt returns an error with the line number.
func ErrorAt(v *yaml.Node, what string) error { return fmt.Errorf("%d: %w", v.Line, errors.New(what)) }

// Wrong returns an error about an unacceptable value.
func Wrong(v *yaml.Node, path, want string) error {
	if path == "" {
		return ErrorAt(v, fmt.Sprintf("found %s; want %s", Found(v), want))
	}
	return ErrorAt(v, fmt.Sprintf("%s is %s; want %s", path, Found(v), want))
}

// Found describes a value for a message.
func Found(v *yaml.Node) string {
	const most = 40
	switch {
	case v.Kind == yaml.MappingNode:
		return "a mapping"
	case v.Kind == yaml.SequenceNode:
		return "a list"
	case v.Kind == yaml.AliasNode:
		return "an alias (*" + v.Value + ")"
	case v.Kind != yaml.ScalarNode || v.Value == "":
		return "empty"
	case len(v.Value) > most:
		return fmt.Sprintf("%.*q...", most, v.Value)
	}
	return fmt.Sprintf("%q", v.Value)
}

// numberText matches a decimal number as in machine files; its limited length limits the work on it. The limits also
// make it slow to compile, so it is compiled only when needed and does not delay the start of commq.
var numberText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?$`)
})

// Number returns the exact value of a scalar; nil if it is not a number.
func Number(v *yaml.Node) *big.Rat {
	if v.Kind != yaml.ScalarNode || !numberText().MatchString(v.Value) {
		return nil
	}
	x, ok := new(big.Rat).SetString(v.Value)
	if !ok {
		return nil
	}
	return x
}

// Integer accepts an integer from least to most.
func Integer[T int | int64](to *T, least, most T) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		x := Number(v)
		if x == nil || !x.IsInt() || x.Num().Cmp(big.NewInt(int64(least))) < 0 ||
			x.Num().Cmp(big.NewInt(int64(most))) > 0 {
			return Wrong(v, path, fmt.Sprintf("a whole number from %d to %d", least, most))
		}
		*to = T(x.Num().Int64())
		return nil
	}
}

// OrWord accepts a word that means a value, and everything that set accepts.
func OrWord[T int | int64](word string, to *T, value T,
	set func(*yaml.Node, string) error) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		if v.Kind == yaml.ScalarNode && v.Value == word {
			*to = value
			return nil
		}
		if err := set(v, path); err != nil {
			return fmt.Errorf("%w, or %s", err, word)
		}
		return nil
	}
}

// OneOf accepts one of some words and stores its index among them.
func OneOf[T ~uint8](to *T, words ...string) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		i := slices.Index(words, v.Value)
		if i < 0 || v.Kind != yaml.ScalarNode {
			return Wrong(v, path, strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1])
		}
		*to = T(i)
		return nil
	}
}

// Truth accepts false or true.
func Truth(to *bool) func(*yaml.Node, string) error {
	var word uint8
	set := OneOf(&word, "false", "true")
	return func(v *yaml.Node, path string) error {
		err := set(v, path)
		*to = word == 1
		return err
	}
}
