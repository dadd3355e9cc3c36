package doctor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// Every finding that is not ok says what to do about it.
func TestFindingsSayWhatToDo(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, path := range paths {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, ok := call.Fun.(*ast.Ident)
			if !ok || name.Name != "warning" && name.Name != "failure" {
				return true
			}
			calls++
			if do, ok := call.Args[1].(*ast.BasicLit); ok && do.Value == `""` {
				t.Errorf("%s does not say what to do", files.Position(call.Pos()))
			}
			return true
		})
	}
	if calls < 40 {
		t.Errorf("%d findings that are not ok: does this test still find them?", calls)
	}
}
