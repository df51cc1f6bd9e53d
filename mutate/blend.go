package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// blended is a source file with all mutants of its functions. Each function
// that is mutated begins with a call of the mutant whose number is that of the
// run:
//
//	func (q *Queue[K]) add(k K) bool {
//		if mutantNumber == 17 {
//			return q.add_mutant17(k)
//		}
//		…
//
// So one build serves all mutations. They do not meet: one number runs at a
// time, a mutant calls the functions of before, and what it costs the others is a
// comparison. With number 0 all tests have to pass, those of speed and memory
// among them.
type blended struct {
	name    string
	pkg     string
	source  string
	heads   map[int]string // by offset in source, what goes there
	mutants []mutant
}

// A mutant is a function of another name.
type mutant struct {
	number int
	text   string
}

// errNotOne means that a mutation is not within one function, or in one that
// cannot be called by another of the same signature.
var errNotOne = errors.New("not within one function")

// selector returns the file of a package that says which mutant runs.
func selector(pkg string) string {
	return "package " + pkg + `

import (
	"os"
	"strconv"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv("MUTANT"))
`
}

// blend returns a source file without a mutant.
func blend(name, source string) (*blended, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.PackageClauseOnly)
	if err != nil {
		return nil, err
	}
	return &blended{name: name, pkg: file.Name.Name, source: source, heads: map[int]string{}}, nil
}

// add adds the mutant that makes changed of the file. It returns errNotOne if
// more than the body of one function differs.
func (b *blended) add(number int, changed string) error {
	was, err := functions(b.name, b.source)
	if err != nil {
		return err
	}
	is, err := functions(b.name, changed)
	if err != nil {
		return err
	}
	i := len(was)
	for j := range was {
		if len(is) == len(was) && was[j].text != is[j].text {
			i = min(i, j)
		}
	}
	if i == len(was) || was[i].head() != is[i].head() || !rest(b.source, was[i]).equal(rest(changed, is[i])) {
		return errNotOne
	}
	call, ok := was[i].call(number)
	if !ok {
		return errNotOne
	}
	open := int(was[i].decl.Body.Lbrace)
	b.heads[open] += fmt.Sprintf("\nif mutantNumber == %d {\n%s\n}\n", number, call)
	f := is[i]
	name := int(f.decl.Name.End() - f.decl.Pos())
	b.mutants = append(b.mutants, mutant{number, f.text[:name] + suffix(number) + f.text[name:]})
	return nil
}

func suffix(number int) string { return fmt.Sprintf("_mutant%d", number) }

// text returns the whole file, and on which of its lines the mutants begin.
func (b *blended) text(without map[int]bool) (text string, lines map[int]int) {
	var out strings.Builder
	from := 0
	for at := range len(b.source) {
		if head, ok := b.heads[at+1]; ok { // positions begin at 1
			out.WriteString(b.source[from : at+1])
			out.WriteString(headWithout(head, without))
			from = at + 1
		}
	}
	out.WriteString(b.source[from:])
	lines = map[int]int{}
	for _, m := range b.mutants {
		if !without[m.number] {
			lines[m.number] = strings.Count(out.String(), "\n") + 1
			out.WriteString("\n" + m.text + "\n")
		}
	}
	return out.String(), lines
}

// headWithout makes conditions of mutants that are left out never true, and
// drops their calls.
func headWithout(head string, without map[int]bool) string {
	for number := range without {
		begin := fmt.Sprintf("\nif mutantNumber == %d {\n", number)
		if before, after, ok := strings.Cut(head, begin); ok {
			_, after, _ = strings.Cut(after, "\n}\n")
			head = before + after
		}
	}
	return head
}

// function is a function of a source file.
type function struct {
	decl *ast.FuncDecl
	text string
}

func functions(name, source string) (all []function, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Base(name), source, 0)
	if err != nil {
		return nil, err
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			all = append(all, function{f, source[f.Pos()-1 : f.End()-1]})
		}
	}
	return all, nil
}

// head returns the text before the body.
func (f function) head() string { return f.text[:f.decl.Body.Pos()-f.decl.Pos()] }

// surroundings is the text before and after a function.
type surroundings struct{ before, after string }

func rest(source string, f function) surroundings {
	return surroundings{source[:f.decl.Pos()-1], source[f.decl.End()-1:]}
}

func (s surroundings) equal(other surroundings) bool { return s == other }

// call returns the statement that calls the mutant with the same arguments, if
// that is possible: all of them need a name.
func (f function) call(number int) (text string, ok bool) {
	text = f.decl.Name.Name + suffix(number)
	if recv := f.decl.Recv; recv != nil {
		if len(recv.List[0].Names) == 0 {
			return "", false
		}
		text = recv.List[0].Names[0].Name + "." + text
	}
	if types := names(f.decl.Type.TypeParams); len(types) > 0 {
		text += "[" + strings.Join(types, ", ") + "]"
	}
	args := names(f.decl.Type.Params)
	for _, field := range f.decl.Type.Params.List {
		if len(field.Names) == 0 {
			return "", false
		}
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			args[len(args)-1] += "..."
		}
	}
	text += "(" + strings.Join(args, ", ") + ")"
	if strings.Contains(text, "_,") || strings.Contains(text, "_)") || strings.HasPrefix(text, "_.") {
		return "", false
	}
	if f.decl.Type.Results != nil {
		return "return " + text, true
	}
	return text + "\nreturn", true
}

func names(fields *ast.FieldList) (all []string) {
	if fields == nil {
		return nil
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			all = append(all, name.Name)
		}
	}
	return all
}
