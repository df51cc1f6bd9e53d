package informer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// benchWords makes up what objects consist of, always the same for a seed.
type benchWords struct{ *rand.Rand }

func (w benchWords) hex(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[w.IntN(16)]
	}
	return string(b)
}

func (w benchWords) time() metav1.Time {
	return metav1.NewTime(time.Unix(1_700_000_000+w.Int64N(1e7), 0).UTC())
}

func (w benchWords) meta(kind string, i int) metav1.ObjectMeta {
	app := fmt.Sprintf("app-%d", w.IntN(200))
	fields := `{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{}},"f:labels":{".":{},"f:app":{},"f:tier":{}}},"f:spec":{"f:restartPolicy":{},"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}}}}}`
	return metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%s-%d", app, w.hex(10), i), Namespace: fmt.Sprintf("ns-%d", i/1000), UID: types.UID(w.hex(36)), ResourceVersion: fmt.Sprint(1000 + i),
		CreationTimestamp: w.time(),
		Labels:            map[string]string{"app": app, "tier": "backend", "pod-template-hash": w.hex(10), "release": "stable", "team": fmt.Sprintf("team-%d", w.IntN(9))},
		Annotations: map[string]string{
			"checksum/config": w.hex(64), "prometheus.io/scrape": "true", "prometheus.io/port": "9090", "cni.example.com/ips": fmt.Sprintf(`["10.%d.%d.%d"]`, w.IntN(256), w.IntN(256), w.IntN(256)),
		},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: app + "-" + w.hex(10), UID: types.UID(w.hex(36)), Controller: new(bool), BlockOwnerDeletion: new(bool)}},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: new(w.time()), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)},
			{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: new(w.time()), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: "status"},
		},
	}
}

func (w benchWords) pod(i int) runtime.Object {
	pod := &corev1.Pod{ObjectMeta: w.meta("ReplicaSet", i), Spec: corev1.PodSpec{
		NodeName: fmt.Sprintf("node-%d.cluster.internal", w.IntN(500)), RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
		ServiceAccountName: "default", SchedulerName: "default-scheduler", TerminationGracePeriodSeconds: new(int64), Priority: new(int32),
		Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64)}},
		Volumes:     []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, DefaultMode: new(int32)}}}},
	}}
	for _, name := range []string{"main", "sidecar"} {
		image := fmt.Sprintf("registry.example.com/team/%s:v%d.%d", name, w.IntN(5), w.IntN(20))
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: name, Image: image, Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "POD_SEED", Value: w.hex(8)}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}, ImagePullPolicy: corev1.PullIfNotPresent,
			Resources: corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("256Mi")},
				Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config", ReadOnly: true}},
		})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: true, Image: image, ImageID: "registry.example.com/team/" + name + "@sha256:" + strings.Repeat("ab", 32), ContainerID: "containerd://" + w.hex(64),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: w.time()}}, Started: new(bool),
		})
	}
	for _, typ := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: w.time()})
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.HostIP = corev1.PodRunning, fmt.Sprintf("10.1.%d.%d", w.IntN(256), w.IntN(256)), fmt.Sprintf("192.168.1.%d", w.IntN(256))
	pod.Status.StartTime, pod.Status.QOSClass = new(w.time()), corev1.PodQOSBurstable
	return pod
}

func (w benchWords) configMap(i int) runtime.Object {
	data := map[string]string{}
	for k := range 4 {
		data[fmt.Sprintf("file-%d.conf", k)] = strings.Repeat("key = \"value "+w.hex(20)+"\"\n", 200)
	}
	return &corev1.ConfigMap{ObjectMeta: w.meta("Thing", i), Data: data}
}

func (w benchWords) node(i int) runtime.Object {
	node := &corev1.Node{ObjectMeta: w.meta("Thing", i)}
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("65842468Ki"), "pods": resource.MustParse("110")}
	node.Status.Allocatable = node.Status.Capacity
	for k := range 50 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example.com/image-%d@sha256:%s", k, strings.Repeat("cd", 32)), fmt.Sprintf("registry.example.com/image-%d:v1", k)}, SizeBytes: w.Int64N(1e9),
		})
	}
	for _, typ := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: typ, Status: corev1.ConditionFalse, LastHeartbeatTime: w.time(), LastTransitionTime: w.time(), Reason: "KubeletHasSufficient", Message: "kubelet has sufficient resources available"})
	}
	return node
}

// benchWire returns n objects as a list and as a watch.
func benchWire(b *testing.B, kind, apiVersion string, n int, object func(benchWords, int) runtime.Object) (list, frames string) {
	words := benchWords{rand.New(rand.NewPCG(7, 7))}
	var items, watch []string
	for i := range n {
		raw, err := json.Marshal(object(words, i))
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, string(raw))
		watch = append(watch, fmt.Sprintf(`{"type":"ADDED","object":{"kind":%q,"apiVersion":%q,%s}`+"\n", kind, apiVersion, raw[1:]))
	}
	return fmt.Sprintf(`{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"9"},"items":[%s]}`, kind, apiVersion, strings.Join(items, ",")), strings.Join(watch, "")
}

// benchClient reads a list, and a watch of n events, as client-go does.
type benchClient struct {
	list  func() error
	watch func() (watch.Interface, error)
}

// benchDecode measures one kind of object: decoded alone, in a list, and in a
// watch, by Kubernetes and client-go and by FromREST.
func benchDecode[E any, T interface {
	*E
	informer.Object
}](b *testing.B, list, frames string, n int, client benchClient, opts informer.RESTOptions) {
	var page struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(list), &page); err != nil {
		b.Fatal(err)
	}
	each := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/object")
		})
	}
	source := informer.FromREST[E, T](restClient(b, wireTrip(list, frames)), podsGVR(), opts)
	each("bare", func() error {
		for _, raw := range page.Items {
			if err := kjson.Unmarshal(raw, T(new(E))); err != nil {
				return err
			}
		}
		return nil
	})
	each("list/theirs", client.list)
	each("list/ours", func() error { return drain(b.Context(), source, false) })
	each("watch/theirs", func() error {
		w, err := client.watch()
		if err != nil {
			return err
		}
		defer w.Stop()
		for range n {
			if ev := <-w.ResultChan(); ev.Type != watch.Added {
				return fmt.Errorf("event %v", ev)
			}
		}
		return nil
	})
	each("watch/ours", func() error { return drain(b.Context(), source, true) })
}

// BenchmarkFromREST_Kinds compares with client-go on the same bytes.
func BenchmarkFromREST_Kinds(b *testing.B) {
	const n = 500
	all := metav1.ListOptions{}
	for _, opts := range []informer.RESTOptions{{}, benchOptions()} {
		name := func(kind string) string {
			if opts.ShareStrings || opts.LeaveOut != nil {
				return kind + "+options"
			}
			return kind
		}
		b.Run(name("pods"), func(b *testing.B) {
			list, frames := benchWire(b, "Pod", "v1", n, benchWords.pod)
			pods := kubernetes.NewForConfigOrDie(restConfig(wireTrip(list, frames))).CoreV1().Pods("")
			benchDecode[corev1.Pod](b, list, frames, n, benchClient{
				func() error { _, err := pods.List(b.Context(), all); return err },
				func() (watch.Interface, error) { return pods.Watch(b.Context(), all) },
			}, opts)
		})
		b.Run(name("configmaps"), func(b *testing.B) {
			list, frames := benchWire(b, "ConfigMap", "v1", n, benchWords.configMap)
			maps := kubernetes.NewForConfigOrDie(restConfig(wireTrip(list, frames))).CoreV1().ConfigMaps("")
			benchDecode[corev1.ConfigMap](b, list, frames, n, benchClient{
				func() error { _, err := maps.List(b.Context(), all); return err },
				func() (watch.Interface, error) { return maps.Watch(b.Context(), all) },
			}, opts)
		})
		b.Run(name("nodes"), func(b *testing.B) {
			list, frames := benchWire(b, "Node", "v1", n, benchWords.node)
			nodes := kubernetes.NewForConfigOrDie(restConfig(wireTrip(list, frames))).CoreV1().Nodes()
			benchDecode[corev1.Node](b, list, frames, n, benchClient{
				func() error { _, err := nodes.List(b.Context(), all); return err },
				func() (watch.Interface, error) { return nodes.Watch(b.Context(), all) },
			}, opts)
		})
		b.Run(name("unstructured"), func(b *testing.B) {
			list, frames := benchWire(b, "Pod", "v1", n, benchWords.pod)
			client := dynamic.NewForConfigOrDie(restConfig(wireTrip(list, frames))).Resource(podsGVR())
			benchDecode[unstructured.Unstructured](b, strings.ReplaceAll(list, `{"metadata":{"name"`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name"`), frames, n, benchClient{
				func() error { _, err := client.List(b.Context(), all); return err },
				func() (watch.Interface, error) { return client.Watch(b.Context(), all) },
			}, opts)
		})
	}
}

func benchOptions() informer.RESTOptions {
	return informer.RESTOptions{LeaveOut: []string{"metadata.managedFields"}, ShareStrings: true}
}

// drain reads a source to its end, by a list or by a watch.
func drain[T informer.Object](ctx context.Context, source informer.ListerWatcher[T], watch bool) error {
	seq := source.List(ctx, metav1.ListOptions{})
	if watch {
		seq = source.Watch(ctx, metav1.ListOptions{})
	}
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}
