// Command long prints the arguments with which `go test -tags slow` runs the long
// tests, and the others whose length the build tag slow changes, and no other:
//
//	-run '^(TestA|TestB)$' ./b ./a
//
// These are the tests that are declared under the build tag slow, or that use a name
// which is declared there (brokertest.Slow, a size), themselves or through other
// functions. A name is that of its folder and its own, as brokertest.Slow; methods are
// not followed. The folders of ./test come first: their tests last longest, and others
// run beside them.
package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	names, folders, err := long(".")
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no test needs the build tag slow")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "long:", err)
		os.Exit(1)
	}
	fmt.Printf("-run '^(%s)$' ./%s\n", strings.Join(names, "|"), strings.Join(folders, " ./"))
}

// function is a function in a file of tests, or in a package that helps them.
type function struct {
	name, folder string
	uses         map[string]bool // the names in its body, with their folders
	test         bool            // go test runs it
}

// long returns the names of the long tests below root, and the folders that have
// one, the last first.
func long(root string) (names, folders []string, err error) {
	functions, slow, err := read(root)
	if err != nil {
		return nil, nil, err
	}
	for grown := true; grown; {
		grown = false
		for _, f := range functions {
			for name := range f.uses {
				if slow[name] && !slow[qualified(f.folder, f.name)] {
					slow[qualified(f.folder, f.name)], grown = true, true
				}
			}
		}
	}
	in, has := map[string]bool{}, map[string]bool{}
	for _, f := range functions {
		if f.test && slow[qualified(f.folder, f.name)] {
			in[f.name], has[f.folder] = true, true
		}
	}
	folders = slices.Sorted(maps.Keys(has))
	slices.Reverse(folders)
	return slices.Sorted(maps.Keys(in)), folders, nil
}

// qualified returns the name by which another package calls a function of a folder.
func qualified(folder, name string) string { return filepath.Base(folder) + "." + name }

// read returns the functions of all Go files below root, and the names that are
// declared under the build tag slow alone.
func read(root string) (functions []function, slow map[string]bool, err error) {
	slow = map[string]bool{}
	files := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, tagged := filepath.Dir(path), needsSlow(file)
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.GenDecl:
				for _, name := range valuesOf(d) {
					slow[qualified(folder, name)] = slow[qualified(folder, name)] || tagged
				}
			case *ast.FuncDecl:
				if d.Recv != nil {
					continue
				}
				f := function{name: d.Name.Name, folder: folder, uses: namesIn(d.Body, folder)}
				f.test = strings.HasPrefix(f.name, "Test") && f.name != "TestMain" && strings.HasSuffix(path, "_test.go")
				functions = append(functions, f)
				slow[qualified(folder, f.name)] = slow[qualified(folder, f.name)] || tagged
			}
		}
		return nil
	})
	return functions, slow, err
}

// valuesOf returns the names of the variables and constants of a declaration.
func valuesOf(d *ast.GenDecl) (names []string) {
	for _, spec := range d.Specs {
		if values, ok := spec.(*ast.ValueSpec); ok {
			for _, name := range values.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// needsSlow reports whether a file is built with the build tag slow alone.
func needsSlow(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if expression, err := constraint.Parse(comment.Text); err == nil && comment.Pos() < file.Package {
				tagged := func(tag string) bool { return tag == "slow" || tag == "linux" || tag == "amd64" }
				without := func(tag string) bool { return tag != "slow" && tagged(tag) }
				return expression.Eval(tagged) && !expression.Eval(without)
			}
		}
	}
	return false
}

// namesIn returns the names that a function of a folder mentions, qualified.
func namesIn(body *ast.BlockStmt, folder string) map[string]bool {
	names := map[string]bool{}
	if body == nil {
		return names
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				names[x.Name+"."+n.Sel.Name] = true
				return false
			}
		case *ast.Ident:
			names[qualified(folder, n.Name)] = true
		}
		return true
	})
	return names
}
