package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/queries"
)

// schemaMaker makes JSON schemas of Go types. Descriptions are the comments of the types and their fields.
type schemaMaker struct {
	t        *testing.T
	types    map[string]reflect.Type // of the definitions of a schema, by name
	comments map[string]map[string]*typeComments
}

// typeComments are the comments of a struct and, by their Go names, of its fields.
type typeComments struct {
	text   string
	fields map[string]fieldComment
}

// fieldComment is the comment of a field: its own, or one of the fields above it that names it too.
type fieldComment struct {
	text string
	own  bool
}

func newSchemaMaker(t *testing.T) *schemaMaker {
	return &schemaMaker{t: t, comments: map[string]map[string]*typeComments{}}
}

// schema returns the schema of what encoding/json writes for a type.
func (m *schemaMaker) schema(typ reflect.Type) *jsonschema.Schema {
	m.types = map[string]reflect.Type{}
	r := jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, Namer: m.name, Mapper: ownJSON}
	s := r.ReflectFromType(typ)
	if root := typ; root.Kind() == reflect.Pointer || root.Kind() == reflect.Struct {
		if root.Kind() == reflect.Pointer {
			root = root.Elem()
		}
		m.describe(s, root)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Definitions)) {
		m.describe(s.Definitions[name], m.types[name])
	}
	if used := m.types["signature"]; used == reflect.TypeFor[signature.Signature]() {
		s.Definitions["item"] = itemSchema()
	}
	return s
}

// name names a type in a schema. Two types of one name would become one definition.
func (m *schemaMaker) name(typ reflect.Type) string {
	if typ.Name() == "" {
		return "" // it has no definition
	}
	name := jsonschema.ToSnakeCase(typ.Name())
	if other := m.types[name]; other != nil && other != typ {
		name = path.Base(typ.PkgPath()) + "_" + name
	}
	m.types[name] = typ
	return name
}

// ownJSON is the schema of types that have a MarshalJSON of their own; nil for others.
func ownJSON(typ reflect.Type) *jsonschema.Schema {
	switch typ {
	case reflect.TypeFor[signature.Int]():
		return nullable(&jsonschema.Schema{Type: "integer"})
	case reflect.TypeFor[signature.Ranks]():
		return &jsonschema.Schema{Type: "string", Pattern: `^(-?\d+(-\d+(:\d+)?)?(,|$))*$`}
	case reflect.TypeFor[fold.Item]():
		return &jsonschema.Schema{Ref: "#/$defs/item"}
	}
	return nil
}

// itemSchema is the schema of a fold.Item.
func itemSchema() *jsonschema.Schema {
	two := uint64(2)
	return &jsonschema.Schema{
		Description: "An element of a folded sequence: a number, or a list of a count and the items that are repeated so often.",
		OneOf: []*jsonschema.Schema{{Type: "integer"}, {Type: "array", MinItems: &two,
			PrefixItems: []*jsonschema.Schema{{Type: "integer", Minimum: "2"}},
			Items:       &jsonschema.Schema{Ref: "#/$defs/item"}}},
	}
}

// nullable allows null, too.
func nullable(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Type != "" {
		s.Extras = map[string]any{"type": []string{s.Type, "null"}}
		s.Type = ""
		return s
	}
	return &jsonschema.Schema{Description: s.Description, OneOf: []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}}
}

// describe fills in the descriptions of a struct and of its fields, and which of them may be null: pointers that are
// not left out. Lists never are, as printJSON writes them.
func (m *schemaMaker) describe(s *jsonschema.Schema, typ reflect.Type) {
	s.Description = ownText(m.commentsOf(typ).text, typ.Name())
	if typ.Kind() != reflect.Struct {
		return
	}
	keys := map[string]string{}
	eachField(typ, func(_ reflect.Type, f reflect.StructField, key string, _ bool) { keys[f.Name] = key })
	s.Description = keyedText(fieldComment{text: s.Description}, "", keys, true)
	eachField(typ, func(owner reflect.Type, f reflect.StructField, key string, optional bool) {
		p, known := s.Properties.Get(key)
		if !known {
			m.t.Fatalf("%v: the schema has no %s", typ, key)
		}
		c := m.commentsOf(owner).fields[f.Name]
		p.Description = withUnit(key, keyedText(c, f.Name, keys, optional))
		if p.Description == "" {
			m.t.Errorf("%v.%s has no comment that could describe %q", owner, f.Name, key)
		}
		if f.Type.Kind() == reflect.Pointer && !optional {
			s.Properties.Set(key, nullable(p))
		}
	})
}

// eachField calls use for the fields that encoding/json writes of a struct, with those of embedded ones. optional is
// set where an empty value is left out.
func eachField(typ reflect.Type, use func(owner reflect.Type, f reflect.StructField, key string, optional bool)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case key == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && key == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			eachField(embedded, use)
		default:
			use(typ, f, cmp.Or(key, f.Name), strings.HasPrefix(options, "omit"))
		}
	}
}

var (
	goName   = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]*\b`)
	compound = regexp.MustCompile(`^.+[A-Z0-9]`)
	verb     = regexp.MustCompile(`^( and [A-Z]\w*)? (is|are|was|were|has|have|tells|means|counts|reports|describes|bounds?|lists?|names?)\b`)
)

// keyedText is a comment of a field with JSON keys in place of Go names.
func keyedText(c fieldComment, name string, keys map[string]string, optional bool) string {
	text := ""
	for rest := c.text; ; {
		at := goName.FindStringIndex(rest)
		if at == nil {
			text += rest
			break
		}
		word, before, after := rest[at[0]:at[1]], text+rest[:at[0]], rest[at[1]:]
		begins := before == "" || strings.HasSuffix(before, ". ")
		if key, known := keys[word]; known && (before == "" && name != "" || compound.MatchString(word) || !begins || verb.MatchString(after)) {
			word = "`" + key + "`"
		}
		text, rest = before+word, after
	}
	none := "null"
	if optional {
		none = "absent"
	}
	text = regexp.MustCompile(`\bnil\b`).ReplaceAllString(text, none)
	if c.own {
		text = ownText(text, "`"+keys[name]+"`")
	}
	return text
}

// ownText removes the name at the beginning of a comment: "Run is the name" becomes "The name", "x tells how" "Tells
// how".
func ownText(text, name string) string {
	rest, ok := strings.CutPrefix(text, name+" ")
	if !ok || strings.HasPrefix(name, "`") && !called.MatchString(rest) {
		return text
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// called matches what a field is called after its name; no values that it may have.
var called = regexp.MustCompile(`^(is|are) (an?|the|its?|their|true|null|how|where|when|what|which|whether|one|several|\d)\b`)

// withUnit adds the unit that a key ends in, unless the text has it.
func withUnit(key, text string) string {
	for _, u := range []struct{ end, words, unit string }{
		{"_ns", `\bns\b|nanosecond`, "In ns."}, {"_bytes", "byte", "In bytes."},
		{"_share", "fraction|share", "A fraction of 1."}} {
		if strings.HasSuffix("_"+key, u.end) && text != "" && !regexp.MustCompile(u.words).MatchString(text) {
			text = strings.TrimSuffix(text, ".") + ". " + u.unit
		}
	}
	return text
}

// commentsOf returns the comments of a type; the package is read once.
func (m *schemaMaker) commentsOf(typ reflect.Type) *typeComments {
	pkg := strings.TrimPrefix(typ.PkgPath(), "github.com/commq/commq/")
	if pkg == "main" {
		pkg = "cmd/commq"
	}
	if m.comments[pkg] == nil {
		m.comments[pkg] = m.readComments(filepath.Join("../..", pkg))
	}
	if c := m.comments[pkg][typ.Name()]; c != nil {
		return c
	}
	m.t.Errorf("no source of %v", typ)
	return &typeComments{}
}

func (m *schemaMaker) readComments(folder string) map[string]*typeComments {
	files := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		m.t.Fatal(err)
	}
	found := map[string]*typeComments{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		p, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			m.t.Fatal(err)
		}
		ast.Inspect(p, func(n ast.Node) bool {
			d, is := n.(*ast.GenDecl)
			if !is || d.Tok != token.TYPE {
				return true
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.TypeSpec)
				doc := s.Doc
				if doc == nil {
					doc = d.Doc
				}
				found[s.Name.Name] = &typeComments{oneLine(doc), fieldComments(files, s.Type)}
			}
			return true
		})
	}
	return found
}

// fieldComments returns the comments of the fields of a struct. A field without one has that of the lines above it, if
// it names the field.
func fieldComments(files *token.FileSet, typ ast.Expr) map[string]fieldComment {
	s, is := typ.(*ast.StructType)
	if !is {
		return nil
	}
	found := map[string]fieldComment{}
	var above string
	line := 0
	for _, f := range s.Fields.List {
		text := oneLine(f.Doc)
		if text == "" && f.Comment != nil {
			text = oneLine(f.Comment)
			text = strings.ToUpper(text[:1]) + text[1:] + "."
		}
		if files.Position(f.Pos()).Line != line+1 {
			above = ""
		}
		for _, name := range f.Names {
			switch {
			case text != "":
				found[name.Name] = fieldComment{text, true}
			case regexp.MustCompile(`\b` + name.Name + `\b`).MatchString(above):
				found[name.Name] = fieldComment{above, false}
			}
		}
		if f.Doc != nil {
			above = text
		}
		line = files.Position(f.End()).Line
	}
	for name, c := range found { // what names others, too
		for other := range found {
			if other != name && found[other].text == c.text {
				found[name] = fieldComment{c.text, false}
			}
		}
	}
	return found
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// rowsSchema is the schema of rows with these columns. Any of their values may be null.
func rowsSchema(columns []queries.Column, more *jsonschema.Schema) *jsonschema.Schema {
	row := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: more}
	for _, c := range columns {
		p := &jsonschema.Schema{Type: map[string]string{"INTEGER": "integer", "BIGINT": "integer", "DOUBLE": "number",
			"BOOLEAN": "boolean", "VARCHAR": "string"}[c.Type], Description: c.Doc}
		switch {
		case c.Share:
			p.Description = withUnit("_share", p.Description)
		case c.Unit == "ns" || c.Unit == "bytes":
			p.Description = withUnit(c.Unit, p.Description)
		case c.Unit != "" && c.Unit != "1" && c.Unit != "-":
			p.Description = strings.TrimSuffix(p.Description, ".") + ". In " + c.Unit + "."
		}
		row.Properties.Set(c.Name, nullable(p))
		row.Required = append(row.Required, c.Name)
	}
	row.Description = "A row. With --format jsonl each line is one."
	return &jsonschema.Schema{Version: jsonschema.Version, Type: "array", Items: &jsonschema.Schema{Ref: "#/$defs/row"},
		Definitions: jsonschema.Definitions{"row": row}}
}

// schemaText writes a schema as a file.
func schemaText(t *testing.T, s *jsonschema.Schema) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		t.Fatal(err)
	}
	// What it is about comes first, the definitions last.
	order := []string{"$schema", "$id", "title", "description", "type", "items", "properties", "required", "additionalProperties", "$defs"}
	var text bytes.Buffer
	for _, key := range order {
		if part := parts[key]; part != nil {
			fmt.Fprintf(&text, "%s%q:%s", map[bool]string{true: "{", false: ","}[text.Len() == 0], key, part)
			delete(parts, key)
		}
	}
	if len(parts) > 0 {
		t.Fatalf("the schema has other parts: %v", slices.Collect(maps.Keys(parts)))
	}
	text.WriteByte('}')
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(pretty.String()) + "\n"
}

// filled returns a value of a type with no field empty, or with all of them.
func filled(typ reflect.Type, depth int) reflect.Value {
	v := reflect.New(typ).Elem()
	if typ == reflect.TypeFor[fold.Item]() {
		return reflect.ValueOf(fold.Item{Times: 2, Items: []fold.Item{{Value: 7}}})
	}
	switch typ.Kind() {
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(typ.Elem()))
			v.Elem().Set(filled(typ.Elem(), depth-1))
		}
	case reflect.Struct:
		for i := range typ.NumField() {
			if f := v.Field(i); f.CanSet() && typ.Field(i).Tag.Get("json") != "-" {
				if typ.Field(i).Anonymous { // its fields are always there
					f.Set(filled(f.Type(), max(depth, 1)))
				} else {
					f.Set(filled(f.Type(), depth-1))
				}
			}
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.Append(v, filled(typ.Elem(), depth-1)))
		}
	case reflect.Array:
		for i := range typ.Len() {
			v.Index(i).Set(filled(typ.Elem(), depth-1))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(filled(typ.Key(), depth-1), filled(typ.Elem(), depth-1))
	case reflect.String:
		v.SetString("text")
	case reflect.Interface:
		v.Set(reflect.ValueOf("text"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64, reflect.Float32:
		v.SetFloat(0.5)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(2)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(2)
	default:
		panic(fmt.Sprintf("no value of %v", typ))
	}
	return v
}
