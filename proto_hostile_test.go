package informer_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest/prototest"
)

// open returns the beginning of a field that will have more bytes than it has.
func open(number int, content string, more int) string {
	tag := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return string(binary.AppendUvarint(tag, uint64(len(content)+more))) + content
}

// protoFlood is a list of pods a, x and b, or the same as a watch: x has the text
// and behind it more, again and again, size bytes of it.
func protoFlood(text, more string, size int, watch bool) *flood {
	field := func(n int, s string) string { return string(prototest.Field(n, []byte(s))) }
	x := field(1, "\x0a\x01x\x1a\x01n\x2a\x01u\x32\x013") + text
	a, b := podBytes("a"), podBytes("b")
	var before, after string
	if watch {
		before = field(1, "MODIFIED") + open(2, open(1, prototest.Magic+field(1, field(2, "Pod"))+open(2, x, size), size), size)
		prefix := binary.BigEndian.AppendUint32(nil, uint32(len(before)+size))
		before = string(prototest.Frame("ADDED", prototest.Envelope("v1", "Pod", a))) + string(prefix) + before
		after = string(prototest.Frame("ADDED", prototest.Envelope("v1", "Pod", b)))
	} else {
		after = field(2, string(b)) + field(1, field(2, "9"))
		before = prototest.Magic + field(1, field(2, "PodList")) + open(2, field(2, string(a))+open(2, x, size), size+len(after))
	}
	return &flood{Reader: io.MultiReader(strings.NewReader(before), repeated(more, size), strings.NewReader(after))}
}

// A hostileProto is an object that takes more than it may: fields, of which each
// is open in the one before, and what is repeated inside of the last one.
type hostileProto struct {
	fields []int
	more   string
	size   int
}

// text returns the beginning of the object.
func (h hostileProto) text() (text string) {
	for _, field := range slices.Backward(h.fields) {
		text = open(field, text, h.size)
	}
	return text
}

func hostileProtos() map[string]hostileProto {
	long := []byte(strings.Repeat("a", 1000))
	return map[string]hostileProto{
		"a gigabyte":       {nil, string(prototest.Field(99, long)), 1 << 30},
		"a string":         {[]int{2, 10}, "a", 25 * mib},
		"strings":          {nil, string(prototest.Field(1, prototest.Field(12, prototest.Field(1, long)))), 25 * mib},
		"containers":       {[]int{2}, "\x12\x00", 4 * mib},
		"owners":           {[]int{1}, "\x6a\x00", 4 * mib},
		"entries of a map": {[]int{2}, string(prototest.Field(7, []byte("\x0a\x01a"))), 20 * mib},
		"short strings":    {[]int{2, 2}, "\x1a\x01a", 20 * mib},
		"numbers":          {[]int{2, 14, 4}, "\x01", 20 * mib},
	}
}

// Promises 7 and 12: an object above 24 MiB, or one that would take too much
// memory, is one bad object with its key, and all around it are good.
func TestProtoHostile(t *testing.T) {
	skipWithRace(t)
	for name, tt := range hostileProtos() {
		for _, watch := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				if !*fullSize {
					tt.size = min(tt.size, 64*mib)
				}
				tt.size -= tt.size % len(tt.more)
				runtime.GC()
				body := protoFlood(tt.text(), tt.more, tt.size, watch)
				source := restPods(t, protoTrip(func() io.Reader { return body }))
				if watch {
					wantSteps(t, sourceEvents(source.Watch(t.Context(), metav1.ListOptions{})),
						"Added n/a uid=u v=5", "Bad n/x uid=u v=3", "Added n/b uid=u v=5")
				} else {
					wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})),
						"Added n/a uid=u v=5", "Bad n/x uid=u v=3", "Added n/b uid=u v=5", "End v=9 next=")
				}
				if body.peak > 200*mib {
					t.Errorf("the heap was %d MiB", body.peak/mib)
				}
				t.Logf("%d MiB read, heap at most %d MiB", body.read/mib, body.peak/mib)
			})
		}
	}
}

// Promise 7: what is no object may be 1 MiB, and a length that is claimed takes
// no memory.
func TestProtoHostileAround(t *testing.T) {
	skipWithRace(t)
	const most = 1 << 40
	list := prototest.Magic + string(prototest.Field(1, prototest.Field(2, []byte("PodList"))))
	around := "error informer: decode list of v1.Pod: more than 1 MiB that is no object"
	for name, tt := range map[string]struct{ body, want string }{
		"metadata":         {list + open(2, open(1, "", most), most), around},
		"an unknown field": {list + open(2, open(7, "", most), most), around},
		"a group":          {list + open(2, "\x3b", most), around},
		"a type":           {prototest.Magic + open(1, "", most), around},
		"a status":         {prototest.Magic + string(prototest.Field(1, prototest.Field(2, []byte("Status")))) + open(2, "", most), around},
		"around a list":    {prototest.Magic + open(9, "", most), around},
		"an item":          {list + open(2, open(2, "", most), most), "error informer: decode list of v1.Pod: unexpected EOF"},
		"a short item":     {list + open(2, open(2, "", 20*mib), 20*mib), "error informer: decode list of v1.Pod: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			allocated := allocatedBytes(func() {
				body := io.MultiReader(strings.NewReader(tt.body), repeated("\x1a\x01a", 2*mib))
				wantSteps(t, sourceEvents(restPods(t, protoTrip(func() io.Reader { return body })).List(t.Context(), metav1.ListOptions{})), tt.want)
			})
			if allocated > 10*mib {
				t.Errorf("%d MiB allocated", allocated/mib)
			}
		})
	}
	for _, event := range []string{"BOOKMARK", "ERROR"} {
		frame := open(1, event, 0) + open(2, "", 100*mib)
		body := io.MultiReader(strings.NewReader(string(binary.BigEndian.AppendUint32(nil, 100*mib))+frame), repeated("a", 100*mib))
		wantSteps(t, sourceEvents(restPods(t, protoTrip(func() io.Reader { return body })).Watch(t.Context(), metav1.ListOptions{})),
			"error informer: decode watch of v1.Pod: more than 1 MiB that is no object")
	}
}

// Promise 12: whatever an API server takes is good, however dense it is.
func TestProtoDense(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{}}
	for size := 0; size < mib; size += 5 {
		cm.Data[string(binary.BigEndian.AppendUint32([]byte{0}, uint32(size)))] = ""
	}
	raw, err := cm.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := informer.WeighProto(reflect.TypeFor[corev1.ConfigMap](), raw); err != nil {
		t.Errorf("%d bytes: %v", len(raw), err)
	}
}

// protoNested is a type that may be as deep as one likes.
type protoNested struct {
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Inside            *protoNested     `json:"inside" protobuf:"bytes,2,opt,name=inside"`
	Numbers           []int32          `json:"numbers" protobuf:"varint,3,rep,name=numbers"`
	Lists             map[string][]int `json:"lists" protobuf:"bytes,4,rep,name=lists"`
}

// Promise 7: an object is weighed by what its Go type takes, and not too deep.
func TestProtoWeigh(t *testing.T) {
	nested := reflect.TypeFor[protoNested]()
	deep := func(n int) (raw []byte) {
		for range n {
			raw = prototest.Field(2, raw)
			if len(raw) > 10*mib {
				break
			}
		}
		return raw
	}
	many := func(field string, n int) []byte { return []byte(strings.Repeat(field, n)) }
	for name, tt := range map[string]struct {
		raw  []byte
		want string
	}{
		"nothing":             {nil, ""},
		"garbage":             {[]byte("\xff\xff"), ""},
		"deep":                {deep(9_900), ""},
		"too deep":            {deep(9_902), "nested too deeply"},
		"numbers":             {many("\x18\x01", 12*mib), ""},
		"too many numbers":    {many("\x18\x01", 12*mib+1), "or too much of it is small elements"},
		"packed":              {[]byte(open(3, strings.Repeat("\x01", 12*mib-1), 0)), ""},
		"too many packed":     {[]byte(open(3, strings.Repeat("\x01", 12*mib+1), 0)), "or too much of it is small elements"},
		"unknown":             {many("\x48\x01", 12*mib), ""},
		"entries":             {many("\x22\x00", 100_000), ""},
		"entries, apart":      {many("\x22\x00\x48\x01", 200_000), "or too much of it is small elements"},
		"too many pointers":   {many("\x12\x00", mib), "or too much of it is small elements"},
		"a map's own numbers": {[]byte(open(4, "\x12"+open(0, strings.Repeat("\x01", 7*mib), 0)[1:], 0)), ""},
	} {
		err := informer.WeighProto(nested, tt.raw)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Promise 7: a watch that has had a long object holds no long buffer.
func TestProtoWatchLetsGo(t *testing.T) {
	skipWithRace(t)
	body := protoFlood(open(99, "", 20*mib), "a", 20*mib, true)
	before := heap()
	source := restPods(t, protoTrip(func() io.Reader { return body }))
	for ev, err := range source.Watch(t.Context(), metav1.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if held := heap() - before; ev.Key.Name == "b" && held > mib {
			t.Errorf("%d bytes held", held)
		}
	}
}

// TestProtoLeaveOut: what is left out is as if it had not been sent, wherever it
// is, and the rest is as it was.
func TestProtoLeaveOut(t *testing.T) {
	paths := []string{
		"metadata.managedFields", "metadata.annotations['a']", "metadata.labels",
		"spec.containers.env.value", "spec.containers.ports", "spec.nodeName", "status",
		"spec.volumes.configMap.name", // in an embedded struct
		"spec.containers.resources.limits['cpu']",
	}
	for _, obj := range append(decodeFilled[corev1.Pod](t), protoPod("a")) {
		pod := obj.(*corev1.Pod)
		raw, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		want := leftOutOf(t, raw)
		list := prototest.List("v1", "PodList", protoListMeta, raw, raw)
		source := informer.FromREST[corev1.Pod](restClient(t, protoAnswer(list)), podsGVR(), informer.RESTOptions{LeaveOut: paths})
		for _, got := range decodeObjects(t, source.List(t.Context(), metav1.ListOptions{})) {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		}
		cut, err := informer.CutProto(reflect.TypeFor[corev1.Pod](), bytes.Clone(raw), paths...)
		if err != nil || len(cut) >= len(raw) || bytes.Contains(cut, []byte("kubectl")) {
			t.Errorf("%d of %d bytes left, %v", len(cut), len(raw), err)
		}
		for n := range raw { // what is broken stays so
			cut, _ := informer.CutProto(reflect.TypeFor[corev1.Pod](), bytes.Clone(raw[:n]), "spec.containers.env.value")
			if a, b := new(corev1.Pod).Unmarshal(raw[:n]), new(corev1.Pod).Unmarshal(cut); (a == nil) != (b == nil) {
				t.Fatalf("%d bytes: %v, with something left out %v", n, a, b)
			}
		}
	}
}

// leftOutOf returns the pod of the message without what [TestProtoLeaveOut]
// leaves out.
func leftOutOf(t *testing.T, raw []byte) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	pod.ManagedFields, pod.Labels, pod.Spec.NodeName, pod.Status = nil, nil, "", corev1.PodStatus{}
	if delete(pod.Annotations, "a"); len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		for j := range c.Env {
			c.Env[j].Value = ""
		}
		c.Ports = nil
		if delete(c.Resources.Limits, "cpu"); len(c.Resources.Limits) == 0 {
			c.Resources.Limits = nil
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil {
			v.ConfigMap.Name = ""
		}
	}
	return pod
}

// TestProtoShareStrings: equal strings of metadata are in memory once, and the
// objects are equal to those that share none.
func TestProtoShareStrings(t *testing.T) {
	skipWithRace(t)
	pod := protoPod("a")
	pod.Namespace, pod.GenerateName = strings.Repeat("n", 200), strings.Repeat("g", 200)
	pod.Labels = map[string]string{strings.Repeat("k", 200): strings.Repeat("v", 200)}
	pod.Annotations = map[string]string{strings.Repeat("a", 200): strings.Repeat("b", 200), "long": strings.Repeat("c", 300)}
	pod.Finalizers = []string{strings.Repeat("f", 200)}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: strings.Repeat("1", 200), Kind: strings.Repeat("2", 200), Name: strings.Repeat("3", 200), UID: types.UID(strings.Repeat("4", 200))}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("5", 200), Operation: metav1.ManagedFieldsOperationType(strings.Repeat("6", 200)),
		APIVersion: strings.Repeat("7", 200), FieldsType: strings.Repeat("8", 200), Subresource: strings.Repeat("9", 200)}}
	const strings200 = 16 // of 200 bytes, each of which takes 208
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	list := prototest.List("v1", "PodList", protoListMeta, slices.Repeat([][]byte{raw}, n)...)
	held := map[bool]int64{}
	var kept [2][]*corev1.Pod
	for i, share := range []bool{false, true} {
		source := informer.FromREST[corev1.Pod](restClient(t, protoAnswer(list)), podsGVR(), informer.RESTOptions{ShareStrings: share})
		before := heap()
		kept[i] = decodeObjects(t, source.List(t.Context(), metav1.ListOptions{}))
		held[share] = heap() - before
	}
	if saved := (held[false] - held[true]) / n; saved < strings200*200 || saved > strings200*220 {
		t.Errorf("%d bytes a pod are shared, want those of %d strings", saved, strings200)
	}
	if !reflect.DeepEqual(kept[0], kept[1]) {
		t.Error("the pods differ")
	}
}

// TestProtoHoldsNoBody is for promise 7: a list, and a watch, cost per item what
// decoding the item alone costs. A body, a list or a copy of the items would show.
func TestProtoHoldsNoBody(t *testing.T) {
	const n = 2000
	raw := podBytes("a")
	var kept *corev1.Pod
	alone := allocatedBytes(func() {
		for range n {
			kept = new(corev1.Pod)
			if err := kept.Unmarshal(raw); err != nil {
				t.Error(err)
			}
		}
	}) / n
	list := prototest.List("v1", "PodList", protoListMeta, slices.Repeat([][]byte{raw}, n)...)
	frames := bytes.Repeat(prototest.Frame("ADDED", prototest.Envelope("v1", "Pod", raw)), n)
	for name, seq := range map[string]iter.Seq2[informer.Event[*corev1.Pod], error]{
		"list":  restPods(t, protoAnswer(list)).List(t.Context(), metav1.ListOptions{}),
		"watch": restPods(t, protoAnswer(frames)).Watch(t.Context(), metav1.ListOptions{}),
	} {
		got := allocatedBytes(func() {
			for ev, err := range seq {
				if kept = ev.Object; err != nil {
					t.Fatal(err)
				}
			}
		}) / n
		if got > alone+alone/25 {
			t.Errorf("%s: %d bytes an item, want %d as for the item alone", name, got, alone)
		}
	}
}
