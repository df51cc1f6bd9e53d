package informer_test

import (
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var updateImports = flag.Bool("update-imports", false, "write testdata/imports.txt anew")

// The packages outside of the standard library that a user links are those in
// testdata/imports.txt, none of them is for tests, and the package itself
// imports nothing of what it is there to replace.
func TestImports(t *testing.T) {
	all := goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	const file = "testdata/imports.txt"
	if *updateImports {
		if err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(data))
	for _, pkg := range all {
		if !slices.Contains(listed, pkg) {
			t.Errorf("%s is imported, and not in %s (-update-imports adds it)", pkg, file)
		}
	}
	for _, pkg := range listed {
		if !slices.Contains(all, pkg) {
			t.Errorf("%s is in %s, and not imported", pkg, file)
		}
	}
	if deps := goList(t, "-deps", "."); slices.Contains(deps, "testing") {
		t.Error("the package links testing into its users")
	}
	for _, pkg := range goList(t, "-f", `{{join .Imports "\n"}}`, ".") {
		for _, banned := range []string{"tools/cache", "util/workqueue", "tools/pager"} {
			if strings.HasSuffix(pkg, "client-go/"+banned) {
				t.Errorf("the package imports %s", pkg)
			}
		}
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(out))
}
