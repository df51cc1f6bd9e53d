package informer_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// untyped lists every function that uses any, a type assertion, a type switch
// or reflection, how often, and why. Whoever adds one has to say why here.
var untyped = map[string]struct{ uses, why string }{
	"client.go FromClient":                     {"2 reflect", "a fake client is known by its package, once for each source"},
	"client.go clientSource.convert":           {"1 any, 1 assertion", "the edge: the one checked conversion to T"},
	"client.go clientSource.noteFake":          {"1 type switch", "the edge: a fake client is known by its watcher's type"},
	"client.go clientSource.page":              {"1 any, 1 reflect", "the edge: an untyped client's list"},
	"client.go clientSource.watched":           {"2 assertion", "the edge: an untyped client's watch event"},
	"client.go eachItem":                       {"1 any, 10 reflect", "the edge: a typed client's list is walked"},
	"decode.go decoder.must":                   {"1 any", "what jsontext decodes into"},
	"decode.go decoder.value":                  {"1 any", "what jsontext decodes into"},
	"decodelist.go listDecoder.inherit":        {"1 any", "an object's kind, where the list names it"},
	"decodelist.go listDecoder.member":         {"1 any", "a member of the list that is no object"},
	"protodecode.go protoObject":               {"1 any, 1 assertion", "metadata that T need not have, for strings to share"},
	"leaveout.go mayLeaveOut":                  {"9 reflect", "the paths to leave out, once for each source"},
	"leaveout.go newLeftOut":                   {"1 reflect", "the paths to leave out, once for each source"},
	"rest.go FromREST":                         {"1 reflect", "the paths to leave out, once for each source"},
	"answerlimit.go withShortErrors":           {"1 assertion, 2 reflect", "a client is copied, once for each source"},
	"redact.go fieldNamed":                     {"4 reflect", "where the fault of a bad object is"},
	"redact.go inside":                         {"5 reflect", "where the fault of a bad object is"},
	"redact.go knownPath":                      {"3 reflect", "where the fault of a bad object is"},
	"redact.go wrongType":                      {"2 reflect", "where the fault of a bad object is"},
	"redact.go withoutContent":                 {"1 reflect", "where the fault of a bad object is"},
	"form.go weightOf":                         {"8 reflect", "the form of E, once for each source"},
	"follower.go follower.panicked":            {"1 any", "the value of a panic"},
	"form.go anyDecoder.array":                 {"2 any", "content of an unstructured object"},
	"form.go anyDecoder.number":                {"1 any", "content of an unstructured object"},
	"form.go anyDecoder.object":                {"2 any", "content of an unstructured object"},
	"form.go anyDecoder.value":                 {"1 any", "content of an unstructured object"},
	"form.go decodesItself":                    {"4 reflect", "the form of E, once for each source"},
	"form.go form":                             {"1 reflect", "the type E, once for each source"},
	"form.go formOf":                           {"5 reflect", "the form of E, once for each source"},
	"form.go quotesStrings":                    {"7 reflect", "the form of E, once for each source"},
	"form.go anyStrings.unmarshalAny":          {"1 any", "content of an unstructured object"},
	"form.go anyStrings.unmarshalUnstructured": {"2 any, 1 assertion", "content of an unstructured object"},
	"index.go Index.rootIn":                    {"1 assertion", "an index finds its own root in a state, once a query"},
	"informer.go Informer.errorf":              {"2 any", "arguments of fmt.Errorf"},
	"listwatch.go guarded":                     {"1 assertion", "the value of a panic"},
	"listwatch.go isNil":                       {"1 any, 7 reflect", "a nil pointer in an interface, once for each client or source"},
	"listwatch.go sourceError":                 {"1 assertion", "a source that cannot work, once for each informer"},
	"listwatch.go typeName":                    {"1 reflect", "the name of T in errors"},
	"options.go Options.withDefaults":          {"1 any", "arguments of fmt.Errorf"},
	"phase.go Reflector.step":                  {"1 type switch", "the closed set of phases, once a request"},
	"mediatype.go noteContentType":             {"1 assertion", "the value of a request's context, once a request"},
	"protodecode.go protoMethod":               {"1 assertion, 2 reflect", "the form of E, once for each source"},
	"protodecode.go looksLikeProto":            {"5 reflect", "the form of E, once for each source"},
	"protodecode.go protoFormOf":               {"2 reflect", "the form of E, once for each source"},
	"protoout.go newProtoOut":                  {"5 reflect", "what E is left without, once for each source"},
	"protoout.go protoOut.addFields":           {"2 reflect", "what E is left without, once for each source"},
	"protoshape.go protoNumber":                {"1 reflect", "the form of E, once for each source"},
	"protoshape.go protoPartOf":                {"8 reflect", "the form of E, once for each source"},
	"protoshape.go protoRepeated":              {"1 reflect", "the form of E, once for each source"},
	"protoshape.go protoShapeOf":               {"4 reflect", "the form of E, once for each source"},
	"queueoptions.go QueueOptions.check":       {"1 any", "values in the text of mistakes"},
	"queuerun.go WorkQueue.LeaseOf":            {"1 assertion", "the value of a context"},
	"watching.go Reflector.newWatch":           {"1 type switch", "the closed set of phases, once a request"},
	"watching.go Reflector.watched":            {"1 type switch", "the closed set of phases: a pointer comparison an event"},
	"watching.go Reflector.watch":              {"1 type switch", "the closed set of phases, once a request"},
}

// Promise 28: no any, no assertion and no reflection on the path of an object,
// but for those that are listed with a reason.
func TestTyped(t *testing.T) {
	found := map[string]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if uses := usesOf(decl); len(uses) > 0 {
				found[name+" "+nameOf(decl)] = strings.Join(uses, ", ")
			}
		}
	}
	for at, uses := range found {
		if known := untyped[at]; known.uses != uses {
			t.Errorf("%s uses %s; the list says %q (%s)", at, uses, known.uses, known.why)
		}
	}
	for at, known := range untyped {
		if found[at] == "" {
			t.Errorf("%s uses nothing that is untyped; the list says %q", at, known.uses)
		}
		if known.why == "" {
			t.Errorf("%s is listed without a reason", at)
		}
	}
}

// nameOf returns the name of a declaration, with the receiver's type.
func nameOf(decl ast.Decl) string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			return decl.Name.Name
		}
		recv := strings.TrimPrefix(types.ExprString(decl.Recv.List[0].Type), "*")
		recv, _, _ = strings.Cut(recv, "[")
		return recv + "." + decl.Name.Name
	case *ast.GenDecl:
		if spec, ok := decl.Specs[0].(*ast.TypeSpec); ok {
			return spec.Name.Name
		}
	}
	return decl.(*ast.GenDecl).Tok.String()
}

// usesOf returns what a declaration uses that is untyped, as "N things".
func usesOf(decl ast.Decl) (uses []string) {
	counts := map[string]int{}
	constraints := map[ast.Node]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			markConstraints(n.TypeParams, constraints)
		case *ast.TypeSpec:
			markConstraints(n.TypeParams, constraints)
		case *ast.Ident:
			if n.Name == "any" && !constraints[n] {
				counts["any"]++
			}
		case *ast.InterfaceType:
			if len(n.Methods.List) == 0 {
				counts["any"]++
			}
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				counts["assertion"]++
			}
		case *ast.TypeSwitchStmt:
			counts["type switch"]++
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "reflect" {
				counts["reflect"]++
			}
		}
		return true
	})
	for _, use := range slices.SortedFunc(maps.Keys(counts), cmp.Compare[string]) {
		uses = append(uses, fmt.Sprint(counts[use], " ", use))
	}
	return uses
}

// markConstraints marks what stands for a constraint in type parameters.
func markConstraints(params *ast.FieldList, constraints map[ast.Node]bool) {
	if params == nil {
		return
	}
	for _, field := range params.List {
		ast.Inspect(field.Type, func(n ast.Node) bool {
			constraints[n] = true
			return true
		})
	}
}
