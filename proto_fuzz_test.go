package informer_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest/prototest"
)

// FuzzProtoList: a list that the Kubernetes decoder accepts has the same objects
// and version here, if it can be told what it is before its items come; of
// anything else, nothing panics, the last step is an error, and pieces of any
// size lead to the same.
func FuzzProtoList(f *testing.F) {
	pod := podBytes("a")
	for _, seed := range [][]byte{
		prototest.List("v1", "PodList", protoListMeta, pod, pod),
		prototest.List("v1", "SecretList", protoListMeta, pod),
		prototest.List("", "", metav1.ListMeta{ResourceVersion: "9"}, append(pod, 0x10)),
		goldenProto(f, &metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}, "Status"),
		[]byte(prototest.Magic + "\x12\x0f\x1b\x2b\x0a\x01x\x2c\x1c\x0a\x03\x12\x019\x12\x00\x0a\x0b\x12\x07PodList"),
		[]byte(prototest.Magic + "\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
	} {
		f.Add(seed, uint8(3))
	}
	decoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	f.Fuzz(func(t *testing.T, raw []byte, size uint8) {
		source := restPods(t, protoAnswer(raw))
		objects, steps := fuzzObjects(t, source, false)
		_, same := fuzzObjects(t, restPods(t, protoTrip(func() io.Reader { return pieces{bytes.NewReader(raw), int(size) + 1} })), false)
		if !slices.Equal(steps, same) {
			t.Errorf("at once %q, in pieces of %d %q", steps, int(size)+1, same)
		}
		var want corev1.PodList
		got, _, err := decoder.Decode(raw, nil, &want)
		if _, ok := got.(*corev1.PodList); err != nil || !ok || protoIsOdd(raw) {
			return
		}
		named := slices.DeleteFunc(want.Items, func(p corev1.Pod) bool { return p.Name == "" })
		if len(objects) != len(named) {
			t.Fatalf("%d objects, want %d: %q", len(objects), len(named), steps)
		}
		for i := range named {
			if !reflect.DeepEqual(*objects[i], named[i]) {
				t.Errorf("object %d: %v, want %v", i, objects[i], named[i])
			}
		}
		if last := steps[len(steps)-1]; want.ResourceVersion != "" && last != "End v="+want.ResourceVersion+" next="+want.Continue {
			t.Errorf("%s, want version %s", last, want.ResourceVersion)
		}
	})
}

// protoIsOdd reports whether a list is one that is refused here, because it is
// read as it comes: with two messages in its envelope, encoded further, or
// without saying first that it is a list of pods.
func protoIsOdd(raw []byte) bool {
	var seen []int
	for _, part := range informer.ProtoParts(raw[len(prototest.Magic):]) {
		seen = append(seen, part.Field)
		if part.Field == 3 && len(part.Content) > 0 {
			return true
		}
	}
	messages := slices.DeleteFunc(slices.Clone(seen), func(field int) bool { return field != 2 })
	var unknown runtime.Unknown
	err := unknown.Unmarshal(raw[len(prototest.Magic):])
	types := slices.DeleteFunc(slices.Clone(seen), func(field int) bool { return field != 1 })
	return err != nil || len(messages) != 1 || len(types) > 1 || unknown.Kind != "PodList"
}

// FuzzProtoWatch: the same of the frames of a watch, up to the first that is no
// event about a pod.
func FuzzProtoWatch(f *testing.F) {
	pod := goldenProto(f, protoPod("a"), "Pod")
	end := goldenProto(f, protoBookmark("8", true), "Pod")
	for _, seed := range [][]byte{
		slices.Concat(prototest.Frame("ADDED", pod), prototest.Frame("BOOKMARK", end), prototest.Frame("DELETED", pod)),
		prototest.Frame("MODIFIED", goldenProto(f, protoPod("a"), "Secret")),
		prototest.Frame("ERROR", goldenProto(f, &metav1.Status{Code: 410}, "Status")),
		prototest.Prefixed([]byte("\x12\x02\x0a\x00\x0a\x05ADDED")),
		[]byte("\xff\xff\xff\xff"),
	} {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, raw []byte, size uint8) {
		source := restPods(t, protoAnswer(raw))
		steps := sourceEvents(source.Watch(t.Context(), metav1.ListOptions{}))
		same := sourceEvents(restPods(t, protoTrip(func() io.Reader { return pieces{bytes.NewReader(raw), int(size) + 1} })).Watch(t.Context(), metav1.ListOptions{}))
		if !slices.Equal(steps, same) {
			t.Errorf("at once %q, in pieces of %d %q", steps, int(size)+1, same)
		}
		objects, _ := fuzzObjects(t, source, true)
		for i, want := range framesOfClient(raw) {
			if i >= len(objects) || !reflect.DeepEqual(objects[i], want) {
				t.Fatalf("frame %d of %q: want %v", i, steps, want)
			}
		}
	})
}

// framesOfClient returns the pods of the first frames, as client-go decodes them.
func framesOfClient(raw []byte) (pods []*corev1.Pod) {
	frames := protobuf.LengthDelimitedFramer.NewFrameReader(io.NopCloser(bytes.NewReader(raw)))
	decoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	buf := make([]byte, len(raw)+1)
	for {
		n, err := frames.Read(buf)
		var event metav1.WatchEvent
		if err != nil || errors.Join(event.Unmarshal(buf[:n])) != nil {
			return pods
		}
		switch event.Type {
		case "ADDED", "MODIFIED", "DELETED":
		default:
			return pods
		}
		obj, _, err := decoder.Decode(event.Object.Raw, nil, nil)
		pod, ok := obj.(*corev1.Pod)
		if err != nil || !ok || pod.Name == "" {
			return pods
		}
		pod.TypeMeta = metav1.TypeMeta{}
		pods = append(pods, pod)
	}
}

// FuzzProtoLeaveOut: what is left of a message decodes to what the message does,
// without what is left out; and what is broken stays so.
func FuzzProtoLeaveOut(f *testing.F) {
	f.Add(podBytes("a"))
	f.Add([]byte("\x12\x06\x12\x04\x3a\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want, got corev1.Pod
		err := want.Unmarshal(raw)
		cut, _ := informer.CutProto(reflect.TypeFor[corev1.Pod](), bytes.Clone(raw), "spec.containers.env.value", "spec.nodeName")
		if again := got.Unmarshal(cut); err == nil && again != nil {
			t.Fatalf("left over %x of %x: %v", cut, raw, again)
		}
		if err != nil {
			return
		}
		want.Spec.NodeName = ""
		for i := range want.Spec.Containers {
			for j := range want.Spec.Containers[i].Env {
				want.Spec.Containers[i].Env[j].Value = ""
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
