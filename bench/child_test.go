package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-99a027e8/informer/bench/fixture"
)

// A childSpec says what a fresh process is to do: the rows about peaks run each
// side in one of its own, which is this test binary again, running TestChild.
type childSpec struct {
	// Task is "sync", "wire" or "serve".
	Task string
	// Side is "ours" or "theirs".
	Side string
	// Kind, Seed and N are the objects.
	Kind string
	Seed int64
	N    int
	// Mode, URL and Option are for the task "wire".
	Mode   wireMode
	URL    string
	Option string
	Quick  bool
}

const (
	childEnv  = "INFORMER_BENCH_CHILD"
	childMark = "child: "
)

// childCommand is the process that does what spec says.
func childCommand(tb testing.TB, spec childSpec) *exec.Cmd {
	tb.Helper()
	raw, err := json.Marshal(spec)
	must(tb, err)
	binary, err := os.Executable()
	must(tb, err)
	cmd := exec.Command(binary, "-test.run", "^TestChild$", "-test.v", "-test.timeout", "30m")
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw), "KUBE_FEATURE_WatchListClient="+spec.Mode.watchList())
	cmd.Stderr = os.Stderr
	return cmd
}

// benchInChild compares the sides in fresh processes, and reports what they
// measured.
func benchInChild(b *testing.B, spec childSpec) {
	b.Helper()
	spec.Quick = *quick
	side := func(name string) func(*testing.B) {
		return func(b *testing.B) {
			b.StopTimer()
			spec := spec
			spec.Side = name
			out, err := childCommand(b, spec).Output()
			if err != nil {
				b.Fatalf("%s: %v", failureIn(out), err)
			}
			var measured map[string]float64
			must(b, json.Unmarshal(marked(out), &measured))
			for metric, value := range measured {
				b.ReportMetric(value, metric)
			}
			b.ReportMetric(0, "ns/op")
		}
	}
	compare(b, side("ours"), side("theirs"))
}

// marked returns what a child said behind the mark.
func marked(out []byte) []byte {
	_, rest, _ := bytes.Cut(out, []byte(childMark))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return line
}

// readMarked waits for such a line, and leaves the rest unread.
func readMarked(out io.Reader) (string, error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, said, ok := strings.Cut(lines.Text(), childMark); ok {
			return said, nil
		}
	}
	return "", errors.Join(errors.New("the child said nothing"), lines.Err())
}

// failureIn finds the line of a failed test that says why.
func failureIn(out []byte) string {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if _, why, ok := strings.Cut(lines.Text(), "_test.go:"); ok {
			_, why, _ = strings.Cut(why, ": ")
			return why
		}
	}
	return "the child failed"
}

// TestChild is no test: it does what another process asks for.
func TestChild(t *testing.T) {
	asked := os.Getenv(childEnv)
	if asked == "" {
		t.Skip("only for rows that need a fresh process")
	}
	var spec childSpec
	must(t, json.Unmarshal([]byte(asked), &spec))
	*quick = spec.Quick
	switch spec.Kind {
	case "pods":
		doChild[corev1.Pod](t, fixture.Pods(), spec)
	case "configmaps":
		doChild[corev1.ConfigMap](t, fixture.ConfigMaps(), spec)
	case "nodes":
		doChild[corev1.Node](t, fixture.Nodes(), spec)
	case "custom":
		doChild[unstructured.Unstructured](t, fixture.Custom(), spec)
	default:
		t.Fatalf("no kind %q", spec.Kind)
	}
}

func doChild[E any, T pointer[E]](t *testing.T, kind fixture.Kind[T], spec childSpec) {
	switch spec.Task {
	case "serve":
		serve(t, kind, spec)
	case "sync":
		answer(t, syncChild(t, kind, spec))
	case "wire":
		answer(t, wireChild[E](t, kind, spec))
	default:
		t.Fatalf("no task %q", spec.Task)
	}
}

type pointer[E any] interface {
	*E
	fixture.Object
}

func answer(t *testing.T, measured map[string]float64) {
	raw, err := json.Marshal(measured)
	must(t, err)
	_, err = io.WriteString(os.Stdout, childMark+string(raw)+"\n")
	must(t, err)
}

// A peak watches the heap while something runs.
type peak struct {
	before, highest uint64
	end             chan struct{}
	done            sync.WaitGroup
}

func watchHeap() *peak {
	before := heap()
	debug.FreeOSMemory()
	p := &peak{before: before, end: make(chan struct{})}
	p.done.Go(func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			metrics.Read(sample)
			p.highest = max(p.highest, sample[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-p.end:
				return
			}
		}
	})
	return p
}

const mega = 1e6

// stop returns how far the heap went beyond what was live at the start, in MB.
func (p *peak) stop() float64 {
	close(p.end)
	p.done.Wait()
	return (float64(p.highest) - float64(p.before)) / mega
}

// live returns how much more is live now than at the start, in MB. What is to
// count must be alive.
func (p *peak) live() float64 { return (float64(heap()) - float64(p.before)) / mega }

// syncChild measures the rows I3 and I4.
func syncChild[T fixture.Object](t *testing.T, kind fixture.Kind[T], spec childSpec) map[string]float64 {
	fix := &made[T]{kind: kind, seed: spec.Seed}
	objs := fix.first(spec.N)
	s := newScript(kind, objs)
	s.lists[1] = make([]T, len(objs))
	for i, obj := range objs {
		s.lists[1][i] = kind.Copy(obj)
	}
	s.last = kind.Touch(objs[0], 90_000_000)
	again := make(chan struct{})
	onUpdate := func(obj T) {
		if obj.GetResourceVersion() == s.last.GetResourceVersion() {
			close(again)
		}
	}
	close(s.begin)

	if spec.Side == "theirs" {
		s.makeLists()
	}
	first, from := watchHeap(), time.Now()
	var inf started
	if spec.Side == "ours" {
		inf = startOurs(t, kind, ourSource[T]{s}, true, onUpdate)
	} else {
		inf = startTheirs(t, kind, theirInformer(s, true), onUpdate)
	}
	took := time.Since(from)
	measured := map[string]float64{"sync-ms": ms(took), "sync-peak-MB": first.stop(), "sync-live-MB": first.live()}

	second := watchHeap()
	close(s.relist)
	<-again
	measured["relist-ms"] = ms(time.Since(s.relisted))
	measured["relist-peak-MB"] = second.stop()
	if n := inf.length(); n != spec.N {
		t.Fatalf("%d objects, want %d", n, spec.N)
	}
	runtime.KeepAlive(s)
	inf.stop()
	return measured
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
