package informer_test

import (
	"bytes"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/internal/prototest"
)

const protoBenchPods = 1000

// BenchmarkFromREST_Proto reads lists and watches of pods: the bare method of the
// generated code on the same bytes, FromREST, and client-go's clients.
func BenchmarkFromREST_Proto(b *testing.B) {
	pod := podBytes("a")
	items := make([][]byte, protoBenchPods)
	var frames []byte
	for i := range items {
		items[i] = pod
		frames = append(frames, prototest.Frame("ADDED", prototest.Envelope("v1", "Pod", pod))...)
	}
	list := prototest.List("v1", "PodList", protoListMeta, items...)
	b.Run("bare", func(b *testing.B) {
		benchProto(b, func() error {
			for _, item := range items {
				if err := new(corev1.Pod).Unmarshal(item); err != nil {
					return err
				}
			}
			return nil
		})
	})
	ours := func(opts informer.RESTOptions, body []byte) informer.ListerWatcher[*corev1.Pod] {
		return informer.FromREST[corev1.Pod](restClient(b, protoTrip(func() io.Reader { return bytes.NewReader(body) })), podsGVR(), opts)
	}
	out := informer.RESTOptions{LeaveOut: []string{"metadata.managedFields"}}
	read := func(source informer.ListerWatcher[*corev1.Pod], watch bool) func() error {
		return func() error {
			seq := source.List(b.Context(), metav1.ListOptions{})
			if watch {
				seq = source.Watch(b.Context(), metav1.ListOptions{})
			}
			for _, err := range seq {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	b.Run("list/ours", func(b *testing.B) { benchProto(b, read(ours(informer.RESTOptions{}, list), false)) })
	b.Run("list/left out", func(b *testing.B) { benchProto(b, read(ours(out, list), false)) })
	b.Run("watch/ours", func(b *testing.B) { benchProto(b, read(ours(informer.RESTOptions{}, frames), true)) })
	b.Run("watch/left out", func(b *testing.B) { benchProto(b, read(ours(out, frames), true)) })

	client := func(body []byte) informer.ListerWatcher[*corev1.Pod] {
		cs := kubernetes.NewForConfigOrDie(restConfig(protoTrip(func() io.Reader { return bytes.NewReader(body) })))
		return informer.FromClient[*corev1.Pod](cs.CoreV1().Pods(""))
	}
	b.Run("list/client-go", func(b *testing.B) {
		cs := kubernetes.NewForConfigOrDie(restConfig(protoTrip(func() io.Reader { return bytes.NewReader(list) })))
		benchProto(b, func() error {
			_, err := cs.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{})
			return err
		})
	})
	b.Run("watch/client-go", func(b *testing.B) { benchProto(b, read(client(frames), true)) })
}

// benchProto reports what each of the pods costs that read reads.
func benchProto(b *testing.B, read func() error) {
	var allocated int64
	for b.Loop() {
		allocated += allocatedBytes(func() {
			if err := read(); err != nil {
				b.Fatal(err)
			}
		})
	}
	pods := float64(b.N) * protoBenchPods
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/pods, "ns/pod")
	b.ReportMetric(float64(allocated)/pods, "B/pod")
	b.ReportMetric(testing.AllocsPerRun(1, func() { _ = read() })/protoBenchPods, "allocs/pod")
	b.ReportMetric(0, "ns/op")
}
