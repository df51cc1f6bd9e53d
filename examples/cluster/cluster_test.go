package cluster_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-99a027e8/informer/examples/cluster"
	"github.com/seed-99a027e8/informer/informertest"
)

var errProgram = errors.New("program")

// podVersion counts the pods, and returns the version of the list.
func podVersion(ctx context.Context, t *testing.T, config *rest.Config) (pods int, version string) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := clientset.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items), list.ResourceVersion
}

// The embedded world has data at once, and changes for as long as it is used.
func TestUseEmbedded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := cluster.Use(t.Context(), "", func(ctx context.Context, config *rest.Config) error {
			pods, before := podVersion(ctx, t, config)
			for range 100 {
				<-time.After(time.Second)
				most, after := podVersion(ctx, t, config)
				if after == before || most < pods || most > pods+5 {
					t.Fatalf("%d pods at version %s, after %d at %s: want changes, and not ever more pods", most, after, pods, before)
				}
				before = after
			}
			return errProgram
		})
		if !errors.Is(err, errProgram) {
			t.Errorf("Use = %v, want the program's error", err)
		}
	})
}

func TestUseKubeconfig(t *testing.T) {
	server := informertest.Start(t, informertest.Options{Socket: true})
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.Config().Host}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	used := false
	err := cluster.Use(t.Context(), file, func(ctx context.Context, config *rest.Config) error {
		used = true
		if pods, version := podVersion(ctx, t, config); pods != 0 || version != server.Version() {
			t.Errorf("%d pods at version %s, want none at %s", pods, version, server.Version())
		}
		return nil
	})
	if err != nil || !used {
		t.Errorf("Use = %v, used: %v", err, used)
	}
}

// The server is there until the program has returned, whatever the context.
func TestServeOutlivesContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := informertest.NewServer(informertest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		errLife := errors.New("life")
		life := func(ctx context.Context) error {
			<-ctx.Done()
			return errLife
		}
		err = cluster.Serve(ctx, server, life, func(_ context.Context, config *rest.Config) error {
			podVersion(t.Context(), t, config)
			return errProgram
		})
		if !errors.Is(err, errProgram) || !errors.Is(err, errLife) {
			t.Errorf("Serve = %v, want both errors", err)
		}
	})
}

// If the embedded server cannot run, the program is told to end.
func TestServeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.Start(t, informertest.Options{})
		synctest.Wait() // it runs
		idle := func(context.Context) error { return nil }
		err := cluster.Serve(t.Context(), server, idle, func(ctx context.Context, _ *rest.Config) error {
			<-ctx.Done()
			return nil
		})
		if err == nil {
			t.Error("Serve = nil, want an error of the server")
		}
	})
}
