package informer_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest/prototest"
)

const protoBenchPods = 1000

// protoBenchPod returns the message of a pod as they are: 2.6 KB, half of which
// is metadata.
func protoBenchPod(b *testing.B) []byte {
	pod := protoPod("service-042-b7c9d2f4g5-x2z9k")
	pod.Labels = map[string]string{"app": "service-042", "pod-template-hash": "b7c9d2f4g5", "tier": "web", "version": "v1.42.7", "uniq": "u000042"}
	pod.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
		"kubectl.kubernetes.io/restartedAt": "2026-03-01T12:00:00Z", "checksum/config": strings.Repeat("0123abcd", 4)}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "service-042-b7c9d2f4g5", UID: "0d5b1c1e-2c1c-4a4f-9a53-4b6e1b8f1a11"}}
	pod.ManagedFields = append(pod.ManagedFields, *pod.ManagedFields[0].DeepCopy())
	for i := range pod.ManagedFields {
		pod.ManagedFields[i].FieldsV1 = metav1.NewFieldsV1(strings.Repeat(`{"f:metadata":{"f:labels":{}},`, 19))
	}
	container := pod.Spec.Containers[0].DeepCopy()
	container.Name, container.Image = "sidecar", "registry.example.com/mesh/proxy:1.30.2"
	pod.Spec.Containers = append(pod.Spec.Containers, *container)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, pod.Spec.Tolerations[0])
	ready := pod.Status.Conditions[0]
	pod.Status.Conditions = append(pod.Status.Conditions, ready, ready, ready)
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image + "@sha256:" + strings.Repeat("89abcdef", 8),
			ContainerID: "containerd://" + strings.Repeat("01234567", 8), Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}},
		})
	}
	raw, err := pod.Marshal()
	if err != nil || len(raw) < 2500 || len(raw) > 2900 {
		b.Fatalf("%d bytes, %v", len(raw), err)
	}
	return raw
}

// protoBenchKept makes the bare objects live on the heap, as all others do.
var protoBenchKept *corev1.Pod

// BenchmarkFromREST_Proto reads lists and watches of pods: the bare method of the
// generated code on the same bytes, FromREST, and client-go's clients.
func BenchmarkFromREST_Proto(b *testing.B) {
	pod := protoBenchPod(b)
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
				protoBenchKept = new(corev1.Pod)
				if err := protoBenchKept.Unmarshal(item); err != nil {
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
		return func() error { return drain(b.Context(), source, watch) }
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
