package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-99a027e8/informer/examples/controller/copier"
	"github.com/seed-99a027e8/informer/informertest"
)

const demoLength = 15 * time.Second

// The demo in virtual time, where everything that does not wait takes none.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { runDemo(t, true) })
}

// The demo as it is, which takes as long as it says.
func TestDemoInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s")
	}
	t.Parallel()
	runDemo(t, false)
}

// What make demo runs says the same, and ends by itself.
func TestMakeDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s")
	}
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "make", "-s", "-C", "../..", "demo").Output()
	if err != nil {
		t.Fatalf("make demo: %v\n%s", err, out)
	}
	numbers := lastLine(t, string(out))
	for _, name := range []string{"synced", "changes", "reconciled", "retries", "repaired"} {
		if numbers[name] <= 0 {
			t.Errorf("%s = %d, want more than 0", name, numbers[name])
		}
	}
}

// runDemo runs the demo, and holds what it says against what the server was
// asked. Unless exact, changes may have been coalesced.
func runDemo(t *testing.T, exact bool) {
	var out bytes.Buffer
	d, err := newDemo(demoLength, &out)
	if err != nil {
		t.Fatal(err)
	}
	objects := len(get[corev1.NamespaceList](t, d.server, "/api/v1/namespaces").Items) +
		len(get[corev1.ConfigMapList](t, d.server, configMapsPath).Items)
	start := time.Now()
	if err := d.run(t.Context()); err != nil {
		t.Fatalf("run = %v", err)
	}
	if took := time.Since(start); took < demoLength || took > demoLength+2*time.Second {
		t.Errorf("the demo took %v, want %v", took, demoLength)
	}
	defer func() {
		if t.Failed() {
			t.Logf("output:\n%s", out.String())
		}
	}()
	got, want := lastLine(t, out.String()), readLog(d.server.Requests())
	if got["synced"] != objects {
		t.Errorf("synced = %d, want %d", got["synced"], objects)
	}
	if got["retries"] != want.failed || want.failed == 0 {
		t.Errorf("retries = %d, want as many as requests that failed, %d", got["retries"], want.failed)
	}
	if got["repaired"] != want.repairs || want.repairs == 0 {
		t.Errorf("repaired = %d, want as many as writes that followed another's, %d", got["repaired"], want.repairs)
	}
	if n := got["changes"]; n > want.writes || n < want.touched || exact && n != want.writes {
		t.Errorf("changes = %d, want one for each of %d writes, or at least of %d objects", n, want.writes, want.touched)
	}
	labelled := teams/teamStride + want.labels
	most := objects + want.writes + want.sources*labelled
	if n := got["reconciled"]; n < teams+want.own || n > most {
		t.Errorf("reconciled = %d, want %d to %d", n, teams+want.own, most)
	}
	if n := d.copier.Counts(); int(n.Created+n.Updated+n.Deleted) != want.own || n.Conflicts == 0 {
		t.Errorf("counts = %+v, want %d writes, and conflicts", n, want.own)
	}
	checkProgress(t, out.String())
	checkWorld(t, d.server)
}

// requestLog is what the record of the server says.
type requestLog struct {
	own     int // writes of the controller that succeeded
	failed  int // those that did not
	writes  int // writes to objects that are watched, by anybody
	touched int // objects that these must show to be changed
	repairs int // writes of the controller to what someone else had written
	sources int // writes to the source
	labels  int // namespaces that got the label, or lost it
}

func readLog(requests []informertest.Request) (log requestLog) {
	last := map[string]informertest.Request{} // successful write, by namespace of the ConfigMap
	created := map[string]bool{}              // first write was its creation
	for _, r := range requests {
		if r.Method == http.MethodGet || strings.Contains(r.Path, "/leases") {
			continue
		}
		own := r.UserAgent == copierAgent
		if r.Status >= 400 {
			if own {
				log.failed++
			}
			continue
		}
		log.writes++
		namespace, about, _ := strings.Cut(strings.TrimPrefix(r.Path, "/api/v1/namespaces/"), "/")
		switch {
		case about == "":
			log.labels++
			log.touched++
			continue
		case own:
			log.own++
		case namespace == "default":
			log.sources++
		}
		before, again := last[namespace]
		if !again {
			created[namespace] = r.Method == http.MethodPost
		}
		if own && before.UserAgent == rivalAgent && r.Method != http.MethodDelete {
			log.repairs++
		}
		last[namespace] = r
	}
	for namespace, r := range last {
		if !created[namespace] || r.Method != http.MethodDelete {
			log.touched++
		}
	}
	return log
}

// lastLine returns the numbers of the last line.
func lastLine(t *testing.T, out string) map[string]int {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	words := strings.Fields(lines[len(lines)-1])
	if words[0] != "demo:" {
		t.Fatalf("the last line is %q, want it to start with demo:", lines[len(lines)-1])
	}
	numbers := map[string]int{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		var n int
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Errorf("%q: %v", word, err)
		}
		numbers[name] = n
	}
	return numbers
}

// checkProgress checks that the output tells the story in the right order.
func checkProgress(t *testing.T, out string) {
	t.Helper()
	rest := out
	for _, word := range []string{
		"msg=syncing namespaces=", "msg=synced", "msg=leading", `msg="first pass"`,
		`msg="someone changes the copy"`, `msg="repaired: the copy was changed"`,
		`msg="someone deletes the copy"`, `msg="repaired: the copy was deleted"`,
		`msg="draining the queue"`, `msg="stopping the informers"`, `msg="releasing the lease"`, "\ndemo:",
	} {
		_, after, found := strings.Cut(rest, word)
		if !found {
			t.Errorf("the output lacks %s, or has it too early", word)
			return
		}
		rest = after
	}
}

// checkWorld checks that exactly the namespaces with the label have a copy, and
// that it equals the source; and that the lease is free.
func checkWorld(t *testing.T, server *informertest.Server) {
	t.Helper()
	copies := map[string]corev1.ConfigMap{}
	for _, cm := range get[corev1.ConfigMapList](t, server, configMapsPath).Items {
		copies[cm.Namespace] = cm
	}
	source := copies[sourceKey().Namespace]
	delete(copies, sourceKey().Namespace)
	for _, ns := range get[corev1.NamespaceList](t, server, "/api/v1/namespaces").Items {
		cm, exists := copies[ns.Name]
		_, wanted := ns.Labels[demoLabel]
		if exists != wanted {
			t.Errorf("%s: copy exists: %v, want %v", ns.Name, exists, wanted)
		} else if wanted && (!maps.Equal(cm.Data, source.Data) || cm.Annotations[copier.AnnotationVersion] != source.ResourceVersion) {
			t.Errorf("%s: the copy is %v of %v, want %v of %s", ns.Name, cm.Data, cm.Annotations, source.Data, source.ResourceVersion)
		}
	}
	lease := get[coordinationv1.Lease](t, server, "/apis/coordination.k8s.io/v1/namespaces/default/leases/copier-app-config")
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("the lease is still held by %q", *holder)
	}
}

const configMapsPath = "/api/v1/configmaps?fieldSelector=metadata.name%3Dapp-config"

// get asks the server, which need not run.
func get[E any](t *testing.T, server *informertest.Server, path string) (answer E) {
	t.Helper()
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("GET %s = %d, %v", path, w.Code, err)
	}
	return answer
}

// Without -for, the program ends when it is interrupted.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var out bytes.Buffer
		if err := run(ctx, nil, &out); err != nil {
			t.Fatalf("run = %v", err)
		}
		if n := lastLine(t, out.String())["repaired"]; n < 30 {
			t.Errorf("repaired = %d in 20 s, want at least 30", n)
		}
	})
}

func TestRefusals(t *testing.T) {
	for _, args := range [][]string{{"-kubeconfig", "/does/not/exist"}, {"-for", "soon"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("run(%q) = nil, want an error", args)
		}
	}
}
