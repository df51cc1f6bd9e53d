package bench

import (
	"fmt"
	"mime"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/bench/fixture"
)

// A wireMode is how objects come over the wire.
type wireMode string

const (
	jsonList    wireMode = "json-list"
	jsonStream  wireMode = "json-stream"
	protoList   wireMode = "proto-list"
	protoStream wireMode = "proto-stream"
)

func (m wireMode) streams() bool { return m == jsonStream || m == protoStream }

func (m wireMode) proto() bool { return m == protoList || m == protoStream }

// watchList is the value of client-go's feature gate.
func (m wireMode) watchList() string { return fmt.Sprint(m.streams()) }

// path is where the server answers in this mode.
func (m wireMode) path() string {
	if m.streams() {
		return "/stream"
	}
	return "/list"
}

func (m wireMode) contentType() string {
	if m.proto() {
		return protoType
	}
	return jsonType
}

// wired is how many pods the wire rows are about.
const wired = 50_000

func BenchmarkW1_W5_JSONList(b *testing.B) { benchWire(b, jsonList) }

func BenchmarkW2_W5_JSONStream(b *testing.B) { benchWire(b, jsonStream) }

func BenchmarkW3_W5_ProtoList(b *testing.B) { benchWire(b, protoList) }

func BenchmarkW4_W5_ProtoStream(b *testing.B) { benchWire(b, protoStream) }

func benchWire(b *testing.B, mode wireMode) {
	spec := childSpec{Task: "wire", Kind: "pods", Seed: standardSeed, N: pick(wired, wired/5), Mode: mode}
	benchOverWire(b, spec)
}

func benchOverWire(b *testing.B, spec childSpec) {
	spec.URL = servers.url(b, spec)
	benchInChild(b, spec)
}

// servers are the processes that serve the wire rows: one at a time, which is
// the same for all rows that want the same objects.
var servers serverPool

type serverPool struct {
	mu      sync.Mutex // guards what follows
	serving string
	address string
	end     func()
}

// url returns the address of a server of the objects of spec.
func (p *serverPool) url(b *testing.B, spec childSpec) string {
	b.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := fmt.Sprint(spec.Kind, spec.Seed, spec.N)
	if p.serving == wanted {
		return p.address
	}
	if p.end != nil {
		p.end()
	}
	cmd := childCommand(b, childSpec{Task: "serve", Kind: spec.Kind, Seed: spec.Seed, N: spec.N})
	stdin, err := cmd.StdinPipe()
	must(b, err)
	stdout, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	address, err := readMarked(stdout)
	must(b, err)
	p.serving, p.address = wanted, address
	p.end = func() { _ = stdin.Close(); _ = cmd.Wait() }
	return address
}

// typeCheck notes a content type that is not the one which a row is about.
type typeCheck struct {
	http.RoundTripper
	want string

	mu    sync.Mutex // guards wrong
	wrong string
}

func (c *typeCheck) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK {
		got, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
		if got != c.want {
			c.mu.Lock()
			c.wrong = got
			c.mu.Unlock()
		}
	}
	return response, err
}

// wireChild measures a sync over HTTP: from the start of an informer to the
// moment when its cache is complete and its handler has seen all.
func wireChild[E any, T pointer[E]](t *testing.T, kind fixture.Kind[T], spec childSpec) map[string]float64 {
	check := &typeCheck{want: spec.Mode.contentType()}
	config := &rest.Config{
		Host: spec.URL + spec.Mode.path(), QPS: -1,
		ContentConfig: rest.ContentConfig{AcceptContentTypes: check.want, ContentType: check.want},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { check.RoundTripper = next; return check },
	}
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	nothing := func(T) {}

	p, from := watchHeap(), time.Now()
	var inf started
	if spec.Side == "ours" {
		source := informer.FromREST[E, T](clients.CoreV1().RESTClient(), kind.Resource, restOptions(spec.Option))
		inf = startOurs(t, kind, source, true, nothing)
	} else {
		inf = startTheirs(t, kind, typedInformer(t, kind, clients, config), nothing)
	}
	took := time.Since(from)
	highest := p.stop()
	live := p.live()
	if n := inf.length(); n != spec.N {
		t.Fatalf("%d objects, want %d", n, spec.N)
	}
	inf.stop()
	if check.wrong != "" {
		t.Fatalf("the row is about %s, and the answer was %s", check.want, check.wrong)
	}
	return map[string]float64{"sync-ms": ms(took), "peak-MB": highest, "live-MB": live, "peak/live": highest / live}
}

// typedInformer is what one has of client-go for a kind.
func typedInformer[T fixture.Object](t *testing.T, kind fixture.Kind[T], clients kubernetes.Interface, config *rest.Config) cache.SharedIndexInformer {
	indexers := indexersOf(kind)
	switch kind.Kind {
	case "Pod":
		return coreinformers.NewPodInformer(clients, "", 0, indexers)
	case "ConfigMap":
		return coreinformers.NewConfigMapInformer(clients, "", 0, indexers)
	case "Node":
		return coreinformers.NewNodeInformer(clients, 0, indexers)
	}
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return dynamicinformer.NewFilteredDynamicInformer(client, kind.Resource, "", 0, indexers, nil).Informer()
}
