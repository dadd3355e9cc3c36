package keyed

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Values says which values a key takes, as its errors do.
func (k Key) Values() string {
	err := k.Set(&yaml.Node{Kind: yaml.AliasNode}, k.Name)
	if err == nil {
		return "anything"
	}
	_, want, _ := strings.Cut(err.Error(), "; want ")
	if strings.HasPrefix(want, "a mapping with the keys ") {
		return "a mapping"
	}
	return want
}

// short writes the limits of numbers as people do.
var short = strings.NewReplacer("9223372036854775807", "2^63 - 1", "9223372036854775806", "2^63 - 2", "1073741824", "2^30",
	"1000000000000000000", "10^18", "1000000000000", "10^12", "1000000", "10^6")

// Table returns a Markdown table of keys: what each means, its unit, its values and its default.
func Table(keys []Key) string {
	var b strings.Builder
	b.WriteString("| key | meaning | unit | values | default |\n|---|---|---|---|---|\n")
	for _, k := range keys {
		usual := k.Default
		if k.Required {
			usual = "must be there"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Name, k.Means, k.Unit, short.Replace(k.Values()), usual)
	}
	return b.String()
}

// Block returns keys with their examples as lines of YAML.
func Block(keys []Key, indent string) string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s%s: %s\n", indent, k.Name, k.Example)
	}
	return b.String()
}
