package informer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
	"github.com/seed-99a027e8/informer/informertest/prototest"
)

// simServerKinds returns the faults of a real server, in words of informertest.
// Left out are those after which nobody could tell what is there: events out of
// order, objects without a name; and those that end an informer.
func simServerKinds() []simKind {
	return []simKind{
		{"refused", simBreaks}, {"drop", simBreaks}, {"delay=3s", simBreaks}, {"hang", simBreaks}, {"halfopen", simBreaks},
		{"cut", simBreaks}, {"eof", simBreaks}, {"truncated", simBreaks}, {"garbage", simBreaks}, {"slow=2s", simStreams},
		{"expired", simBreaks}, {"toolarge", simBreaks}, {"toomany", simBreaks}, {"toomany=7s", simBreaks},
		{"internal", simBreaks}, {"unavailable", simBreaks}, {"timeout", simBreaks},
		{"unauthorized", simBreaks}, {"forbidden", simBreaks}, {"notfound", simBreaks}, {"invalid", simBreaks},
		{"restored", simOutage}, {"compacted", simOutage}, {"reborn", simOutage},
		{"stale", simLists}, {"ignored", simLists}, {"twice", simLists}, {"versionless", simLists}, {"unversioned", simLists},
		{"close", simStreams}, {"gateway=4s", simStreams}, {"nobookmarks", simStreams}, {"malformed", simStreams}, {"duplicate", simStreams},
	}
}

// simWidget is what a program knows of a widget.
type simWidget struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Value string `json:"value"`
	} `json:"spec"`
}

var errSimWidget = errors.New("the value of the widget is not a text")

// simWidgets is the resource of a simulated server.
func simWidgets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
}

// simWrites is how many writes a simulated server may see between two restores.
const simWrites = 1000

// simCluster is an API server that does what a history says.
type simCluster struct {
	*simWorld
	t       *testing.T
	server  *informertest.Server
	history *simHistory
	table   *simTable
	// backups are the versions that restores go back to, by how many are left
	// then: with the objects of the start, and so far apart that what comes after
	// a restore does not reach the next one.
	backups []string

	// These are guarded by the world's mu.

	restores int // that are left
	struck   int
	over     int // of writes and faults
}

// simulateServer runs a history against a server over HTTP, inside a bubble.
func simulateServer(t *testing.T, h *simHistory, table *simTable) *simulation {
	c := &simCluster{simWorld: newSimWorld(h.steps), t: t, history: h, table: table}
	c.server = informertest.Start(t, informertest.Options{
		Record: 4000, History: 8000, BookmarkInterval: max(h.traits.bookmarks, time.Second),
		Resources: []informertest.Resource{{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget"}},
	})
	s := &simulation{history: h, world: c.simWorld, server: c, rest: make(chan struct{})}
	c.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var lives sync.WaitGroup
	lives.Go(func() { c.write(ctx) })
	lives.Go(func() { c.fault(ctx) })
	s.run(t, c.source(h.seed%2 == 0, h.seed/2%2 == 0))
	cancel()
	lives.Wait()
	return s
}

// source returns a source of the server's widgets: one of FromREST, for JSON or
// protobuf, or one of a client.
func (c *simCluster) source(rest, proto bool) informer.ListerWatcher[simObj] {
	config := c.server.Config()
	if rest && proto {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return prototest.Transport{Next: next, Encode: simProto}
		})
		client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
		return informer.Project(informer.FromREST[corev1.ConfigMap](client, simWidgets(), informer.RESTOptions{}),
			func(m *corev1.ConfigMap) (simObj, bool, error) { return simObjOf(m, m.Data["value"]), true, nil })
	}
	if rest {
		client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
		return informer.Project(informer.FromREST[simWidget](client, simWidgets(), informer.RESTOptions{}),
			func(w *simWidget) (simObj, bool, error) { return simObjOf(w, w.Spec.Value), true, nil })
	}
	client := dynamic.NewForConfigOrDie(config).Resource(simWidgets())
	return informer.Project(informer.FromClient[*unstructured.Unstructured](client),
		func(u *unstructured.Unstructured) (simObj, bool, error) {
			value, ok, err := unstructured.NestedString(u.Object, "spec", "value")
			if !ok || err != nil {
				return nil, false, errSimWidget
			}
			return simObjOf(u, value), true, nil
		})
}

// simProto makes a widget a config map, as widgets have no protobuf.
func simProto(_, kind string, object []byte) (newVersion, newKind string, message []byte, err error) {
	var widget simWidget
	err = json.Unmarshal(object, &widget)
	encoded := corev1.ConfigMap{ObjectMeta: widget.ObjectMeta, Data: map[string]string{"value": widget.Spec.Value}}
	message, _ = encoded.Marshal()
	return "v1", strings.Replace(kind, "Widget", "ConfigMap", 1), message, err
}

func simObjOf(o metav1.Object, value string) simObj {
	return &informertest.Object{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Version: o.GetResourceVersion(), Value: value,
	}
}

// begin makes the first objects.
func (c *simCluster) begin() {
	for _, name := range []string{"x", "y"} {
		c.must(c.server.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	var versions []int
	for key := range c.history.initial {
		obj := simObject{uid: key + 1, version: c.version() + 1}
		versions = append(versions, c.must(c.server.Create(simWidgetOf(key, obj))))
	}
	c.must(c.server.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "filler"}}))
	for _, f := range c.history.faults {
		if f.is("restored") && c.restores < 2 {
			c.restores++
		}
	}
	for range c.restores {
		c.backups = append(c.backups, c.server.Version())
		c.fill()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginLocked(c.version(), versions)
	c.mirror = c.mirrored
}

// fill makes the server's version so high that what comes after a restore to
// where it was will not reach it.
func (c *simCluster) fill() {
	for range simWrites {
		c.must(c.server.Update(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "filler"}, Data: map[string]string{"version": c.server.Version()},
		}))
	}
}

// must returns the version of a write, which cannot fail.
func (c *simCluster) must(version string, err error) int {
	if err != nil {
		panic(err)
	}
	n, err := strconv.Atoi(version)
	if err != nil {
		panic(err)
	}
	return n
}

func (c *simCluster) version() int { return c.must(c.server.Version(), nil) }

// simWidgetOf returns an object as the server keeps it.
func simWidgetOf(key int, obj simObject) *unstructured.Unstructured {
	namespace, name, _ := strings.Cut(string(simName(nil, key)), "/")
	var value any = string(simValue(nil, obj))
	if obj.bad {
		value = int64(obj.version)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{
			"namespace": namespace, "name": name,
			"labels": map[string]any{"seen": strconv.FormatBool(obj.seen())},
		},
		"spec": map[string]any{"value": value},
	}}
}

// mirrored does a write of the world.
func (c *simCluster) mirrored(key int, was, obj simObject) {
	var version int
	switch widget := simWidgetOf(key, obj); {
	case was.uid == 0:
		version = c.must(c.server.Create(widget))
	case obj.uid == 0:
		version = c.must(c.server.Delete(widget))
	default:
		version = c.must(c.server.Update(widget))
	}
	if want := c.nowLocked().last().version + 1; version != want {
		panic(fmt.Sprintf("the version is %d, and the world is at %d", version, want))
	}
}

// write does the writes of the plan, each at its time.
func (c *simCluster) write(ctx context.Context) {
	for _, step := range c.history.steps {
		if step.gap > 0 && !simWait(ctx, step.gap) {
			return
		}
		c.do(step.op, step.key)
	}
	c.end()
}

func (c *simCluster) do(op simOp, key int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = nil // this world does nothing by itself
	c.writeLocked(op, key, time.Since(c.start))
}

func (c *simCluster) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over++
}

// fault lets the faults of the plan strike, one after the other.
func (c *simCluster) fault(ctx context.Context) {
	for _, f := range c.history.faults {
		if !simWait(ctx, f.after) {
			return
		}
		began, remove := time.Now(), c.strike(&f)
		// One that was over before the next request came was none.
		for more := 0; !simWait(ctx, f.lasts) || more < 5 && !c.count(&f, began); more++ {
			if ctx.Err() != nil {
				return
			}
			f.lasts = 10 * time.Second
		}
		switch {
		case f.is("malformed"):
			c.do(simWrite, f.key)
		case f.is("reborn"):
			c.do(simRecreate, f.key)
			c.compact()
		case f.is("compacted"):
			c.compact()
		}
		remove()
	}
	c.server.Calm()
	c.end()
}

// strike begins a fault, in its phase if that can be: what the client does is
// ended for that.
func (c *simCluster) strike(f *simFault) (remove func()) {
	var rules []informertest.Rule
	once := func(fault informertest.Fault, verb string) {
		rules = append(rules, informertest.Rule{Fault: fault, Verb: verb, Times: 1})
	}
	switch f.phase {
	case simStreaming:
		once(informertest.FaultExpired, "watch")
	case simListing:
		once(informertest.FaultExpired, "watch")
		once(informertest.FaultInternal, "stream")
	case simBackingOff:
		once(informertest.FaultDrop, "watch")
	}
	rule := informertest.Rule{Fault: informertest.Fault(f.word), After: f.skip}
	switch {
	case f.is("malformed"):
		c.do(simBreak, f.key)
		return func() {}
	case f.is("restored"):
		c.restore()
		return func() {}
	case f.is("compacted"), f.is("reborn"):
		rules, rule = nil, informertest.Rule{Fault: informertest.FaultRefused}
	case f.is("versionless"):
		// Of an event nobody could say where it belongs.
		rule.Verb = "list"
	case f.is("stale"):
		rule.Version = c.earlier(5)
	case simKindIsWhole(f.word):
		rule.After = 0
	}
	remove, err := c.server.Inject(append(rules, rule)...)
	if err != nil {
		panic(err)
	}
	c.server.EndWatches()
	return remove
}

// simKindIsWhole reports that a fault is about a request as a whole.
func simKindIsWhole(word string) bool {
	switch word, _, _ := strings.Cut(word, "="); word {
	case "refused", "drop", "delay", "hang", "gateway", "garbage", "ignored", "nobookmarks", "duplicate", "unversioned":
		return true
	}
	return false
}

// earlier returns the version of some writes ago, but of this epoch.
func (c *simCluster) earlier(writes int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.nowLocked()
	return strconv.Itoa(max(e.base, e.last().version-writes))
}

// restore goes back to a backup, in one step: a request may be under way.
func (c *simCluster) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.restores == 0 {
		return
	}
	c.restores--
	if err := c.server.Restore(c.backups[c.restores]); err != nil {
		panic(err)
	}
	c.restoreLocked(time.Since(c.start), c.version())
}

// compact forgets the history. The server cannot be restored any more.
func (c *simCluster) compact() {
	c.server.Compact()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restores = 0
}

// count counts a fault, and reports whether it has struck.
func (c *simCluster) count(f *simFault, began time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.class == simOutage || f.is("malformed") {
		c.struck++
		c.table.cells[f.row][f.phase].Add(1)
		return true
	}
	for _, r := range c.server.Requests() {
		if r.Time.Before(began) || string(r.Fault) != f.word {
			continue
		}
		phase := map[string]simPhase{"list": simListing, "stream": simStreaming, "watch": simWatching}[r.Verb]
		if f.phase == simBackingOff {
			phase = simBackingOff
		}
		c.struck++
		c.table.cells[f.row][phase].Add(1)
		return true
	}
	return false
}

// finished reports that all faults and writes are over.
func (c *simCluster) finished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over == 2
}

// faultsStruck returns how many faults there were so far.
func (c *simCluster) faultsStruck() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.struck
}

// requests returns when they came, but for pages after the first.
func (c *simCluster) requests() (times []time.Duration) {
	for _, r := range c.server.Requests() {
		if r.Verb != "" && r.Query.Get("continue") == "" {
			times = append(times, r.Time.Sub(c.start))
		}
	}
	return times
}

// transcript returns all requests.
func (c *simCluster) transcript() string {
	var b strings.Builder
	for _, r := range c.server.Requests() {
		fmt.Fprintf(&b, "%v: %s %s → %d %s until %v\n",
			r.Time.Sub(c.start), r.Verb, r.Query.Encode(), r.Status, r.Fault, r.Ended.Sub(c.start))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, e := range c.epochs {
		for i := range e.states {
			fmt.Fprintf(&b, "%v: epoch %d, version %d, %s\n", e.states[i].at, n, e.states[i].version, e.states[i].event(nil))
		}
	}
	return b.String()
}

// TestSimulationServer is TestSimulation with a server over HTTP, as seen
// through FromREST and through FromClient: promises 2, 3, 4, 7, 9, 11, 12, 14, 15,
// 16, 19 and 29.
func TestSimulationServer(t *testing.T) {
	// The clients write a line about each broken answer to os.Stderr.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func(stderr *os.File) {
		os.Stderr = stderr
		_ = null.Close()
	}(os.Stderr)
	os.Stderr = null
	simulateAll(t, &simRecord{table: newSimTable(simServerKinds()), parts: 1}, simulateServer)
}
